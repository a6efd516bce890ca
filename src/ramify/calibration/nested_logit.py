"""What a learner says of the ways of a document down a taxonomy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ramify.taxonomy import Taxonomy, levels_of


@dataclass(frozen=True, slots=True)
class LogPotentials:
    """Logarithms of how likely things are, up to a factor and a sum; documents × nodes.

    ends: that a document ends at a node; NaN where none does.
    steps: that it goes on from a node's parent to the node; None where this follows from where it may end.
    """

    ends: NDArray[np.floating[Any]]
    steps: NDArray[np.floating[Any]] | None = None

    def __len__(self) -> int:
        return len(self.ends)

    def of(self, documents: Any) -> Self:
        """Of some of the documents."""
        return type(self)(self.ends[documents], None if self.steps is None else self.steps[documents])

    @classmethod
    def joined(cls, parts: Sequence[LogPotentials]) -> Self:
        """Of the documents of all parts, one part after the other."""
        steps = [part.steps for part in parts if part.steps is not None]
        return cls(np.concatenate([part.ends for part in parts]), np.concatenate(steps) if steps else None)


# --------------------------------------------------------------------------------------------------------------
# Choosing one's way down a tree: among the children of a node, and whether to stay there.
#
#     P(child | node) ∝ exp z(child)        z(child) = γ v(child) + κ W(child)        W(child) = ln Σ exp z of its own ways
#     P(stay | node)  ∝ exp z(stay)         z(stay) = γ v(stay) + β
#
# McFadden's nested logit, with a sharpness γ, a reliance κ on what lies below, and an offset β for every depth. Where a learner
# says how likely documents end at nodes, v(child) is that of a leaf, and 0 of an inner node; where it says how likely each step
# is, v is that. W of a leaf is 0. All three have the highest likelihood on documents that were not learnt from, depth by depth
# from the bottom up; a step from a node is learnt from the documents that are at or below the node.


SPREAD = 10.0  # between the best and the worst way, at the sharpness from which the search begins
ENOUGH = 2000  # documents for what is learnt of all ends at once
LOWEST = -34.0  # of the logarithm of a share, so that there is something to be shared out anew
MOST, FAINT = 1e3, 1e-6  # of that sharpness; and of the reliance and the offset, at most

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Truth = tuple[Ints, Ints, Floats]  # documents, the node where each ends, and a weight; a document may stand there twice


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes of one depth, siblings together.

    parents: of the groups of siblings, -1 above the roots. starts: where each group begins. group: of every node.
    """

    nodes: Ints
    parents: Ints
    starts: Ints
    group: Ints

    @classmethod
    def of(cls, nodes: Ints, parent: Ints) -> Level:
        """From nodes in any order."""
        nodes = nodes[np.argsort(parent[nodes], kind="stable")]
        parents, starts = np.unique(parent[nodes], return_index=True)
        return cls(nodes, parents, starts, np.searchsorted(parents, parent[nodes]))


@lru_cache(maxsize=16)
def levels_with_siblings(taxonomy: Taxonomy) -> list[Level]:
    """The levels of a tree, from the top."""
    taxonomy.require_tree("calibrating choices from the top down")
    return [Level.of(nodes, taxonomy.parent) for nodes in levels_of(taxonomy)]


@dataclass(frozen=True, slots=True)
class NestedLogit:
    """The numbers of every depth."""

    sharpness: Floats
    reliance: Floats
    staying: Floats

    @classmethod
    def alike(cls, n_levels: int, sharpness: float = 1.0) -> NestedLogit:
        """The same at every depth."""
        return cls(np.full(n_levels, sharpness), np.ones(n_levels), np.zeros(n_levels))

    def of(self, depth: int) -> tuple[float, float, float]:
        """The numbers of a depth."""
        return float(self.sharpness[depth]), float(self.reliance[depth]), float(self.staying[depth])


class Choosing:
    """The ways of some documents, of which the steps of one depth after the other are made, from the bottom up.

    steps: v of every node, -inf where it cannot be entered. worth: W of every node.
    """

    def __init__(self, log_potentials: LogPotentials, taxonomy: Taxonomy) -> None:
        self.ends = _without_nan(log_potentials.ends)
        given = log_potentials.steps
        self.steps = np.where(taxonomy.is_leaf, self.ends, 0.0) if given is None else _without_nan(given)
        self.worth = np.zeros_like(self.steps)
        self.shares = np.zeros_like(self.steps)

    def ways(self, level: Level) -> tuple[Floats, Floats, Floats]:
        """v and W of the nodes of a level, and v of staying at their parents."""
        stay = np.where(level.parents >= 0, self.ends[:, level.parents], -np.inf)
        return self.steps[:, level.nodes], self.worth[:, level.nodes], stay

    def choose(self, level: Level, sharpness: float, reliance: float, staying: float) -> None:
        """Fill in the shares of a level, and what its parents are worth; a node without a way cannot be entered."""
        step, worth, stay = self.ways(level)
        z, s = sharpness * step + reliance * worth, sharpness * stay + staying
        top = np.maximum(np.maximum.reduceat(z, level.starts, axis=1), s)
        top = np.where(np.isfinite(top), top, 0.0)
        parts = np.exp(np.where(np.isfinite(z), np.maximum(z - top[:, level.group], LOWEST), -np.inf))
        total = np.add.reduceat(parts, level.starts, axis=1) + np.exp(s - top)
        self.shares[:, level.nodes] = parts / np.where(total > 0, total, 1.0)[:, level.group]
        inner = level.parents >= 0
        parents, found = level.parents[inner], total[:, inner]
        self.worth[:, parents] = top[:, inner] + np.log(np.where(found > 0, found, 1.0))
        self.steps[:, parents] = np.where(found > 0, self.steps[:, parents], -np.inf)


def fit_nested_logit(log_potentials: LogPotentials, truth: Truth, taxonomy: Taxonomy) -> NestedLogit:
    """The numbers of every depth; where nothing is chosen by its own v, the sharpness that suits all ends at once."""
    levels, choosing = levels_with_siblings(taxonomy), Choosing(log_potentials, taxonomy)
    documents, ends, weights = truth
    paths, found = _paths(ends, taxonomy), NestedLogit.alike(len(levels), _usual_sharpness(log_potentials, truth))
    for depth in range(len(levels) - 1, -1, -1):
        blocks = list(_blocks(choosing, levels[depth], documents, weights, paths, depth))
        if blocks:
            found.sharpness[depth], found.reliance[depth], found.staying[depth] = _climb(blocks, found.sharpness[depth])
        choosing.choose(levels[depth], *found.of(depth))
    return found


def _usual_sharpness(log_potentials: LogPotentials, truth: Truth) -> float:
    """Of a choice among all nodes where documents end, by some of the documents; 1 where steps are told."""
    if log_potentials.steps is not None:
        return 1.0
    documents, ends, weights = (part[:ENOUGH] for part in truth)
    steps = _without_nan(log_potentials.ends[documents])
    known = np.isfinite(steps)
    counts = (known.sum(axis=1) > 1) & known[np.arange(len(ends)), ends]
    if not counts.any():
        return 1.0
    block = Block(steps[counts], np.zeros_like(steps[counts]), ends[counts], weights[counts])
    return _climb([block], 1.0)[0]


def share_out(log_potentials: LogPotentials, taxonomy: Taxonomy, choices: NestedLogit) -> Floats:
    """P(node | parent), documents × nodes; what the children of a node leave is the chance to stay there."""
    choosing = Choosing(log_potentials, taxonomy)
    for depth, level in reversed(list(enumerate(levels_with_siblings(taxonomy)))):
        choosing.choose(level, *choices.of(depth))
    return choosing.shares


@dataclass(frozen=True, slots=True)
class Block:
    """Documents of one node: v and W of its ways, staying last; which way each took; and weights."""

    steps: Floats
    worth: Floats
    taken: Ints
    weights: Floats


def _blocks(choosing: Choosing, level: Level, documents: Ints, weights: Floats, paths: Ints, depth: int) -> Iterator[Block]:
    """One block for every parent of a level that has documents with a choice."""
    step, worth, stay = choosing.ways(level)
    above = paths[:, depth - 1] if depth else np.full(len(paths), -1)
    ends = np.append(level.starts[1:], len(level.nodes))
    order = np.argsort(above, kind="stable")
    first, last = (np.searchsorted(above[order], level.parents, side=side) for side in ("left", "right"))
    for g in range(len(level.parents)):
        rows = order[first[g] : last[g]]
        mine, nodes = documents[rows], level.nodes[level.starts[g] : ends[g]]
        here = slice(level.starts[g], ends[g])
        steps, values = (
            np.column_stack([step[mine, here], stay[mine, g]]),
            np.column_stack([worth[mine, here], np.zeros(len(mine))]),
        )
        place = {node: k for k, node in enumerate(nodes.tolist())}
        taken = np.asarray([place.get(node, len(nodes)) for node in paths[rows, depth].tolist()], dtype=np.int64)
        known = np.isfinite(steps)
        counts = (known.sum(axis=1) > 1) & known[np.arange(len(rows)), taken]
        if counts.any():
            yield Block(steps[counts], values[counts], taken[counts], weights[rows][counts])


def _climb(blocks: list[Block], usual: float) -> tuple[float, float, float]:
    """The numbers under which the ways that were taken are likeliest; every way is taken by a little of each document.

    usual: the sharpness where none is likelier than another.
    """
    total = sum(float(block.weights.sum()) for block in blocks)
    spread = float(np.mean([np.ptp(block.steps[np.isfinite(block.steps)]) for block in blocks]))
    unit = SPREAD / spread if spread > 0 else 1.0
    loss = partial(_loss, blocks=blocks, total=total, unit=unit)
    found = minimize(loss, [1.0, 0.5, 0.0], jac=True, method="L-BFGS-B", bounds=[(0, MOST), (0, MOST), (-MOST, MOST)])
    sharpness = unit * max(float(found.x[0]), FAINT) if spread > 0 else usual
    return sharpness, float(found.x[1]), float(found.x[2])


def _loss(at: Floats, blocks: list[Block], total: float, unit: float) -> tuple[float, Floats]:
    """Minus the mean logarithm of the likelihood, and how it changes with sharpness, in units, reliance and offset."""
    smoothing = 1 / (total + 2)
    loss, slopes = 0.0, np.zeros(3)
    for block in blocks:
        known = np.isfinite(block.steps)
        steps = unit * np.where(known, block.steps, 0.0)
        z = np.where(known, at[0] * steps + at[1] * block.worth, -np.inf)
        z[:, -1] += at[2]
        top = z.max(axis=1, keepdims=True)
        parts = np.exp(z - top)
        sums = parts.sum(axis=1, keepdims=True)
        target = np.where(known, smoothing / known.sum(axis=1, keepdims=True), 0.0)
        target[np.arange(len(target)), block.taken] += 1 - smoothing
        loss += float(
            block.weights @ (top + np.log(sums) - (target * np.where(known, z, 0.0)).sum(axis=1, keepdims=True))[:, 0]
        )
        surplus = block.weights[:, None] * (parts / sums - target)
        slopes += [float((surplus * steps).sum()), float((surplus * block.worth).sum()), float(surplus[:, -1].sum())]
    return loss / total, slopes / total


def _paths(ends: Ints, taxonomy: Taxonomy) -> Ints:
    """By end and depth: the node on the path, -1 below the end."""
    paths = np.full((len(ends), taxonomy.n_levels), -1, dtype=np.int64)
    here, rows = ends.copy(), np.arange(len(ends))
    while len(rows):
        paths[rows, taxonomy.depth[here]] = here
        here = taxonomy.parent[here]
        rows, here = rows[here >= 0], here[here >= 0]
    return paths


def _without_nan(values: NDArray[np.floating[Any]]) -> Floats:
    return np.where(np.isnan(values), -np.inf, values).astype(np.float64, copy=False)
