"""Setting documents aside for an honest evaluation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from ramify.errors import InputError


def hold_out(
    labels: Sequence[Sequence[str]], share: float = 0.2, seed: int = 0, texts: Sequence[Hashable] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions to learn from and positions to test on, each sorted; every class gives its share.

    Documents are grouped by their label set. Each group is shuffled and gives `share` of itself, rounded by chance, but never
    its last document, so no label set is only tested and never seen. A document with the same text as one to learn from is
    not tested on. texts: the documents, or what stands for each.

    >>> train, test = hold_out([["a"]] * 8 + [["b"]] * 2, share=0.5, seed=1)
    >>> len(train), len(test)
    (5, 5)
    """
    if not 0 < share < 1:
        raise InputError(f"the share to hold out is {share}; give a number between 0 and 1, such as 0.2.")
    rng = np.random.default_rng(seed)
    groups: dict[tuple[str, ...], list[int]] = {}
    for position, given in enumerate(labels):
        groups.setdefault(tuple(sorted(given)), []).append(position)
    tested: list[int] = []
    for members in groups.values():
        size = min(int(share * len(members) + rng.random()), len(members) - 1)
        tested += rng.permutation(members)[:size].tolist()
    is_tested = np.zeros(len(labels), dtype=bool)
    is_tested[tested] = True
    if texts is not None:
        learnt = {texts[i] for i in np.flatnonzero(~is_tested).tolist()}
        is_tested[[i for i in tested if texts[i] in learnt]] = False
    return np.flatnonzero(~is_tested), np.flatnonzero(is_tested)
