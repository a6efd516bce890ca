"""``ramify taxonomy diff``, and ``ramify update`` with a taxonomy that has changed."""

import json

import pytest
from cli.test_commands import ramify
from cli.test_update_documents import MORE, ROWS, write_table

from ramify import load

OLD = "Orders > Delivery\nOrders > Invoice\nTV > Picture\nTV > Sound\n"
MOVED = "Orders > Delivery\nOrders > Money > Invoice\nTV > Picture\nTV > Sound\n"
RETIRED = "Orders > Delivery\nOrders > Invoice\nTV > Picture\nTV > Screen\n"


@pytest.fixture
def files(tmp_path):
    for name, text in {"old.txt": OLD, "moved.txt": MOVED, "retired.txt": RETIRED}.items():
        (tmp_path / name).write_text(text)
    write_table(tmp_path / "data.csv", ROWS)
    return tmp_path


def trained(files, capsys, system, *options):
    arguments = ("train", files / "data.csv", "--model", files / system, "--system", system, "--holdout", 0, *options)
    code, _, err = ramify(capsys, *arguments)
    assert code == 0, err
    return files / system


def test_diff_tells_what_changed_and_writes_questions(files, capsys):
    code, out, err = ramify(capsys, "taxonomy", "diff", files / "old.txt", files / "moved.txt")
    assert code == 0, err
    assert "moved   Orders > Invoice  Orders > Money > Invoice" in out
    assert "1 moved, 1 added" in err
    code, out, err = ramify(capsys, "taxonomy", "diff", files / "old.txt", files / "retired.txt", "--out", files / "q.tsv")
    assert code == 0, err
    assert "1 retired node without a successor" in err
    assert f"They are in {files / 'q.tsv'}" in err
    assert (files / "q.tsv").read_text() == "old\tnew\tsuggestion\nTV > Sound\t\t\n"
    (files / "q.tsv").write_text("old\tnew\tsuggestion\nTV > Sound\tTV > Screen\t\n")
    code, out, _ = ramify(
        capsys, "taxonomy", "diff", files / "old.txt", files / "retired.txt", "--reassignments", files / "q.tsv", "--json"
    )
    told = json.loads(out)
    assert told["renamed"] == [{"old": ["TV > Sound"], "new": ["TV > Screen"], "nodes_below": 0}]
    assert told["unassigned"] == []
    assert "Nothing changed." in ramify(capsys, "taxonomy", "diff", files / "old.txt", files / "old.txt")[2]


@pytest.mark.parametrize("system", ["nb", "svm", "hr-svm"])
def test_update_relabels_training_data_and_predicts_new_paths(files, capsys, system):
    model = trained(files, capsys, system, "--keep-training-data")
    code, out, err = ramify(capsys, "update", model, "--taxonomy", files / "moved.txt", "--to", files / "newer", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["documents"], told["relabelled"], told["left_out"]) == (8, 2, 0)
    assert load(files / "newer").predict(["wrong amount on the invoice"]).tolist() == ["Orders > Money > Invoice"]
    assert load(model).predict(["wrong amount on the invoice"]).tolist() == ["Orders > Invoice"]  # the old one stays


def test_update_with_documents_adds_them_and_tells_what_it_did(files, capsys):
    model = trained(files, capsys, "svm", "--keep-training-data")
    more = write_table(files / "more.csv", [*MORE[2:], ("no sound from the speaker", "TV > Picture")])
    code, _, err = ramify(capsys, "update", model, "--taxonomy", files / "moved.txt", "--data", more)
    assert code == 0, err
    assert "Taxonomy: 1 moved, 1 added." in err
    assert "2 documents of moved, merged, split or retired nodes relabelled" in err
    assert "2 documents added, 1 of them with new labels for a known text" in err
    assert load(model).figures_["documents"] == 9
    code, _, err = ramify(capsys, "update", model, "--data", more)  # the same ones once more, and no new taxonomy
    assert code == 0, err
    assert "Taxonomy: unchanged." in err
    assert load(model).figures_["documents"] == 9


def test_new_titles_need_no_documents_and_train_nothing(files, capsys):
    model = trained(files, capsys, "td-svm")
    (files / "titles.txt").write_text(OLD.replace("TV", "Television"))
    code, _, err = ramify(capsys, "update", model, "--taxonomy", files / "titles.txt")
    assert code == 0, err
    assert "Taxonomy: 1 renamed." in err
    assert "Nothing was trained" in err
    assert load(model).predict(["dark screen"]).tolist() == ["Television > Picture"]


def test_what_does_not_follow_is_asked_and_answered(files, capsys):
    model = trained(files, capsys, "svm", "--keep-training-data")
    code, _, err = ramify(capsys, "update", model, "--taxonomy", files / "retired.txt")
    assert code == 2
    assert "a node that has documents is not in the new taxonomy: 'TV > Sound'; reassign their documents" in err
    assert "ramify taxonomy diff OLD NEW --out reassignments.tsv" in err
    (files / "reassignments.tsv").write_text("TV > Sound\tTV > Screen\n")
    code, _, err = ramify(
        capsys, "update", model, "--taxonomy", files / "retired.txt", "--reassignments", files / "reassignments.tsv"
    )
    assert code == 0, err
    assert load(model).predict(["no sound from the speaker"]).tolist() == ["TV > Screen"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "there is nothing to do; give a taxonomy"),
        (["--taxonomy", "moved.txt"], "the model has no training data"),
        (["--reassignments", "moved.txt", "--data", "data.csv"], "--reassignments is for documents of retired nodes"),
        (["--taxonomy", "absent.txt"], "absent.txt"),
        (["--taxonomy", "moved.txt", "--reassignments", "absent.tsv"], "cannot read the reassignments in"),
        (["--taxonomy", "moved.txt", "--rounds", "3"], "--rounds and --select-rounds need documents"),
    ],
)
def test_errors_end_in_one_sentence(files, capsys, arguments, sentence):
    model = trained(files, capsys, "svm")
    given = [files / word if word.endswith((".txt", ".csv", ".tsv")) else word for word in arguments]
    code, out, err = ramify(capsys, "update", model, *given)
    assert code == 2
    assert not out
    assert sentence in err
    assert "Traceback" not in err


def test_without_training_data_in_the_model_all_documents_come_from_a_file(files, capsys):
    model = trained(files, capsys, "hr-svm")
    code, _, err = ramify(capsys, "update", model, "--taxonomy", files / "moved.txt", "--data", files / "data.csv")
    assert code == 0, err
    assert "Trained from scratch, on 8 documents" in err
    assert load(model).predict(["wrong amount on the invoice"]).tolist() == ["Orders > Money > Invoice"]
