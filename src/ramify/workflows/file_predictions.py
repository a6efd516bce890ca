"""Predict the labels of documents in many files: one file of predictions for each file of documents.

    ramify-predictions.json   the model's fingerprint, the options, and the file of documents of each file of predictions
    part-0.csv                predictions; a file is complete or does not exist

The manifest is written before the first file. So whenever the process is killed, it describes the files that are there.
Workers load the model from its directory, mapped into memory, once per process. Without a cluster, files are predicted one
after the other, each with all threads, so that a few large files keep all cores busy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from ramify.classifier.loading import load
from ramify.data import FileSet, open_file_set
from ramify.data.columns import Columns, text_columns
from ramify.data.documents import SAMPLE, first_remarks
from ramify.data.encodings import known_encoding
from ramify.data.file_sets import rows_of
from ramify.data.tables import SUFFIXES
from ramify.decisions import DecisionRule
from ramify.errors import DataError, InputError, ModelError
from ramify.parallel import choose_executor, is_distributed, note, running_on, stage
from ramify.parallel.progress import DescribedStage
from ramify.parallel.values import digest_of
from ramify.persistence import (
    atomic_writer,
    exclusive_writer,
    model_fingerprint,
    trust_same,
    trusted_keys,
    write_text_atomically,
)
from ramify.persistence.paths import is_at_or_below, lead_to_same, read_at_most
from ramify.type_hints import checks_types
from ramify.workflows.predict_stream import WRITERS, Tally, stream_predictions, write_all
from ramify.workflows.predictor import PredictOptions, Predictor
from ramify.workflows.reading import refuse_texts

MANIFEST = "ramify-predictions.json"
FORMAT = "ramify-predictions-1"
MAX_BYTES = 1 << 30  # of a manifest
LONGEST_NAME = 255  # bytes that file systems allow
RESTART = "leave out --resume to start again"
ENDINGS = {
    "csv": ".csv",
    "jsonl": ".jsonl",
    "parquet": ".csv",
    "spreadsheet": ".csv",
    "fasttext": ".csv",
}  # of predictions, by the kind of the documents


@contextmanager
def open_directory(
    directory: Path, depends_on: Mapping[str, Any], sources: Mapping[str, Path], resume: bool
) -> Iterator[list[str]]:
    """The names of the files of predictions to write, while no other process may write to their directory.

    depends_on: what predictions depend on besides the documents. sources: the file of documents of each file of predictions.
    resume: keep files of an earlier run, if everything else is the same; otherwise they are removed before anything is
    written. Other files are never touched.
    """
    manifest = directory / MANIFEST
    if resume and not manifest.is_file():
        raise InputError(f"there are no predictions to resume in {directory}; {RESTART}.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"{directory} cannot be a directory for predictions: {error.strerror}"
        raise InputError(f"{problem}; choose another.") from None
    with exclusive_writer(manifest):
        earlier = _read_manifest(manifest)
        files, done = earlier.get("files", {}) if resume else {}, set[str]()
        if resume:
            done = _check_earlier(directory, earlier, depends_on, sources)
        else:
            _clear(directory, earlier, sources)
        files = files | {name: file_state(path) for name, path in sources.items()}
        written = {"format": FORMAT, "depends_on": depends_on, "files": files}
        write_text_atomically(manifest, json.dumps(written, ensure_ascii=False, indent=1) + "\n")
        yield [name for name in sources if name not in done]


def _read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of an earlier run; empty where there was none."""
    if not path.exists():
        return {}
    try:
        found = json.loads(read_at_most(path, MAX_BYTES, only_regular=True))
        fits = found["format"] == FORMAT and isinstance(found["depends_on"], dict) and isinstance(found["files"], dict)
        fits = fits and all(map(_is_ours, found["files"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise InputError(f"{path} is not a manifest that this Ramify writes; choose another directory, or remove it.")
    return dict(found)


def _is_ours(name: str) -> bool:
    """Whether a name is one that Ramify gives to a file of predictions: directly in the directory, with a known suffix."""
    is_plain = name == Path(name).name and not name.startswith(".") and "\0" not in name
    return is_plain and Path(name).suffix in WRITERS and len(os.fsencode(name)) <= LONGEST_NAME


def _check_earlier(
    directory: Path, earlier: dict[str, Any], depends_on: Mapping[str, Any], sources: Mapping[str, Path]
) -> set[str]:
    """The files that an earlier run wrote; refuses to resume where they belong to something else."""
    for name, value in depends_on.items():
        if earlier["depends_on"].get(name) != value:
            what = f"{directory} are {'of another model' if name == 'model' else f'with another {name}'}"
            raise InputError(f"the predictions in {what}; {RESTART}, or give the same options as in the first run.")
    done = {name for name in earlier["files"] if (directory / name).is_file()}
    for name in sorted(done):
        if name not in sources:
            raise InputError(f"{directory / name} is of a file that is not among these; {RESTART}.")
        if earlier["files"][name] != file_state(sources[name]):
            raise InputError(f"{sources[name]} has changed since its predictions were written; {RESTART}.")
    return done


def _clear(directory: Path, earlier: dict[str, Any], sources: Mapping[str, Path]) -> None:
    """Remove the files of an earlier run; refuses a directory with other files."""
    ours = {MANIFEST, *earlier.get("files", {})}
    there = sorted(entry.name for entry in directory.iterdir() if not entry.name.startswith("."))
    foreign = [name for name in there if name not in ours and (not earlier or name in sources)]
    if foreign:
        advice = "give an empty directory, or --resume to continue an earlier run"
        raise InputError(f"{directory} holds {foreign[0]!r}, which no earlier run wrote; {advice}.")
    if folder := next((name for name in ours if (directory / name).is_dir()), None):
        raise InputError(f"{directory / folder} is a directory, which no earlier run wrote; move it, or choose another place.")
    for name in earlier.get("files", {}):
        (directory / name).unlink(missing_ok=True)


def file_state(path: Path) -> dict[str, Any]:
    """Name, size and time of a file, which show whether it has changed."""
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    return {"of": path.name, "bytes": found.st_size, "written": found.st_mtime_ns}


@dataclass(frozen=True, slots=True)
class PredictJob:
    """What to do with every file. rule: instead of the model's. text: the column to classify."""

    model: Path
    fingerprint: str
    rule: DecisionRule | None
    options: PredictOptions
    files: FileSet = field(repr=False)
    columns: Columns
    strict: bool
    n_jobs: int | None
    escape_formulas: bool = False
    trusted: tuple[bytes, ...] = ()  # keys: other processes read no other models either

    def depends_on(self, as_json: bool) -> dict[str, Any]:
        """Everything that predictions depend on besides the documents, as plain values, by the names that users know."""
        rule, options = None if self.rule is None else [self.rule.kind, repr(self.rule)], self.options
        values: dict[str, Any] = {"model": self.fingerprint, "rule": rule, "top": options.top, "threshold": options.threshold}
        values |= {"within": list(options.within), "without": list(options.without)}
        values |= {"guarantee": [options.risk, options.nodes, options.by_branch], "text column": self.columns.text}
        values |= {"encoding": self.files.format.encoding, "set of columns": list(self.files.names)}
        table = "table with escaped formulas" if self.escape_formulas else "table"
        return values | {"format": "JSON" if as_json else table}


@dataclass(frozen=True, slots=True)
class FilesPredicted:
    """Numbers of files that were written, and of files of an earlier run that were left as they are; tally: of the former."""

    written: int
    skipped: int
    tally: Tally


@checks_types
def predict_files(
    model: str | Path,
    data: str | Path,
    out: str | Path,
    *,
    rule: DecisionRule | None = None,
    options: PredictOptions | None = None,
    text: str | Sequence[str] | None = None,
    encoding: str | None = None,
    as_json: bool = False,
    strict: bool = False,
    resume: bool = False,
    n_jobs: int | None = None,
    escape_formulas: bool = False,
) -> FilesPredicted:
    """Classify the files of a directory or pattern into a directory, each into a file of the same name.

    Predictions are CSV, TSV for TSV, JSON Lines for JSON or with `as_json`; names end accordingly, and without ``.gz``.
    resume: leave files as they are that an earlier run of the same model and options wrote.
    escape_formulas: in tables, put an apostrophe before texts that a spreadsheet would calculate.
    """
    model, out, options = Path(model), Path(out), options or PredictOptions()
    if is_distributed():
        model, out = model.absolute(), out.absolute()
    fingerprint = model_fingerprint(model)
    classifier = _load_predictor(model, fingerprint, rule, options).classifier
    files = open_file_set(data, known_encoding(encoding))
    for remark in first_remarks(files.remarks):
        note(remark)
    refuse_texts(classifier, files.source)
    sample, like = list(islice(files.rows(), SAMPLE)), classifier.figures_.get("columns")
    columns = text_columns(files.source, list(files.names), sample, text, like)
    n_jobs = 1 if is_distributed() else n_jobs
    job = PredictJob(model, fingerprint, rule, options, files, columns, strict, n_jobs, escape_formulas, trusted_keys())
    sources = name_outputs(files, as_json)
    _refuse_place(out, model, Path(data), sources)
    tally = Tally()
    with open_directory(out, job.depends_on(as_json), sources, resume) as names:
        executor = choose_executor(1)  # without a cluster one file after the other; each has all threads
        pairs = [(sources[name], out / name) for name in names]
        with stage(f"classifying {files.source}", len(pairs)) as step:
            for some in executor.distribute(predict_one_file, executor.place(job), pairs):
                tally = tally.plus(some)
                step.advance()
                if isinstance(step, DescribedStage):
                    step.describe(f"{tally.documents:,} documents")
    if tally.documents and tally.problems == tally.documents and len(names) == len(sources):
        raise DataError(f"not one of {tally.documents:,} rows could be classified; the first: {tally.first}.")
    return FilesPredicted(len(names), len(sources) - len(names), tally)


def name_outputs(files: FileSet, as_json: bool) -> dict[str, Path]:
    """Names for files of predictions, and the file of documents of each: the same name, with the suffix of what is written.

    ``a.csv``, ``a.csv.gz`` and ``a.parquet`` become ``a.csv``; ``a.tsv`` stays so, ``a.json`` becomes ``a.jsonl``.
    """
    named: dict[str, Path] = {}
    for path in files.paths:
        stem = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
        suffix = Path(stem).suffix
        ending = ".tsv" if files.format.kind == "csv" and suffix.lower() in (".tsv", ".tab") else ENDINGS[files.format.kind]
        stem = stem.removesuffix(suffix) if suffix.lower() in (*SUFFIXES, ".txt") else stem
        name = stem + (".jsonl" if as_json else ending)
        if name in named:
            raise InputError(f"predictions for {named[name]} and for {path} would both be {name}; rename one of them.")
        named[name] = path
    return named


def _refuse_place(out: Path, model: Path, data: Path, sources: dict[str, Path]) -> None:
    """Refuse to write among the documents, into the model, or over what is read."""
    for directory, what in ((model, "the model directory"), (data, "the directory of the documents")):
        if directory.is_dir() and is_at_or_below(out, directory):
            raise InputError(f"{out} lies in {what}; choose another place for predictions.")
    for name, path in sources.items():
        if (out / name).exists() and lead_to_same(out / name, path):
            raise InputError(f"{path} is read by this command and would be overwritten; choose another place for predictions.")
    if MANIFEST in sources:
        raise InputError(f"{MANIFEST} is the name of Ramify's manifest of predictions; rename {sources[MANIFEST]}.")


def predict_one_file(job: PredictJob, file: tuple[Path, Path]) -> Tally:
    """Classify the documents of a file into another, which appears when it is complete."""
    source, target = file
    trust_same(job.trusted)
    with running_on(None), atomic_writer(target) as opened, stage(f"classifying {source.name}") as step:
        rows = rows_of(source, job.files.format)
        write = WRITERS[target.suffix](opened, job.files.names, job.options.top, job.escape_formulas)
        predictor = _load_predictor(job.model, job.fingerprint, job.rule, job.options)
        return write_all(stream_predictions(predictor, rows, job.columns, job.n_jobs), write, str(source), job.strict, step)


_lock = Lock()
_predictors: dict[str, Predictor] = {}  # the last one of this process, by a digest of model, rule and options


def _load_predictor(model: Path, fingerprint: str, rule: DecisionRule | None, options: PredictOptions) -> Predictor:
    """The predictor; the model is loaded, and every file of it checked, once per process."""
    with _lock:
        key = digest_of(str(model), fingerprint, repr(rule), options, trusted_keys())
        if key not in _predictors:
            classifier = load(model)
            if model_fingerprint(model) != fingerprint:
                raise ModelError(f"the model in {model} was replaced meanwhile; start again with the new one.")
            made = Predictor((classifier if rule is None else classifier.redecided(rule)).with_threads(1), options)
            _predictors.clear()
            _predictors[key] = made
        return _predictors[key]
