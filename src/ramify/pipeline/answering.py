"""From texts to answers: the labels of each, how likely they are, and the next likely ones, within the limits that are set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.pipeline.classifier import TextClassifier
from ramify.pipeline.rules import values_for
from ramify.pipeline.subtrees import Subtrees
from ramify.taxonomy import most_specific

MOST = 100  # labels that can be asked for

Found = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Wish:
    """What an answer should be like.

    top: how many labels in all; behind those that the rule gives come the next most likely leaves.
    threshold: labels go up to the deepest node on their path that is at least so likely; with none there is no label.
    within, without: only labels in these subtrees; none in those.
    """

    top: int = 1
    threshold: float | None = None
    within: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse numbers that mean nothing."""
        if not 1 <= self.top <= MOST:
            raise InputError(f"top is {self.top}; give a number of labels from 1 to {MOST}.")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise InputError(f"threshold is {self.threshold}; give a probability from 0 to 1.")


class Answering:
    """Answers texts by one classifier as one wish says; what that needs is made once, and kept.

    >>> clf = TextClassifier("nb").fit(["red apple", "rye bread", "black tea"], ["food/fruit", "food/bread", "drink/tea"])
    >>> answer = Answering(clf, Wish(within=("drink",)))
    >>> [answer.name(node) for node, _ in answer(["rye bread"])[0][0]]
    ['drink/tea']
    """

    def __init__(self, classifier: TextClassifier, wish: Wish | None = None) -> None:
        self.classifier, self.wish = classifier, wish or Wish()
        self.wish.check()
        self._names: dict[int, str] = {}
        given = self.wish.within or self.wish.without
        self._subtrees = Subtrees.of(classifier.taxonomy_, self.wish.within, self.wish.without) if given else None

    def __call__(self, documents: Any) -> list[tuple[Found, Found]]:
        """For each document its labels, likeliest first, and the further ones: nodes with their probabilities."""
        Y, P = self._decide(documents)
        return list(self._each(Y, P))

    def with_probabilities(self, documents: Any) -> Iterator[tuple[Found, Found, NDArray[np.float32]]]:
        """The same, with the probabilities of all nodes."""
        Y, P = self._decide(documents, all_nodes=True)
        for (labels, others), p in zip(self._each(Y, P), P, strict=True):
            yield labels, others, p

    def name(self, node: int) -> str:
        """A node as the user writes it."""
        if node not in self._names:
            self._names[node] = self.classifier.form_.write(self.classifier.taxonomy_, [node])[0]
        return self._names[node]

    def named(self, found: Found) -> list[tuple[str, float]]:
        """Labels as the user writes them."""
        return [(self.name(node), p) for node, p in found]

    def _decide(self, documents: Any, all_nodes: bool = False) -> tuple[csr_array, NDArray[np.float32]]:
        classifier = self.classifier
        if self._subtrees is None:
            answers_only = self.wish.top == 1 and self.wish.threshold is None and not all_nodes
            return classifier.decide_with_probabilities(documents, answers_only)
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

    def _each(self, Y: csr_array, P: NDArray[np.float32]) -> Iterator[tuple[Found, Found]]:
        own = most_specific(Y, self.classifier.taxonomy_)
        nodes, ends = own.indices.tolist(), own.indptr.tolist()
        chances = P[np.repeat(np.arange(Y.shape[0]), np.diff(own.indptr)), own.indices].tolist()
        for row, (start, end) in enumerate(pairwise(ends)):
            labels = list(zip(nodes[start:end], chances[start:end], strict=True))
            if self._subtrees is not None:
                labels = [(node, p) for node, p in labels if self._subtrees.is_inside[node]]
            if self.wish.threshold is not None:
                labels = self._raise(labels, P[row])
            if len(labels) > 1:
                labels.sort(key=lambda label: -label[1])
            yield labels, self._next_best(P[row], [node for node, _ in labels]) if self.wish.top > 1 else []

    def _raise(self, labels: Found, p: NDArray[np.float32]) -> Found:
        """Labels moved up to where they are likely enough; of those on one path the deepest is left."""
        taxonomy, least = self.classifier.taxonomy_, self.wish.threshold or 0.0
        reached: dict[int, float] = {}
        for node, _ in labels:
            ways = (node, *taxonomy.ancestors_of(node).tolist())
            likely = [here for here in ways if p[here] >= least and (self._subtrees is None or self._subtrees.is_inside[here])]
            if likely:
                here = max(likely, key=lambda here: (taxonomy.depth[here], p[here]))
                reached[here] = float(p[here])
        covered = {here for node in reached for here in taxonomy.ancestors_of(node).tolist()}
        return [(node, chance) for node, chance in reached.items() if node not in covered]

    def _next_best(self, p: NDArray[np.float32], chosen: Sequence[int]) -> Found:
        """The most likely leaves that were not chosen."""
        count = self.wish.top - max(1, len(chosen))
        if count < 1:
            return []
        candidates = self._leaves[~np.isin(self._leaves, chosen)]
        candidates = candidates[~np.isnan(p[candidates])]
        best = candidates[np.argsort(-p[candidates], kind="stable")[:count]]
        return list(zip(best.tolist(), p[best].tolist(), strict=True))

    @cached_property
    def _leaves(self) -> NDArray[np.int64]:
        is_leaf = self.classifier.taxonomy_.is_leaf
        return np.flatnonzero(is_leaf if self._subtrees is None else is_leaf & self._subtrees.is_inside)
