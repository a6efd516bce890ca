"""Hierarchical precision, recall and F1, with all ancestors, summed over documents; F1 on the modified hierarchy; H-loss.

The modified hierarchy of Esuli, Fagni & Sebastiani 2008 (Boosting multi-label hierarchical text categorization, section
5.2) has a dummy leaf below every inner node that is the most specific label of a document, and F1 is over leaves alone, so
that documents which stop at inner nodes count like the others. Added: dummy leaves for given nodes, the mean over leaves
that occur, and DAGs.

H-loss (Cesa-Bianchi, Gentile & Zaniboni 2006, section 2.1): an error counts where a path first goes wrong, nothing below it.

    ℓ_H(d) = Σ_i c_i · [ i is wrong for d, and every ancestor of i is right ]

Deviation: the paper defines it on forests; on a DAG all ancestors must be right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array, hstack

from ramify.arguments import as_numbers, describe, entries
from ramify.errors import InputError
from ramify.metrics.flat import Counts, Floats, both, f1, label_pair, mean, per_node, ratio
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_general, most_specific, values_by_node

Costs = Literal["siblings"] | Floats | list[float] | Mapping[str, float] | None
OWN = " (own)"  # appended to the name of a node for its dummy leaf


def hierarchical_precision(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The fraction of predicted nodes, ancestors included, that are true."""
    correct, true, predicted = _sums(Y_true, Y_pred, taxonomy)
    return float(ratio(correct, predicted, true))


def hierarchical_recall(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The fraction of true nodes, ancestors included, that are predicted."""
    correct, true, predicted = _sums(Y_true, Y_pred, taxonomy)
    return float(ratio(correct, true, predicted))


def hierarchical_f1(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> float:
    """The harmonic mean of hierarchical precision and recall.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear"])
    >>> hierarchical_f1(food.encode(["fruit/apple"]), food.encode(["fruit/pear"]), food)
    0.5
    """
    return float(f1(*_sums(Y_true, Y_pred, taxonomy)))


def _sums(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> tuple[int, int, int]:
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    return both(T, P).nnz, T.nnz, P.nnz


@dataclass(frozen=True, slots=True)
class LeafScores:
    """F1 over some leaves of a modified hierarchy.

    macro_f1: over all n_classes; a leaf that is neither true nor predicted has F1 = 1.
    macro_f1_occurring: over the n_occurring that are true or predicted. n_labels: the true labels at these leaves.
    """

    micro_f1: float
    macro_f1: float
    macro_f1_occurring: float
    n_classes: int
    n_occurring: int
    n_labels: int


@dataclass(frozen=True, slots=True)
class ModifiedScores:
    """F1 over all leaves of a modified hierarchy, over the original leaves, and over the dummies."""

    all: LeafScores
    leaves: LeafScores
    dummies: LeafScores


@dataclass(frozen=True, slots=True, eq=False)
class ModifiedHierarchy:
    """A taxonomy with dummy leaves in place.

    original: the taxonomy as it was. own_nodes: its inner nodes with a dummy, ascending.
    taxonomy: nodes of the original keep their numbers; the dummy of ``own_nodes[i]`` is node ``len(original) + i``.
    """

    original: Taxonomy
    own_nodes: Counts
    taxonomy: Taxonomy

    def map_labels(self, Y: Any) -> csr_array:
        """Labels over the original, documents × nodes, as labels over the modified taxonomy, closed upward."""
        own = most_specific(Y, self.original)[:, self.own_nodes]
        return csr_array(hstack([expand_to_ancestors(Y, self.original), own], format="csr", dtype=bool))


def modified_hierarchy(Y_true: Any, taxonomy: Taxonomy, own_nodes: Iterable[str | int] | None = None) -> ModifiedHierarchy:
    """Add a dummy leaf below every inner node that is a document's most specific label.

    Y_true: documents × nodes. own_nodes: names or numbers of further nodes that get one.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread/rye"])
    >>> modified_hierarchy(food.encode(["fruit", "fruit/pear"]), food).taxonomy.names[-1]
    'fruit (own)'
    """
    stops = most_specific(Y_true, taxonomy).indices
    if isinstance(own_nodes, str):
        raise InputError(f"own_nodes is {own_nodes!r}; give a list of names or numbers of nodes.")
    given = []
    for node in () if own_nodes is None else entries(own_nodes, "own_nodes"):
        number: Any = taxonomy.index(node) if isinstance(node, str) else node
        is_whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
        if not is_whole or not 0 <= number < len(taxonomy):
            raise InputError(f"own_nodes holds {describe(node)}; give names, or numbers from 0 to {len(taxonomy) - 1}.")
        given.append(int(number))
    nodes = np.unique(np.concatenate([stops, np.asarray(given, dtype=np.int64)]).astype(np.int64))
    inner: Counts = nodes[~taxonomy.is_leaf[nodes]]
    names = dict.fromkeys(taxonomy.names)
    for node in inner.tolist():
        name = taxonomy.names[node] + OWN
        while name in names:
            name += OWN
        names[name] = None
    ends = taxonomy.parent_offsets[-1] + np.arange(1, len(inner) + 1)
    offsets, parents = np.append(taxonomy.parent_offsets, ends), np.append(taxonomy.parent_nodes, inner)
    titles = (*taxonomy.titles, *(taxonomy.titles[node] + OWN for node in inner.tolist()))
    modified = Taxonomy(tuple(names), offsets, parents.astype(np.int32), titles=titles, separator=taxonomy.separator)
    return ModifiedHierarchy(taxonomy, inner, modified)


def modified_f1(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, own_nodes: Iterable[str | int] | None = None) -> ModifiedScores:
    """F1 over the leaves of the modified hierarchy: all, those of the taxonomy, and the dummies of inner nodes.

    Y_true, Y_pred: documents × nodes. own_nodes: inner nodes with a dummy although no document stops there.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread/rye"])
    >>> Y_true, Y_pred = food.encode(["apple", "fruit", "fruit"]), food.encode(["apple", "fruit", "pear"])
    >>> scores = modified_f1(Y_true, Y_pred, food)
    >>> scores.leaves.n_classes, scores.dummies.n_classes, round(scores.dummies.micro_f1, 3)
    (3, 1, 0.667)
    """
    label_pair(Y_true, Y_pred, taxonomy)
    modified = modified_hierarchy(Y_true, taxonomy, own_nodes)
    T, P = modified.map_labels(Y_true), modified.map_labels(Y_pred)
    counts = tuple(per_node(Y) for Y in (both(T, P), T, P))
    leaves, n_nodes = np.flatnonzero(modified.taxonomy.is_leaf), len(taxonomy)
    return ModifiedScores(*(_scores(counts, some) for some in (leaves, leaves[leaves < n_nodes], leaves[leaves >= n_nodes])))


def _scores(counts: tuple[Counts, ...], leaves: Counts) -> LeafScores:
    correct, true, predicted = (count[leaves] for count in counts)
    each, occurs = f1(correct, true, predicted), (true + predicted) > 0
    return LeafScores(
        micro_f1=float(f1(correct.sum(), true.sum(), predicted.sum())),
        macro_f1=mean(each, of_nothing=1.0),
        macro_f1_occurring=mean(each[occurs], of_nothing=1.0),
        n_classes=len(leaves),
        n_occurring=int(occurs.sum()),
        n_labels=int(true.sum()),
    )


def h_loss(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, costs: Costs = None) -> float:
    """The mean H-loss of a document.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread/rye"])
    >>> h_loss(food.encode(["fruit/apple"]), food.encode(["bread/rye"]), food)
    2.0
    """
    return float(h_loss_by_node(Y_true, Y_pred, taxonomy, costs).sum())


def h_loss_by_depth(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, costs: Costs = None) -> Floats:
    """The part of the H-loss that arises at each depth, roots first."""
    by_node = h_loss_by_node(Y_true, Y_pred, taxonomy, costs)
    return np.asarray(np.bincount(taxonomy.depth, weights=by_node, minlength=taxonomy.n_levels), dtype=np.float64)


def h_loss_by_node(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, costs: Costs = None) -> Floats:
    """The part of the H-loss that arises at each node."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    firsts = first_errors(T, P, taxonomy)
    counts = np.bincount(firsts.indices, minlength=len(taxonomy))
    n_documents: int = T.shape[0]
    return node_costs(taxonomy, costs) * counts / max(1, n_documents)


def first_errors(T: csr_array, P: csr_array, taxonomy: Taxonomy) -> csr_array:
    """The wrong nodes of each document that have no wrong ancestor."""
    # T and P are closed: a wrong node's parents lie in T or in P. If all are right, they lie in both, and so do all their
    # ancestors; so checking the parents is enough
    return most_general(T != P, taxonomy)


def node_costs(taxonomy: Taxonomy, costs: Costs) -> Floats:
    """One cost per node: 1 everywhere, 1 / the number of siblings, or as given; by name, other nodes have 1.

    >>> node_costs(Taxonomy.from_paths(["a/b", "a/c"]), {"a": 3})
    array([3., 1., 1.])
    """
    if costs is None:
        return np.ones(len(taxonomy))
    if isinstance(costs, Mapping):
        costs = values_by_node(costs, taxonomy, "costs", default=1.0)
    if isinstance(costs, str):
        if costs != "siblings":
            raise InputError(f"costs are {costs!r}; give None, 'siblings', or a number per node.")
        family_of = [tuple(sorted(taxonomy.parents_of(node).tolist())) for node in range(len(taxonomy))]
        sizes = Counter(family_of)
        return np.asarray([1.0 / sizes[family] for family in family_of])
    advice = "give None, 'siblings', or one number per node"
    given = np.ascontiguousarray(as_numbers(costs, "costs", advice), dtype=np.float64)
    if given.shape != (len(taxonomy),):
        raise InputError(f"costs have shape {given.shape}; give {len(taxonomy)} numbers, one per node.")
    if not np.all(np.isfinite(given) & (given >= 0)):
        raise InputError("costs must be numbers of 0 or more; one of them is negative, infinite or missing.")
    return given
