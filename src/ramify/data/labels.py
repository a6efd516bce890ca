"""Label cells of a table: which of them say that there is no label, how one cell lists several, and spellings of one label."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from ramify.arguments import check_kind, describe
from ramify.errors import InputError
from ramify.taxonomy import find_separator

# how programs and people write that there is no label
MISSING = frozenset({"nan", "null", "n/a", "#n/a", "<na>", "nat", "-", "--", "–", "?", "??", "(blank)", "[]"})
MISSING_AS_WRITTEN = frozenset({"NA", "None"})  # only so, since na and none are words
# the fraction of pieces that must be known labels for a mark to be a separator; commas are common inside names
SEPARATORS = {"|": 0.5, ";": 0.5, ",": 0.9, " ": 0.9}
CODE = re.compile(r"[\w-]*[.\d-][\w.-]*")  # what spaces may separate
SPACE = re.compile(r"\s+")
STRING = r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
QUOTED = re.compile(STRING, re.DOTALL)
LIST = re.compile(rf"\[[\s,]*+(?:{STRING}[\s,]*+)++\]", re.DOTALL)  # possessive, so that no length of a cell takes time
LONGEST_CODE = 60  # characters
MOST_SPELLINGS = 1_000  # that are listed

IsLabel = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Spelling:
    """Labels that differ in case or white space only, or an inner node beside its own path. kept: the most frequent of them."""

    kept: str
    others: tuple[str, ...]

    def __str__(self) -> str:
        return f"{' and '.join(repr(other[:60]) for other in self.others[:3])} beside {self.kept[:60]!r}"


@dataclass(frozen=True, slots=True)
class LabelCells:
    """The labels of each document, and what was found about them.

    missing: how often each mark stands for no label. spellings: of labels that are probably one. list_cell: an example of a
    text that was read as a list of labels.
    """

    labels: list[list[str]]
    separator: str | None
    missing: dict[str, int] = field(default_factory=dict)
    spellings: tuple[Spelling, ...] = ()
    list_cell: str | None = None


def read_labels(
    cells: Sequence[Any], separator: str | None, is_label: IsLabel | None, merge_spellings: bool = False
) -> LabelCells:
    """The labels of each cell; equal cells share one list."""
    check_kind(separator, (str, NoneType), "label_separator", "a string, or None")
    if is_label is not None and not callable(is_label):
        raise InputError(f"is_label is {describe(is_label)}; give a function of a name, or None.")
    try:
        counts: Counter[Any] = Counter(cells)
    except TypeError:  # lists
        counts = Counter(map(_hashable, cells))
    missing = {cell: n_times for cell, n_times in counts.items() if isinstance(cell, str) and is_missing(cell, is_label)}
    texts = [cell for cell in counts if isinstance(cell, str) and cell not in missing]
    lists = _list_cells(texts, is_label)
    texts = [cell for cell in texts if cell not in lists]
    separator = separator or find_label_separator(texts, is_label)
    known: dict[Hashable, list[str]] = {cell: split_cell(cell, separator, is_label) for cell in texts}
    known.update(lists)
    known |= {cell: list(dict.fromkeys(cell)) for cell in counts if not isinstance(cell, str)} | {cell: [] for cell in missing}
    by_label: Counter[str] = Counter()
    for cell, n_times in counts.items():
        by_label.update(dict.fromkeys(known[cell], n_times))
    spellings = () if is_label is not None else tuple(find_spellings(by_label))
    if merge_spellings and spellings:
        kept = {other: spelling.kept for spelling in spellings for other in spelling.others}
        known = {cell: list(dict.fromkeys(kept.get(label, label) for label in labels)) for cell, labels in known.items()}
    are_hashable = all(isinstance(cell, str) for cell in counts)
    labels = list(map(known.__getitem__, cells if are_hashable else map(_hashable, cells)))
    marks = {cell.strip(): n_times for cell, n_times in missing.items() if cell.strip()}
    return LabelCells(labels, separator, marks, spellings, next(iter(lists), None))


def _list_cells(texts: Sequence[str], is_label: IsLabel | None) -> dict[str, list[str]]:
    """The cells that are lists of labels, and no label as they are."""
    found = ((cell, as_list(cell)) for cell in texts if not (is_label and is_label(cell)))
    return {cell: labels for cell, labels in found if labels is not None}


def _hashable(cell: Any) -> Hashable:
    return cell if isinstance(cell, str) else tuple(cell)


def is_missing(cell: str, is_label: IsLabel | None = None) -> bool:
    """Whether a cell says that there is no label; a name of the taxonomy is one all the same.

    >>> is_missing("NaN"), is_missing(" - "), is_missing("none"), is_missing("NA", {"NA"}.__contains__)
    (True, True, False, False)
    """
    plain = cell.strip()
    is_word = plain.lower() in MISSING or plain in MISSING_AS_WRITTEN
    return not plain or (is_word and not (is_label is not None and is_label(plain)))


def find_label_separator(cells: Iterable[str], is_label: IsLabel | None = None) -> str | None:
    """The separator between labels in a cell, or None if every cell holds one label.

    The pieces of split cells must be labels themselves: of the taxonomy, or else whole cells of other rows. A mark that
    separates the parts of paths separates no labels.

    >>> find_label_separator(["food|drink", "food", "drink"]), find_label_separator(["TV, audio", "phones"])
    ('|', None)
    >>> find_label_separator(["food|fruit", "food|bread", "drink|tea", "drink|wine"])
    """
    distinct = {cell.strip() for cell in cells if cell.strip()}
    known = is_label or distinct.__contains__
    of_paths = (find_separator(distinct) or "").strip() if is_label is None else ""
    for mark, fraction in SEPARATORS.items():
        if mark == of_paths:
            continue
        joined = [cell for cell in distinct if mark in cell and not (is_label and is_label(cell))]
        pieces = [piece for cell in joined for piece in split_cell(cell, mark)]
        if mark == " " and not all(len(piece) <= LONGEST_CODE and CODE.fullmatch(piece) for piece in pieces):
            continue
        if pieces and sum(map(known, pieces)) >= fraction * len(pieces):
            return mark
    return None


def split_cell(cell: str, separator: str | None, is_label: IsLabel | None = None) -> list[str]:
    """The distinct labels of a cell, stripped; a known label is not split.

    >>> split_cell("late; /tv/sound ;late", ";")
    ['late', 'tv/sound']
    """
    pieces = cell.split(separator) if separator and not (is_label and is_label(cell.strip())) else [cell]
    return list(dict.fromkeys(_without_root(piece.strip(), is_label) for piece in pieces if piece.strip()))


def _without_root(label: str, is_label: IsLabel | None) -> str:
    """A path without the slash that stands for its root: paths of web pages and folders begin with one."""
    mark = label[:1]
    if mark not in ("/", "\\") or mark not in label[1:] or not label.strip(mark) or (is_label and is_label(label)):
        return label
    return label.strip(mark)


def as_list(cell: str) -> list[str] | None:
    """The labels of a cell that is a list of strings as JSON, Python or numpy writes it; None if it is none.

    >>> as_list('["a", "b"]'), as_list("['a', \\"b's\\"]"), as_list("['a' 'b']"), as_list("[physics]")
    (['a', 'b'], ['a', "b's"], ['a', 'b'], None)
    """
    plain = cell.strip()
    if LIST.fullmatch(plain) is None:
        return [] if plain == "[]" else None
    return list(dict.fromkeys(label for label in map(_unquoted, QUOTED.findall(plain)) if label))


def _unquoted(quoted: str) -> str:
    """What stands between quotes, with its escapes resolved."""
    for resolve in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError):
            return str(resolve(quoted)).strip()
    return quoted[1:-1].strip()


# ---- spellings -------------------------------------------------------------------------------------------------------------


def find_spellings(counts: Counter[str], separator: str | None = None) -> list[Spelling]:
    """Labels that are probably one, with the number of documents of each.

    >>> find_spellings(Counter({"Late": 9, "late": 1, "Lost": 2}))
    [Spelling(kept='Late', others=('late',))]
    >>> find_spellings(Counter({"Food > Fruit > Apple": 9, "food > Bread": 1, "Fruit": 2}))[-1]
    Spelling(kept='Food > Fruit', others=('Fruit',))
    """
    separator = separator or find_separator(set(map(_plain, counts)))  # the same before and after merging
    paths = {label: _parts(label, separator) for label in counts}
    spelled: dict[tuple[str, ...], Counter[str]] = {}  # how the last part of a path is written, for each path
    for label, n_documents in counts.items():
        for depth in range(1, len(paths[label]) + 1):
            key = tuple(map(_plain, paths[label][:depth]))
            spelled.setdefault(key, Counter())[paths[label][depth - 1]] += n_documents
    usual = {key: max(sorted(forms), key=lambda form: forms[form]) for key, forms in spelled.items()}
    whole = _whole_paths(spelled) if separator else {}
    found: dict[str, list[str]] = {}
    for label, parts in paths.items():
        key = tuple(map(_plain, parts))
        key = whole.get(key, key)
        kept = (separator or "").join(usual[key[: depth + 1]] for depth in range(len(key)))
        if kept != label:
            found.setdefault(kept, []).append(label)
    return [Spelling(kept, tuple(sorted(others))) for kept, others in sorted(found.items())][:MOST_SPELLINGS]


def _whole_paths(spelled: dict[tuple[str, ...], Counter[str]]) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The path of every lone name that is the last part of one path only, and that no other label has as its first part."""
    ends: dict[str, list[tuple[str, ...]]] = {}
    heads = Counter(key[0] for key in spelled if len(key) > 1)
    for key in spelled:
        if len(key) > 1:
            ends.setdefault(key[-1], []).append(key)
    alone = (key for key in spelled if len(key) == 1 and not heads[key[0]])
    return {key: ends[key[0]][0] for key in alone if len(ends.get(key[0], ())) == 1}


def _parts(label: str, separator: str | None) -> list[str]:
    """The parts of a path, also where the spaces around its separator are missing."""
    if not separator:
        return [label.strip()]
    mark = separator.strip()
    is_spaced = mark in (">", "›", "»", "→", "|")
    parts = [part.strip() for part in label.split(mark if is_spaced else separator)]
    return [part for part in parts if part] or [label.strip()]


def _plain(part: str) -> str:
    return SPACE.sub(" ", part.strip()).casefold()
