"""What an audit says in words, the same in the terminal and on the page."""

from __future__ import annotations

from ramify.pipeline.auditing.auditing import Audit

KIND_WORDS = {"wrong": "seems wrong", "too many": "seems too much", "missing": "seems to be missing"}


def beginning(text: str, most: int) -> str:
    """The first characters of a text in one line.

    >>> beginning("no  picture\\non my new television", 20)
    'no picture on my ne…'
    """
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1] + "…"


def chance(p: float) -> str:
    """A probability as a percentage that is never rounded to none or all.

    >>> chance(0.5), chance(0.0004), chance(0.9996)
    ('50%', '< 0.1%', '> 99.9%')
    """
    if p < 0.001:
        return "< 0.1%"
    if p > 0.999:
        return "> 99.9%"
    return f"{p:.1%}" if p < 0.1 or p > 0.9 else f"{p:.0%}"


def summary_of(found: Audit) -> str:
    """What was done, in a sentence or two."""
    unjudged = f" {found.unjudged:,} documents are the only ones of their class and were not judged." if found.unjudged else ""
    return (
        f"{found.documents:,} documents of {found.source}, judged by {found.system} in {found.folds} folds: each by what "
        f"learnt from the others.{unjudged}"
    )
