"""Several ways to do one thing, measured in turn, and tables whose lines are shown as soon as they are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, TypeVar

Result = TypeVar("Result")
Figures = dict[str, Any]


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds, and what came of them."""
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def interleaved(ways: Sequence[Callable[[], Result]], repeat: int) -> list[tuple[float, Result]]:
    """Of every way the least seconds of some turns, and what came of the last; a busy moment hits all of them."""
    turns = [[timed(work) for work in ways] for _ in range(repeat)]
    return [(min(seconds for seconds, _ in of_way), of_way[-1][1]) for of_way in zip(*turns, strict=True)]


def show(cells: Iterable[str]) -> None:
    """One line of a table, at once."""
    print(f"| {' | '.join(cells)} |", flush=True)


def head(title: str, *columns: str) -> None:
    """What a table is of, and its head."""
    print(f"\n{title}\n")
    show(columns)
    show(["---"] * len(columns))
