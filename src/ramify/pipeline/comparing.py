"""Several systems on the same documents: how good each is, and which differences are more than luck.

Systems are trained and tested on the same folds, or trained on one corpus and tested on another, or, where they are trained
already, only tested. Every document is tested once, so all answers can be pooled for the tests. A system that cannot take the
data is left out with its reason; what the others did stays.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack
from sklearn.base import clone

from ramify.datasets import Corpus
from ramify.errors import DataError, InputError, RamifyError
from ramify.execution import as_one_stage
from ramify.execution.progress import Whole
from ramify.metrics import Measured, correct_p_values, measure_answers
from ramify.metrics.all_pairs import compare_all_answers
from ramify.metrics.corrections import Correction, check_correction
from ramify.metrics.counting import Counts
from ramify.metrics.resampling import check_resamples
from ramify.metrics.sums import modified_classes
from ramify.pipeline.classifier import TextClassifier
from ramify.pipeline.comparison import Comparison, Pair, Skipped, SystemResult, enough_resamples, in_words
from ramify.pipeline.folds import split_into_folds
from ramify.pipeline.memory import watching_memory
from ramify.pipeline.training import check_labels, fitting, train
from ramify.systems import find_system
from ramify.taxonomy import Taxonomy, as_taxonomy, taxonomy_of_labels

Round = tuple[Corpus | None, Corpus]  # documents to learn from, none for a trained model, and documents to test on
WARMING = 200  # documents that are learnt from and answered before anything is measured
TESTING = 2  # steps of the progress bar that the tests of all pairs are worth
NO_MEMORY = "there is not enough memory for it; use fewer documents or terms."


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers of one system, the seconds spent and the megabytes needed, test set by test set."""

    answers: list[csr_array] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    answering: list[float] = field(default_factory=list)
    memory: list[float | None] = field(default_factory=list)


def compare(
    classifiers: Mapping[str, TextClassifier],
    corpus: Corpus,
    *,
    test: Corpus | None = None,
    folds: int = 5,
    seed: int = 0,
    n_resamples: int | None = None,
    correction: Correction = "holm",
) -> Comparison:
    """Compare classifiers, given by name, on the same documents.

    With `test` they learn from `corpus` and are tested on `test`; without, the corpus is dealt into folds, each tested by what
    learnt from the others. Classifiers that are fitted already are tested on the corpus as they are; clone them to start anew.
    Intervals come from `n_resamples` resamples of the documents; without a number, from 1,000, or more where there are so many
    pairs that fewer could not tell. p-values are corrected over all pairs. What cannot take the data is left out.

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
    if n_resamples is not None:
        check_resamples(n_resamples)
    taxonomy = _common_taxonomy(classifiers, corpus)
    rounds = _rounds(classifiers, corpus, test, taxonomy, folds, seed)
    Y_true = [taxonomy.encode(tested.labels) for _, tested in rounds]
    n_steps = len(classifiers) * (len(rounds) + 1) + TESTING
    with as_one_stage("comparing", n_steps) as whole:
        given, skipped = _answer_all(classifiers, rounds, taxonomy, whole)
        settings: dict[str, Any] = {"n_resamples": n_resamples or enough_resamples(len(given), correction), "seed": seed}
        systems = _measure_all(given, Y_true, taxonomy, settings, whole)
        whole.tell("testing pairs")
        pairs = _test_pairs(given, csr_array(vstack(Y_true, format="csr")), taxonomy, correction, settings)
        whole.advance(TESTING)
    return Comparison(
        documents=sum(len(tested) for _, tested in rounds),
        folds=len(rounds),
        classes=len(_classes(Y_true, taxonomy)),
        seen_before=sum(_count_seen(*each) for each in rounds),
        systems=systems,
        pairs=pairs,
        correction=correction,
        **settings,
        skipped=skipped,
        notes=_notes({name: classifiers[name] for name in given}, rounds),
    )


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


def _answer_all(
    classifiers: Mapping[str, TextClassifier], rounds: Sequence[Round], taxonomy: Taxonomy, whole: Whole
) -> tuple[dict[str, _Answers], list[Skipped]]:
    """The answers of all systems; all take the first round before any takes the next, so mistakes show early."""
    _warm_up(next(iter(classifiers.values())), *rounds[0], taxonomy)
    found = {name: _Answers() for name in classifiers}
    skipped: dict[str, Skipped] = {}
    for k, (learn, tested) in enumerate(rounds):
        for name in list(found):
            whole.tell(f"{name}, fold {k + 1} of {len(rounds)}" if len(rounds) > 1 else name)
            reason = _try_answer(found[name], classifiers[name], learn, tested, taxonomy)
            whole.advance()
            if reason is not None:
                del found[name]
                skipped[name] = Skipped(name, reason)
                whole.advance(len(rounds) - k)  # what it will not do: the other rounds, and being measured
        _refuse_too_few(found, skipped.values())
    return found, list(skipped.values())


def _warm_up(classifier: TextClassifier, learn: Corpus | None, tested: Corpus, taxonomy: Taxonomy) -> None:
    """Let libraries load what they load when first used, or the first system would pay for all in time and memory."""
    few = None if learn is None else learn.take(range(min(WARMING, len(learn))))
    _try_answer(_Answers(), classifier, few, tested.take(range(min(WARMING, len(tested)))), taxonomy)


def _try_answer(
    found: _Answers, classifier: TextClassifier, learn: Corpus | None, tested: Corpus, taxonomy: Taxonomy
) -> str | None:
    """Let a system answer, and measure the memory that it needs; or say why it cannot."""
    try:
        with watching_memory() as height:
            _answer(found, classifier, learn, tested, taxonomy)
    except RamifyError as error:
        return str(error)
    except MemoryError:
        return NO_MEMORY
    found.memory.append(height.megabytes)
    return None


def _refuse_too_few(left: Mapping[str, _Answers], skipped: Iterable[Skipped]) -> None:
    """Refuse to go on with fewer than two systems, and say why the others cannot take the data."""
    if len(left) < 2:
        by_reason: dict[str, list[str]] = {}
        for each in skipped:
            by_reason.setdefault(each.reason.rstrip("."), []).append(each.name)
        reasons = "; ".join(f"{in_words(names)}: {reason}" for reason, names in by_reason.items())
        able = f"only {next(iter(left))!r}" if left else "none of the systems"
        raise InputError(f"{able} can take these documents, and a comparison needs two; {reasons}.")


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


def _measure_all(
    given: Mapping[str, _Answers], Y_true: Sequence[csr_array], taxonomy: Taxonomy, settings: dict[str, Any], whole: Whole
) -> list[SystemResult]:
    classes, systems = _classes(Y_true, taxonomy), []
    for name, found in given.items():
        whole.tell(f"measuring {name}")
        measures = measure_answers(list(zip(Y_true, found.answers, strict=True)), taxonomy, classes, **settings)
        systems.append(_result(name, found, measures))
        whole.advance()
    return systems


def _classes(Y_true: Sequence[csr_array], taxonomy: Taxonomy) -> Counts:
    return modified_classes(csr_array(vstack(Y_true, format="csr")), taxonomy)


def _result(name: str, found: _Answers, measures: dict[str, Measured]) -> SystemResult:
    seconds = float(np.mean(found.training)) if found.training else None
    memory = [megabytes for megabytes in found.memory if megabytes is not None]
    height = float(np.median(memory)) if memory else None
    n_each = [answers.shape[0] for answers in found.answers]
    speed = float(np.median(np.asarray(n_each) / np.maximum(found.answering, 1e-9)))
    return SystemResult(name, measures, seconds, speed, height)


def _test_pairs(
    given: Mapping[str, _Answers], Y_true: csr_array, taxonomy: Taxonomy, correction: Correction, settings: dict[str, Any]
) -> list[Pair]:
    """Every test of every pair on the pooled answers, p-values corrected over the pairs for each test."""
    pooled = {name: csr_array(vstack(found.answers, format="csr")) for name, found in given.items()}
    tests = compare_all_answers(Y_true, pooled, taxonomy, **settings)
    p_values = {test: [found[test].p_value for found in tests.values()] for test in next(iter(tests.values()))}
    corrected = {test: correct_p_values(raw, correction) for test, raw in p_values.items()}
    return [
        Pair(a, b, found, {test: float(p[k]) for test, p in corrected.items()})
        for k, ((a, b), found) in enumerate(tests.items())
    ]


def _notes(compared: Mapping[str, TextClassifier], rounds: Sequence[Round]) -> list[str]:
    """What is good to know about systems that answer with one label, where documents have several."""
    several = sum(len(labels) > 1 for _, tested in rounds for labels in tested.labels)
    names = [name for name, classifier in compared.items() if _gives_one(classifier)]
    if not several or not names:
        return []
    learns, answers = ("learns", "answers") if len(names) == 1 else ("learn", "answer")
    documents = "1 document has" if several == 1 else f"{several:,} documents have"
    return [f"{documents} several labels; {in_words(names)} {learns} from all, and {answers} with one"]


def _gives_one(classifier: TextClassifier) -> bool:
    is_ruled = _is_fitted(classifier) or classifier.decision is not None
    return not is_ruled and not find_system(classifier.system).several_labels


def _count_seen(learn: Corpus | None, tested: Corpus) -> int:
    if learn is None or learn.has_vectors or tested.has_vectors:
        return 0
    seen = set(learn.documents)
    return sum(text in seen for text in tested.documents)
