"""Conformal prediction over a taxonomy: labels with a guaranteed error rate.

One label per document (:class:`ConformalPaths`). Nested sets of nodes: a document begins with all roots. Step by step the nodes
of its set are replaced by their children, of which at most `size` stay, the most probable; when only leaves are left, the least
probable leaf is dropped until one is left. With size 1 this is the path from the most probable root to the most probable child.
The mass of a set is the probability that the truth lies at or below one of its nodes; it never rises along the steps. So a
threshold on the mass determines where to stop, and a lower one never stops earlier.
The nonconformity score of a held-out document is the mass of its first set that misses the truth. With n scores, the threshold
for a risk α is the ⌈(n + 1)(1 − α)⌉-th smallest; a new document that is exchangeable with the held-out ones stops before its
truth is lost with a probability of at least 1 − α (marginal coverage). The same holds among the documents whose most probable
branch is a given one, with the scores of these alone (Mondrian conformal prediction).

Multiple labels per document (:class:`ConformalRiskControl`). Nodes at least as probable as λ are taken. The loss of a held-out
document is the fraction of its most specific labels that are wrong, at the worst of all thresholds from 1 down to λ, so that it
never falls as λ falls. The threshold for a risk α is the lowest λ with (n · mean loss + 1) / (n + 1) ≤ α; the expected fraction
of wrong labels is then at most α.

Sources: Vovk, Gammerman & Shafer 2005 on split and Mondrian conformal prediction; Angelopoulos et al. 2022, Conformal risk
control; sets of few nodes as in Mortier et al. 2025.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.decisions.base import Floats, is_whole, nodes_to_labels, read_probabilities
from ramify.errors import InputError, ModelError
from ramify.persistence import is_increasing
from ramify.taxonomy import Taxonomy, expand_to_ancestors, levels_of

SIZES = (1, 2, 3, 5, 10)  # how many nodes a prediction set may have
MIN_RISK = 1e-9
MIN_THRESHOLD = 0.01  # of the probability of a node, under risk control
MAX_STEPS = 10_000  # thresholds that are stored
ROUNDING = 1e-9  # tolerance where documents are counted
NEVER = -1.0  # the nonconformity score where no set misses the truth

Ints = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


def fit_conformal(probabilities: Any, Y: Any, taxonomy: Taxonomy, multi_label: bool) -> ConformalPredictor:
    """Fit on documents that nothing was trained on; a DAG has no single path to a node, so it gets risk control."""
    P, truth = read_probabilities(probabilities, taxonomy), expand_to_ancestors(Y, taxonomy)
    if truth.shape != P.shape:
        found = f"there are probabilities of {len(P)} documents and labels of {truth.shape[0]}"
        raise InputError(f"{found}; give both for the same documents.")
    kind = ConformalRiskControl if multi_label or not taxonomy.is_tree else ConformalPaths
    return kind.fit(P, truth, taxonomy)


def check_risk(risk: Any) -> None:
    """Refuse a risk that is not a probability above 0 and below 1."""
    if isinstance(risk, bool) or not isinstance(risk, Real) or not MIN_RISK <= float(risk) < 1:
        raise InputError(f"risk is {risk!r}; give a probability between 0 and 1, such as 0.05, and no less than {MIN_RISK:g}.")


def check_nodes(nodes: Any) -> None:
    """Refuse a size that prediction sets do not have."""
    if not is_whole(nodes) or nodes not in SIZES:
        raise InputError(f"nodes is {nodes!r}; a prediction may have {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]} nodes.")


# ---- one label per document: coverage -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NestedSets:
    """The nested sets of some documents, step by step.

    masses: documents × steps. nodes: documents × steps × size, -1 where a set has fewer.
    """

    masses: Floats
    nodes: Ints

    def last_above(self, threshold: Any) -> Ints:
        """The nodes of the last set with a mass above a threshold, or above one per document; -1 where there are fewer."""
        n_steps = (self.masses > np.reshape(threshold, (-1, 1))).sum(axis=1)
        last = self.nodes[np.arange(len(self.nodes)), np.maximum(n_steps, 1) - 1]
        return np.where((n_steps > 0)[:, None], last, -1)

    def nonconformity(self, truth: csr_array) -> Floats:
        """The mass of the first set without a true node, -1 where every set has one. truth: closed upward."""
        rows = np.arange(len(self.nodes))[:, None, None]
        is_true = np.asarray(truth.toarray(), dtype=bool)[rows, self.nodes] & (self.nodes >= 0)
        is_missed = ~np.any(is_true, axis=2)
        first = np.where(is_missed.any(axis=1), is_missed.argmax(axis=1), 0)
        return np.where(is_missed.any(axis=1), self.masses[np.arange(len(first)), first], NEVER)


def find_nested_sets(probabilities: Any, taxonomy: Taxonomy, size: int = 1) -> NestedSets:
    """Nested sets of at most `size` nodes in a tree. probabilities: documents × nodes, no child's above its parent's.

    A node of probability 0, such as one without training documents, is in no set: above such nodes, a node is a leaf.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c", "d"])
    >>> found = find_nested_sets([[0.9, 0.6, 0.3, 0.1]], tree)
    >>> found.masses.tolist(), [tree.names[node] for node in found.nodes[0, :, 0]]
    ([[0.9, 0.6]], ['a', 'a/b'])
    """
    taxonomy.require_tree("backing off to an ancestor")
    P = np.nan_to_num(read_probabilities(probabilities, taxonomy).astype(np.float64), nan=0.0)
    rows, steps = np.arange(len(P))[:, None], []
    current = np.full((len(P), 0), -1, dtype=np.int64)
    below = np.flatnonzero(taxonomy.parent >= 0)
    is_child = csr_array((np.ones(len(below), dtype=np.float32), (taxonomy.parent[below], below)), shape=(len(taxonomy),) * 2)
    is_leaf = is_child @ (P.T > 0).astype(np.float32) == 0  # nodes × documents: no child is possible
    for level in levels_of(taxonomy):
        # the most probable of the children of the set and of its leaves, in descending order
        in_set = np.zeros((len(P), len(taxonomy) + 1), dtype=bool)
        in_set[rows, current] = True  # -1 marks the last column, which belongs to no node
        in_set[:, -1] = True  # the parent of the roots
        leaves = np.where((current >= 0) & is_leaf[current, rows], current, -1)
        candidates = np.concatenate([np.broadcast_to(level, (len(P), len(level))), leaves], axis=1)
        p = np.where(in_set[:, taxonomy.parent[level]] & (P[:, level] > 0), P[:, level], NEVER)
        p = np.concatenate([p, np.where(leaves >= 0, P[rows, leaves], NEVER)], axis=1)
        order = np.argsort(-p, axis=1, kind="stable")[:, :size] if size > 1 else p.argmax(axis=1)[:, None]
        best = np.where(p[rows, order] > NEVER, candidates[rows, order], -1)
        current = np.pad(best, ((0, 0), (0, size - best.shape[1])), constant_values=-1)
        steps.append(current)
    steps += [np.where(np.arange(size) < n_left, current, -1) for n_left in range(size - 1, 0, -1)]
    nodes = np.stack(steps, axis=1)
    masses = np.where(nodes >= 0, P[np.arange(len(P))[:, None, None], nodes], 0.0).sum(axis=2)
    return NestedSets(np.minimum.accumulate(masses.clip(0, 1), axis=1), nodes)


def top_branches(taxonomy: Taxonomy) -> Ints:
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
    """One label per document: the true path passes through the prediction set (marginal coverage).

    scores: nonconformity, documents × SIZES. branches: the most probable branch of each document.
    """

    scores: Floats
    branches: Ints
    kind: ClassVar[str] = "coverage"

    @classmethod
    def fit(cls, P: NDArray[Any], truth: csr_array, taxonomy: Taxonomy) -> Self:
        """From probabilities and true labels, closed upward."""
        scores = np.column_stack([find_nested_sets(P, taxonomy, size).nonconformity(truth) for size in SIZES])
        return cls(scores, _branch_of(P, taxonomy))

    @property
    def least_risk(self) -> float:
        """The least risk for which there are enough documents."""
        return 1 / (len(self.scores) + 1)

    def decide(self, probabilities: Any, taxonomy: Taxonomy, risk: float, nodes: int = 1, by_branch: bool = False) -> csr_array:
        """The deepest set of at most `nodes` nodes through which the true path passes with probability 1 − risk.

        by_branch: the guarantee holds among the documents of each top-level branch; those of a branch with too few held-out
        documents get no label (see :meth:`uncovered_branches`). Other documents may get none, either.
        """
        check_nodes(nodes)
        P = read_probabilities(probabilities, taxonomy)
        threshold: Any = None if by_branch else self.threshold(risk, nodes)
        if by_branch:
            branch_of, threshold = _branch_of(P, taxonomy), np.full(len(P), np.inf)
            for branch in np.setdiff1d(branch_of, self.uncovered_branches(risk, taxonomy)).tolist():
                threshold[branch_of == branch] = self.threshold(risk, nodes, branch)
        return nodes_to_labels(find_nested_sets(P, taxonomy, nodes).last_above(threshold), taxonomy)

    def uncovered_branches(self, risk: float, taxonomy: Taxonomy) -> list[int]:
        """The branches with too few held-out documents for a risk; raises an error where all have too few."""
        check_risk(risk)
        branches = top_branches(taxonomy)
        counts = np.asarray([np.count_nonzero(self.branches == branch) for branch in branches])
        is_short = counts < math.ceil(1 / risk - 1 - ROUNDING)
        if is_short.all():
            largest = int(counts.argmax())
            raise InputError(_too_few(risk, int(counts[largest]), taxonomy.show(int(branches[largest]))))
        return list(branches[is_short].tolist())

    def threshold(self, risk: float, nodes: int = 1, branch: int | None = None) -> float:
        """The mass above which sets are taken; among the documents of a branch, if one is given."""
        check_risk(risk)
        check_nodes(nodes)
        scores = self.scores[:, SIZES.index(nodes)]
        if branch is not None:
            scores = scores[self.branches == branch]
        rank = math.ceil((len(scores) + 1) * (1 - risk) - ROUNDING)
        if rank > len(scores):
            raise InputError(_too_few(risk, len(scores), None))
        return float(np.partition(scores, rank - 1)[rank - 1])

    def arrays(self) -> Arrays:
        """What a model file stores."""
        return {"scores": self.scores, "branches": self.branches}

    @classmethod
    def from_arrays(cls, arrays: Arrays, taxonomy: Taxonomy) -> Self:
        """Make a predictor from stored arrays, after checking them."""
        scores, branches = arrays["scores"], arrays["branches"]
        typed = scores.dtype == np.float64 and branches.dtype == np.int64
        if not typed or scores.shape != (len(branches), len(SIZES)) or not ((scores >= NEVER) & (scores <= 1)).all():
            raise ModelError("the nonconformity scores of held-out documents do not fit together; train the model again.")
        if len(branches) and not np.isin(branches, top_branches(taxonomy)).all():
            raise ModelError("held-out documents are in branches that the taxonomy does not have; train the model again.")
        return cls(scores, branches)


def _branch_of(P: NDArray[Any], taxonomy: Taxonomy) -> Ints:
    branches = top_branches(taxonomy)
    return np.asarray(branches[np.nan_to_num(P[:, branches], nan=0.0).argmax(axis=1)])


# ---- multiple labels per document: risk control ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ConformalRiskControl:
    """Multiple labels per document: a bound on the expected fraction of wrong labels.

    thresholds: descending. losses: the mean loss of the held-out documents at each threshold, ascending. count: their number.
    """

    thresholds: Floats
    losses: Floats
    count: int
    kind: ClassVar[str] = "risk-control"

    @classmethod
    def fit(cls, P: NDArray[Any], truth: csr_array, taxonomy: Taxonomy) -> Self:
        """From probabilities and true labels, closed upward."""
        documents, at, losses = worst_wrong_fractions(_cap_at_parents(P, taxonomy), truth.toarray(), taxonomy)
        is_first = np.diff(documents, prepend=-1) != 0
        increment = np.diff(losses, prepend=0.0)
        increment[is_first] = losses[is_first]
        order = np.argsort(-at, kind="stable")
        at, losses = at[order], np.cumsum(increment[order]) / max(1, len(P))
        last = np.append(at[1:] != at[:-1], True) if len(at) else np.zeros(0, dtype=bool)
        at, losses = at[last], losses[last].clip(0, 1)
        if len(at) > MAX_STEPS:  # a subset of the thresholds is still valid: each has its own loss
            stored = np.unique(np.linspace(0, len(at) - 1, MAX_STEPS).astype(np.int64))
            at, losses = at[stored], losses[stored]
        return cls(at, losses, len(P))

    @property
    def least_risk(self) -> float:
        """The least risk for which there are enough documents."""
        return 1 / (self.count + 1)

    def decide(self, probabilities: Any, taxonomy: Taxonomy, risk: float, nodes: int = 1, by_branch: bool = False) -> csr_array:
        """All nodes above the lowest threshold at which the expected fraction of wrong labels is at most the risk."""
        if nodes != 1 or by_branch:
            where = "with multiple labels per document, or multiple parents per node"
            raise InputError(f"{where}, the guarantee bounds the fraction of wrong labels; leave out nodes and by_branch.")
        P = read_probabilities(probabilities, taxonomy)
        return expand_to_ancestors(_cap_at_parents(P, taxonomy) >= self.threshold(risk), taxonomy)

    def threshold(self, risk: float) -> float:
        """The lowest probability at which a node is taken; infinite where none may be."""
        check_risk(risk)
        bound = (self.count * self.losses + 1) / (self.count + 1)
        n_allowed = int(np.count_nonzero(bound <= risk + ROUNDING))
        if self.least_risk > risk + ROUNDING:
            raise InputError(_too_few(risk, self.count, None))
        return float(self.thresholds[n_allowed - 1]) if n_allowed else np.inf

    def arrays(self) -> Arrays:
        """What a model file stores."""
        return {"thresholds": self.thresholds, "losses": self.losses, "count": np.asarray([self.count], dtype=np.int64)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, taxonomy: Taxonomy) -> Self:
        """Make a predictor from stored arrays, after checking them."""
        thresholds, losses, count = arrays["thresholds"], arrays["losses"], arrays["count"]
        typed = thresholds.dtype == losses.dtype == np.float64 and count.dtype == np.int64 and count.shape == (1,)
        if not typed or thresholds.shape != losses.shape or thresholds.ndim != 1 or count[0] < 0:
            raise ModelError("the losses of held-out documents do not fit together; train the model again.")
        is_valid = ((losses >= 0) & (losses <= 1) & (thresholds >= MIN_THRESHOLD) & (thresholds <= 1)).all()
        if not is_increasing(-thresholds) or not is_increasing(losses) or not is_valid:
            raise ModelError("the fraction of wrong labels does not rise as thresholds fall; train the model again.")
        return cls(thresholds, losses, int(count[0]))


ConformalPredictor = ConformalPaths | ConformalRiskControl  # a guarantee of the error rate, fitted on held-out documents
CONFORMAL_KINDS: dict[str, Any] = {kind.kind: kind for kind in (ConformalPaths, ConformalRiskControl)}


def worst_wrong_fractions(P: Floats, truth: NDArray[np.bool_], taxonomy: Taxonomy) -> tuple[Ints, Floats, Floats]:
    """Documents, descending thresholds of each, and the largest fraction of wrong labels at any threshold down to each.

    Labels are the most specific nodes above a threshold. P: documents × nodes, no child's above its parent's.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> [part.tolist() for part in worst_wrong_fractions(np.array([[0.9, 0.6, 0.2]]), np.array([[True, True, False]]), tree)]
    [[0, 0, 0], [0.9, 0.6, 0.2], [0.0, 0.0, 0.5]]
    """
    documents, nodes = np.nonzero(P >= MIN_THRESHOLD)
    order = np.lexsort((-P[documents, nodes], documents))  # parents come first, also among equal probabilities
    documents, nodes = documents[order], nodes[order]
    p = P[documents, nodes]
    # a node adds a label and, if it is the first below one of its parents, takes the place of that parent
    n_parents = np.diff(taxonomy.parent_offsets)[nodes]
    below = np.repeat(np.arange(len(nodes)), n_parents)
    starts = np.repeat(taxonomy.parent_offsets[nodes] - np.cumsum(n_parents) + n_parents, n_parents)
    parents = taxonomy.parent_nodes[starts + np.arange(len(below))]
    first = np.unique(documents[below] * P.shape[1] + parents, return_index=True)[1]
    replaced = truth[documents[below[first]], parents[first]]
    n_labels = np.cumsum(1 - np.bincount(below[first], minlength=len(nodes)))
    n_wrong = np.cumsum(~truth[documents, nodes] - np.bincount(below[first], ~replaced, minlength=len(nodes)))
    is_last = np.append((documents[1:] != documents[:-1]) | (p[1:] < p[:-1]), True)[: len(nodes)]
    ends = np.flatnonzero(np.append(documents[1:] != documents[:-1], True)[: len(nodes)])
    before = np.searchsorted(ends, np.arange(len(nodes)))  # how many documents end before
    earlier_labels, earlier_wrong = (np.concatenate([[0], counts[ends]])[before] for counts in (n_labels, n_wrong))
    fraction = ((n_wrong - earlier_wrong) / (n_labels - earlier_labels))[is_last]
    documents, p = documents[is_last], p[is_last]
    values, rank = np.unique(fraction, return_inverse=True)  # the running maximum of a document, in whole numbers
    worst = np.maximum.accumulate(documents * len(values) + rank) - documents * len(values)
    return documents, p, values[worst]


def _cap_at_parents(P: NDArray[Any], taxonomy: Taxonomy) -> Floats:
    """Probabilities of which no child's is above its parent's."""
    capped = np.nan_to_num(P.astype(np.float64), nan=0.0)
    for node in range(len(taxonomy)):  # parents come first
        for parent in taxonomy.parents_of(node).tolist():
            np.minimum(capped[:, node], capped[:, parent], out=capped[:, node])
    return capped


def _too_few(risk: float, count: int, branch: str | None) -> str:
    needs = f"a risk of {risk:g} needs at least {math.ceil(1 / risk - 1 - ROUNDING):,} held-out documents"
    if branch is None:
        return f"{needs}, and there are {count:,}; hold out more documents, or allow more risk."
    found = f"the largest branch, {branch!r}, has {count:,}"
    return f"{needs} in a branch, and {found}; hold out more documents, allow more risk, or leave out by_branch."
