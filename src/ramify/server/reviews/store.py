"""The review queue as an SQLite file.

An acknowledged change survives a killed process and a power failure: every change is one transaction in a write-ahead log that
reaches the disk before the response. Decisions are added and never changed; the last decision of a reviewer counts. More than
one process may use the file. It is checked when it is opened, and every document when it is read, so that damage is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args
from urllib.parse import quote

from ramify.errors import DataError, InputError
from ramify.formatting import visible
from ramify.server.errors import ApiError

APPLICATION = 0x52414D46  # "RAMF": marks our files
VERSION = 1
WAIT = 10.0  # seconds to wait for another process
ORDERS = {"uncertain": "confidence, id", "recent": "id DESC"}
PARTS = ("", "-wal", "-journal")  # of a database: its file, its write-ahead log, and the journal of a change under way
MOST_DECISIONS = 1_000  # about one document
PAGE_BYTES = 1 << 22  # of documents that are read at a time
COPIES = 5  # tries to copy a database that is being changed
# what another process, or a full disk, does to a sound file
PASSING = ("BUSY", "LOCKED", "NOMEM", "READONLY", "INTERRUPT", "IOERR", "FULL", "CANTOPEN", "PROTOCOL", "SCHEMA")
PASSING_CODES = {getattr(sqlite3, f"SQLITE_{name}") for name in PASSING}
KEYS: dict[str, Any] = {"label": str, "path": list, "probabilities": list, "probability": (int, float)}  # of a predicted label
COLUMNS = {
    "documents": "id model text digest labels others confidence source queued_at queued_by is_done",
    "decisions": "id document reviewer action labels comment at",
}
CHECKS = {
    "PRAGMA integrity_check(1)": "ok",
    "SELECT count(*) FROM decisions WHERE document NOT IN (SELECT id FROM documents)": 0,
    "SELECT count(*) FROM documents WHERE is_done != EXISTS (SELECT 1 FROM decisions WHERE document = documents.id)": 0,
}

Action = Literal["accept", "correct", "reject"]
Queued = tuple[str, list[dict[str, Any]], list[dict[str, Any]], float, str | None]  # text, labels, others, confidence, source

TABLES = """
CREATE TABLE documents (
  id INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT NOT NULL, text TEXT NOT NULL, digest TEXT NOT NULL,
  labels TEXT NOT NULL, others TEXT NOT NULL, confidence REAL NOT NULL,
  source TEXT, queued_at TEXT NOT NULL, queued_by TEXT NOT NULL, is_done INTEGER NOT NULL DEFAULT 0,
  UNIQUE (model, digest));
CREATE INDEX waiting ON documents (is_done, confidence, id);
CREATE TABLE decisions (
  id INTEGER PRIMARY KEY AUTOINCREMENT, document INTEGER NOT NULL REFERENCES documents (id),
  reviewer TEXT NOT NULL, action TEXT NOT NULL, labels TEXT NOT NULL, comment TEXT, at TEXT NOT NULL);
CREATE INDEX of_document ON decisions (document, id);
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of one reviewer: the right labels, none if the document was rejected."""

    reviewer: str
    action: Action
    labels: list[str]
    comment: str | None
    at: str


@dataclass(frozen=True, slots=True)
class Review:
    """A document in the queue, the prediction of the model, and the decisions of reviewers.

    labels, others: the prediction, in the form of the API. confidence: the probability of its least likely label.
    """

    id: int
    text: str
    model: str
    labels: list[dict[str, Any]]
    others: list[dict[str, Any]]
    confidence: float
    queued_at: str
    queued_by: str
    source: str | None = None
    decisions: list[Decision] = field(default_factory=list)

    @property
    def current(self) -> list[Decision]:
        """The last decision of each reviewer."""
        return list({decision.reviewer: decision for decision in self.decisions}.values())


class ReviewStore:
    """Documents and decisions in one file, used from one thread at a time.

    most_open, most_bytes: open documents, and bytes of the file, beyond which nothing is queued; None for any number.

    >>> store = ReviewStore(":memory:")
    >>> queued, known = store.queue("m", [("no picture", [{"label": "tv"}], [], 0.4, None)], by="ann")
    >>> store.decide(queued[0], "ben", "accept", ["tv"]).current[0].action
    'accept'
    """

    _scratch: TemporaryDirectory[str] | None = None  # where a copy is read

    most_open: int | None = None
    most_bytes: int | None = None

    def __init__(self, path: str | Path, most_open: int | None = None, most_bytes: int | None = None) -> None:
        self.path, self.most_open, self.most_bytes = path, most_open, most_bytes
        try:
            if not Path(path).exists() and str(path) != ":memory:":
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # documents are private
            self._base = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._base.close()
                raise
        except (sqlite3.Error, OSError, ApiError) as error:
            raise InputError(f"cannot store reviews in {path}: {error}; choose another file.") from None

    def _prepare(self) -> None:
        """Check the file, and create the tables of a new one."""
        self._check_kind()
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            self._base.execute(f"PRAGMA {setting}")
        with self._transaction() as base:
            if self._is_new():
                marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}"
                for statement in (TABLES + marks).split(";"):
                    base.execute(statement)

    @classmethod
    def reading(cls, path: Path) -> ReviewStore:
        """Open a file for reading only; it need not be writable.

        SQLite needs to write beside a file to read its log. Where it cannot, file and log are copied to a temporary directory.
        """
        made = cls.__new__(cls)
        made.path = path
        try:
            try:
                made._connect(f"file:{quote(str(path.absolute()))}?mode=ro")
            except sqlite3.OperationalError as error:
                if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise InputError(f"{path} is locked by another process; stop that, or try again when it is done.") from None
                made._scratch = TemporaryDirectory(prefix="ramify-reviews-")
                made._connect(f"file:{quote(str(_copy_database(path, Path(made._scratch.name))))}")
        except (sqlite3.Error, OSError) as error:
            made.close()
            raise InputError(f"the reviews in {path} cannot be read: {error}; give a file that 'ramify serve' wrote.") from None
        except BaseException:
            made.close()
            raise
        return made

    def _connect(self, place: str) -> None:
        """Open a file that must hold reviews."""
        self._base = sqlite3.connect(place, uri=True, timeout=WAIT, isolation_level=None)
        try:
            self._check_kind()
            if self._is_new():
                raise InputError(f"{self.path} holds no reviews; give the file that 'ramify serve --reviews' writes.")
        except BaseException:
            self._base.close()
            raise

    def models(self) -> list[str]:
        """The models with documents in the queue."""
        found = [row[0] for row in self._query("SELECT DISTINCT model FROM documents ORDER BY model", ())]
        if not all(isinstance(name, str) for name in found):
            raise ApiError(503, "reviews", self._damaged("the name of a model is no text"))
        return found

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_base"):
            self._base.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def queue(self, model: str, documents: Sequence[Queued], by: str) -> tuple[list[int], int]:
        """Add documents: text, labels, others, confidence and source of each.

        Returns their numbers, and how many were queued before; a text is queued once per model.
        """
        numbers, known = [], 0
        columns = "model, text, digest, labels, others, confidence, source, queued_at, queued_by"
        insert = f"INSERT INTO documents ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        with self._transaction() as base:
            for text, labels, others, confidence, source in documents:
                digest = _digest_of(text)
                values = (model, text, digest, _dump(labels), _dump(others), confidence, source, _now(), by)
                known += base.execute(insert, values).rowcount == 0
                found = base.execute("SELECT id FROM documents WHERE model = ? AND digest = ?", (model, digest)).fetchone()
                if found is None:
                    raise ApiError(503, "reviews", self._damaged("a document that was queued is not there"))
                numbers.append(int(found[0]))
            if known < len(documents):
                self._check_room(0)  # otherwise nothing of this is stored
        return numbers, known

    def check_room(self) -> None:
        """Refuse if not even one more document could be queued."""
        self._check_room(1)

    def _check_room(self, more: int) -> None:
        """Refuse if there are too many open documents, or if the file is too large."""
        if self.most_open is not None and self.count() + more > self.most_open:
            advice = "decide about some of them first"
            raise ApiError(507, "queue-full", f"the review queue is full with {self.most_open:,} open documents; {advice}.")
        self._check_size(1, more)

    def _check_size(self, times: int, more: int = 0) -> None:
        """Refuse if the file is larger than so many times what may be queued: people decide also when the queue is full."""
        pages, free, size = (self._query(f"PRAGMA {name}", ())[0][0] for name in ("page_count", "freelist_count", "page_size"))
        if self.most_bytes is not None and (pages - free) * size + more > times * self.most_bytes:
            advice = "export its decisions and start with a new one"
            raise ApiError(507, "queue-full", f"the review file has its {self.most_bytes / 1e6:,.0f} MB; {advice}.")

    def get(self, number: int) -> Review | None:
        """One document with all decisions; None if the number is unknown."""
        rows = self._query("SELECT * FROM documents WHERE id = ?", (number,))
        return self._review(rows[0]) if rows else None

    def page(
        self, status: str = "open", model: str | None = None, order: str = "uncertain", offset: int = 0, limit: int = 50
    ) -> tuple[list[Review], int]:
        """Some documents, fewer than the limit if they are long, and how many there are in all."""
        where, values = _chosen(status, model)
        query = f"SELECT id FROM documents WHERE {where} ORDER BY {ORDERS[order]} LIMIT ? OFFSET ?"
        found: list[Review] = []
        size = 0
        for (number,) in self._query(query, (*values, limit, offset)):
            rows = self._query("SELECT * FROM documents WHERE id = ?", (number,))
            if not rows:
                raise ApiError(503, "reviews", self._damaged(f"document number {number} is not there"))
            size += _size_of(rows[0])
            if found and size > PAGE_BYTES:
                break
            found.append(self._review(rows[0]))
        return found, self.count(status, model)

    def count(self, status: str = "open", model: str | None = None) -> int:
        """How many documents there are."""
        where, values = _chosen(status, model)
        return int(self._query(f"SELECT count(*) FROM documents WHERE {where}", values)[0][0])

    def all(self, status: str = "all", model: str | None = None) -> Iterator[Review]:
        """Every document, in the order in which they came."""
        where, values = _chosen(status, model)
        last = 0
        while True:
            query = f"SELECT * FROM documents WHERE {where} AND id > ? ORDER BY id LIMIT 500"
            rows = self._query(query, (*values, last), PAGE_BYTES)
            if not rows:
                return
            yield from map(self._review, rows)
            last = rows[-1]["id"]

    def decide(
        self, number: int, reviewer: str, action: Action, labels: Sequence[str], comment: str | None = None
    ) -> Review | None:
        """Store a decision; None if the document is unknown."""
        if visible(reviewer) != reviewer or "\n" in reviewer or "\t" in reviewer:
            raise InputError("the name of the reviewer holds a control character; leave that out.")
        with self._transaction() as base:
            if not base.execute("UPDATE documents SET is_done = 1 WHERE id = ?", (number,)).rowcount:
                return None
            if base.execute("SELECT count(*) FROM decisions WHERE document = ?", (number,)).fetchone()[0] >= MOST_DECISIONS:
                said = f"there are {MOST_DECISIONS:,} decisions about document number {number}; no more are taken."
                raise ApiError(409, "too-many-decisions", said)
            self._check_size(2)
            insert = "INSERT INTO decisions (document, reviewer, action, labels, comment, at) VALUES (?, ?, ?, ?, ?, ?)"
            base.execute(insert, (number, reviewer, action, _dump(list(labels)), comment, _now()))
        return self.get(number)

    def _is_new(self) -> bool:
        return not self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]

    def _check_kind(self) -> None:
        """Refuse files of other programs and of newer versions, and damaged ones."""
        try:
            self._check_header()
        except UnicodeDecodeError:  # SQLite quotes what it finds in a damaged file, and Python cannot read that
            raise sqlite3.DatabaseError("the file is damaged") from None

    def _check_header(self) -> None:
        self._base.row_factory = sqlite3.Row
        kind, version = (self._base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        is_new = self._is_new()
        if not is_new and kind != APPLICATION:
            raise InputError(f"{self.path} is not a review file; choose another one.")
        if version > VERSION:
            raise InputError(f"{self.path} was written by a newer Ramify; install that one.")
        if not is_new or kind == APPLICATION:
            self._check_content()

    def _check_content(self) -> None:
        """Refuse a damaged file."""
        for table, columns in COLUMNS.items():
            found = [row["name"] for row in self._base.execute(f"PRAGMA table_info({table})")]
            if found != columns.split():
                raise DataError(self._damaged(f"the table of {table} is not as Ramify made it"))
        try:
            for check, expected in CHECKS.items():
                found = self._base.execute(check).fetchone()[0]
                if found != expected:
                    raise DataError(
                        self._damaged(str(found) if check.startswith("PRAGMA") else "its tables do not fit together")
                    )
        except sqlite3.DatabaseError as error:
            if _code(error) in PASSING_CODES:
                raise
            raise DataError(self._damaged(str(error))) from None

    def _damaged(self, what: str) -> str:
        about = " ".join(what.split())[:200]  # SQLite describes damage in several lines
        return f"the review file {self.path} is damaged: {about}; restore it from a copy."

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all or nothing."""
        if str(self.path) != ":memory:" and not Path(self.path).exists():
            raise ApiError(503, "reviews", f"the review file {self.path} was removed; start the server again.")
        with self._reporting_errors():
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield self._base
                self._base.execute("COMMIT")
            finally:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")

    def _query(self, query: str, values: tuple[Any, ...], most_bytes: int | None = None) -> list[sqlite3.Row]:
        """All rows; or the first ones, until they have so many bytes."""
        with self._reporting_errors(), closing(self._base.execute(query, values)) as cursor:
            if most_bytes is None:
                return cursor.fetchall()
            rows, size = [], 0
            for row in cursor:
                rows.append(row)
                size += _size_of(row)
                if size >= most_bytes:
                    break
            return rows

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        """Turn database errors, such as a full disk, a locked file or a damaged one, into a sentence."""
        try:
            yield
        except sqlite3.ProgrammingError:
            raise
        except UnicodeEncodeError:
            raise InputError("a text or a name holds half a character, which cannot be stored; put it right.") from None
        except sqlite3.DatabaseError as error:
            code = _code(error)
            if code in PASSING_CODES:
                said = f"the review file cannot be used now: {error}; try again."
                raise ApiError(503, "reviews", said, retry_after=1) from None
            what = "a text is not UTF-8" if code is None else str(error)  # with the text itself
            raise ApiError(503, "reviews", self._damaged(what)) from None

    def _review(self, row: sqlite3.Row) -> Review:
        found = self._query("SELECT * FROM decisions WHERE document = ? ORDER BY id", (row["id"],))
        try:
            plain = {name: row[name] for name in ("id", "text", "model", "confidence", "queued_at", "queued_by", "source")}
            labels, others = (_read_labels(row[name]) for name in ("labels", "others"))
            review = Review(**plain, labels=labels, others=others, decisions=[_read_decision(each) for each in found])
            _check_document(review, row["digest"])
        except (ValueError, TypeError, LookupError, RecursionError):
            raise ApiError(503, "reviews", self._damaged(f"document number {row['id']} cannot be read")) from None
        return review


def _read_labels(text: str) -> list[dict[str, Any]]:
    """Predicted labels; raises ValueError or TypeError for anything else."""
    labels = json.loads(text)
    for label in _list_of(dict, labels):
        if not all(isinstance(value, KEYS[key]) for key, value in label.items()) or "label" not in label:
            raise ValueError("label")
        _list_of(str, label.get("path", []))
        _list_of((int, float), label.get("probabilities", []))
    return list(labels)


def _read_decision(row: sqlite3.Row) -> Decision:
    decision = Decision(row["reviewer"], row["action"], _list_of(str, json.loads(row["labels"])), row["comment"], row["at"])
    _list_of(str, [decision.reviewer, decision.at, "" if decision.comment is None else decision.comment])
    if decision.action not in get_args(Action):
        raise ValueError("action")
    datetime.fromisoformat(decision.at)
    return decision


def _check_document(review: Review, digest: str) -> None:
    """Raise ValueError or TypeError unless a document is as it was stored."""
    source = "" if review.source is None else review.source
    _list_of(str, [review.text, review.model, review.queued_at, review.queued_by, source])
    datetime.fromisoformat(review.queued_at)
    if not math.isfinite(review.confidence) or _digest_of(review.text) != digest:
        raise ValueError("document")


def _size_of(row: sqlite3.Row) -> int:
    """About the bytes of a document."""
    return sum(len(cell) for cell in row if isinstance(cell, (str, bytes)))


def _list_of(kind: Any, values: Any) -> list[Any]:
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise TypeError("list")
    return values


def _digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _code(error: sqlite3.Error) -> int | None:
    """The primary error code of SQLite; None for an error of Python's module, such as text that is not UTF-8."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _copy_database(path: Path, folder: Path) -> Path:
    """Copy a database with its log, both as they were at one moment: read twice, they must be the same."""
    copies = {path.with_name(path.name + part): folder / f"reviews.db{part}" for part in PARTS}
    for _ in range(COPIES):
        for original, copy in copies.items():
            copy.unlink(missing_ok=True)
            if original.exists():
                shutil.copyfile(original, copy)
        if all(_content_of(original) == _content_of(copy) for original, copy in copies.items()):
            return folder / "reviews.db"
    raise InputError(f"{path} is being changed by another process; try again when it is done.")


def _content_of(path: Path) -> bytes | None:
    """The hash of a file; None if there is none."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except FileNotFoundError:
        return None


def _chosen(status: str, model: str | None) -> tuple[str, tuple[Any, ...]]:
    wanted = {"open": "is_done = 0", "done": "is_done = 1", "all": "1"}[status]
    return (wanted, ()) if model is None else (f"{wanted} AND model = ?", (model,))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
