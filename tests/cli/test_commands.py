import csv
import json
import os

import pytest

from ramify.cli.main import app, run


def ramify(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def model(capsys, tickets, tmp_path):
    code, _, err = ramify(capsys, "train", tickets, "--model", tmp_path / "out")
    assert code == 0, err
    return tmp_path / "out"


def test_training_reports_and_says_what_to_do_next(capsys, tickets, tmp_path):
    code, out, err = ramify(
        capsys, "train", tickets, "--text", "body", "--label", "category", "--model", tmp_path / "out"
    )
    assert code == 0
    assert "By level" in out
    assert "the saved model then learnt from all of them" in out
    assert "text in 'body', labels in 'category'" in err
    assert f"ramify predict {tmp_path / 'out'} new.csv" in err


def test_training_speaks_json(capsys, tickets, tmp_path):
    code, out, _ = ramify(
        capsys, "train", tickets, "--model", tmp_path / "out", "--json", "--report", tmp_path / "r.html"
    )
    facts = json.loads(out)
    assert code == 0
    assert facts["learnt_from"] + facts["tested_on"] == 24
    assert facts["report"]["figures"]["accuracy"] == 1
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_options_reach_the_parts(capsys, tickets, tmp_path):
    options = [
        "--ngrams",
        2,
        "--stop-words",
        "english",
        "--stem",
        "english",
        "--min-df",
        2,
        "--param",
        "alpha=0.1",
        "--holdout",
        0,
    ]
    code, _, err = ramify(capsys, "train", tickets, "--model", tmp_path / "out", *options)
    assert code == 0, err
    features = json.loads((tmp_path / "out" / "features.json").read_text())
    assert features["params"]["ngram_range"] == [1, 2]
    assert features["params"]["stemmer"] == "english"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["about"]["learner"]["alpha"] == 0.1


def test_predictions_are_added_to_the_table_row_by_row(capsys, model, tmp_path):
    (tmp_path / "new.csv").write_text("id,body\n1,the parcel is late\n2,\n3,no picture on screen\n")
    code, out, err = ramify(capsys, "predict", model, tmp_path / "new.csv", "--top", 2)
    assert code == 0
    rows = list(csv.DictReader(out.splitlines()))
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    assert [row["predicted"] for row in rows] == ["Orders > Late", "", "TV > Picture"]
    assert [row["problem"] for row in rows] == ["", "the text is empty", ""]
    assert float(rows[0]["probability"]) > float(rows[0]["probability_2"])
    assert "1 rows could not be classified" in err


def test_predictions_go_to_files_and_json_lines(capsys, model, tmp_path):
    (tmp_path / "new.jsonl").write_text('{"text": "late courier", "n": 5}\n{"text": null}\n')
    assert ramify(capsys, "predict", model, tmp_path / "new.jsonl", "--out", tmp_path / "answers.jsonl")[0] == 0
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert lines[0]["predicted"][0]["label"] == "Orders > Late"
    assert lines[0]["n"] == 5
    assert lines[1]["problem"] == "the text is null"
    _, out, _ = ramify(capsys, "predict", model, tmp_path / "new.jsonl", "--json")
    assert json.loads(out.splitlines()[0]) == lines[0]


def test_one_text_can_be_tried(capsys, model):
    code, out, _ = ramify(capsys, "predict", model, "--try", "late parcel", "--top", 2)
    assert code == 0
    assert "Orders > Late" in out.splitlines()[0]
    assert "rather than" in out


def test_evaluation_shows_levels_and_writes_a_page(capsys, model, tickets, tmp_path):
    code, out, _ = ramify(capsys, "evaluate", model, tickets, "--report", tmp_path / "page.html")
    assert code == 0
    assert "By level" in out
    assert "<svg" in (tmp_path / "page.html").read_text()
    _, out, _ = ramify(capsys, "evaluate", model, tickets, "--json")
    assert json.loads(out)["documents"] == 24


def test_inspect_tells_models_data_and_taxonomies_apart(capsys, model, tickets, tmp_path):
    (tmp_path / "tax.tsv").write_text("a\tROOT\nb\ta\n")
    for path, kind in ((model, "model"), (tickets, "data"), (tmp_path / "tax.tsv", "taxonomy")):
        code, out, err = ramify(capsys, "inspect", path, "--json")
        assert code == 0, err
        assert json.loads(out)["kind"] == kind
        assert ramify(capsys, "inspect", path)[0] == 0
    _, out, _ = ramify(capsys, "inspect", tickets)
    assert "Orders 12" in out


def test_inspect_can_insist_on_a_tree(capsys, tmp_path):
    (tmp_path / "dag.tsv").write_text("a\tROOT\nb\tROOT\nc\ta\nc\tb\n")
    assert ramify(capsys, "inspect", tmp_path / "dag.tsv")[0] == 0
    code, _, err = ramify(capsys, "inspect", tmp_path / "dag.tsv", "--tree")
    assert code == 2
    assert "'c' has two parents, 'a' and 'b'" in err


def test_systems_are_listed(capsys):
    assert "naive Bayes" in ramify(capsys, "systems")[1]
    assert json.loads(ramify(capsys, "systems", "--json")[1])[0]["name"] == "nb"


def test_the_demo_trains_reports_classifies_and_says_what_next(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = ramify(capsys, "demo")
    assert code == 0
    for words in ("By level", "A few requests", "Late or lost parcel", "What to type next"):
        assert words in out
    assert sorted(os.listdir(tmp_path)) == ["demo-model", "demo-report.html"]


def test_a_given_taxonomy_and_test_file_are_used(capsys, tmp_path):
    (tmp_path / "tax.tsv").write_text("fruit\tROOT\napple\tfruit\npear\tfruit\n")
    (tmp_path / "train.csv").write_text("text,label\n" + "red apple,apple\ngreen pear,pear\n" * 4)
    (tmp_path / "test.csv").write_text("text,label\nan apple,apple\nfruit,fruit\n")
    arguments = [
        "--taxonomy",
        tmp_path / "tax.tsv",
        "--test",
        tmp_path / "test.csv",
        "--model",
        tmp_path / "out",
        "--json",
    ]
    code, out, err = ramify(capsys, "train", tmp_path / "train.csv", *arguments)
    assert code == 0, err
    facts = json.loads(out)
    assert (facts["learnt_from"], facts["tested_on"], facts["refitted"]) == (8, 2, False)
    assert facts["report"]["figures"]["accuracy"] == 0.5


def test_bad_rows_are_counted_and_named_by_line(capsys, tmp_path):
    (tmp_path / "d.csv").write_text("text,label\n" + "red apple,a\nblue sky,b\n" * 10 + ",a\n")
    _, _, err = ramify(capsys, "train", tmp_path / "d.csv", "--model", tmp_path / "out")
    assert "1 rows left out" in err
    assert "d.csv, line 22: the text is empty" in err


@pytest.mark.parametrize("command", [None, *sorted(command.callback.__name__ for command in app.registered_commands)])
def test_every_command_has_help_with_an_example(capsys, command):
    code, out, _ = ramify(capsys, *([] if command is None else [command]), "--help")
    assert code == 0
    assert command is None or f"ramify {command}" in out.split("Example")[1]


def test_the_version_is_told(capsys):
    from importlib.metadata import version

    assert ramify(capsys, "--version")[1] == f"ramify {version('ramify')}\n"
