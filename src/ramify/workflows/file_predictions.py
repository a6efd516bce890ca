"""A directory of answers, one file for each file of documents, and the note in it that says what they are answers of.

    ramify-answers.json   the model's fingerprint, what was asked for, and for each file of answers the documents it is of
    part-0.csv            answers; a file is there whole or not at all

The note is there before the first file, so whatever the process was doing when it was killed, the files that are there are
answers of what the note says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from ramify.classifier.loading import load
from ramify.data import FileSet, open_file_set
from ramify.data.documents import SAMPLE, text_column
from ramify.data.file_sets import rows_of
from ramify.data.tables import SUFFIXES, known_encoding
from ramify.decisions import DecisionRule
from ramify.errors import DataError, InputError, ModelError
from ramify.parallel import choose_executor, is_distributed, running_on, stage
from ramify.parallel.progress import DescribedStage
from ramify.parallel.values import digest_of
from ramify.persistence import atomic_writer, exclusive_writer, model_fingerprint, write_text_atomically
from ramify.workflows.evaluation import refuse_texts
from ramify.workflows.predict_stream import WRITERS, Tally, answer_stream, write_all
from ramify.workflows.predictor import PredictOptions, Predictor

NOTE = "ramify-answers.json"
FORMAT = "ramify-answers-1"
BEGIN = "leave out --resume to begin anew"


@dataclass(frozen=True, slots=True)
class AnswerFolder:
    """What is to be in a directory of answers.

    depends_on: all that answers depend on beside the documents, as plain values, by what users call it.
    sources: the file of documents of each file of answers, by its name.
    """

    directory: Path
    depends_on: Mapping[str, Any]
    sources: Mapping[str, Path]

    @contextmanager
    def opened(self, resume: bool) -> Iterator[list[str]]:
        """The names of the files that are to be written, while nobody else may write here.

        resume: files that an earlier run wrote stay, if all else is the same; otherwise they are removed before anything is
        written. Files that are not ours are never touched.
        """
        if resume and not (self.directory / NOTE).is_file():
            raise InputError(f"there are no answers to go on with in {self.directory}; {BEGIN}.")
        self._make()
        with exclusive_writer(self.directory / NOTE):
            before = self._read()
            done = self._check_earlier(before) if resume else self._clear(before)
            self._write(before if resume else {})
            yield [name for name in self.sources if name not in done]

    def _make(self) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.directory} cannot be a directory for answers: {error.strerror}; choose another.") from None

    def _read(self) -> dict[str, Any]:
        """What an earlier run noted; nothing where there was none."""
        path = self.directory / NOTE
        if not path.exists():
            return {}
        try:
            note = json.loads(path.read_bytes())
            fits = note["format"] == FORMAT and isinstance(note["depends_on"], dict) and isinstance(note["files"], dict)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            fits = False
        if not fits or any("/" in name or name.startswith(".") for name in note["files"]):
            raise InputError(f"{path} is not a note that this Ramify writes; choose another directory, or remove it.")
        return dict(note)

    def _write(self, before: Mapping[str, Any]) -> None:
        files = {**before.get("files", {}), **{name: stand_of(path) for name, path in self.sources.items()}}
        note = {"format": FORMAT, "depends_on": self.depends_on, "files": files}
        write_text_atomically(self.directory / NOTE, json.dumps(note, ensure_ascii=False, indent=1) + "\n")

    def _check_earlier(self, before: dict[str, Any]) -> set[str]:
        """The files that are there already; refuses to go on where they are answers of something else."""
        for name, value in self.depends_on.items():
            if before["depends_on"].get(name) != value:
                what = "of another model" if name == "model" else f"with another {name}"
                raise InputError(f"the answers in {self.directory} are {what}; {BEGIN}, or give what they were begun with.")
        done = {name for name in before["files"] if (self.directory / name).is_file()}
        for name in sorted(done):
            if name not in self.sources:
                raise InputError(f"{self.directory / name} is of a file that is not among these; {BEGIN}.")
            if before["files"][name] != stand_of(self.sources[name]):
                raise InputError(f"{self.sources[name]} has changed since its answers were written; {BEGIN}.")
        return done

    def _clear(self, before: dict[str, Any]) -> set[str]:
        """Remove what an earlier run wrote; refuses where something else is in the way."""
        ours = {NOTE, *before.get("files", {})}
        there = sorted(entry.name for entry in self.directory.iterdir() if not entry.name.startswith("."))
        foreign = [name for name in there if name not in ours and (not before or name in self.sources)]
        if foreign:
            advice = "give an empty directory, or --resume to go on with an earlier run"
            raise InputError(f"{self.directory} holds {foreign[0]!r}, which no earlier run wrote; {advice}.")
        for name in before.get("files", {}):
            (self.directory / name).unlink(missing_ok=True)
        return set()


def stand_of(path: Path) -> dict[str, Any]:
    """What tells whether a file is still as it was: its name, its size, and when it was last written to."""
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    return {"of": path.name, "bytes": found.st_size, "written": found.st_mtime_ns}


# --------------------------------------------------------------------------------------------------------------
# Classifying documents in many files: every file is read, classified and written by one worker, and passes through no other.
#
# Workers load the model from its directory, mapped into memory, once for each process. Without a cluster files come one after
# the other, each on all threads, so that a few large files keep all cores busy.


ENDINGS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".csv"}  # of answers, by the kind of the documents
TABBED = (".tsv", ".tab")


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked, and for what: a model by its directory and fingerprint, a rule in the place of its own, and a options."""

    model: Path
    fingerprint: str
    rule: DecisionRule | None
    options: PredictOptions

    @property
    def key(self) -> str:
        """What tells whether the same is asked in the same way."""
        return digest_of(str(self.model), self.fingerprint, repr(self.rule), self.options)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with every file. text: the column to classify."""

    asking: Asking
    parts: FileSet = field(repr=False)
    text: str
    strict: bool
    n_jobs: int | None

    def depends_on(self, as_json: bool) -> dict[str, Any]:
        """All that answers depend on beside the documents, as plain values, by what users call it."""
        options = self.asking.options
        return {
            "model": self.asking.fingerprint,
            "rule": None if self.asking.rule is None else [self.asking.rule.kind, repr(self.asking.rule)],
            "top": options.top,
            "threshold": options.threshold,
            "within": list(options.within),
            "without": list(options.without),
            "promise": [options.risk, options.nodes, options.by_branch],
            "text column": self.text,
            "encoding": self.parts.encoding,
            "set of columns": list(self.parts.names),
            "form": "JSON" if as_json else "table",
        }


@dataclass(frozen=True, slots=True)
class FilesPredicted:
    """What was done: files that were written, those that an earlier run had written, and what was in the new ones."""

    written: int
    kept: int
    tally: Tally


def predict_files(
    model: str | Path,
    data: str | Path,
    out: str | Path,
    *,
    rule: DecisionRule | None = None,
    options: PredictOptions | None = None,
    text: str | None = None,
    encoding: str = "utf-8",
    as_json: bool = False,
    strict: bool = False,
    resume: bool = False,
    n_jobs: int | None = None,
) -> FilesPredicted:
    """Classify the files of a directory or pattern into a directory, each into a file of the same name.

    Answers are CSV, TSV for TSV, JSON Lines for JSON or with `as_json`; names end accordingly, and without ``.gz``.
    resume: leave the files as they are that an earlier run of the same model and options wrote.
    """
    model, out = Path(model), Path(out)
    if is_distributed():
        model, out = model.absolute(), out.absolute()
    asking = Asking(model, model_fingerprint(model), rule, options or PredictOptions())
    classifier = _answering(asking).classifier
    parts = open_file_set(data, known_encoding(encoding))
    refuse_texts(classifier, parts.source)
    sample, like = list(islice(parts.rows(), SAMPLE)), classifier.figures_.get("columns")
    column = text_column(parts.source, list(parts.names), sample, text, like)
    order = Order(asking, parts, column, strict, n_jobs=1 if is_distributed() else n_jobs)
    sources = name_answers(parts, as_json)
    _refuse_place(out, model, Path(data), sources)
    with AnswerFolder(out, order.depends_on(as_json), sources).opened(resume) as names:
        tally = _answer_all(order, [(sources[name], out / name) for name in names])
    if tally.documents and tally.problems == tally.documents and len(names) == len(sources):
        raise DataError(f"not one of {tally.documents:,} rows could be classified; the first: {tally.first}.")
    return FilesPredicted(len(names), len(sources) - len(names), tally)


def name_answers(parts: FileSet, as_json: bool) -> dict[str, Path]:
    """Names for files of answers, and the file of documents of each: the same name, with the ending of what is written.

    ``a.csv`` and ``a.csv.gz`` become ``a.csv``, ``a.parquet`` too; ``a.tsv`` stays so, ``a.json`` becomes ``a.jsonl``.
    """
    named: dict[str, Path] = {}
    for path in parts.paths:
        stem = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
        suffix = Path(stem).suffix
        ending = ".tsv" if parts.kind == "csv" and suffix.lower() in TABBED else ENDINGS[parts.kind]
        stem = stem.removesuffix(suffix) if suffix.lower() in (*SUFFIXES, ".txt") else stem
        name = stem + (".jsonl" if as_json else ending)
        if name in named:
            raise InputError(f"answers to {named[name]} and to {path} would both be {name}; rename one of them.")
        named[name] = path
    return named


def _refuse_place(out: Path, model: Path, data: Path, sources: dict[str, Path]) -> None:
    """Refuse to write among the documents, into the model, or over what is read."""
    place = out.resolve()
    if model.resolve() in (place, *place.parents):
        raise InputError(f"{out} lies in the model directory; choose another place for answers.")
    if data.is_dir() and data.resolve() in (place, *place.parents):
        raise InputError(f"{out} lies in the directory of the documents; choose another place for answers.")
    for name, path in sources.items():
        if (place / name).exists() and (place / name).samefile(path):
            raise InputError(f"{path} is read by this command and would be overwritten; choose another place for answers.")
    if NOTE in sources:
        raise InputError(f"{NOTE} is what Ramify calls its note on answers; rename {sources[NOTE]}.")


def _answer_all(order: Order, files: Sequence[tuple[Path, Path]]) -> Tally:
    executor = choose_executor(1)  # here one file after the other; each has all threads
    total = Tally()
    with stage(f"classifying {order.parts.source}", len(files)) as step:
        for tally in executor.distribute(answer_file, executor.place(order), files):
            total = total.plus(tally)
            step.advance()
            if isinstance(step, DescribedStage):
                step.describe(f"{total.documents:,} documents")
    return total


def answer_file(order: Order, file: tuple[Path, Path]) -> Tally:
    """Classify the documents of a file into another, which is there when it is whole."""
    source, target = file
    with running_on(None), atomic_writer(target) as opened, stage(f"classifying {source.name}") as step:
        rows = rows_of(source, order.parts.kind, order.parts.encoding)
        write = WRITERS[target.suffix](opened, order.parts.names, order.asking.options.top)
        answers = answer_stream(_answering(order.asking), rows, order.text, order.n_jobs)
        return write_all(answers, write, str(source), order.strict, step)


_lock = Lock()
_made: dict[str, Predictor] = {}  # the last one that this process made, by the key of what was asked


def _answering(asking: Asking) -> Predictor:
    """Who answers; the model is loaded, and every file of it checked, once for each process."""
    with _lock:
        key = asking.key
        if key not in _made:
            classifier = load(asking.model)
            if model_fingerprint(asking.model) != asking.fingerprint:
                raise ModelError(f"the model in {asking.model} was replaced meanwhile; begin anew with the one that is there.")
            decided = classifier if asking.rule is None else classifier.redecided(asking.rule)
            made = Predictor(decided.with_threads(1), asking.options)
            _made.clear()
            _made[key] = made
        return _made[key]
