"""Data in many files on the command line: the same model, the same predictions, one sentence for errors."""

import csv
import gzip
import os
import signal
import subprocess
import sys
import time

import pytest
from apart import ApartExecutor

from ramify.cli.main import main
from ramify.parallel import running_on
from ramify.workflows.file_predictions import MANIFEST

pytestmark = pytest.mark.slow

LABELS = ["Orders > Late", "Orders > Wrong", "TV > Picture", "TV > Sound"]
WORDS = ["parcel late courier", "wrong item box", "screen dark picture", "sound crackles speaker"]


def ramify(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments):
    code, out, err = ramify(capsys, *arguments)
    assert code == 2, (out, err)
    assert "Traceback" not in err
    said = [line for line in err.splitlines() if line.startswith("ramify: ")]
    assert len(said) == 1
    return said[0]


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("body", "category"), *rows])


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def data(tmp_path):
    """One table as one file and as seven."""
    rows = [(f"{WORDS[i % 4]} number {i % 9}", LABELS[i % 4]) for i in range(90)]
    write(tmp_path / "whole.csv", rows)
    (tmp_path / "parts").mkdir()
    for k in range(7):
        write(tmp_path / "parts" / f"part-{5 + k}.csv", rows[13 * k : 13 * k + 13])
    return tmp_path


@pytest.mark.parametrize("system", ["nb", "svm", "hr-svm"])
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--select", 10, "--ngrams", 2],
        ["--hashing", 64, "--holdout", 0.4, "--seed", 3],
        ["--holdout", 0],
        ["--min-df", 2, "--no-refit"],
    ],
    ids=str,
)
def test_training_on_parts_is_training_on_the_whole(capsys, data, system, options):
    options = ["--system", system, *options]
    code, expected, _ = ramify(capsys, "train", data / "whole.csv", "--model", data / "one", *options)
    assert code == 0
    with running_on(ApartExecutor() if system == "svm" else None):
        code, out, err = ramify(capsys, "train", f"{data}/parts/", "--model", data / "many", *options)
    assert (code, out) == (0, expected), err
    assert "parts: 90 documents in 7 files, text in 'body', labels in 'category'" in err
    assert contents(data / "one") == contents(data / "many")
    assert sorted(path.name for path in data.iterdir()) == ["many", "one", "parts", "whole.csv"]


def test_added_documents_and_a_test_in_parts(capsys, data):
    write(data / "more.csv", [("wrong item box number 1", "TV > Sound"), ("never seen", "New > Label")])
    for name, source in (("one", data / "whole.csv"), ("many", data / "parts" / "*.csv")):
        options = ["--add", data / "more.csv", "--test", source, "--model", data / name]
        code, _, err = ramify(capsys, "train", source, *options)
        assert code == 0, err
        assert "2 documents" in err
        assert "1 label not in" in err
    assert contents(data / "one") == contents(data / "many")


def test_evaluating_on_parts_is_evaluating_on_the_whole(capsys, data):
    ramify(capsys, "train", data / "whole.csv", "--model", data / "model", "--holdout", 0)
    found = [ramify(capsys, "evaluate", data / "model", data / name, "--json") for name in ("whole.csv", "parts")]
    assert found[0][:2] == found[1][:2]
    assert found[0][0] == 0


def test_predicting_says_what_was_done(capsys, data):
    ramify(capsys, "train", data / "parts", "--model", data / "model")
    write(data / "parts" / "part-6.csv", [("parcel late", ""), ("", "TV > Sound")])
    code, out, err = ramify(capsys, "predict", data / "model", data / "parts", "--out", data / "predictions")
    assert (code, out) == (0, "")
    assert "1 row could not be classified; the column 'problem' has the reason. The first: " in err
    assert (
        f"part-6.csv, line 3: the text is empty.\n79 documents with 78 labels in 7 files written to {data / 'predictions'}\n"
        in err
    )
    assert sorted(os.listdir(data / "predictions")) == sorted([MANIFEST, *(f"part-{5 + k}.csv" for k in range(7))])
    (data / "predictions" / "part-8.csv").unlink()
    code, _, err = ramify(capsys, "predict", data / "model", data / "parts", "--out", data / "predictions", "--resume")
    assert code == 0
    assert "6 files of an earlier run left unchanged." in err
    assert "13 documents with 13 labels in 1 file written" in err


def test_errors_get_one_sentence(capsys, data):
    ramify(capsys, "train", data / "whole.csv", "--model", data / "model")
    predict = ["predict", data / "model", data / "parts"]
    assert "go into a directory; name it with --out" in refused(capsys, *predict)
    assert "go into a directory; name it with --out" in refused(capsys, *predict, "--out", data / "x.csv")
    assert "--resume continues a run on many files" in refused(capsys, *predict[:2], data / "whole.csv", "--resume")
    assert "there are no predictions to resume" in refused(capsys, *predict, "--out", data / "new", "--resume")
    assert not (data / "new").exists()
    assert "lies in the directory of the documents" in refused(capsys, *predict, "--out", data / "parts" / "predictions")
    assert "no file matches" in refused(capsys, "train", data / "*.parquet", "--model", data / "other")
    assert "is a model directory" in refused(capsys, "train", data / "model", "--model", data / "other")
    write(data / "parts" / "part-7.csv", [("", "TV")])
    strict = refused(capsys, *predict, "--out", data / "predictions", "--strict")
    assert "part-7.csv, line 2: the text is empty; put it right, or drop --strict" in strict
    assert "part-7.csv, line 2" in refused(capsys, "train", data / "parts", "--model", data / "other", "--strict")
    (data / "parts" / "a.svm").write_text("x 1:2\n")
    assert "a.svm holds vectors (svmlight)" in refused(capsys, "train", data / "parts", "--model", data / "other")
    assert "a.svm holds vectors (svmlight)" in refused(capsys, *predict, "--out", data / "others")
    (data / "parts" / "a.svm").unlink()
    (data / "parts" / "z.csv").write_text("body\nx y\n")
    assert "z.csv has the columns 'body', but" in refused(capsys, "train", data / "parts", "--model", data / "other")
    assert not (data / "other").exists()
    assert not (data / "others").exists()


@pytest.mark.parametrize("moment", [0.0, 0.4])
def test_a_run_that_was_killed_goes_on_to_the_same_bytes(capsys, data, moment):
    ramify(capsys, "train", data / "whole.csv", "--model", data / "model")
    (data / "many").mkdir()
    text = "body,id\n" + "".join(f"{WORDS[i % 4]} {i},{i}\n" for i in range(4000))
    for k in range(40):
        (data / "many" / f"{k}.csv.gz").write_bytes(gzip.compress(text.encode()))
    predict = ["predict", data / "model", data / "many", "--out"]
    assert ramify(capsys, *predict, data / "whole")[0] == 0
    command = [sys.executable, "-m", "ramify.cli.main", *map(str, predict), str(data / "predictions")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    wanted = 1 + int(moment * 40)
    while len(list(data.glob("predictions/*.csv"))) < wanted and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    there = len(list(data.glob("predictions/*.csv")))
    assert process.returncode == -signal.SIGKILL
    assert wanted <= there < 40
    code, _, err = ramify(capsys, *predict, data / "predictions", "--resume")
    assert code == 0, err
    assert f"{there} file" in err
    assert contents(data / "predictions") == contents(data / "whole")


def test_two_runs_do_not_write_to_one_directory(capsys, data):
    from ramify.persistence import exclusive_writer

    ramify(capsys, "train", data / "whole.csv", "--model", data / "model")
    (data / "predictions").mkdir()
    with exclusive_writer(data / "predictions" / MANIFEST):
        said = refused(capsys, "predict", data / "model", data / "parts", "--out", data / "predictions")
    assert "another process is writing" in said


def test_one_file_under_an_executor_is_classified_by_workers(capsys, data):
    ramify(capsys, "train", data / "whole.csv", "--model", data / "model")
    executor = ApartExecutor()
    for name, where in (("one", None), ("other", executor)):
        with running_on(where):
            assert ramify(capsys, "predict", data / "model", data / "whole.csv", "--out", data / f"{name}.csv")[0] == 0
    assert (data / "one.csv").read_bytes() == (data / "other.csv").read_bytes()
    assert list(executor.jobs) == ["predict_texts"]


def test_what_a_killed_training_left_is_cleared_away_by_the_next(capsys, data):
    (data / f".model.{'0' * 32}.partial").mkdir()
    (data / f".model.{'0' * 32}.partial" / "0.counts").write_text("half")
    assert ramify(capsys, "train", data / "parts", "--model", data / "model")[0] == 0
    assert sorted(path.name for path in data.iterdir()) == ["model", "parts", "whole.csv"]
