"""Which columns of a table hold the texts and the labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

from ramify.arguments import check_kind
from ramify.data.column_names import LABEL_NAMES, LEVEL_NAME
from ramify.data.corpus import BadRow
from ramify.data.csv_tables import Row
from ramify.data.tables import list_names
from ramify.errors import DataError, suggest
from ramify.taxonomy import find_separator

OPTIONAL_TEXT = (str, NoneType)
TEXT_NAMES = (
    "text", "texts", "body", "message", "description", "content", "document", "request", "question", "review", "abstract",
    "comment", "title", "subject", "summary", "sentence", "utterance", "query",
)  # fmt: skip
SURE_NAMES = LABEL_NAMES[:8]  # of two of these, neither is the obvious one
SHORT_LABEL = 80  # characters; longer cells are texts
LONG_TEXT = 20  # characters on average; a column of usual texts is at least so long
SHOWN = 60  # characters of an example

Sample = list[tuple[int, Row | BadRow]]  # the first rows of a table


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns in use. texts: joined, if there are several. labels: more than one are the levels of a path, from the top."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def text(self) -> str | list[str]:
        """The text column, or a list of several."""
        return self.texts[0] if len(self.texts) == 1 else list(self.texts)

    @property
    def wanted(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.texts, *self.labels)))

    def read_text(self, row: Row) -> Any:
        """The text of a row; several cells are joined by line ends, and empty ones left out."""
        if len(self.texts) == 1:
            return row.get(self.texts[0])
        cells = [row.get(name) for name in self.texts]
        odd = next((cell for cell in cells if cell is not None and not isinstance(cell, (str, int, float))), None)
        return odd if odd is not None else "\n".join(str(cell) for cell in cells if cell not in (None, ""))


def training_columns(
    source: str, names: list[str], sample: Sample, text: Any, label: Any, like: dict[str, Any] | None
) -> Columns:
    """The columns for training; refuses a table without labels, with the text as label, or without a header row."""
    rows = _readable_rows(sample)
    columns = find_columns(source, names, rows, *_preferred(names, text, label, like))
    if not columns.labels:
        found = _repeated([name for name in names if name not in columns.texts], rows)
        if len(found) > 1:
            problem = f"{source}: {len(found)} columns could be the labels, {list_names(found)}"
            raise DataError(f"{problem}; name one of them with --label, or several levels as --label level1,level2.")
        raise DataError(f"{source}: no column looks like labels; name it with --label. The columns are {list_names(names)}.")
    if both := next((name for name in columns.texts if name in columns.labels), None):
        raise DataError(f"{source}: column {both!r} cannot be both text and label; name two different columns.")
    first = columns.labels[0]
    if len(columns.labels) == 1 and first.lower() not in LABEL_NAMES and any(row.get(first) == first for row in rows):
        found_row = f"the first row looks like a document, since its {first[:40]!r} is a label of other rows too"
        raise DataError(f"{source}: {found_row}; put a row with column names first.")
    return columns


def text_columns(source: str, names: list[str], sample: Sample, text: Any, like: dict[str, Any] | None) -> Columns:
    """The columns with the text to classify, from the first rows of a table."""
    preferred = _preferred(names, text, None, like)
    return Columns(find_columns(source, names, _readable_rows(sample), *preferred, wants_labels=False).texts, ())


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
    if not labels and wants_labels:
        labels = _guess_labels(source, [name for name in names if name not in (texts or ())], sample)
    free = [name for name in names if name not in (labels or ())]
    if not texts:
        found_text = _guess_text(free, sample, bool(labels))
        if found_text is None:
            raise DataError(f"{source}: no column looks like text; name it with --text. The columns are {list_names(names)}.")
        texts = [found_text]
    return Columns(tuple(texts), tuple(labels or ()))


def split_names(given: Any, names: Sequence[str], what: str) -> list[str] | None:
    """The columns that a user names: one, a list, or names with commas between them."""
    if given is None:
        return None
    if isinstance(given, (list, tuple)) and given and all(isinstance(name, str) for name in given):
        return list(given)
    check_kind(given, str, what, "the name of a column, several with commas between them, or None")
    return [given] if given in names else [part.strip() for part in given.split(",") if part.strip()] or [given]


def _preferred(
    names: list[str], text: Any, label: Any, like: dict[str, Any] | None
) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """The columns that the user names, or else those of an earlier corpus that this table has too."""
    check_kind(like, (Mapping, NoneType), "like", "what was found in an earlier corpus, or None")
    known = like or {}
    texts, labels = split_names(text, names, "text"), split_names(label, names, "label")
    if texts is None and known.get("text"):
        texts = [known["text"]] if isinstance(known["text"], str) else known["text"]
        texts = texts if all(name in names for name in texts) else None
    if labels is None and known.get("label"):
        labels = known["label"] if all(name in names for name in known["label"]) else None
    return texts, labels


def _readable_rows(sample: Sample) -> list[Row]:
    return [row for _, row in sample if isinstance(row, dict)]


def _guess_text(names: Sequence[str], sample: Sequence[Row], has_labels: bool) -> str | None:
    """A column with a usual name, or else the one with the longest texts; numbers do not count."""
    usual = next((name for wanted in TEXT_NAMES for name in names if _plain_name(name) == wanted), None)
    if usual is not None or (len(names) < 2 and not has_labels):
        return usual
    lengths = {name: _mean_length(name, sample) for name in names}
    return max((name for name in names if lengths[name] > 0), key=lambda name: lengths[name], default=None)


def _mean_length(name: str, sample: Sequence[Row]) -> float:
    """The mean length of the texts of a column."""
    texts = [row[name] for row in sample if isinstance(row.get(name), str) and not _is_number(row[name])]
    return sum(map(len, texts)) / len(texts) if texts else 0.0


def _guess_labels(source: str, names: Sequence[str], sample: Sequence[Row]) -> tuple[str, ...]:
    """Level columns, a column with a usual name, or else the only one with paths or with repeated values."""
    if levels := _level_columns(names):
        return levels
    usual = [name for wanted in LABEL_NAMES for name in names if _plain_name(name) == wanted]
    sure = [name for name in usual if _plain_name(name) in SURE_NAMES]
    if len(sure) > 1:
        sure = _told_apart(sure, sample)
        if len(sure) > 1:
            problem = f"{source}: {len(sure)} columns could be the labels, {list_names(sure)}"
            raise DataError(f"{problem}; name one of them with --label.")
    if usual:
        return ((sure or usual)[0],)
    for found in (_paths(names, sample), _repeated(names, sample)):
        if len(found) == 1:
            return (found[0],)
    return ()


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
    separator = find_separator(cells)
    most = max(map(len, cells))
    return separator is not None and separator.strip() in ("›", "»", ">", "::") and most <= 4 * SHORT_LABEL


def _repeated(names: Sequence[str], sample: Sequence[Row]) -> list[str]:
    """Columns that repeat their values; numbers and long texts do not count."""
    found = []
    for name in names:
        cells = _cells(name, sample)
        is_repeated = len(cells) > 3 and 1 < len(set(cells)) <= 0.5 * len(cells)
        if is_repeated and not all(map(_is_number, cells)) and sum(map(len, cells)) <= SHORT_LABEL * len(cells):
            found.append(name)
    return found


def _cells(name: str, sample: Sequence[Row]) -> list[str]:
    return [str(row.get(name)) for row in sample if row.get(name) not in (None, "")]


def _plain_name(name: str) -> str:
    return name.strip().lower()


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
