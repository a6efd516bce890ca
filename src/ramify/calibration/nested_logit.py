"""Nested logit: the probability of each child of a node, and of stopping at the node, in a tree.

    P(child | node) ∝ exp z(child)        z(child) = γ v(child) + κ W(child)        W(child) = ln Σ exp z over its alternatives
    P(stop | node)  ∝ exp z(stop)         z(stop) = γ v(stop) + β

Source: McFadden 1978. For every depth there is a scale γ, a dissimilarity coefficient κ of the inclusive value W, and a
constant β for stopping. Where a learner scores the nodes at which documents end, v(child) is the score of a leaf, and 0 for
an inner node; where it scores each step, v is that score. W of a leaf is 0. The parameters maximize the likelihood of held-
out documents, depth by depth from the bottom up; those of a node's alternatives are fitted on the documents at or below the
node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ramify.errors import ModelError
from ramify.taxonomy import Taxonomy, levels_of

START_RANGE = 10.0  # of γ v between the best and the worst alternative, where the search begins
MAX_DOCUMENTS = 500  # from which the scale of a softmax over all nodes is estimated
MIN_LOG_ODDS = -34.0  # relative to the best alternative, so that every child keeps some probability
MAX_COEFFICIENT, MIN_SCALE = 1e3, 1e-6  # of all three coefficients, and of the scale, in units of the search

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Truth = tuple[Ints, Ints, Floats]  # documents, the node at which each ends, and a weight; a document may occur twice
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class LogPotentials:
    """Unnormalized log probabilities of the paths of documents; documents × nodes.

    ends: of ending at a node; NaN where no document ends.
    steps: of going from a node's parent to the node; None where it follows from `ends`.
    """

    ends: NDArray[np.floating[Any]]
    steps: NDArray[np.floating[Any]] | None = None

    def __len__(self) -> int:
        return len(self.ends)

    def take(self, documents: Any) -> Self:
        """The log potentials of some of the documents."""
        return type(self)(self.ends[documents], None if self.steps is None else self.steps[documents])

    @classmethod
    def concatenate(cls, parts: Sequence[LogPotentials]) -> Self:
        """The documents of all parts, one part after the other."""
        steps = [part.steps for part in parts if part.steps is not None]
        return cls(np.concatenate([part.ends for part in parts]), np.concatenate(steps) if steps else None)


@dataclass(frozen=True, slots=True)
class NestedLogit:
    """The parameters of every depth: γ, κ and β."""

    scale: Floats
    dissimilarity: Floats
    stop_constant: Floats

    @classmethod
    def fit(cls, log_potentials: LogPotentials, truth: Truth, taxonomy: Taxonomy) -> Self:
        """Fit the parameters of every depth; where v does not vary at a depth, the scale is that of a softmax over all ends."""
        levels, utilities = levels_with_siblings(taxonomy), Utilities(log_potentials, taxonomy)
        documents, ends, weights = truth
        n, paths, softmax_scale = len(levels), _paths(ends, taxonomy), 1.0
        if log_potentials.steps is None:  # the scale of a softmax over all nodes where documents end, from some documents
            some, at, weight = (part[:MAX_DOCUMENTS] for part in truth)
            step = _without_nan(log_potentials.ends[some])
            known = np.isfinite(step)
            counts = (known.sum(axis=1) > 1) & known[np.arange(len(at)), at]
            if counts.any():
                choice = Alternatives(step[counts], np.zeros_like(step[counts]), at[counts], weight[counts])
                softmax_scale = _maximize_likelihood([choice], 1.0)[0]
        fitted = cls(np.full(n, softmax_scale), np.ones(n), np.zeros(n))
        for depth in range(n - 1, -1, -1):
            groups = list(_alternatives(utilities, levels[depth], documents, weights, paths, depth))
            if groups:
                found = _maximize_likelihood(groups, fitted.scale[depth])
                fitted.scale[depth], fitted.dissimilarity[depth], fitted.stop_constant[depth] = found
            utilities.normalize(levels[depth], *fitted.at_depth(depth))
        return fitted

    def conditionals(self, log_potentials: LogPotentials, taxonomy: Taxonomy) -> Floats:
        """P(node | parent), documents × nodes; the probability of stopping at a node is what its children leave of 1."""
        utilities = Utilities(log_potentials, taxonomy)
        for depth, level in reversed(list(enumerate(levels_with_siblings(taxonomy)))):
            utilities.normalize(level, *self.at_depth(depth))
        return utilities.conditionals

    def at_depth(self, depth: int) -> tuple[float, float, float]:
        """The parameters of a depth."""
        return float(self.scale[depth]), float(self.dissimilarity[depth]), float(self.stop_constant[depth])

    def arrays(self) -> Arrays:
        """What a model file stores."""
        return {"scale": self.scale, "dissimilarity": self.dissimilarity, "stop_constant": self.stop_constant}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_levels: int) -> Self:
        """Make parameters from stored arrays, after checking them."""
        made = cls(arrays["scale"], arrays["dissimilarity"], arrays["stop_constant"])
        parts = made.arrays().values()
        fits = all(part.dtype == np.float64 and part.shape == (n_levels,) and np.isfinite(part).all() for part in parts)
        if not fits or (made.scale <= 0).any() or (made.dissimilarity < 0).any():
            raise ModelError("the calibration does not fit the taxonomy; train the model again.")
        return made


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes of one depth, siblings together.

    parents: of the groups of siblings, -1 above the roots. starts: where each group begins. group: of every node.
    """

    nodes: Ints
    parents: Ints
    starts: Ints
    group: Ints


@lru_cache(maxsize=16)
def levels_with_siblings(taxonomy: Taxonomy) -> list[Level]:
    """The levels of a tree, from the top."""
    taxonomy.require_tree("calibrating from the top down")
    levels = []
    for nodes in levels_of(taxonomy):
        nodes = nodes[np.argsort(taxonomy.parent[nodes], kind="stable")]
        parents, starts = np.unique(taxonomy.parent[nodes], return_index=True)
        levels.append(Level(nodes, parents, starts, np.searchsorted(parents, taxonomy.parent[nodes])))
    return levels


class Utilities:
    """Utilities and conditional probabilities of some documents, computed one depth after the other, from the bottom up.

    step: v of every node, -inf where it cannot be entered. stop: v of stopping there. inclusive: W of every node.
    """

    def __init__(self, log_potentials: LogPotentials, taxonomy: Taxonomy) -> None:
        self.stop = _without_nan(log_potentials.ends)
        given = log_potentials.steps
        self.step = np.where(taxonomy.is_leaf, self.stop, 0.0) if given is None else _without_nan(given)
        self.inclusive = np.zeros_like(self.step)
        self.conditionals = np.zeros_like(self.step)

    def at_level(self, level: Level) -> tuple[Floats, Floats, Floats]:
        """v and W of the nodes of a level, and v of stopping at their parents."""
        stop = np.where(level.parents >= 0, self.stop[:, level.parents], -np.inf)
        return self.step[:, level.nodes], self.inclusive[:, level.nodes], stop

    def normalize(self, level: Level, scale: float, dissimilarity: float, stop_constant: float) -> None:
        """Fill in P(node | parent) of a level, and W of its parents; a node without alternatives cannot be entered."""
        step, inclusive, stop = self.at_level(level)
        z, s = scale * step + dissimilarity * inclusive, scale * stop + stop_constant
        top = np.maximum(np.maximum.reduceat(z, level.starts, axis=1), s)
        top = np.where(np.isfinite(top), top, 0.0)
        odds = np.exp(np.where(np.isfinite(z), np.maximum(z - top[:, level.group], MIN_LOG_ODDS), -np.inf))
        total = np.add.reduceat(odds, level.starts, axis=1) + np.exp(s - top)
        self.conditionals[:, level.nodes] = odds / np.where(total > 0, total, 1.0)[:, level.group]
        inner = level.parents >= 0
        parents, found = level.parents[inner], total[:, inner]
        self.inclusive[:, parents] = top[:, inner] + np.log(np.where(found > 0, found, 1.0))
        self.step[:, parents] = np.where(found > 0, self.step[:, parents], -np.inf)


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The documents at or below one node: v and W of its alternatives, stopping last; which one each took; and weights."""

    step: Floats
    inclusive: Floats
    taken: Ints
    weights: Floats


def _alternatives(
    utilities: Utilities, level: Level, documents: Ints, weights: Floats, paths: Ints, depth: int
) -> Iterator[Alternatives]:
    """One entry for every parent of a level that has documents with more than one alternative."""
    step, inclusive, stop = utilities.at_level(level)
    above = paths[:, depth - 1] if depth else np.full(len(paths), -1)
    ends = np.append(level.starts[1:], len(level.nodes))
    order = np.argsort(above, kind="stable")
    first, last = (np.searchsorted(above[order], level.parents, side=side) for side in ("left", "right"))
    for g in range(len(level.parents)):
        rows, columns = order[first[g] : last[g]], slice(level.starts[g], ends[g])
        mine, nodes = documents[rows], level.nodes[columns]
        v = np.column_stack([step[mine, columns], stop[mine, g]])
        W = np.column_stack([inclusive[mine, columns], np.zeros(len(mine))])
        place = {node: k for k, node in enumerate(nodes.tolist())}
        taken = np.asarray([place.get(node, len(nodes)) for node in paths[rows, depth].tolist()], dtype=np.int64)
        known = np.isfinite(v)
        counts = (known.sum(axis=1) > 1) & known[np.arange(len(rows)), taken]
        if counts.any():
            yield Alternatives(v[counts], W[counts], taken[counts], weights[rows][counts])


def _maximize_likelihood(groups: list[Alternatives], default_scale: float) -> tuple[float, float, float]:
    """γ, κ and β with the highest likelihood of the alternatives taken, smoothed; the default scale where v does not vary."""
    total = sum(float(each.weights.sum()) for each in groups)
    width = float(np.mean([np.ptp(each.step[np.isfinite(each.step)]) for each in groups]))
    unit = START_RANGE / width if width > 0 else 1.0
    loss = partial(_loss, groups=groups, total=total, unit=unit)
    bounds = [(0, MAX_COEFFICIENT), (0, MAX_COEFFICIENT), (-MAX_COEFFICIENT, MAX_COEFFICIENT)]
    found = minimize(loss, [1.0, 0.5, 0.0], jac=True, method="L-BFGS-B", bounds=bounds)
    scale = unit * max(float(found.x[0]), MIN_SCALE) if width > 0 else default_scale
    return scale, float(found.x[1]), float(found.x[2])


def _loss(at: Floats, groups: list[Alternatives], total: float, unit: float) -> tuple[float, Floats]:
    """The mean negative log likelihood, and its gradient by γ, in units, κ and β."""
    smoothing = 1 / (total + 2)
    loss, gradient = 0.0, np.zeros(3)
    for each in groups:
        known = np.isfinite(each.step)
        step = unit * np.where(known, each.step, 0.0)
        z = np.where(known, at[0] * step + at[1] * each.inclusive, -np.inf)
        z[:, -1] += at[2]
        top = z.max(axis=1, keepdims=True)
        odds = np.exp(z - top)
        sums = odds.sum(axis=1, keepdims=True)
        target = np.where(known, smoothing / known.sum(axis=1, keepdims=True), 0.0)
        target[np.arange(len(target)), each.taken] += 1 - smoothing
        likelihood = (target * np.where(known, z, 0.0)).sum(axis=1, keepdims=True)
        loss += float(each.weights @ (top + np.log(sums) - likelihood)[:, 0])
        residual = each.weights[:, None] * (odds / sums - target)
        gradient += [float((residual * step).sum()), float((residual * each.inclusive).sum()), float(residual[:, -1].sum())]
    return loss / total, gradient / total


def _paths(ends: Ints, taxonomy: Taxonomy) -> Ints:
    """By end and depth: the node on the path, -1 below the end."""
    paths = np.full((len(ends), taxonomy.n_levels), -1, dtype=np.int64)
    current, rows = ends.copy(), np.arange(len(ends))
    while len(rows):
        paths[rows, taxonomy.depth[current]] = current
        current = taxonomy.parent[current]
        rows, current = rows[current >= 0], current[current >= 0]
    return paths


def _without_nan(values: NDArray[np.floating[Any]]) -> Floats:
    return np.where(np.isnan(values), -np.inf, values).astype(np.float64, copy=False)
