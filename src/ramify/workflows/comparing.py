"""Comparison of systems on the same documents: measures, costs, and which differences are significant.

Systems are trained and tested on the same folds, or trained on one corpus and tested on another, or, if they are trained
already, only tested. Every document is predicted once, so that all predictions can be pooled for the significance tests. A
system that cannot be used on the data is skipped with its reason. On one computer, systems run one after the other, since
they are timed; on a cluster they run in parallel, each with the threads of one node.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.errors import DataError, InputError
from ramify.metrics import MetricEstimate, correct_p_values, measure_predictions
from ramify.metrics.resampling import check_resamples, compare_all_predictions, modified_classes
from ramify.metrics.significance import Correction, check_correction
from ramify.parallel import Executor, current_executor, single_stage
from ramify.parallel.progress import SingleStage
from ramify.systems import find_system
from ramify.taxonomy import Taxonomy
from ramify.type_hints import checks_types
from ramify.workflows.compare_trials import Splits, Trial, TrialContext, TrialResult, run_remote_trial, run_trial, warm_up
from ramify.workflows.comparison import Comparison, Pair, Skipped, SystemResult, enough_resamples, join_names
from ramify.workflows.evaluation import check_labels
from ramify.workflows.folds import split_into_folds
from ramify.workflows.training import count_duplicates, prepared

Results = Mapping[str, list[TrialResult]]  # of every system, one per split
TEST_STEPS = 2  # of the progress bar, for the tests of all pairs


@checks_types
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
    taxonomy = common_taxonomy(classifiers, corpus)
    planned = _splits(classifiers, corpus, test, taxonomy, folds, seed)
    splits = list(planned)
    Y_true = [taxonomy.encode(tested.labels) for _, tested in splits]
    pooled = csr_array(vstack(Y_true, format="csr"))
    classes = modified_classes(pooled, taxonomy)
    n_steps = len(classifiers) * (len(splits) + 1) + TEST_STEPS
    executor = current_executor()
    with single_stage("comparing", n_steps) as whole:
        first, threads = next(iter(classifiers.values())), 1 if executor is None else min(executor.worker_threads)
        context = TrialContext(splits if executor is None else planned, taxonomy, first, threads)
        found, skipped = _run_all(classifiers, context, executor, whole)
        settings: dict[str, Any] = {"n_resamples": n_resamples or enough_resamples(len(found), correction), "seed": seed}
        systems = []
        for name, results in found.items():
            whole.describe(f"measuring {name}")
            both = [(Y, result.predictions) for Y, result in zip(Y_true, results, strict=True)]
            measures = measure_predictions(both, taxonomy, classes, **settings)
            systems.append(_result(name, results, measures, [Y.shape[0] for Y in Y_true]))
            whole.advance()
        whole.describe("testing pairs")
        pairs = _test_pairs(found, pooled, taxonomy, correction, settings)
        whole.advance(TEST_STEPS)
    notes = list(_notes({name: classifiers[name] for name in found}, [tested for _, tested in splits], executor))
    duplicates = sum(count_duplicates(training, tested) for training, tested in splits if training is not None)
    counts = pooled.shape[0], len(splits), len(classes), duplicates
    return Comparison(*counts, systems, pairs, correction, **settings, skipped=skipped, notes=notes)


def common_taxonomy(classifiers: Mapping[str, TextClassifier], corpus: Corpus) -> Taxonomy:
    """The taxonomy of all classifiers; refuses a single classifier, and classifiers that cannot be compared."""
    if len(classifiers) < 2:
        raise InputError(f"a comparison needs two systems or more, not {len(classifiers)}; give another.")
    if len({_is_fitted(classifier) for classifier in classifiers.values()}) > 1:
        raise InputError("some of the systems are trained and some are not; give either trained ones only, or new ones only.")
    found = {name: each.taxonomy_ if _is_fitted(each) else prepared(each, corpus)[1] for name, each in classifiers.items()}
    first, one = next(iter(found.items()))
    for name, other in found.items():
        arrays = ((one.parent_offsets, other.parent_offsets), (one.parent_nodes, other.parent_nodes))
        if list(one.names) != list(other.names) or not all(np.array_equal(*each) for each in arrays):
            differ = f"{first!r} and {name!r} have different taxonomies"
            raise InputError(f"{differ}; only systems for the same one can be compared.")
    return one


def _is_fitted(classifier: TextClassifier) -> bool:
    return classifier.__sklearn_is_fitted__()


def _splits(
    classifiers: Mapping[str, TextClassifier], corpus: Corpus, test: Corpus | None, taxonomy: Taxonomy, folds: int, seed: int
) -> Splits:
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
) -> tuple[Results, list[Skipped]]:
    """The results of all systems; all run on the first split before any runs on the next, so errors show early."""
    found, skipped = {name: list[TrialResult]() for name in classifiers}, list[Skipped]()
    n_splits = len(context.splits)
    trials = [(name, classifier, k) for k in range(n_splits) for name, classifier in classifiers.items()]

    def start(name: str, _: TextClassifier, k: int) -> bool:
        """Report which trial starts, unless its system was skipped; gives whether it was not."""
        if name in found:
            whole.describe(f"{name}, fold {k + 1} of {n_splits}" if n_splits > 1 else name)
        return name in found

    with closing(_run_trials(context, trials, start, executor)) as results:
        for k in range(n_splits):
            for name, result in zip(classifiers, results, strict=False):  # as many as there are systems
                if result is None:
                    continue
                if result.reason is None:
                    found[name].append(result)
                    whole.advance()
                else:
                    del found[name]
                    skipped.append(Skipped(name, result.reason))
                    whole.advance(1 + n_splits - k)  # also for the other splits, and for the measures
            if len(found) < 2:
                by_reason: dict[str, list[str]] = {}
                for each in skipped:
                    by_reason.setdefault(each.reason.rstrip("."), []).append(each.name)
                reasons = "; ".join(f"{join_names(names)}: {reason}" for reason, names in by_reason.items())
                able = f"only {next(iter(found))!r}" if found else "none of the systems"
                raise InputError(f"{able} can be used on these documents, and a comparison needs two; {reasons}.")
    return found, skipped


def _run_trials(
    context: TrialContext, trials: Sequence[Trial], start: Callable[..., bool], executor: Executor | None
) -> Generator[TrialResult | None, None, None]:
    """The results of trials in order; None for those of skipped systems."""
    if executor is None:  # one after the other, so that none slows another down
        warm_up(context)
        for trial in trials:
            yield run_trial(context, trial) if start(*trial) else None
        return
    results = executor.distribute(run_remote_trial, executor.place(context), trials, threads=context.threads)
    for trial, result in zip(trials, results, strict=True):
        yield result if start(*trial) else None


def _result(
    name: str, results: Sequence[TrialResult], measures: dict[str, MetricEstimate], n_documents: Sequence[int]
) -> SystemResult:
    training = [result.training for result in results if result.training is not None]
    memory = [result.memory for result in results if result.memory is not None]
    speeds = [n / max(result.prediction, 1e-9) for n, result in zip(n_documents, results, strict=True)]
    seconds, peak = float(np.mean(training)) if training else None, float(np.median(memory)) if memory else None
    return SystemResult(name, measures, seconds, float(np.median(speeds)), peak)


def _test_pairs(
    found: Results, Y_true: csr_array, taxonomy: Taxonomy, correction: Correction, settings: dict[str, Any]
) -> list[Pair]:
    """Every test of every pair on the pooled predictions; the p-values of each test are corrected over the pairs."""
    pooled = {name: csr_array(vstack([each.predictions for each in of], format="csr")) for name, of in found.items()}
    tests = compare_all_predictions(Y_true, pooled, taxonomy, **settings)
    p_values = {test: [found[test].p_value for found in tests.values()] for test in next(iter(tests.values()))}
    corrected = {test: correct_p_values(raw, correction) for test, raw in p_values.items()}
    values = [{test: float(p[k]) for test, p in corrected.items()} for k in range(len(tests))]
    return [Pair(a, b, pair, p) for ((a, b), pair), p in zip(tests.items(), values, strict=True)]


def _notes(compared: Mapping[str, TextClassifier], tested: Sequence[Corpus], executor: Executor | None) -> Iterator[str]:
    """Which systems predict one label, where documents have more than one, and how comparable times of a cluster are."""
    n_multiple = sum(len(labels) > 1 for corpus in tested for labels in corpus.labels)
    free = [name for name, classifier in compared.items() if not _is_fitted(classifier) and classifier.decision is None]
    names = [name for name in free if not find_system(compared[name].system).is_multi_label]
    if n_multiple and names:
        are, predict = ("is", "predicts") if len(names) == 1 else ("are", "predict")
        documents = "1 document has" if n_multiple == 1 else f"{n_multiple:,} documents have"
        yield f"{documents} more than one label; {join_names(names)} {are} trained on all of them, but {predict} only one"
    if executor is None:
        return
    least = min(executor.worker_threads)
    threads = "1 thread" if least == 1 else f"{least:,} threads"
    if len(executor.worker_threads) == 1:
        yield f"systems were trained and timed on another node, with {threads} each"
    else:
        slower = "they may have slowed each other down, so times are less comparable than on one computer"
        yield f"systems ran in parallel on a cluster, with {threads} each; {slower}"
