"""How far down to go: ever smaller sets of nodes, the mass that each keeps, and which of them still hold the truth.

A document begins with all roots. Step by step the nodes of its set give way to their children, of which at most `size` stay,
the most probable; at the end, when only leaves are left, the least probable leaf goes until one is left. With size 1 this is
the way from the most probable root to the most probable child. The mass of a set, the probability that the truth is at or below
one of its nodes, never rises on the way. So a threshold on the mass says where to stop, and a lower one never stops earlier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.decisions.h_loss import read_probabilities
from ramify.errors import InputError, ModelError
from ramify.taxonomy import Taxonomy, expand_to_ancestors, levels_of

NEVER = -1.0  # the mass at which a truth is lost that is never lost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NestedSets:
    """The sets of some documents, step by step.

    masses: documents × steps. nodes: documents × steps × size, -1 where a set has fewer.
    """

    masses: Floats
    nodes: Ints

    def stops(self, threshold: Any) -> Ints:
        """The nodes of the last set with a mass above a threshold, -1 where there are fewer or none; one a document, or all."""
        n_steps = (self.masses > np.reshape(threshold, (-1, 1))).sum(axis=1)
        last = self.nodes[np.arange(len(self.nodes)), np.maximum(n_steps, 1) - 1]
        return np.where((n_steps > 0)[:, None], last, -1)

    def losses(self, truth: csr_array) -> Floats:
        """The mass of the first set without a true node, -1 where there is none. truth: closed upward."""
        rows = np.arange(len(self.nodes))[:, None, None]
        is_true = np.asarray(truth.toarray(), dtype=bool)[rows, self.nodes] & (self.nodes >= 0)
        is_lost = ~np.any(is_true, axis=2)
        first = np.where(is_lost.any(axis=1), is_lost.argmax(axis=1), 0)
        return np.where(is_lost.any(axis=1), self.masses[np.arange(len(first)), first], NEVER)


def find_nested_sets(probabilities: Any, taxonomy: Taxonomy, size: int = 1) -> NestedSets:
    """Go down a tree with at most so many nodes at a time. probabilities: documents × nodes, no child's above its parent's.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c", "d"])
    >>> found = find_nested_sets([[0.9, 0.6, 0.3, 0.1]], tree)
    >>> found.masses.tolist(), [tree.names[node] for node in found.nodes[0, :, 0]]
    ([[0.9, 0.6]], ['a', 'a/b'])
    """
    taxonomy.require_tree("backing off to an ancestor")
    P = np.nan_to_num(read_probabilities(probabilities, taxonomy).astype(np.float64), nan=0.0)
    here, steps = np.full((len(P), 0), -1, dtype=np.int64), []
    for level in levels_of(taxonomy):
        here = _go_down(P, here, level, taxonomy, size)
        steps.append(here)
    steps += [np.where(np.arange(size) < kept, here, -1) for kept in range(size - 1, 0, -1)]
    nodes = np.stack(steps, axis=1)
    masses = np.where(nodes >= 0, P[np.arange(len(P))[:, None, None], nodes], 0.0).sum(axis=2)
    return NestedSets(np.minimum.accumulate(masses.clip(0, 1), axis=1), nodes)


def _go_down(P: Floats, here: Ints, level: Ints, taxonomy: Taxonomy, size: int) -> Ints:
    """Of the nodes of a level below those of a set, and its leaves, the most probable: first the most probable of all."""
    rows = np.arange(len(P))[:, None]
    parent = taxonomy.parent[level]
    is_here = np.zeros((len(P), len(taxonomy) + 1), dtype=bool)
    is_here[rows, here] = True  # -1 marks the last column, which is nobody's
    is_here[:, -1] = True  # above the roots, all are
    leaves = np.where((here >= 0) & taxonomy.is_leaf[here], here, -1)
    nodes = np.concatenate([np.broadcast_to(level, (len(P), len(level))), leaves], axis=1)
    chances = np.where(is_here[:, parent], P[:, level], NEVER)
    chances = np.concatenate([chances, np.where(leaves >= 0, P[rows, leaves], NEVER)], axis=1)
    order = np.argsort(-chances, axis=1, kind="stable")[:, :size] if size > 1 else chances.argmax(axis=1)[:, None]
    best = np.where(chances[rows, order] > NEVER, nodes[rows, order], -1)
    return np.pad(best, ((0, 0), (0, size - best.shape[1])), constant_values=-1)


def to_labels(nodes: Ints, taxonomy: Taxonomy) -> csr_array:
    """Nodes of each document, -1 for none, as labels with their ancestors."""
    rows, columns = np.nonzero(nodes >= 0)
    chosen = nodes[rows, columns]
    shape = len(nodes), len(taxonomy)
    return expand_to_ancestors(csr_array((np.ones(len(chosen), dtype=bool), (rows, chosen)), shape=shape), taxonomy)


# --------------------------------------------------------------------------------------------------------------
# Answers with a guarantee: split conformal prediction over a tree, and control of the share of wrong labels.
#
# With one label a document, the score of a held-out document is the mass of the first set of nodes that misses its truth (see
# narrowing.py). With n such scores, the threshold for a risk α is the ⌈(n + 1)(1 − α)⌉-th smallest of them; a new document that
# is exchangeable with the held-out ones is stopped before its truth is lost with a probability of at least 1 − α. The same
# holds
# among the documents whose most probable branch is a given one, with the scores of these alone (Mondrian conformal prediction).
#
# With several labels a document, nodes at least as probable as λ are taken. The loss of a held-out document is the share of its
# most specific labels that are wrong, at the worst of all thresholds from 1 down to λ, so that it never falls as λ falls. The
# threshold for a risk α is the lowest λ with (n · mean loss + 1) / (n + 1) ≤ α; the share of wrong labels to expect is then at
# most α.
#
# Sources: Vovk, Gammerman & Shafer 2005 on split and Mondrian conformal prediction; Angelopoulos et al. 2022, Conformal risk
# control; sets of few nodes as in Mortier et al. 2025.


SIZES = (1, 2, 3, 5, 10)  # how many nodes an answer may have
LEAST = 1e-9  # risk
FAINT = 0.01  # the lowest threshold on probabilities of nodes
MOST_STEPS = 10_000  # of thresholds that are kept
SLIP = 1e-9  # of rounding, when documents are counted

Arrays = dict[str, NDArray[Any]]


class ConformalPredictor(Protocol):
    """What held-out documents allow to be promised."""

    kind: ClassVar[str]

    @property
    def least_risk(self) -> float:
        """The least risk for which there are documents enough."""

    def decide(self, probabilities: Any, taxonomy: Taxonomy, risk: float, nodes: int = 1, by_branch: bool = False) -> csr_array:
        """Labels, closed upward, that keep the promise."""

    def arrays(self) -> Arrays:
        """What a model file keeps."""


def fit_conformal(probabilities: Any, Y: Any, taxonomy: Taxonomy, multi_label: bool) -> ConformalPredictor:
    """From probabilities and labels of documents that nobody has learnt from. multi_label: whether these have multiple labels.

    Where nodes may have several parents there is no one way down, and the share of wrong labels is promised as well.
    """
    P, truth = read_probabilities(probabilities, taxonomy), expand_to_ancestors(Y, taxonomy)
    if truth.shape != P.shape:
        raise InputError(
            f"there are probabilities of {len(P)} documents and labels of {truth.shape[0]}; give both for the same."
        )
    return (
        ConformalRiskControl.fit(P, truth, taxonomy)
        if multi_label or not taxonomy.is_tree
        else ConformalPaths.fit(P, truth, taxonomy)
    )


def check_risk(risk: Any) -> None:
    """Refuse what is no risk."""
    if isinstance(risk, bool) or not isinstance(risk, Real) or not LEAST <= float(risk) < 1:
        raise InputError(f"risk is {risk!r}; give a probability between 0 and 1, such as 0.05, and no less than {LEAST:g}.")


def check_nodes(nodes: Any) -> None:
    """Refuse what is no number of nodes that an answer may have."""
    if isinstance(nodes, bool) or not isinstance(nodes, (int, np.integer)) or nodes not in SIZES:
        raise InputError(f"nodes is {nodes!r}; an answer may have {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]} nodes.")


def top_branches(taxonomy: Taxonomy) -> NDArray[np.int64]:
    """The topmost nodes among which there is a choice: the roots, or the children of a single one.

    >>> top_branches(Taxonomy.from_paths(["all/a", "all/b/c"])).tolist()
    [1, 2]
    """
    branches = np.asarray(taxonomy.roots, dtype=np.int64)
    while len(branches) == 1 and len(taxonomy.children_of(int(branches[0]))):
        branches = np.asarray(taxonomy.children_of(int(branches[0])), dtype=np.int64)
    return branches


@dataclass(frozen=True, slots=True, eq=False)
class ConformalPaths:
    """Documents with one label each: the true path passes through the answer.

    losses: documents × SIZES, the mass at which each lost its truth. branches: the most probable branch of each.
    """

    losses: Floats
    branches: NDArray[np.int64]
    kind: ClassVar[str] = "coverage"

    @classmethod
    def fit(cls, P: NDArray[Any], truth: csr_array, taxonomy: Taxonomy) -> Self:
        """From probabilities and true labels, closed upward."""
        losses = np.column_stack([find_nested_sets(P, taxonomy, size).losses(truth) for size in SIZES])
        return cls(losses, _branch_of(P, taxonomy))

    @property
    def least_risk(self) -> float:
        """The least risk for which there are documents enough."""
        return 1 / (len(self.losses) + 1)

    def decide(self, probabilities: Any, taxonomy: Taxonomy, risk: float, nodes: int = 1, by_branch: bool = False) -> csr_array:
        """The deepest nodes, so many at most, through one of which the true path passes with probability 1 − risk.

        by_branch: the promise holds among the documents of each top-level branch; those of a branch with too few held-out
        documents get no label (see :meth:`refused`). Others may have none, either.
        """
        check_nodes(nodes)
        P = read_probabilities(probabilities, taxonomy)
        threshold = self._thresholds_by_branch(P, taxonomy, risk, nodes) if by_branch else self.threshold(risk, nodes)
        return to_labels(find_nested_sets(P, taxonomy, nodes).stops(threshold), taxonomy)

    def _thresholds_by_branch(self, P: NDArray[Any], taxonomy: Taxonomy, risk: float, nodes: int) -> Floats:
        mine, refused = _branch_of(P, taxonomy), self.refused(risk, taxonomy)
        thresholds = np.full(len(P), np.inf)
        for branch in np.setdiff1d(mine, refused).tolist():
            thresholds[mine == branch] = self.threshold(risk, nodes, branch)
        return thresholds

    def refused(self, risk: float, taxonomy: Taxonomy) -> list[int]:
        """The branches with too few held-out documents for a risk; raises where all have."""
        check_risk(risk)
        branches = top_branches(taxonomy)
        counts = np.asarray([np.count_nonzero(self.branches == branch) for branch in branches])
        if (counts < _needed(risk)).all():
            largest = int(counts.argmax())
            raise InputError(_too_few(risk, int(counts[largest]), taxonomy.show(int(branches[largest]))))
        refused: list[int] = branches[counts < _needed(risk)].tolist()
        return refused

    def threshold(self, risk: float, nodes: int = 1, branch: int | None = None) -> float:
        """The mass above which sets of nodes are taken; among the documents of a branch, if one is given."""
        check_risk(risk)
        check_nodes(nodes)
        scores = self.losses[:, SIZES.index(nodes)]
        if branch is not None:
            scores = scores[self.branches == branch]
        place = math.ceil((len(scores) + 1) * (1 - risk) - SLIP)
        if place > len(scores):
            raise InputError(_too_few(risk, len(scores), None))
        return float(np.partition(scores, place - 1)[place - 1])

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        return {"losses": self.losses, "branches": self.branches}

    @classmethod
    def from_arrays(cls, arrays: Arrays, taxonomy: Taxonomy) -> Self:
        """Make a promise of what was kept, after checking it."""
        losses, branches = arrays["losses"], arrays["branches"]
        typed = losses.dtype == np.float64 and branches.dtype == np.int64
        if not typed or losses.shape != (len(branches), len(SIZES)) or not ((losses >= NEVER) & (losses <= 1)).all():
            raise ModelError("what was learnt from held-out documents does not fit together; train the model again.")
        if len(branches) and not np.isin(branches, top_branches(taxonomy)).all():
            raise ModelError("held-out documents are in branches that the taxonomy has not; train the model again.")
        return cls(losses, branches)


@dataclass(frozen=True, slots=True, eq=False)
class ConformalRiskControl:
    """Documents with several labels: the expected share of wrong labels.

    thresholds: falling. losses: the mean loss of the held-out documents from each threshold upwards, rising. count: of them.
    """

    thresholds: Floats
    losses: Floats
    count: int
    kind: ClassVar[str] = "risk-control"

    @classmethod
    def fit(cls, P: NDArray[Any], truth: csr_array, taxonomy: Taxonomy) -> Self:
        """From probabilities and true labels, closed upward."""
        T, steps, rises = truth.toarray(), [], []
        for p, true in zip(_lowered(P, taxonomy), T, strict=True):
            at, losses = worst_wrong_fractions(p, true, taxonomy)
            steps.append(at)
            rises.append(np.diff(losses, prepend=0.0))
        at, rise = (np.concatenate(each) if each else np.zeros(0) for each in (steps, rises))
        order = np.argsort(-at, kind="stable")
        at, losses = at[order], np.cumsum(rise[order]) / max(1, len(T))
        last = np.append(at[1:] != at[:-1], True) if len(at) else np.zeros(0, dtype=bool)
        return cls(*_thinned(at[last], losses[last].clip(0, 1)), len(T))

    @property
    def least_risk(self) -> float:
        """The least risk for which there are documents enough."""
        return 1 / (self.count + 1)

    def decide(self, probabilities: Any, taxonomy: Taxonomy, risk: float, nodes: int = 1, by_branch: bool = False) -> csr_array:
        """All nodes that are so probable that the expected share of wrong labels is at most the risk."""
        if nodes != 1 or by_branch:
            raise InputError(
                "the share of wrong labels is promised where documents have several, or nodes several parents; "
                "leave out nodes and by_branch."
            )
        P = read_probabilities(probabilities, taxonomy)
        return expand_to_ancestors(_lowered(P, taxonomy) >= self.threshold(risk), taxonomy)

    def threshold(self, risk: float) -> float:
        """The lowest probability of a node that is taken; infinite where none may be."""
        check_risk(risk)
        bound = (self.count * self.losses + 1) / (self.count + 1)
        allowed = int(np.count_nonzero(bound <= risk + SLIP))
        if self.least_risk > risk + SLIP:
            raise InputError(_too_few(risk, self.count, None))
        return float(self.thresholds[allowed - 1]) if allowed else np.inf

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        return {"thresholds": self.thresholds, "losses": self.losses, "count": np.asarray([self.count], dtype=np.int64)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, taxonomy: Taxonomy) -> Self:
        """Make a promise of what was kept, after checking it."""
        thresholds, losses, count = arrays["thresholds"], arrays["losses"], arrays["count"]
        typed = thresholds.dtype == losses.dtype == np.float64 and count.dtype == np.int64 and count.shape == (1,)
        if not typed or thresholds.shape != losses.shape or thresholds.ndim != 1 or count[0] < 0:
            raise ModelError("what was learnt from held-out documents does not fit together; train the model again.")
        are_shares = ((losses >= 0) & (losses <= 1) & (thresholds >= FAINT) & (thresholds <= 1)).all()
        if (np.diff(thresholds) > 0).any() or (np.diff(losses) < 0).any() or not are_shares:
            raise ModelError("the share of wrong labels does not rise as thresholds fall; train the model again.")
        return cls(thresholds, losses, int(count[0]))


CONFORMAL_KINDS: dict[str, Any] = {kind.kind: kind for kind in (ConformalPaths, ConformalRiskControl)}


def worst_wrong_fractions(p: Floats, true: NDArray[np.bool_], taxonomy: Taxonomy) -> tuple[Floats, Floats]:
    """Falling thresholds, and the largest share of wrong ones among the most specific labels of any threshold down to each.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> [part.tolist() for part in worst_wrong_fractions(np.array([0.9, 0.6, 0.2]), np.array([True, True, False]), tree)]
    [[0.9, 0.6, 0.2], [0.0, 0.0, 0.5]]
    """
    order = np.argsort(-p, kind="stable")  # parents come first, so of equal ones, too
    order = order[p[order] >= FAINT]
    n_below = np.zeros(len(p), dtype=np.int64)
    taken = wrong = 0
    thresholds, losses, worst = [], [], 0.0
    for k, node in enumerate(order.tolist()):
        taken, wrong = taken + 1, wrong + int(not true[node])
        for parent in taxonomy.parents_of(node).tolist():
            if not n_below[parent]:  # it was among the most specific ones until now
                taken, wrong = taken - 1, wrong - int(not true[parent])
            n_below[parent] += 1
        if k + 1 == len(order) or p[order[k + 1]] < p[node]:
            worst = max(worst, wrong / taken)
            thresholds.append(p[node])
            losses.append(worst)
    return np.asarray(thresholds), np.asarray(losses)


def _lowered(P: NDArray[Any], taxonomy: Taxonomy) -> Floats:
    """Probabilities of which no child's is above its parent's."""
    lowered = np.nan_to_num(P.astype(np.float64), nan=0.0)
    for node in range(len(taxonomy)):  # parents come first
        for parent in taxonomy.parents_of(node).tolist():
            np.minimum(lowered[:, node], lowered[:, parent], out=lowered[:, node])
    return lowered


def _branch_of(P: NDArray[Any], taxonomy: Taxonomy) -> NDArray[np.int64]:
    branches = top_branches(taxonomy)
    likeliest: NDArray[np.int64] = branches[np.nan_to_num(P[:, branches], nan=0.0).argmax(axis=1)]
    return likeliest


def _thinned(thresholds: Floats, losses: Floats) -> tuple[Floats, Floats]:
    """Fewer steps, none of which promises more than it may: a step stands for those just above it."""
    if len(thresholds) <= MOST_STEPS:
        return thresholds, losses
    kept = np.unique(np.linspace(0, len(thresholds) - 1, MOST_STEPS).astype(np.int64))
    return thresholds[kept], losses[kept]


def _needed(risk: float) -> int:
    """How many held-out documents a risk takes."""
    return math.ceil(1 / risk - 1 - SLIP)


def _too_few(risk: float, count: int, branch: str | None) -> str:
    where = "" if branch is None else f" in a branch, and {branch!r} has the most of them,"
    found = f" {count:,}" if where else f", and there are {count:,}"
    more = "" if branch is None else ", or promise for all branches together"
    return (
        f"a risk of {risk:g} takes at least {_needed(risk):,} held-out documents{where}{found}; "
        f"hold more documents back, or allow more risk{more}."
    )
