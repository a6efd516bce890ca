"""Commands around a server: who may use it, what people decided, and learning from that."""

from __future__ import annotations

import csv
import json

import pytest

from ramify import load
from ramify.cli.main import main
from ramify.server.keys import KeyRing
from ramify.server.reviews import ReviewStore

pytestmark = pytest.mark.slow

ROWS = [
    ("red apple", "food/fruit"),
    ("green apple", "food/fruit"),
    ("rye bread", "food/bread"),
    ("white bread", "food/bread"),
] * 5


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("body", "category"), *ROWS])
    return path


def test_a_key_is_printed_once_and_listed_without_it(tmp_path, capsys):
    file = tmp_path / "keys.json"
    assert main(["keys", "add", str(file), "ann", "--role", "review"]) == 0
    key = capsys.readouterr().out.strip()
    assert KeyRing(file).find(key).name == "ann"
    assert main(["keys", "list", str(file)]) == 0
    listed = capsys.readouterr().out
    assert "ann" in listed
    assert key not in listed
    assert main(["keys", "list", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["role"] == "review"
    assert main(["keys", "remove", str(file), "ann"]) == 0
    assert KeyRing(file).find(key) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["keys", "add", "{folder}/k.json", "ann", "--role", "king"], "role 'king' is unknown"),
        (["keys", "list", "{folder}/none.json"], "cannot be read"),
        (["keys", "add", "{folder}/no/k.json", "ann"], "cannot write"),
        (["reviews", "export", "{folder}/none.db"], "does not exist"),
        (["reviews", "export", "{folder}/none.db", "--out", "x.xlsx"], ".csv or .jsonl"),
        (["reviews", "summary", "{folder}"], "is a directory"),
        (["reviews", "summary", "{table}"], "cannot be read"),
        (["train", "{table}", "--add", "{folder}/none.csv", "--model", "{folder}/m"], "cannot be read"),
    ],
)
def test_errors_are_reported_in_one_sentence(tmp_path, table, capsys, arguments, said):
    assert main([part.format(folder=tmp_path, table=table) for part in arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.fixture
def reviews(tmp_path):
    path = tmp_path / "reviews.db"
    store = ReviewStore(path)
    guess = [{"label": "food/bread", "path": ["food", "bread"], "probabilities": [0.6, 0.5], "probability": 0.5}]
    texts = ["blue plum", "yellow plum", "rye bread", "junk"]
    numbers, _ = store.queue("m", [(text, guess, [], 0.5, None) for text in texts], by="ann")
    store.decide(numbers[0], "ann", "correct", ["food/fruit"])
    store.decide(numbers[1], "ann", "correct", ["food/fruit"])
    store.decide(numbers[2], "ben", "correct", ["food/fruit"])
    store.decide(numbers[3], "ben", "reject", [])
    store.close()
    return path


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_reviewed_labels_are_exported_and_trained_on(tmp_path, table, reviews, capsys, ending):
    out, model = tmp_path / f"reviews.{ending}", tmp_path / "model"
    assert main(["reviews", "export", str(reviews), "--out", str(out)]) == 0
    assert "3 documents with labels" in capsys.readouterr().err
    assert main(["train", str(table), "--add", str(out), "--model", str(model), "--holdout", "0"]) == 0
    told = capsys.readouterr().err
    assert "5 documents" in told
    assert "replaced by the added ones" in told
    fitted = load(model)
    assert fitted.predict(["plum"]).tolist() == ["food/fruit"]
    assert fitted.figures_["documents"] == 20 - 5 + 3  # the corrected text takes the place of five rows that have it
    assert fitted.predict(["rye"]).tolist() == ["food/fruit"]


def test_reviews_of_several_models_are_exported_one_model_at_a_time(reviews, capsys):
    store = ReviewStore(reviews)
    store.queue("other", [("x", [], [], 0.0, None)], by="ann")
    store.close()
    assert main(["reviews", "export", str(reviews)]) == 2
    assert "m, other" in capsys.readouterr().err
    assert main(["reviews", "export", str(reviews), "--model", "m"]) == 0
    assert "blue plum" in capsys.readouterr().out


def test_reviews_that_nobody_may_change_can_be_read(reviews, capsys):
    reviews.chmod(0o400)
    before = reviews.read_bytes()
    assert main(["reviews", "export", str(reviews)]) == 0
    assert main(["reviews", "summary", str(reviews)]) == 0
    assert reviews.read_bytes() == before


def test_nothing_to_add_is_no_trouble(tmp_path, table, capsys):
    ReviewStore(tmp_path / "r.db").close()
    out = tmp_path / "reviews.csv"
    assert main(["reviews", "export", str(tmp_path / "r.db"), "--out", str(out)]) == 0
    assert main(["train", str(table), "--add", str(out), "--model", str(tmp_path / "m"), "--holdout", "0"]) == 0
    assert load(tmp_path / "m").figures_["documents"] == 20


def test_another_system_in_the_place_of_a_model_is_told_and_so_are_new_labels(tmp_path, table, capsys):
    assert main(["train", str(table), "--model", str(tmp_path / "m"), "--holdout", "0", "--system", "lr"]) == 0
    assert "will be replaced" not in capsys.readouterr().err
    (tmp_path / "more.csv").write_text("text,label\nblue sky,sky\n")
    more = ["--add", str(tmp_path / "more.csv"), "--holdout", "0", "--force"]
    assert main(["train", str(table), "--model", str(tmp_path / "m"), *more]) == 0
    told = capsys.readouterr().err
    assert "Keep it with --system lr" in told
    assert "1 label not in" in told


def test_added_documents_are_never_tested_on(tmp_path, table, reviews, capsys):
    out = tmp_path / "reviews.csv"
    assert main(["reviews", "export", str(reviews), "--out", str(out)]) == 0
    capsys.readouterr()
    table.write_text("body,category\n" + "".join(f"{text} {i},{label}\n" for i, (text, label) in enumerate(ROWS[:15])))
    assert main(["train", str(table), "--add", str(out), "--model", str(tmp_path / "m"), "--json"]) == 0
    with_added = json.loads(capsys.readouterr().out)
    assert with_added["trained_on"] + with_added["tested_on"] == 15 + 3
    assert 0 < with_added["tested_on"] <= 5
    assert with_added["refitted"]


def test_several_labels_of_a_review_stay_several(tmp_path, table, capsys):
    store = ReviewStore(tmp_path / "r.db")
    (number,), _ = store.queue("m", [("apple bread", [], [], 0.0, None)], by="ann")
    store.decide(number, "ann", "correct", ["food/fruit", "food/bread"])
    store.close()
    out = tmp_path / "reviews.csv"
    assert main(["reviews", "export", str(tmp_path / "r.db"), "--out", str(out)]) == 0
    assert (
        main(["train", str(table), "--add", str(out), "--model", str(tmp_path / "m"), "--holdout", "0", "--system", "lr"]) == 0
    )
    assert len(load(tmp_path / "m").taxonomy_) == 3


def test_agreement_is_told(reviews, capsys):
    assert main(["reviews", "summary", str(reviews)]) == 0
    told = capsys.readouterr().out
    assert "0 accepted, 3 corrected, 1 rejected" in told
    assert main(["reviews", "summary", str(reviews), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agreement"] == 0.0


def test_predict_takes_a_threshold_and_subtrees(tmp_path, table, capsys):
    assert main(["train", str(table), "--model", str(tmp_path / "m"), "--holdout", "0"]) == 0
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "m"), "--try", "apple", "--within", "food/bread"]) == 0
    assert "food/bread" in capsys.readouterr().out
    assert main(["predict", str(tmp_path / "m"), "--try", "something", "--threshold", "0.9", "--json"]) == 0
    assert [label["label"] for label in json.loads(capsys.readouterr().out)["labels"]] == ["food"]
    assert main(["predict", str(tmp_path / "m"), "--try", "apple", "--within", "nowhere"]) == 2
    assert "not in the taxonomy" in capsys.readouterr().err


def test_serving_without_its_libraries_names_the_extra(tmp_path, table, capsys, monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("ramify.server.running"):
            raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *rest)

    assert main(["train", str(table), "--model", str(tmp_path / "m"), "--holdout", "0"]) == 0
    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["serve", str(tmp_path / "m")]) == 2
    assert "pip install 'ramify[serve]'" in capsys.readouterr().err
