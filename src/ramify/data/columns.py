"""Which columns of a table hold the texts and the labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

from ramify.arguments import check_kind
from ramify.data.corpus import BadRow
from ramify.data.csv_tables import Row
from ramify.data.headers import LABEL_NAMES, LEVEL_NAME, SURE_LABEL_NAMES, TEXT_NAMES, second_name
from ramify.data.labels import as_list, find_label_separator, is_missing, split_cell
from ramify.data.tables import list_names
from ramify.errors import DataError, suggest
from ramify.taxonomy import ARROW, find_separator

OPTIONAL_TEXT = (str, NoneType)
SHORT_LABEL = 80  # characters; longer cells are texts
FEW_PATHS = 10  # cells in which the first parts of paths may be different
LONG_TEXT = 20  # characters on average; two columns with so long texts may both be meant
SHOWN = 60  # characters of an example

FLAGS = {
    "yes", "no", "y", "n", "true", "false", "t", "f", "0", "1", "x", "ja", "nein", "oui", "non", "si", "sí", "да", "нет",
}  # fmt: skip
DATE = r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[ T,]+\d{1,2}:\d{2}.*)?|\d{1,2}:\d{2}(?::\d{2}.*)?"
NAMED_DATE = r"(?:\d{1,2}\.? )?[A-Za-z]{3,9}\.? (?:\d{1,2}, )?\d{4}(?:,? \d{1,2}:\d{2}.*)?"
NUMBER = r"[-+]?[€$£]?[\d.,' ]*\d[\d.,' ]*(?:[eE][-+]?\d+)?[ ]?[%€$£]?|nan|inf"
ADDRESS = r"(?:https?://|www\.)\S+|[^\s@]+@[^\s@]+\.\w+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}"
LONGEST_VALUE = 200  # characters of a number, date or address; matching longer ones would take time
NUMBERS = re.compile(NUMBER, re.IGNORECASE)
NO_TEXT = re.compile(f"{NUMBER}|{DATE}|{NAMED_DATE}|{ADDRESS}", re.IGNORECASE)

Sample = list[tuple[int, Row | BadRow]]  # the first rows of a table


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns in use.

    texts: joined, if there are several and they are not separate. labels: more than one are the levels of a path, from the top.
    others: columns of numbers and categories that are features, too. is_separate: whether each text column has features of its
    own.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    others: tuple[str, ...] = ()
    is_separate: bool = False

    @property
    def text(self) -> str | list[str]:
        """The text column, or a list of several."""
        return self.texts[0] if len(self.texts) == 1 else list(self.texts)

    @property
    def wanted(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.texts, *self.labels, *self.others)))

    @property
    def blocks(self) -> list[str | None]:
        """The names of the columns of a document: of texts, None where there is one block of them, and then of the others."""
        texts: list[str | None] = list(self.texts) if self.is_separate and len(self.texts) > 1 else [None]
        return [*texts, *self.others]

    def read_document(self, row: Row) -> Any:
        """The text of a row, or a tuple of its cells where a document has several columns."""
        if not self.others and not (self.is_separate and len(self.texts) > 1):
            return self.read_text(row)
        texts = [row.get(name) for name in self.texts] if self.is_separate else [self.read_text(row)]
        return (*map(_as_cell, texts), *(_as_cell(row.get(name)) for name in self.others))

    def read_text(self, row: Row) -> Any:
        """The text of a row; several cells are joined by line ends, and empty ones left out."""
        if len(self.texts) == 1:
            return row.get(self.texts[0])
        cells = [row.get(name) for name in self.texts]
        odd = next((cell for cell in cells if cell is not None and not isinstance(cell, (str, int, float))), None)
        return odd if odd is not None else "\n".join(str(cell) for cell in cells if cell not in (None, ""))


@dataclass(frozen=True, slots=True)
class GivenColumns:
    """The columns that a user names; None for those to be found. like: what was found in an earlier table."""

    text: Any = None
    label: Any = None
    others: Any = ()
    is_separate: bool = False
    like: dict[str, Any] | None = None


def read_cell(row: Row, columns: Columns) -> tuple[str | None, Any]:
    """What is wrong with the label of a row, if anything is; and the label: a string, or a list of strings."""
    cells = [row.get(name) for name in columns.labels]
    if len(cells) > 1:  # a path, up to the first empty cell
        odd = [cell for cell in cells if isinstance(cell, (list, dict, bool))]
        if odd:
            return f"the level {str(odd[0])[:40]} is not a string", None
        parts = ["" if cell is None or is_missing(str(cell)) else str(cell).strip() for cell in cells]
        return None, ARROW.join(parts[: parts.index("")] if "" in parts else parts)
    cell = _named(cells[0])
    if isinstance(cell, (dict, bool)):
        return f"the label is {str(cell)[:40]}, not a string or a list of strings", None
    if not isinstance(cell, list):
        return None, "" if cell is None else str(cell)
    labels = [_named(label) for label in cell]
    if not all(isinstance(label, str) for label in labels):
        return f"the label list {str(cell)[:40]} holds something other than strings", None
    return None, [label.strip() for label in labels if label.strip()]


def _named(cell: Any) -> Any:
    """The name of a label that is an object, as in exports of GitHub."""
    return cell["name"] if isinstance(cell, dict) and isinstance(cell.get("name"), str) else cell


def training_columns(source: str, names: list[str], sample: Sample, given: GivenColumns) -> Columns:
    """The columns for training; refuses a table without labels, with the text as label, or without a header row."""
    rows = _readable_rows(sample)
    others = _other_columns(source, names, given)
    columns = find_columns(source, [name for name in names if name not in others], rows, *_preferred(names, given))
    columns = replace(columns, others=others, is_separate=given.is_separate or bool((given.like or {}).get("separate")))
    if not columns.labels:
        found = _repeated([name for name in names if name not in columns.texts], rows)
        if len(found) > 1:
            problem = f"{source}: {len(found)} columns could be the labels, {list_names(found)}"
            raise DataError(f"{problem}; name one of them with --label, or several levels as --label level1,level2.")
        columns = Columns(columns.texts, tuple(found))
    if not columns.labels:
        raise DataError(f"{source}: no column looks like labels; name it with --label. The columns are {list_names(names)}.")
    if both := next((name for name in columns.texts if name in columns.labels), None):
        raise DataError(f"{source}: column {both!r} cannot be both text and label; name two different columns.")
    first = columns.labels[0]
    if len(columns.labels) == 1 and first.lower() not in LABEL_NAMES and any(row.get(first) == first for row in rows):
        found_row = f"the first row looks like a document, since its {first[:40]!r} is a label of other rows too"
        raise DataError(f"{source}: {found_row}; put a row with column names first.")
    return columns


def text_columns(source: str, names: list[str], sample: Sample, text: Any, like: dict[str, Any] | None) -> Columns:
    """The columns to classify, from the first rows of a table."""
    preferred = _preferred(names, GivenColumns(text, like=like))
    found = find_columns(source, names, _readable_rows(sample), *preferred, wants_labels=False)
    return with_others(replace(found, labels=()), like)


def with_others(columns: Columns, like: dict[str, Any] | None) -> Columns:
    """The columns with those that the training table had beside its texts; one that is not there has missing cells."""
    known = like or {}
    return replace(columns, others=tuple(known.get("columns", ())), is_separate=bool(known.get("separate")))


def _other_columns(source: str, names: Sequence[str], given: GivenColumns) -> tuple[str, ...]:
    """The columns of numbers and categories: named, or those of an earlier table."""
    wanted = split_names(given.others, names, "columns") if given.others else (given.like or {}).get("columns")
    for column in wanted or ():
        if column not in names:
            problem = f"{source} has no column {column!r}; its columns are {list_names(names)}"
            why = "Name one of them with --column" if given.others else "The model was trained with it"
            raise DataError(f"{problem}. {why}.{suggest(column, names)}")
        for option, used in (("--text", given.text), ("--label", given.label)):
            if column in (split_names(used, names, "columns") or ()):
                raise DataError(f"{source}: column {column!r} is given with --column and with {option}; leave one of them out.")
    return tuple(dict.fromkeys(wanted or ()))


def find_columns(
    source: str,
    names: Sequence[str],
    sample: Sequence[Row],
    texts: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    wants_labels: bool = True,
) -> Columns:
    """The named columns, or else columns that look like text and labels; `labels` may be empty."""
    for option, wanted in (("--text", texts or ()), ("--label", labels or ())):
        for column in wanted:
            if column not in names:
                found = f"{source} has no column {column!r}; its columns are {list_names(names)}"
                raise DataError(f"{found}. Name one of them with {option}.{suggest(column, names)}")
    given = {*(texts or ()), *(labels or ())}
    if not labels and wants_labels:
        labels = _guess_labels(source, [name for name in names if name not in (texts or ())], sample)
    free = [name for name in names if name not in (labels or ())]
    if not texts:
        found_text = _guess_text(source, free, sample, bool(labels))
        if found_text is None:
            raise DataError(f"{source}: no column looks like text; name it with --text. The columns are {list_names(names)}.")
        texts = [found_text]
    for option, chosen in (("--text", texts), ("--label", labels or ())):
        if twice := next((name for name in chosen if name not in given and second_name(name) in names), None):
            problem = f"{source} has two columns named {twice!r}"
            raise DataError(f"{problem}; name one of them with {option}: {twice!r} or {second_name(twice)!r}.")
    return Columns(tuple(texts), tuple(labels or ()))


def split_names(given: Any, names: Sequence[str], what: str) -> list[str] | None:
    """The columns that a user names: one, a list, or names with commas between them."""
    if given is None:
        return None
    if isinstance(given, (list, tuple)) and given and all(isinstance(name, str) for name in given):
        return list(given)
    check_kind(given, str, what, "the name of a column, several with commas between them, or None")
    return [given] if given in names else [part.strip() for part in given.split(",") if part.strip()] or [given]


def _preferred(names: list[str], given: GivenColumns) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """The columns that the user names, or else those of an earlier corpus that this table has too."""
    like, text, label = given.like, given.text, given.label
    check_kind(like, (Mapping, NoneType), "like", "what was found in an earlier corpus, or None")
    known = like or {}
    texts, labels = split_names(text, names, "text"), split_names(label, names, "label")
    if texts is None and known.get("text"):
        texts = [known["text"]] if isinstance(known["text"], str) else known["text"]
        texts = texts if all(name in names for name in texts) else None
    if labels is None and known.get("label"):
        labels = known["label"] if all(name in names for name in known["label"]) else None
    return texts, labels


def _as_cell(cell: Any) -> str | float | None:
    """A cell as a plain value that can be compared; None if it is empty."""
    if cell is None or isinstance(cell, (str, bool)) or not isinstance(cell, (int, float)):
        return None if cell in (None, "") else str(cell)
    return float(cell)


def _readable_rows(sample: Sample) -> list[Row]:
    return [row for _, row in sample if isinstance(row, dict)]


def _guess_text(source: str, names: Sequence[str], sample: Sequence[Row], has_labels: bool) -> str | None:
    """A column with a usual name, or else the one with the longest texts; numbers, dates and addresses do not count."""
    lengths = {name: _mean_length(name, sample) for name in names}
    usual = [name for wanted in TEXT_NAMES for name in names if _plain_name(name) == wanted]
    if usual or (len(names) < 2 and not has_labels):
        return next((name for name in usual if lengths[name] > 0), usual[0] if usual else None)
    longest = max((name for name in names if lengths[name] > 0), key=lambda name: lengths[name], default=None)
    if longest is None:
        return None
    repeated = _repeated(names, sample)
    least = max(LONG_TEXT, lengths[longest] / 2)
    long = [name for name in names if lengths[name] >= least and name not in repeated]
    if len(long) > 1:
        problem = f"{source}: {len(long)} columns could be the texts, {list_names(long)}"
        raise DataError(f"{problem}; name one of them with --text, or several to join as --text {','.join(long[:2])}.")
    return longest


def _mean_length(name: str, sample: Sequence[Row]) -> float:
    """The mean length of the texts of a column."""
    texts = [row[name] for row in sample if isinstance(row.get(name), str) and not _is_no_text(row[name])]
    return sum(map(len, texts)) / len(texts) if texts else 0.0


def _guess_labels(source: str, names: Sequence[str], sample: Sequence[Row]) -> tuple[str, ...]:
    """Level columns, a column with a usual name, or else the only one with paths or with repeated values."""
    if levels := _level_columns(names):
        return levels
    usual = [name for wanted in LABEL_NAMES for name in names if _plain_name(name) == wanted]
    sure = [name for name in usual if _plain_name(name) in SURE_LABEL_NAMES]
    if len(sure) > 1:
        sure = _told_apart(sure, sample)
        if len(sure) > 1:
            problem = f"{source}: {len(sure)} columns could be the labels, {list_names(sure)}"
            raise DataError(f"{problem}; name one of them with --label.")
    if sure:
        return (_with_names(sure[0], names, sample),)
    usual = [name for name in usual if not _tells_rows_apart(name, sample)] or usual
    if usual and not _tells_rows_apart(usual[0], sample):
        return (usual[0],)
    for found in (_paths(names, sample), _repeated(names, sample)):
        if len(found) == 1:
            return (found[0],)
    return tuple(usual[:1])


def _tells_rows_apart(name: str, sample: Sequence[Row]) -> bool:
    """Whether each row has a value of its own, as keys have."""
    cells = _cells(name, sample)
    return len(cells) > 3 and len(set(cells)) == len(cells)


def _with_names(label: str, names: Sequence[str], sample: Sequence[Row]) -> str:
    """A column that has names for the numbers of this one, such as label_text beside label; or else this one."""
    if not all(map(_is_number, _cells(label, sample))):
        return label
    numbers = [str(row.get(label)) for row in sample]
    for name in names:
        cells = [str(row.get(name)) for row in sample]
        is_beside = name != label and _plain_name(name).startswith(_plain_name(label)) and not all(map(_is_number, cells))
        if is_beside and len(set(numbers)) == len(set(cells)) == len(set(zip(numbers, cells, strict=True))):
            return name
    return label


def _level_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Columns such as level1, level2, …; or category, subcategory, subsubcategory."""
    levels = sorted((int(match[1]), name) for name in names if (match := LEVEL_NAME.fullmatch(name)))
    if len(levels) > 1:
        return tuple(name for _, name in levels)
    plain = {_plain_name(name).replace(" ", "").replace("-", ""): name for name in names}
    for top in LABEL_NAMES:
        chain = list(_below(top, plain))
        if len(chain) > 1:
            return tuple(chain)
    return ()


def _below(top: str, plain: Mapping[str, str]) -> Iterator[str]:
    while top in plain:
        yield plain[top]
        top = f"sub{top}"


def _told_apart(names: list[str], sample: Sequence[Row]) -> list[str]:
    """The columns that say something of their own: not empty, and no numbers that stand for the names of another column."""
    full = [name for name in names if len({str(row.get(name)) for row in sample if row.get(name) not in (None, "")}) > 1]
    named = [name for name in full if not all(_is_number(str(row.get(name))) for row in sample)]
    kept = named or full or names
    first = kept[0]
    pairs = {name: {(str(row.get(first)), str(row.get(name))) for row in sample} for name in kept}
    return [first, *(name for name in kept[1:] if any(a != b for a, b in pairs[name]))]


def _paths(names: Sequence[str], sample: Sequence[Row]) -> list[str]:
    """Columns whose cells are paths."""
    return [name for name in names if (cells := _cells(name, sample)) and _are_paths(cells)]


def _are_paths(cells: Sequence[str]) -> bool:
    """Whether most cells have an arrow between parts, and the first parts repeat; a text may have an arrow, too."""
    separator = find_separator(cells)
    if separator is None or separator.strip() not in ("›", "»", ">", "::") or max(map(len, cells)) > 4 * SHORT_LABEL:
        return False
    paths = [cell.split(separator) for cell in cells if separator in cell]
    repeat = len(cells) < FEW_PATHS or 2 * len({path[0].strip() for path in paths}) <= len(paths)
    return 2 * len(paths) >= len(cells) and repeat


def _repeated(names: Sequence[str], sample: Sequence[Row]) -> list[str]:
    """Columns that repeat their values; numbers, dates and long texts do not count, and flags only where nothing else does."""
    found: list[str] = []
    flags: list[str] = []
    for name in names:
        cells = _cells(name, sample)
        if len(cells) <= 3 or sum(map(len, cells)) > SHORT_LABEL * len(cells) or all(map(_is_no_text, cells)):
            continue
        labels = _single_labels(cells)
        if 1 < len(set(labels)) <= 0.5 * len(labels):
            (flags if {cell.lower() for cell in cells} <= FLAGS else found).append(name)
    return found or flags


def _single_labels(cells: Sequence[str]) -> list[str]:
    """The labels of cells that may hold several."""
    mark = find_label_separator(set(cells))
    found: list[str] = []
    for cell in cells:
        labels = as_list(cell)
        found += split_cell(cell, mark) if labels is None else labels
    return found


def _cells(name: str, sample: Sequence[Row]) -> list[str]:
    """The cells of a column that hold something."""
    cells = (str(row[name]).strip() for row in sample if row.get(name) is not None)
    return [cell for cell in cells if not is_missing(cell)]


def _plain_name(name: str) -> str:
    return name.strip().lower()


def _is_number(cell: str) -> bool:
    return len(cell) <= LONGEST_VALUE and NUMBERS.fullmatch(cell.strip()) is not None


def _is_no_text(cell: str) -> bool:
    """Whether a cell is a number, a date or an address."""
    return len(cell) <= LONGEST_VALUE and NO_TEXT.fullmatch(cell.strip()) is not None
