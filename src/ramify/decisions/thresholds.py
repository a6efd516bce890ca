"""A threshold a node: SCut and PCut.

A node is chosen where its score is at or above its threshold. Source: Yang 2001 (A Study of Thresholding Strategies for Text
Categorization), sections on SCut and PCut; for the floor of SCut, Lewis et al. 2004 (RCV1), as SCutFBR.
Deviations: PCut is turned into thresholds, see there; chosen nodes bring all their ancestors along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.sparse import csr_array, issparse

from ramify.decisions.few import few_to_labels, read_few
from ramify.decisions.held_out import Floats, ScoreList, read_held_out, read_scores, score_lists, to_labels
from ramify.decisions.learnt import (
    LARGEST,
    LearntRule,
    Numbers,
    Over,
    about_flag,
    about_number,
    about_numbers,
    about_over,
    frozen,
)
from ramify.decisions.reasons import reasons_of_cuts
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy


class NodeThresholds(LearntRule):
    """What SCut and PCut share: deciding, once there are thresholds."""

    __slots__ = ()
    thresholds: Numbers | None
    at_least_one: bool
    takes_few: ClassVar[bool] = True

    def decide(self, scores: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the nodes that score at or above their thresholds, and all their ancestors."""
        self.refuse_unlearnt(self.thresholds)
        S: Any = read_few(scores, taxonomy) if issparse(scores) else read_scores(scores, taxonomy)
        thresholds = np.asarray(self.thresholds, dtype=np.float64)
        if len(thresholds) != len(taxonomy):
            raise InputError(f"there are {len(thresholds)} thresholds for {len(taxonomy)} nodes; learn the rule again.")
        if issparse(S):
            return few_to_labels(thresholds[S.indices] <= S.data, S, taxonomy, self.at_least_one)
        return to_labels(thresholds <= S, S, taxonomy, self.at_least_one)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Whether each node's score reaches its threshold.

        >>> SCut(thresholds=[0.5, 0.2]).reasons([0.4, 0.3], Taxonomy.flat(["a", "b"]), [0, 1])
        ['0.40 is below its threshold 0.50', '0.30 reaches its threshold 0.20']
        """
        S, thresholds = read_scores(values, taxonomy)[0], np.asarray(self.thresholds, dtype=np.float64)
        return reasons_of_cuts(S, thresholds, "its threshold ", self.at_least_one, taxonomy, nodes)


@dataclass(frozen=True, slots=True, eq=False)
class SCut(NodeThresholds):
    """Each node has the threshold that gave it the highest F1 on held-out documents.

    over: what scores are about: "own", the most specific labels, or "nodes", membership with everything below included.
    fbr: a node whose best F1 is below this, or which has no true document with a score, is not trusted with a threshold of
    its own.
    below_fbr: what such a node gets instead: its "highest" held-out score (SCutFBR.1), or none, so that it is "never" chosen
    (SCutFBR.0). A node that has no scores at all is never chosen.
    at_least_one: give a document in which no node passes the node with the highest score.
    thresholds: learnt, one a node; infinite where a node is never chosen.

    Where several thresholds are equally good, the one in the widest gap between neighbouring scores is taken, in its middle.

    >>> ab = Taxonomy.flat(["a", "b"])
    >>> rule = SCut().learn([[0.9, 0.1], [0.8, 0.4], [0.2, 0.3]], [[1, 0], [1, 1], [0, 1]], ab)
    >>> rule.thresholds
    array([0.5, 0.2])
    >>> ab.decode(rule.decide([[0.7, 0.3], [0.1, 0.1]], ab))
    [['a', 'b'], []]
    """

    over: Over = "own"
    fbr: float = 0.1
    below_fbr: Literal["highest", "never"] = "highest"
    at_least_one: bool = False
    thresholds: Numbers | None = field(default=None, repr=False)
    kind: ClassVar[str] = "scut"
    takes: ClassVar[str] = "scores"

    def learn(self, scores: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """Choose a threshold for each node on held-out scores and true labels, both documents × nodes."""
        self.refuse_problems()
        S, T = read_held_out(scores, Y, taxonomy, self.over)
        thresholds = np.array([self._cut(column) for column in score_lists(S.T, csr_array(T.T))], dtype=np.float64)
        return replace(self, thresholds=frozen(thresholds))

    def _cut(self, column: ScoreList) -> float:
        threshold, f1 = column.best_cut()
        if column.true.size and f1 >= self.fbr:
            return threshold
        if self.below_fbr == "never" or not column.ascending.size:
            return np.inf
        return float(column.ascending[-1])

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        fits = isinstance(self.below_fbr, str) and self.below_fbr in ("highest", "never")
        return (
            about_over(self.over)
            or about_number("fbr", self.fbr, 0, 1)
            or (None if fits else f"below_fbr is {self.below_fbr!r}, not 'highest' or 'never'")
            or about_flag("at_least_one", self.at_least_one)
            or _about_thresholds(self.thresholds)
        )


@dataclass(frozen=True, slots=True, eq=False)
class PCut(NodeThresholds):
    """Each node is chosen about as often as it occurs, times a factor common to all nodes.

    In its classical form PCut gives a node to the x · share · n best of the n documents of a batch, so that a document's labels
    depend on the others in the batch. Ramify promises that they do not. Here, therefore, the proportion becomes a threshold a
    node once and for all: the one that the x · share · n highest of the n held-out scores reach (rounded to the nearest
    number; of equal scores all or none, never more than that number). The factor x is the one of `factors` with the highest
    micro F1 on the held-out documents; of equal ones the first.

    over, at_least_one, thresholds: as in :class:`SCut`.
    factor: learnt; the factor chosen.

    >>> ab = Taxonomy.flat(["a", "b"])
    >>> rule = PCut().learn([[0.9, 0.1], [0.8, 0.4], [0.2, 0.3]], [[1, 0], [1, 1], [0, 1]], ab)
    >>> rule.factor, rule.thresholds
    (1.0, array([0.5, 0.2]))
    """

    over: Over = "own"
    factors: Numbers = (1.0, 0.8, 1.25, 0.5, 2.0, 0.3, 3.0, 0.2, 5.0)
    at_least_one: bool = False
    factor: float | None = None
    thresholds: Numbers | None = field(default=None, repr=False)
    kind: ClassVar[str] = "pcut"
    takes: ClassVar[str] = "scores"

    def learn(self, scores: Any, Y: Any, taxonomy: Taxonomy, shares: Numbers | None = None) -> Self:
        """Choose the factor, and with it the thresholds, on held-out scores and true labels, both documents × nodes.

        shares: the share of documents that each node has in training; None takes that of the held-out documents.
        """
        self.refuse_problems()
        S, T = read_held_out(scores, Y, taxonomy, self.over)
        x = np.asarray(self.factors, dtype=np.float64)
        expected = (
            np.bincount(T.indices, minlength=len(taxonomy)) if shares is None else _read_shares(shares, taxonomy) * len(S)
        )
        thresholds, taken, hits = np.empty((len(taxonomy), len(x))), np.zeros(len(x)), np.zeros(len(x))
        for node, column in enumerate(score_lists(S.T, csr_array(T.T))):
            wanted = np.floor(x * expected[node] + 0.5).clip(max=len(S)).astype(np.int64)
            thresholds[node], n_taken, n_hits = column.cuts_of_size(wanted)
            taken, hits = taken + n_taken, hits + n_hits
        chosen = int(np.argmax(2 * hits / (T.nnz + taken)))
        return replace(self, factor=float(x[chosen]), thresholds=frozen(thresholds[:, chosen].copy()))

    def problem(self) -> str | None:
        """What is wrong with the values of this rule, if anything is."""
        return (
            about_over(self.over)
            or about_numbers("the factors", self.factors, 0, LARGEST)
            or (None if np.size(self.factors) else "there is no factor to choose from")
            or about_flag("at_least_one", self.at_least_one)
            or (None if self.factor is None else about_number("factor", self.factor, 0, LARGEST))
            or _about_thresholds(self.thresholds)
        )


def _about_thresholds(thresholds: Any) -> str | None:
    return None if thresholds is None else about_numbers("the thresholds", thresholds, -LARGEST, np.inf)


def _read_shares(shares: Any, taxonomy: Taxonomy) -> Floats:
    if problem := about_numbers("the shares", shares, 0, 1):
        raise InputError(f"{problem}.")
    if len(shares) != len(taxonomy):
        raise InputError(f"there are {len(shares)} shares for {len(taxonomy)} nodes; give one a node.")
    return np.asarray(shares, dtype=np.float64)
