"""``ramify train --auto`` as a user meets it."""

import json
import time

import pytest

import ramify
from ramify import workflows
from ramify.cli import main as entry
from ramify.cli.main import main, process_start_time
from ramify.systems import SYSTEMS
from ramify.workflows import TrainOptions, TuneOptions
from ramify.workflows.tuning import result

QUICK = ("--auto", "--minutes", 2)  # ends as soon as nothing is left to try
NB = ("--system", "nb")


def train(capsys, *arguments):
    code = main([str(argument) for argument in ("train", *arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def multi_label(tmp_path):
    """Some documents have two labels."""
    lines = ["text,labels"]
    lines += [f"apple juice {i},a|b" for i in range(8)]
    lines += [f"apple pie {i},a" for i in range(8)] + [f"juice of an orange {i},b" for i in range(8)]
    path = tmp_path / "multi_label.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def vectors(tmp_path):
    """Two classes of few, dense features; the second is always below zero."""
    lines = [f"{'ab'[i % 2]} 1:{1.5 + i % 2 + i / 100} 2:-{0.5 + i % 3}" for i in range(40)]
    path = tmp_path / "vectors.svm"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_tuning_prints_a_table_and_sentences(capsys, tickets, tmp_path):
    report = tmp_path / "report.html"
    code, out, err = train(capsys, tickets, "-m", tmp_path / "out", *QUICK, *NB, "--report", report)
    assert code == 0, err
    for part in ("candidate", "micro F1", "The default is as good: nb, decided by best", "ahead of it (95% interval"):
        assert part in out
    assert f": ramify train {tickets} --system nb\n" in out
    assert "All candidates were tried." in out
    assert "By level" in out
    page = report.read_text()
    assert "<h2>Tuning</h2>" in page
    assert "nb alpha=0." in page
    assert "The default is as good: nb" in page


def test_tuning_speaks_json_and_the_model_remembers_it(capsys, tickets, tmp_path):
    code, out, err = train(capsys, tickets, "-m", tmp_path / "out", *QUICK, *NB, "--json", "--by", "macro_f1")
    facts = json.loads(out)
    assert code == 0, err
    tuning = facts["tuning"]
    assert tuning["by"] == "macro_f1"
    assert tuning["winner"]["system"] == "nb"
    assert tuning["seconds"] <= tuning["time_limit"] == 120
    assert len(tuning["trials"]) > 5
    assert facts["refitted"]
    kept = ramify.load(tmp_path / "out")
    assert kept.figures_["tuning"] == tuning
    assert tuning["keeps_default"]
    assert tuning["default"]["settings"] == "nb"
    assert tuning["default"]["winning"]["low"] <= 0
    assert kept.learner_.get_params()["alpha"] == SYSTEMS["nb"].learner().alpha


def test_the_same_by_hand_is_the_same(capsys, tickets, tmp_path):
    options = ("--system", "svm", "--param", "C=1", "--characters", "none", "--seed", 3)
    code, out, _ = train(capsys, tickets, "-m", tmp_path / "auto", *QUICK, *options)
    assert code == 0
    by_hand = next(line for line in out.splitlines() if "without --auto" in line).split("ramify train ")[1].split()
    assert train(capsys, *by_hand, "-m", tmp_path / "hand", "--seed", 3)[0] == 0
    texts = ["late parcel", "no sound", "wrong box", "dark screen"]
    auto, hand = ramify.load(tmp_path / "auto"), ramify.load(tmp_path / "hand")
    assert (auto.learner_.C_, auto.vectorizer_.get_params()) == (hand.learner_.C_, hand.vectorizer_.get_params())
    assert auto.predict(texts).tolist() == hand.predict(texts).tolist()


def test_a_clear_winner_replaces_the_default_and_is_the_same_by_hand(capsys, tmp_path):
    # only n-grams of characters tell classes apart
    path = tmp_path / "codes.csv"
    lines = (f"item {'abc'[i % 3] * 3}{i:05d}{i * 7919 % 10007:05d},{'xyz'[i % 3]}" for i in range(400))
    path.write_text("text,label\n" + "\n".join(lines) + "\n")
    code, out, err = train(capsys, path, "-m", tmp_path / "auto", *QUICK, "--system", "svm", "--param", "C=1")
    assert code == 0, err
    for part in ("Winner: svm C=1 characters=", "ahead of the default, svm C=1 decided by best (95% interval +"):
        assert part in " ".join(out.split())
    by_hand = next(line for line in out.splitlines() if "without --auto" in line).split("ramify train ")[1].split()
    assert "--characters" in by_hand
    assert train(capsys, *by_hand, "-m", tmp_path / "hand")[0] == 0
    auto, hand = ramify.load(tmp_path / "auto"), ramify.load(tmp_path / "hand")
    assert auto.vectorizer_.get_feature_names_out().tolist() == hand.vectorizer_.get_feature_names_out().tolist()


def test_risk_can_be_set_after_tuning(shop, tmp_path):
    few = shop.train.take(range(0, len(shop.train), 6))
    options = TrainOptions("nb", {"alpha": 0.1}, taxonomy=shop.taxonomy, tune=TuneOptions(minutes=60))
    trained = workflows.train(few, options, tmp_path / "out")
    assert not trained.tuning.lacks_calibration
    assert len(ramify.load(tmp_path / "out").predict(["no sound"], risk=0.3)) == 1


def test_every_system_may_be_selected_within_the_time_limit(capsys, tickets, tmp_path):
    code, out, err = train(capsys, tickets, "-m", tmp_path / "out", "--auto", "--minutes", 0.15, "--json")
    assert code == 0, err
    tuning = json.loads(out)["tuning"]
    assert {trial["system"] for trial in tuning["trials"]} <= set(SYSTEMS)
    assert tuning["time_limit"] == pytest.approx(9)


def test_several_labels_get_a_rule_that_gives_several(capsys, multi_label, tmp_path):
    code, out, err = train(capsys, multi_label, "-m", tmp_path / "out", *QUICK, "--system", "svm", "--param", "C=1", "--json")
    assert code == 0, err
    rules = {trial["rule"] for trial in json.loads(out)["tuning"]["trials"]}
    assert rules - {"best"}
    assert ramify.load(tmp_path / "out").form_.multi_label


def test_vectors_have_systems_and_costs_to_choose_and_no_features(capsys, vectors, tmp_path):
    code, out, err = train(capsys, vectors, "-m", tmp_path / "out", "--auto", "--minutes", 0.15, "--json")
    assert code == 0, err
    tuning = json.loads(out)["tuning"]
    assert tuning["winner"]["features"] == {}
    assert "nb" in {each["name"] for each in tuning["skipped"]}  # no negative counts
    assert tuning["trials"][0]["score"] == 1.0


def test_what_is_said_beside_auto_is_kept_to(capsys, tickets, tmp_path):
    fixed = ("--system", "lr", "--param", "C=3", "--ngrams", 2, "--rule", "best")
    code, out, err = train(capsys, tickets, "-m", tmp_path / "out", *QUICK, *fixed, "--json")
    assert code == 0, err
    for trial in json.loads(out)["tuning"]["trials"]:
        assert trial["settings"].startswith("lr C=3")
        assert "ngrams=" in trial["settings"]
        assert trial["rule"] == "best"


def test_a_model_of_another_system_is_not_replaced_silently(capsys, tickets, tmp_path):
    train(capsys, tickets, "-m", tmp_path / "out", "--system", "nb")
    code, _, err = train(capsys, tickets, "-m", tmp_path / "out", *QUICK, "--system", "shrinkage-nb", "--force")
    assert code == 0
    assert "holds a model of system 'nb'" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--minutes", 5), "give --auto as well"),
        (("--by", "accuracy"), "give --auto as well"),
        (("--auto", "--minutes", 0.01), "0.6 seconds are too few"),
        (("--auto", "--minutes", "nan"), "nan seconds are too few"),
        (("--auto", "--by", "beauty"), "measure 'beauty' is unknown"),
        (("--auto", "--select", 5), "--auto and --select were given"),
        (("--auto", "--cluster", "local"), "--auto and --cluster were given"),
        (("--auto", "--shards", 2), "--auto and --shards were given"),
        (("--auto", "--resume"), "--auto and --resume were given"),
        (("--auto", "--param", "C=1"), "name the system of the parameter with --system"),
        (("--auto", "--system", "vsm"), "system 'vsm' is unknown"),
        (("--auto", "--system", "nb", "--param", "C=1"), "C is not a parameter of nb"),
    ],
)
def test_what_cannot_be_chosen_ends_with_one_sentence(capsys, tickets, tmp_path, options, words):
    code, out, err = train(capsys, tickets, "-m", tmp_path / "out", *options)
    assert (code, out) == (2, "")
    assert words in err
    assert not (tmp_path / "out").exists()


def test_one_class_is_refused_as_without_tuning(capsys, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("text,label\n" + "".join(f"text number {i},only\n" for i in range(12)))
    without = train(capsys, path, "-m", tmp_path / "out")
    assert train(capsys, path, "-m", tmp_path / "out", *QUICK) == without
    assert without[0] == 2


def test_ten_documents_are_enough(capsys, tmp_path):
    path = tmp_path / "ten.csv"
    path.write_text("text,label\n" + "".join(f"{'red apple' if i % 2 else 'rye bread'} {i},{'ab'[i % 2]}\n" for i in range(10)))
    code, _, err = train(capsys, path, "-m", tmp_path / "out", *QUICK, *NB)
    assert code == 0, err


def test_time_counts_from_the_start_of_the_program(monkeypatch, capsys, tickets, tmp_path):
    assert 0 <= time.monotonic() - process_start_time() < 24 * 3600
    monkeypatch.setattr(entry, "started_at", time.monotonic() - 1000)
    code, _, err = train(capsys, tickets, "-m", tmp_path / "out", *QUICK)
    assert code == 2
    assert "give more time" in err


def test_options_of_every_feature_are_known():
    from ramify.workflows.tuning.candidates import CHANGES

    assert {name for change in CHANGES for name, _ in change} <= set(result.OPTIONS)
