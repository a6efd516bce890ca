"""The bootstrap: confidence intervals of metrics, and all significance tests of two or more systems.

Documents are drawn with replacement, as many as there are, and measured again, many times (Efron & Tibshirani 1993).
Metrics that need only sums over documents are computed for many resamples in one matrix product: a resample is a row of
multiplicities. F1 is over the classes of the modified hierarchy (Esuli, Fagni & Sebastiani 2008): the leaves, and a class
of its own for each inner node that is the most specific label of some true document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array, hstack

from ramify.arguments import as_numbers, check_count, check_kind, describe, pairs
from ramify.errors import InputError, suggest
from ramify.metrics import significance
from ramify.metrics.flat import Counts, Floats, both, f1, label_pair, per_document, per_node, ratio
from ramify.metrics.hierarchical import first_errors
from ramify.metrics.significance import Alternative, Proportion, Significance, check_alternative, same_decisions
from ramify.parallel import row_blocks, stage
from ramify.taxonomy import Taxonomy, check_taxonomy, most_specific

MEASURES = ("accuracy", "micro_f1", "macro_f1", "hierarchical_f1", "h_loss")
LOSSES = ("h_loss",)  # the smaller, the better
_PLAIN = 6  # columns before those of classes


def modified_classes(Y_true: Any, taxonomy: Taxonomy) -> Counts:
    """The classes of the modified hierarchy: leaves, and inner nodes that are the most specific label of a true document."""
    own = per_node(most_specific(Y_true, taxonomy))
    return np.flatnonzero(taxonomy.is_leaf | (own > 0))


def on_classes(Y: Any, classes: Counts, taxonomy: Taxonomy) -> csr_array:
    """The most specific labels among some classes (documents × classes); labels at other nodes are dropped."""
    return csr_array(most_specific(Y, taxonomy)[:, classes])


def measure_rows(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, classes: Counts) -> csr_array:
    """The counts of each document, one row each, whose sums determine all metrics."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    correct, true, predicted = per_document(both(T, P)), per_document(T), per_document(P)
    exact, wrong = (true == correct) & (predicted == correct), per_document(first_errors(T, P, taxonomy))
    plain = np.column_stack([np.ones_like(correct), exact, correct, true, predicted, wrong]).astype(np.float64)
    own_true, own_predicted = on_classes(T, classes, taxonomy), on_classes(P, classes, taxonomy)
    parts = [csr_array(plain), both(own_true, own_predicted), own_true, own_predicted]
    return csr_array(hstack(parts, format="csr", dtype=np.float64))


def from_sums(sums: Floats) -> Floats:
    """The metrics, in the order of MEASURES, of documents whose rows add up to `sums` (… × columns of :func:`measure_rows`)."""
    n_docs, exact, correct, true, predicted, wrong = np.moveaxis(sums[..., :_PLAIN], -1, 0)
    own = np.split(sums[..., _PLAIN:], 3, axis=-1)
    return np.stack([exact / n_docs, micro(*own), macro(*own), f1(correct, true, predicted), wrong / n_docs], axis=-1)


def micro(correct: Floats, true: Floats, predicted: Floats) -> Floats:
    """F1 of all classes' counts taken together (… × classes each)."""
    return f1(correct.sum(axis=-1), true.sum(axis=-1), predicted.sum(axis=-1))


def macro(correct: Floats, true: Floats, predicted: Floats) -> Floats:
    """The mean F1 of the classes that occur in truth or predictions (… × classes each)."""
    occurs = true + predicted > 0
    return ratio(np.where(occurs, f1(correct, true, predicted), 0.0).sum(axis=-1), occurs.sum(axis=-1), 0)


@dataclass(frozen=True, slots=True)
class MetricEstimate:
    """A metric with its 95 % bootstrap interval; by_fold: its value on each test set."""

    value: float
    low: float
    high: float
    by_fold: list[float]


def measure_predictions(
    folds: Sequence[tuple[Any, Any]], taxonomy: Taxonomy, classes: Counts, *, n_resamples: int = 1000, seed: int = 0
) -> dict[str, MetricEstimate]:
    """Every metric as the mean over test sets, with its bootstrap interval (folds: Y_true and Y_pred of each).

    F1 is over `classes`; macro F1 is the mean over those that occur in the truth or the predictions of a test set.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear"])
    >>> T, P = food.encode(["apple", "pear"] * 10), food.encode(["apple"] * 20)
    >>> measure_predictions([(T, P)], food, np.array([1, 2]))["accuracy"].value
    0.5
    """
    classes = _node_numbers(classes, taxonomy)
    check_resamples(n_resamples)
    check_count(seed, "seed", least=0)
    test_sets = pairs(folds, "folds", "(Y_true, Y_pred)")
    rows = [measure_rows(Y_true, Y_pred, taxonomy, classes) for Y_true, Y_pred in test_sets]
    if not rows:
        raise InputError("there are no folds; give Y_true and Y_pred of at least one.")
    by_fold = np.stack([from_sums(np.asarray(some.sum(axis=0)).ravel()) for some in rows])
    drawn = np.mean([resample_sums(some, from_sums, n_resamples, [seed, k]) for k, some in enumerate(rows)], axis=0)
    # a resample repeats some documents and misses others, which biases means over rare classes: only its width is used
    drawn += by_fold.mean(axis=0) - drawn.mean(axis=0)
    estimates = {}
    for i, name in enumerate(MEASURES):
        low, high = interval(np.clip(drawn[:, i], 0.0, None if name in LOSSES else 1.0))
        estimates[name] = MetricEstimate(float(by_fold[:, i].mean()), low, high, by_fold[:, i].tolist())
    return estimates


def _node_numbers(classes: Any, taxonomy: Taxonomy) -> Counts:
    """Classes as numbers of nodes."""
    check_taxonomy(taxonomy)
    advice = f"give numbers of nodes, from 0 to {len(taxonomy) - 1}"
    nodes = as_numbers(classes, "classes", advice)
    if nodes.ndim != 1 or not (np.isin(nodes, np.arange(len(taxonomy))).all()):
        raise InputError(f"the classes are not all nodes of the taxonomy; {advice}.")
    return nodes.astype(np.int64)


Metric = Callable[[csr_array, csr_array], float]
Seed = int | Sequence[int]
TINY = 1e-12  # differences below it are rounding


@dataclass(frozen=True, slots=True)
class BootstrapDifference:
    """The difference between A and B in a metric, with its 95 % interval.

    p_value: twice the fraction of resamples on the wrong side of zero. n: documents.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n: int
    n_resamples: int


def paired_bootstrap(
    Y_true: Any,
    A: Any,
    B: Any,
    metric: Metric | Literal["micro_f1", "macro_f1"] = "micro_f1",
    *,
    n_resamples: int = 1000,
    seed: Seed = 0,
    alternative: Alternative = "two-sided",
) -> BootstrapDifference:
    """The difference of a metric between two systems, with paired resamples of the documents.

    Y_true, A, B: documents × classes. metric: a function of truth and predictions, both CSR, higher is better; or one of two
    names, which are faster. "macro_f1" is the mean over classes that occur in truth or predictions: a class that a resample
    misses must not count as perfect.

    >>> T, A, B = [[1, 0], [0, 1]] * 20, [[1, 0], [0, 1]] * 20, [[1, 0], [1, 0]] * 20
    >>> found = paired_bootstrap(T, A, B)
    >>> found.difference, found.low > 0, round(found.p_value, 3)
    (0.5, True, 0.002)
    """
    check_alternative(alternative)
    T, A, B = same_decisions(Y_true, A, B)
    check_resamples(n_resamples, T.shape[0])
    check_seed(seed)
    if not callable(metric):
        named = {"micro_f1": micro, "macro_f1": macro}
        check_kind(metric, str, "metric", allowed := "'micro_f1', 'macro_f1', or a function of truth and predictions")
        if metric not in named:
            raise InputError(f"metric is {metric!r}; give {allowed}.{suggest(metric, named)}")
        measure = named[metric]

        def difference(sums: Floats) -> Floats:
            true, correct_a, predicted_a, correct_b, predicted_b = np.split(sums, 5, axis=-1)
            return measure(correct_a, true, predicted_a) - measure(correct_b, true, predicted_b)

        rows = csr_array(hstack([T, both(T, A), A, both(T, B), B], format="csr", dtype=np.float64))
        observed = float(difference(np.asarray(rows.sum(axis=0)).ravel()))
        drawn = resample_sums(rows, difference, n_resamples, seed)
    else:
        rng, n_docs = np.random.default_rng(seed), T.shape[0]
        observed, drawn = float(metric(T, A) - metric(T, B)), np.empty(n_resamples)
        with stage("resampling", n_resamples) as step:
            for k in range(n_resamples):
                some: Counts = rng.integers(n_docs, size=n_docs)
                drawn[k] = metric(T[some], A[some]) - metric(T[some], B[some])
                step.advance()
    if not np.isfinite(drawn).all():
        raise InputError("the metric gave no number on some resamples; give one that is defined wherever classes are missing.")
    return judge_differences(observed, drawn, T.shape[0], alternative)


def judge_differences(observed: float, drawn: Floats, n_docs: int, alternative: Alternative) -> BootstrapDifference:
    """The interval and p-value of a difference, from the differences on resamples."""
    low, high = interval(drawn)
    # the fraction of resamples on the wrong side of zero; the observed difference counts as one of them
    not_above = (1 + int((drawn <= TINY).sum())) / (len(drawn) + 1)
    not_below = (1 + int((drawn >= -TINY).sum())) / (len(drawn) + 1)
    p = {"two-sided": min(1.0, 2 * min(not_above, not_below)), "greater": not_above, "less": not_below}[alternative]
    return BootstrapDifference(observed, low, high, p, n_docs, len(drawn))


def interval(values: Floats) -> tuple[float, float]:
    """The 2.5th and the 97.5th percentile."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def resample_sums(rows: csr_array, finish: Callable[[Floats], Floats], n_resamples: int, seed: Seed) -> Floats:
    """`finish` of the sums of the columns of every resample of the rows; it gets many resamples at once, one per row."""
    rng, n_docs = np.random.default_rng(seed), rows.shape[0]
    rows = csr_array(rows, dtype=np.float64)
    values: list[Floats] = []
    with stage("resampling", n_resamples) as step:
        for block in row_blocks(n_resamples, 8 * (3 * n_docs + 6 * rows.shape[1]), budget=1 << 25):
            drawn = range(block.start, block.stop)
            times = np.stack([np.bincount(rng.integers(n_docs, size=n_docs), minlength=n_docs) for _ in drawn])
            values.append(finish(np.asarray(times.astype(np.float64) @ rows)))
            step.advance(len(drawn))
    return np.concatenate(values)


def check_resamples(n_resamples: int, n_docs: int = 1) -> None:
    """Refuse a number of resamples below 1, and to draw from no documents."""
    check_count(n_resamples, "n_resamples")
    if n_docs == 0:
        raise InputError("there are no documents to draw from; give some.")


def check_seed(seed: Any) -> None:
    """Refuse what cannot start a random generator."""
    try:
        np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(f"seed is {describe(seed)}; give a whole number of at least 0.") from None


Tested = Significance | BootstrapDifference
_SIMPLE = ("sign", significance.sign_test), ("macro_sign", significance.macro_sign_test), ("t", significance.t_test)
_ON_RANKS = ("rank_t", significance.rank_t_test), ("wilcoxon", significance.wilcoxon_test)
_PROPORTIONS: tuple[Proportion, ...] = ("precision", "recall", "accuracy")


def compare_predictions(
    Y_true: Any,
    A: Any,
    B: Any,
    taxonomy: Taxonomy,
    *,
    alternative: Alternative = "two-sided",
    n_resamples: int = 1000,
    seed: Seed = 0,
) -> dict[str, Tested]:
    """All tests of two systems on the same documents, by name (Y_true, A, B: documents × nodes).

    Differences are above zero where A did better, also in H-loss.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread"])
    >>> T = food.encode(["fruit/apple", "fruit/pear", "bread", "fruit"] * 5)
    >>> B = food.encode(["fruit/apple", "fruit/apple", "bread", "fruit"] * 5)
    >>> found = compare_predictions(T, T, B, food)
    >>> found["sign"].n, found["macro_sign"].n, round(found["sign"].p_value, 3)
    (10, 2, 0.002)
    """
    settings: Any = {"alternative": alternative, "n_resamples": n_resamples, "seed": seed}
    return compare_all_predictions(Y_true, {"A": A, "B": B}, taxonomy, **settings)["A", "B"]


def decision_tests(T: csr_array, A: csr_array, B: csr_array, alternative: Alternative = "two-sided") -> dict[str, Tested]:
    """The tests without resampling, by name (T, A, B: documents × classes)."""
    found: dict[str, Tested] = {name: test(T, A, B, alternative) for name, test in (*_SIMPLE, *_ON_RANKS)}
    return found | {name: significance.proportions_test(T, A, B, name, alternative) for name in _PROPORTIONS}


def draw_measures(rows: csr_array, n_resamples: int, seed: Seed) -> Floats:
    """Every metric on all documents, then on each resample (1 + resamples × metrics), losses negated (rows: measure_rows)."""
    observed = from_sums(np.asarray(rows.sum(axis=0)).ravel())
    signs = np.array([-1.0 if name in LOSSES else 1.0 for name in MEASURES])
    return np.asarray(signs * np.vstack([observed, resample_sums(rows, from_sums, n_resamples, seed)]))


Tests = dict[tuple[str, str], dict[str, Tested]]


def compare_all_predictions(
    Y_true: Any,
    predictions: Mapping[str, Any],
    taxonomy: Taxonomy,
    *,
    alternative: Alternative = "two-sided",
    n_resamples: int = 1000,
    seed: Seed = 0,
) -> Tests:
    """All tests of every pair of systems on the same documents (Y_true and predictions: documents × nodes).

    Each system is resampled once, not once per pair.

    >>> food = Taxonomy.from_paths(["apple", "pear"])
    >>> T, P = food.encode(["apple", "pear"] * 10), food.encode(["apple"] * 20)
    >>> found = compare_all_predictions(T, {"good": T, "poor": P, "same": T}, food, n_resamples=50)
    >>> list(found), found["good", "poor"]["sign"].difference
    ([('good', 'poor'), ('good', 'same'), ('poor', 'same')], 1.0)
    """
    check_alternative(alternative)
    check_kind(predictions, Mapping, "predictions", "a mapping from the name of each system to its predictions")
    check_seed(seed)
    classes = modified_classes(Y_true, taxonomy)
    T = on_classes(label_pair(Y_true, Y_true, taxonomy)[0], classes, taxonomy)
    given = {name: on_classes(label_pair(Y_true, Y, taxonomy)[1], classes, taxonomy) for name, Y in predictions.items()}
    check_resamples(n_resamples, T.shape[0])
    drawn = {}
    with stage("resampling systems", len(given)) as step:
        for name, Y in predictions.items():
            drawn[name] = draw_measures(measure_rows(Y_true, Y, taxonomy, classes), n_resamples, seed)
            step.advance()
    found: Tests = {}
    pairs = list(combinations(given, 2))
    with stage("testing pairs", len(pairs)) as step:
        for a, b in pairs:
            found[a, b] = decision_tests(T, given[a], given[b], alternative)
            for name, column in zip(MEASURES, (drawn[a] - drawn[b]).T, strict=True):
                tested = judge_differences(float(column[0]), column[1:], T.shape[0], alternative)
                found[a, b][f"bootstrap_{name}"] = tested
            step.advance()
    return found
