"""Words for what rules do: numbers that can be told apart, and labels that nodes bring to those above them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.taxonomy import Taxonomy

FORMS = (*(f".{digits}f" for digits in range(2, 8)), ".3g", ".9g", ".17g")
HUGE = 1e6  # from here on, decimals are beside the point
UNANSWERED = "no classifier answers here, so it is never taken"


def tell(*numbers: float) -> list[str]:
    """Numbers with as few digits as tell them apart, two decimals at least; nothing but 0 is 0.

    >>> tell(0.5, 0), tell(1.4214, 1.4211), tell(-0.003, 0)
    (['0.50', '0'], ['1.4214', '1.4211'], ['-0.003', '0'])
    """
    values = [float(number) for number in numbers]
    forms = FORMS if max(map(abs, values)) < HUGE else FORMS[-2:]
    for form in forms:
        said = [format(value, form) if value else "0" for value in values]
        if len({float(word) for word in said}) == len(set(values)):
            break
    return said


def compare(value: float, threshold: float, what: str = "the threshold ") -> str:
    """Whether a value reaches a threshold.

    >>> compare(0.7, 0.5), compare(0.3, 0.5)
    ('0.70 reaches the threshold 0.50', '0.30 is below the threshold 0.50')
    """
    told, bound = tell(value, threshold)
    return f"{told} {'reaches' if value >= threshold else 'is below'} {what}{bound}"


def with_labels_below(
    say: Callable[[int], str], nodes: Iterable[int], chosen: NDArray[np.bool_], values: NDArray[Any], taxonomy: Taxonomy
) -> list[str]:
    """What is said of nodes, and of those that were not chosen themselves, for which node below them they were taken."""
    bringer = _bringers(chosen, values, taxonomy)
    return [
        f"{say(node)}, but {taxonomy.titles[bringer[node]]!r} below it was taken"
        if node in bringer and not chosen[node]
        else say(node)
        for node in nodes
    ]


def _bringers(chosen: NDArray[np.bool_], values: NDArray[Any], taxonomy: Taxonomy) -> dict[int, int]:
    """For every node above a chosen one, the best of those."""
    found: dict[int, int] = {}
    listed = np.flatnonzero(chosen)
    for node in listed[np.argsort(-values[listed], kind="stable")].tolist():
        for above in taxonomy.ancestors_of(node).tolist():
            found.setdefault(above, node)
    return found


def reasons_of_cuts(
    values: NDArray[Any], thresholds: NDArray[Any], what: str, at_least_one: bool, taxonomy: Taxonomy, nodes: Sequence[int]
) -> list[str]:
    """Of rules that choose the nodes that reach a threshold, and the best where none does.

    values, thresholds: one a node; NaN and -inf where there is no value, inf where none reaches. what: whose threshold it is.
    """
    known = np.isfinite(values)
    chosen = known & (values >= thresholds)
    is_last_resort = at_least_one and not chosen.any() and bool(known.any())
    if is_last_resort:
        chosen[np.argmax(np.where(known, values, -np.inf))] = True

    def say(node: int) -> str:
        if not known[node]:
            return "it has no score of its own"
        if thresholds[node] == np.inf:
            said = f"{tell(values[node])[0]}, though it is trusted with no threshold, so never chosen itself"
        else:
            said = compare(values[node], thresholds[node], what)
        rescue = "; no node is high enough, so the highest was taken"
        return said + rescue if is_last_resort and chosen[node] else said

    return with_labels_below(say, nodes, chosen, values, taxonomy)
