"""Comparison of systems on the same documents: measures, costs, and which differences are significant.

Systems are trained and tested on the same folds, or trained on one corpus and tested on another, or, if they are trained
already, only tested. Every document is predicted once, so that all predictions can be pooled for the significance tests. A
system that cannot be used on the data is skipped with its reason. On one computer, systems run one after the other, since
they are timed; on a cluster they run in parallel, each with the threads of one node.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.errors import DataError, InputError
from ramify.metrics import MetricEstimate, correct_p_values, measure_predictions
from ramify.metrics.flat import Counts
from ramify.metrics.resampling import check_resamples, compare_all_predictions, modified_classes
from ramify.metrics.significance import Correction, check_correction
from ramify.parallel import Executor, current_executor, single_stage
from ramify.parallel.progress import SingleStage
from ramify.systems import find_system
from ramify.taxonomy import Taxonomy, as_taxonomy, taxonomy_of_labels
from ramify.workflows.compare_trials import (
    Split,
    Splits,
    Trial,
    TrialContext,
    TrialResult,
    run_remote_trial,
    run_trial,
    warm_up,
)
from ramify.workflows.comparison import Comparison, Pair, Skipped, SystemResult, enough_resamples, join_names
from ramify.workflows.evaluation import check_labels
from ramify.workflows.folds import split_into_folds

Results = Generator[TrialResult | None, None, None]  # of trials, in order
TEST_STEPS = 2  # of the progress bar, for the tests of all pairs


@dataclass(frozen=True, slots=True)
class _Predictions:
    """The predictions of one system, its seconds and megabytes, for each test set."""

    predictions: list[csr_array] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    prediction: list[float] = field(default_factory=list)
    memory: list[float | None] = field(default_factory=list)

    def add(self, result: TrialResult) -> None:
        """Add the predictions for one more test set."""
        self.predictions.append(result.predictions)
        self.prediction.append(result.prediction)
        self.memory.append(result.memory)
        if result.training is not None:
            self.training.append(result.training)


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

    With `test`, they are trained on `corpus` and tested on `test`; without, they are cross-validated. Fitted classifiers
    are tested on the corpus as they are; clone them to train them again. Intervals come from `n_resamples` bootstrap
    resamples of the documents; default: 1,000, or more if many pairs need more. p-values are corrected over all pairs.
    Systems that cannot be used on the data are skipped. Within ``ramify.parallel.running_on(executor)``, systems and folds
    run there in parallel.

    >>> from ramify.data import load_electronics
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
    planned = _splits(classifiers, corpus, test, taxonomy, folds, seed)
    splits = list(planned)
    Y_true = [taxonomy.encode(tested.labels) for _, tested in splits]
    n_steps = len(classifiers) * (len(splits) + 1) + TEST_STEPS
    executor = current_executor()
    with single_stage("comparing", n_steps) as whole:
        context = TrialContext(splits if executor is None else planned, taxonomy, next(iter(classifiers.values())))
        given, skipped = _run_all(classifiers, context, executor, whole)
        settings: dict[str, Any] = {"n_resamples": n_resamples or enough_resamples(len(given), correction), "seed": seed}
        systems = _measure_all(given, Y_true, taxonomy, settings, whole)
        whole.describe("testing pairs")
        pairs = _test_pairs(given, csr_array(vstack(Y_true, format="csr")), taxonomy, correction, settings)
        whole.advance(TEST_STEPS)
    return Comparison(
        documents=sum(len(tested) for _, tested in splits),
        folds=len(splits),
        classes=len(_classes(Y_true, taxonomy)),
        duplicates=sum(_count_duplicates(*each) for each in splits),
        systems=systems,
        pairs=pairs,
        correction=correction,
        **settings,
        skipped=skipped,
        notes=[*_notes({name: classifiers[name] for name in given}, splits), *_notes_on_times(executor)],
    )


def _common_taxonomy(classifiers: Mapping[str, TextClassifier], corpus: Corpus) -> Taxonomy:
    """The taxonomy of all classifiers; refuses a single classifier, and classifiers that cannot be compared."""
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


def _splits(
    classifiers: Mapping[str, TextClassifier], corpus: Corpus, test: Corpus | None, taxonomy: Taxonomy, folds: int, seed: int
) -> Splits:
    """The train/test splits."""
    are_fitted = _is_fitted(next(iter(classifiers.values())))
    if are_fitted and test is not None:
        raise InputError("the systems are trained already; give only the documents to test on.")
    for documents in (corpus,) if test is None else (corpus, test):
        check_labels(documents, taxonomy)
        if len(documents) == 0:
            raise DataError(f"{documents.source} has no labelled documents to compare on.")
    if are_fitted or test is not None:
        return Splits(corpus, test)
    return Splits(corpus, folds=tuple(split_into_folds(corpus, taxonomy, folds, seed)))


def _run_all(
    classifiers: Mapping[str, TextClassifier], context: TrialContext, executor: Executor | None, whole: SingleStage
) -> tuple[dict[str, _Predictions], list[Skipped]]:
    """The predictions of all systems; all run on the first split before any runs on the next, so errors show early."""
    found, skipped = {name: _Predictions() for name in classifiers}, dict[str, Skipped]()
    n_splits = len(context.splits)
    trials = [Trial(name, classifier, k) for k in range(n_splits) for name, classifier in classifiers.items()]
    start = partial(_start, found, n_splits, whole)
    results = _sequential(context, trials, start) if executor is None else _parallel(context, trials, start, executor)
    with closing(results):
        for k in range(n_splits):
            for name, result in zip(classifiers, results, strict=False):  # as many as there are systems
                if result is None:
                    continue
                if result.reason is None:
                    found[name].add(result)
                    whole.advance()
                else:
                    del found[name]
                    skipped[name] = Skipped(name, result.reason)
                    whole.advance(1 + n_splits - k)  # also for the other splits, and for the measures
            _refuse_too_few(found, skipped.values())
    return found, list(skipped.values())


def _start(found: Mapping[str, _Predictions], n_splits: int, whole: SingleStage, trial: Trial) -> bool:
    """Report which trial starts, unless its system was skipped; gives whether it was not."""
    if trial.name in found:
        whole.describe(f"{trial.name}, fold {trial.number + 1} of {n_splits}" if n_splits > 1 else trial.name)
    return trial.name in found


def _sequential(context: TrialContext, trials: Sequence[Trial], start: Callable[[Trial], bool]) -> Results:
    """Trials one after the other, so that none slows another down; None for those of skipped systems."""
    warm_up(context)
    for trial in trials:
        yield run_trial(context, trial) if start(trial) else None


def _parallel(context: TrialContext, trials: Sequence[Trial], start: Callable[[Trial], bool], executor: Executor) -> Results:
    """Trials on a cluster, each with the threads of one node."""
    threads = min(executor.worker_threads)
    blocks = [replace(trial, threads=threads) for trial in trials]
    results = executor.distribute(run_remote_trial, executor.place(context), blocks, threads=threads)
    for trial, result in zip(trials, results, strict=True):
        yield result if start(trial) else None


def _refuse_too_few(left: Mapping[str, _Predictions], skipped: Iterable[Skipped]) -> None:
    """Stop with fewer than two systems, and give the reasons of the others."""
    if len(left) < 2:
        by_reason: dict[str, list[str]] = {}
        for each in skipped:
            by_reason.setdefault(each.reason.rstrip("."), []).append(each.name)
        reasons = "; ".join(f"{join_names(names)}: {reason}" for reason, names in by_reason.items())
        able = f"only {next(iter(left))!r}" if left else "none of the systems"
        raise InputError(f"{able} can be used on these documents, and a comparison needs two; {reasons}.")


def _measure_all(
    given: Mapping[str, _Predictions],
    Y_true: Sequence[csr_array],
    taxonomy: Taxonomy,
    settings: dict[str, Any],
    whole: SingleStage,
) -> list[SystemResult]:
    classes, systems = _classes(Y_true, taxonomy), []
    for name, found in given.items():
        whole.describe(f"measuring {name}")
        measures = measure_predictions(list(zip(Y_true, found.predictions, strict=True)), taxonomy, classes, **settings)
        systems.append(_result(name, found, measures))
        whole.advance()
    return systems


def _classes(Y_true: Sequence[csr_array], taxonomy: Taxonomy) -> Counts:
    return modified_classes(csr_array(vstack(Y_true, format="csr")), taxonomy)


def _result(name: str, found: _Predictions, measures: dict[str, MetricEstimate]) -> SystemResult:
    seconds = float(np.mean(found.training)) if found.training else None
    memory = [megabytes for megabytes in found.memory if megabytes is not None]
    peak = float(np.median(memory)) if memory else None
    n_each = [predictions.shape[0] for predictions in found.predictions]
    speed = float(np.median(np.asarray(n_each) / np.maximum(found.prediction, 1e-9)))
    return SystemResult(name, measures, seconds, speed, peak)


def _test_pairs(
    given: Mapping[str, _Predictions], Y_true: csr_array, taxonomy: Taxonomy, correction: Correction, settings: dict[str, Any]
) -> list[Pair]:
    """Every test of every pair on the pooled predictions; the p-values of each test are corrected over the pairs."""
    pooled = {name: csr_array(vstack(found.predictions, format="csr")) for name, found in given.items()}
    tests = compare_all_predictions(Y_true, pooled, taxonomy, **settings)
    p_values = {test: [found[test].p_value for found in tests.values()] for test in next(iter(tests.values()))}
    corrected = {test: correct_p_values(raw, correction) for test, raw in p_values.items()}
    return [
        Pair(a, b, found, {test: float(p[k]) for test, p in corrected.items()})
        for k, ((a, b), found) in enumerate(tests.items())
    ]


def _notes_on_times(executor: Executor | None) -> list[str]:
    """How comparable times are that were measured on a cluster."""
    if executor is None:
        return []
    least, n_nodes = min(executor.worker_threads), len(executor.worker_threads)
    threads = "1 thread" if least == 1 else f"{least:,} threads"
    if n_nodes == 1:
        return [f"systems were trained and timed on another node, with {threads} each"]
    return [
        f"systems ran in parallel on a cluster, with {threads} each; "
        "they may have slowed each other down, so times are less comparable than on one computer"
    ]


def _notes(compared: Mapping[str, TextClassifier], splits: Sequence[Split]) -> list[str]:
    """A note on systems that predict one label, where documents have more than one."""
    n_multiple = sum(len(labels) > 1 for _, tested in splits for labels in tested.labels)
    names = [name for name, classifier in compared.items() if _predicts_one(classifier)]
    if not n_multiple or not names:
        return []
    are, predict = ("is", "predicts") if len(names) == 1 else ("are", "predict")
    documents = "1 document has" if n_multiple == 1 else f"{n_multiple:,} documents have"
    return [f"{documents} more than one label; {join_names(names)} {are} trained on all of them, but {predict} only one"]


def _predicts_one(classifier: TextClassifier) -> bool:
    is_ruled = _is_fitted(classifier) or classifier.decision is not None
    return not is_ruled and not find_system(classifier.system).is_multi_label


def _count_duplicates(training: Corpus | None, test: Corpus) -> int:
    if training is None or training.has_vectors or test.has_vectors:
        return 0
    texts = set(training.documents)
    return sum(text in texts for text in test.documents)
