"""``ramify audit`` as a user meets it, and the way of its issues through the review queue back into training."""

import csv
import json

import pytest

from ramify import load
from ramify.cli.main import main
from ramify.server.reviews import ReviewStore

MOVED = "sound crackles speaker again,Orders > Late"


@pytest.fixture
def spoiled(tickets):
    """The small table with a label that is wrong, in line 26."""
    with open(tickets, "a") as file:
        file.write(MOVED + "\n")
    return tickets


def ramify(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_label_that_is_wrong_is_reported_with_its_line_a_better_one_and_words(capsys, spoiled):
    code, out, err = ramify(capsys, "audit", spoiled)
    assert code == 0, err
    assert "25 documents" in out
    assert "line 26  probably wrong, 4 steps apart" in out
    assert "sound crackles speaker again" in out
    assert "given     Orders > Late" in out
    assert "suggested TV > Sound" in out
    told = next(line for line in out.splitlines() if "words" in line)
    assert {"sound", "crackles", "speaker"} <= set(told.replace(",", " ").split())


def test_an_audit_speaks_json(capsys, spoiled):
    code, out, _ = ramify(capsys, "audit", spoiled, "--json", "--max-issues", 1, "--folds", 3, "--system", "nb:alpha=0.1")
    facts = json.loads(out)
    assert code == 0
    assert (facts["documents"], facts["folds"], facts["system"], len(facts["issues"])) == (25, 3, "nb", 1)
    assert facts["issues"][0]["suggested"]["label"] == "TV > Sound"
    assert facts["issues"][0]["line"] == 26


def test_files_and_a_page_hold_everything(capsys, spoiled, tmp_path):
    for name in ("found.csv", "found.tsv", "found.jsonl"):
        code, _, err = ramify(capsys, "audit", spoiled, "--out", tmp_path / name, "--report", tmp_path / "page.html", "--force")
        assert code == 0, err
        assert "written to" in err
    with open(tmp_path / "found.csv", newline="") as file:
        (row, *_) = csv.DictReader(file)
    assert (row["given"], row["suggested"], row["kind"]) == ("Orders > Late", "TV > Sound", "wrong")
    assert "crackles" in (tmp_path / "page.html").read_text()
    assert json.loads((tmp_path / "found.jsonl").read_text().splitlines()[0])["rank"] == 1


def test_duplicates_and_tiny_classes_are_reported_and_no_more_than_wanted(capsys, spoiled):
    with open(spoiled, "a") as file:
        file.write("speaker sound crackles,TV > Picture\nsound crackles speaker,TV > Sound\nodd,TV > Odd\nrare,TV > Rare\n")
    code, out, _ = ramify(capsys, "audit", spoiled, "--show", 1)
    assert code == 0
    assert "Duplicates with different labels" in out
    assert "same words" in out
    assert "TV > Odd" in out
    assert "TV > Rare" not in out
    assert "2 documents are the only ones of their class" in out
    assert "and 1 more" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "found.xlsx"], ".csv, .tsv or .jsonl"),
        (["--system", "svn"], "svm"),
        (["--system", "lr:D=3"], "is not a parameter of lr"),
        (["--folds", "1"], "folds is 1"),
        (["--similarity", "0.1"], "from 0.5 to 1"),
        (["--out", "{table}"], "choose another"),
        (["--report", "{table}"], "is read by this command"),
        (["--label", "body", "--text", "body"], ""),
    ],
)
def test_errors_are_reported_in_one_sentence(capsys, tickets, arguments, said):
    code, _, err = ramify(capsys, "audit", tickets, *(part.format(table=tickets) for part in arguments))
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def test_issues_go_through_the_review_queue_back_into_training(capsys, spoiled, tmp_path):
    issues, store, out = tmp_path / "found.jsonl", tmp_path / "reviews.db", tmp_path / "reviews.csv"
    assert ramify(capsys, "audit", spoiled, "--out", issues, "--max-issues", 1)[0] == 0
    code, _, err = ramify(capsys, "reviews", "add", store, issues, "--model", "out")
    assert code == 0, err
    assert "1 document queued" in err
    assert "0 documents queued" in ramify(capsys, "reviews", "add", store, issues, "--model", "out")[2]
    queue = ReviewStore(store)
    ((review,), _) = queue.page()
    assert [label["label"] for label in review.labels] == ["TV > Sound"]
    assert [label["label"] for label in review.others] == ["Orders > Late"]
    assert review.confidence == review.others[0]["probability"] < 0.5
    assert review.source.endswith("tickets.csv, line 26: labelled Orders > Late")
    queue.decide(review.id, "ann", "accept", [label["label"] for label in review.labels])
    queue.close()
    assert ramify(capsys, "reviews", "export", store, "--out", out)[0] == 0
    code, _, err = ramify(capsys, "train", spoiled, "--add", out, "--model", tmp_path / "m", "--holdout", 0)
    assert code == 0
    assert "1 document of" in err
    assert load(tmp_path / "m").figures_["documents"] == 25


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"text": "x"}', '{"text": "", "given": null, "proposed": [], "place": "", "labels": []}']
)
def test_files_that_hold_no_issues_are_refused(capsys, tmp_path, line):
    (tmp_path / "found.jsonl").write_text(line + "\n")
    code, _, err = ramify(capsys, "reviews", "add", tmp_path / "r.db", tmp_path / "found.jsonl", "--model", "m")
    assert code == 2
    assert "line 1: not a label issue of an audit" in err
    assert not (tmp_path / "r.db").exists()
    code, _, err = ramify(capsys, "reviews", "add", tmp_path / "r.db", tmp_path / "none.jsonl", "--model", "m")
    assert code == 2
    assert "cannot be read" in err


def test_an_audit_that_found_nothing_queues_nothing(capsys, tmp_path):
    (tmp_path / "found.jsonl").write_text("")
    code, _, err = ramify(capsys, "reviews", "add", tmp_path / "r.db", tmp_path / "found.jsonl", "--model", "m")
    assert code == 0
    assert "no label issues" in err
    assert not (tmp_path / "r.db").exists()


def test_large_groups_of_duplicates_are_cut_short(capsys, tickets):
    with open(tickets, "a") as file:
        file.writelines(f"the very same words,{label}\n" for label in ["TV > Sound"] * 5 + ["TV > Picture"] * 4)
    out = ramify(capsys, "audit", tickets)[1]
    assert "and 3 more" in out
    assert out.count("the very same words") >= 6
