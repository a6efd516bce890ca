"""Numbers in words, and the names of what is compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from experiments.cells import change, signed

Rows = Mapping[str, Any]

TERMS = {"all": "all terms", "global": "global terms", "glocal": "glocal terms"}
TREES = {"learnt": "learnt groups", "official": "official groups", "tree": "its tree"}
FLAT = "adaboost-mh"
WAYS = {"adaboost": FLAT, **{tree: f"treeboost-mh, {name}" for tree, name in TREES.items()}}


def beside(old: float, new: Iterable[float], scale: float = 100, digits: int = 2) -> list[str]:
    """A value, and others with how much more they are.

    >>> [cell.split() for cell in beside(0.5, [0.6])]
    [['50.00'], ['60.00', '(+20.0', '%)']]
    """
    return [f"{scale * old:.{digits}f}", *(f"{scale * value:.{digits}f} ({signed(change(value, old))})" for value in new)]


def last(by_rounds: Rows) -> Rows:
    """The row after the last round."""
    return dict(by_rounds[max(rounds_of(by_rounds), key=int)])


def rounds_of(by_rounds: Rows) -> list[str]:
    """The numbers of rounds in a row."""
    return [s for s in by_rounds if s.isdigit()]
