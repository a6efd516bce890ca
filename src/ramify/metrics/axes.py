"""Axes of charts: from numbers to places, with round numbers as ticks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

STEPS = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Axis:
    """From numbers to places between 0 and 1, with round numbers or names as ticks."""

    ticks: list[float]
    log: bool
    names: Sequence[str] = ()

    def place(self, value: float) -> float:
        """Where a number stands; beyond the ends, at the end."""
        low, high, at = (log10(v) if self.log else v for v in (self.ticks[0], self.ticks[-1], value))
        return min(1.0, max(0.0, (at - low) / (high - low)))

    def label(self, value: float) -> str:
        """What to write at a place."""
        return self.names[round(value)] if self.names else in_short(value)


def axis(values: Iterable[float], log: bool = False) -> Axis:
    """An axis with room for all values.

    >>> axis([0.12, 0.48]).ticks
    [0.1, 0.2, 0.3, 0.4, 0.5]
    >>> axis([3, 2000], log=True).ticks
    [1, 10, 100, 1000, 10000]
    >>> axis([0, 1, 2]).ticks
    [0, 1, 2]
    """
    found = list(values) or [1.0]
    whole = all(isinstance(value, int) for value in found)
    return Axis(_log_ticks(min(found), max(found)) if log else _even_ticks(min(found), max(found), whole), log)


def named_axis(names: Sequence[str]) -> Axis:
    """An axis with a name at 0, 1, 2, and so on."""
    padded = [*names, "", ""][: max(2, len(names))]  # a lone name stands at the left
    return Axis([float(place) for place in range(len(padded))], log=False, names=padded)


def _even_ticks(low: float, high: float, whole: bool, wanted: int = 5) -> list[float]:
    """Three ticks or more, at multiples of 1, 2 or 5 times a power of ten; between whole numbers there is none."""
    largest = max(1.0, abs(low), abs(high))
    span = high - low if high - low > 1e-9 * largest else largest
    power = 10.0 ** floor(log10(span / wanted))
    step = next(s for s in STEPS if s * power * wanted >= span * 0.999) * power
    if whole:
        step = max(1, round(step))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    if last - first < 2:
        first, last = first - 1, last + 1
    return [round(k * step, 12) for k in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; within two of them, also 2 and 5 times."""
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    first, last = (first, last) if last > first else (first, first + 1)
    if last - first > 2:
        return [_power(k) for k in range(first, last + 1)]
    fine = [s * _power(k) for k in range(first, last) for s in STEPS[:3]] + [_power(last)]
    start = max(k for k, tick in enumerate(fine[:-1]) if tick <= low * (1 + 1e-9))
    end = min(k for k, tick in enumerate(fine) if k > start and tick >= high * (1 - 1e-9))
    return fine[start : end + 1]


def _power(exponent: int) -> float:
    return 10**exponent if exponent >= 0 else float(f"1e{exponent}")


def in_short(value: float) -> str:
    """A number as it stands beside a tick.

    >>> in_short(0.25), in_short(1500.0), in_short(-2)
    ('0.25', '1,500', '−2')
    """
    return (f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}").replace("-", "−")
