"""How good a result is: shares of right answers, and for one-vs-rest machines the value of what they minimize.

objective = Σ_c ½‖w_c‖² + C Σ_i max(0, 1 − y_ic w_cᵀx_i),     y_ic = ±1, the bias a constant feature of 1 (regularized too)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from datasets import Nodes, Split
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.metrics import accuracy_score, f1_score

from ramify.metrics import hierarchical_f1
from ramify.taxonomy import Taxonomy

BLOCK = 32


def quality(split: Split, predicted: Nodes) -> dict[str, float]:
    """Accuracy, micro F1 and macro F1 over the classes that occur, and F1 over label sets with all ancestors.

    With one class a document, micro F1 is the accuracy unless a peer gives no answer.
    """
    answered = predicted >= 0
    labels = np.union1d(split.y_test, predicted[answered])
    return {
        "accuracy": float(accuracy_score(split.y_test, predicted)),
        "micro_f1": float(f1_score(split.y_test, predicted, labels=labels, average="micro", zero_division=0)),
        "macro_f1": float(f1_score(split.y_test, predicted, labels=labels, average="macro", zero_division=0)),
        "hierarchical_f1": hierarchical_f1(
            _label_matrix(split.y_test, split.taxonomy), _label_matrix(predicted, split.taxonomy), split.taxonomy
        ),
    }


def primal_objective(split: Split, weights: Path, classes: Path, C: float) -> float:
    """The objective of weights on the disk (classes × features and bias), a few classes at a time."""
    W, nodes = np.load(weights, mmap_mode="r"), np.load(classes)
    blocks = (slice(start, start + BLOCK) for start in range(0, len(nodes), BLOCK))
    return sum(_objective(split, np.asarray(W[block], dtype=np.float64), nodes[block], C) for block in blocks)


def _objective(split: Split, W: NDArray[np.float64], nodes: Nodes, C: float) -> float:
    signs = np.where(split.y_train[:, None] == nodes, 1.0, -1.0)
    margins = signs * (split.X_train @ W[:, :-1].T + W[:, -1])
    return float(0.5 * np.sum(W**2) + C * np.maximum(0, 1 - margins).sum())


def _label_matrix(nodes: Nodes, taxonomy: Taxonomy) -> Any:
    """Documents × nodes; no label where there is no answer."""
    given = nodes >= 0
    ends = np.concatenate([[0], np.cumsum(given)])
    return csr_array((np.ones(given.sum(), dtype=bool), nodes[given], ends), shape=(len(nodes), len(taxonomy)))
