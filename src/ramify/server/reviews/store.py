"""The review queue as an SQLite file.

An acknowledged change survives a killed process and a power failure: every change is one transaction in a write-ahead log that
reaches the disk before the response. Decisions are added and never changed; the last decision of a reviewer counts. More than
one process may use the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from ramify.errors import InputError
from ramify.server.errors import ApiError

APPLICATION = 0x52414D46  # "RAMF": marks our files
VERSION = 1
WAIT = 10.0  # seconds to wait for another process
ORDERS = {"uncertain": "confidence, id", "recent": "id DESC"}

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

    >>> store = ReviewStore(":memory:")
    >>> queued, known = store.queue("m", [("no picture", [{"label": "tv"}], [], 0.4, None)], by="ann")
    >>> store.decide(queued[0], "ben", "accept", ["tv"]).current[0].action
    'accept'
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        try:
            if not Path(path).exists() and str(path) != ":memory:":
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # documents are private
            self._base = sqlite3.connect(path, timeout=WAIT, isolation_level=None, check_same_thread=False)
            self._check_kind()
            for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                self._base.execute(f"PRAGMA {setting}")
            with self._transaction() as base:
                if not base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}"
                    for statement in (TABLES + marks).split(";"):
                        base.execute(statement)
        except (sqlite3.Error, OSError, ApiError) as error:
            raise InputError(f"cannot store reviews in {path}: {error}; choose another file.") from None

    @classmethod
    def reading(cls, path: Path) -> ReviewStore:
        """Open a file for reading only; it need not be writable."""
        made = cls.__new__(cls)
        made.path = path
        place = f"file:{quote(str(path.absolute()))}?mode=ro"
        try:
            try:
                made._base = sqlite3.connect(place, uri=True, timeout=WAIT, isolation_level=None)
                made._check_kind()
            except sqlite3.OperationalError:  # nothing may be written beside it, and nobody does
                made._base = sqlite3.connect(f"{place}&immutable=1", uri=True, isolation_level=None)
                made._check_kind()
        except sqlite3.Error as error:
            raise InputError(f"the reviews in {path} cannot be read: {error}; give a file that 'ramify serve' wrote.") from None
        return made

    def models(self) -> list[str]:
        """The models with documents in the queue."""
        return [row[0] for row in self._query("SELECT DISTINCT model FROM documents ORDER BY model", ())]

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def queue(self, model: str, documents: Sequence[Queued], by: str) -> tuple[list[int], int]:
        """Add documents: text, labels, others, confidence and source of each.

        Returns their numbers, and how many were queued before; a text is queued once per model.
        """
        numbers, known = [], 0
        columns = "model, text, digest, labels, others, confidence, source, queued_at, queued_by"
        insert = f"INSERT INTO documents ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        with self._transaction() as base:
            for text, labels, others, confidence, source in documents:
                digest = hashlib.sha256(text.encode()).hexdigest()
                values = (model, text, digest, _dump(labels), _dump(others), confidence, source, _now(), by)
                known += base.execute(insert, values).rowcount == 0
                found = base.execute("SELECT id FROM documents WHERE model = ? AND digest = ?", (model, digest))
                numbers.append(int(found.fetchone()[0]))
        return numbers, known

    def get(self, number: int) -> Review | None:
        """One document with all decisions; None if the number is unknown."""
        rows = self._query("SELECT * FROM documents WHERE id = ?", (number,))
        return self._review(rows[0]) if rows else None

    def page(
        self, status: str = "open", model: str | None = None, order: str = "uncertain", offset: int = 0, limit: int = 50
    ) -> tuple[list[Review], int]:
        """Some documents, and how many there are in all."""
        where, values = _chosen(status, model)
        query = f"SELECT * FROM documents WHERE {where} ORDER BY {ORDERS[order]} LIMIT ? OFFSET ?"
        rows = self._query(query, (*values, limit, offset))
        return [self._review(row) for row in rows], self.count(status, model)

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
            rows = self._query(query, (*values, last))
            if not rows:
                return
            yield from map(self._review, rows)
            last = rows[-1]["id"]

    def decide(
        self, number: int, reviewer: str, action: Action, labels: Sequence[str], comment: str | None = None
    ) -> Review | None:
        """Store a decision; None if the document is unknown."""
        with self._transaction() as base:
            if not base.execute("UPDATE documents SET is_done = 1 WHERE id = ?", (number,)).rowcount:
                return None
            insert = "INSERT INTO decisions (document, reviewer, action, labels, comment, at) VALUES (?, ?, ?, ?, ?, ?)"
            base.execute(insert, (number, reviewer, action, _dump(list(labels)), comment, _now()))
        return self.get(number)

    def _check_kind(self) -> None:
        """Refuse files of other programs and of newer versions."""
        self._base.row_factory = sqlite3.Row
        kind, version = (self._base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        is_new = not self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not is_new and kind != APPLICATION:
            raise InputError(f"{self.path} is not a review file; choose another one.")
        if version > VERSION:
            raise InputError(f"{self.path} was written by a newer Ramify; install that one.")

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

    def _query(self, query: str, values: tuple[Any, ...]) -> list[sqlite3.Row]:
        with self._reporting_errors():
            return self._base.execute(query, values).fetchall()

    @contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        """Turn database errors, such as a full disk or a locked file, into a sentence."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise ApiError(503, "reviews", f"the review file cannot be used now: {error}; try again.", retry_after=1) from None

    def _review(self, row: sqlite3.Row) -> Review:
        found = self._query("SELECT * FROM decisions WHERE document = ? ORDER BY id", (row["id"],))
        decisions = [Decision(d["reviewer"], d["action"], json.loads(d["labels"]), d["comment"], d["at"]) for d in found]
        plain = {name: row[name] for name in ("id", "text", "model", "confidence", "queued_at", "queued_by", "source")}
        return Review(**plain, labels=json.loads(row["labels"]), others=json.loads(row["others"]), decisions=decisions)


def _chosen(status: str, model: str | None) -> tuple[str, tuple[Any, ...]]:
    wanted = {"open": "is_done = 0", "done": "is_done = 1", "all": "1"}[status]
    return (wanted, ()) if model is None else (f"{wanted} AND model = ?", (model,))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
