"""Numbers in words, as several studies show them."""

from __future__ import annotations

TIED = "\u00a0"  # a blank at which no line is broken


def change(new: float, old: float) -> float:
    """In percent of the old value."""
    return 100 * (new / old - 1) if old else (0.0 if new == old else float("inf"))


def signed(value: float) -> str:
    """Percent with a sign, as typeset.

    >>> signed(-5.04).split(TIED)
    ['−5.0', '%']
    """
    return f"{value:+,.1f}{TIED}%".replace("-", "−").replace("inf", "∞")


def p_value(p: float | None, difference: float | None) -> str:
    """Three digits, in brackets where the second did better.

    >>> p_value(0.04, -1.0), p_value(0.0004, 1.0).split(TIED)
    ('(0.040)', ['<', '0.001'])
    """
    if p is None or difference is None:
        return "–"
    shown = f"<{TIED}0.001" if p < 0.001 else f"{p:.3f}"
    return f"({shown})" if difference < 0 else shown
