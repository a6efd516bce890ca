"""Findings as rows of a file: CSV and TSV to read, JSON Lines with all that the review queue takes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from ramify.pipeline.auditing.finding import Finding, LabelView

COLUMNS = (
    "rank", "place", "kind", "labels", "given", "suggested", "p_given", "p_suggested", "distance", "doubt", "words", "text",
)  # fmt: skip
SEPARATOR = " | "  # between several labels


def finding_rows(findings: Iterable[Finding], kind: str) -> Iterator[str]:
    """Lines of a file. kind: "csv", "tsv" or "jsonl"."""
    if kind == "jsonl":
        for rank, finding in enumerate(findings, start=1):
            yield json.dumps({"rank": rank, **asdict(finding)}, ensure_ascii=False) + "\n"
        return
    yield _line(COLUMNS, kind)
    for rank, finding in enumerate(findings, start=1):
        yield _line(_cells(rank, finding), kind)


def told_words(finding: Finding) -> str:
    """The words of a finding in one line."""
    return ", ".join(word for word, _ in finding.words)


def _cells(rank: int, finding: Finding) -> Iterator[Any]:
    given, suggested = finding.given, finding.suggested
    yield from (rank, finding.place, finding.kind, SEPARATOR.join(finding.labels), _label(given), _label(suggested))
    yield from (_chance(given), _chance(suggested), finding.distance, finding.doubt, told_words(finding), finding.text or "")


def _label(view: LabelView | None) -> str:
    return "" if view is None else view.label


def _chance(view: LabelView | None) -> Any:
    return "" if view is None else view.probability


def _line(cells: Iterable[Any], kind: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n", delimiter="\t" if kind == "tsv" else ",").writerow(cells)
    return line.getvalue()
