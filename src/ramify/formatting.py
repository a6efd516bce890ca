"""Numbers as text, the same in every table and sentence: time, speed, memory, p-values, counts."""

from __future__ import annotations

from math import floor, isnan, log10

NOTHING = "–"  # where nothing was measured


def duration(seconds: float | None) -> str:
    """A duration.

    >>> duration(0.0471), duration(12.34), duration(754), duration(9000), duration(None)
    ('0.047 s', '12.3 s', '12.6 min', '2.5 h', '–')
    """
    if seconds is None:
        return NOTHING
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.3f} s" if seconds < 0.1 else f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


def speed(documents_per_second: float) -> str:
    """Documents per second, with two significant digits.

    >>> speed(41312.7), speed(3.21)
    ('41,000', '3.2')
    """
    return _rounded(documents_per_second)


def memory(megabytes: float | None) -> str:
    """An amount of memory.

    >>> memory(13.6), memory(0.2), memory(2345.6), memory(None)
    ('14 MB', '0.2 MB', '2.3 GB', '–')
    """
    if megabytes is None:
        return NOTHING
    return f"{_rounded(megabytes / 1000)} GB" if megabytes >= 1000 else f"{_rounded(megabytes)} MB"


def factor(times: float) -> str:
    """A factor.

    >>> factor(6.27), factor(14.4), factor(238)
    ('6.3 times', '14 times', '240 times')
    """
    return f"{_rounded(times)} times"


def p_value(p: float, level: float) -> str:
    """A p-value, with enough digits to show on which side of the level it is.

    >>> p_value(0.0001, 0.05), p_value(0.2, 0.05), p_value(0.0497, 0.05), p_value(float("nan"), 0.05)
    ('<0.001', '0.200', '0.0497', '–')
    """
    if isnan(p):
        return NOTHING
    if p < 0.0005:
        return "<0.001"
    shown = f"{p:.3f}"
    return f"{p:.4f}" if p < level <= float(shown) else shown


def _rounded(value: float) -> str:
    """Two significant digits, at most one after the point."""
    if value < 10:
        return f"{value:.1f}"
    power = 10 ** (floor(log10(value)) - 1)
    return f"{round(value / power) * power:,}"


def counted(number: int, thing: str) -> str:
    """A number with its noun: 1 row, 2 rows.

    >>> counted(1, "row"), counted(2500, "row"), counted(0, "class")
    ('1 row', '2,500 rows', '0 classes')
    """
    plural = "es" if thing.endswith("s") else "s"
    return f"{number:,} {thing}{'' if number == 1 else plural}"
