"""The measures by which systems are compared, averaged over test sets, with the interval in which they would move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from ramify.metrics.counting import Counts, Floats, both, f1, label_pair, per_document
from ramify.metrics.h_loss import first_mistakes
from ramify.metrics.paired import on_classes
from ramify.metrics.resampling import interval, macro, micro, resample_sums
from ramify.taxonomy import Taxonomy

MEASURES = ("accuracy", "micro_f1", "macro_f1", "hierarchical_f1", "h_loss")
LOSSES = ("h_loss",)  # the smaller, the better
_PLAIN = 6  # columns before those of classes


@dataclass(frozen=True, slots=True)
class Measured:
    """A measure, and between which values 95 of 100 resamples spread around it; by_fold: its value on each test set."""

    value: float
    low: float
    high: float
    by_fold: list[float]


def measure_answers(
    folds: Sequence[tuple[Any, Any]], taxonomy: Taxonomy, classes: Counts, *, n_resamples: int = 1000, seed: int = 0
) -> dict[str, Measured]:
    """Every measure as the mean over test sets, with an interval by resampling the documents of each (folds: Y_true, Y_pred).

    F1 is over `classes`; macro F1 is the mean over those that occur in the truth or in the answers of a test set.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear"])
    >>> T, P = food.encode(["apple", "pear"] * 10), food.encode(["apple"] * 20)
    >>> measure_answers([(T, P)], food, np.array([1, 2]))["accuracy"].value
    0.5
    """
    rows = [measure_rows(Y_true, Y_pred, taxonomy, classes) for Y_true, Y_pred in folds]
    by_fold = np.stack([from_sums(np.asarray(some.sum(axis=0)).ravel()) for some in rows])
    drawn = np.mean([resample_sums(some, from_sums, n_resamples, [seed, k]) for k, some in enumerate(rows)], axis=0)
    # a resample repeats some documents and misses others, which moves means over rare classes: only its spread is used
    drawn += by_fold.mean(axis=0) - drawn.mean(axis=0)
    return {name: _measured(by_fold[:, i], drawn[:, i], name) for i, name in enumerate(MEASURES)}


def measure_rows(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, classes: Counts) -> csr_array:
    """What the sums over documents must hold for all measures: one row a document."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    shared, true, said = per_document(both(T, P)), per_document(T), per_document(P)
    exact, wrong = (true == shared) & (said == shared), per_document(first_mistakes(T, P, taxonomy))
    plain = np.column_stack([np.ones_like(shared), exact, shared, true, said, wrong]).astype(np.float64)
    own_true, own_said = on_classes(T, classes, taxonomy), on_classes(P, classes, taxonomy)
    parts = [csr_array(plain), both(own_true, own_said), own_true, own_said]
    return csr_array(hstack(parts, format="csr", dtype=np.float64))


def from_sums(sums: Floats) -> Floats:
    """The measures, in the order of MEASURES, of a set of documents whose rows add up to `sums`."""
    n_docs, exact, shared, true, said, wrong = sums[:_PLAIN]
    own = np.split(sums[_PLAIN:], 3)
    return np.array([exact / n_docs, micro(*own), macro(*own), float(f1(shared, true, said)), wrong / n_docs])


def _measured(by_fold: Floats, drawn: Floats, name: str) -> Measured:
    low, high = interval(np.clip(drawn, 0.0, None if name in LOSSES else 1.0))
    return Measured(float(by_fold.mean()), low, high, by_fold.tolist())
