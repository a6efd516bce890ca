"""Split documents into training and test sets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from ramify.errors import InputError


def hold_out(
    labels: Sequence[Sequence[str]], fraction: float = 0.2, seed: int = 0, texts: Sequence[Hashable] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted positions of training and test documents, stratified by label set.

    Each label set gives `fraction` of its documents to the test set, rounded at random, but never its last document. A document
    with the same text as a training document is left out of the test set. texts: the texts, or a key for each.

    >>> train, test = hold_out([["a"]] * 8 + [["b"]] * 2, fraction=0.5, seed=1)
    >>> len(train), len(test)
    (5, 5)
    """
    if not 0 < fraction < 1:
        raise InputError(f"the fraction to hold out is {fraction}; give a number between 0 and 1, such as 0.2.")
    rng = np.random.default_rng(seed)
    groups: dict[tuple[str, ...], list[int]] = {}
    for position, given in enumerate(labels):
        groups.setdefault(tuple(sorted(given)), []).append(position)
    tested: list[int] = []
    for group in groups.values():
        size = min(int(fraction * len(group) + rng.random()), len(group) - 1)
        tested += rng.permutation(group)[:size].tolist()
    is_tested = np.zeros(len(labels), dtype=bool)
    is_tested[tested] = True
    if texts is not None:
        trained_on = {texts[i] for i in np.flatnonzero(~is_tested).tolist()}
        is_tested[[i for i in tested if texts[i] in trained_on]] = False
    return np.flatnonzero(~is_tested), np.flatnonzero(is_tested)
