"""Decided documents as rows that training takes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from ramify.server.reviews.store import Review

COLUMNS = ("text", "label", "action", "reviewer", "at", "model", "predicted", "confidence", "comment")
SEPARATOR = "|"  # between several labels; spaces around it do not count


def training_rows(reviews: Iterable[Review]) -> Iterator[dict[str, Any]]:
    """One row a document whose labels are known: those of the last decision; rejected documents are left out."""
    for review in reviews:
        last = review.decisions[-1] if review.decisions else None
        if last is None or last.action == "reject" or not last.labels:
            continue
        yield {
            "text": review.text,
            "label": last.labels,
            "action": last.action,
            "reviewer": last.reviewer,
            "at": last.at,
            "model": review.model,
            "predicted": [label["label"] for label in review.labels],
            "confidence": round(review.confidence, 6),
            "comment": last.comment,
        }


def export_rows(rows: Iterable[dict[str, Any]], kind: str) -> Iterator[str]:
    """Rows as lines of CSV, the names of the columns first, or of JSON."""
    if kind == "jsonl":
        for row in rows:
            yield json.dumps(row, ensure_ascii=False) + "\n"
        return
    yield _csv_line(COLUMNS)
    for row in rows:
        yield _csv_line(_cell(row[name]) for name in COLUMNS)


def _cell(value: Any) -> Any:
    return f" {SEPARATOR} ".join(value) if isinstance(value, list) else value


def _csv_line(cells: Iterable[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
