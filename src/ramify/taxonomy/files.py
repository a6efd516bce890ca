"""Reading a taxonomy from a file, whatever its format, and writing it back."""

from __future__ import annotations

from pathlib import Path

from ramify.errors import InputError, TaxonomyError, suggest
from ramify.persistence.atomic import write_text_atomically
from ramify.taxonomy.formats import FORMATS, edges
from ramify.taxonomy.hierarchy import Taxonomy

MAX_BYTES = 1 << 30
SUFFIXES = {".json": "json", ".ttl": "skos", ".txt": "paths", ".tsv": "edges"}


def read_taxonomy(path: str | Path, format: str | None = None) -> Taxonomy:
    """Read a taxonomy file; without `format` the content tells which of the formats it is.

    Formats: edges (child–parent table), paths, indented, json, lshtc (cat_hier), skos.
    """
    path = Path(path)
    try:
        return parse_taxonomy(_read_text(path), format)
    except TaxonomyError as error:
        raise TaxonomyError(f"{path}: {error}") from None


def parse_taxonomy(text: str, format: str | None = None) -> Taxonomy:
    """Make a taxonomy of the text of a file.

    >>> parse_taxonomy("Food > Fruit > Apple").names[-1]
    'Food > Fruit > Apple'
    """
    name = format or find_format(text)
    if name not in FORMATS:
        raise InputError(
            f"taxonomy format {name!r} is unknown; the formats are {', '.join(FORMATS)}.{suggest(name, FORMATS)}"
        )
    return FORMATS[name].parse(text)


def find_format(text: str) -> str:
    """The name of the first format that recognizes a text."""
    for name, candidate in FORMATS.items():
        if candidate.looks_like(text):
            return name
    raise TaxonomyError("the file is empty; give at least one node.")


def looks_like_taxonomy(path: str | Path) -> bool:
    """Whether a file is rather a taxonomy than a table of documents.

    A table of two or three columns is a taxonomy when its first row names a parent column or some node has no parent.
    """
    path = Path(path)
    if path.suffix.lower() in (".jsonl", ".ndjson", ".parquet", ".gz", ".svm", ".svmlight", ".libsvm"):
        return False
    try:
        text = _read_text(path)
    except TaxonomyError:
        return False
    return edges.names_a_parent(text) if path.suffix.lower() in (".csv", ".tsv", ".tab") else True


def write_taxonomy(taxonomy: Taxonomy, path: str | Path, format: str | None = None) -> None:
    """Write a taxonomy file; without `format` the ending of the name tells which (.tsv, .txt, .json, .ttl)."""
    path = Path(path)
    name = format or SUFFIXES.get(path.suffix.lower())
    if name not in FORMATS:
        raise InputError(f"cannot tell the format of {path}; give one of {', '.join(FORMATS)}.")
    write_text_atomically(path, FORMATS[name].render(taxonomy))


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TaxonomyError(f"the file has {path.stat().st_size:,} bytes; at most {MAX_BYTES:,} are read.")
        data = path.read_bytes()
    except OSError as error:
        raise TaxonomyError(f"cannot be read: {error.strerror}.") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TaxonomyError(f"line {line} is not UTF-8; save the file as UTF-8.") from None
