"""``--column`` and ``--separate``: further columns as features."""

import csv
import json

import pytest

import ramify
from ramify.cli.main import main


@pytest.fixture
def offers(tmp_path):
    """The words say nothing, brand and price everything."""
    path = tmp_path / "offers.csv"
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "title", "body", "brand", "price", "category"])
        for i in range(120):
            brand, price = ("Acme", i / 10) if i % 2 else ("Bolt", 50 + i)
            label = "food > fruit" if i % 2 else ("home > lamp" if i % 4 else "home > chair")
            rows.writerow([i, f"item {i % 7}", f"a thing number {i % 5}", brand, price, label])
    return path


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("how", [[], ["--separate"]])
def test_columns_are_features_in_every_command(capsys, tmp_path, offers, how):
    more = ["--text", "title,body", "--column", "brand", "--column", "price", *how]
    code, _, err = run(capsys, "train", offers, "--model", tmp_path / "m", "--system", "svm", *more)
    assert code == 0, err
    assert "further columns 'brand' and 'price'" in err
    code, _, err = run(capsys, "predict", tmp_path / "m", offers, "--out", tmp_path / "p.csv")
    assert code == 0, err
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert {row["predicted"].split(" > ")[0] == row["category"].split(" > ")[0] for row in rows} == {True}
    code, out, _ = run(capsys, "evaluate", tmp_path / "m", offers, "--json")
    assert code == 0
    assert json.loads(out)["documents"] == 120
    assert run(capsys, "audit", offers, "--column", "brand")[0] == 0
    assert run(capsys, "compare", offers, "--column", "brand", "--system", "nb", "--system", "svm")[0] == 0
    assert run(capsys, "predict", tmp_path / "m", "--try", "item 3")[0] == 0
    words = ramify.load(tmp_path / "m").learner_.top_terms(
        "food > fruit", 30, ramify.load(tmp_path / "m").vectorizer_.get_feature_names_out()
    )
    assert "brand=Acme" in [word for word, _ in words]


def test_without_columns_the_words_say_nothing(capsys, tmp_path, offers):
    assert run(capsys, "train", offers, "--model", tmp_path / "m", "--system", "svm", "--text", "title,body")[0] == 0
    _, out, _ = run(capsys, "evaluate", tmp_path / "m", offers, "--json")
    assert json.loads(out)["figures"]["accuracy"] < 0.8


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--column", "prize"], "no column 'prize'.*Did you mean 'price'"),
        (["--column", "body", "--text", "body"], "'body' is given with --column and with --text"),
        (["--column", "category", "--label", "category"], "'category' is given with --column and with --label"),
        (["--column", "brand", "--auto"], "--auto does not support --column"),
        (["--separate", "--auto"], "--auto does not support --separate"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(capsys, tmp_path, offers, more, message):
    import re

    code, _, err = run(capsys, "train", offers, "--model", tmp_path / "m", *more)
    assert code == 2
    assert re.search(message, err), err
    assert not (tmp_path / "m").exists()


def test_a_table_without_a_column_of_the_model_is_refused_where_it_is_judged(capsys, tmp_path, offers):
    assert run(capsys, "train", offers, "--model", tmp_path / "m", "--system", "nb", "--column", "brand")[0] == 0
    (tmp_path / "other.csv").write_text("title,body,category\nitem,a thing number 3,food > fruit\n")
    code, _, err = run(capsys, "evaluate", tmp_path / "m", tmp_path / "other.csv")
    assert (code, "The model was trained with it" in err) == (2, True)
    code, out, _ = run(capsys, "predict", tmp_path / "m", tmp_path / "other.csv")
    assert code == 0
    assert "food" in out or "home" in out
