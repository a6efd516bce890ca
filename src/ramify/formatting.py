"""Numbers as text, the same in every table and sentence; texts of others as a terminal or a spreadsheet can show them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from math import floor, isnan, log10
from typing import Any

NOTHING = "–"  # where nothing was measured
LONGEST = 2_000  # characters of a message
# control characters except tabs and line ends, other ends of lines, marks that turn the direction of writing, and halves of
# characters; in brackets, a regular expression
UNPRINTABLE_CHARACTERS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
UNPRINTABLE = re.compile(f"[{UNPRINTABLE_CHARACTERS}]")
ON_ONE_LINE = str.maketrans({"\n": "\\n", "\t": "\\t"})
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how cells begin that a spreadsheet calculates


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


# ---- texts of others -----------------------------------------------------------------------------------------------------


def visible(text: str) -> str:
    r"""A text that cannot steer a terminal: what would is written out. Tabs and line ends stay.

    >>> print(visible("no\x1b[31m picture\u202e"), visible("größer"))
    no\x1b[31m picture\u202e größer
    """
    return UNPRINTABLE.sub(_written_out, text)


def visible_name(text: str) -> str:
    r"""A name that cannot steer a terminal or begin a line of its own: tabs and line ends are written out, too.

    >>> print(visible_name("no picture\nModel saved in out."))
    no picture\nModel saved in out.
    """
    return visible(text).translate(ON_ONE_LINE)


def _written_out(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def cut(message: str, most: int = LONGEST) -> str:
    """A message without its middle, if it is too long; the end stays, since it says what to do.

    >>> cut("label 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' is unknown; correct it.", 36)
    "label 'aaaaaaaaaaaaaaaaa … (35 characters left out) … correct it."
    """
    if len(message) <= most:
        return message
    end = most // 3
    return f"{message[: most - end]} … ({len(message) - most:,} characters left out) … {message[-end:].lstrip()}"


def csv_line(cells: Iterable[Any], delimiter: str = ",", escape_formulas: bool = False) -> str:
    r"""A line of CSV. escape_formulas: put an apostrophe before texts that a spreadsheet would calculate.

    >>> csv_line(["=1+1", "-0.5", 3]), csv_line(["=1+1", "-0.5", 3], escape_formulas=True)
    ('=1+1,-0.5,3\n', "'=1+1,-0.5,3\n")
    """
    line = io.StringIO()
    escaped = map(_without_formula, cells) if escape_formulas else cells
    csv.writer(line, delimiter=delimiter, lineterminator="\r\n").writerow(escaped)  # cells with either are quoted
    return line.getvalue().removesuffix("\r\n") + "\n"


def _without_formula(cell: Any) -> Any:
    """A cell that no spreadsheet calculates; numbers stay numbers."""
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
