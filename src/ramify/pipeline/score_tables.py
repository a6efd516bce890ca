"""Saved scores: a table with a column for every node, written by a model or by anyone else, and decided again at will."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.datasets import BadRow
from ramify.datasets.tables import find_kind, known_encoding, stream_table
from ramify.decisions import DecisionRule, LearnableRule, RefiningRule
from ramify.errors import DataError, InputError, suggest
from ramify.pipeline.rules import values_for
from ramify.pipeline.streaming import Answer, Labels, batch_size
from ramify.taxonomy import Taxonomy, most_specific

SEVERAL = "|"


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """A file of scores over a taxonomy: which columns are nodes, and which are something else."""

    path: Path
    columns: list[str]
    nodes: dict[str, int]
    encoding: str

    @property
    def others(self) -> list[str]:
        """The columns that are no nodes."""
        return [column for column in self.columns if column not in self.nodes]

    def blocks(self, n_nodes: int) -> Iterator[tuple[list[tuple[int, dict[str, Any] | BadRow]], NDArray[np.float32]]]:
        """Rows with their lines, and the scores of those that could be read, documents × nodes; bad rows have a reason."""
        _, rows = stream_table(self.path, find_kind(self.path, self.encoding), self.encoding)
        checked = ((line, self._checked(line, row)) for line, row in rows)
        while batch := list(islice(checked, batch_size(n_nodes))):
            good = [row for _, row in batch if isinstance(row, dict)]
            S = np.full((len(good), n_nodes), np.nan, dtype=np.float32)
            for k, row in enumerate(good):
                for column, node in self.nodes.items():
                    S[k, node] = read_number(row.get(column))
            yield batch, S

    def _checked(self, line: int, row: dict[str, Any] | BadRow) -> dict[str, Any] | BadRow:
        if isinstance(row, BadRow):
            return row
        for column in self.nodes:
            try:
                infinite = np.isinf(read_number(row.get(column)))
            except (TypeError, ValueError):
                infinite = True
            if infinite:
                return BadRow(str(self.path), line, f"the score of {column!r} is {row.get(column)!r}, not a finite number", row)
        return row


def open_scores(path: Path, taxonomy: Taxonomy, encoding: str = "utf-8") -> ScoreTable:
    """Look at the columns of a table of scores; nodes that have none count as nodes without a classifier."""
    encoding = known_encoding(encoding)
    kind = find_kind(path, encoding)
    if kind == "svmlight":
        raise DataError(f"{path} holds vectors; give a table of scores with a column for every node.")
    columns, _ = stream_table(path, kind, encoding)
    nodes = {column: taxonomy.index(column) for column in columns if column in taxonomy}
    if not nodes:
        raise DataError(
            f"{path} has no column named like a node of the taxonomy; its columns are {', '.join(columns[:8])}, "
            f"the first nodes {', '.join(taxonomy.names[:5])}.{suggest(columns[-1], taxonomy.names[:20_000])}"
        )
    return ScoreTable(path, columns, nodes, encoding)


def read_number(cell: Any) -> float:
    """A score; an empty cell is no score.

    >>> read_number(" 0.5 "), read_number("")
    (0.5, nan)
    """
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return float("nan")
    if isinstance(cell, bool):
        raise ValueError(cell)
    return float(cell)


def score_writer(file: IO[str], columns: list[str], taxonomy: Taxonomy) -> Callable[[dict[str, Any], Any], None]:
    """Write a header, and give a function that writes the cells of a row and its scores; NaN is an empty cell."""
    kept = [column for column in columns if column not in taxonomy]
    table = csv.writer(file, lineterminator="\n")
    table.writerow([*kept, *taxonomy.names])

    def write(row: dict[str, Any], scores: NDArray[np.float32]) -> None:
        cells = ["" if value != value else str(value) for value in scores]
        table.writerow([*(row.get(column) for column in kept), *cells])

    return write


@dataclass(frozen=True, slots=True)
class Decider:
    """A rule over a taxonomy, for scores of a learner, or, without one, for values as the rule takes them."""

    rule: DecisionRule
    taxonomy: Taxonomy
    learner: Any = None

    def values(self, S: NDArray[np.float32]) -> NDArray[np.floating[Any]]:
        """What the rule is told."""
        return S if self.learner is None else values_for(self.rule, self.learner, S)

    def decide(self, S: NDArray[np.float32]) -> tuple[csr_array, NDArray[np.floating[Any]]]:
        """Labels, and the numbers to show beside them."""
        values = self.values(S)
        if isinstance(self.rule, RefiningRule):
            refined = self.rule.refine(values, self.taxonomy)
            return self.rule.cut(refined), refined
        shown = values if self.learner is None else self.learner.to_probabilities(S)
        return self.rule.decide(values, self.taxonomy), shown

    def learnt(self, table: ScoreTable, label: str) -> Decider:
        """The same with a rule that has learnt from a table of held-out scores and their true labels."""
        if not isinstance(self.rule, LearnableRule):
            raise InputError(f"rule {self.rule.kind!r} learns nothing; leave out --learn, or choose another rule.")
        if label not in table.columns:
            raise InputError(f"{table.path} has no column {label!r} with true labels; name it with --label.")
        scores, labels = [], []
        for rows, S in table.blocks(len(self.taxonomy)):
            scores.append(S)
            labels += [_listed(row[label]) for _, row in rows if isinstance(row, dict)]
        if not labels:
            raise DataError(f"{table.path} has no row with scores to learn from.")
        Y = self.taxonomy.encode(labels)
        return Decider(self.rule.learn(self.values(np.concatenate(scores)), Y, self.taxonomy), self.taxonomy, self.learner)


def decide_rows(decider: Decider, table: ScoreTable) -> Iterator[Answer]:
    """An answer for every row of a table of scores, in order."""
    taxonomy = decider.taxonomy
    for rows, S in table.blocks(len(taxonomy)):
        Y, shown = decider.decide(S)
        own = most_specific(Y, taxonomy)
        answers = iter(_labels(own, k, shown, taxonomy) for k in range(len(S)))
        for line, row in rows:
            if isinstance(row, BadRow):
                yield Answer(line, _kept(row.cells, table), [], [], row.reason)
            else:
                yield Answer(line, _kept(row, table), next(answers), [])


def _kept(row: dict[str, Any], table: ScoreTable) -> dict[str, Any]:
    return {column: row.get(column) for column in table.others}


def _labels(own: csr_array, k: int, shown: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> Labels:
    nodes = own.indices[own.indptr[k] : own.indptr[k + 1]].tolist()
    return sorted(((taxonomy.names[node], float(shown[k, node])) for node in nodes), key=lambda pair: -pair[1])


def _listed(cell: Any) -> list[str]:
    parts = cell if isinstance(cell, list) else str(cell or "").split(SEVERAL)
    return [part.strip() for part in parts if part.strip()]
