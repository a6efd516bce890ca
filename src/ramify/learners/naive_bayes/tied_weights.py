"""Mixture weights that classes of the same depth and size share, and the weights of each class, shrunk towards them.

    tied:    max over λ_g    Σ_d L_d(λ_g) + Σ_i ln λ_g^i            d: the documents of all classes of group g
    shrunk:  max over λ_c    Σ_d L_d(λ_c) + 100 Σ_i λ_g^i ln λ_c^i  d: the documents of class c, which is in group g
    ordered: λ_c^0 / T_c^0 ≥ 2 λ_c^1 / T_c^1                        T_c^i: the words behind the estimate θ^i

L_d(λ): the mean over the words w of document d of ln Σ_i λ^i θ^i(w), by estimates that exclude the document. So a group starts
from one document for each estimate (Laplace's rule), and a class from 100 documents like those of its group. Then, where a word
of a class's own documents would count less than twice as much as one of the documents that the next estimate adds, weight moves
from that estimate to the own one. Otherwise, of two classes below a node, each could look like the other.
Source: Jelinek & Mercer 1980, deleted interpolation, with weights tied over contexts with similar counts.
Deviations: a document counts the same however long it is, so that a long one cannot decide for a group. A class of n documents
without one of them tells which weights a class of n − 1 needs: groups are by depth and by ⌊log₂⌋ of the documents left. A class
takes the weights of its size or of the nearest one, the larger of two; equal weights where no class of its depth has two
documents. Only nodes that add documents to those below them count for depth. Inner nodes have groups of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.learners.naive_bayes.mixture_weights import (
    ROUNDING,
    Floats,
    Ints,
    Labelled,
    MixtureProblem,
    Paths,
    Units,
    fit_weights,
)
from ramify.native import MixtureLimits, WordCounts

PRIOR_DOCUMENTS = 100.0  # that the weights of its group are worth to a class
LEAST_RATIO = 2.0  # of what a word of a class's own documents counts to what one of the next estimate counts
MOST_WORDS = 2**20  # that a group reads, each once a document; plenty for a handful of weights

Key = tuple[int, int]  # of a group: the depth, below 0 for inner units, and ⌊log₂ documents⌋
Groups = dict[Key, NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimates that have data.

    paths: of every unit. is_kept: which of all weights are theirs. starts: the first weight of each unit. n_words: the words
    behind each unit's own estimate, and behind the next, 0 where there is none.
    """

    paths: Paths
    is_kept: NDArray[np.bool_]
    starts: Ints
    n_words: tuple[Floats, Floats]

    @classmethod
    def of(cls, units: Units, totals: Floats) -> Estimates:
        """The uniform estimate always counts, and so does a unit's own."""
        added = units.added_words(totals)
        has_data = added > 0
        has_data[units.path_offsets[:-1]] = True
        offsets = np.concatenate([[0], np.cumsum(has_data)])[units.path_offsets]
        paths = Paths.of(offsets.astype(np.int64), units.paths[has_data])
        is_kept, starts = np.insert(has_data, units.path_offsets[1:], True), paths.offsets[:-1] + np.arange(len(units))
        n_words = np.append(np.insert(added, units.path_offsets[1:], 0.0)[is_kept], 0.0)
        return cls(paths, is_kept, starts, (n_words[starts], n_words[starts + 1]))

    def places(self, some: NDArray[Any]) -> Ints:
        """Where the weights of units of one depth are, units × estimates."""
        return np.asarray(self.starts[some][:, None] + np.arange(self.paths.n_estimates[some[0]]))

    def order_in_place(self, weights: Floats) -> None:
        """Move weight from the next estimate to a unit's own where its own words would count for too little."""
        own, other = LEAST_RATIO * self.n_words[0], self.n_words[1]
        first, second = weights[self.starts], weights[self.starts + 1]
        is_low = (own > 0) & (other > 0) & (first * other < own * second)
        moved = (first + second)[is_low] * other[is_low] / (own + other)[is_low]
        weights[self.starts[is_low]], weights[self.starts[is_low] + 1] = (first + second)[is_low] - moved, moved


@dataclass(frozen=True, slots=True)
class TiedProblem:
    """What weights are fitted to, and for which units.

    size: the weight of the documents behind each unit's own estimate; left: without one of them, where documents are left out;
    0 where that tells nothing. document: the mean weight of a document. is_new: which units have documents to fit to.
    earlier: the weight of the documents that the weights so far stand for, by estimate with data.
    """

    counts: WordCounts
    estimates: Estimates
    labelled: Labelled
    limits: MixtureLimits
    depth: Ints
    size: Floats
    left: Floats
    document: float
    is_new: NDArray[np.bool_]
    earlier: Floats
    wanted: NDArray[np.bool_]

    @classmethod
    def of(
        cls, units: Units, counts: WordCounts, totals: Floats, labelled: Labelled, limits: MixtureLimits,
        size: Floats | None, earlier: Floats, wanted: NDArray[np.bool_],
    ) -> TiedProblem:  # fmt: skip
        """size: of documents that are counted and not fitted to; None where they are the same, and left out in turn."""
        estimates = Estimates.of(units, totals)
        weight, n_documents = weigh_units(labelled)
        is_new = n_documents > 0
        document = float(weight[units.class_units].sum() / max(1, n_documents[units.class_units].sum())) or 1.0
        if size is None:
            starts, _ = units.weight_ends
            size = weight + np.add.reduceat(earlier, starts)
            left = size - np.where(is_new, weight / np.maximum(n_documents, 1), document)
        else:
            left = np.where(is_new, size, 0.0)
        left = np.where(left > ROUNDING * size, left, 0.0)
        depth = np.diff(estimates.paths.offsets) * np.where(units.is_inner, -1, 1)
        earlier = earlier[estimates.is_kept]
        return cls(counts, estimates, labelled, limits, depth, size, left, document, is_new, earlier, wanted)


def weigh_units(labelled: Labelled) -> tuple[Floats, Ints]:
    """The weight of each unit's documents that have words, and their number."""
    weight = np.where(np.diff(labelled.X.indptr) > 0, labelled.weight, 0.0)
    return weight @ labelled.members, (weight > 0).astype(np.int64) @ labelled.members.astype(np.int64)


def fit_tied_weights(problem: TiedProblem, is_shrunk: bool, n_jobs: int | None) -> tuple[Floats, list[int]]:
    """Weights of the wanted units, of all estimates, and the steps of each fit; is_shrunk: each unit's own, or its group's."""
    weights, steps = _weights_of_groups(problem, n_jobs)
    if is_shrunk:
        steps += _move_in_place(weights, problem, n_jobs)
    starts, earlier = problem.estimates.starts, problem.earlier
    is_known = np.repeat(~problem.is_new & (np.add.reduceat(earlier, starts) > 0), problem.estimates.paths.n_estimates)
    weights[is_known] = earlier[is_known]  # units without new documents keep their weights
    problem.estimates.order_in_place(weights)
    placed = np.zeros(len(problem.estimates.is_kept))
    placed[problem.estimates.is_kept] = weights
    return placed, steps


def _weights_of_groups(problem: TiedProblem, n_jobs: int | None) -> tuple[Floats, list[int]]:
    """For every wanted unit the weights of its group, and the steps of each group."""
    estimates, earlier = problem.estimates, problem.earlier
    groups = _group_units(problem.depth, problem.left / problem.document, problem.wanted & (problem.left > 0))
    expected = [problem.document + earlier[estimates.places(group)].sum(axis=0) for group in groups.values()]
    found, steps = _fit(problem, list(groups.values()), expected, n_jobs, _sample(problem.labelled, groups), "tied weights")
    tied = dict(zip(groups, found, strict=True))
    weights = np.zeros(len(earlier))
    for (depth, size), group in _group_units(problem.depth, problem.size / problem.document, problem.wanted).items():
        places = estimates.places(group)
        sizes = [other for of_depth, other in tied if of_depth == depth]
        nearest = min(sizes, key=lambda other: (abs(other - size), -other), default=None)
        weights[places] = 1 / places.shape[1] if nearest is None else tied[depth, nearest]
    return weights, steps


def _move_in_place(weights: Floats, problem: TiedProblem, n_jobs: int | None) -> list[int]:
    """Move the weights of every unit that can tell more; gives the steps of each."""
    units = np.flatnonzero(problem.wanted & problem.is_new & (problem.left > 0)).astype(np.int32)
    places = [problem.estimates.places(units[[k]])[0] for k in range(len(units))]
    prior = PRIOR_DOCUMENTS * problem.document
    found, steps = _fit(problem, list(units[:, None]), [problem.earlier[at] + prior * weights[at] for at in places], n_jobs)
    for at, own in zip(places, found, strict=True):
        weights[at] = own
    return steps


def _fit(
    problem: TiedProblem, groups: list[NDArray[np.int32]], expected: list[Floats], n_jobs: int | None,
    is_used: NDArray[np.bool_] | None = None, title: str = "mixture weights",
) -> tuple[list[Floats], list[int]]:  # fmt: skip
    """The weights of each group, and its steps."""
    if not groups:
        return [], []
    known = problem.counts, problem.estimates.paths, problem.labelled
    joint = MixtureProblem.of(*known, groups, problem.limits, np.concatenate(expected), is_used)
    weights, steps = fit_weights(joint, n_jobs, title)
    return np.split(weights, joint.places[1:-1]), steps


def _group_units(depth: Ints, documents: Floats, chosen: NDArray[np.bool_]) -> Groups:
    """The chosen units by depth and size."""
    units = np.flatnonzero(chosen).astype(np.int32)
    sizes = np.floor(np.log2(np.maximum(documents[units], 1.0)) + ROUNDING).astype(np.int64)
    keys, which = np.unique(np.column_stack([depth[units], sizes]), axis=0, return_inverse=True)
    return {(int(key[0]), int(key[1])): units[which.ravel() == k] for k, key in enumerate(keys)}


def _sample(labelled: Labelled, groups: Groups) -> NDArray[np.bool_] | None:
    """Which documents of which units a group reads: all, or so many that there are MOST_WORDS, whatever their order."""
    members, n_words = labelled.members, labelled.n_words
    group_of = np.full(members.shape[1], len(groups))
    for k, group in enumerate(groups.values()):
        group_of[group] = k
    part = MOST_WORDS / np.maximum(np.bincount(group_of[members.indices], n_words, minlength=len(groups) + 1), 1)
    if part[:-1].min(initial=1.0) >= 1:
        return None
    mixed = (labelled.X @ np.random.default_rng(0).random(labelled.X.shape[1])) % 1  # of a document's words alone
    return np.asarray(np.repeat(mixed, np.diff(members.indptr)) < part[group_of[members.indices]])
