"""p-values of several comparisons, made larger so that luck is not taken for a difference.

Who makes m comparisons finds p < 0.05 in one of twenty, even where nothing differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ramify.errors import InputError, suggest
from ramify.metrics.counting import Floats

Correction = Literal["holm", "bonferroni", "benjamini-hochberg", "none"]
CORRECTIONS = ("holm", "bonferroni", "benjamini-hochberg", "none")


def correct_p_values(p_values: Sequence[float] | Floats, correction: Correction = "holm") -> Floats:
    """p-values corrected for how many they are, in the same order.

    correction: "holm" and "bonferroni" bound the chance of even one false alarm, and Holm's is never larger;
    "benjamini-hochberg" bounds the share of false alarms among all alarms; "none" leaves them alone.
    NaN stands for a test that could not be made: it stays, and is not counted.

    >>> correct_p_values([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    check_correction(correction)
    p = np.array(p_values, dtype=np.float64).ravel()
    if np.any((p < 0) | (p > 1)):
        raise InputError(f"a p-value is {p[(p < 0) | (p > 1)][0]:g}; p-values lie between 0 and 1.")
    made = np.flatnonzero(~np.isnan(p))
    p[made] = _corrected(p[made], correction)
    return p


def check_correction(correction: str) -> None:
    """Refuse a name that no correction has."""
    if correction not in CORRECTIONS:
        near = suggest(str(correction), CORRECTIONS)
        raise InputError(f"correction {correction!r} is unknown; the corrections are {', '.join(CORRECTIONS)}.{near}")


def _corrected(p: Floats, correction: str) -> Floats:
    m = len(p)
    if correction == "none" or m == 0:
        return p
    if correction == "bonferroni":
        return np.minimum(m * p, 1.0)
    order = np.argsort(p, kind="stable")
    place = np.arange(1, m + 1)
    if correction == "holm":
        # the smallest of m, the next of m - 1, …; none below the one before it
        in_order = np.maximum.accumulate((m + 1 - place) * p[order])
    else:
        # m / place, from the largest down; none above the one after it
        in_order = np.minimum.accumulate((m / place * p[order])[::-1])[::-1]
    corrected = np.empty(m)
    corrected[order] = np.minimum(in_order, 1.0)
    return corrected
