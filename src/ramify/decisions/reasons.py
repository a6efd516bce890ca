"""Wording of the reasons of rules: numbers with enough digits to differ, and labels taken for a node below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.taxonomy import Taxonomy

FORMATS = (*(f".{digits}f" for digits in range(2, 8)), ".3g", ".9g", ".17g")
HUGE = 1e6  # numbers from here on are shown without decimals
IMPOSSIBLE = "its probability is 0, so it is never taken"
NO_CLASSIFIER = "it has no classifier, so it is never taken"
NO_SCORE = "it has no score of its own"
EMPTY = "it had no training documents, so it is never taken"


def format_numbers(*numbers: float) -> list[str]:
    """Numbers with as few digits as show that they differ, at least two decimals; only 0 is shown as 0.

    >>> format_numbers(0.5, 0), format_numbers(1.4214, 1.4211), format_numbers(-0.003, 0)
    (['0.50', '0'], ['1.4214', '1.4211'], ['-0.003', '0'])
    """
    values = [float(number) for number in numbers]
    for form in FORMATS if max(map(abs, values)) < HUGE else FORMATS[-2:]:
        formatted = [format(value, form) if value else "0" for value in values]
        if len({float(text) for text in formatted}) == len(set(values)):
            break
    return formatted


def why_missing(value: float, otherwise: str) -> str:
    """Why a node has no finite value: -inf where it had no training documents, NaN for what is said `otherwise`."""
    return EMPTY if value == -np.inf else otherwise


def compare(value: float, threshold: float, what: str = "the threshold ") -> str:
    """Whether a value reaches a threshold.

    >>> compare(0.7, 0.5), compare(0.3, 0.5)
    ('0.70 reaches the threshold 0.50', '0.30 is below the threshold 0.50')
    """
    shown, bound = format_numbers(value, threshold)
    return f"{shown} {'reaches' if value >= threshold else 'is below'} {what}{bound}"


def with_labels_below(
    explain: Callable[[int], str], nodes: Iterable[int], chosen: NDArray[np.bool_], values: NDArray[Any], taxonomy: Taxonomy
) -> list[str]:
    """The explanation of each node; one that was not chosen itself names the best chosen node below it."""
    chosen_below: dict[int, int] = {}
    listed = np.flatnonzero(chosen)
    for node in listed[np.argsort(-values[listed], kind="stable")].tolist():
        for ancestor in taxonomy.ancestors_of(node).tolist():
            chosen_below.setdefault(ancestor, node)
    return [
        f"{explain(node)}, but {taxonomy.titles[chosen_below[node]]!r} below it was taken"
        if node in chosen_below and not chosen[node]
        else explain(node)
        for node in nodes
    ]


def reasons_of_cuts(
    values: NDArray[Any], thresholds: NDArray[Any], what: str, at_least_one: bool, taxonomy: Taxonomy, nodes: Sequence[int]
) -> list[str]:
    """Reasons of a rule that takes the nodes at or above a threshold, and the best where none is.

    values, thresholds: one per node; NaN and -inf where there is no value, inf where a node is never taken.
    what: whose threshold it is.
    """
    known = np.isfinite(values)
    chosen = known & (values >= thresholds)
    is_last_resort = at_least_one and not chosen.any() and bool(known.any())
    if is_last_resort:
        chosen[np.argmax(np.where(known, values, -np.inf))] = True

    def explain(node: int) -> str:
        if not known[node]:
            return why_missing(values[node], NO_SCORE)
        if thresholds[node] == np.inf:
            reason = f"{format_numbers(values[node])[0]}, but it has no reliable threshold, so it is never chosen itself"
        else:
            reason = compare(values[node], thresholds[node], what)
        return f"{reason}; no node is high enough, so the highest was taken" if is_last_resort and chosen[node] else reason

    return with_labels_below(explain, nodes, chosen, values, taxonomy)
