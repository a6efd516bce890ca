"""Classifying documents in many files: every file is read, classified and written by one worker, and passes through no other.

Workers load the model from its directory, mapped into memory, once for each process. Without a cluster files come one after
the other, each on all threads, so that a few large files keep all cores busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from ramify.datasets import Parts, open_parts
from ramify.datasets.documents import SAMPLE, text_column
from ramify.datasets.parts import rows_of
from ramify.datasets.tables import SUFFIXES, known_encoding
from ramify.decisions import DecisionRule
from ramify.errors import DataError, InputError, ModelError
from ramify.execution import choose_executor, is_elsewhere, running_on, stage
from ramify.execution.digests import digest_of
from ramify.execution.progress import TellingStage
from ramify.persistence import atomic_writer, model_fingerprint
from ramify.pipeline.answer_folder import NOTE, AnswerFolder
from ramify.pipeline.answer_tables import WRITERS, Tally, write_all
from ramify.pipeline.answering import Answering, Wish
from ramify.pipeline.loading import load
from ramify.pipeline.streaming import answer_stream
from ramify.pipeline.training import refuse_texts

ENDINGS = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".csv"}  # of answers, by the kind of the documents
TABBED = (".tsv", ".tab")


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked, and for what: a model by its directory and fingerprint, a rule in the place of its own, and a wish."""

    model: Path
    fingerprint: str
    rule: DecisionRule | None
    wish: Wish

    @property
    def key(self) -> str:
        """What tells whether the same is asked in the same way."""
        return digest_of(str(self.model), self.fingerprint, repr(self.rule), self.wish)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with every file. text: the column to classify."""

    asking: Asking
    parts: Parts = field(repr=False)
    text: str
    strict: bool
    n_jobs: int | None

    def depends_on(self, as_json: bool) -> dict[str, Any]:
        """All that answers depend on beside the documents, as plain values, by what users call it."""
        wish = self.asking.wish
        return {
            "model": self.asking.fingerprint,
            "rule": None if self.asking.rule is None else [self.asking.rule.kind, repr(self.asking.rule)],
            "top": wish.top,
            "threshold": wish.threshold,
            "within": list(wish.within),
            "without": list(wish.without),
            "promise": [wish.risk, wish.nodes, wish.by_branch],
            "text column": self.text,
            "encoding": self.parts.encoding,
            "set of columns": list(self.parts.names),
            "form": "JSON" if as_json else "table",
        }


@dataclass(frozen=True, slots=True)
class FilesAnswered:
    """What was done: files that were written, those that an earlier run had written, and what was in the new ones."""

    written: int
    kept: int
    tally: Tally


def classify_files(
    model: str | Path,
    data: str | Path,
    out: str | Path,
    *,
    rule: DecisionRule | None = None,
    wish: Wish | None = None,
    text: str | None = None,
    encoding: str = "utf-8",
    as_json: bool = False,
    strict: bool = False,
    resume: bool = False,
    n_jobs: int | None = None,
) -> FilesAnswered:
    """Classify the files of a directory or pattern into a directory, each into a file of the same name.

    Answers are CSV, TSV for TSV, JSON Lines for JSON or with `as_json`; names end accordingly, and without ``.gz``.
    resume: leave the files as they are that an earlier run of the same model and options wrote.
    """
    model, out = Path(model), Path(out)
    if is_elsewhere():
        model, out = model.absolute(), out.absolute()
    asking = Asking(model, model_fingerprint(model), rule, wish or Wish())
    classifier = _answering(asking).classifier
    parts = open_parts(data, known_encoding(encoding))
    refuse_texts(classifier, parts.source)
    sample, like = list(islice(parts.rows(), SAMPLE)), classifier.figures_.get("columns")
    column = text_column(parts.source, list(parts.names), sample, text, like)
    order = Order(asking, parts, column, strict, n_jobs=1 if is_elsewhere() else n_jobs)
    sources = name_answers(parts, as_json)
    _refuse_place(out, model, Path(data), sources)
    with AnswerFolder(out, order.depends_on(as_json), sources).opened(resume) as names:
        tally = _answer_all(order, [(sources[name], out / name) for name in names])
    if tally.documents and tally.problems == tally.documents and len(names) == len(sources):
        raise DataError(f"not one of {tally.documents:,} rows could be classified; the first: {tally.first}.")
    return FilesAnswered(len(names), len(sources) - len(names), tally)


def name_answers(parts: Parts, as_json: bool) -> dict[str, Path]:
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
        for tally in executor.spread(answer_file, executor.place(order), files):
            total = total.plus(tally)
            step.advance()
            if isinstance(step, TellingStage):
                step.tell(f"{total.documents:,} documents")
    return total


def answer_file(order: Order, file: tuple[Path, Path]) -> Tally:
    """Classify the documents of a file into another, which is there when it is whole."""
    source, target = file
    with running_on(None), atomic_writer(target) as opened, stage(f"classifying {source.name}") as step:
        rows = rows_of(source, order.parts.kind, order.parts.encoding)
        write = WRITERS[target.suffix](opened, order.parts.names, order.asking.wish.top)
        answers = answer_stream(_answering(order.asking), rows, order.text, order.n_jobs)
        return write_all(answers, write, str(source), order.strict, step)


_lock = Lock()
_made: dict[str, Answering] = {}  # the last one that this process made, by the key of what was asked


def _answering(asking: Asking) -> Answering:
    """Who answers; the model is loaded, and every file of it checked, once for each process."""
    with _lock:
        key = asking.key
        if key not in _made:
            classifier = load(asking.model)
            if model_fingerprint(asking.model) != asking.fingerprint:
                raise ModelError(f"the model in {asking.model} was replaced meanwhile; begin anew with the one that is there.")
            decided = classifier if asking.rule is None else classifier.redecided(asking.rule)
            made = Answering(decided.with_threads(1), asking.wish)
            _made.clear()
            _made[key] = made
        return _made[key]
