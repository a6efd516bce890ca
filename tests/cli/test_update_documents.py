"""``ramify update``, mixture weights in ``ramify inspect``, and the options about words."""

import csv
import json

import pytest
from cli.test_commands import ramify

from ramify import load

ROWS = [
    ("late parcel from the courier", "Orders > Delivery"),
    ("parcel lost by the courier", "Orders > Delivery"),
    ("invoice has a wrong amount", "Orders > Invoice"),
    ("wrong amount on my invoice", "Orders > Invoice"),
    ("dark screen after the update", "TV > Picture"),
    ("screen flickers and is dark", "TV > Picture"),
    ("no sound from the speaker", "TV > Sound"),
    ("speaker makes a crackling sound", "TV > Sound"),
]
MORE = [
    ("remote control does not pair", "TV > Remote"),
    ("lost remote control", "TV > Remote"),
    ("late courier", "Orders > Delivery"),
]


def write_table(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["body", "category"])
        table.writerows(rows)
    return path


@pytest.fixture
def model(tmp_path, capsys):
    data = write_table(tmp_path / "data.csv", ROWS)
    for system in ("nb", "shrinkage-nb", "pachinko-nb", "svm"):
        code, _, err = ramify(capsys, "train", data, "--model", tmp_path / system, "--system", system, "--holdout", 0)
        assert code == 0, err
    return tmp_path


@pytest.mark.parametrize("system", ["nb", "shrinkage-nb", "pachinko-nb"])
def test_update_adds_documents_words_and_classes(model, capsys, system):
    more = write_table(model / "more.csv", MORE)
    code, out, err = ramify(capsys, "update", model / system, "--data", more, "--to", model / "newer", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["documents"] == 3
    assert told["new_classes"] == ["TV > Remote"]
    assert told["new_words"] == 5  # remote, control, does, not, pair
    assert load(model / "newer").predict(["remote control"]).tolist() == ["TV > Remote"]
    assert "TV > Remote" not in load(model / system).taxonomy_.names  # the old one stays


def test_update_replaces_the_model_and_drops_old_figures(model, capsys):
    data, more = write_table(model / "data.csv", ROWS * 3), write_table(model / "more.csv", MORE)
    ramify(capsys, "train", data, "--model", model / "out", "--system", "nb", "--test", data)
    assert "evaluation" in load(model / "out").figures_
    code, _, err = ramify(capsys, "update", model / "out", "--data", more)
    assert code == 0, err
    assert "3 more documents: 5 new words, 1 new class" in err
    assert "evaluation" not in load(model / "out").figures_
    assert load(model / "out").figures_["documents"] == 27


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["svm", "--data", "more.csv"], "system 'svm' trains on all documents at once"),
        (["nb", "--data", "nothing.csv"], "nothing.csv"),
        (["nb", "--data", "empty.csv"], "empty.csv is empty"),
        (["nb", "--data", "more.csv", "--taxonomy", "other.tsv"], "is not in the taxonomy|is missing from the new taxonomy"),
        (["nb", "--data", "same.csv", "--taxonomy", "other.tsv"], "is missing from the new taxonomy"),
        (["nb", "--data", "more.csv", "--to", "foreign"], "foreign"),
        (["absent", "--data", "more.csv"], "absent"),
        (["nb", "--data", "vectors.svm"], "holds vectors"),
    ],
)
def test_what_cannot_be_added_is_refused_and_the_model_stays(model, capsys, monkeypatch, arguments, sentence):
    monkeypatch.chdir(model)
    write_table(model / "more.csv", MORE)
    write_table(model / "same.csv", [ROWS[0]])
    (model / "empty.csv").write_text("")
    (model / "other.tsv").write_text("child\tparent\nOrders\t\nDelivery\tOrders\n")
    (model / "vectors.svm").write_text("1 1:1 2:1\n2 1:2\n")
    (model / "foreign").mkdir()
    (model / "foreign" / "letter.txt").write_text("dear")
    before = (model / "nb" / "manifest.json").read_text()
    code, _, err = ramify(capsys, "update", *arguments)
    assert code == 2
    assert "Traceback" not in err
    assert any(part in err for part in sentence.split("|")), err
    assert (model / "nb" / "manifest.json").read_text() == before


def test_unknown_labels_of_a_given_taxonomy_are_refused(tmp_path, capsys):
    data, more = write_table(tmp_path / "data.csv", ROWS), write_table(tmp_path / "more.csv", MORE)
    (tmp_path / "tree.txt").write_text("\n".join(sorted({label for _, label in ROWS})))
    tree = ["--taxonomy", tmp_path / "tree.txt"]
    code, _, err = ramify(capsys, "train", data, "--model", tmp_path / "out", "--system", "nb", "--holdout", 0, *tree)
    assert code == 0, err
    code, _, err = ramify(capsys, "update", tmp_path / "out", "--data", more)
    assert code == 2
    assert "'TV > Remote' is not in the taxonomy" in err


def test_inspect_shows_mixture_weights_and_words(model, capsys):
    code, out, err = ramify(capsys, "inspect", model / "shrinkage-nb", "--node", "TV > Picture", "--json")
    assert code == 0, err
    found = json.loads(out)
    names = [entry["estimate"] for entry in found["mixture_weights"]]
    assert names == ["TV > Picture", "TV", "all documents", "uniform"]
    assert sum(entry["weight"] for entry in found["mixture_weights"]) == pytest.approx(1)
    assert {entry["word"] for entry in found["words"][:2]} <= {"screen", "dark"}
    _, out, _ = ramify(capsys, "inspect", model / "shrinkage-nb", "--node", "TV > Picture")
    assert "mixture weights" in out
    _, out, _ = ramify(capsys, "inspect", model / "shrinkage-nb")
    assert "weight of own documents" in out
    code, _, err = ramify(capsys, "inspect", model / "shrinkage-nb", "--node", "TV")
    assert code == 2
    assert "'TV' is no class" in err


def test_options_about_words_reach_the_vectorizer(model, capsys):
    data = model / "data.csv"
    (model / "stop.txt").write_text("the\nfrom\n")
    options = ["--stop-words", model / "stop.txt", "--select", 6, "--select-by", "chi2", "--select-scope", "hierarchical"]
    code, _, err = ramify(capsys, "train", data, "--model", model / "chosen", "--system", "nb", "--holdout", 0, *options)
    assert code == 0, err
    terms = load(model / "chosen").vectorizer_.terms_.tolist()
    assert 1 <= len(terms) <= 6
    assert not {"the", "from"} & set(terms)
    options = ["--system", "nb", "--holdout", 0, "--hashing", 32]
    code, _, err = ramify(capsys, "train", data, "--model", model / "hashed", *options)
    assert code == 0, err
    assert load(model / "hashed").vectorizer_.n_features_out == 32


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--stop-words", "no-such-file"], "or a text file with one word per line"),
        (["--select", 5, "--select-by", "guess"], "measure is 'guess'"),
        (["--select", 5, "--select-join", "guess"], "join is 'guess'"),
        (["--select", 5, "--select-scope", "guess"], "scope is 'guess'"),
        (["--select", 5, "--select-scope", "glocal"], "pachinko-nb"),
        (["--hashing", 16, "--min-df", 2], "hashing stores no vocabulary"),
        (["--hashing", 1 << 40], "hashing is"),
        (["--system", "shrinkage-nb", "--param", "branches=0"], "branches is 0"),
        (["--system", "shrinkage-nb", "--param", "weights=guess"], "weights is 'guess'"),
        (["--system", "pachinko-nb", "--param", "n_words=-1"], "n_words is -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(model, capsys, options, sentence):
    code, _, err = ramify(capsys, "train", model / "data.csv", "--model", model / "out", *options)
    assert code == 2
    assert sentence in err
    assert not (model / "out").exists()


def test_update_splits_labels_as_training_did(tmp_path, capsys):
    data = write_table(
        tmp_path / "data.csv", [*ROWS, ("parcel late and wrong amount", "Orders > Delivery | Orders > Invoice")] * 2
    )
    more = write_table(tmp_path / "more.csv", [("wrong amount in a late parcel", "Orders > Delivery | Orders > Invoice")])
    code, _, err = ramify(capsys, "train", data, "--model", tmp_path / "out", "--system", "nb", "--holdout", 0)
    assert code == 0, err
    code, out, err = ramify(capsys, "update", tmp_path / "out", "--data", more, "--json")
    assert code == 0, err
    assert json.loads(out)["new_classes"] == []


def test_update_of_machines_at_nodes_is_refused(tmp_path, capsys):
    data = write_table(tmp_path / "data.csv", ROWS)
    ramify(capsys, "train", data, "--model", tmp_path / "out", "--system", "isotonic-nb", "--holdout", 0)
    code, _, err = ramify(capsys, "update", tmp_path / "out", "--data", data)
    assert code == 2
    assert "trains on all documents at once" in err
    (tmp_path / "bare.csv").write_text("body,category\nno label here,\n")
    ramify(capsys, "train", data, "--model", tmp_path / "nb", "--system", "nb", "--holdout", 0)
    code, _, err = ramify(capsys, "update", tmp_path / "nb", "--data", tmp_path / "bare.csv")
    assert code == 2
    assert "Traceback" not in err
