"""Several systems on the same documents: how good each is, and which differences are more than luck.

Systems are trained and tested on the same folds, or trained on one corpus and tested on another, or, where they are trained
already, only tested. Every document is tested once, so all answers can be pooled for the tests.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.base import clone

from ramify.datasets import Corpus
from ramify.errors import DataError, InputError, RamifyError
from ramify.execution import stage
from ramify.metrics import Measured, compare_answers, correct_p_values, measure_answers
from ramify.metrics.corrections import Correction, check_correction
from ramify.metrics.paired import Tested, modified_classes
from ramify.metrics.resampling import check_resamples
from ramify.pipeline.classifier import TextClassifier
from ramify.pipeline.folds import split_into_folds
from ramify.pipeline.training import check_labels, fitting, train
from ramify.taxonomy import Taxonomy, as_taxonomy, taxonomy_of_labels

Round = tuple[Corpus | None, Corpus]  # documents to learn from, none for a trained model, and documents to test on


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system: its measures, the seconds of one training (None for a trained model), and its speed."""

    name: str
    measures: dict[str, Measured]
    training_seconds: float | None
    documents_per_second: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems put to every test; corrected: p-values, made larger for the number of pairs."""

    a: str
    b: str
    tests: dict[str, Tested]
    corrected: dict[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What :func:`compare` found.

    documents: how many were tested. folds: over how many test sets measures are averaged. classes: of the modified hierarchy.
    seen_before: how many test documents have the text of one that was learnt from.
    """

    documents: int
    folds: int
    classes: int
    seen_before: int
    systems: list[SystemResult]
    pairs: list[Pair]
    correction: str
    n_resamples: int
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON-ready values; what is not a finite number is None."""
        values: dict[str, Any] = _plain(asdict(self))
        return values


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers of one system, and the seconds spent, test set by test set."""

    answers: list[csr_array] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    answering: list[float] = field(default_factory=list)


def compare(
    classifiers: Mapping[str, TextClassifier],
    corpus: Corpus,
    *,
    test: Corpus | None = None,
    folds: int = 5,
    seed: int = 0,
    n_resamples: int = 1000,
    correction: Correction = "holm",
) -> Comparison:
    """Compare classifiers, given by name, on the same documents.

    With `test` they learn from `corpus` and are tested on `test`; without, the corpus is dealt into folds, each tested by what
    learnt from the others. Classifiers that are fitted already are tested on the corpus as they are; clone them to start anew.
    Intervals come from `n_resamples` resamples of the documents; p-values are corrected over all pairs.

    >>> from ramify.datasets import load_electronics
    >>> shop = load_electronics()
    >>> systems = {name: TextClassifier(name, shop.taxonomy) for name in ("shrinkage-nb", "nb")}
    >>> found = compare(systems, shop.train, test=shop.test, n_resamples=100)
    >>> found.systems[0].measures["micro_f1"].value > found.systems[1].measures["micro_f1"].value
    True
    >>> found.pairs[0].corrected["sign"] < 0.05
    True
    """
    check_correction(correction)
    check_resamples(n_resamples)
    taxonomy = _common_taxonomy(classifiers, corpus)
    rounds = _rounds(classifiers, corpus, test, taxonomy, folds, seed)
    Y_true = [taxonomy.encode(tested.labels) for _, tested in rounds]
    pooled = csr_array(vstack(Y_true, format="csr"))
    given = _answer_all(classifiers, rounds, taxonomy)
    classes = modified_classes(pooled, taxonomy)
    settings: dict[str, Any] = {"n_resamples": n_resamples, "seed": seed}
    systems = []
    with stage("measuring", len(given)) as step:
        for name, found in given.items():
            measures = measure_answers(list(zip(Y_true, found.answers, strict=True)), taxonomy, classes, **settings)
            systems.append(_result(name, found, measures, pooled.shape[0]))
            step.advance()
    pairs = _test_pairs(given, pooled, taxonomy, correction, settings)
    seen = sum(_count_seen(*each) for each in rounds)
    return Comparison(pooled.shape[0], len(rounds), len(classes), seen, systems, pairs, correction, **settings)


def _common_taxonomy(classifiers: Mapping[str, TextClassifier], corpus: Corpus) -> Taxonomy:
    """The taxonomy of all classifiers; refuses one classifier alone, and several that cannot be compared."""
    if len(classifiers) < 2:
        raise InputError(f"a comparison needs two systems or more, not {len(classifiers)}; give another.")
    if len({_is_fitted(classifier) for classifier in classifiers.values()}) > 1:
        raise InputError("some of the systems are trained and some are not; give either trained ones only, or new ones only.")
    found = {name: _taxonomy_of(classifier, corpus) for name, classifier in classifiers.items()}
    first, *others = found
    for name in others:
        if not _are_same(found[first], found[name]):
            raise InputError(
                f"{first!r} and {name!r} have different taxonomies; only systems for the same one can be compared."
            )
    return found[first]


def _taxonomy_of(classifier: TextClassifier, corpus: Corpus) -> Taxonomy:
    if _is_fitted(classifier):
        return classifier.taxonomy_
    given = classifier.taxonomy
    return taxonomy_of_labels(corpus.labels, classifier.separator) if given is None else as_taxonomy(given)


def _are_same(one: Taxonomy, other: Taxonomy) -> bool:
    return (
        list(one.names) == list(other.names)
        and np.array_equal(one.parent_offsets, other.parent_offsets)
        and np.array_equal(one.parent_nodes, other.parent_nodes)
    )


def _is_fitted(classifier: TextClassifier) -> bool:
    return classifier.__sklearn_is_fitted__()


def _rounds(
    classifiers: Mapping[str, TextClassifier], corpus: Corpus, test: Corpus | None, taxonomy: Taxonomy, folds: int, seed: int
) -> list[Round]:
    """What is learnt from and tested on, one round a test set."""
    are_fitted = _is_fitted(next(iter(classifiers.values())))
    if are_fitted and test is not None:
        raise InputError("the systems are trained already, so there is nothing to learn; give only the documents to test on.")
    for documents in (corpus,) if test is None else (corpus, test):
        check_labels(documents, taxonomy)
        if len(documents) == 0:
            raise DataError(f"{documents.source} has no labelled documents to compare on.")
    if are_fitted:
        return [(None, corpus)]
    if test is not None:
        return [(corpus, test)]
    parts = split_into_folds(corpus, taxonomy, folds, seed)
    everything = np.arange(len(corpus))
    return [(corpus.take(np.setdiff1d(everything, part)), corpus.take(part)) for part in parts]


def _answer_all(classifiers: Mapping[str, TextClassifier], rounds: Sequence[Round], taxonomy: Taxonomy) -> dict[str, _Answers]:
    """The answers of all systems; all take the first round before any takes the next, so mistakes show early."""
    found = {name: _Answers() for name in classifiers}
    with stage("comparing", len(classifiers) * len(rounds)) as step:
        for learn, tested in rounds:
            for name, classifier in classifiers.items():
                try:
                    _answer(found[name], classifier, learn, tested, taxonomy)
                except RamifyError as error:
                    raise type(error)(f"{name}: {error}") from None
                step.advance()
    return found


def _answer(found: _Answers, classifier: TextClassifier, learn: Corpus | None, tested: Corpus, taxonomy: Taxonomy) -> None:
    """Train, unless nothing is to be learnt from, and answer; both are timed."""
    started = time.perf_counter()
    fitted = classifier if learn is None else _learnt(classifier, learn, taxonomy)
    learnt = time.perf_counter()
    found.answers.append(fitted.predict_matrix(fitting(fitted, tested).documents))
    found.answering.append(time.perf_counter() - learnt)
    if learn is not None:
        found.training.append(learnt - started)


def _learnt(classifier: TextClassifier, learn: Corpus, taxonomy: Taxonomy) -> TextClassifier:
    # the taxonomy of all documents, also of those that are not learnt from
    return train(clone(classifier).set_params(taxonomy=taxonomy), learn, share=0).classifier


def _result(name: str, found: _Answers, measures: dict[str, Measured], n_docs: int) -> SystemResult:
    seconds = float(np.mean(found.training)) if found.training else None
    return SystemResult(name, measures, seconds, n_docs / max(sum(found.answering), 1e-9))


def _test_pairs(
    given: Mapping[str, _Answers], Y_true: csr_array, taxonomy: Taxonomy, correction: Correction, settings: dict[str, Any]
) -> list[Pair]:
    """Every test of every pair on the pooled answers, p-values corrected over the pairs for each test."""
    pooled = {name: csr_array(vstack(found.answers, format="csr")) for name, found in given.items()}
    chosen = list(combinations(pooled, 2))
    tests: list[dict[str, Tested]] = []
    with stage("testing pairs", len(chosen)) as step:
        for a, b in chosen:
            tests.append(compare_answers(Y_true, pooled[a], pooled[b], taxonomy, **settings))
            step.advance()
    corrected = {test: correct_p_values([found[test].p_value for found in tests], correction) for test in tests[0]}
    return [
        Pair(a, b, found, {test: float(p[k]) for test, p in corrected.items()})
        for k, ((a, b), found) in enumerate(zip(chosen, tests, strict=True))
    ]


def _count_seen(learn: Corpus | None, tested: Corpus) -> int:
    if learn is None or learn.has_vectors or tested.has_vectors:
        return 0
    seen = set(learn.documents)
    return sum(text in seen for text in tested.documents)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
