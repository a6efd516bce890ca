"""The measures by which systems are compared, averaged over test sets, with the interval in which they would move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.metrics.counting import Counts, Floats
from ramify.metrics.resampling import interval, resample_sums
from ramify.metrics.sums import LOSSES, MEASURES, from_sums, measure_rows
from ramify.taxonomy import Taxonomy


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


def _measured(by_fold: Floats, drawn: Floats, name: str) -> Measured:
    low, high = interval(np.clip(drawn, 0.0, None if name in LOSSES else 1.0))
    return Measured(float(by_fold.mean()), low, high, by_fold.tolist())
