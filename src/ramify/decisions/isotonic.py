"""Isotonic smoothing: move the scores of a document as little as possible, until no child lies above its parent.

    minimize   Σ_v w_v |x_v − y_v| + Σ_{inner v} a_v (y_v − max_{children u} y_u)     subject to   y_parent ≥ y_child

a = 0 is plain isotonic regression on a tree; a = ∞ makes every parent equal to its largest child; a score that is missing
(NaN) or has weight 0 costs nothing and is filled in. A score of -inf means that a node is impossible: it and all nodes below
it are no part of the tree, and keep -inf. Of equally good values the lowest is taken, of equally good largest children the
first, as far as sums of floats can tell them equal.

Source: Punera & Ghosh 2008, problems 2.2 and 2.4. An optimum takes its values from the m distinct scores of a tree. With
best_u(i) = min_{j≤i} err_u(j),

    err_v(i) = w_v |x_v − x̂_i| + Σ_u best_u(i) + min_u min_{j≤i} [err_u(j) − best_u(i) + a_v (x̂_i − x̂_j)]

Deviation: prefix minima instead of the paper's heaps, so that n nodes take O(n·m) instead of O(n² log n) steps; and the
paper's lower bound on j is not needed, since a child that is left at its best already costs no more. The recursion is exact
for trees. A DAG is smoothed over its main-parent tree; then every node is raised to the largest value below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.arguments import as_numbers
from ramify.decisions import base
from ramify.decisions.base import ByName, FittableRule, Floats, Numbers, RefiningRule, Scores, setting
from ramify.decisions.reasons import NO_CLASSIFIER, format_numbers, why_missing
from ramify.errors import InputError
from ramify.metrics import document_f1
from ramify.native import smooth_trees_in_place
from ramify.taxonomy import (
    Taxonomy,
    descend_by_score,
    expand_to_ancestors,
    labels_on_tree,
    largest_below,
    levels_of,
    values_by_node,
)

MAX_NODES = 10_000  # exact smoothing of so many takes 400 MB per thread
MAX_LEVELS = 1 << 20
OF_OTHERS = {"penalties": 0.0, "weights": 1.0}  # nodes that are not named, where numbers are given by node name


def isotonic_smooth(
    scores: Any,
    taxonomy: Taxonomy,
    penalty: float | Floats | list[float] | ByName = np.inf,
    weights: Any = None,
    levels: int | None = None,
    n_jobs: int | None = None,
) -> Scores:
    """The consistent scores nearest to those given, documents × nodes; NaN is filled in, -inf keeps a node out.

    In a DAG they are nearest over the main-parent tree; then every node is raised to the largest value below it.

    penalty: what it costs that a parent lies above all its children: 0, a number, inf, one number per node, or numbers by
    node name (others: 0).
    weights: how much each node's score counts (default: 1), one number per node or by name; 0 for a missing classifier.
    levels: for large taxonomies, round the scores of each document and tree to so many equally spaced values first; the
    objective is then within Σ w · (highest − lowest score) / (levels − 1) of the least.

    >>> chain = Taxonomy.from_paths(["a/b/c"])
    >>> isotonic_smooth([[0.9, 0.8, 0.1], [0.9, 0.2, 0.8]], chain, penalty=0)
    array([[0.9, 0.8, 0.1],
           [0.9, 0.2, 0.2]])
    >>> isotonic_smooth([[0.9, 0.8, 0.1], [0.9, float("nan"), 0.8]], chain)
    array([[0.8, 0.8, 0.8],
           [0.8, 0.8, 0.8]])
    """
    S, tree = base.read_scores(scores, taxonomy), taxonomy.tree
    is_single = np.ndim(penalty) == 0 and not isinstance(penalty, Mapping)  # type: ignore[arg-type]
    a = _read_per_node("penalties", np.full(len(taxonomy), penalty) if is_single else penalty, taxonomy, most=np.inf)
    w = np.ones(len(taxonomy)) if weights is None else _read_per_node("weights", weights, taxonomy, most=np.finfo(float).max)
    if levels is not None and not _are_levels(levels):
        allowed = f"a whole number from 2 to {MAX_LEVELS:,}, such as 256, or None for exact smoothing"
        raise InputError(f"levels is {levels!r}; give {allowed}.")
    # sums of weighted distances must stay far below what a float holds
    largest = float(np.fmax.reduce(np.abs(S), axis=None, initial=0, where=np.isfinite(S)))
    each = max(1.0, float(w.max(initial=0)), float(a[np.isfinite(a)].max(initial=0)))
    if math.log10(max(largest, 1)) + math.log10(each) + math.log10(4 * max(1, len(w))) > 300:
        found = f"scores up to {largest:g} with weights or penalties up to {each:g} are too large to add up"
        raise InputError(f"{found}; scale them down, or give penalty=inf to force a parent down to its children.")
    if len(taxonomy) * min(levels or len(taxonomy), len(taxonomy)) > MAX_NODES**2:
        raise InputError(f"exact smoothing of {len(taxonomy):,} nodes needs too much memory; give levels=256.")
    smoothed = np.full(S.shape, -np.inf, dtype=S.dtype if S.dtype in (np.float32, np.float64) else np.float64)
    for rows, is_out in same_rows(np.isneginf(S)):
        for level in levels_of(tree)[1:]:
            is_out[level] |= is_out[tree.parent[level]]
        kept = np.flatnonzero(~is_out)
        number = np.append(np.cumsum(~is_out) - 1, -1)  # of every node among those kept; roots have the parent -1
        parent = number[tree.parent[kept]].astype(np.int32)

        def smooth(block: Scores, parent: Any = parent, kept: Any = kept) -> Scores:
            found = np.empty_like(block)
            smooth_trees_in_place(parent, w[kept], a[kept], int(levels or 0), block, found)
            return found

        parts = base.over_rows(S[np.ix_(rows, kept)], smooth, n_jobs)
        smoothed[np.ix_(rows, kept)] = np.concatenate(parts)
    return smoothed if taxonomy.is_tree else largest_below(smoothed, taxonomy)


def same_rows(marks: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
    """The numbers of equal rows, and such a row.

    >>> [(rows.tolist(), row.tolist()) for rows, row in same_rows(np.array([[True, False], [False, False], [True, False]]))]
    [([1], [False, False]), ([0, 2], [True, False])]
    """
    first, pattern_of = np.arange(len(marks[:1])), np.zeros(len(marks), dtype=np.int64)
    if (marks != marks[:1]).any():
        packed = np.packbits(marks, axis=1)
        keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, pattern_of = np.unique(keys, return_index=True, return_inverse=True)
    return ((np.flatnonzero(pattern_of == k), marks[row].copy()) for k, row in enumerate(first.tolist()))


def _read_per_node(what: str, values: Any, taxonomy: Taxonomy, most: float) -> Floats:
    if isinstance(values, Mapping):
        values = values_by_node(values, taxonomy, what, OF_OTHERS[what])
    given = np.ascontiguousarray(as_numbers(values, what, "give numbers of 0 or more, one per node"), dtype=np.float64)
    if given.shape != (len(taxonomy),):
        raise InputError(f"the {what} have shape {given.shape}; give {len(taxonomy)} numbers, one per node.")
    wrong = given[~((given >= 0) & (given <= most))]
    if wrong.size:
        raise InputError(f"{wrong[0]} is among the {what}; give numbers of 0 or more.")
    return given


# ---- the rule -------------------------------------------------------------------------------------------------------
#
# Source of the penalties: Punera & Ghosh 2008, section 3; node penalties as in its Scenario II.
# Deviation: where a classifier is missing, the proportion of documents of the node can replace its score, with a weight of its
# own; the paper leaves that to future work.

PENALTIES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, np.inf)
SCALES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
DEFAULT_LEVELS, MANY_NODES = 256, 2_000
COARSE_LEVELS = 64  # enough to compare penalties
MAX_STEPS, MIN_DOCUMENTS = 1 << 24, 500  # steps of the kernel per penalty that is tried; documents to try it on, at least


def _about_penalty(name: str, penalty: Any) -> str | None:
    if isinstance(penalty, (list, tuple, np.ndarray, Mapping)):
        return base.numbers(0, np.inf, by_name=True)("penalties", penalty)
    if not isinstance(penalty, str):
        return base.number(0, np.inf)(name, penalty)
    fits = penalty in ("auto", "proportions", "inf")
    return None if fits else f"penalty is {penalty!r}, not a number, 'inf', 'auto' or 'proportions'"


def _about_levels(name: str, levels: Any) -> str | None:
    fits = levels is None or (isinstance(levels, str) and levels == "auto") or _are_levels(levels)
    return None if fits else f"levels is {levels!r}, not a whole number from 2 to {MAX_LEVELS:,}, 'auto' or none"


def _are_levels(levels: Any) -> bool:
    return base.is_whole(levels) and 2 <= levels <= MAX_LEVELS


@dataclass(frozen=True, slots=True, eq=False)
class IsotonicSmooth(FittableRule, RefiningRule):
    """Smooth the scores of a document over the tree (:func:`isotonic_smooth`), then apply a threshold; takes P(node).

    penalty: a number, ``"inf"``, one number per node, numbers by node name (others: 0), ``"auto"`` for the number with the
    highest F1 of held-out documents, or ``"proportions"`` for `scale` times the proportion of a node's
    documents that also belong to a child.
    scale: of "proportions" (default: chosen on held-out documents).
    weights: how much each node's score counts (default: all the same), one number per node or by name (others: 1).
    threshold: a node is taken where its smoothed score reaches this.
    at_least_one: where no node does, take the path with the highest smoothed score; ties go by the original scores.
    prior_weight: if positive, the proportion of documents of a node replaces a missing score, with this weight.
    levels: round scores to so many values; None never rounds, ``"auto"`` takes 256 from 2,000 nodes on.
    penalties, priors: fitted, one per node.

    >>> chain = Taxonomy.from_paths(["a/b", "a/c"])
    >>> chain.decode(IsotonicSmooth(penalty=5.0).decide([[0.9, 0.4, 0.1], [0.9, 0.7, 0.1]], chain))
    [[], ['a/b']]
    """

    penalty: float | str | Numbers | ByName = setting("auto", _about_penalty, of_others=OF_OTHERS["penalties"])
    scale: float | None = setting(None, base.number(0, optional=True))
    weights: Numbers | ByName | None = setting(None, base.numbers(0, by_name=True), of_others=OF_OTHERS["weights"])
    threshold: float = setting(0.5, base.number())
    at_least_one: bool = setting(False, base.flag)
    prior_weight: float = setting(0.0, base.number(0))
    levels: int | str | None = setting("auto", _about_levels)
    penalties: Numbers | None = setting(None, base.numbers(0, np.inf), repr=False)
    priors: Numbers | None = setting(None, base.numbers(0, 1), repr=False)
    kind: ClassVar[str] = "isotonic"
    uses_main_parents: ClassVar[bool] = True
    takes: ClassVar[str] = "memberships"

    def refine(self, values: Any, taxonomy: Taxonomy) -> Scores:
        """The smoothed scores, documents × nodes."""
        self.check()
        self.check_fitted()
        penalties = self.penalties if self._is_to_be_fitted else self.penalty
        return self._smooth(base.read_scores(values, taxonomy), taxonomy, np.inf if isinstance(penalties, str) else penalties)

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the nodes whose smoothed scores reach the threshold."""
        return self.cut(self.refine(values, taxonomy), values, taxonomy)

    def cut(self, smoothed: Scores, values: Any, taxonomy: Taxonomy) -> csr_array:
        """The nodes of smoothed scores that reach the threshold; no child lies above its parent, so the sets are closed."""
        taken = smoothed >= self.threshold
        left = np.flatnonzero(~taken.any(axis=1))
        if self.at_least_one and len(left):  # the path of nodes with the highest smoothed score, as deep as it goes
            highest = np.fmax.reduce(smoothed[left], axis=1, keepdims=True, initial=-np.inf)
            before = np.nan_to_num(np.atleast_2d(values)[left].astype(np.float64), nan=-base.LARGEST, neginf=-np.inf)
            ends = descend_by_score(np.where(smoothed[left] == highest, before, -np.inf), taxonomy)
            taken[left] = base.nodes_to_labels(ends, taxonomy).toarray()
        return csr_array(taken)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """How far each node's value was moved, and whether it then reaches the threshold.

        >>> IsotonicSmooth(penalty=0.0).reasons([0.4, 0.8], Taxonomy.from_paths(["a/b"]), [1])
        ['moved from 0.80 down to 0.40, under its parent; 0.40 is below the threshold 0.50']
        """
        given = np.atleast_2d(np.asarray(values))
        refined = self.refine(given, taxonomy)
        taken = set(self.cut(refined.copy(), given, taxonomy).indices.tolist())
        before, after = given[0], refined[0]

        def explain(node: int) -> str:
            if not np.isfinite(after[node]):
                return why_missing(after[node], NO_CLASSIFIER)
            is_above = bool(after[node] >= self.threshold)
            last_resort = "; no node is high enough, so the highest path was taken" if node in taken and not is_above else ""
            x, y, threshold = format_numbers(0.0 if np.isnan(before[node]) else before[node], after[node], self.threshold)
            verdict = f"{'reaches' if is_above else 'is below'} the threshold {threshold}{last_resort}"
            if np.isnan(before[node]):
                return f"it has no classifier; filled in with {y}, which {verdict}"
            if before[node] == after[node]:
                return f"{y} {verdict}"
            # a moved value equals that of a neighbour which held it there, unless it was only rounded
            is_at_parent = bool((after[taxonomy.parents_of(node)] == after[node]).any())
            is_at_child = bool((after[taxonomy.children_of(node)] == after[node]).any())
            if after[node] < before[node]:
                why = "under its parent" if is_at_parent else "towards its children" if is_at_child else "by rounding"
                return f"moved from {x} down to {y}, {why}; {y} {verdict}"
            why = "over its children" if is_at_child else "towards its parent" if is_at_parent else "by rounding"
            return f"moved from {x} up to {y}, {why}; {y} {verdict}"

        return [explain(node) for node in nodes]

    def _smooth(self, S: Scores, taxonomy: Taxonomy, penalties: Any) -> Scores:
        for what, given in (("weights", self.weights), ("priors", self.priors)):
            if given is not None and not isinstance(given, Mapping) and len(given) != len(taxonomy):
                raise InputError(f"there are {len(given)} {what} for {len(taxonomy)} nodes; give one per node.")
        auto = DEFAULT_LEVELS if len(taxonomy) >= MANY_NODES else None
        levels = auto if isinstance(self.levels, str) else self.levels
        weights = np.ones(len(taxonomy))
        if self.weights is not None:
            weights = _read_per_node("weights", self.weights, taxonomy, most=base.LARGEST)
        if not self.prior_weight:
            return isotonic_smooth(S, taxonomy, penalties, weights, levels)
        smoothed = np.empty_like(S)
        for rows, missing in same_rows(np.isnan(S)):  # documents that miss the same scores have the same weights
            filled = np.where(missing, np.asarray(self.priors, dtype=S.dtype), S[rows])
            now = np.where(missing, self.prior_weight, weights)
            smoothed[rows] = isotonic_smooth(filled, taxonomy, penalties, now, levels)
        return smoothed

    @property
    def _is_to_be_fitted(self) -> bool:
        return isinstance(self.penalty, str) and self.penalty in ("auto", "proportions")

    def fit(self, values: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """Choose penalties and compute priors on held-out values and true labels, both documents × nodes."""
        self.check()
        S, T = base.read_scores(values, taxonomy), expand_to_ancestors(Y, taxonomy)
        if T.shape != S.shape:
            found = f"there are scores of {S.shape[0]} documents and labels of {T.shape[0]}"
            raise InputError(f"{found}; give both for the same documents.")
        on_tree = labels_on_tree(T, taxonomy)
        counts = np.bincount(on_tree.indices, minlength=len(taxonomy))
        made = replace(self, priors=base.frozen(counts / max(1, T.shape[0])) if self.prior_weight else None)
        if not self._is_to_be_fitted:
            return made
        ones = np.ones(len(taxonomy)) if self.penalty == "auto" else fraction_with_child(on_tree, taxonomy.tree)
        factors = PENALTIES if self.penalty == "auto" else SCALES if self.scale is None else (self.scale,)
        # 0 × inf is 0: where no document goes on to a child, nothing is forced
        choices = [np.where(ones > 0, factor, 0.0) * np.where(ones > 0, ones, 0.0) for factor in factors]
        return replace(made, penalties=base.frozen(made._best(choices, S, T, taxonomy)))

    def _best(self, choices: list[Floats], S: NDArray[Any], T: csr_array, taxonomy: Taxonomy) -> Floats:
        """The penalties with the highest F1 of a document, the first of equals."""
        if len(choices) == 1:
            return choices[0]
        coarse = replace(self, levels=COARSE_LEVELS) if len(taxonomy) > COARSE_LEVELS else self
        most = max(MIN_DOCUMENTS, MAX_STEPS // (len(taxonomy) * min(len(taxonomy), COARSE_LEVELS)))
        some = np.sort(np.random.default_rng(0).permutation(len(S))[:most])
        decided = [coarse.cut(coarse._smooth(S[some], taxonomy, a), S[some], taxonomy) for a in choices]
        return choices[int(np.argmax([document_f1(T[some], Y, taxonomy) for Y in decided]))]

    def fitted(self) -> dict[str, Any]:
        """The fitted parameters that these settings need, by name."""
        penalties = {"penalties": self.penalties} if self._is_to_be_fitted else {}
        return penalties | ({"priors": self.priors} if self.prior_weight else {})

    def state(self) -> dict[str, Any]:
        """Plain values from which the same rule can be made; an infinite penalty is written out."""
        values = FittableRule.state(self)
        return values | {"penalty": "inf" if values["penalty"] == np.inf else values["penalty"]}


def fraction_with_child(T: csr_array, taxonomy: Taxonomy) -> Floats:
    """The fraction of each node's documents that also belong to one of its children; 1 where a node has no documents.

    >>> tree = Taxonomy.from_paths(["a/b", "a/c"])
    >>> fraction_with_child(csr_array([[True, True, False], [True, False, False]]), tree)[0]
    np.float64(0.5)
    """
    inner = np.flatnonzero(~taxonomy.is_leaf)
    children = [taxonomy.children_of(int(node)) for node in inner]
    rows = np.concatenate([*children, np.zeros(0, dtype=np.int64)]).astype(np.int64)
    columns = np.repeat(inner, [len(found) for found in children])
    is_child = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(taxonomy), len(taxonomy)))
    has_child = csr_array((T.astype(np.float64) @ is_child) > 0)
    n_with_child = np.bincount(has_child.indices, minlength=len(taxonomy))
    counts = np.bincount(T.indices, minlength=len(taxonomy))
    return np.asarray(np.where(counts > 0, n_with_child / np.maximum(counts, 1), 1.0), dtype=np.float64)
