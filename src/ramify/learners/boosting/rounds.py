"""AdaBoost.MH: rounds of boosting over the classes of one set of documents.

    D_1(i, c) = 1 / (documents × classes)
    Φ_s       = the stump, on the presence of one term, with the least Z_s = Σ_i,c D_s(i, c) exp(−y_ic Φ_s(i, c))
    D_s+1     = D_s(i, c) exp(−y_ic Φ_s(i, c)) / Z_s

W⁺ and W⁻ of a class c and an x (the term is there, or not) are the weights of the documents with that x that have the class,
and that do not. Variants, after Schapire & Singer 2000:

    R    votes ½ ln((W⁺ + ε) / (W⁻ + ε));                                  Z = 2 Σ_c Σ_x √(W⁺ W⁻)
    RA   the same where the term is, 0 where it is not;                    Z = weight without the term + 2 Σ_c √(W⁺ W⁻)
    D    ±α, α = ½ ln((1 + r + ε) / (1 − r + ε)), r = Σ_c Σ_x |W⁺ − W⁻|;   Z = √(1 − r²)

Source: Esuli, Fagni & Sebastiani 2008, section 2; ε = 1 / (documents × classes).
Deviations: of terms whose Z is within a billionth of the least, the first is taken, so that rounding decides nothing; for the
same reason discrete votes say no where W⁺ is not larger than W⁻ by a billionth; and weights of documents count as repetitions
would, in ε as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.execution import heed_deadline
from ramify.learners.boosting.committee import Committee, Floats, Ints
from ramify.learners.boosting.problems import Problem
from ramify.native import boost_in_place

VARIANTS = ("R", "RA", "D")
SPELL = 64  # rounds between two looks at the clock, after which all sums are made anew,
LONG = 600_000_000  # or fewer, so that no more pairs of terms and classes are looked at in between


def boost(problem: Problem, variant: str, n_rounds: int) -> Iterator[Committee]:
    """Committees of more and more rounds, a few rounds at a time, the last of which has all that are wanted."""
    columns, matrices = problem.compact()
    problem.refuse_huge(len(columns))
    done = Committee.empty(problem.node, problem.classes)
    D = _weights_after(problem)
    epsilon = 1.0 / (problem.weights.sum() * len(problem.classes))
    spell = min(SPELL, max(1, LONG // max(1, len(columns) * len(problem.classes))))
    while done.n_rounds < n_rounds:
        heed_deadline()
        n = min(spell, n_rounds - done.n_rounds)
        more = _spell(problem, matrices, VARIANTS.index(variant), epsilon, n, D, columns)
        done = done.extended(more)
        yield done
        if more.n_rounds < n:  # nothing is left to learn
            return


def _weights_after(problem: Problem) -> Floats:
    """D over documents × classes, adding up to one: as it is at first, or after earlier rounds."""
    D: Floats = np.zeros(problem.shape) if problem.votes is None else problem.votes.copy()
    rows = np.repeat(np.arange(len(D)), np.diff(problem.labels.offsets))
    D[rows, problem.labels.items] *= -1
    D -= D.max()
    np.exp(D, out=D)
    D *= problem.weights[:, None]
    D /= D.sum()
    return D


def _spell(
    problem: Problem, matrices: list[NDArray[Any]], variant: int, epsilon: float, n: int, D: Floats, columns: Ints
) -> Committee:
    m = len(problem.classes)
    pivots = np.zeros(n, dtype=np.int32)
    absent, present, z, normalizers = np.zeros((n, m)), np.zeros((n, m)), np.zeros(n), np.zeros(n)
    made = boost_in_place(*matrices, variant, epsilon, n, D, pivots, absent, present, z, normalizers)
    found = columns[pivots] if len(columns) else pivots.astype(np.int64)
    return Committee(problem.node, problem.classes, found, absent, present, z, normalizers).first(made)
