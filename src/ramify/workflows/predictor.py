"""Predictions as users want them: number of labels, probability threshold, allowed subtrees, or a guaranteed error rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.classifier.fitting import values_for
from ramify.classifier.guarantees import WITHOUT_RISK, predictor_of
from ramify.classifier.text_classifier import TextClassifier
from ramify.decisions import DecisionRule, Descend
from ramify.decisions.conformal import check_nodes, check_risk
from ramify.errors import InputError
from ramify.features.base import check_fitted
from ramify.taxonomy import Taxonomy, most_specific
from ramify.type_hints import check_fields, checks_types

Bools = NDArray[np.bool_]
ROUNDING = 1e-5
CERTAIN = 1e6  # a margin above every threshold in use
MOST = 100  # labels of one prediction
BATCH = 500
BATCH_BYTES = 1 << 23  # of scores, few enough for the processor's cache

Found = list[tuple[int, float]]
Probabilities = Any  # documents × nodes: an array, or a sparse one


@dataclass(frozen=True, slots=True)
class Subtrees:
    """Where labels may come from. is_inside: nodes that may be labels. is_open: also their ancestors, if not closed."""

    taxonomy: Taxonomy
    is_inside: Bools
    is_open: Bools

    @classmethod
    def of(cls, taxonomy: Taxonomy, within: Sequence[str], without: Sequence[str]) -> Self:
        """Everything below the nodes of `within` (or everything), and nothing at or below those of `without`."""

        def subtrees(nodes: list[int]) -> Bools:
            found = np.zeros(len(taxonomy), dtype=bool)
            for node in nodes:
                found[node] = found[taxonomy.descendants_of(node)] = True
            return found

        tops = [taxonomy.index(label) for label in within]
        is_closed = subtrees([taxonomy.index(label) for label in without])
        is_inside = (subtrees(tops) if tops else np.ones(len(taxonomy), dtype=bool)) & ~is_closed
        if not is_inside.any():
            raise InputError("nothing is left of the taxonomy: every node of `within` lies in a subtree of `without`.")
        above = np.zeros(len(taxonomy), dtype=bool)
        for node in tops:
            above[taxonomy.ancestors_of(node)] = True
        return cls(taxonomy, is_inside, (is_inside | above) & ~is_closed)

    def close(self, values: Any, rule: DecisionRule) -> NDArray[np.floating[Any]]:
        """Values for a rule, documents × nodes, that exclude closed nodes and include the ancestors of open subtrees."""
        V = np.array(values, dtype=np.float64)
        # the children of a node and staying there add up to 1: open children and staying get, in proportion to their own, what
        # closed children had
        tree = self.taxonomy.tree
        for node in np.unique(tree.parent[~self.is_open]).tolist() if isinstance(rule, Descend) else ():
            children = tree.roots if node < 0 else tree.children_of(node)
            stays = 1 - np.nansum(V[:, children], axis=1, keepdims=True)
            stays[stays < ROUNDING] = 0  # may be a rounding error of the sum
            open_children = children[self.is_open[children]]
            left = np.nansum(V[:, open_children], axis=1, keepdims=True) + stays
            V[:, open_children] /= np.where(left > 0, left, 1)
        V[:, ~self.is_open] = {"memberships": 0.0, "conditionals": 0.0}.get(rule.takes, np.nan)
        certain = {"scores": np.nan, "margins": CERTAIN, "conditionals": 1.0}
        if rule.takes in certain:
            V[:, self.is_open & ~self.is_inside] = certain[rule.takes]
        return V


@dataclass(frozen=True, slots=True)
class PredictOptions:
    """What a prediction contains.

    top: number of labels in all; the most probable other leaves follow the labels of the rule.
    threshold: each label backs off to the deepest node on its path that is at least so probable; without any, it is dropped.
    within, without: only labels in these subtrees; none in those.
    risk, nodes, by_branch: labels with a guarantee, as in :meth:`~ramify.TextClassifier.predict`.
    """

    top: int = 1
    threshold: float | None = None
    within: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    risk: float | None = None
    nodes: int = 1
    by_branch: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    def check(self) -> None:
        """Refuse numbers out of range, and options that do not go together."""
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
            raise InputError("a risk is guaranteed over the whole taxonomy; leave out threshold, within and without.")


class Predictor:
    """Predicts labels of texts with one classifier and one set of options; what these need is prepared once.

    >>> clf = TextClassifier("nb").fit(["red apple", "rye bread", "black tea"], ["food/fruit", "food/bread", "drink/tea"])
    >>> predictor = Predictor(clf, PredictOptions(within=("drink",)))
    >>> [predictor.name(node) for node, _ in predictor.predict(["rye bread"])[0][0]]
    ['drink/tea']
    """

    @checks_types
    def __init__(self, classifier: TextClassifier, options: PredictOptions | None = None) -> None:
        self.classifier, self.options = classifier, options or PredictOptions()
        self.options.check()
        check_fitted(classifier)
        taxonomy = classifier.taxonomy_
        if (risk := self.options.risk) is not None:  # refuses what the guarantee does not cover, before any text is read
            nothing = np.zeros((0, len(taxonomy)))
            predictor_of(classifier).decide(nothing, taxonomy, risk, self.options.nodes, self.options.by_branch)
        self._names: dict[int, str] = {}
        given = self.options.within or self.options.without
        self._subtrees = Subtrees.of(taxonomy, self.options.within, self.options.without) if given else None
        self._is_sparse = classifier.scores_candidates_only  # no other nodes are scored
        inside = None if self._subtrees is None else self._subtrees.is_inside
        self._inside = classifier.among(inside) if self._is_sparse and inside is not None else None

    @property
    def batch_size(self) -> int:
        """Number of documents to predict at a time, so that their scores fit into memory."""
        return BATCH if self._is_sparse else batch_size(len(self.classifier.taxonomy_))

    def predict(self, texts: Any) -> list[tuple[Found, Found]]:
        """Labels of each text, most probable first, and the further ones: nodes with their probabilities."""
        return list(self._rows(*self._decide(texts)))

    def with_probabilities(self, texts: Any) -> Iterator[tuple[Found, Found, NDArray[np.float32]]]:
        """The same as :meth:`predict`, with the probabilities of all nodes."""
        Y, P = self._decide(texts, all_nodes=True)
        for row, (labels, others) in enumerate(self._rows(Y, P)):
            yield labels, others, _row(P, row)

    def name(self, node: int) -> str:
        """A node as the user writes it."""
        if node not in self._names:
            self._names[node] = self.classifier.form_.write(self.classifier.taxonomy_, [node])[0]
        return self._names[node]

    def named(self, found: Found) -> list[tuple[str, float]]:
        """Labels as the user writes them."""
        return [(self.name(node), p) for node, p in found]

    def _decide(self, texts: Any, all_nodes: bool = False) -> tuple[csr_array, Probabilities]:
        """Labels, and probabilities over all nodes: sparse where only candidates are scored."""
        classifier, options = self.classifier, self.options
        if options.risk is not None:
            return classifier.decide_with_guarantee(texts, options.risk, options.nodes, options.by_branch)
        if self._is_sparse:
            Y, P = classifier.decide_sparse(texts)
            return (Y if self._inside is None else self._inside.decide_sparse(texts)[0]), P
        if (subtrees := self._subtrees) is None:
            labels_only = options.top == 1 and options.threshold is None and not all_nodes
            return classifier.decide_with_probabilities(texts, labels_only)
        rule, width = classifier.decision_, len(classifier.taxonomy_)

        def decide_within(scores: NDArray[np.float32]) -> tuple[Bools, NDArray[np.float32]]:
            values = subtrees.close(values_for(rule, classifier.learner_, scores), rule)
            taken = rule.decide(values, classifier.taxonomy_).toarray()
            return taken & subtrees.is_open, classifier.decide_both(scores)[1]

        parts = [part for _, part in classifier.map_scores(texts, decide_within)]
        if not parts:
            return csr_array((0, width), dtype=bool), np.empty((0, width), dtype=np.float32)
        return csr_array(np.concatenate([taken for taken, _ in parts])), np.concatenate([p for _, p in parts])

    def _rows(self, Y: csr_array, P: Probabilities) -> Iterator[tuple[Found, Found]]:
        own = most_specific(Y, self.classifier.taxonomy_)
        nodes, ends = own.indices.tolist(), own.indptr.tolist()
        probabilities = _at(P, np.repeat(np.arange(Y.shape[0]), np.diff(own.indptr)), own.indices).tolist()
        for row, (start, end) in enumerate(pairwise(ends)):
            labels = list(zip(nodes[start:end], probabilities[start:end], strict=True))
            if self._subtrees is not None:
                labels = [(node, p) for node, p in labels if self._subtrees.is_inside[node]]
            if self.options.threshold is not None:
                labels = self._back_off(labels, _row(P, row))
            if len(labels) > 1:
                labels.sort(key=lambda label: -label[1])
            yield labels, self._next_best(P, row, [node for node, _ in labels]) if self.options.top > 1 else []

    def _back_off(self, labels: Found, p: NDArray[np.float32]) -> Found:
        """Labels moved up to where they are probable enough; of those on one path only the deepest."""
        taxonomy, least = self.classifier.taxonomy_, self.options.threshold or 0.0
        is_inside = None if self._subtrees is None else self._subtrees.is_inside
        found: dict[int, float] = {}
        for label, _ in labels:
            path = (label, *taxonomy.ancestors_of(label).tolist())
            probable = [node for node in path if p[node] >= least and (is_inside is None or is_inside[node])]
            if probable:
                deepest = max(probable, key=lambda node: (taxonomy.depth[node], p[node]))
                found[deepest] = float(p[deepest])
        covered = {above for node in found for above in taxonomy.ancestors_of(node).tolist()}
        return [(node, probability) for node, probability in found.items() if node not in covered]

    def _next_best(self, P: Probabilities, row: int, labels: Sequence[int]) -> Found:
        """The most probable leaves that are not among the labels; where only candidates are scored, among these."""
        count = self.options.top - max(1, len(labels))
        if count < 1:
            return []
        if isinstance(P, csr_array):
            entries = slice(P.indptr[row], P.indptr[row + 1])
            is_allowed = self._is_candidate[P.indices[entries]]
            nodes, p = P.indices[entries][is_allowed], P.data[entries][is_allowed]
        else:
            nodes, p = self._leaves, P[row, self._leaves]
        is_left = ~np.isin(nodes, labels) & ~np.isnan(p)
        nodes, p = nodes[is_left], p[is_left]
        best = np.argsort(-p, kind="stable")[:count]
        return list(zip(nodes[best].tolist(), p[best].tolist(), strict=True))

    @cached_property
    def _is_candidate(self) -> Bools:
        is_leaf = self.classifier.taxonomy_.is_leaf & ~self.classifier.learner_.is_empty_
        return is_leaf if self._subtrees is None else is_leaf & self._subtrees.is_inside

    @cached_property
    def _leaves(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._is_candidate)


def batch_size(n_nodes: int) -> int:
    """Number of documents to hold at a time, with the scores of all nodes."""
    return max(1, min(BATCH, BATCH_BYTES // (16 * max(1, n_nodes))))


def _row(P: Probabilities, row: int) -> NDArray[np.float32]:
    return P[[row]].toarray()[0] if isinstance(P, csr_array) else np.asarray(P[row])


def _at(P: Probabilities, rows: NDArray[Any], nodes: NDArray[Any]) -> NDArray[np.float32]:
    """The probabilities of some nodes, each for one document."""
    if not isinstance(P, csr_array):
        return np.asarray(P[rows, nodes])
    # rows and columns of a sparse matrix rise, and so do these numbers of its entries
    numbers = np.repeat(np.arange(P.shape[0]), np.diff(P.indptr)) * P.shape[1] + P.indices
    wanted = rows * P.shape[1] + nodes
    places = np.searchsorted(numbers, wanted)
    is_stored = np.append(numbers, -1)[places] == wanted
    return np.where(is_stored, np.append(P.data, np.float32(0))[places], np.float32(0))
