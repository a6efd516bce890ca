"""``--keep-back``, ``--risk``, ``--nodes`` and ``--by-branch`` as a user meets them."""

import csv
import json
import random

import pytest

from ramify.cli.main import main

WORDS = {
    "food/fruit": "apple pear plum",
    "food/bread": "loaf crust rye",
    "drink/tea": "leaf cup kettle",
    "tools": "saw nail drill",
}


def ramify(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def rows_of(n, seed):
    """Documents of four classes, three tenths of whose words may be of any class; of tools there are few."""
    rng, every = random.Random(seed), " ".join(WORDS.values()).split()
    for _ in range(n):
        label = rng.choices(list(WORDS), (10, 10, 10, 1))[0]
        own = WORDS[label].split()
        yield " ".join(rng.choice(every if rng.random() < 0.3 else own) for _ in range(4)), label


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("risk")
    table = write(folder / "train.csv", rows_of(600, seed=0))
    arguments = ["train", table, "--system", "svm", "--model", folder / "m", "--keep-back", 0.3, "--holdout", 0.2, "--no-refit"]
    assert main([str(argument) for argument in arguments]) == 0
    return folder / "m"


def depth_of(label):
    return len(label.split("/")) if label else 0


def test_less_risk_never_goes_deeper_and_covers_the_truth_as_often_as_guaranteed(capsys, tmp_path, model):
    asked = list(rows_of(400, seed=1))
    table, found = write(tmp_path / "new.csv", [(text, "") for text, _ in asked]), {}
    for risk in (0.02, 0.1, 0.3):
        code, out, err = ramify(capsys, "predict", model, table, "--text", "text", "--risk", risk, "--json")
        assert code == 0, err
        found[risk] = [(json.loads(line)["predicted"] or [{"label": ""}])[0]["label"] for line in out.splitlines()]
    for risk, labels in found.items():
        held = sum(
            f"{truth}/".startswith(f"{label}/" if label else "") for (_, truth), label in zip(asked, labels, strict=True)
        )
        assert held / len(asked) > 1 - risk - 0.05
    for less, more in ((0.02, 0.1), (0.1, 0.3)):
        assert all(f"{b}/".startswith(f"{a}/" if a else "") for a, b in zip(found[less], found[more], strict=True))
    assert sum(map(depth_of, found[0.02])) < sum(map(depth_of, found[0.3]))


def test_a_report_shows_guarantees(capsys, tmp_path, model):
    table = write(tmp_path / "test.csv", rows_of(100, seed=2))
    code, out, err = ramify(capsys, "evaluate", model, table)
    assert code == 0, err
    assert "152 documents that were kept back" in " ".join(out.split())


@pytest.mark.parametrize("several", [False, True])
def test_branches_with_too_few_documents_are_named(capsys, tmp_path, model, several):
    (tmp_path / "new").mkdir()
    table = write(tmp_path / "new" / "a.csv", rows_of(20, seed=3))
    where = [tmp_path / "new", "--out", tmp_path / "answers"] if several else [table]
    code, _, err = ramify(capsys, "predict", model, *where, "--text", "text", "--risk", 0.05, "--by-branch")
    assert code == 0, err
    assert "too few documents were held out for a risk of 0.05 in 'tools'" in err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--risk", "0"], "risk"),
        (["--risk", "1.5"], "risk"),
        (["--risk", "1e-9"], "held-out documents, and there are 152"),
        (["--nodes", "3"], "risk"),
        (["--by-branch"], "risk"),
        (["--risk", "0.1", "--nodes", "4"], "nodes"),
        (["--risk", "0.1", "--threshold", "0.5"], "threshold"),
    ],
)
def test_what_cannot_be_guaranteed_is_refused_with_a_sentence(capsys, tmp_path, model, options, sentence):
    table = write(tmp_path / "new.csv", rows_of(3, seed=4))
    code, out, err = ramify(capsys, "predict", model, table, "--text", "text", *options)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err
    assert not out


def test_a_model_without_calibration_has_no_guarantee(capsys, tmp_path):
    table = write(tmp_path / "train.csv", rows_of(200, seed=5))
    assert ramify(capsys, "train", table, "--model", tmp_path / "m", "--no-calibrate")[0] == 0
    code, _, err = ramify(capsys, "predict", tmp_path / "m", table, "--text", "text", "--risk", 0.1)
    assert code == 2
    assert "--keep-back" in err or "keep_back" in err
