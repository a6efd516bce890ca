"""Read labelled documents from files, standard input, or directories, and report what was found and left out."""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from ramify.arguments import as_path
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus, is_file_set, read_corpus
from ramify.data.frames import Frame, refuse_splits
from ramify.errors import InputError, RamifyError
from ramify.features import Vectors
from ramify.formatting import counted
from ramify.parallel import note
from ramify.taxonomy import Taxonomy
from ramify.type_hints import check_fields
from ramify.workflows.many_files import read_sharded

SHOWN_ROWS = 5  # bad rows that are named
SHOWN_TEXT = 60  # characters of a document
STDIN = "standard input"
LARGE = 1 << 26  # bytes from which one Parquet file is read in shards
BLOCK = 1 << 20  # bytes to copy at a time
OTHER_PLACE = "set TMPDIR to a directory on a disk with more room"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read labelled documents.

    text, label: columns (default: detected); several are joined by commas: texts "title,body", levels "level1,level2".
    label_separator: what separates multiple labels in one cell (default: detected). strict: refuse files with bad rows.
    keep_unlabelled: keep documents without a label (default: leave them out). encoding: of CSV, JSON and text files (default:
    detected). sheet: of a spreadsheet (default: the only one with cells). merge_spellings: take labels that differ in case or
    white space for one. columns: further columns of numbers or categories that are features, too. separate: give each text
    column features of its own, rather than joining the texts.
    """

    text: str | Sequence[str] | None = None
    label: str | Sequence[str] | None = None
    label_separator: str | None = None
    strict: bool = False
    keep_unlabelled: bool = False
    encoding: str | None = None
    sheet: str | None = None
    merge_spellings: bool = False
    columns: Sequence[str] = ()
    separate: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    def read(
        self,
        data: str | Path | Corpus | Frame,
        is_label: Callable[[str], bool] | None = None,
        *,
        like: dict[str, Any] | None = None,
        sharding: dict[str, Any] | None = None,
        may_be_empty: bool = False,
    ) -> Corpus:
        """Read the labelled documents of a file, of standard input ("-"), or of many files.

        is_label: whether a name is a known label, which helps to split cells. like: the columns of an earlier file.
        sharding: vectorizer, scratch directory and threads to count the words of many files without holding their texts.
        """
        if isinstance(data, Corpus):
            return data
        settings: dict[str, Any] = {"text": self.text, "label": self.label, "label_separator": self.label_separator}
        settings |= {"strict": self.strict, "encoding": self.encoding, "is_label": is_label, "like": like}
        settings["merge_spellings"] = self.merge_spellings
        more: dict[str, Any] = {"columns": self.columns, "separate": self.separate, "may_be_empty": may_be_empty}
        has_columns = bool(self.columns or self.separate or (like or {}).get("columns") or (like or {}).get("separate"))
        refuse_splits(data)
        if isinstance(data, Frame):
            return self._labelled(read_corpus(data, **more, **settings))
        data = as_path(data, "data")
        if sharding is not None and not has_columns and needs_shards(data):
            return self._labelled(read_sharded(data, **sharding, **settings))
        with readable(data) as file:
            corpus = read_corpus(file, sheet=self.sheet, **more, **settings)
            if file != data:  # a copy in a temporary file, of which nobody has heard
                name = STDIN if str(data) == "-" else str(data)
                corpus = replace(corpus, source=name, bad_rows=[replace(row, source=name) for row in corpus.bad_rows])
            return self._labelled(corpus)

    def _labelled(self, corpus: Corpus) -> Corpus:
        note_contents(corpus)
        missing = sum(not labels for labels in corpus.labels)
        if missing:
            done = "kept" if self.keep_unlabelled else "left out; --keep-unlabelled keeps them"
            note(f"  {counted(missing, 'document')} without a label, {done}")
        return corpus if self.keep_unlabelled else corpus.labelled()


def needs_shards(data: Any) -> bool:
    """Whether to read documents in shards: those of multiple files, or of one large Parquet file."""
    if not isinstance(data, (str, Path)):
        return False
    path = Path(data)
    return is_file_set(path) or (path.suffix.lower() == ".parquet" and path.is_file() and path.stat().st_size >= LARGE)


@contextmanager
def readable(path: Path) -> Iterator[Path]:
    """A file that can be read more than once: standard input (-) and pipes are copied to a temporary file."""
    if str(path) != "-" and (path.is_file() or path.is_dir() or not path.exists()):
        yield path
        return
    name = STDIN if str(path) == "-" else str(path)
    with temporary_directory() as folder:
        _copy(path, name, folder / "input")
        try:
            yield folder / "input"
        except RamifyError as error:
            error.args = (str(error).replace(str(folder / "input"), name),)
            raise


@contextmanager
def temporary_directory() -> Iterator[Path]:
    """A directory for files that are needed in this block only."""
    with ExitStack() as made:
        try:
            folder = made.enter_context(tempfile.TemporaryDirectory())
        except OSError as error:
            raise InputError(f"no temporary directory can be made: {error.strerror}; {OTHER_PLACE}.") from None
        yield Path(folder)


def _copy(path: Path, name: str, copy: Path) -> None:
    """Copy standard input (-) or a pipe to a file."""
    try:
        with open(copy, "wb") as file:
            file.writelines(_blocks(path, name))
    except OSError as error:
        raise InputError(f"cannot copy {name} to {copy.parent}: {error.strerror}; {OTHER_PLACE}.") from None


def _blocks(path: Path, name: str) -> Iterator[bytes]:
    """The content of standard input (-) or a pipe, a block at a time; refuses a device, which may never end."""
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else open(path, "rb") as source:
            is_device = _is_device(source)
            while block := source.read(BLOCK):
                if is_device:
                    raise InputError(f"{name} is a device, not a file of documents; give a file.")
                yield block
    except OSError as error:
        why = "it is closed" if error.errno == errno.EBADF else error.strerror
        raise InputError(f"{name} cannot be read: {why}; give a file.") from None


def _is_device(source: IO[bytes]) -> bool:
    """Whether what is read is a device other than a terminal."""
    try:
        return stat.S_ISCHR(os.fstat(source.fileno()).st_mode) and not source.isatty()
    except OSError:  # another program has put something else in the place of standard input
        return False


def note_contents(corpus: Corpus) -> None:
    """Report what was found in a file, with an example of each column, and the rows that were left out."""
    files = "" if corpus.locations is None else f" in {counted(len(set(corpus.locations.files)), 'file')}"
    if corpus.has_vectors:
        columns = f", vectors with features up to {corpus.documents.shape[1] - 1:,}"
    else:
        label, text = " > ".join(corpus.found["label"]), corpus.found["text"]
        text_example, label_example = _examples(corpus)
        separator = corpus.found["label_separator"]
        split = f", multiple labels split at {separator!r}" if separator else ""
        column = text if isinstance(text, str) else " and ".join(text)
        others = f", further columns {' and '.join(map(repr, named))}" if (named := corpus.found.get("columns")) else ""
        columns = f", text in {column!r}{text_example}, labels in {label!r}{label_example}{split}{others}"
    note(f"{corpus.source}: {counted(len(corpus), 'document')}{files}{columns}", logging.INFO)
    for remark in corpus.remarks:
        note(f"  {remark}")
    if corpus.bad_rows:
        note(f"  {counted(len(corpus.bad_rows), 'row')} left out:")
        for bad in corpus.bad_rows[:SHOWN_ROWS]:
            note(f"    {bad}")
        if len(corpus.bad_rows) > SHOWN_ROWS:
            note(f"    and {len(corpus.bad_rows) - SHOWN_ROWS:,} more")


def note_levels(taxonomy: Taxonomy, corpus: Corpus) -> None:
    """Report the taxonomy that was read from labels, and what they were split at."""
    n_labels = len({label for labels in corpus.labels for label in labels})
    split = f", split at {taxonomy.separator!r}" if taxonomy.n_levels > 1 else ""
    note(f"  {counted(n_labels, 'label')} in {counted(taxonomy.n_levels, 'level')}{split}", logging.INFO)


def _examples(corpus: Corpus) -> tuple[str, str]:
    """The text and the labels of the first labelled document, to see that the right columns were found."""
    position = next((k for k, labels in enumerate(corpus.labels) if labels), None)
    if position is None or not isinstance(corpus.documents, list):
        return "", ""
    document = corpus.documents[position]
    first = document if isinstance(document, str) else next((cell for cell in document if isinstance(cell, str)), "")
    text = " ".join(first[: 4 * SHOWN_TEXT].split())
    text = text if len(text) <= SHOWN_TEXT else f"{text[:SHOWN_TEXT]}…"
    return f" (such as {text!r})", f" ({', '.join(repr(label[:SHOWN_TEXT]) for label in corpus.labels[position][:3])})"


def read_added(
    files: Sequence[str | Path | Corpus | Frame], corpus: Corpus, taxonomy: Taxonomy | None, options: ReadOptions
) -> Corpus | None:
    """Read additional files as one corpus, with columns and labels as in the first; None without any."""
    known: Any = {label for labels in corpus.labels for label in labels} if taxonomy is None else taxonomy
    plain = ReadOptions(strict=options.strict)
    added: Corpus | None = None
    for file in files:
        some = plain.read(file, known.__contains__, like=corpus.found, may_be_empty=True)
        if not len(some):
            continue
        if corpus.has_vectors or some.has_vectors:
            raise InputError(f"{some.source} cannot be added: only texts can be added, to texts; put vectors into one file.")
        added = some if added is None else added.joined(some)
    if added is not None:
        replaced = len(corpus) - len(corpus.without_texts_of(added))
        if replaced:
            note(f"  {counted(replaced, 'document')} of {corpus.source} with the same text replaced by the added ones")
        new = {label: None for labels in added.labels for label in labels if label not in known}
        if new:
            note(f"  {counted(len(new), 'label')} not in {corpus.source}, such as {next(iter(new))!r}")
    return added


def adapt_corpus(classifier: TextClassifier, corpus: Corpus) -> Corpus:
    """A corpus in the form that the classifier reads; refuses vectors for a model of texts, and texts for one of vectors."""
    if not corpus.has_vectors:
        refuse_texts(classifier, corpus.source)
        return corpus
    if not isinstance(classifier.vectorizer_, Vectors):
        raise InputError(f"the model was trained on texts, but {corpus.source} holds vectors; give texts.")
    return corpus.with_width(classifier.vectorizer_.n_features_in_)


def refuse_texts(classifier: TextClassifier, source: str) -> None:
    """Refuse texts for a model of vectors."""
    if isinstance(classifier.vectorizer_, Vectors):
        raise InputError(f"the model was trained on vectors, but {source} holds texts; give vectors, as svmlight.")
