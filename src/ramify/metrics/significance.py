"""Significance tests of two systems on the same documents, and corrections for multiple comparisons.

A decision is a document–class pair: does the document belong to the class? All tests take boolean matrices of decisions,
documents × classes. Tests on classes compare the F1 of both systems on each class; a class that occurs in neither truth nor
predictions has F1 = 1.

Source: Yang & Liu 1999, section 4 (s-test, S-test, T-test, T'-test, p-test).
Deviation: p-values of sign tests are exact at any size, where the paper uses the normal distribution; Wilcoxon's signed rank
test is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import binomtest, norm, rankdata, ttest_rel, wilcoxon

from ramify.arguments import as_numbers
from ramify.errors import InputError, suggest
from ramify.metrics.flat import Floats, both, f1, per_node, ratio
from ramify.taxonomy.matrices import as_boolean_matrix

Alternative = Literal["two-sided", "greater", "less"]
Proportion = Literal["precision", "recall", "accuracy"]
EXACT, EXACT_TIED = 50, 13  # the exact distribution of signed ranks is used up to so many differences, as SciPy does
DECIMALS = 12  # differences of F1 that agree so far are the same


@dataclass(frozen=True, slots=True)
class Significance:
    """The result of a test.

    p_value: the probability of a statistic at least as extreme if neither system is better. n: decisions or classes that count.
    difference: positive where A did better.
    """

    statistic: float
    p_value: float
    n: int
    difference: float


def sign_test(Y_true: Any, A: Any, B: Any, alternative: Alternative = "two-sided") -> Significance:
    """Micro sign test, s: of the decisions that only one system got right, how many did A?

    statistic: their number. difference: A's fraction of them minus B's.

    >>> sign_test([[1, 0], [0, 1], [1, 0]], [[1, 0], [0, 1], [1, 0]], [[0, 1], [1, 0], [0, 0]])
    Significance(statistic=5.0, p_value=0.0625, n=5, difference=1.0)
    """
    T, A, B = same_decisions(Y_true, A, B)
    apart = A != B
    return _signs(apart.nnz - both(apart, A != T).nnz, apart.nnz, alternative)


def macro_sign_test(Y_true: Any, A: Any, B: Any, alternative: Alternative = "two-sided") -> Significance:
    """Macro sign test, S: of the classes on which F1 differs, on how many is A's higher?

    statistic: their number. difference: A's fraction of them minus B's.

    >>> macro_sign_test([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[0, 1], [1, 0]])
    Significance(statistic=2.0, p_value=0.5, n=2, difference=1.0)
    """
    a, b = class_f1_of_both(Y_true, A, B)
    return _signs(int((a > b).sum()), int((a != b).sum()), alternative)


def t_test(Y_true: Any, A: Any, B: Any, alternative: Alternative = "two-sided") -> Significance:
    """Paired t test, T, on the F1 of each class.

    difference: the mean of A's F1 minus B's. p is 1 where all are equal, and NaN for fewer than two classes.

    >>> t_test([[1, 0], [0, 1], [1, 0]], [[1, 0], [0, 1], [1, 0]], [[1, 0], [1, 1], [0, 1]]).n
    2
    """
    return _paired_t(*class_f1_of_both(Y_true, A, B), alternative)


def rank_t_test(Y_true: Any, A: Any, B: Any, alternative: Alternative = "two-sided") -> Significance:
    """Paired t test, T', on the ranks of the F1 values of both systems together, ties with their mean rank.

    difference: the mean of A's ranks minus B's.

    >>> rank_t_test([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[0, 1], [1, 0]])
    Significance(statistic=inf, p_value=0.0, n=2, difference=2.0)
    """
    a, b = class_f1_of_both(Y_true, A, B)
    ranks = rankdata(np.concatenate([a, b]))
    return _paired_t(ranks[: len(a)], ranks[len(a) :], alternative)


def wilcoxon_test(Y_true: Any, A: Any, B: Any, alternative: Alternative = "two-sided") -> Significance:
    """Wilcoxon's signed rank test, W, on the F1 of each class; classes with equal F1 are left out.

    statistic: the sum of the ranks of positive differences. difference: A's fraction of all ranks minus B's.
    Exact up to 50 classes, or 13 with ties; the normal approximation beyond.

    >>> wilcoxon_test([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 0], [1, 0]]).statistic
    3.0
    """
    check_alternative(alternative)
    a, b = class_f1_of_both(Y_true, A, B)
    apart = np.round((a - b)[a != b], DECIMALS)
    if not len(apart):
        return Significance(0.0, 1.0, 0, 0.0)
    ranks = rankdata(np.abs(apart))
    found = float(ranks[apart > 0].sum())
    if len(apart) > (EXACT if len(np.unique(ranks)) == len(ranks) else EXACT_TIED):
        p_value = float(wilcoxon(apart, zero_method="wilcox", alternative=alternative, method="approx").pvalue)
    else:  # the distribution of the sum of ranks, each counted with probability 1/2; tied ranks may be halves
        sums, at = np.ones(1), round(2 * found)
        for rank in np.rint(2 * ranks).astype(np.int64):
            wider = np.zeros(len(sums) + rank)
            wider[: len(sums)] += sums / 2
            wider[rank:] += sums / 2
            sums = wider
        tails = {"greater": float(sums[at:].sum()), "less": float(sums[: at + 1].sum())}
        p_value = min(1.0, 2 * min(tails.values()) if alternative == "two-sided" else tails[alternative])
    return Significance(found, p_value, len(apart), float(2 * found / ranks.sum() - 1))


def proportions_test(
    Y_true: Any, A: Any, B: Any, of: Proportion = "accuracy", alternative: Alternative = "two-sided"
) -> Significance:
    """Test of two proportions, p: micro precision, micro recall, or the accuracy of decisions.

    statistic: z. n: the decisions behind both proportions. difference: A's minus B's. p is 1 where one is undefined, or
    both are 0 or 1.

    >>> proportions_test([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[1, 0], [1, 0]]).difference
    0.5
    """
    check_alternative(alternative)
    T, A, B = same_decisions(Y_true, A, B)
    if of not in ("precision", "recall", "accuracy"):
        hint = suggest(str(of), ("precision", "recall", "accuracy"))
        raise InputError(f"of is {of!r}; give 'precision', 'recall' or 'accuracy'.{hint}")
    counts = []  # for each system: right decisions, of how many, and the number on the other side
    for Y in (A, B):
        if of == "accuracy":
            n_decisions = T.shape[0] * T.shape[1]
            counts.append((n_decisions - (T != Y).nnz, n_decisions, 0))
        else:
            right = both(T, Y).nnz
            counts.append((right, Y.nnz, T.nnz) if of == "precision" else (right, T.nnz, Y.nnz))
    (right_a, n_a, other_a), (right_b, n_b, other_b) = counts
    difference = float(ratio(right_a, n_a, other_a) - ratio(right_b, n_b, other_b))
    pooled = (right_a + right_b) / max(1, n_a + n_b)
    if n_a == 0 or n_b == 0 or pooled in (0.0, 1.0):
        return Significance(0.0, 1.0, n_a + n_b, difference)
    z = difference / float(np.sqrt(pooled * (1 - pooled) * (1 / n_a + 1 / n_b)))
    tail = {"two-sided": 2 * norm.sf(abs(z)), "greater": norm.sf(z), "less": norm.cdf(z)}
    return Significance(z, float(tail[alternative]), n_a + n_b, difference)


def same_decisions(Y_true: Any, A: Any, B: Any) -> tuple[csr_array, csr_array, csr_array]:
    """Three matrices of the same decisions as boolean CSR; every test reads its input here."""
    T, A, B = (as_boolean_matrix(Y, "a matrix of decisions", "classes") for Y in (Y_true, A, B))
    if not T.shape == A.shape == B.shape:
        shapes = f"{T.shape}, {A.shape} and {B.shape}"
        raise InputError(f"Y_true, A and B have shapes {shapes}; give the same documents and classes three times.")
    return T, A, B


def class_f1_of_both(Y_true: Any, A: Any, B: Any) -> tuple[Floats, Floats]:
    """The F1 of every class, of A and of B; 1 for a class that occurs nowhere."""
    T, A, B = same_decisions(Y_true, A, B)
    of_a, of_b = (f1(per_node(both(T, Y)), per_node(T), per_node(Y)) for Y in (A, B))
    return of_a, of_b


def check_alternative(alternative: str) -> None:
    """Refuse an unknown alternative."""
    if not isinstance(alternative, str) or alternative not in ("two-sided", "greater", "less"):
        hint = suggest(str(alternative), ("two-sided", "greater", "less"))
        raise InputError(f"alternative is {alternative!r}; give 'two-sided', 'greater' (A is better) or 'less'.{hint}")


def _signs(k: int, n: int, alternative: Alternative) -> Significance:
    """The exact test of k heads among n tosses of a fair coin."""
    check_alternative(alternative)
    if n == 0:
        return Significance(0.0, 1.0, 0, 0.0)
    return Significance(float(k), float(binomtest(k, n, alternative=alternative).pvalue), n, (2 * k - n) / n)


def _paired_t(a: Floats, b: Floats, alternative: Alternative) -> Significance:
    check_alternative(alternative)
    n, difference = len(a), a - b
    mean = float(difference.mean()) if n else 0.0
    if n < 2:
        return Significance(float("nan"), float("nan"), n, mean)
    if not difference.any():
        return Significance(0.0, 1.0, n, 0.0)
    if np.ptp(difference) < 10.0**-DECIMALS:  # all equal but for rounding
        surprising = alternative == "two-sided" or (mean > 0) == (alternative == "greater")
        return Significance(float(np.copysign(np.inf, mean)), 0.0 if surprising else 1.0, n, mean)
    found = ttest_rel(a, b, alternative=alternative)
    return Significance(float(found.statistic), float(found.pvalue), n, mean)


Correction = Literal["holm", "bonferroni", "benjamini-hochberg", "none"]
CORRECTIONS = ("holm", "bonferroni", "benjamini-hochberg", "none")


def correct_p_values(p_values: Sequence[float] | Floats, correction: Correction = "holm") -> Floats:
    """p-values corrected for multiple comparisons, in the same order.

    correction: "holm" and "bonferroni" bound the family-wise error rate, and Holm's p-values are never larger;
    "benjamini-hochberg" bounds the false discovery rate; "none" changes nothing. A NaN stays and is not counted.

    >>> correct_p_values([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    check_correction(correction)
    p = np.array(as_numbers(p_values, "p-values", "give numbers from 0 to 1"), dtype=np.float64).ravel()
    if np.any((p < 0) | (p > 1)):
        raise InputError(f"a p-value is {p[(p < 0) | (p > 1)][0]:g}; p-values lie between 0 and 1.")
    made = np.flatnonzero(~np.isnan(p))
    made = made[np.argsort(p[made], kind="stable")]
    m, rank, ascending = len(made), np.arange(1, len(made) + 1), p[made]
    if correction == "bonferroni":
        p[made] = np.minimum(m * ascending, 1.0)
    elif correction == "holm":  # the smallest of m, the next of m - 1, …; none below the one before it
        p[made] = np.minimum(np.maximum.accumulate((m + 1 - rank) * ascending), 1.0)
    elif correction == "benjamini-hochberg":  # m / rank, from the largest down; none above the one after it
        p[made] = np.minimum(np.minimum.accumulate((m / rank * ascending)[::-1])[::-1], 1.0)
    return p


def check_correction(correction: str) -> None:
    """Refuse an unknown correction."""
    if not isinstance(correction, str) or correction not in CORRECTIONS:
        hint = suggest(str(correction), CORRECTIONS)
        raise InputError(f"correction {correction!r} is unknown; the corrections are {', '.join(CORRECTIONS)}.{hint}")
