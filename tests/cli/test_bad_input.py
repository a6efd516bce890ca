"""Every mistake of a user's: one clear sentence, exit code 2, and existing files as they were."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ramify
from ramify.cli.main import main
from ramify.errors import InputError
from ramify.persistence import FORMAT_VERSION, StoredModel, read_model, write_model

GOOD = "".join(f"parcel number {i} is late,Orders > Late\nno picture on tv {i},TV > Picture\n" for i in range(10))


def fingerprint(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


def refused(capsys, tmp_path, *arguments):
    """Run a command that must fail, and give its sentence."""
    before = fingerprint(tmp_path)
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert code == 2, captured
    assert captured.err.count("\n") == 1, captured.err
    assert captured.err.startswith("ramify: ")
    assert "Traceback" not in captured.err
    assert fingerprint(tmp_path) == before
    return captured.err


@pytest.fixture
def good(tmp_path, capsys):
    """A table that trains, and a model of it."""
    (tmp_path / "good.csv").write_text("text,label\n" + GOOD)
    assert main(["train", str(tmp_path / "good.csv"), "--model", str(tmp_path / "model")]) == 0
    capsys.readouterr()
    return tmp_path


TABLES = {
    "missing text column": (["--text", "body"], b"text,label\nx y,a\nz w,b\n", "no column 'body'"),
    "missing label column": (["--label", "kind"], b"text,label\nx y,a\nz w,b\n", "no column 'kind'"),
    "empty file": ([], b"", "is empty"),
    "only a header": ([], b"text,label\n", "but no rows"),
    "null text": (["--strict"], b"text,label\n" + GOOD.encode() + b",a\n", "line 22: the text is empty"),
    "not UTF-8": (["--strict"], b"text,label\n" + GOOD.encode() + b"\xc3\xa9\xc3\xa9\xff,a\n", "line 22: not UTF-8"),
    "an unknown encoding": ([], "text,label\nпривет,а\nмир,б\n".encode("koi8-r"), "give its --encoding"),
    "one class only": ([], b"text,label\nxx yy,a\nzz ww,a\n", "at least two classes"),
    "no labels": ([], b"text,label\nx y,\nz w,\n", "no document has a label"),
    "empty path part": ([], b"text,label\nx y,a//b\nz w,a/c\n", "empty part"),
    "no words": (["--system", "nb"], b"text,label\n?,a\n!,b\n", "no words"),
    "unknown system": (["--system", "hr-svn"], b"text,label\nx y,a\nz w,b\n", "system 'hr-svn' is unknown"),
    "unknown parameter": (
        ["--system", "nb", "--param", "beta=1"],
        b"text,label\nx y,a\nz w,b\n",
        "not a parameter of nb; it has alpha",
    ),
    "bad characters": (["--characters", "4-3"], b"text,label\nxx y,a\nz ww,b\n", "--characters is '4-3'"),
    "half a parameter": (["--param", "alpha"], b"text,label\nx y,a\nz w,b\n", "give a name and a value"),
    "bad parameter": (["--system", "nb", "--param", "alpha=-1"], b"text,label\nxx yy,a\nzz ww,b\n", "alpha is -1"),
    "parameter of another type": (
        ["--system", "nb", "--param", "alpha=none"],
        b"text,label\nxx yy,a\nzz ww,b\n",
        "alpha is 'none'",
    ),
    "bad share": (["--holdout", "1.5"], b"text,label\nx y,a\nz w,b\n", "between 0 and 1"),
    "bad n-grams": (["--ngrams", "21"], b"text,label\nxx y,a\nz ww,b\n", "ngram_range"),
    "missing test file": (["--test", "none.csv"], b"text,label\nxx y,a\nz ww,b\n", "none.csv cannot be read"),
}


@pytest.mark.parametrize("name", TABLES)
def test_training_on_a_table_that_cannot_be_trained_on(capsys, good, name):
    options, content, message = TABLES[name]
    (good / "bad.csv").write_bytes(content)
    assert message in refused_quietly(capsys, good, "train", good / "bad.csv", "--model", good / "model", "--force", *options)


TAXONOMIES = {
    "label not in the taxonomy": ("Orders > Late\n", "'TV > Picture' is not in the taxonomy"),
    "cycle": ("Orders\tTV\nTV\tOrders\n", "has a cycle"),
    "duplicate node": ("TV\tROOT\nOrders\tROOT\nTV\tROOT\n", "'TV' is listed twice"),
    "unnamed parent": ("TV\tROOT\nPicture\tTele\n", "'Tele', the parent of 'Picture', has no row of its own"),
    "empty taxonomy": ("", "the file is empty"),
}


@pytest.mark.parametrize("name", TAXONOMIES)
def test_training_with_a_taxonomy_that_does_not_fit(capsys, good, name):
    content, message = TAXONOMIES[name]
    (good / "tax.txt").write_text(content)
    said = refused_quietly(
        capsys, good, "train", good / "good.csv", "--taxonomy", good / "tax.txt", "--model", good / "model", "--force"
    )
    assert message in said


def refused_quietly(capsys, tmp_path, *arguments):
    """As refused, but notes on what was read may come before the sentence."""
    before = fingerprint(tmp_path)
    code = main([str(argument) for argument in arguments])
    lines = capsys.readouterr().err.splitlines()
    assert code == 2, lines
    assert [line.startswith("ramify: ") for line in lines].count(True) == 1, lines
    assert fingerprint(tmp_path) == before
    return lines[-1]


def test_a_dag_where_a_tree_is_needed(capsys, good):
    (good / "dag.tsv").write_text("a\tROOT\nb\tROOT\nc\ta\nc\tb\n")
    assert "'c' has two parents" in refused(capsys, good, "inspect", good / "dag.tsv", "--tree")


def spoil(path, how):
    weights = path / "weights.safetensors"
    manifest = path / "manifest.json"
    if how == "truncated":
        weights.write_bytes(weights.read_bytes()[:-10])
    elif how == "tampered":
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        weights.write_bytes(data)
    elif how in ("newer", "older"):
        version = {"newer": 99, "older": 1}[how]
        manifest.write_text(manifest.read_text().replace(f'"version": {FORMAT_VERSION}', f'"version": {version}'))
    elif how == "without manifest":
        manifest.unlink()
    elif how == "out of range":
        import numpy as np

        stored = read_model(path)
        nodes = np.asarray([0, 10_000])
        write_model(path, StoredModel(stored.metadata, stored.documents, {**stored.arrays, "learner.class_nodes": nodes}))


@pytest.mark.parametrize("how", ["truncated", "tampered", "newer", "older", "without manifest", "out of range"])
@pytest.mark.parametrize("command", ["predict", "evaluate", "inspect"])
def test_a_model_that_must_not_be_trusted(capsys, good, how, command):
    spoil(good / "model", how)
    data = [] if command == "inspect" else [good / "good.csv"]
    said = refused(capsys, good, command, good / "model", *data)
    assert str(good / "model") in said


def test_a_model_that_is_not_there(capsys, good):
    assert "there is no such directory" in refused(capsys, good, "predict", good / "none", good / "good.csv")
    assert "does not exist" in refused(capsys, good, "inspect", good / "none")


def test_predict_needs_one_thing_to_classify(capsys, good):
    assert "and not both" in refused(capsys, good, "predict", good / "model")
    assert "the text is empty" in refused(capsys, good, "predict", good / "model", "--try", "  ")


def test_strict_prediction_stops_at_a_bad_row_and_writes_nothing(capsys, good):
    (good / "new.csv").write_text("text\nfine words\n''\n\"\"\n")
    said = refused(capsys, good, "predict", good / "model", good / "new.csv", "--strict", "--out", good / "answers.csv")
    assert "line 4: the text is empty" in said


def test_a_model_never_replaces_other_files(capsys, good):
    (good / "precious").mkdir()
    (good / "precious" / "thesis.txt").write_text("years")
    assert "does not belong to a model" in refused(capsys, good, "train", good / "good.csv", "--model", good / "precious")


@pytest.mark.parametrize("arguments", [["train"], ["trian"], ["predict"], ["train", "x.csv", "--model"], ["--nonsense"]])
def test_a_command_line_that_cannot_be_understood(capsys, arguments):
    assert main(arguments) == 2
    assert "Traceback" not in capsys.readouterr().err


@given(
    content=st.one_of(
        st.binary(max_size=300), st.text(max_size=200).map(lambda t: b"text,label\n" + t.encode("utf-8", "replace"))
    )
)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_trained_on_or_refused_in_one_sentence(capsys, tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "data").write_bytes(content)
    code = main(["train", str(folder / "data"), "--model", str(folder / "model")])
    err = capsys.readouterr().err
    assert code in (0, 2)
    assert "Traceback" not in err
    if code == 2:
        assert [line.startswith("ramify: ") for line in err.splitlines()].count(True) == 1
        assert os.listdir(folder) == ["data"]


def test_interrupted_training_leaves_everything_as_it_was(good):
    with open(good / "large.csv", "w") as file:
        file.write("text,label\n")
        for i in range(150_000):
            file.write(f"parcel number {i} of {i % 777} is late {i % 13},Orders > Late {i % 50}\n")
    before = fingerprint(good)
    command = [
        sys.executable,
        "-m",
        "ramify.cli.main",
        "train",
        str(good / "large.csv"),
        "--force",
        "--model",
        str(good / "model"),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert "150,000 documents" in process.stderr.readline()  # reading is done, training begins
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.splitlines()[-1] == "ramify: interrupted; every file is unchanged or complete."
    assert out == ""
    assert fingerprint(good) == before
    assert sorted(os.listdir(good)) == ["good.csv", "large.csv", "model"]


def test_outputs_never_overwrite_inputs(capsys, good):
    assert "would be overwritten" in refused(
        capsys, good, "train", good / "good.csv", "--model", good / "model", "--report", good / "good.csv"
    )
    assert "would be overwritten" in refused(
        capsys, good, "predict", good / "model", good / "good.csv", "--out", good / "good.csv"
    )


def test_a_report_that_cannot_be_written_is_found_out_before_training(capsys, good):
    place = good / "none" / "report.html"
    assert "its directory does not exist" in refused(
        capsys, good, "train", good / "good.csv", "--model", good / "model", "--report", place
    )


def test_a_file_in_which_no_row_can_be_classified_is_refused(capsys, good):
    (good / "new.csv").write_bytes("text\nété caf".encode() + b"\xe9\n\xc3\xa9\xff\n")
    said = refused(capsys, good, "predict", good / "model", good / "new.csv", "--out", good / "answers.csv")
    assert "none of 2 rows could be classified" in said
    assert "line 2: not UTF-8" in said


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\x14\x00", "cannot be read as a spreadsheet"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "binary file"),
        (b"parcel late,Orders\nscreen dark,TV\nbox lost,Orders\n", "first row looks like a document"),
        ("тест,метка\nпривет,мир\n".encode("cp1251"), "give its --encoding"),
    ],
)
def test_files_that_are_no_tables_are_named_for_what_they_are(capsys, good, content, message):
    (good / "bad.csv").write_bytes(content)
    options = ["--label", "Orders"] if b"Orders" in content else []
    assert message in refused(capsys, good, "train", good / "bad.csv", "--model", good / "model", "--force", *options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nb\ta\n", "has a cycle"),
        (b"a\tROOT\nb\tmissing\nc\ta\n", "'missing', the parent of 'b'"),
    ],
)
def test_inspect_tells_what_is_wrong_with_a_taxonomy(capsys, good, content, message):
    (good / "tax.tsv").write_bytes(content)
    assert message in refused(capsys, good, "inspect", good / "tax.tsv")


def test_texts_and_vectors_are_not_mixed_up(capsys, good):
    (good / "v.svm").write_text("a 1:1\nb 2:1\n" * 4)
    assert "trained on texts" in refused(capsys, good, "predict", good / "model", good / "v.svm")
    assert main(["train", str(good / "v.svm"), "--model", str(good / "vm"), "--holdout", "0"]) == 0
    capsys.readouterr()
    assert "trained on vectors, but --try holds texts" in refused(capsys, good, "predict", good / "vm", "--try", "hello")
    assert "trained on vectors" in refused(capsys, good, "predict", good / "vm", good / "good.csv")
    assert "trained on vectors" in refused_quietly(capsys, good, "evaluate", good / "vm", good / "good.csv")


@pytest.mark.parametrize(("line", "message"), [("a 1:nan", "contains NaN"), ("a 1:-1", "Negative values")])
def test_vectors_that_naive_bayes_cannot_take(capsys, good, line, message):
    (good / "v.svm").write_text(f"{line}\nb 2:1\n" * 4)
    assert message in refused_quietly(
        capsys, good, "train", good / "v.svm", "--system", "nb", "--model", good / "model", "--force"
    )


def command_line(*arguments):
    return [sys.executable, "-m", "ramify.cli.main", *map(str, arguments)]


def test_output_that_nobody_reads_or_that_finds_no_room(good):
    head = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{' '.join(command_line('predict', good / 'model', good / 'good.csv'))} | head -1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (head.returncode, head.stderr) == (0, "")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command_line("predict", good / "model", good / "good.csv"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "ramify: cannot read or write standard output: No space left on device.\n"


def test_an_interruption_while_the_libraries_load(good):
    (good / "slow").mkdir()
    (good / "slow" / "typer.py").write_text("import sys, time\nprint('loading', file=sys.stderr, flush=True)\ntime.sleep(60)\n")
    environment = {**os.environ, "PYTHONPATH": str(good / "slow")}
    process = subprocess.Popen(command_line("systems"), env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline() == "loading\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err == "ramify: interrupted; every file is unchanged or complete.\n"


def test_nothing_is_written_into_a_model_directory(capsys, good):
    place = good / "model" / "manifest.json"
    assert "lies in the model directory" in refused(
        capsys, good, "train", good / "good.csv", "--model", good / "model", "--report", place
    )
    assert "lies in the model directory" in refused(
        capsys, good, "predict", good / "model", good / "good.csv", "--out", good / "model" / "x.csv"
    )


@pytest.mark.parametrize("place", ["good.csv/m", "."])
def test_places_where_no_model_can_be_are_refused_before_training(capsys, good, monkeypatch, place):
    monkeypatch.chdir(good)
    assert "choose another path" in refused(capsys, good, "train", good / "good.csv", "--model", place)


@pytest.mark.parametrize(
    ("option", "message"),
    [(["--stop-words", "klingon"], "give 'english'"), (["--stem", "klingon"], "There are"), (["--threads", "0"], "0 threads")],
)
def test_settings_that_make_no_sense_are_refused_before_reading(capsys, good, option, message):
    assert message in refused(capsys, good, "train", good / "good.csv", "--model", good / "model", "--force", *option)


def test_a_vector_that_cannot_be_classified_keeps_its_place(capsys, good):
    (good / "v.svm").write_text("a 1:1\nb 2:1\n" * 4)
    assert main(["train", str(good / "v.svm"), "--model", str(good / "vm"), "--holdout", "0"]) == 0
    (good / "new.svm").write_text("1:1\n1:1e39\n")
    capsys.readouterr()
    assert main(["predict", str(good / "vm"), str(good / "new.svm")]) == 0
    assert "too large" in capsys.readouterr().out.splitlines()[2]


NOT_UTF8 = os.fsdecode(b"\xff\xfe")
UNREADABLE = {
    "path separator": ["train", "good.csv", "--model", "new", "--path-separator", NOT_UTF8],
    "label separator": ["train", "good.csv", "--model", "new", "--label-separator", NOT_UTF8],
    "text column": ["train", "good.csv", "--model", "new", "--text", NOT_UTF8],
    "label column": ["train", "good.csv", "--model", "new", "--label", NOT_UTF8],
    "parameter": ["train", "good.csv", "--model", "new", "--param", f"mode={NOT_UTF8}"],
    "second parameter": ["train", "good.csv", "--model", "new", "--param", "a=1", "--param", NOT_UTF8],
    "text": ["explain", "model", f"picture {NOT_UTF8}"],
    "owner of a key": ["keys", "add", "keys.json", NOT_UTF8],
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_arguments_that_are_not_utf8_are_refused_before_anything_is_done(capsys, good, monkeypatch, name):
    monkeypatch.chdir(good)
    said = refused(capsys, good, *UNREADABLE[name])
    assert "\\udcff\\udcfe" in said
    assert "is not UTF-8; give it in UTF-8." in said


def test_names_of_files_need_not_be_utf8(capsys, good, monkeypatch):
    monkeypatch.chdir(good)
    os.rename("good.csv", b"\xff.csv")
    assert main(["predict", "model", "\udcff.csv", "--out", "\udcfe.csv"]) == 0
    assert b"\xfe.csv" in os.listdir(b".")


def test_a_taxonomy_that_no_file_can_be_called_is_refused():
    with pytest.raises(InputError):
        ramify.TextClassifier("nb", taxonomy="\ud800").fit(["a b", "c d"], ["x", "y"])


DEEP = {"too deep for Python": "[" * 3000, "deep": "[" * 900 + "]" * 900, "objects": '{"a":' * 100 + "1" + "}" * 100}
WHERE = {
    "--param": ["train", "good.csv", "--model", "new", "--system", "nb", "--param", "alpha={}"],
    "--system": ["train", "good.csv", "--model", "new", "--system", "nb:alpha={}"],
    "--system of an audit": ["audit", "good.csv", "--system", "nb:alpha={}"],
    "--rule": ["predict", "model", "good.csv", "--rule", "isotonic:penalty={}"],
    "--rule-param": ["predict", "model", "good.csv", "--rule", "isotonic", "--rule-param", "penalty={}"],
}


@pytest.mark.parametrize("deep", DEEP)
@pytest.mark.parametrize("where", WHERE)
def test_lists_and_objects_that_are_too_deep_are_refused_in_one_sentence(capsys, good, monkeypatch, where, deep):
    monkeypatch.chdir(good)
    said = refused(capsys, good, *(word.replace("{}", DEEP[deep]) for word in WHERE[where]))
    assert "too many brackets in one another; give at most 20." in said


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["predict", "m", ""], "DATA"),
        (["predict", "", "t.csv"], "MODEL"),
        (["train", "t.csv", "--model", ""], "--model"),
        (["train", "t.csv", "--model", "m", "--add", "a.csv", "--add="], "--add"),
        (["taxonomy", "diff", "", "t.tsv"], "OLD"),
    ],
)
def test_an_empty_path_does_not_mean_the_current_directory(capsys, tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"ramify: {named} is an empty path; name a file or directory, or . for the current one.\n"


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGHUP])
def test_a_closed_terminal_interrupts_like_ctrl_c_unless_it_is_ignored(good, kind):
    code = "import os, signal, sys; from ramify.cli import main as m; sys.argv = ['ramify', 'systems']; "
    code += f"m.run = lambda *_: os.kill(os.getpid(), {int(kind)}) or 0; sys.exit(m.main())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (2, "ramify: interrupted; every file is unchanged or complete.\n")
    code = f"import signal; signal.signal({int(kind)}, signal.SIG_IGN); {code}"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_a_pipe_is_called_by_its_name_and_not_by_that_of_its_copy(capsys, good):
    pipe = good / "pipe"
    os.mkfifo(pipe)
    content = (good / "good.csv").read_bytes() + b"no label,\n"
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert main(["evaluate", str(good / "model"), str(pipe)]) == 0
    writer.join()
    assert capsys.readouterr().err.startswith(f"{pipe}: ")


def test_costs_that_are_no_json_are_named(capsys, good):
    assert main(["evaluate", str(good / "model"), str(good / "good.csv"), "--costs", '{"a":']) == 2
    assert "ramify: --costs: it is not valid JSON" in capsys.readouterr().err
