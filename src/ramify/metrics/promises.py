"""What came of a promise: whether answers hold the truth, how many labels are wrong, and how deep answers go."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.metrics.counting import Floats
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific


def holds_truth(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """Whether the path to a true label passes through one of the nodes that a document was given; without any it does.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> holds_truth(tree.encode([["a/b"]] * 3), tree.encode([["a"], ["a/c"], []]), tree).tolist()
    [True, False, True]
    """
    own, truth = most_specific(Y_pred, taxonomy), expand_to_ancestors(Y_true, taxonomy)
    n_true = np.asarray(own.astype(np.int64).multiply(truth).sum(axis=1)).ravel()
    holds: NDArray[np.bool_] = (n_true > 0) | (np.diff(own.indptr) == 0)
    return holds


def share_wrong(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> Floats:
    """The share of the most specific labels of each document that are wrong; 0 without any.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> share_wrong(tree.encode([["a/b"]] * 3), tree.encode([["a/b", "a/c"], ["a"], []]), tree).tolist()
    [0.5, 0.0, 0.0]
    """
    own, truth = most_specific(Y_pred, taxonomy), expand_to_ancestors(Y_true, taxonomy)
    counts = np.diff(own.indptr)
    n_true = np.asarray(own.astype(np.int64).multiply(truth).sum(axis=1)).ravel()
    wrong: Floats = (counts - n_true) / np.maximum(counts, 1)
    return wrong


def answer_depth(Y: Any, taxonomy: Taxonomy) -> Floats:
    """How many levels down the deepest label of each document is; 0 without any.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> answer_depth(tree.encode([["a/b"], ["a"], []]), tree).tolist()
    [2.0, 1.0, 0.0]
    """
    closed = expand_to_ancestors(Y, taxonomy)
    found = np.zeros(closed.shape[0])
    rows = np.repeat(np.arange(closed.shape[0]), np.diff(closed.indptr))
    np.maximum.at(found, rows, taxonomy.depth[closed.indices] + 1.0)
    return found
