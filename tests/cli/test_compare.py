"""``ramify compare`` as a user meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from rich.console import Console

from ramify.cli.compare import read_system
from ramify.cli.compared import TESTS, _letters, render_comparison
from ramify.cli.main import run
from ramify.errors import InputError
from ramify.metrics import BootstrapDifference, Measured, Significance
from ramify.pipeline.comparison import Comparison, Pair, SystemResult

BOTH = ("--system", "nb", "--system", "svm")
FEW = ("--resamples", "20", "--folds", "3")


def ramify(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def compared(names, p_value=0.01, folds=1, correction="holm", difference=-0.1):
    """A comparison in which every pair has the same p-value."""
    measures = {
        name: Measured(0.5, 0.4, 0.6, [0.5]) for name in ("accuracy", "micro_f1", "macro_f1", "hierarchical_f1", "h_loss")
    }
    systems = [SystemResult(name, measures, 1.5, 1234.0) for name in names]
    tests = {name: Significance(1.0, p_value, 5, difference) for name in TESTS if not name.startswith("bootstrap")}
    tests |= {
        name: BootstrapDifference(difference, -0.2, 0.2, p_value, 5, 20) for name in TESTS if name.startswith("bootstrap")
    }
    pairs = [Pair(a, b, tests, dict.fromkeys(TESTS, p_value)) for i, a in enumerate(names) for b in names[i + 1 :]]
    return Comparison(100, folds, 7, 0, systems, pairs, correction, 20, 0)


def shown(comparison, width):
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(render_comparison(comparison, width))
    return capture.get()


# ---- the command --------------------------------------------------------------------------------------------------------


def test_systems_are_compared_in_folds(capsys, tickets):
    code, out, err = ramify(capsys, "compare", tickets, *BOTH, "--system", "nb:alpha=0.01", *FEW)
    assert code == 0, err
    assert "24 documents in 3 folds" in out
    assert "C  nb:alpha=0.01" in out
    assert "A – B" in out
    assert "B – C" in out
    assert "corrected for 3 comparisons after Holm" in out
    assert "1.000* [1.000, 1.000]" in out  # the words tell all


def test_a_comparison_speaks_json(capsys, tickets):
    code, out, _ = ramify(capsys, "compare", tickets, *BOTH, *FEW, "--json", "--correction", "none", "--seed", 3)
    facts = json.loads(out)
    assert code == 0
    assert (facts["documents"], facts["folds"], facts["correction"], facts["seed"], facts["n_resamples"]) == (
        24,
        3,
        "none",
        3,
        20,
    )
    assert [system["name"] for system in facts["systems"]] == ["nb", "svm"]
    assert facts["systems"][0]["measures"]["accuracy"]["value"] == 1
    assert set(facts["pairs"][0]["tests"]) == set(TESTS)


def test_parameters_and_features_reach_the_systems(capsys, tickets, tmp_path):
    """A shop that calls everything 'item': with that word left out nothing is left to tell classes apart."""
    lines = ["text,label"] + [f"{'item' if i % 2 else 'thing'} the{i},{'a' if i % 2 else 'b'}" for i in range(24)]
    (tmp_path / "shop.csv").write_text("\n".join(lines))
    (tmp_path / "stop.txt").write_text("item\nthing\n")
    command = ("compare", tmp_path / "shop.csv", "--system", "nb", "--system", "nb:fit_prior=false", *FEW, "--json")
    right = [system["measures"]["accuracy"]["value"] for system in json.loads(ramify(capsys, *command)[1])["systems"]]
    assert right == [1, 1]
    blind = json.loads(ramify(capsys, *command, "--stop-words", tmp_path / "stop.txt")[1])["systems"]
    assert all(system["measures"]["accuracy"]["value"] < 1 for system in blind)


def test_a_test_file_is_tested_on(capsys, tickets, tmp_path):
    (tmp_path / "test.csv").write_text(
        "body,category\nlate parcel,Orders > Late\ndark screen,TV > Picture\nno sound,TV > Picture\n"
    )
    code, out, err = ramify(capsys, "compare", tickets, "--test", tmp_path / "test.csv", *BOTH, "--resamples", 20, "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert (facts["documents"], facts["folds"]) == (3, 1)
    assert facts["systems"][0]["measures"]["accuracy"]["value"] == pytest.approx(2 / 3)


def test_models_are_compared_without_training(capsys, tickets, tmp_path):
    for name in ("nb", "svm"):
        assert ramify(capsys, "train", tickets, "--system", name, "--model", tmp_path / name)[0] == 0
    models = ("--model", tmp_path / "nb", "--model", tmp_path / "svm")
    code, out, err = ramify(capsys, "compare", tickets, *models, "--resamples", 20, "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert [system["name"] for system in facts["systems"]] == [str(tmp_path / "nb"), str(tmp_path / "svm")]
    assert facts["systems"][0]["training_seconds"] is None
    assert ramify(capsys, "compare", tickets, *models, "--resamples", 20)[0] == 0
    for option in (("--system", "nb"), ("--test", tickets), ("--ngrams", 2), ("--stem", "english"), ("--select", 5)):
        code, _, err = ramify(capsys, "compare", tickets, *models, *option)
        assert code == 2
        assert f"--model and {option[0]} were given; models are tested as they are" in err


def test_several_labels_are_mentioned_once_a_system(capsys, tmp_path):
    rows = "".join(f"red apple {i},a|b\nrye bread {i},b\n" for i in range(6))
    (tmp_path / "docs.csv").write_text("text,label\n" + rows)
    _, _, err = ramify(
        capsys, "compare", tmp_path / "docs.csv", "--label-separator", "|", "--system", "nb", "--system", "nb:alpha=2", *FEW
    )
    assert err.count("6 documents with several labels; nb learns from all, and answers with one") == 1


MISTAKES = {
    "no system": ((), "no system was given; a comparison needs two"),
    "one system": (("--system", "nb"), "only 'nb' was given; a comparison needs two: give --system twice or more"),
    "one model": (("--model", "out"), "only 'out' was given; a comparison needs two: give --model twice or more"),
    "the same system twice": (("--system", "nb", "--system", "nb"), "--system nb was given twice; give other parameters"),
    "unknown system": (("--system", "nb", "--system", "hr-svn"), "system 'hr-svn' is unknown"),
    "a suggestion": (("--system", "nb", "--system", "hr-svn"), "Did you mean 'hr-svm'"),
    "unknown parameter": (("--system", "nb", "--system", "nb:beta=1"), "beta is no parameter of nb; it has alpha"),
    "half a parameter": (
        ("--system", "nb", "--system", "nb:alpha"),
        "a parameter of --system nb is 'alpha'; give a name and a value",
    ),
    "bad parameter": (("--system", "nb", "--system", "nb:alpha=-1"), "nb:alpha=-1: alpha is -1"),
    "one fold": ((*BOTH, "--folds", "1"), "folds is 1; give 2 or more"),
    "too many folds": ((*BOTH, "--folds", "25"), "no more than there are documents, 24"),
    "unknown correction": ((*BOTH, "--correction", "hom"), "correction 'hom' is unknown"),
    "no threads": ((*BOTH, "--threads", "0"), "0 threads can do no work"),
    "no such file": ((*BOTH, "--test", "none.csv"), "none.csv cannot be read"),
    "no such model": (("--model", "none", "--model", "nowhere"), "none is not a Ramify model"),
    "no such stop list": ((*BOTH, "--stop-words", "klingon"), "--stop-words is 'klingon'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_in_one_sentence(capsys, tickets, name):
    options, message = MISTAKES[name]
    code, out, err = ramify(capsys, "compare", tickets, *options)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("ramify: ")
    assert "Traceback" not in err


def test_a_fold_without_two_classes_is_refused(capsys, tmp_path):
    (tmp_path / "few.csv").write_text("text,label\nxx yy,a\nzz ww,b\nuu vv,a\n")
    code, _, err = ramify(capsys, "compare", tmp_path / "few.csv", *BOTH, "--folds", "3")
    assert code == 2
    assert "fewer than two classes are left to learn from; give fewer folds, or more documents" in err


def test_an_interruption_ends_a_comparison_at_once(tmp_path):
    rows = "".join(f"parcel late courier {i},Orders > Late\nscreen dark {i},TV > Picture\n" for i in range(300))
    (tmp_path / "docs.csv").write_text("text,label\n" + rows)
    command = [sys.executable, "-m", "ramify.cli.main", "compare", str(tmp_path / "docs.csv"), *BOTH, "--resamples", "10000000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    while "600 documents" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - started < 10
    assert (process.returncode, out) == (2, "")
    assert "interrupted" in err
    assert "Traceback" not in err


# ---- systems as they are written ----------------------------------------------------------------------------------------


def test_commas_inside_values_do_not_part_parameters():
    assert read_system("x:weights=[1,2],C=0.5, mode=fast") == ("x", {"weights": [1, 2], "C": 0.5, "mode": "fast"})
    assert read_system("nb") == ("nb", {})
    with pytest.raises(InputError, match="a parameter of --system nb is ''"):
        read_system("nb:")


# ---- tables -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["nb", "svm"], ["a", "b", "c", "d", "treeboost-mh:n_rounds=100,variant=RA"]])
@pytest.mark.parametrize("width", [80, 100, 140])
def test_tables_fit_the_terminal_and_show_every_pair(names, width):
    text = shown(compared(names), width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert "…" not in text
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            assert text.count(f"{'ABCDE'[i]} – {'ABCDE'[j]}") == 1


def test_the_letter_is_the_system_that_is_ahead_where_it_matters():
    assert shown(compared(["x", "y"]), 80).count("0.010 B") == len(TESTS)
    assert shown(compared(["x", "y"], difference=0.1), 80).count("0.010 A") == len(TESTS)
    unsure = shown(compared(["x", "y"], p_value=0.05), 80)
    assert "0.050" in unsure
    assert "0.050 A" not in unsure
    assert "0.050 B" not in unsure
    assert "0.0497 B" in shown(compared(["x", "y"], p_value=0.0497), 80)  # not 0.050, which would be no difference
    assert "<0.001 B" in shown(compared(["x", "y"], p_value=1e-9), 80)


def test_a_test_that_could_not_be_made_is_a_dash():
    text = shown(compared(["x", "y"], p_value=float("nan")), 80)
    assert "nan" not in text
    assert "– where there are fewer than two classes" in text


def test_the_best_is_marked_and_for_a_loss_that_is_the_least():
    good, bad = Measured(0.9, 0.8, 1.0, [0.9]), Measured(0.2, 0.1, 0.3, [0.2])
    comparison = compared(["x", "y"])
    comparison.systems[0] = SystemResult("x", dict.fromkeys(comparison.systems[0].measures, good), 1.0, 1.0)
    comparison.systems[1] = SystemResult("y", dict.fromkeys(comparison.systems[0].measures, bad), 1.0, 1.0)
    first, second = (
        next(line for line in shown(comparison, 140).splitlines() if line.startswith(f"{letter}  0.")) for letter in "AB"
    )
    assert (first.count("*"), second.count("*")) == (4, 1)
    assert second.rstrip().endswith("0.200* [0.100, 0.300]")


@pytest.mark.parametrize(
    ("names", "correction", "legend"),
    [
        ("xy", "holm", "one comparison, so not corrected"),
        ("xyz", "holm", "corrected for 3 comparisons after Holm"),
        ("xyz", "benjamini-hochberg", "corrected for 3 comparisons after Benjamini & Hochberg"),
        ("xyz", "none", "Two-sided, not corrected"),
    ],
)
def test_the_legend_says_what_was_corrected(names, correction, legend):
    assert legend in shown(compared(list(names), correction=correction), 140)


def test_the_legend_says_where_resamples_are_too_few_to_find_anything():
    def legend(names, n_resamples, correction="holm"):
        return " ".join(shown(replace(compared(list(names), correction=correction), n_resamples=n_resamples), 400).split())

    told = "With so few resamples b cannot fall below 0.05; give --resamples 1,120."  # 28 pairs, each twice, in a twentieth
    assert told in legend("abcdefgh", 1000)
    assert "With so few" not in legend("abcdefgh", 1120)
    assert "With so few" not in legend("abcdefgh", 1000, "none")
    assert "With so few" not in legend("abc", 1000)


def test_names_with_brackets_are_shown_as_they_are():
    assert "x:w=[red]" in shown(compared(["x:w=[red]", "y"]), 80)


def test_there_are_letters_for_any_number_of_systems():
    letters = [letter for letter, _ in zip(_letters(), range(80), strict=False)]
    assert letters[:2] == ["A", "B"]
    assert letters[26] == "A2"
    assert len(set(letters)) == 80
