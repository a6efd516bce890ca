"""Read and write taxonomy files of any format."""

from __future__ import annotations

import re
from pathlib import Path

from ramify.arguments import as_path, describe
from ramify.errors import InputError, TaxonomyError, suggest
from ramify.formatting import cut
from ramify.persistence.atomic import refuse_existing, write_text_atomically
from ramify.persistence.paths import read_at_most
from ramify.taxonomy.formats import FORMATS, Format, doccano, label_studio
from ramify.taxonomy.formats import text as text_formats
from ramify.taxonomy.hierarchy import Taxonomy, check_taxonomy

MAX_BYTES = 1 << 30
LONGEST = 900  # characters of a message, which may quote what a file holds
JSON_DOCUMENTS = re.compile(
    r"""\s*(?:\[\s*|\{\s*"(?:data|rows|\d+)"\s*:\s*\[?\s*)?\{\s*"(?:text|body|message|label|labels|id|category)"
    |\s*\{\s*"(?:columns|data)"\s*:\s*\[|\s*\{\s*"schema"\s*:\s*\{""",
    re.VERBOSE,
)
EMPTY = "the file is empty; give at least one node."
SUFFIXES = {".json": "json", ".ttl": "skos", ".txt": "paths", ".tsv": "edges", ".xml": "label-studio"}
LANGUAGE = re.compile(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*")


def read_taxonomy(path: str | Path, format: str | None = None, language: str | None = None) -> Taxonomy:
    """Read a taxonomy file; the format is detected from the content by default.

    Formats: edges (child–parent table), paths, indented, json, lshtc (cat_hier), skos, label-studio (labelling configuration),
    doccano (label list).
    language: of the titles in a SKOS file, such as "de"; where one is missing, a title without a language, in English, or in
    any other language is taken, in this order.
    """
    path = as_path(path, "path")
    try:
        return parse_taxonomy(read_text(path), format, language)
    except TaxonomyError as error:
        raise TaxonomyError(cut(f"{path}: {error}", LONGEST)) from None


def parse_taxonomy(text: str, format: str | None = None, language: str | None = None) -> Taxonomy:
    """Parse the text of a taxonomy file.

    >>> parse_taxonomy("Food > Fruit > Apple").names[-1]
    'Food > Fruit > Apple'
    """
    name = format or find_format(text)
    taxonomy = known_format(name).parse(text, *_languages(name, language))
    if len(taxonomy) == 0:
        raise TaxonomyError(EMPTY)
    return taxonomy


def known_format(name: str) -> Format:
    """The format of this name."""
    if name not in FORMATS:
        raise InputError(f"taxonomy format {name!r} is unknown; the formats are {', '.join(FORMATS)}.{suggest(name, FORMATS)}")
    return FORMATS[name]


def _languages(name: str, language: str | None) -> tuple[str, ...]:
    """The language as a further argument of a format's functions, if one is given."""
    if language is None:
        return ()
    if not FORMATS[name].has_languages:
        having = ", ".join(each for each, form in FORMATS.items() if form.has_languages)
        raise InputError(f"a taxonomy in the format {name!r} has no languages, only {having} has; leave out the language.")
    if not isinstance(language, str) or LANGUAGE.fullmatch(language) is None:
        raise InputError(f"language is {describe(language)}; give a code such as 'de' or 'pt-BR'.")
    return (language,)


def find_format(text: str) -> str:
    """The format of a text: the most specific ones are tried first, and paths fit any text."""
    lines = [line for line in text.splitlines()[:200] if line.strip()]
    pairs = [line for line in text.splitlines()[:50] if line.strip()]
    if doccano.is_label_list(text):
        return "doccano"
    if label_studio.is_configuration(text):
        return "label-studio"
    if re.match(r'\s*(\{\s*("|\})|\[\s*("|\{|\[|\]))', text):  # a JSON object or list
        return "json"
    if "www.w3.org/2004/02/skos/core" in text[:20_000]:
        return "skos"
    if pairs and all(text_formats.PAIR.fullmatch(line) for line in pairs):
        return "lshtc"
    # with commas or semicolons, a table must also have parents
    if text_formats.find_delimiter(text) == "\t" or text_formats.names_a_parent(text):
        return "edges"
    if lines and not lines[0][0].isspace() and any(line[0].isspace() for line in lines):
        return "indented"
    if not text.strip():
        raise TaxonomyError(EMPTY)
    return "paths"


def as_taxonomy(given: Taxonomy | str | Path) -> Taxonomy:
    """A taxonomy as it is, or read from a file."""
    if isinstance(given, Taxonomy):
        return given
    if isinstance(given, (str, Path)):
        return read_taxonomy(given)
    raise InputError(f"taxonomy is a {type(given).__name__}; give a ramify.Taxonomy or the path of a taxonomy file.")


def is_taxonomy_file(path: str | Path) -> bool:
    """Whether a file is a taxonomy rather than documents: a table with a parent column, or JSON that lists no documents."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson", ".parquet", ".gz", ".svm", ".svmlight", ".libsvm"):
        return False
    try:
        text = read_text(path)
    except TaxonomyError:
        return False  # a spreadsheet, or text in another encoding; taxonomies are UTF-8
    if suffix in (".csv", ".tsv", ".tab"):
        return text_formats.names_a_parent(text)
    return not text_formats.names_documents(text) and JSON_DOCUMENTS.match(text) is None


def write_taxonomy(
    taxonomy: Taxonomy, path: str | Path, format: str | None = None, language: str | None = None, *, overwrite: bool = True
) -> None:
    """Write a taxonomy file; the format is given by the suffix by default (.tsv, .txt, .json, .ttl, .xml).

    language: of the titles, which SKOS notes. overwrite: whether a file that exists is replaced.
    """
    check_taxonomy(taxonomy)
    path = as_path(path, "path")
    name = format or SUFFIXES.get(path.suffix.lower())
    if name not in FORMATS:
        hint = suggest(str(format), FORMATS)
        raise InputError(f"cannot tell the format of {path}; give one of {', '.join(FORMATS)}.{hint}")
    refuse_existing(path, overwrite)
    write_text_atomically(path, render_taxonomy(taxonomy, name, language))


def render_taxonomy(taxonomy: Taxonomy, format: str, language: str | None = None) -> str:
    """The text of a taxonomy file."""
    return known_format(format).render(taxonomy, *_languages(format, language))


def read_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        data = read_at_most(path, MAX_BYTES)
    except OSError as error:
        raise TaxonomyError(f"cannot be read: {error.strerror}.") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TaxonomyError(f"line {line} is not UTF-8; save the file as UTF-8.") from None
