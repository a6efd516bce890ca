"""Measures that need nothing of documents but sums, so that many resamples of them are measured in one product.

F1 looks at classes that exclude nothing and imply nothing, so the hierarchy is modified first (Esuli, Fagni & Sebastiani
2008): the classes are the leaves and, for each inner node that is the most specific label of some true document, a leaf of its
own below it, which holds just these documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from ramify.metrics.counting import Counts, Floats, both, f1, label_pair, per_document, per_node, ratio
from ramify.metrics.h_loss import first_mistakes
from ramify.taxonomy import Taxonomy, most_specific

MEASURES = ("accuracy", "micro_f1", "macro_f1", "hierarchical_f1", "h_loss")
LOSSES = ("h_loss",)  # the smaller, the better
_PLAIN = 6  # columns before those of classes


def modified_classes(Y_true: Any, taxonomy: Taxonomy) -> Counts:
    """The nodes that are classes of the modified hierarchy: leaves, and inner nodes at which some true document stops."""
    own = per_node(most_specific(Y_true, taxonomy))
    return np.flatnonzero(taxonomy.is_leaf | (own > 0))


def on_classes(Y: Any, classes: Counts, taxonomy: Taxonomy) -> csr_array:
    """The most specific labels among some classes (documents × classes); an answer at any other node is no answer."""
    return csr_array(most_specific(Y, taxonomy)[:, classes])


def measure_rows(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, classes: Counts) -> csr_array:
    """What the sums over documents must hold for all measures: one row a document."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    shared, true, said = per_document(both(T, P)), per_document(T), per_document(P)
    exact, wrong = (true == shared) & (said == shared), per_document(first_mistakes(T, P, taxonomy))
    plain = np.column_stack([np.ones_like(shared), exact, shared, true, said, wrong]).astype(np.float64)
    own_true, own_said = on_classes(T, classes, taxonomy), on_classes(P, classes, taxonomy)
    parts = [csr_array(plain), both(own_true, own_said), own_true, own_said]
    return csr_array(hstack(parts, format="csr", dtype=np.float64))


def from_sums(sums: Floats) -> Floats:
    """The measures, in the order of MEASURES, of documents whose rows add up to `sums`.

    sums: one set of documents a row, … × columns of :func:`measure_rows`; gives … × measures.
    """
    n_docs, exact, shared, true, said, wrong = np.moveaxis(sums[..., :_PLAIN], -1, 0)
    own = np.split(sums[..., _PLAIN:], 3, axis=-1)
    return np.stack([exact / n_docs, micro(*own), macro(*own), f1(shared, true, said), wrong / n_docs], axis=-1)


def micro(correct: Floats, true: Floats, predicted: Floats) -> Floats:
    """F1 of all classes' counts taken together (… × classes each)."""
    return f1(correct.sum(axis=-1), true.sum(axis=-1), predicted.sum(axis=-1))


def macro(correct: Floats, true: Floats, predicted: Floats) -> Floats:
    """The mean F1 of the classes that occur in truth or answers (… × classes each)."""
    occurs = true + predicted > 0
    return ratio(np.where(occurs, f1(correct, true, predicted), 0.0).sum(axis=-1), occurs.sum(axis=-1), 0)
