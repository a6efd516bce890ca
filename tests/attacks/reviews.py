"""Attacks on files of the server: reviews in SQLite, label issues of an audit, and keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attacks import edits, small_files
from attacks.edits import Rng
from ramify.errors import RamifyError
from ramify.server.keys import add_key, read_keys
from ramify.server.reviews import ReviewStore, export_rows, read_label_issues, summarize, training_rows

LABEL = {"label": "tv", "path": ["goods", "tv"], "probabilities": [0.9, 0.6], "probability": 0.6}
ISSUE = {"text": "no picture", "given": LABEL, "proposed": [LABEL], "place": "tickets.csv:2", "labels": ["tv"]}
SQL = (
    "UPDATE documents SET labels = {value}", "UPDATE documents SET others = {value}", "UPDATE documents SET confidence = {value}",
    "UPDATE documents SET text = {value}", "UPDATE documents SET queued_at = {value}", "UPDATE documents SET is_done = {value}",
    "UPDATE documents SET model = {value}", "UPDATE documents SET source = {value}", "UPDATE decisions SET labels = {value}",
    "UPDATE decisions SET action = {value}", "UPDATE decisions SET comment = {value}", "UPDATE decisions SET document = {value}",
    "UPDATE decisions SET reviewer = {value}", "UPDATE decisions SET at = {value}", "DROP TABLE decisions", "DELETE FROM documents",
    "ALTER TABLE documents RENAME COLUMN labels TO other", "PRAGMA user_version = {value}", "PRAGMA application_id = {value}",
    "DROP TABLE documents", "CREATE TABLE more (x)", "DROP INDEX waiting",
)  # fmt: skip
CELLS = (
    "''", "'x'", "'[]'", "'{{}}'", "'[1]'", "'null'", "'[{{}}]'", "'[[]]'", "'NaN'", "x'ff00'", "0", "-1", "9e999", "1.5",
    "9223372036854775807", "'[\"a\"]'", "'[{{\"label\": 1}}]'", "zeroblob(100)", "hex(randomblob(2000))", "'accept'", "char(0)",
)  # fmt: skip


def prepare(folder: Path) -> None:
    """Write one file of every kind."""
    store = ReviewStore(folder / "reviews.db")
    texts = [(f"no picture {k}", [LABEL], [LABEL], 0.4, "tickets.csv:2") for k in range(8)]
    numbers, _ = store.queue("shop", texts, by="ann")
    for number, action in zip(numbers, ("accept", "correct", "reject"), strict=False):
        store.decide(number, "ben", action, ["tv"] if action != "reject" else [])
    store.close()
    (folder / "issues.jsonl").write_text("\n".join(json.dumps({**ISSUE, "text": f"no picture {k}"}) for k in range(5)))
    add_key(folder / "keys.json", "ann", "admin")
    add_key(folder / "keys.json", "ben", "read")


def make(rng: Rng, folder: Path) -> dict[str, Any]:
    """A random case: of reviews, damage to bytes, or a change by SQL; of JSON files, damage to bytes or values."""
    kind = rng.random()
    if kind < 0.35:
        return {"file": "reviews.db", "edits": [], "sql": edits.pick(rng, SQL).format(value=edits.pick(rng, CELLS).format())}
    if kind < 0.6:
        name = edits.pick(rng, ("issues.jsonl", "keys.json"))
        value = ISSUE if name == "issues.jsonl" else json.loads((folder / name).read_text())
        return {
            "file": name,
            "edits": [],
            "json_edit": edits.random_json_edit(rng, value, edits.paths_in(value)),
            "value": value,
        }
    return small_files.make(rng, folder)


def attempt(case: dict[str, Any], folder: Path, scratch: Path) -> str:
    """Read the file; returns what happened."""
    path = small_files.write(case, folder, scratch)
    if "sql" in case:
        _change(path, case["sql"])
    if "json_edit" in case:
        path.write_bytes(edits.render_json(edits.edit_json(case["value"], case["json_edit"])))
    try:
        {".db": _reviews, ".jsonl": _issues, ".json": _keys}[path.suffix](path)
    except RamifyError as error:
        return f"refused: {error}"
    finally:
        for each in scratch.glob(f"{path.name}*"):
            each.unlink()
    return "answered"


def _change(path: Path, statement: str) -> None:
    import sqlite3

    base = sqlite3.connect(path, isolation_level=None)
    try:
        base.execute("PRAGMA ignore_check_constraints = 1")
        base.execute(statement)
    except (sqlite3.Error, OverflowError):
        pass
    base.close()


def _reviews(path: Path) -> None:
    store = ReviewStore.reading(path)
    try:
        store.models()
        store.count()
        for kind in ("csv", "jsonl"):
            list(export_rows(training_rows(store.all("done")), kind))
        summarize(store.all())
    finally:
        store.close()


def _issues(path: Path) -> None:
    documents = list(read_label_issues(path))
    store = ReviewStore(":memory:")
    store.queue("shop", documents, by="audit")
    summarize(store.all())


def _keys(path: Path) -> None:
    for key in read_keys(path):
        assert key.role in ("read", "review", "admin"), "an unknown role"
