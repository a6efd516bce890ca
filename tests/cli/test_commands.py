import csv
import json
import os
import subprocess
import sys

import openpyxl
import pytest

from ramify.cli.main import RAMIFY, Command, main


def ramify(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def model(capsys, tickets, tmp_path):
    code, _, err = ramify(capsys, "train", tickets, "--model", tmp_path / "out")
    assert code == 0, err
    return tmp_path / "out"


def test_training_reports_and_says_what_to_do_next(capsys, tickets, tmp_path):
    code, out, err = ramify(capsys, "train", tickets, "--text", "body", "--label", "category", "--model", tmp_path / "out")
    assert code == 0
    assert "By level" in out
    assert "the saved model was then trained on all of them" in out
    assert "labels in 'category' ('" in err
    assert f"ramify predict {tmp_path / 'out'} new.csv" in err


def test_training_speaks_json(capsys, tickets, tmp_path):
    code, out, _ = ramify(capsys, "train", tickets, "--model", tmp_path / "out", "--json", "--report", tmp_path / "r.html")
    facts = json.loads(out)
    assert code == 0
    assert facts["trained_on"] + facts["tested_on"] == 24
    assert facts["report"]["figures"]["accuracy"] == 1
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")


def test_options_reach_the_parts(capsys, tickets, tmp_path):
    options = [
        "--system",
        "nb",
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
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["metadata"]["learner"]["parameters"]["alpha"] == 0.1


def test_predictions_are_added_to_the_table_row_by_row(capsys, model, tmp_path):
    (tmp_path / "new.csv").write_text("id,body\n1,the parcel is late\n2,\n3,no picture on screen\n")
    code, out, err = ramify(capsys, "predict", model, tmp_path / "new.csv", "--top", 2)
    assert code == 0
    rows = list(csv.DictReader(out.splitlines()))
    assert [row["id"] for row in rows] == ["1", "2", "3"]
    assert [row["predicted"] for row in rows] == ["Orders > Late", "", "TV > Picture"]
    assert [row["problem"] for row in rows] == ["", "the text is empty", ""]
    assert float(rows[0]["probability"]) > float(rows[0]["probability_2"])
    assert "1 row could not be classified" in err


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


def test_inspect_reads_a_spreadsheet_and_merges_spellings(capsys, tmp_path):
    book = openpyxl.Workbook()
    for row in [
        ("Body", "Category"),
        *[(f"parcel {i} is late", "Orders > Late") for i in range(6)],
        ("no parcel", "orders > late"),
    ]:
        book.active.append(row)
    book.save(tmp_path / "tickets.xlsx")
    code, out, err = ramify(capsys, "inspect", tmp_path / "tickets.xlsx", "--json")
    assert code == 0, err
    assert json.loads(out)["taxonomy"]["nodes"] == 4
    assert "probably one label: 'orders > late' beside 'Orders > Late'; --merge-spellings" in err
    code, out, err = ramify(capsys, "inspect", tmp_path / "tickets.xlsx", "--json", "--merge-spellings")
    assert (code, json.loads(out)["taxonomy"]["nodes"]) == (0, 2), err


def test_inspect_shows_the_evidence_and_how_strongly_each_level_is_drawn(capsys, tickets, tmp_path):
    ramify(capsys, "train", tickets, "--model", tmp_path / "out", "--system", "hblr", "--holdout", 0)
    code, out, err = ramify(capsys, "inspect", tmp_path / "out", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["evidence"] < 0
    assert found["rounds"] >= 1
    assert [found[f"mean_precision_of_level_{level}"] > 0 for level in (1, 2)] == [True, True]


def test_inspect_can_insist_on_a_tree(capsys, tmp_path):
    (tmp_path / "dag.tsv").write_text("a\tROOT\nb\tROOT\nc\ta\nc\tb\n")
    assert ramify(capsys, "inspect", tmp_path / "dag.tsv")[0] == 0
    code, _, err = ramify(capsys, "inspect", tmp_path / "dag.tsv", "--tree")
    assert code == 2
    assert "'c' has two parents, 'a' and 'b'" in err


def test_systems_are_listed(capsys):
    assert "naive Bayes" in ramify(capsys, "systems")[1]
    assert json.loads(ramify(capsys, "systems", "--json")[1])[0]["name"] == "path-svm"


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
    assert (facts["trained_on"], facts["tested_on"], facts["refitted"]) == (8, 2, False)
    assert facts["report"]["figures"]["accuracy"] == 0.5


def test_bad_rows_are_counted_and_named_by_line(capsys, tmp_path):
    (tmp_path / "d.csv").write_text("text,label\n" + "red apple,a\nblue sky,b\n" * 10 + ",a\n")
    _, _, err = ramify(capsys, "train", tmp_path / "d.csv", "--model", tmp_path / "out")
    assert "1 row left out" in err
    assert "d.csv, line 22: the text is empty" in err


@pytest.mark.parametrize(
    "command", [None, *sorted(name for name, entry in RAMIFY.commands.items() if isinstance(entry, Command))]
)
def test_every_command_has_help_with_an_example(capsys, command):
    code, out, _ = ramify(capsys, *([] if command is None else [command]), "--help")
    assert code == 0
    assert f"ramify {command or 'demo'}" in out.split("Example")[1]


def test_the_version_is_told(capsys):
    from importlib.metadata import version

    assert ramify(capsys, "--version")[1] == f"ramify {version('ramify')}\n"


def test_a_model_remembers_its_columns(capsys, tmp_path):
    rows = "".join(
        f"item {i},{words},{kind}\n" for i in range(8) for words, kind in (("parcel late", "Orders"), ("dark screen", "TV"))
    )
    (tmp_path / "d.csv").write_text("title,complaint,kind\n" + rows)
    ramify(capsys, "train", tmp_path / "d.csv", "--text", "complaint", "--label", "kind", "--model", tmp_path / "m")
    (tmp_path / "new.csv").write_text("title,complaint\na parcel of screens,dark screen\n")
    _, out, _ = ramify(capsys, "predict", tmp_path / "m", tmp_path / "new.csv")
    assert "TV" in out
    _, out, _ = ramify(capsys, "evaluate", tmp_path / "m", tmp_path / "d.csv", "--json")
    assert json.loads(out)["figures"]["accuracy"] == 1


@pytest.fixture
def vectors(capsys, tmp_path):
    (tmp_path / "train.svm").write_text("".join(f"a/x 1:{i + 1} 3:1\nb/y 2:{i + 1}\n" for i in range(6)))
    code, _, err = ramify(capsys, "train", tmp_path / "train.svm", "--model", tmp_path / "m")
    assert code == 0, err
    return tmp_path


def test_vectors_can_be_learnt_evaluated_and_predicted(capsys, vectors):
    (vectors / "test.svm").write_text("a/x 1:2 9:1\nbroken 1:x\nb/y 2:1\n")
    code, out, err = ramify(capsys, "predict", vectors / "m", vectors / "test.svm")
    assert code == 0, err
    rows = list(csv.DictReader(out.splitlines()))
    assert [(row["line"], row["predicted"], bool(row["problem"])) for row in rows] == [
        ("1", "a/x", False),
        ("2", "", True),
        ("3", "b/y", False),
    ]
    (vectors / "test.svm").write_text("a/x 1:2 9:1\nb/y 2:1\n")
    assert ramify(capsys, "evaluate", vectors / "m", vectors / "test.svm")[0] == 0
    more = ["--test", vectors / "test.svm", "--model", vectors / "m2"]
    assert ramify(capsys, "train", vectors / "train.svm", *more)[0] == 0


def test_columns_of_the_input_are_never_lost(capsys, model, tmp_path):
    (tmp_path / "new.csv").write_bytes(b"id,body,predicted\n7,late parcel,HUMAN\n8,\xc3\xa9\xc3\xa9 caf\xe9,HUMAN\n")
    _, out, _ = ramify(capsys, "predict", model, tmp_path / "new.csv", "--text", "body")
    first, second = csv.DictReader(out.splitlines())
    assert (first["predicted"], first["ramify_predicted"]) == ("HUMAN", "Orders > Late")
    assert (second["id"], second["problem"]) == ("8", "not UTF-8")


def test_other_encodings_can_be_named(capsys, tmp_path):
    rows = "text,label\n" + "café crème,a\nbière brune,b\n" * 6
    for encoding in ("cp1252", "utf-16", "mac-roman"):
        (tmp_path / "d.csv").write_bytes(rows.encode(encoding))
        code, _, err = ramify(capsys, "train", tmp_path / "d.csv", "--model", tmp_path / "m", "--encoding", encoding, "--force")
        assert code == 0, err
        assert "detected" not in err
        assert "café" in (tmp_path / "m" / "features.json").read_text()


def test_encodings_are_detected_and_told(capsys, tmp_path):
    rows = "text,label\n" + "café crème,a\nbière brune,b\n" * 6
    for encoding in ("cp1252", "utf-16", "utf-16-be", "utf-8-sig"):
        (tmp_path / "d.csv").write_bytes(rows.encode(encoding))
        for command in (
            ("train", tmp_path / "d.csv", "--model", tmp_path / "m", "--force"),
            ("predict", tmp_path / "m", tmp_path / "d.csv"),
        ):
            code, _, err = ramify(capsys, *command)
            assert code == 0, err
            assert (f"read as {encoding}, which was detected" in err) == (encoding != "utf-8-sig")
        assert "café" in (tmp_path / "m" / "features.json").read_text()


def test_output_goes_by_the_ending_of_its_name(capsys, model, tickets, tmp_path):
    assert ramify(capsys, "predict", model, tickets, "--out", tmp_path / "x.tsv")[0] == 0
    assert (tmp_path / "x.tsv").read_text().splitlines()[0] == "body\tcategory\tpredicted\tprobability\tproblem"


def test_standard_input_can_be_read(model, tickets):
    command = [sys.executable, "-m", "ramify.cli.main", "predict", str(model), "-"]
    done = subprocess.run(command, input="body\nlate parcel\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Orders > Late" in done.stdout


def test_messages_about_standard_input_do_not_name_a_temporary_file(model):
    command = [sys.executable, "-m", "ramify.cli.main", "predict", str(model), "-"]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "ramify: standard input is empty; give a table with a header row.\n"


def test_documents_without_a_label_are_left_out_unless_kept(capsys, tmp_path):
    (tmp_path / "d.csv").write_text("text,label\n" + "red apple,a\nblue sky,b\n" * 10 + "no label here,\n" * 5)
    _, out, err = ramify(capsys, "train", tmp_path / "d.csv", "--model", tmp_path / "m", "--json")
    assert "5 documents without a label, left out" in err
    facts = json.loads(out)
    assert facts["trained_on"] + facts["tested_on"] == 20
    _, out, _ = ramify(capsys, "train", tmp_path / "d.csv", "--model", tmp_path / "m", "--json", "--keep-unlabelled", "--force")
    assert json.loads(out)["trained_on"] + json.loads(out)["tested_on"] == 25


def test_a_text_that_was_learnt_is_not_held_out_and_is_told_in_a_test_file(capsys, tmp_path):
    (tmp_path / "d.csv").write_text("text,label\n" + "red apple,a\nblue sky,b\n" * 10)
    _, _, err = ramify(capsys, "train", tmp_path / "d.csv", "--model", tmp_path / "m")
    assert "Nothing was held out" in err
    _, out, _ = ramify(capsys, "train", tmp_path / "d.csv", "--test", tmp_path / "d.csv", "--model", tmp_path / "m", "--force")
    assert "20 with the text of a training document" in out


def test_without_a_hold_out_there_is_no_report_and_that_is_said(capsys, tickets, tmp_path):
    _, _, err = ramify(capsys, "train", tickets, "--model", tmp_path / "m", "--holdout", 0, "--report", tmp_path / "r.html")
    assert "no figures and no report" in err
    assert "Report written" not in err
    assert not (tmp_path / "r.html").exists()


def test_a_json_list_is_read_like_json_lines(capsys, tmp_path):
    rows = [{"text": "red apple", "label": "a"}, {"text": "blue sky", "label": "b"}] * 5
    (tmp_path / "d.json").write_text(json.dumps(rows))
    assert ramify(capsys, "train", tmp_path / "d.json", "--model", tmp_path / "m", "--holdout", 0)[0] == 0
    assert json.loads(ramify(capsys, "inspect", tmp_path / "d.json", "--json")[1])["kind"] == "data"


def test_trying_a_text_speaks_json_and_says_when_it_knows_no_word(capsys, model):
    answer = json.loads(ramify(capsys, "predict", model, "--try", "late parcel", "--json")[1])
    assert answer["labels"][0]["label"] == "Orders > Late"
    assert "no known word" in ramify(capsys, "predict", model, "--try", "zzzz")[1]


def test_inspect_checks_labels_against_a_taxonomy(capsys, tickets, tmp_path):
    (tmp_path / "tax.txt").write_text("Orders > Late\nTV > Picture\n")
    code, _, err = ramify(capsys, "inspect", tickets, "--taxonomy", tmp_path / "tax.txt")
    assert code == 2
    assert (
        "tickets.csv, line 8: label 'Orders > Wrong' is not in the taxonomy of 4 nodes, and 1 more labels are unknown (12 of 24"
        in err
    )


def test_keys_that_come_late_and_answers_of_earlier_runs_are_kept(capsys, model, tmp_path):
    rows = [{"body": "late parcel"}] * 150 + [{"body": "dark screen", "ticket": 7, "predicted": "HUMAN"}]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, out, _ = ramify(capsys, "predict", model, tmp_path / "new.jsonl")
    last = list(csv.DictReader(out.splitlines()))[-1]
    assert (last["ticket"], last["predicted"], last["ramify_predicted"]) == ("7", "HUMAN", "TV > Picture")
    _, out, _ = ramify(capsys, "predict", model, tmp_path / "new.jsonl", "--json")
    assert json.loads(out.splitlines()[-1])["predicted"] == "HUMAN"
    (tmp_path / "again.csv").write_text("body,predicted,ramify_predicted\nlate parcel,a,b\n")
    _, out, _ = ramify(capsys, "predict", model, tmp_path / "again.csv")
    assert out.splitlines()[0] == "body,predicted,ramify_predicted,ramify_ramify_predicted,probability,problem"


def test_pipes_can_be_inspected_and_tested_on(tickets, tmp_path):
    python = f"{sys.executable} -m ramify.cli.main"
    for command in (f"inspect <(cat {tickets})", f"train {tickets} --model {tmp_path}/m --test <(cat {tickets})"):
        done = subprocess.run(["bash", "-c", f"{python} {command}"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_a_system_for_one_label_a_document_says_how_many_have_more(capsys, tmp_path):
    (tmp_path / "d.csv").write_text("text,label\n" + "red apple,a\nblue sky,b\n" * 10 + "red sky,a;b\n")
    code, _, said = ramify(
        capsys, "train", tmp_path / "d.csv", "--label-separator", ";", "--system", "hsvm", "--model", tmp_path / "m"
    )
    assert code == 2
    assert "learns from all" not in said
    assert "1 of " in said
    assert "hsvm takes one label per document" in said
    assert not (tmp_path / "m").exists()


def test_a_model_can_be_kept_in_shards(capsys, tickets, tmp_path):
    train = ("train", tickets, "--system", "hr-svm", "--holdout", 0)
    assert ramify(capsys, *train, "--model", tmp_path / "whole")[0] == 0
    code, _, err = ramify(capsys, *train, "--model", tmp_path / "out", "--shards", 3)
    assert code == 0, err
    assert len(list((tmp_path / "out").glob("weights-*.safetensors"))) == 3
    rows = []
    for model in ("whole", "out"):
        code, out, err = ramify(capsys, "predict", tmp_path / model, tickets, "--top", 2)
        assert code == 0, err
        rows.append([[row["predicted"], round(float(row["probability"]), 3)] for row in csv.DictReader(out.splitlines())])
    assert rows[0] == rows[1]
    code, out, _ = ramify(capsys, "inspect", tmp_path / "out", "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["shards"], facts["beam"]) == (3, 20)
    assert facts["weight_bytes"] > 1000
    code, out, _ = ramify(capsys, "inspect", tmp_path / "out", "--node", "Orders > Late", "--json")
    assert code == 0
    assert {row["word"] for row in json.loads(out)["words"]} >= {"late", "parcel", "courier"}
    assert ramify(capsys, "evaluate", tmp_path / "out", tickets)[0] == 0
    assert ramify(capsys, "explain", tmp_path / "out", "late parcel")[0] == 0


def test_shards_are_refused_before_training_where_a_system_has_none(capsys, tickets, tmp_path):
    code, _, err = ramify(capsys, "train", tickets, "--system", "nb", "--shards", 2, "--model", tmp_path / "out")
    assert code == 2
    assert "cannot be saved in shards; svm, lr, hr-svm and hr-lr can" in err
    assert not (tmp_path / "out").exists()
    assert ramify(capsys, "train", tickets, "--system", "svm", "--shards", 0, "--model", tmp_path / "out")[0] == 2
