"""Which columns of a table hold the text and the labels, when the user does not say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ramify.errors import DataError, suggest

TEXT_NAMES = (
    "text",
    "body",
    "message",
    "description",
    "content",
    "document",
    "request",
    "question",
    "review",
    "abstract",
    "comment",
    "title",
    "subject",
)
LABEL_NAMES = (
    "label",
    "labels",
    "category",
    "categories",
    "class",
    "classes",
    "topic",
    "topics",
    "path",
    "target",
    "node",
    "code",
    "tag",
    "tags",
    "type",
)
LEVEL_NAME = re.compile(r"(?:level|lvl|l|cat|category|tier)[ _-]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns in use; several label columns are the levels of one path, from the top."""

    text: str
    labels: tuple[str, ...]


def find_columns(
    source: str,
    names: Sequence[str],
    sample: Sequence[dict[str, Any]],
    text: str | None,
    label: str | None,
    need_labels: bool,
) -> Columns:
    """The columns that the user names, or else those that look like it."""
    if text is not None:
        _refuse_missing(source, names, text, "--text")
    labels = (
        tuple(part.strip() for part in label.split(","))
        if label is not None and label not in names
        else (label,)
        if label
        else ()
    )
    for column in labels:
        _refuse_missing(source, names, column, "--label")
    text = text or _guess_text(names, sample, labels)
    labels = labels or _guess_labels(names, sample, text)
    if text is None:
        raise DataError(f"{source}: no column looks like text; name it with --text. The columns are {_list(names)}.")
    if need_labels and not labels:
        raise DataError(f"{source}: no column looks like labels; name it with --label. The columns are {_list(names)}.")
    _refuse_same(source, text, labels)
    _refuse_missing_header(source, labels, sample)
    return Columns(text, labels)


def _refuse_same(source: str, text: str, labels: Sequence[str]) -> None:
    if text in labels:
        raise DataError(f"{source}: column {text!r} is to be both the text and the label; name two different columns.")


def _refuse_missing_header(source: str, labels: Sequence[str], sample: Sequence[dict[str, Any]]) -> None:
    """A first row whose label comes again below is a document, not a row of names."""
    if len(labels) == 1 and any(row.get(labels[0]) == labels[0] for row in sample):
        raise DataError(
            f"{source}: the first row looks like a document, since its {labels[0][:40]!r} is a label of other rows too; "
            "put a row with column names first."
        )


def _refuse_missing(source: str, names: Sequence[str], wanted: str, option: str) -> None:
    if wanted not in names:
        raise DataError(
            f"{source} has no column {wanted!r}; its columns are {_list(names)}. "
            f"Name one of them with {option}.{suggest(wanted, names)}"
        )


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name if len(name) <= 40 else f"{name[:39]}…") for name in names[:20])
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _guess_text(names: Sequence[str], sample: Sequence[dict[str, Any]], taken: Sequence[str]) -> str | None:
    free = [name for name in names if name not in taken]
    for wanted in TEXT_NAMES:
        for name in free:
            if name.lower() == wanted and wanted not in LABEL_NAMES:
                return name
    lengths = {name: _mean_length(sample, name) for name in free}
    longest = max(lengths, key=lambda name: lengths[name], default=None)
    return longest if longest is not None and lengths[longest] > 0 and (len(free) > 1 or taken) else None


def _guess_labels(names: Sequence[str], sample: Sequence[dict[str, Any]], text: str | None) -> tuple[str, ...]:
    free = [name for name in names if name != text]
    for wanted in LABEL_NAMES:
        for name in free:
            if name.lower() == wanted:
                return (name,)
    levels = sorted((int(match[1]), name) for name in free if (match := LEVEL_NAME.fullmatch(name)))
    if len(levels) > 1:
        return tuple(name for _, name in levels)
    repeated = [name for name in free if _repeats(sample, name)]
    return (repeated[0],) if len(repeated) == 1 else ()


def _mean_length(sample: Sequence[dict[str, Any]], name: str) -> float:
    cells = [row.get(name) for row in sample]
    texts = [cell for cell in cells if isinstance(cell, str) and not _is_number(cell)]
    return sum(map(len, texts)) / len(texts) if texts else 0.0


def _repeats(sample: Sequence[dict[str, Any]], name: str) -> bool:
    """Words that come again and again, as labels do; numbers do not count."""
    cells = [str(row.get(name)) for row in sample if row.get(name) not in (None, "")]
    return len(cells) > 3 and 1 < len(set(cells)) <= 0.5 * len(cells) and not all(map(_is_number, cells))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
