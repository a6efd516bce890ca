"""Answers within some subtrees only: what a decision rule is told when it is known that a document lies there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.classifier.guarantees import WITHOUT_RISK, predictor_of
from ramify.classifier.rules import values_for
from ramify.classifier.text_classifier import TextClassifier
from ramify.decisions import DecisionRule, Descend
from ramify.decisions.conformal import check_nodes, check_risk
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy, most_specific

Bools = NDArray[np.bool_]
ROUNDING = 1e-5
SURE = 1e6  # a margin that no threshold in use is above


@dataclass(frozen=True, slots=True)
class Subtrees:
    """Where labels may lie.

    is_inside: nodes that may be labels. is_open: these, and the nodes above the subtrees that are allowed.
    """

    taxonomy: Taxonomy
    is_inside: Bools
    is_open: Bools

    @classmethod
    def of(cls, taxonomy: Taxonomy, within: Sequence[str], without: Sequence[str]) -> Self:
        """Everything below the nodes of `within` (or everything), and nothing at or below those of `without`."""
        tops, closed = [taxonomy.index(label) for label in within], [taxonomy.index(label) for label in without]
        is_inside = _below(taxonomy, tops) if tops else np.ones(len(taxonomy), dtype=bool)
        is_shut = _below(taxonomy, closed)
        is_inside &= ~is_shut
        if not is_inside.any():
            raise InputError("nothing is left of the taxonomy: every node of `within` lies in a subtree of `without`.")
        above = np.zeros(len(taxonomy), dtype=bool)
        for node in tops:
            above[taxonomy.ancestors_of(node)] = True
        return cls(taxonomy, is_inside, (is_inside | above) & ~is_shut)

    def close(self, values: Any, rule: DecisionRule) -> NDArray[np.floating[Any]]:
        """What a rule is told: no at closed nodes, and yes at those that lead to the open subtrees.

        Values are those that the rule takes: scores, margins, memberships or conditionals, documents × nodes.
        """
        V = np.array(values, dtype=np.float64)
        takes = rule.takes
        leads = self.is_open & ~self.is_inside
        if isinstance(rule, Descend):  # the children of a node and staying there add up to 1, also when some are closed
            self._share_out(V)
        V[:, ~self.is_open] = {"memberships": 0.0, "conditionals": 0.0}.get(takes, np.nan)
        if takes == "scores":
            V[:, leads] = np.nan
        elif takes == "margins":
            V[:, leads] = SURE
        elif takes == "conditionals":
            V[:, leads] = 1.0
        return V

    def _share_out(self, conditionals: NDArray[np.float64]) -> None:
        """What closed children had goes to their open siblings, and to staying, in proportion to what these have."""
        parent = self.taxonomy.parent
        for node in np.unique(parent[~self.is_open]).tolist():
            children = self.taxonomy.roots if node < 0 else self.taxonomy.children_of(node)
            stays = 1 - np.nansum(conditionals[:, children], axis=1, keepdims=True)
            stays[stays < ROUNDING] = 0  # so little may be what adding up has lost
            open_children = children[self.is_open[children]]
            left = np.nansum(conditionals[:, open_children], axis=1, keepdims=True) + stays
            conditionals[:, open_children] /= np.where(left > 0, left, 1)


def _below(taxonomy: Taxonomy, nodes: Sequence[int]) -> Bools:
    found = np.zeros(len(taxonomy), dtype=bool)
    for node in nodes:
        found[node] = True
        found[taxonomy.descendants_of(node)] = True
    return found


# --------------------------------------------------------------------------------------------------------------
# From texts to answers: the labels of each, how likely they are, and the next likely ones, within the limits that are set.


MOST = 100  # labels that can be asked for
BATCH = 500
BATCH_BYTES = 1 << 23  # of scores, few enough to stay near the processor

Found = list[tuple[int, float]]
Chances = Any  # probabilities, documents × nodes: an array, or a sparse one


@dataclass(frozen=True, slots=True)
class PredictOptions:
    """What an answer should be like.

    top: how many labels in all; behind those that the rule gives come the next most likely leaves.
    threshold: labels go up to the deepest node on their path that is at least so likely; with none there is no label.
    within, without: only labels in these subtrees; none in those.
    risk, nodes, by_branch: labels that keep a promise, as :meth:`~ramify.TextClassifier.predict` says.
    """

    top: int = 1
    threshold: float | None = None
    within: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    risk: float | None = None
    nodes: int = 1
    by_branch: bool = False

    def check(self) -> None:
        """Refuse numbers that mean nothing."""
        if not 1 <= self.top <= MOST:
            raise InputError(f"top is {self.top}; give a number of labels from 1 to {MOST}.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise InputError(f"threshold is {self.threshold}; give a probability from 0 to 1.")
        if self.risk is None:
            if self.nodes != 1 or self.by_branch:
                raise InputError(WITHOUT_RISK)
            return
        check_risk(self.risk)
        check_nodes(self.nodes)
        if self.threshold is not None or self.within or self.without:
            raise InputError("a risk promises something of the whole taxonomy; leave out threshold, within and without.")


class Predictor:
    """Answers texts by one classifier as one options says; what that needs is made once, and kept.

    >>> clf = TextClassifier("nb").fit(["red apple", "rye bread", "black tea"], ["food/fruit", "food/bread", "drink/tea"])
    >>> answer = Predictor(clf, PredictOptions(within=("drink",)))
    >>> [answer.name(node) for node, _ in answer(["rye bread"])[0][0]]
    ['drink/tea']
    """

    def __init__(self, classifier: TextClassifier, options: PredictOptions | None = None) -> None:
        self.classifier, self.options = classifier, options or PredictOptions()
        self.options.check()
        if self.options.risk is not None:
            predictor_of(classifier).decide(np.zeros((0, len(classifier.taxonomy_))), classifier.taxonomy_, *self._promise)
        self._names: dict[int, str] = {}
        given = self.options.within or self.options.without
        self._subtrees = Subtrees.of(classifier.taxonomy_, self.options.within, self.options.without) if given else None
        is_inside = None if self._subtrees is None or not self._few else self._subtrees.is_inside
        self._inside = None if is_inside is None else classifier.among(is_inside)

    @property
    def batch_size(self) -> int:
        """How many documents are well answered together: as many as have room for their scores."""
        return BATCH if self._few else batch_size(len(self.classifier.taxonomy_))

    def __call__(self, documents: Any) -> list[tuple[Found, Found]]:
        """For each document its labels, likeliest first, and the further ones: nodes with their probabilities."""
        Y, P = self._decide(documents)
        return list(self._each(Y, P))

    def with_probabilities(self, documents: Any) -> Iterator[tuple[Found, Found, NDArray[np.float32]]]:
        """The same, with the probabilities of all nodes."""
        Y, P = self._decide(documents, all_nodes=True)
        for row, (labels, others) in enumerate(self._each(Y, P)):
            yield labels, others, _row(P, row)

    def name(self, node: int) -> str:
        """A node as the user writes it."""
        if node not in self._names:
            self._names[node] = self.classifier.form_.write(self.classifier.taxonomy_, [node])[0]
        return self._names[node]

    def named(self, found: Found) -> list[tuple[str, float]]:
        """Labels as the user writes them."""
        return [(self.name(node), p) for node, p in found]

    @property
    def _promise(self) -> tuple[float, int, bool]:
        assert self.options.risk is not None
        return self.options.risk, self.options.nodes, self.options.by_branch

    @property
    def _few(self) -> bool:
        """Whether answers come from a few nodes of each document, and no others are looked at."""
        return self.classifier.scores_candidates_only

    def _decide(self, documents: Any, all_nodes: bool = False) -> tuple[csr_array, Chances]:
        """Labels, and probabilities over all nodes: sparse, where few are looked at."""
        classifier = self.classifier
        if self.options.risk is not None:
            return classifier.decide_with_guarantee(documents, *self._promise)
        if self._few:
            Y, P = classifier.decide_few(documents)
            return (Y if self._inside is None else self._inside.decide_few(documents)[0]), P
        if self._subtrees is None:
            labels_only = self.options.top == 1 and self.options.threshold is None and not all_nodes
            return classifier.decide_with_probabilities(documents, labels_only)
        parts = [part for _, part in classifier.map_scores(documents, self._decide_within)]
        width = len(classifier.taxonomy_)
        if not parts:
            return csr_array((0, width), dtype=bool), np.empty((0, width), dtype=np.float32)
        Y = np.concatenate([taken for taken, _ in parts])
        return csr_array(Y), np.concatenate([p for _, p in parts])

    def _decide_within(self, scores: NDArray[np.float32]) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """Labels by values that say no outside the subtrees; probabilities as they always are."""
        assert self._subtrees is not None
        classifier, rule = self.classifier, self.classifier.decision_
        values = self._subtrees.close(values_for(rule, classifier.learner_, scores), rule)
        taken = rule.decide(values, classifier.taxonomy_).toarray()
        return taken & self._subtrees.is_open, classifier.decide_both(scores)[1]

    def _each(self, Y: csr_array, P: Chances) -> Iterator[tuple[Found, Found]]:
        own = most_specific(Y, self.classifier.taxonomy_)
        nodes, ends = own.indices.tolist(), own.indptr.tolist()
        chances = _at(P, np.repeat(np.arange(Y.shape[0]), np.diff(own.indptr)), own.indices).tolist()
        for row, (start, end) in enumerate(pairwise(ends)):
            labels = list(zip(nodes[start:end], chances[start:end], strict=True))
            if self._subtrees is not None:
                labels = [(node, p) for node, p in labels if self._subtrees.is_inside[node]]
            if self.options.threshold is not None:
                labels = self._raise(labels, _row(P, row))
            if len(labels) > 1:
                labels.sort(key=lambda label: -label[1])
            yield labels, self._next_best(P, row, [node for node, _ in labels]) if self.options.top > 1 else []

    def _raise(self, labels: Found, p: NDArray[np.float32]) -> Found:
        """Labels moved up to where they are likely enough; of those on one path the deepest is left."""
        taxonomy, least = self.classifier.taxonomy_, self.options.threshold or 0.0
        reached: dict[int, float] = {}
        for node, _ in labels:
            ways = (node, *taxonomy.ancestors_of(node).tolist())
            likely = [here for here in ways if p[here] >= least and (self._subtrees is None or self._subtrees.is_inside[here])]
            if likely:
                here = max(likely, key=lambda here: (taxonomy.depth[here], p[here]))
                reached[here] = float(p[here])
        covered = {here for node in reached for here in taxonomy.ancestors_of(node).tolist()}
        return [(node, chance) for node, chance in reached.items() if node not in covered]

    def _next_best(self, P: Chances, row: int, chosen: Sequence[int]) -> Found:
        """The most likely leaves that were not chosen."""
        count = self.options.top - max(1, len(chosen))
        if count < 1:
            return []
        candidates, p = self._candidates(P, row)
        is_left = ~np.isin(candidates, chosen) & ~np.isnan(p)
        candidates, p = candidates[is_left], p[is_left]
        best = np.argsort(-p, kind="stable")[:count]
        return list(zip(candidates[best].tolist(), p[best].tolist(), strict=True))

    def _candidates(self, P: Chances, row: int) -> tuple[NDArray[Any], NDArray[np.float32]]:
        """The leaves that may be named, and their probabilities; none that was not looked at."""
        if not isinstance(P, csr_array):
            return self._leaves, P[row, self._leaves]
        here = slice(P.indptr[row], P.indptr[row + 1])
        may_be_named = self._may_be_named[P.indices[here]]
        return P.indices[here][may_be_named], P.data[here][may_be_named]

    @cached_property
    def _may_be_named(self) -> NDArray[np.bool_]:
        is_leaf = self.classifier.taxonomy_.is_leaf
        return is_leaf if self._subtrees is None else is_leaf & self._subtrees.is_inside

    @cached_property
    def _leaves(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._may_be_named)


def batch_size(n_nodes: int) -> int:
    """How many documents are held at once, with the scores of all nodes."""
    return max(1, min(BATCH, BATCH_BYTES // (16 * max(1, n_nodes))))


def _row(P: Chances, row: int) -> NDArray[np.float32]:
    """The probabilities of all nodes for one document."""
    if not isinstance(P, csr_array):
        return np.asarray(P[row])
    p, here = np.zeros(P.shape[1], dtype=np.float32), slice(P.indptr[row], P.indptr[row + 1])
    p[P.indices[here]] = P.data[here]
    return p


def _at(P: Chances, rows: NDArray[Any], nodes: NDArray[Any]) -> NDArray[np.float32]:
    """The probabilities of some nodes, each for one document."""
    if not isinstance(P, csr_array):
        return np.asarray(P[rows, nodes])
    # rows and columns of a sparse matrix rise, and so do these numbers of its entries
    numbers = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr)) * P.shape[1] + P.indices
    wanted = rows * P.shape[1] + nodes
    places = np.searchsorted(numbers, wanted)
    known = np.append(numbers, -1)[places] == wanted
    return np.where(known, np.append(P.data, np.float32(0))[places], np.float32(0))
