"""Outputs: refused before the work if they cannot be written, and with formulas escaped where a spreadsheet will read them."""

from __future__ import annotations

import csv
import io
import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from ramify import workflows
from ramify.cli.main import main
from ramify.errors import ModelError
from ramify.server.reviews import ReviewStore
from ramify.workflows.updating import UpdateOptions, update_model

UNWRITABLE = Path("/proc")  # nothing can be created here, also not by root, and permissions do not tell
needs_proc = pytest.mark.skipif(not (UNWRITABLE / "self").exists(), reason="no directory where also root cannot write")
MARKS = ("=", "+", "-", "@", "\t", "\r")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts, labels and a column that a spreadsheet would calculate, and a model of them."""
    folder = tmp_path_factory.mktemp("outputs")
    rows = [["text", "label", "=column"]]
    rows += [[f"=cmd parcel late courier {i}", "=Orders > Late", "-5"] for i in range(8)]
    rows += [[f"@wrong item in box {i}", "=Orders > Wrong", "+a"] for i in range(8)]
    rows += [[f"\tscreen dark no picture {i}", "-TV > Picture", "x"] for i in range(8)]
    rows += [[f"\rsound crackles speaker {i}", "-TV > Sound", "x"] for i in range(8)]
    with open(folder / "table.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert main(["train", str(folder / "table.csv"), "--model", str(folder / "model"), "--system", "nb"]) == 0
    return folder


TRAINING = {
    "plainly": [],
    "automatically": ["--auto"],
    "in shards": ["--system", "svm", "--shards", "2"],
    "with checkpoints": ["--checkpoints", "checkpoints"],
    "again": ["--resume"],
}


@needs_proc
@pytest.mark.parametrize("how", TRAINING)
@pytest.mark.parametrize("place", ["model", "new/model"])
def test_a_model_that_cannot_be_saved_is_refused_before_anything_is_read(how, place, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "missing.csv", "--model", str(UNWRITABLE / place), *TRAINING[how]]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"ramify: cannot save a model at {UNWRITABLE / place}: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["/", "/proc", ".", "a" * 300])
def test_places_that_cannot_become_a_model_are_refused_at_once(place, capsys):
    for more in ([], ["--resume"]):
        assert main(["train", "missing.csv", "--model", place, *more]) == 2
        error = capsys.readouterr().err
        assert "missing.csv" not in error
        assert error.count("\n") == 1


@needs_proc
def test_a_model_that_cannot_be_saved_is_refused_in_python(tmp_path):
    with pytest.raises(ModelError, match="cannot save a model"):
        workflows.train("missing.csv", model=UNWRITABLE / "model")
    with pytest.raises(ModelError, match="cannot save a model"):
        update_model(tmp_path, UpdateOptions(tmp_path / "missing.csv"), UNWRITABLE / "model")


def test_nothing_is_left_where_a_model_could_be_saved(tmp_path, capsys):
    assert (
        main(["train", "missing.csv", "--model", str(tmp_path / "some" / "model"), "--report", str(tmp_path / "r.html")]) == 2
    )
    assert "missing.csv" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


OUTPUTS = {
    "train": ["train", "missing.csv", "--model", "model", "--report"],
    "evaluate": ["evaluate", "model", "missing.csv", "--report"],
    "compare": ["compare", "missing.csv", "--report"],
    "audit page": ["audit", "missing.csv", "--report"],
    "audit": ["audit", "missing.csv", "--out"],
    "predict": ["predict", "model", "missing.csv", "--out"],
    "score": ["score", "model", "missing.csv", "--out"],
    "decide": ["decide", "missing.csv", "--model", "model", "--out"],
    "learn": ["taxonomy", "learn", "missing.csv", "--out"],
    "diff": ["taxonomy", "diff", "missing.csv", "missing.csv", "--out"],
    "demo": ["demo", "--model", "model", "--report"],
}


@needs_proc
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_read(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = UNWRITABLE / ("out.html" if "--report" in OUTPUTS[name] else "out.tsv" if name in ("learn", "diff") else "out.csv")
    assert main([*OUTPUTS[name], str(out)]) == 2
    assert capsys.readouterr().err.startswith(f"ramify: cannot write {out}: ")
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_an_export_that_cannot_be_written_is_refused(capsys, tmp_path):
    ReviewStore(tmp_path / "r.db").close()
    assert main(["reviews", "export", str(tmp_path / "r.db"), "--out", str(UNWRITABLE / "out.csv")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_files_that_a_command_reads_are_not_overwritten(tmp_path, capsys):
    (tmp_path / "old.tsv").write_text("root\t\na\troot\n")
    (tmp_path / "r.tsv").write_text("old\tnew\na\troot\n")
    read = [
        "taxonomy",
        "diff",
        str(tmp_path / "old.tsv"),
        str(tmp_path / "old.tsv"),
        "--reassignments",
        str(tmp_path / "r.tsv"),
    ]
    assert main([*read, "--out", str(tmp_path / "r.tsv")]) == 2
    assert "is read by this command" in capsys.readouterr().err
    decide = ["decide", str(tmp_path / "r.tsv"), "--taxonomy", str(tmp_path / "old.tsv"), "--rule", "isotonic"]
    assert main([*decide, "--out", str(tmp_path / "old.tsv")]) == 2
    assert "is read by this command" in capsys.readouterr().err


# ---- outputs that would take the place of something else ------------------------------------------------------------------


@pytest.fixture
def place(folder, tmp_path, monkeypatch):
    """A directory to work in, with everything that commands read."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder / "model", "model")
    for name in ("table.csv", "test.csv", "more.csv"):
        shutil.copy(folder / "table.csv", name)
    Path("stop.txt").write_text("the\n")
    Path("costs.json").write_text('{"=Orders": 2}')
    Path("taxonomy.txt").write_text("=Orders > Late\n=Orders > Wrong\n-TV > Picture\n-TV > Sound\n")
    Path("loop").symlink_to("loop")
    Path("loop.tsv").symlink_to("loop.tsv")
    Path("loop.csv").symlink_to("loop.csv")
    Path("linked").symlink_to("model")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "1.csv").write_bytes(Path("table.csv").read_bytes())
    return tmp_path


def contents(place):
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


COST_RULE = ["--rule", "minimize-h-loss", "--rule-param", "costs=costs.json"]
TRAIN = ["train", "table.csv", "--system", "nb", "--model", "new"]
OVERWRITING = {
    "train: stop words": ([*TRAIN, "--stop-words", "stop.txt", "--report", "stop.txt"], "stop.txt is read by"),
    "train: test": ([*TRAIN, "--test", "test.csv", "--report", "test.csv"], "test.csv is read by"),
    "train: added": ([*TRAIN, "--add", "more.csv", "--report", "more.csv"], "more.csv is read by"),
    "train: taxonomy": ([*TRAIN, "--taxonomy", "taxonomy.txt", "--report", "taxonomy.txt"], "taxonomy.txt is read by"),
    "train: costs": ([*TRAIN, *COST_RULE, "--report", "costs.json"], "costs.json is read by"),
    "train: a hard link": ([*TRAIN, "--report", "hard.csv"], "hard.csv is read by"),
    "train: a link": ([*TRAIN, "--report", "link.csv"], "link.csv is read by"),
    "train: of many files": (["train", "parts", "--model", "new", "--report", "parts/1.csv"], "parts/1.csv is read by"),
    "train: of a pattern": (["train", "parts/*.csv", "--model", "new", "--report", "parts/1.csv"], "parts/1.csv is read by"),
    "evaluate: costs": (["evaluate", "model", "test.csv", "--costs", "costs.json", "--report", "costs.json"], "costs.json is read by"),
    "evaluate: rule": (["evaluate", "model", "test.csv", *COST_RULE, "--report", "costs.json"], "costs.json is read by"),
    "compare: stop words": (["compare", "table.csv", "--stop-words", "stop.txt", "--report", "stop.txt"], "stop.txt is read by"),
    "compare: rule": (
        ["compare", "table.csv", "--system", "svm", "--rule", "minimize-h-loss:costs=costs.json", "--rule", "best", "--report", "costs.json"],
        "costs.json is read by",
    ),
    "audit: stop words": (["audit", "table.csv", "--stop-words", "stop.txt", "--out", "stop.txt"], "stop.txt is read by"),
    "audit: both outputs": (["audit", "table.csv", "--out", "a.csv", "--report", "a.csv"], "a.csv would be written twice"),
    "audit: both outputs by a link": (["audit", "table.csv", "--out", "x.csv", "--report", "dangling.csv"], "would be written twice"),
    "decide: costs": (["decide", "test.csv", "--model", "model", *COST_RULE, "--out", "costs.json"], "cannot write a file that ends in"),
    "learn: stop words": (["taxonomy", "learn", "table.csv", "--stop-words", "s.tsv", "--out", "s.tsv"], "s.tsv is read by"),
    "train: the model": ([*TRAIN, "--report", "new"], "new lies in the model directory"),
    "train: above the model": (["train", "table.csv", "--model", "new/m", "--report", "new"], "new would be a file, but the model new/m lies in it"),
    "train: checkpoints in the place of the model": ([*TRAIN, "--checkpoints", "new"], "checkpoints in new would mix with new"),
    "train: checkpoints in the model": ([*TRAIN, "--checkpoints", "new/c"], "checkpoints in new/c would mix with new"),
    "train: a model among checkpoints": (["train", "table.csv", "--model", "c/m", "--checkpoints", "c"], "checkpoints in c would mix with c/m"),
    "train: a report in the place of checkpoints": ([*TRAIN, "--checkpoints", "c", "--report", "c"], "checkpoints in c would mix with c"),
    "predict: below the model": (["predict", "model", "table.csv", "--out", "model/sub/x.csv"], "lies in the model directory"),
    "predict: below a link to the model": (["predict", "linked", "table.csv", "--out", "linked/sub/x.csv"], "lies in the model directory"),
    "audit: in any model": (["audit", "table.csv", "--out", "model/sub/x.csv"], "lies in the model directory"),
    "compare: in a model": (["compare", "table.csv", "-m", "model", "-m", "linked", "--report", "model/r.html"], "lies in the model directory"),
}  # fmt: skip


@pytest.mark.parametrize("name", OVERWRITING)
def test_an_output_never_takes_the_place_of_something_else(place, name, capsys):
    os.link("table.csv", "hard.csv")
    Path("link.csv").symlink_to("table.csv")
    Path("dangling.csv").symlink_to("x.csv")
    Path("s.tsv").write_text("the\n")
    if "below" in name or "any model" in name:
        Path("model/sub").mkdir()
    command, message = OVERWRITING[name]
    before = contents(place)
    assert main(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert contents(place) == before
    assert not Path("new").exists()


def test_devices_may_be_outputs_more_than_once(place):
    audit = ["audit", "table.csv", "--system", "nb", "--folds", "2", "--out", "/dev/null", "--report", "/dev/null"]
    assert main(audit) == 0


LOOPS = {
    "predict": ["predict", "model", "table.csv", "--out", "loop.csv"],
    "below": ["predict", "model", "table.csv", "--out", "loop/x.csv"],
    "many files": ["predict", "model", "parts", "--out", "loop"],
    "model": [*TRAIN[:-1], "loop"],
    "report": [*TRAIN, "--report", "loop"],
    "checkpoints": [*TRAIN, "--checkpoints", "loop"],
    "keys": ["keys", "add", "loop", "ann"],
    "no keys": ["keys", "remove", "loop", "ann"],
    "audit": ["audit", "table.csv", "--out", "loop.csv"],
    "learn": ["taxonomy", "learn", "table.csv", "--out", "loop.tsv"],
    "sign": ["sign", "--new-key", "loop"],
    "update": ["update", "model", "--data", "table.csv", "--to", "loop"],
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_link_to_itself_is_no_place_for_an_output(place, name, capsys):
    before = contents(place)
    assert main(LOOPS[name]) == 2
    error = capsys.readouterr().err
    assert "lead in a circle; give another path." in error
    assert error.count("\n") == 1
    assert contents(place) == before
    assert Path("loop").is_symlink()


@pytest.mark.parametrize(
    "command",
    [["predict", "model", "loop"], ["predict", "loop", "table.csv"], ["inspect", "loop"], ["train", "loop", "--model", "new"]],
)
def test_a_link_to_itself_is_nothing_to_read(place, command, capsys):
    assert main(command) == 2
    assert capsys.readouterr().err.count("\n") == 1


# ---- formulas -----------------------------------------------------------------------------------------------------------


def cells_of(text, delimiter=","):
    return [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) for cell in row]


def formulas_in(cells):
    return [cell for cell in cells if cell.startswith(MARKS) and cell != "-5"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_predictions_have_formulas_as_they_came_unless_asked(folder, tmp_path, suffix):
    predict = ["predict", str(folder / "model"), str(folder / "table.csv"), "--top", "2", "--out", str(tmp_path / f"p{suffix}")]
    delimiter = "," if suffix == ".csv" else "\t"
    found = {}
    for option in ([], ["--escape-formulas"]):
        assert main([*predict, "--force", *option]) == 0
        with open(tmp_path / f"p{suffix}", newline="") as file:
            found[bool(option)] = cells_of(file.read(), delimiter)
    assert {cell[0] for cell in formulas_in(found[False])} == set(MARKS)
    assert formulas_in(found[True]) == []
    assert [cell.removeprefix("'") for cell in found[True]] == found[False]
    assert "'=column" in found[True]
    assert "-5" in found[True]


def test_predictions_of_many_files_escape_formulas_and_remember_it(folder, tmp_path, capsys):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "a.csv").write_bytes((folder / "table.csv").read_bytes())
    predict = ["predict", str(folder / "model"), str(tmp_path / "parts"), "--out", str(tmp_path / "out")]
    assert main([*predict, "--escape-formulas"]) == 0
    assert formulas_in(cells_of((tmp_path / "out" / "a.csv").read_bytes().decode())) == []
    assert main([*predict, "--resume"]) == 2
    assert "with another format" in capsys.readouterr().err


def test_label_issues_escape_formulas_on_demand(folder, tmp_path):
    table = (
        (folder / "table.csv")
        .read_text()
        .replace("=cmd parcel late courier 0,=Orders > Late", "=cmd parcel late courier 0,-TV > Sound")
    )
    (tmp_path / "table.csv").write_text(table)
    audit = ["audit", str(tmp_path / "table.csv"), "--system", "nb", "--folds", "2", "--out", str(tmp_path / "issues.csv")]
    for option in ([], ["--escape-formulas"]):
        assert main([*audit, "--force", *option]) == 0
        cells = cells_of((tmp_path / "issues.csv").read_bytes().decode())
        assert len(cells) > 20
        assert bool(formulas_in(cells)) == (not option)


def test_exported_reviews_read_back_unless_formulas_are_escaped(tmp_path, capsys):
    texts = ["=1+1", "plain", "a\rb", "@x"]
    label = {"label": "=a", "path": ["=a"], "probabilities": [0.5], "probability": 0.5}
    with closing(ReviewStore(tmp_path / "r.db")) as store:
        for number in store.queue("m", [(text, [label], [], 0.5, None) for text in texts], by="x")[0]:
            store.decide(number, "ann", "accept", ["=a"])
    for option, expected in (([], texts), (["--escape-formulas"], ["'=1+1", "plain", "a\rb", "'@x"])):
        assert main(["reviews", "export", str(tmp_path / "r.db"), *option]) == 0
        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out, newline="")))
        assert [row["text"] for row in rows] == expected
        assert {row["label"] for row in rows} == {"'=a" if option else "=a"}


def test_escaped_formulas_are_for_tables_only(folder, tmp_path, capsys):
    ReviewStore(tmp_path / "r.db").close()
    out = ["--out", str(tmp_path / "x.jsonl"), "--escape-formulas"]
    for command in (
        ["predict", str(folder / "model"), str(folder / "table.csv")],
        ["audit", str(folder / "table.csv")],
        ["reviews", "export", str(tmp_path / "r.db")],
    ):
        assert main([*command, *out]) == 2
        assert "--escape-formulas is for CSV" in capsys.readouterr().err
