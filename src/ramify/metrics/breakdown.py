"""Scores by level and by branch, and confusion between siblings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from ramify.metrics.flat import Counts, NodeScores, f1, label_pair, mean, precision_recall_f1, ratio
from ramify.taxonomy import Taxonomy, ancestor_matrix


@dataclass(frozen=True, slots=True)
class GroupScores:
    """Scores of a group of nodes: micro over all its document–node pairs, macro over its nodes that occur."""

    key: int
    nodes: int
    support: int
    precision: float
    recall: float
    f1: float
    macro_f1: float


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often `true` was missed while its sibling `predicted` was predicted wrongly."""

    true: int
    predicted: int
    count: int


def by_level(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> list[GroupScores]:
    """Scores of the nodes at each depth, roots first; `key` is the depth."""
    scores = precision_recall_f1(Y_true, Y_pred, taxonomy)
    return [_group(depth, np.flatnonzero(taxonomy.depth == depth), scores) for depth in range(taxonomy.n_levels)]


def by_subtree(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> list[GroupScores]:
    """Scores of each root with everything below it; `key` is the root."""
    scores = precision_recall_f1(Y_true, Y_pred, taxonomy)
    roots = taxonomy.roots
    below = ancestor_matrix(taxonomy)[:, roots].tocsc()  # nodes × roots: the roots above each node, itself included
    branches = (below.indices[below.indptr[r] : below.indptr[r + 1]] for r in range(len(roots)))
    return [_group(int(root), nodes, scores) for root, nodes in zip(roots, branches, strict=True)]


def sibling_confusion(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> list[Confusion]:
    """Pairs of siblings confused with each other, most frequent first; all roots are siblings."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    pairs: Counter[tuple[int, int]] = Counter()
    for d in range(T.shape[0]):
        true = set(T.indices[T.indptr[d] : T.indptr[d + 1]].tolist())
        predicted = set(P.indices[P.indptr[d] : P.indptr[d + 1]].tolist())
        wrong_below: dict[int, list[int]] = {}
        for node in predicted - true:
            for parent in taxonomy.parents_of(node).tolist() or [-1]:
                wrong_below.setdefault(parent, []).append(node)
        missed = ((node, parent) for node in true - predicted for parent in taxonomy.parents_of(node).tolist() or [-1])
        pairs.update({(node, other) for node, parent in missed for other in wrong_below.get(parent, ())})
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    return [Confusion(a, b, count) for (a, b), count in ordered]


def _group(key: int, nodes: Counts, scores: NodeScores) -> GroupScores:
    support, predicted, correct = (counts[nodes] for counts in (scores.support, scores.predicted, scores.correct))
    true, given, right = int(support.sum()), int(predicted.sum()), int(correct.sum())
    precision, recall = float(ratio(right, given, true)), float(ratio(right, true, given))
    macro = mean(scores.f1[nodes][(support + predicted) > 0], of_nothing=1.0)
    return GroupScores(key, len(nodes), true, precision, recall, float(f1(right, true, given)), macro)
