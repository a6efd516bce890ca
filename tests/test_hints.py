"""'Did you mean …': every name that people type gets a hint, in one sentence and with exit code 2."""

import re
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ramify
from ramify.cli.main import RAMIFY, Group, main
from ramify.errors import RamifyError, suggest
from ramify.systems import SYSTEMS

words = st.text("abcdefgh", min_size=3, max_size=8)


@given(st.lists(words, min_size=1, max_size=6, unique=True), st.data())
def test_one_letter_more_less_or_other_or_two_swapped_is_always_near(known, data):
    word = data.draw(st.sampled_from(known))
    k = data.draw(st.integers(0, len(word) - 1))
    swapped = word[:k] + word[k : k + 2][::-1] + word[k + 2 :]
    others = [word[:k] + word[k + 1 :], word[:k] + "z" + word[k:], word[:k] + "z" + word[k + 1 :], swapped]
    typed = data.draw(st.sampled_from(others))
    hint = suggest(typed, known)
    if len(typed) >= 3:
        assert hint.startswith(" Did you mean ")
        named = re.findall(r"'(\w+)'", hint)
        assert 1 <= len(named) <= 2
        assert set(named) <= set(known)


def test_case_hyphens_underscores_and_spaces_come_first():
    assert suggest("HR_SVM", ["hsvm", "h-svm", "hr-svm"]) == " Did you mean 'hr-svm'?"
    assert suggest("Late Parcel", ["late parcels", "late-parcel"]) == " Did you mean 'late-parcel'?"


@pytest.mark.parametrize(("word", "known"), [("", ["a"]), ("x", ["y"]), ("--", ["-"]), ("qqqq", ["svm"]), ("svm", [])])
def test_far_words_get_no_hint(word, known):
    assert suggest(word, known) == ""


@pytest.mark.parametrize("typed", ["svn", "SVM", "smv"])
def test_systems(typed):
    with pytest.raises(RamifyError, match="Did you mean 'svm'"):
        ramify.TextClassifier(typed).fit(["a b"], ["x"])


def test_every_system_is_found_in_other_letters():
    assert all(suggest(name.upper().replace("-", "_"), SYSTEMS).startswith(f" Did you mean {name!r}") for name in SYSTEMS)


def test_taxonomy_nodes(food):
    for typed, meant in (("aple", "apple"), ("Food/Fruit/Apple", "food/fruit/apple"), ("DRINK", "drink")):
        with pytest.raises(RamifyError, match=f"Did you mean '{meant}'"):
            food.index(typed)
    clf = ramify.TextClassifier("nb", food).fit(["red apple", "black tea"], ["apple", "drink"])
    for call in (
        lambda: clf.explain("red", "aple"),
        lambda: ramify.explain(clf, "red", true="aple"),
        lambda: ramify.predict(clf, ["red"], within="aple"),
        lambda: ramify.evaluate(clf, texts=["red"], labels=["aple"]),
    ):
        with pytest.raises(RamifyError, match="Did you mean 'apple'"):
            call()


VALUES = {
    ("ramify.metrics", "macro_f1"): (([[1]], [[1]], "tax"), {"over": "Leaves"}, "leaves"),
    ("ramify.metrics", "sign_test"): (([[1]], [[1]], [[1]]), {"alternative": "two_sided"}, "two-sided"),
    ("ramify.metrics", "proportions_test"): (([[1]], [[1]], [[1]]), {"of": "recal"}, "recall"),
    ("ramify.metrics", "paired_bootstrap"): (([[1]], [[1]], [[1]], "micro-f1"), {}, "micro_f1"),
}


@pytest.mark.parametrize("name", VALUES, ids=lambda name: name[1])
def test_values_of_arguments(name):
    given, settings, meant = VALUES[name]
    function = getattr(import_module(name[0]), name[1])
    flat = ramify.Taxonomy.flat(["x"])
    with pytest.raises(RamifyError, match=f"Did you mean '{meant}'"):
        function(*(flat if each == "tax" else each for each in given), **settings)


PARTS = {
    "Vectorizer": (lambda: ramify.features.Vectorizer(weighting="tfidf").fit(["a b"]), "tf-idf"),
    "analyzer": (lambda: ramify.features.Vectorizer(analyzer="char-wb").fit(["a b"]), "char_wb"),
    "stop words": (lambda: ramify.features.Vectorizer(stop_words="englisch").fit(["a b"]), "english"),
    "stemmer": (lambda: ramify.features.Vectorizer(stemmer="German").fit(["a b"]), "german"),
    "mode": (lambda: ramify.learners.RecursiveSVM(mode="Exact").fit([[1.0], [0.0]], ["a", "b"]), "exact"),
    "negatives": (lambda: ramify.learners.NodeClassifiers(negatives="parents").fit([[1.0], [0.0]], ["a", "b"]), "parent"),
    "ties": (lambda: ramify.learners.ShrinkageNaiveBayes(tie_weights="alway").fit([[1.0], [0.0]], ["a", "b"]), "always"),
    "margin": (lambda: ramify.learners.HierarchicalSVM(margin="three").fit([[1.0], [0.0]], ["a", "b"]), "tree"),
    "solver": (lambda: ramify.learners.OrthogonalTransfer(solver="dual_averaging").fit([[1.0], [0.0]], ["a", "b"]), "dual-averaging"),
    "encoding": (lambda: ramify.data.read_corpus(__file__, encoding="cp-1252x"), "cp1252"),
    "format": (lambda: ramify.write_taxonomy(ramify.Taxonomy.flat(["x"]), "x", "Skos"), "skos"),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_values_of_parts(name):
    call, meant = PARTS[name]
    with pytest.raises(RamifyError, match=f"Did you mean '{meant}'"):
        call()


COMMANDS = {
    "trian": "train", "Train": "train", "taxonomy dif": "diff", "keys lst": "list", "learn": "taxonomy learn",
    "--vresion": "--version", "train {data} --lable x": "--label", "train {data} --Label x": "--label",
    "taxonomy diff --outt x": "--out", "predict m {data} --esacpe-formulas": "--escape-formulas",
    "train {data} --system svn --model {new}": "svm", "train {data} --system nb:alhpa=1 --model {new}": "alpha",
    "train {data} --text bdy --model {new}": "body", "train {data} --label Category --model {new}": "category",
    "train {data} --taxonomy {data} --taxonomy-format edge --model {new}": "edges",
    "train {data} --select 5 --select-by chi-2 --model {new}": "chi2", "train {data} --auto --by micro-f1 --model {new}": "micro_f1",
    "train {data} --rule isotonc --model {new}": "isotonic", "train {data} --rule isotonic:penlty=5 --model {new}": "penalty",
    "train {data} --stop-words English --model {new}": "english",
    "compare {data} --correction Holm": "holm", "compare {data} --by Macro-F1": "macro_f1",
    "evaluate m {data} --hierarchy modifed": "modified", "inspect {data} --as Data": "data",
    "taxonomy learn {data} --linkage Ward --out {new}.tsv": "ward", "keys add {new} ann --role reviw": "review",
    "serve m --log-format JSON": "json", "serve m --log-level warnings": "warning",
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_names_on_the_command_line_get_one_sentence_and_exit_code_2(command, tickets, tmp_path, capsys):
    given = [word.format(data=tickets, new=tmp_path / "new") for word in command.split()]
    if "m" in given:
        ramify.train(tickets, system="nb", model=tmp_path / "m")
        given[given.index("m")] = str(tmp_path / "m")
    assert main(given) == 2
    told = capsys.readouterr().err
    assert f"Did you mean {COMMANDS[command]!r}?" in told
    assert told.startswith("ramify: ")
    assert told.count("\n") == 1


def every_command(group=RAMIFY, above=()):
    for name, entry in group.commands.items():
        yield from every_command(entry, (*above, name)) if isinstance(entry, Group) else [(*above, name)]


@pytest.mark.parametrize("command", list(every_command()), ids=" ".join)
def test_every_command_refuses_an_unknown_option_in_one_sentence(command, capsys):
    assert main([*command, "--hlep"]) == 2
    name = " ".join(("ramify", *command))
    told = f"ramify: {name!r} has no option '--hlep'; see '{name} --help'. Did you mean '--help'?\n"
    assert capsys.readouterr().err == told
