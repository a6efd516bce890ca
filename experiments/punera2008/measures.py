"""How good labels and scores of documents are.

A node is a label of a document where its score is 1/2 or more. Accuracy is the share of documents whose labels, ancestors
included, are exactly the true ones. Precision, recall and F are those of a document's labels, averaged over documents; no
ancestors are added to labels that come without them. AUC is that of a document's scores over all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ramify.metrics import document_auc
from ramify.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = dict[str, dict[str, float]]


def measures(T: Bools, scores: Floats, at_least_one: Bools, taxonomy: Taxonomy) -> dict[str, float]:
    """Means over documents; those that end in ``_one`` are of the labels where a document has at least one."""
    G, leaves = scores >= 0.5, taxonomy.is_leaf
    return {
        **label_measures(T, G),
        **{f"{name}_one": value for name, value in label_measures(T, at_least_one).items()},
        "auc": float(np.nanmean(document_auc(T, scores, taxonomy))),
        "unlabelled": float((~G.any(axis=1)).mean()),
        **readings(T[:, leaves], G[:, leaves], scores[:, leaves]),
    }


def label_measures(T: Bools, G: Bools) -> dict[str, float]:
    """Of the labels given; one that is not there is not right.

    >>> true, given = np.array([[True, True, False]]), np.array([[True, False, False]])
    >>> label_measures(true, given)
    {'accuracy': 0.0, 'precision': 1.0, 'recall': 0.5, 'f': 0.6666666666666666}
    """
    both, true, given = (part.sum(axis=1) for part in (T & G, T, G))
    return {
        "accuracy": float((T == G).all(axis=1).mean()),
        "precision": float((both / np.maximum(given, 1)).mean()),
        "recall": float((both / true).mean()),
        "f": float((2 * both / (true + given)).mean()),
    }


def readings(T: Bools, G: Bools, scores: Floats) -> dict[str, float]:
    """What else accuracy over the leaves may mean; of k equally high scores the own one counts one k-th."""
    is_best = scores == scores.max(axis=1, keepdims=True)
    return {
        "leaves": float((T == G).all(axis=1).mean()),
        "found": float((T & G).any(axis=1).mean()),
        "each": float((T == G).mean()),
        "best": float(((T & is_best).any(axis=1) / is_best.sum(axis=1)).mean()),
    }


def mean_of(rows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every measure.

    >>> mean_of([{"f": 0.5}, {"f": 1.0}])
    {'f': 0.75}
    """
    found = list(rows)
    return {name: float(np.mean([row[name] for row in found])) for name in found[0]}
