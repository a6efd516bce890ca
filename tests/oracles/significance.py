"""Significance tests as their definitions read, on plain lists; scipy only for distributions."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import stats


def f1_of_class(true: list[bool], said: list[bool]) -> float:
    tp = sum(t and s for t, s in zip(true, said, strict=True))
    size = sum(true) + sum(said)
    return 1.0 if size == 0 else 2 * tp / size


def class_f1(T: np.ndarray, Y: np.ndarray) -> list[float]:
    return [f1_of_class(T[:, c].tolist(), Y[:, c].tolist()) for c in range(T.shape[1])]


def counts_of_signs(T: np.ndarray, A: np.ndarray, B: np.ndarray) -> tuple[int, int]:
    """How many decisions one system alone got right, and how many of these A."""
    n = k = 0
    for d, c in itertools.product(range(T.shape[0]), range(T.shape[1])):
        a, b = A[d, c] == T[d, c], B[d, c] == T[d, c]
        n += bool(a) != bool(b)
        k += bool(a) and not b
    return n, k


def binomial_p(k: int, n: int, alternative: str) -> float:
    """Exact, by summing the chances of all outcomes that are no likelier."""
    chance = [math.comb(n, i) / 2**n for i in range(n + 1)]
    if alternative == "greater":
        return sum(chance[k:])
    if alternative == "less":
        return sum(chance[: k + 1])
    return min(1.0, sum(p for p in chance if p <= chance[k] * (1 + 1e-9)))


def t_p(a: list[float], b: list[float], alternative: str) -> tuple[float, float]:
    d = [x - y for x, y in zip(a, b, strict=True)]
    n, mean = len(d), sum(d) / len(d)
    spread = math.sqrt(sum((x - mean) ** 2 for x in d) / (n - 1))
    t = mean / (spread / math.sqrt(n))
    tails = {"two-sided": 2 * stats.t.sf(abs(t), n - 1), "greater": stats.t.sf(t, n - 1), "less": stats.t.cdf(t, n - 1)}
    return t, tails[alternative]


def average_ranks(values: list[float]) -> list[float]:
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]


def signed_rank_p(differences: list[float], alternative: str) -> float:
    """Exact: every way to give signs to the ranks is equally likely."""
    d = [x for x in differences if x]
    ranks = average_ranks([abs(x) for x in d])
    observed = sum(r for r, x in zip(ranks, d, strict=True) if x > 0)
    sums = [sum(r for r, up in zip(ranks, signs, strict=True) if up) for signs in itertools.product([0, 1], repeat=len(d))]
    above, below = (sum(s >= observed for s in sums) / len(sums), sum(s <= observed for s in sums) / len(sums))
    return {"two-sided": min(1.0, 2 * min(above, below)), "greater": above, "less": below}[alternative]


def bootstrap_p(differences: list[float], alternative: str) -> float:
    n = len(differences) + 1
    at_most, at_least = (sum(d <= 0 for d in differences) + 1) / n, (sum(d >= 0 for d in differences) + 1) / n
    return {"two-sided": min(1.0, 2 * min(at_most, at_least)), "greater": at_most, "less": at_least}[alternative]
