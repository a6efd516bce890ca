"""How far a measure would move on other documents of the same kind: the bootstrap.

Documents are drawn with replacement, as many as there are, and measured anew, many times (Efron & Tibshirani 1993). Where a
measure needs nothing but sums over documents, a resample is a row of multiplicities, and many are summed in one product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array, hstack

from ramify.errors import InputError
from ramify.execution import row_blocks, stage
from ramify.metrics.counting import Counts, Floats, both
from ramify.metrics.significance import Alternative, check_alternative, same_decisions
from ramify.metrics.sums import macro, micro

Metric = Callable[[csr_array, csr_array], float]
Seed = int | Sequence[int]
TINY = 1e-12  # differences below it are rounding


@dataclass(frozen=True, slots=True)
class BootstrapDifference:
    """How much better A is than B, and how sure that is.

    difference: measure of A less measure of B. low, high: where it lies in 95 of 100 resamples. p_value: twice the share of
    resamples on the wrong side of zero. n: documents.
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
    """The difference of a measure between two systems, resampled over documents; both systems see the same resamples.

    Y_true, A, B: documents × classes. metric: a function of truth and answers, both CSR, higher is better; or one of two names,
    which are quicker. "macro_f1" is the mean over classes that occur in truth or answers: a class that a resample happens to
    miss must not count as perfect.

    >>> T, A, B = [[1, 0], [0, 1]] * 20, [[1, 0], [0, 1]] * 20, [[1, 0], [1, 0]] * 20
    >>> found = paired_bootstrap(T, A, B)
    >>> found.difference, found.low > 0, round(found.p_value, 3)
    (0.5, True, 0.002)
    """
    check_alternative(alternative)
    check_resamples(n_resamples)
    T, A, B = same_decisions(Y_true, A, B)
    check_documents(T.shape[0])
    named = {"micro_f1": micro, "macro_f1": macro}
    if isinstance(metric, str) and metric not in named:
        raise InputError(f"metric is {metric!r}; give 'micro_f1', 'macro_f1', or a function of truth and answers.")
    if isinstance(metric, str):
        observed, drawn = _by_sums(T, A, B, named[metric], n_resamples, seed)
    else:
        observed, drawn = _one_by_one(T, A, B, metric, n_resamples, seed)
    if not np.isfinite(drawn).all():
        raise InputError("the metric gave no number on some resamples; give one that is defined wherever classes are missing.")
    return judge_differences(observed, drawn, T.shape[0], alternative)


def judge_differences(observed: float, drawn: Floats, n_docs: int, alternative: Alternative) -> BootstrapDifference:
    """What a difference is worth, by the differences on resamples."""
    low, high = interval(drawn)
    return BootstrapDifference(observed, low, high, _p_value(drawn, alternative), n_docs, len(drawn))


def resample_sums(rows: csr_array, finish: Callable[[Floats], Floats], n_resamples: int, seed: Seed) -> Floats:
    """What `finish` makes of the columns' sums, for every resample of the rows (rows: documents × what is summed).

    finish: takes the sums of many resamples at once, one resample a row.
    """
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


def interval(values: Floats) -> tuple[float, float]:
    """Where 95 of 100 values lie, as many below as above."""
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


def check_documents(n_docs: int) -> None:
    """Refuse to draw from nothing."""
    if n_docs == 0:
        raise InputError("there are no documents to draw from; give some.")


def check_resamples(n_resamples: int) -> None:
    """Refuse to draw nothing."""
    if n_resamples < 1:
        raise InputError(f"{n_resamples} resamples tell nothing; give 1 or more, such as 1000.")


def _by_sums(
    T: csr_array, A: csr_array, B: csr_array, measure: Callable[..., Floats], n_resamples: int, seed: Seed
) -> tuple[float, Floats]:
    rows = csr_array(hstack([T, both(T, A), A, both(T, B), B], format="csr", dtype=np.float64))

    def difference(sums: Floats) -> Floats:
        true, right_a, said_a, right_b, said_b = np.split(sums, 5, axis=-1)
        return measure(right_a, true, said_a) - measure(right_b, true, said_b)

    observed = float(difference(np.asarray(rows.sum(axis=0)).ravel()))
    return observed, resample_sums(rows, difference, n_resamples, seed)


def _one_by_one(T: csr_array, A: csr_array, B: csr_array, metric: Metric, n_resamples: int, seed: Seed) -> tuple[float, Floats]:
    rng, n_docs = np.random.default_rng(seed), T.shape[0]
    values = np.empty(n_resamples)
    with stage("resampling", n_resamples) as step:
        for k in range(n_resamples):
            drawn: Counts = rng.integers(n_docs, size=n_docs)
            true = T[drawn]
            values[k] = metric(true, A[drawn]) - metric(true, B[drawn])
            step.advance()
    return float(metric(T, A) - metric(T, B)), values


def _p_value(differences: Floats, alternative: Alternative) -> float:
    """The share of resamples on the wrong side of zero, the observed one counted as one of them."""
    n = len(differences) + 1
    not_above = (1 + int((differences <= TINY).sum())) / n
    not_below = (1 + int((differences >= -TINY).sum())) / n
    if alternative == "two-sided":
        return min(1.0, 2 * min(not_above, not_below))
    return not_above if alternative == "greater" else not_below
