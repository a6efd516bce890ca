"""``ramify compare`` as a user meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from comparisons import alike, comparison, pair, system
from rich.console import Console

from ramify.cli.compare import _new_systems
from ramify.cli.main import main
from ramify.errors import InputError
from ramify.reports.terminal import render_comparison
from ramify.systems import SYSTEMS
from ramify.workflows import FeatureOptions, TrainOptions
from ramify.workflows.comparison import LABELS, TESTS, Skipped, letters_of, recommend
from ramify.workflows.training import parse_system

BOTH = ("--system", "nb", "--system", "svm")
FEW = ("--resamples", "20", "--folds", "3")


def ramify(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def shown(found, width, by="micro_f1"):
    console = Console(width=width, highlight=False, color_system=None)
    with console.capture() as capture:
        console.print(render_comparison(found, recommend(found, by), width))
    return capture.get()


# ---- the command --------------------------------------------------------------------------------------------------------


def test_systems_are_compared_in_folds(capsys, tickets):
    code, out, err = ramify(capsys, "compare", tickets, *BOTH, "--system", "nb:alpha=0.01", *FEW)
    assert code == 0, err
    assert "24 documents in 3 folds" in out
    assert "C  nb:alpha=0.01" in out
    assert "A – B" in out
    assert "B – C" in out
    assert "corrected for 3 comparisons by Holm's method" in out
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


def test_systems_that_answer_with_one_of_several_labels_are_noted_once(capsys, tmp_path):
    rows = "".join(f"red apple {i},a|b\nrye bread {i},b\n" for i in range(6))
    (tmp_path / "docs.csv").write_text("text,label\n" + rows)
    several = ("compare", tmp_path / "docs.csv", "--label-separator", "|", *FEW)
    code, out, err = ramify(capsys, *several, "--system", "nb", "--system", "nb:alpha=2")
    assert code == 0, err
    told = "6 documents have more than one label; nb and nb:alpha=2 are trained on all of them, but predict only one."
    assert out.count(told) == 1


def test_every_system_is_compared_where_none_is_named(capsys, tickets, tmp_path):
    options = ("--folds", 2, "--resamples", 20, "--json", "--report", tmp_path / "page.html")
    code, out, err = ramify(capsys, "compare", tickets, *options)
    assert code == 0, err
    facts = json.loads(out)
    assert [each["name"] for each in facts["systems"]] == list(SYSTEMS)
    assert facts["skipped"] == []
    assert len(facts["pairs"]) == len(SYSTEMS) * (len(SYSTEMS) - 1) // 2
    assert facts["recommendation"]["system"] in SYSTEMS
    assert all(name in (tmp_path / "page.html").read_text() for name in SYSTEMS)


def test_all_systems_and_a_variant_of_one_are_taken_once_each():
    made = _new_systems(["all", "nb", "nb:alpha=0.01"], TrainOptions(features=FeatureOptions(min_df=2)))
    assert list(made) == [*SYSTEMS, "nb:alpha=0.01"]
    assert list(_new_systems(["all"], TrainOptions())) == list(SYSTEMS)
    assert made["nb:alpha=0.01"].learner.alpha == 0.01
    assert all(made.pop(name).features.words == {"min_df": 2} for name in ("path-svm", "ensemble"))
    assert all(classifier.features.min_df == 2 for classifier in made.values())


@pytest.fixture
def both_labels(tmp_path):
    """Documents some of which have two labels, in a taxonomy in which a node has two parents, and that taxonomy."""
    (tmp_path / "dag.tsv").write_text("home\t\ntv\thome\nsmart\thome\nsmart tv\ttv\nsmart tv\tsmart\nlamp\tsmart\n")
    rows = "".join(f"screen dark {i},smart tv\nlight bright {i},lamp\nscreen light {i},smart tv|lamp\n" for i in range(8))
    (tmp_path / "docs.csv").write_text("text,label\n" + rows)
    return tmp_path / "docs.csv", "--taxonomy", tmp_path / "dag.tsv", "--label-separator", "|"


def test_a_system_over_main_parents_is_compared_on_a_dag(capsys, both_labels):
    facts = json.loads(ramify(capsys, "compare", *both_labels, *BOTH, "--system", "td-svm", *FEW, "--json")[1])
    assert [each["name"] for each in facts["systems"]] == ["nb", "svm", "td-svm"]


def test_a_system_that_cannot_take_the_data_is_skipped_with_its_reason(capsys, both_labels):
    asked = (*BOTH, "--system", "hsvm")
    code, out, err = ramify(capsys, "compare", *both_labels, *asked, *FEW)
    assert code == 0, err
    assert "Skipped" in out
    assert "hsvm takes one label per document" in " ".join(out.split())
    assert "hsvm was skipped: not usable on these documents." in out
    facts = json.loads(ramify(capsys, "compare", *both_labels, *asked, *FEW, "--json")[1])
    assert [each["name"] for each in facts["systems"]] == ["nb", "svm"]
    assert facts["skipped"][0]["name"] == "hsvm"


def test_fewer_than_two_systems_that_can_take_the_data_are_refused_in_one_line(capsys, both_labels):
    code, out, err = ramify(capsys, "compare", *both_labels, "--system", "nb", "--system", "hsvm", "--system", "ot", *FEW)
    assert (code, out) == (2, "")
    needs_two = "ramify: only 'nb' can be used on these documents, and a comparison needs two; hsvm:"
    assert needs_two in err.splitlines()[-1]
    assert "Traceback" not in err


def test_words_cannot_be_chosen_for_some_systems_so_these_are_left_out_of_all_and_refused_alone(capsys, tickets):
    chosen = ("--select", 5, "--select-scope", "glocal", "--folds", 2, "--resamples", 20)
    facts = json.loads(ramify(capsys, "compare", tickets, *chosen, "--json")[1])
    assert {each["name"] for each in facts["systems"]} == {"pachinko-nb", "treeboost-mh"}
    assert all("'glocal'" in each["reason"] for each in facts["skipped"])
    code, _, err = ramify(capsys, "compare", tickets, *BOTH, *chosen)
    assert code == 2
    assert "'glocal'" in err


# ---- the page -----------------------------------------------------------------------------------------------------------


def test_a_page_is_written(capsys, tickets, tmp_path):
    report = tmp_path / "compared.html"
    code, out, err = ramify(capsys, "compare", tickets, *BOTH, *FEW, "--report", report, "--by", "h_loss")
    assert code == 0, err
    assert f"Report written to {report}" in err
    page = report.read_text()
    assert "Systems on tickets.csv" in page
    assert "compared by H-loss" in page
    assert "same H-loss, 0.000" in page
    assert "same H-loss, 0.000" in out


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_read(capsys, tickets, tmp_path):
    before = (tmp_path / "tickets.csv").read_text()
    for report, reason in {
        tmp_path: "it is a directory",
        tmp_path / "none" / "page.html": "its directory does not exist",
        tickets: "is read by this command and would be overwritten",
    }.items():
        code, out, err = ramify(capsys, "compare", tickets, *BOTH, "--report", report)
        assert (code, out) == (2, "")
        assert reason in err
        assert "documents" not in err
    assert (tmp_path / "tickets.csv").read_text() == before


def test_a_comparison_that_fails_leaves_an_earlier_page_as_it_was(capsys, tickets, tmp_path):
    report = tmp_path / "page.html"
    report.write_text("earlier")
    assert ramify(capsys, "compare", tickets, *BOTH, "--folds", 99, "--report", report)[0] == 2
    assert report.read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


# ---- errors -------------------------------------------------------------------------------------------------------------


ERRORS = {
    "unknown measure": ((*BOTH, "--by", "micro"), "measure 'micro' is unknown; the measures are accuracy, micro_f1"),
    "all of nothing": (("--system", "all", "--system", "al"), "system 'al' is unknown"),
    "bad selection for all": (("--select", "5", "--select-by", "luck"), "measure is 'luck'"),
    "one system": (
        ("--system", "nb"),
        "only 'nb' was given; a comparison needs two: give --system or --rule twice or more, or none for every system",
    ),
    "one model": (("--model", "out"), "only 'out' was given; a comparison needs two: give --model or --rule twice or more"),
    "the same system twice": (("--system", "nb", "--system", "nb"), "--system nb was given twice; give other parameters"),
    "unknown system": (("--system", "nb", "--system", "hr-svn"), "system 'hr-svn' is unknown"),
    "a suggestion": (("--system", "nb", "--system", "hr-svn"), "Did you mean 'hr-svm'"),
    "unknown parameter": (("--system", "nb", "--system", "nb:beta=1"), "beta is not a parameter of nb; it has alpha"),
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


@pytest.mark.parametrize("name", ERRORS)
def test_a_mistake_is_answered_in_one_sentence(capsys, tickets, name):
    options, message = ERRORS[name]
    code, out, err = ramify(capsys, "compare", tickets, *options)
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert err.splitlines()[-1].startswith("ramify: ")
    assert "Traceback" not in err


def test_a_fold_without_two_classes_is_refused(capsys, tmp_path):
    (tmp_path / "few.csv").write_text("text,label\nxx yy,a\nzz ww,b\nuu vv,a\n")
    code, _, err = ramify(capsys, "compare", tmp_path / "few.csv", *BOTH, "--folds", "3")
    assert code == 2
    assert "fewer than two classes are left to train on; give fewer folds, or more documents" in err


def test_an_interruption_ends_a_comparison_at_once(tmp_path):
    rows = "".join(f"parcel late courier {i},Orders > Late\nscreen dark {i},TV > Picture\n" for i in range(300))
    (tmp_path / "docs.csv").write_text("text,label\n" + rows)
    command = [sys.executable, "-m", "ramify.cli.main", "compare", str(tmp_path / "docs.csv"), *BOTH, "--resamples", "10000000"]
    default_interrupts = {"env": dict(os.environ), "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **default_interrupts)
    while "600 documents" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "interrupted" in err
    assert "Traceback" not in err


# ---- systems as they are written ----------------------------------------------------------------------------------------


def test_commas_inside_values_do_not_part_parameters():
    assert parse_system("x:weights=[1,2],C=0.5, mode=fast") == ("x", {"weights": [1, 2], "C": 0.5, "mode": "fast"})
    assert parse_system("nb") == ("nb", {})
    with pytest.raises(InputError, match="a parameter of --system nb is ''"):
        parse_system("nb:")


# ---- tables -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["nb", "svm"], ["a", "b", "c", "d", "treeboost-mh:n_rounds=100,variant=RA"]])
@pytest.mark.parametrize("width", [80, 100, 140])
def test_tables_fit_the_terminal_and_show_every_pair(names, width):
    text = shown(alike(names), width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert "…" not in text
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            assert text.count(f"{'ABCDE'[i]} – {'ABCDE'[j]}") == 1


def test_the_letter_is_the_system_that_is_ahead_where_it_matters():
    assert shown(alike(["x", "y"]), 80).count("0.010 B") == len(TESTS)
    assert shown(alike(["x", "y"], difference=0.1), 80).count("0.010 A") == len(TESTS)
    unsure = shown(alike(["x", "y"], p_value=0.05), 80)
    assert "0.050" in unsure
    assert "0.050 A" not in unsure
    assert "0.050 B" not in unsure
    assert "0.0497 B" in shown(alike(["x", "y"], p_value=0.0497), 80)  # not 0.050, which would be no difference
    assert "<0.001 B" in shown(alike(["x", "y"], p_value=1e-9), 80)


def test_a_test_that_could_not_be_made_is_a_dash():
    text = shown(alike(["x", "y"], p_value=float("nan")), 80)
    assert "nan" not in text
    assert "– where there are fewer than two classes" in text


def test_the_best_is_marked_and_for_a_loss_that_is_the_least():
    found = comparison([system("x", 0.9), system("y", 0.2)])
    first, second = (
        next(line for line in shown(found, 140).splitlines() if line.startswith(f"{letter}  0.")) for letter in "AB"
    )
    assert (first.count("*"), second.count("*")) == (4, 1)
    assert second.rstrip().endswith("0.200* [0.100, 0.300]")


def test_time_memory_notes_and_what_was_left_out_are_shown():
    found = comparison([system("x", seconds=0.25), system("y", seconds=None, memory=None)], notes=["all is well"])
    text = shown(replace(found, skipped=[Skipped("ot", "no [tree] here")]), 80)
    assert "A  x         0.25 s        1,200   20 MB" in text
    assert "B  y              –        1,200       –" in text
    assert "Note: all is well." in text
    assert "ot      no [tree] here" in text


MANY = [f"system-{k}" for k in range(17)]


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("by", list(LABELS))
def test_of_many_systems_no_pair_is_shown_but_each_is_compared_with_the_recommended_one(width, by):
    text = shown(alike(MANY), width, by)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    assert "…" not in text
    assert len(text.splitlines()) < 85
    assert "A – B" not in text
    (head,) = (k for k, line in enumerate(text.splitlines()) if line.startswith("Against A, system-0"))
    rows = text.splitlines()[head + 3 : head + 3 + 16]
    assert [row[0] for row in rows] == list("BCDEFGHIJKLMNOPQ")


def test_of_many_systems_marks_say_who_is_ahead():
    systems = [system(f"s{k}", 0.9 - 0.1 * k) for k in range(6)]
    told = [pair("s1", "s0"), pair("s0", "s2", bootstrap_micro_f1=0.5), pair("s0", "s3", p_value=float("nan"))]
    text = shown(comparison(systems[::-1], told), 80)
    assert text.index("A  s0") < text.index("B  s1")  # best first
    rows = {line[0]: line[3:].split() for line in text[text.index("Against A") :].splitlines() if line[:1] in set("BCDEF")}
    assert rows["B"] == ["−0.100", *["−"] * len(TESTS)]
    assert rows["C"] == ["−0.200", *("·" if test == "bootstrap_micro_f1" else "+" for test in TESTS)]
    assert rows["D"] == ["−0.300", *["–"] * len(TESTS)]
    assert rows["E"] == ["−0.400", *["·"] * len(TESTS)]
    assert "+ significantly better than A, − significantly worse" in text


@pytest.mark.parametrize(
    ("names", "correction", "legend"),
    [
        ("xy", "holm", "one comparison, so not corrected"),
        ("xyz", "holm", "corrected for 3 comparisons by Holm's method"),
        ("xyz", "benjamini-hochberg", "corrected for 3 comparisons by Benjamini and Hochberg's method"),
        ("xyz", "none", "Two-sided, not corrected"),
    ],
)
def test_the_legend_says_what_was_corrected(names, correction, legend):
    assert legend in shown(alike(list(names), correction=correction), 140)


def test_the_legend_says_where_resamples_are_too_few_to_find_anything():
    def legend(names, n_resamples, correction="holm"):
        return " ".join(shown(replace(alike(list(names), correction=correction), n_resamples=n_resamples), 400).split())

    told = "With so few resamples b cannot fall below 0.05; use --resamples 1,120."  # 28 pairs, each twice, in a twentieth
    assert told in legend("abcdefgh", 1000)
    assert "With so few" not in legend("abcdefgh", 1120)
    assert "With so few" not in legend("abcdefgh", 1000, "none")
    assert "With so few" not in legend("abc", 1000)


def test_names_with_brackets_are_shown_as_they_are():
    assert "x:w=[red]" in shown(alike(["x:w=[red]", "y"]), 80)


def test_there_are_letters_for_any_number_of_systems():
    letters = list(letters_of([system(str(k)) for k in range(80)]).values())
    assert letters[:2] == ["A", "B"]
    assert letters[26] == "A2"
    assert len(set(letters)) == 80


# ---- rules --------------------------------------------------------------------------------------------------------------


def test_every_system_is_compared_with_every_rule(capsys, tickets, tmp_path):
    (tmp_path / "costs.csv").write_text("node,cost\nTV,3\n")
    rules = (
        "--rule",
        "top-down",
        "--rule",
        "minimize-h-loss:costs=uniform",
        "--rule",
        f"minimize-h-loss:costs={tmp_path}/costs.csv",
    )
    code, out, err = ramify(capsys, "compare", tickets, "--system", "b-svm", "--system", "h-svm", *rules, *FEW, "--json")
    assert code == 0, err
    names = [each["name"] for each in json.loads(out)["systems"]]
    assert names == [f"{one} + {rule}" for one in ("b-svm", "h-svm") for rule in rules[1::2]]
    assert "costs: 1 of 6 nodes are named; the others have 1." in err


def test_one_rule_for_all_systems_takes_parameters_and_models_take_rules(capsys, tickets, tmp_path):
    isotonic = ("--rule", "isotonic", "--rule-param", "penalty=1", "--rule-param", "at_least_one=true")
    code, out, err = ramify(capsys, "compare", tickets, *BOTH, *isotonic, *FEW)
    assert code == 0, err
    assert "A  nb + isotonic" in out
    assert ramify(capsys, "train", tickets, "--system", "svm", "--model", tmp_path / "m", "--holdout", 0)[0] == 0
    rules = ("--rule", "best", "--rule", "isotonic:penalty=1,at_least_one=true")
    code, out, err = ramify(capsys, "compare", tickets, "--model", tmp_path / "m", *rules, "--resamples", 20, "--json")
    assert code == 0, err
    names = [each["name"] for each in json.loads(out)["systems"]]
    assert names == [f"{tmp_path / 'm'} + {rule}" for rule in rules[1::2]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--system", "nb", "--rule", "best"), "only 'nb' was given; a comparison needs two: give --system or --rule twice"),
        (("--system", "nb", "--rule", "best", "--rule", "best"), "--rule best was given twice"),
        ((*BOTH, "--rule", "bast"), "Did you mean 'best'?"),
        ((*BOTH, "--rule", "best:penalty=3"), "'penalty' is not a parameter of rule 'best'"),
        ((*BOTH, "--rule-param", "penalty=3"), "name the rule with --rule"),
        ((*BOTH, "--rule", "minimize-h-loss:costs=none.csv"), "none.csv: cannot be read"),
    ],
)
def test_rules_that_cannot_be_compared_are_refused(capsys, tickets, given, message):
    code, _, err = ramify(capsys, "compare", tickets, *given, *FEW)
    assert code == 2
    assert message in err
