"""Which nodes the columns of scores and probabilities stand for, and probabilities that a document ends at a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.arguments import check_count
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, most_specific

if TYPE_CHECKING:
    from ramify.classifier.text_classifier import TextClassifier

CLASSES = ("nodes", "labels")
LOWEST = np.float32(np.finfo(np.float32).min)  # score of a node without classifier or documents, as scikit-learn has it


def check_classes(given: Any) -> None:
    """Refuse what does not say which classes there are."""
    if not isinstance(given, str) or given not in CLASSES:
        raise InputError(f"classes is {given!r}; give 'nodes', or 'labels' for those of the training documents only.")


def label_nodes(classifier: TextClassifier) -> NDArray[np.int64]:
    """The nodes that are labels of training documents, rather than only ancestors of such, in node order."""
    learner, taxonomy, sizes = classifier.learner_, classifier.taxonomy_, classifier.sizes_
    if sizes is not None and taxonomy.is_tree and not classifier.form_.multi_label:
        below = np.zeros(len(taxonomy), dtype=np.int64)
        child = np.repeat(np.arange(len(taxonomy)), np.diff(taxonomy.parent_offsets))
        np.add.at(below, taxonomy.parent_nodes, sizes[child])
        return np.flatnonzero(sizes > below)
    if len(learner.class_nodes_):
        return np.unique(learner.class_nodes_).astype(np.int64)
    return np.flatnonzero(taxonomy.is_leaf & ~learner.is_empty_)


def class_nodes(classifier: TextClassifier) -> NDArray[np.int64]:
    """The node of each of ``classes_``: all nodes, or the labels in the order in which numpy sorts them."""
    if classifier.classes == "nodes":
        return np.arange(len(classifier.taxonomy_))
    nodes = label_nodes(classifier)
    return nodes[np.argsort(_values(classifier, nodes), kind="stable")]


def class_values(classifier: TextClassifier) -> NDArray[Any]:
    """``classes_``: labels as they were given; of all nodes, their names."""
    if classifier.classes == "nodes" and not classifier.form_.integers:
        return np.asarray(classifier.taxonomy_.names)
    return _values(classifier, class_nodes(classifier))


def _values(classifier: TextClassifier, nodes: NDArray[np.int64]) -> NDArray[Any]:
    written = classifier.form_.write(classifier.taxonomy_, nodes.tolist())
    is_integer = classifier.form_.integers
    return np.asarray([int(label) for label in written] if is_integer else written)


def label_probabilities(P: Any, taxonomy: Taxonomy, nodes: NDArray[np.int64], is_single: bool) -> NDArray[np.float32]:
    """Probabilities of some nodes as most specific labels, from those of all nodes.

    With one label per document, what the children of an inner node have is taken off, and rows sum to one.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y"])
    >>> label_probabilities(np.array([[1.0, 0.5, 0.25]]), taxonomy, np.array([0, 1, 2]), True).tolist()
    [[0.25, 0.5, 0.25]]
    """
    if not is_single:
        return np.asarray(P[:, nodes], dtype=np.float32)
    own = np.asarray(P, dtype=np.float64).copy()
    child = np.repeat(np.arange(len(taxonomy)), np.diff(taxonomy.parent_offsets))
    for node, parent in zip(child.tolist(), taxonomy.parent_nodes.tolist(), strict=True):
        own[:, parent] -= P[:, node]
    own = own[:, nodes].clip(0)
    sums = own.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(own, sums, out=np.full_like(own, 1 / max(1, len(nodes))), where=sums > 0), dtype=np.float32)


def finite_scores(scores: Any) -> NDArray[np.float32]:
    """Scores with the lowest number where there is none."""
    return np.where(np.isfinite(scores), scores, LOWEST).astype(np.float32)


def check_top(top: Any, risk: Any) -> None:
    """Refuse what is not a number of labels."""
    check_count(top, "top")
    if top > 1 and risk is not None:
        raise InputError("top and risk do not go together; give nodes=2, 3, 5 or 10 for up to so many labels within a risk.")


def top_labels(Y: csr_array, P: Any, classifier: TextClassifier, top: int) -> list[list[int]]:
    """The nodes of each document's `top` labels: those that the rule gives, then others, each group most probable first."""
    taxonomy, nodes = classifier.taxonomy_, label_nodes(classifier)
    is_single = not classifier.form_.multi_label
    ranks = np.full(P.shape, -1, dtype=np.float32)
    ranks[:, nodes] = label_probabilities(P, taxonomy, nodes, is_single)
    own = most_specific(Y, taxonomy)
    rows = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    ranks[rows, own.indices] = 2 + P[rows, own.indices]
    order = np.argsort(-ranks, axis=1, kind="stable")[:, :top]
    return [[node for node in line if ranks[row, node] >= 0] for row, line in enumerate(order.tolist())]
