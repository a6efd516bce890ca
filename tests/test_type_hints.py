"""Every option and every argument of the workflows refuses a wrong type in one sentence, because its type hint is checked."""

import inspect
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import ramify
from ramify import TextClassifier, workflows
from ramify.data import Corpus, find_files, open_file_set
from ramify.errors import InputError, RamifyError
from ramify.type_hints import check_hint
from ramify.workflows.updating import UpdateOptions, update_model

TEXTS = ["red apple", "green pear", "old phone", "new tv"] * 5
LABELS = [["food/apple"], ["food/pear"], ["tech/phone"], ["tech/tv"]] * 5
CORPUS = Corpus("memory", TEXTS, LABELS)
FITTED = TextClassifier("nb", n_jobs=1).fit(TEXTS, LABELS)
OPTIONS = (
    workflows.FeatureOptions, workflows.ReadOptions, workflows.TuneOptions, workflows.TrainOptions, workflows.PredictOptions,
    UpdateOptions,
)  # fmt: skip
WRONG = [1j, object(), b"a", np.zeros(3), {1, 2}, Exception, "\ud800", 10**30]
NEW = TextClassifier("nb", n_jobs=1)
GOOD = {
    ramify.train: {"data": CORPUS, "options": ramify.TrainOptions(system="nb", n_jobs=1)},
    workflows.train_classifier: {"classifier": NEW, "corpus": CORPUS},
    ramify.evaluate: {"classifier": FITTED, "corpus": CORPUS},
    workflows.evaluate_with_errors: {"classifier": FITTED, "corpus": CORPUS},
    ramify.compare: {"classifiers": {"a": FITTED, "b": FITTED}, "corpus": CORPUS, "n_resamples": 10},
    ramify.audit: {"classifier": NEW, "corpus": CORPUS, "folds": 2},
    ramify.update: {"classifier": FITTED, "texts": TEXTS, "labels": LABELS},
    ramify.tune: {"classifier": NEW, "corpus": CORPUS},
    update_model: {"model": "none", "options": UpdateOptions()},
    workflows.predict_files: {"model": "none", "data": ".", "out": "out"},
    workflows.predict_rows: {"classifier": FITTED, "rows": [], "text": "text"},
    workflows.predict_vectors: {"classifier": FITTED, "corpus": CORPUS},
    find_files: {"source": "."},
    open_file_set: {"source": ".", "encoding": "utf-8"},
    workflows.Predictor: {"classifier": FITTED},
}
ARGUMENTS = [(call, name) for call in GOOD for name in inspect.signature(call).parameters]


def is_one_sentence(error):
    return str(error).endswith(".") and "\n" not in str(error)


@pytest.mark.parametrize(("made", "name"), [(made, each.name) for made in OPTIONS for each in fields(made)])
def test_an_option_of_a_wrong_type_is_refused_when_it_is_given(made, name):
    made()
    for wrong in WRONG:
        with pytest.raises(InputError) as caught:
            made(**{name: wrong})
        assert is_one_sentence(caught.value)
        assert str(caught.value).startswith(f"{name} is ")


@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_an_argument_of_a_wrong_type_is_refused(call, name):
    for wrong in (1j, object()):
        with pytest.raises(RamifyError) as caught:
            call(**{**GOOD[call], name: wrong})
        assert is_one_sentence(caught.value)


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        ("x", int | None, "it is 'x'; give a whole number, or None."),
        (True, int, "it is True; give a whole number."),
        (1, bool, "it is 1; give True or False."),
        (1, str | Path | Corpus, "it is 1; give a path or a Corpus."),
        ("ab", tuple[str, ...], "it is 'ab'; give a list."),
        (["a", 1], tuple[str, ...], "entry 2 of it is 1; give a string."),
        ({"a": 1}, dict[str, int] | list[int] | None, None),
        (3, float, None),
        (np.int64(3), int, None),
        (np.float32(3), float, None),
        (np.True_, bool, None),
        (1 << 64, int, f"it is {1 << 64}; give a number of at most 63 bits."),
        ("\ud800", str, r"it is '\ud800', with a lone surrogate, which is not valid text; give another string."),
        ("a\udcff", str | Path, None),  # the name of a file that is not UTF-8
        ("a\0", str | Path, r"it is 'a\x00', which no file can be called; give another path."),
    ],
)
def test_a_value_is_compared_with_its_hint(value, hint, message):
    if message is None:
        check_hint(value, hint, "it")
        return
    with pytest.raises(InputError) as caught:
        check_hint(value, hint, "it")
    assert str(caught.value) == message


@pytest.mark.parametrize("seed", [-1, -(10**30)])
def test_a_negative_seed_is_refused(seed):
    for call in (
        lambda: ramify.train(CORPUS, ramify.TrainOptions(system="nb", seed=seed)),
        lambda: ramify.audit(NEW, CORPUS, seed=seed),
    ):
        with pytest.raises(InputError, match="seed is"):
            call()


@pytest.mark.parametrize("started_at", [float("nan"), float("inf")])
def test_a_time_that_never_came_is_refused(started_at):
    wanted = ramify.TrainOptions(tune=ramify.TuneOptions(started_at=started_at), n_jobs=1)
    with pytest.raises(InputError, match="started is .*; give a time of the clock"):
        ramify.train(CORPUS, wanted)


def test_what_is_not_trained_yet_is_said_to_be_so():
    for call in (ramify.evaluate, lambda new, _: ramify.update(new), lambda new, _: workflows.Predictor(new)):
        with pytest.raises(ValueError, match="this TextClassifier is not fitted yet; call 'fit' first"):
            call(NEW, CORPUS)


@pytest.mark.parametrize("labels", [None, [], [1.5], LABELS[:3], "food/apple"])
def test_an_update_refuses_labels_that_do_not_fit_its_texts(labels):
    with pytest.raises(RamifyError):
        ramify.update(FITTED, FITTED.taxonomy_, TEXTS, labels)


def test_an_update_takes_one_label_per_text_as_fit_does():
    assert ramify.update(FITTED, None, TEXTS, [label for (label,) in LABELS]).documents == 20


def test_an_audit_without_tiny_classes_reports_the_others():
    found = ramify.audit(
        NEW, Corpus("memory", [f"{text} {i}" for i, text in enumerate(TEXTS)], LABELS), folds=2, min_documents=0
    )
    assert all(each.kind != "tiny" for each in found.classes)
