"""Documents with wrong answers, worst first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.data import Corpus
from ramify.metrics import tree_distance
from ramify.taxonomy import Taxonomy, most_specific


@dataclass(frozen=True, slots=True)
class PredictionError:
    """A document whose answer is not the truth.

    line: where it stands. true, predicted: nodes. probabilities: of those that were predicted, where there are any.
    distance: steps in the tree between the answer and the truth.
    """

    line: int
    document: Any
    true: list[int]
    predicted: list[int]
    probabilities: list[float]
    distance: float


def worst_errors(
    corpus: Corpus,
    taxonomy: Taxonomy,
    Y_true: csr_array,
    Y_pred: csr_array,
    probabilities: NDArray[np.float32] | None,
    most: int,
) -> list[PredictionError]:
    """Some wrong answers: the farthest from the truth first, of equally far ones the surest."""
    if most < 1:
        return []
    distance = tree_distance(Y_true, Y_pred, taxonomy)
    true, predicted = most_specific(Y_true, taxonomy), most_specific(Y_pred, taxonomy)
    sureness = np.zeros(len(distance))
    if probabilities is not None:
        rows = np.repeat(np.arange(len(distance)), np.diff(predicted.indptr))
        np.maximum.at(sureness, rows, probabilities[rows, predicted.indices])
    order = np.lexsort((-sureness, -distance))
    return [_error(corpus, row, true, predicted, probabilities, distance) for row in order[:most].tolist() if distance[row] > 0]


def _error(
    corpus: Corpus, row: int, true: csr_array, predicted: csr_array, probabilities: Any, distance: Any
) -> PredictionError:
    nodes = _row(predicted, row)
    chances = [] if probabilities is None else [float(probabilities[row, node]) for node in nodes]
    line = corpus.lines[row] if corpus.lines else row + 1
    document = None if corpus.has_vectors else corpus.documents[row]
    return PredictionError(line, document, _row(true, row), nodes, chances, float(distance[row]))


def _row(labels: csr_array, row: int) -> list[int]:
    nodes: list[int] = labels.indices[labels.indptr[row] : labels.indptr[row + 1]].tolist()
    return nodes
