"""Classifying a stream of rows that need not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.datasets import BadRow
from ramify.datasets.documents import why_not_text
from ramify.pipeline.classifier import TextClassifier
from ramify.taxonomy import most_specific

BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of one row.

    line: where the row stands. row: its cells, empty when it could not be read.
    labels: with a probability each, most likely first. others: further candidates.
    problem: why there is no answer, or None.
    """

    line: int
    row: dict[str, Any]
    labels: list[tuple[str, float]]
    others: list[tuple[str, float]]
    problem: str | None = None


def classify_rows(
    classifier: TextClassifier,
    rows: Iterable[tuple[int, dict[str, Any] | BadRow]],
    text: str,
    top: int = 1,
    source: str = "",
) -> Iterator[Answer]:
    """An answer for every row, in order; a row that cannot be classified gets the reason instead of a label."""
    stream = iter(rows)
    while batch := list(islice(stream, BATCH)):
        reasons = [row.reason if isinstance(row, BadRow) else why_not_text(row.get(text)) for _, row in batch]
        texts = [
            row[text]
            for (_, row), reason in zip(batch, reasons, strict=True)
            if reason is None and isinstance(row, dict)
        ]
        answers = iter(_classify(classifier, texts, top))
        for (line, row), reason in zip(batch, reasons, strict=True):
            cells = row if isinstance(row, dict) else {}
            labels, others = next(answers) if reason is None else ([], [])
            yield Answer(line, cells, labels, others, reason)


def _classify(
    classifier: TextClassifier, texts: list[str], top: int
) -> Iterator[tuple[list[tuple[str, float]], list[tuple[str, float]]]]:
    if not texts:
        return
    Y, P = classifier.decide_with_probabilities(texts)
    own = most_specific(Y, classifier.taxonomy_)
    for d in range(len(texts)):
        chosen = own.indices[own.indptr[d] : own.indptr[d + 1]]
        others = _next_best(classifier, P[d], chosen, top - 1)
        yield _written(classifier, chosen, P[d]), _written(classifier, others, P[d])


def _next_best(
    classifier: TextClassifier, p: NDArray[np.float32], chosen: NDArray[Any], count: int
) -> NDArray[np.int64]:
    """The most likely leaves that were not chosen."""
    if count < 1:
        return np.zeros(0, dtype=np.int64)
    candidates = np.setdiff1d(np.flatnonzero(classifier.taxonomy_.is_leaf & ~np.isnan(p)), chosen)
    return candidates[np.argsort(-p[candidates], kind="stable")[:count]]


def _written(classifier: TextClassifier, nodes: NDArray[Any], p: NDArray[np.float32]) -> list[tuple[str, float]]:
    ordered = sorted(nodes.tolist(), key=lambda node: -p[node])
    return [
        (label, float(p[node]))
        for node, label in zip(ordered, classifier.form_.write(classifier.taxonomy_, ordered), strict=True)
    ]
