"""Rules on the command line: explain, score, decide, and --rule of other commands."""

import csv
import io
import json

import pytest

from ramify import load
from ramify.cli.main import main
from ramify.decisions import MinimizeHLoss


def ramify(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments):
    code, _, err = ramify(capsys, *arguments)
    assert code == 2
    assert err.count("\n") == 1, err
    return err


@pytest.fixture
def model(capsys, tickets, tmp_path):
    code, _, err = ramify(capsys, "train", tickets, "--model", tmp_path / "out", "--system", "isotonic-svm")
    assert code == 0, err
    return tmp_path / "out"


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_explain_shows_nodes_the_rule_and_words(capsys, model):
    code, out, _ = ramify(capsys, "explain", model, "my parcel is late again", "--true", "TV > Sound")
    assert code == 0
    assert "P(node)" in out
    assert "smoothed" in out
    assert "✓" in out
    assert "H-loss 2: Orders, TV" in out
    assert "parcel +" in out


def test_explain_speaks_json(capsys, model):
    code, out, _ = ramify(capsys, "explain", model, "my parcel is late", "--rule", "top-down", "--json")
    said = json.loads(out)
    assert code == 0
    assert said["rule"] == "top-down"
    assert {node["name"] for node in said["nodes"]} >= {"Orders", "Orders > Late"}
    assert all(node["refined"] is None for node in said["nodes"])


def test_explain_tells_every_step_with_its_words_and_the_reason_of_the_rule(capsys, model):
    _, out, _ = ramify(capsys, "explain", model, "my parcel is late again")
    steps = out[out.index("For Orders > Late") :]
    assert steps.count("  rule: ") == 2
    assert "Orders: " in steps
    assert "Late: " in steps
    assert "  for: " in steps
    assert "the threshold 0.50" in steps


def test_explain_asks_why_not_another_node(capsys, model):
    code, out, _ = ramify(capsys, "explain", model, "my parcel is late", "--label", "TV > Sound")
    assert code == 0
    assert "For TV > Sound, rather than Orders > Late" in out
    assert "Sound: " in out
    assert "not taken; score -" in out
    assert "  against: " in out
    assert "is below the threshold 0.50" in out
    assert "'Radio' is not in the taxonomy" in refused(capsys, "explain", model, "my parcel", "--label", "Radio")


def test_explain_gives_all_of_it_as_json(capsys, model):
    _, out, _ = ramify(capsys, "explain", model, "my parcel is late", "--label", "TV > Sound", "--json")
    said = json.loads(out)
    assert all(node["reason"] and 0 <= node["probability"] <= 1 for node in said["nodes"])
    why = said["why"]
    assert why["additive"]
    assert [step["name"] for step in why["steps"]] == ["TV", "TV > Sound"]
    for step in why["steps"]:
        assert sum(weight for _, weight in step["words"]) + step["prior"] == pytest.approx(step["score"])
        assert len(step["columns"]) == len(step["words"])
        assert not step["is_taken"]
        assert step["rival"] is None
        assert step["reason"]


def test_what_cannot_be_explained_is_refused(capsys, model):
    assert "give some words" in refused(capsys, "explain", model, "   ")
    assert "'Radio' is not in the taxonomy" in refused(capsys, "explain", model, "my parcel", "--true", "Radio")
    assert "rule 'isotone' is unknown" in refused(capsys, "explain", model, "my parcel", "--rule", "isotone")


def test_scores_are_saved_and_decided_again(capsys, model, tickets, tmp_path):
    code, _, err = ramify(capsys, "score", model, tickets, "--out", tmp_path / "scores.csv")
    assert code == 0, err
    with open(tmp_path / "scores.csv") as file:
        header = next(csv.reader(file))
    assert header[:1] == ["category"]
    assert header[1:] == ["Orders", "Orders > Late", "Orders > Wrong", "TV", "TV > Picture", "TV > Sound"]
    code, out, _ = ramify(capsys, "decide", tmp_path / "scores.csv", "--model", model)
    assert code == 0
    answers = rows_of(out)
    assert len(answers) == 24
    assert set(answers[0]) == {"category", "predicted", "probability", "problem"}
    predicted = rows_of(ramify(capsys, "predict", model, tickets)[1])
    assert [row["predicted"] for row in answers] == [row["predicted"] for row in predicted]
    assert [row["probability"] for row in answers] == [row["probability"] for row in predicted]


@pytest.mark.parametrize(
    "rule", ["best", "top-down", "minimize-h-loss", "isotonic --rule-param penalty=inf", "rcut --rule-param k=1"]
)
def test_any_rule_decides_saved_scores_as_predict_and_evaluate_do(capsys, model, tickets, tmp_path, rule):
    options = ["--rule", *rule.split()]
    ramify(capsys, "score", model, tickets, "--out", tmp_path / "scores.csv")
    code, out, err = ramify(capsys, "decide", tmp_path / "scores.csv", "--model", model, *options)
    assert code == 0, err
    code, expected, _ = ramify(capsys, "predict", model, tickets, *options)
    assert [row["predicted"] for row in rows_of(out)] == [row["predicted"] for row in rows_of(expected)]
    code, figures, _ = ramify(capsys, "evaluate", model, tickets, *options, "--json")
    right = [row["predicted"] == row["category"] for row in rows_of(out)]
    assert json.loads(figures)["figures"]["accuracy"] == pytest.approx(sum(right) / len(right))


def test_a_rule_learns_from_held_out_scores(capsys, model, tickets, tmp_path):
    ramify(capsys, "score", model, tickets, "--out", tmp_path / "scores.csv")
    learn = ["--learn", tmp_path / "scores.csv", "--label", "category"]
    code, out, err = ramify(capsys, "decide", tmp_path / "scores.csv", "--model", model, "--rule", "scut", *learn)
    assert code == 0, err
    assert sum(row["predicted"] == row["category"] for row in rows_of(out)) >= 20


def test_scores_of_another_origin_need_a_taxonomy_only(capsys, tmp_path):
    (tmp_path / "tax.tsv").write_text("a\tROOT\nb\ta\nc\ta\n")
    (tmp_path / "scores.csv").write_text("id,a,b,c\n1,0.9,0.8,0.1\n2,0.2,,0.9\n3,0.1,0.1,0.1\n")
    common = ["decide", tmp_path / "scores.csv", "--taxonomy", tmp_path / "tax.tsv", "--rule", "isotonic"]
    code, out, err = ramify(capsys, *common, "--rule-param", "penalty=0")
    assert code == 0, err
    assert [row["predicted"] for row in rows_of(out)] == ["b", "", ""]
    assert [row["id"] for row in rows_of(out)] == ["1", "2", "3"]


def test_rows_that_are_no_scores_get_a_reason_and_strict_refuses_them(capsys, tmp_path):
    (tmp_path / "tax.tsv").write_text("a\tROOT\nb\tROOT\n")
    (tmp_path / "scores.csv").write_text("id,a,b\n1,0.9,0.8\n2,high,0.1\n3,inf,0.1\n")
    common = ["decide", tmp_path / "scores.csv", "--taxonomy", tmp_path / "tax.tsv", "--rule", "top-down"]
    code, out, err = ramify(capsys, *common)
    assert code == 0
    assert [bool(row["problem"]) for row in rows_of(out)] == [False, True, True]
    assert "2 rows could not be classified" in err
    assert "the score of 'a' is 'high', not a finite number" in refused(capsys, *common, "--strict")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give --model for scores of a model, or --taxonomy"),
        (["--taxonomy", "tax.tsv"], "name one with --rule"),
        (["--taxonomy", "tax.tsv", "--rule", "isotonic"], "give --learn, or its parameters as numbers"),
        (["--taxonomy", "tax.tsv", "--rule-param", "k=1"], "name the rule with --rule"),
        (["--taxonomy", "tax.tsv", "--rule", "rcut", "--rule-param", "k"], "--rule-param is 'k'; give a name and a value"),
        (["--taxonomy", "tax.tsv", "--rule", "best", "--learn", "scores.csv"], "has nothing to fit"),
        (["--taxonomy", "tax.tsv", "--rule", "scut", "--learn", "scores.csv"], "no column 'label'"),
        (["--taxonomy", "other.tsv", "--rule", "best"], "no column named like a node"),
        (["--taxonomy", "tax.tsv", "--rule", "minimize-h-loss"], "probabilities lie between"),
        (["--taxonomy", "tax.tsv", "--rule", "minimize-h-loss", "--rule-param", "costs=[1,2,3]"], "costs have shape (3,)"),
        (["--taxonomy", "tax.tsv", "--rule", "isotonic", "--rule-param", "penalty=[[1],[2,3]]"], "penalties are not numbers"),
        (
            ["--taxonomy", "tax.tsv", "--rule", "isotonic", "--rule-param", "penalty=1" + "0" * 400],
            "not a number from 0 upwards",
        ),
        (["--taxonomy", "tax.tsv", "--rule", "best", "--out", "scores.csv"], "would be overwritten"),
    ],
)
def test_what_cannot_be_decided_is_refused(capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tax.tsv").write_text("a\tROOT\nb\tROOT\n")
    (tmp_path / "other.tsv").write_text("x\tROOT\ny\tROOT\n")
    (tmp_path / "scores.csv").write_text("id,a,b\n1,3.5,0.8\n")
    assert message in refused(capsys, "decide", "scores.csv", *options)


def test_one_bad_row_does_not_spoil_the_others(capsys, tmp_path):
    (tmp_path / "tax.tsv").write_text("a\tROOT\nb\tROOT\n")
    (tmp_path / "scores.csv").write_text("id,a,b\n1,0.9,0.8\n2,1.2,0.1\n3,1e39,0.1\n4,0.1,0.7\n")
    options = ["--taxonomy", tmp_path / "tax.tsv", "--rule", "minimize-h-loss"]
    code, out, _ = ramify(capsys, "decide", tmp_path / "scores.csv", *options)
    assert code == 0
    assert [row["predicted"] for row in rows_of(out)] == ["a | b", "", "", "b"]
    assert [bool(row["problem"]) for row in rows_of(out)] == [False, True, True, False]


def test_a_column_with_the_title_of_a_node_is_no_score(capsys, model, tickets, tmp_path):
    ramify(capsys, "score", model, tickets, "--out", tmp_path / "scores.csv")
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    (tmp_path / "more.csv").write_text("\n".join([lines[0] + ",Late", *(line + ",-5" for line in lines[1:])]) + "\n")
    files = tmp_path / "scores.csv", tmp_path / "more.csv"
    plain, more = (rows_of(ramify(capsys, "decide", file, "--model", model)[1]) for file in files)
    assert [row["predicted"] for row in plain] == [row["predicted"] for row in more]
    assert {row["Late"] for row in more} == {"-5"}


@pytest.mark.parametrize("cell", ["3", '["a", 3]', "null", "0"])
def test_odd_labels_are_named_by_their_line(capsys, tmp_path, cell):
    (tmp_path / "tax.tsv").write_text("a\tROOT\nb\tROOT\n")
    rows = '{"a": 0.9, "b": 0.1, "label": "a"}', f'{{"a": 0.2, "b": 0.8, "label": {cell}}}', '{"a": 1}'
    (tmp_path / "s.jsonl").write_text("\n".join(rows) + "\n")
    options = ["--taxonomy", tmp_path / "tax.tsv", "--rule", "scut", "--learn", tmp_path / "s.jsonl"]
    code, _, err = ramify(capsys, "decide", tmp_path / "s.jsonl", *options)
    assert code == (0 if cell == "null" else 2)
    assert cell == "null" or "line 2: label" in err


def test_labels_in_lists_come_through_a_table_of_scores(capsys, tmp_path):
    rows = [{"text": f"parcel {i}", "labels": ["a", "b"]} for i in range(4)] + [
        {"text": f"tv {i}", "labels": ["c"]} for i in range(4)
    ]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert (
        ramify(capsys, "train", tmp_path / "d.jsonl", "--model", tmp_path / "out", "--system", "h-svm", "--holdout", 0)[0] == 0
    )
    ramify(capsys, "score", tmp_path / "out", tmp_path / "d.jsonl", "--out", tmp_path / "s.csv")
    learn = ["--rule", "scut", "--learn", tmp_path / "s.csv", "--label", "labels"]
    code, out, err = ramify(capsys, "decide", tmp_path / "s.csv", "--model", tmp_path / "out", *learn)
    assert code == 0, err
    assert {row["labels"] for row in rows_of(out)} == {"a | b", "c"}


def test_vectors_are_scored_and_decided_too(capsys, tmp_path):
    (tmp_path / "docs.svm").write_text("".join(f"a/x 1:{i + 1}\nb/y 2:{i + 1}\n" for i in range(8)))
    assert ramify(capsys, "train", tmp_path / "docs.svm", "--model", tmp_path / "out", "--system", "h-svm")[0] == 0
    assert ramify(capsys, "score", tmp_path / "out", tmp_path / "docs.svm", "--out", tmp_path / "s.csv")[0] == 0
    answers = rows_of(ramify(capsys, "decide", tmp_path / "s.csv", "--model", tmp_path / "out")[1])
    assert [row["predicted"] for row in answers] == ["a/x", "b/y"] * 8


def test_scores_are_written_as_csv_only_and_something_must_be_readable(capsys, model, tmp_path, tickets):
    assert "scores are written as .csv" in refused(capsys, "score", model, tickets, "--out", tmp_path / "s.jsonl")
    (tmp_path / "blank.csv").write_text("body,category\n   ,Orders > Late\n")
    assert "no row could be scored" in refused(capsys, "score", model, tmp_path / "blank.csv", "--out", tmp_path / "s.csv")
    assert not (tmp_path / "s.csv").exists()


def test_explaining_a_text_without_a_label_says_so(capsys, model):
    rule = ["--rule", "top-down", "--rule-param", "threshold=9"]
    assert "No label; the best is Orders" in ramify(capsys, "explain", model, "my parcel is late", *rule)[1]
    assert "no label; the best is" in ramify(capsys, "predict", model, "--try", "my parcel", *rule)[1]


def test_training_takes_a_rule(capsys, tickets, tmp_path):
    options = ["--system", "svm", "--rule", "minimize-h-loss", "--rule-param", "costs=uniform"]
    code, _, err = ramify(capsys, "train", tickets, "--model", tmp_path / "out", *options)
    assert code == 0, err
    assert load(tmp_path / "out").decision_ == MinimizeHLoss(costs="uniform")


def test_a_file_without_rows_gives_a_header_only(capsys, model, tmp_path):
    (tmp_path / "empty.csv").write_text("id,Orders,TV\n")
    code, out, err = ramify(capsys, "decide", tmp_path / "empty.csv", "--model", model)
    assert code == 0, err
    assert out.strip() == "id,predicted,probability,problem"


def test_impossible_nodes_and_missing_roots_are_read_from_a_table_of_scores(capsys, tmp_path):
    (tmp_path / "tree.tsv").write_text("a\t\nb\ta\nc\ta\nd\t\n")
    (tmp_path / "scores.csv").write_text("id,a,b,c,d\n1,,0.2,-inf,0.1\n2,0.9,0.8,-inf,-Infinity\n3,0.9,0.8,inf,0\n")
    rule = ("--rule", "isotonic", "--rule-param", "penalty=1", "--rule-param", "at_least_one=true")
    _, out, _ = ramify(capsys, "decide", tmp_path / "scores.csv", "--taxonomy", tmp_path / "tree.tsv", *rule)
    rows = rows_of(out)
    assert [row["predicted"] for row in rows] == ["b", "b", ""]
    assert "not a finite number" in rows[2]["problem"]


def test_costs_come_from_a_file_and_the_h_loss_is_reported_with_them_too(capsys, tickets, tmp_path):
    (tmp_path / "costs.json").write_text('{"TV": 4, "Late": 0.5}')
    costs = f"costs={tmp_path / 'costs.json'}"
    rule = ("--rule", "minimize-h-loss", "--rule-param", costs)
    code, _, err = ramify(capsys, "train", tickets, "--system", "b-svm", "--model", tmp_path / "m", "--holdout", 0, *rule)
    assert code == 0, err
    assert "costs: 2 of 6 nodes are named; the others have 1." in err
    code, out, err = ramify(capsys, "evaluate", tmp_path / "m", tickets, "--costs", tmp_path / "costs.json", "--json")
    assert code == 0, err
    figures = json.loads(out)["figures"]
    assert {"h_loss", "h_loss_siblings", "h_loss_own_costs"} <= set(figures)
    _, again, _ = ramify(capsys, "evaluate", tmp_path / "m", tickets, "--costs", '{"TV": 4, "Late": 0.5}', "--json")
    assert json.loads(again)["figures"] == figures
    _, out, _ = ramify(capsys, "evaluate", tmp_path / "m", tickets, "--costs", tmp_path / "costs.json")
    assert "H-loss, own costs" in out
    assert "Did you mean" in refused(capsys, "evaluate", tmp_path / "m", tickets, "--costs", '{"Lat": 1}')
    assert "costs are 'many'" in refused(capsys, "evaluate", tmp_path / "m", tickets, "--costs", "many")
