"""What exists is replaced after a question on a terminal, or with --force; everything is refused before work starts."""

import io
import sys

import pytest

import ramify
from ramify.cli.main import main


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def model(tickets, tmp_path, capsys):
    assert main(["train", tickets, "--system", "nb", "--model", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    return tmp_path / "out"


def type_in(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", Terminal(text))
    monkeypatch.setattr(sys, "stderr", Terminal())
    return sys.stderr


def refuse_work(monkeypatch):
    def work(*_, **__):
        raise AssertionError("work has started")

    for name in ("train", "compare", "audit", "evaluate", "predict_rows"):
        monkeypatch.setattr(ramify.workflows, name, work)
    monkeypatch.setattr(ramify.workflows.updating, "update_model", work)
    monkeypatch.setattr(ramify.data, "read_corpus", work)


COMMANDS = {
    "train --model": "train {data} --system svm --model {out}",
    "train --report": "train {data} --system nb --model {new} --report {file}",
    "update --to": "update {out} --data {data} --to {copy}",
    "predict --out": "predict {out} {data} --out {file}",
    "score --out": "score {out} {data} --out {file}",
    "evaluate --report": "evaluate {out} {data} --report {file}",
    "compare --report": "compare {data} --system nb --system svm --report {file}",
    "audit --report": "audit {data} --system nb --report {file}",
    "audit --out": "audit {data} --system nb --out {file}",
    "taxonomy learn": "taxonomy learn {flat} --groups 2 --out {table}",
    "taxonomy diff": "taxonomy diff {old} {old} --out {file}",
    "demo --report": "demo --system nb --model {new} --report {file}",
    "demo --model": "demo --system nb --model {out} --report {fresh}",
    "predict many": "predict {out} {parts} --out {predicted}",
}


@pytest.fixture
def words(model, tickets, tmp_path, capsys):
    """The words of each command; what it would write exists."""
    for name in ("out.csv", "out.tsv"):
        (tmp_path / name).write_text("mine\n")
    (tmp_path / "flat.csv").write_text("text,label\nred apple,apple\nripe pear,pear\nrye bread,bread\n")
    (tmp_path / "old.txt").write_text("a > b\na > c\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "one.csv").write_text("body\nlate parcel\n")
    ramify.load(model).save(tmp_path / "copy")
    assert main(["predict", str(model), str(tmp_path / "parts"), "--out", str(tmp_path / "predicted")]) == 0
    (tmp_path / "parts" / "two.csv").write_text("body\ndark screen\n")
    capsys.readouterr()
    names = {"data": tickets, "out": model, "file": "out.csv", "table": "out.tsv", "flat": "flat.csv", "old": "old.txt"}
    names |= {name: name for name in ("new", "fresh", "copy", "parts", "predicted")}
    return lambda command: COMMANDS[command].format(**{name: tmp_path / value for name, value in names.items()}).split()


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_terminal_it_is_refused_before_any_work(words, command, tmp_path, capsys, monkeypatch):
    before = contents(tmp_path)
    given = words(command)
    with monkeypatch.context() as patched:
        refuse_work(patched)
        assert main(given) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "give --force to replace it, or another place." in told
    assert contents(tmp_path) == before
    assert main([*given, "--force"]) == 0
    assert contents(tmp_path) != before


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("YES\n", 0), ("n\n", 2), ("\n", 2), ("", 2)])
def test_on_a_terminal_it_is_asked(model, tickets, monkeypatch, typed, code):
    screen = type_in(monkeypatch, typed)
    assert main(["train", tickets, "--system", "svm", "--model", str(model)]) == code
    assert f"{model} holds a model of system 'nb'. Replace it? [y/N] " in screen.getvalue()
    assert ramify.load(model).system == ("svm" if code == 0 else "nb")
    assert ("is kept, and nothing was done" in screen.getvalue()) == (code == 2)


def test_where_nothing_would_be_lost_nothing_is_asked(tickets, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.html").touch()
    place, report = str(tmp_path / "empty"), str(tmp_path / "empty.html")
    assert main(["train", tickets, "--system", "nb", "--model", place, "--report", report]) == 0
    assert main(["predict", place, tickets, "--out", "/dev/null"]) == 0


def test_an_update_replaces_its_own_model_without_a_question(model, tickets):
    assert main(["update", str(model), "--data", tickets]) == 0


def test_the_demo_replaces_what_an_earlier_demo_wrote(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["demo", "--system", "nb"]) == 0


def test_a_run_on_many_files_that_is_resumed_is_not_asked(words):
    assert main([*words("predict many"), "--resume"]) == 0  # the file that is new is written


def test_in_python_a_model_is_replaced_unless_overwrite_is_false(model, tmp_path, food):
    clf = ramify.load(model)
    clf.save(model)
    with pytest.raises(ramify.errors.InputError, match="exists already; give overwrite=True to replace it, or another place"):
        clf.save(model, overwrite=False)
    clf.save(tmp_path / "other", overwrite=False)
    ramify.write_taxonomy(food, tmp_path / "t.tsv", overwrite=False)
    with pytest.raises(ramify.errors.InputError, match="exists already"):
        ramify.write_taxonomy(food, tmp_path / "t.tsv", overwrite=False)
