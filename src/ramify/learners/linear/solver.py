"""The dual solver of all linear learners: classes drawn to zero, or tied along the paths of a tree.

    min over W   ½ Σ_v ‖w_v − w_parent(v)‖² + Σ_n Σ_i U_in L(y_in w_n·x_i)

over all units v, with the loss L of the classes n (Gopal & Yang 2013, section 3); above a root, and above every class of a
flat problem, there is zero. With u_n = Σ_i α_in y_in x_i and δ_v = Σ u_n over the classes at and below v, the dual is
Σ U h(α/U) − ½ Σ_v ‖δ_v‖².

Deviations from the paper. It alternates between levels; here every dual step moves the whole path. Only pairs of a document
and a class that can matter are worked on: near ones first, then whatever a screening of all pairs finds. The objective
reported is that of the weights that are kept: inner units as the dual has them, and each class solved once more with the
weights above it held fixed, which removes nearly all that the dual still lacks. Training stops when that objective, losses
of all pairs included, and the dual differ by no more than the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify.execution import Executor, stage
from ramify.learners.linear.deltas import Deltas, add_changes, join
from ramify.learners.linear.forest import Forest, Walks, share_out
from ramify.learners.linear.near import Signatures, find_near, learn_signatures
from ramify.learners.linear.pairs import Pairs, all_others, pair_up, widen
from ramify.learners.linear.rows import Rows
from ramify.learners.linear.siblings import Siblings, gather_siblings
from ramify.native import (
    ascend_tree_in_place,
    gather_tree,
    hold_classes,
    regather_tree_in_place,
    screen_classes,
    solve_classes_in_place,
)

LOSSES = {"hinge": 0, "squared_hinge": 1, "logistic": 2}
NEAR = 40  # classes near a document that it is a first negative of, when classes stand alone
NEAR_IN_FAST = 20  # the same when they are all the negatives that it will ever have
SAMPLE = 64  # classes on which the fast mode judges what it did not look at
STRAYS = 2048  # of a class that one screening adds at most
FIRST, FIRST_IN_TREE = 1e-2, 3e-2  # relative gap at which all pairs are screened for the first time
SMALL = 1 << 18  # pairs up to which all are taken at once
BLOCK, PARTS = 32, 8  # classes that are screened together, and parts of the classes for every thread
EVERY, SETTLING = 2, 3  # every which round over a tree settles siblings first, with how many passes over their documents
MOST_HELD = 1 << 27  # entries of the vectors of a tree's classes that are held between rounds
NEAR_IN_TREE = 20  # the same when they are tied: fewer documents then matter to a class
MARGIN = 5  # in tolerances: how far outside its margin an unknown pair of a tree may lie and still be taken
LOOKS = 4  # at the pairs of a tree that are not known, while the weights above its classes stay
MOST_LOOKS = 20  # at all pairs of classes that stand alone
MOST_ROUNDS = 40  # over a tree before the next look, where there are pairs to look for
WAKING = 5  # rounds over a tree after which idle pairs are visited again
JUDGES = 128  # classes on which the gap is judged before all are settled
AIM, AIM_UNSEEN = 0.9, 0.6  # share of the tolerance that must be reached there, and where pairs not yet known will add to it
PACE, SLOWEST = 0.17, 0.04  # by how much a round over a tree is taken to lower the logarithm of the gap, at most and at least


@dataclass(frozen=True, slots=True)
class Settings:
    """How to solve: the loss, the relative duality gap to reach, rounds at most, and the seed of all orders.

    fast: be content with the nearest negatives; what all other pairs cost is then estimated on a sample of the classes.
    """

    loss: str = "hinge"
    tolerance: float = 1e-3
    max_iter: int = 1000
    seed: int = 0
    fast: bool = False


@dataclass(frozen=True, slots=True)
class Costs:
    """What a unit of loss costs: by class for its own documents and for others, times a weight by document."""

    positive: NDArray[np.float32]
    negative: NDArray[np.float32]
    documents: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Certificate:
    """The objective of the weights, a bound that no weights go below, and their distance relative to the objective."""

    primal: float
    dual: float
    rounds: int

    @property
    def gap(self) -> float:
        """(primal − dual) / primal."""
        return max(0.0, self.primal - self.dual) / max(self.primal, 1e-300)


@dataclass(slots=True)
class Solution:
    """Dual variables of all pairs, those of the classes' last step, stretches and deltas: all that weights are made of.

    near: by what near classes were found, unless all pairs were taken.
    """

    pairs: Pairs
    leaves: Pairs
    stretch: NDArray[np.float64]
    deltas: Deltas
    certificate: Certificate
    near: Signatures | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One problem: documents, the classes' own documents (documents × classes), how classes are tied, and costs."""

    rows: Rows
    own: csc_array
    forest: Forest
    costs: Costs
    settings: Settings
    executor: Executor
    n_walks: int = 1

    @property
    def loss(self) -> int:
        """The number by which kernels know the loss."""
        return LOSSES[self.settings.loss]

    @property
    def classes(self) -> NDArray[np.int32]:
        """All classes."""
        return np.arange(self.own.shape[1], dtype=np.int32)

    def over(self, classes: NDArray[np.int32], work: Any) -> list[Any]:
        """Results of `work` on some classes after the other, in a few large parts for every thread."""
        part = BLOCK * max(1, len(classes) // (PARTS * self.n_walks * BLOCK))
        return list(self.executor.map(lambda start: work(classes[start : start + part]), range(0, len(classes), part)))


def solve(task: Task, start: Solution | None = None) -> Solution:
    """Solve a problem, from the dual variables of an earlier solution with other costs if there is one."""
    complete = task.own.shape[0] * task.own.shape[1] <= SMALL or task.settings.loss == "logistic"
    near = start.near if start is not None else None if complete else learn_signatures(task.rows, task.own)
    pairs = _first_pairs(task, near) if start is None else _rescaled(start.pairs, task)
    solution = (_solve_flat if task.forest.is_flat else _solve_tree)(task, pairs, complete)
    return replace(solution, near=near)


def solve_given(task: Task, pairs: Pairs) -> Solution:
    """Solve classes that stand alone on the pairs given, taking all others to cost nothing."""
    return _solve_flat(task, pairs, complete=True)


# ---- pairs --------------------------------------------------------------------------------------------------------------


def _first_pairs(task: Task, near: Signatures | None) -> Pairs:
    if near is None:
        others = all_others(task.own)
    else:
        with stage("finding near classes", 1) as step:
            count = NEAR_IN_FAST if task.settings.fast else NEAR if task.forest.is_flat else NEAR_IN_TREE
            others = csc_array(find_near(task.rows, near, csr_array(task.own), count, task.executor))
            step.advance()
    return pair_up(task.own, others, task.costs.positive, task.costs.negative)


def _rescaled(pairs: Pairs, task: Task) -> Pairs:
    """Dual variables in proportion to the new costs, so that those at a bound stay there."""
    factor = task.costs.negative / np.maximum(pairs.cost_negative, np.float32(1e-30))
    alphas = pairs.alphas * np.repeat(factor, np.diff(pairs.offsets))
    return replace(pairs, cost_positive=task.costs.positive, cost_negative=task.costs.negative, alphas=alphas)


@dataclass(frozen=True, slots=True)
class Known:
    """What is certain of every class: objective, bound, stretch and passes; and what its unknown pairs cost at most."""

    certificates: NDArray[np.float64]
    stretch: NDArray[np.float64]
    strays: NDArray[np.float64]

    @classmethod
    def nothing(cls, n_classes: int) -> Known:
        """Before anything was solved."""
        return cls(np.zeros((n_classes, 4)), np.ones(n_classes), np.zeros(n_classes))

    def certificate(self, inner: float, dual: float | None, rounds: int) -> Certificate:
        """Of the whole problem: `inner` is what the units above cost, `dual` the joint bound where classes are tied."""
        primal = inner + float(self.certificates[:, 0].sum() + self.strays.sum())
        return Certificate(primal, float(self.certificates[:, 1].sum()) if dual is None else dual, rounds)


def _screen(
    task: Task, leaves: Pairs, known: Known, deltas: Deltas, classes: NDArray[np.int32], margin: float, closely: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Unknown pairs of some classes whose score may lie above −1 − margin; notes what they cost at most."""
    above = task.forest.above_offsets, task.forest.above, *deltas.arrays
    known.strays[classes] = 0

    def look(some: NDArray[np.int32]) -> Any:
        return screen_classes(
            *task.rows.arrays, *leaves.arrays, *above, known.stretch, some, -1 - margin, closely, STRAYS,
            task.loss, task.costs.documents, known.strays,
        )  # fmt: skip

    parts = task.over(classes, look)
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([found for _, found in parts])


def _sample(task: Task, size: int) -> NDArray[np.int32]:
    """Some classes, the same ones every time."""
    return np.sort(np.random.default_rng(task.settings.seed).permutation(task.classes)[:size])


def _estimate_strays(task: Task, leaves: Pairs, known: Known, deltas: Deltas) -> float:
    """What all unknown pairs cost at most, judged by those of a sample of the classes."""
    sample = _sample(task, SAMPLE)
    _screen(task, leaves, known, deltas, sample, 0.0, closely=False)
    estimate = float(known.strays[sample].sum()) * len(task.classes) / len(sample)
    known.strays[:] = 0
    return estimate


# ---- classes that stand alone ----------------------------------------------------------------------------------------------


def _settle(
    task: Task, pairs: Pairs, deltas: Deltas, known: Known, classes: NDArray[np.int32], tolerance: float, most: int = 2**31
) -> int:
    """Solve classes with the weights above them held fixed, and note what is certain of each; gives the most passes."""
    above, most = (task.forest.above_offsets, task.forest.above, *deltas.arrays), min(most, task.settings.max_iter)

    def work(some: NDArray[np.int32]) -> None:
        solve_classes_in_place(
            *task.rows.arrays, task.loss, *pairs.arrays, task.costs.documents, *above,
            some, tolerance, most, task.settings.seed, known.certificates,
        )  # fmt: skip

    task.over(classes, work)
    known.stretch[classes] = known.certificates[classes, 2]
    return int(known.certificates[classes, 3].max(initial=0))


def _solve_flat(task: Task, pairs: Pairs, complete: bool) -> Solution:
    deltas, settings, classes = Deltas.zero(len(task.forest)), task.settings, task.classes
    known, rounds, looks = Known.nothing(len(classes)), 0, 0
    tolerance = settings.tolerance if complete else max(settings.tolerance, FIRST)
    with stage("solving", None) as step:
        while True:
            rounds, looks = rounds + _settle(task, pairs, deltas, known, classes, tolerance), looks + 1
            if complete or settings.fast:
                unseen = 0.0 if complete else _estimate_strays(task, pairs, known, deltas)
                return Solution(pairs, pairs, known.stretch, deltas, known.certificate(unseen, None, rounds))
            documents, strays = _screen(task, pairs, known, deltas, classes, 0.5 * tolerance, tolerance <= settings.tolerance)
            certificate = known.certificate(0.0, None, rounds)
            step.advance()
            is_last = looks >= MOST_LOOKS or (tolerance < settings.tolerance and len(strays) == 0)
            if certificate.gap <= settings.tolerance or is_last:
                return Solution(pairs, pairs, known.stretch, deltas, certificate)
            pairs = widen(pairs, documents, strays)
            # classes without strays are done, once they are solved as closely as they must be
            classes = np.unique(strays) if tolerance < settings.tolerance else task.classes
            tolerance = 0.9 * settings.tolerance


# ---- classes of a tree -----------------------------------------------------------------------------------------------------


def _gather(task: Task, pairs: Pairs, walks: Walks) -> Deltas:
    """δ of the inner units, made of the dual variables."""

    def work(visited: NDArray[np.uint8]) -> Any:
        return gather_tree(*task.rows.arrays, task.forest.parent, task.forest.class_of, walks.share, visited, *pairs.arrays)

    return join(list(task.executor.map(work, walks.visited)), len(task.forest))


def _regather(task: Task, climb: Climb) -> None:
    """The same anew, in place: sums of changes in 32 bits drift, and what is certified must not."""
    forest, walks, deltas = task.forest, climb.walks, climb.deltas
    deltas.values[:] = 0

    def work(visited: NDArray[np.uint8]) -> Any:
        tree = forest.parent, forest.class_of, walks.share, visited
        return regather_tree_in_place(*task.rows.arrays, *tree, *deltas.arrays, *climb.pairs.arrays)

    add_changes(deltas, list(task.executor.map(work, walks.visited)))


@dataclass(slots=True)
class Climb:
    """Where the ascent of a tree's dual stands."""

    pairs: Pairs
    walks: Walks
    deltas: Deltas
    held: list[Any]
    awake: NDArray[np.uint8]
    slack: NDArray[np.float32]
    rounds: int


def _start_climb(task: Task, pairs: Pairs, rounds: int = 0) -> Climb:
    walks = share_out(task.forest, np.diff(pairs.offsets), task.n_walks)
    awake = np.ones(len(pairs.documents), dtype=np.uint8)
    slack = np.full(len(pairs), np.inf, dtype=np.float32)
    return Climb(pairs, walks, _gather(task, pairs, walks), _hold(task, pairs, walks), awake, slack, rounds)


def _hold(task: Task, pairs: Pairs, walks: Walks) -> list[Any]:
    """u of the classes of every walk over the features of their documents, unless that were too much."""
    touched = np.diff(pairs.offsets) * (len(task.rows.values) / max(1, len(task.rows)))

    def hold(some: tuple[int, int]) -> Any:
        if np.minimum(touched, task.rows.n_features).sum() > MOST_HELD:
            return some[0], np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
        return some[0], *hold_classes(*task.rows.arrays, *pairs.arrays, *some)

    return list(task.executor.map(hold, walks.classes(task.forest)))


def _climb(task: Task, climb: Climb, siblings: Siblings, tolerance: float, aim: float, most: int) -> None:
    """Rounds over all classes until the gap, judged by a sample of the classes, is within a share of the tolerance."""
    last = min(climb.rounds + most, task.settings.max_iter)
    judged, before, pace = min(climb.rounds + WAKING, last), None, PACE
    while True:
        if climb.rounds % WAKING == 0:
            climb.awake[:] = 1
        _ascend(task, climb, siblings)
        if climb.rounds >= judged:
            excess = _sampled_gap(task, climb, tolerance) / (aim * tolerance)
            if excess <= 1 or climb.rounds >= last:
                break
            if before is not None:
                pace = min(PACE, max(SLOWEST, math.log(before[1] / excess) / (climb.rounds - before[0])))
            before = climb.rounds, excess
            judged = min(climb.rounds + math.ceil(math.log(excess) / pace), last)


def _sampled_gap(task: Task, climb: Climb, tolerance: float) -> float:
    """The relative gap that settling all classes would show: objective and dual are sums over inner units and classes."""
    sample, known = _sample(task, JUDGES), Known.nothing(len(climb.pairs))
    share, inner = len(sample) / len(task.classes), climb.deltas.half_squares()
    dual = float(_duals(task, climb, sample).sum()) / share
    leaves = replace(climb.pairs, alphas=climb.pairs.alphas.copy())
    _settle(task, leaves, climb.deltas, known, sample, 0.5 * tolerance)
    primal = float(known.certificates[sample, 0].sum()) / share
    return (primal - dual) / max(inner + primal, 1e-300)


def _duals(task: Task, climb: Climb, classes: NDArray[np.int32]) -> NDArray[np.float64]:
    """What classes add to the dual, beside the inner units: Σ U h(α/U) − u·w + ½‖u‖²."""
    known = Known.nothing(len(climb.pairs))
    _settle(task, climb.pairs, climb.deltas, known, classes, 1.0, most=0)
    duals: NDArray[np.float64] = known.certificates[classes, 1]
    return duals


def _ascend(task: Task, climb: Climb, siblings: Siblings) -> None:
    """One round over all classes."""
    forest, walks, deltas = task.forest, climb.walks, climb.deltas
    seed, passes = task.settings.seed + 1_000_003 * climb.rounds, SETTLING if climb.rounds % EVERY == 0 else 0

    def work(mine: tuple[Any, Any]) -> Any:
        visited, held = mine
        return ascend_tree_in_place(
            *task.rows.arrays, task.loss, forest.parent, forest.class_of, walks.share, visited, *deltas.arrays,
            *climb.pairs.arrays, *held, task.costs.documents, *siblings.arrays, climb.awake, climb.slack,
            passes, 1, seed,
        )  # fmt: skip

    parts = list(task.executor.map(work, zip(walks.visited, climb.held, strict=True)))
    add_changes(deltas, parts)
    climb.rounds += 1


def _settle_leaves(task: Task, climb: Climb, known: Known, tolerance: float, complete: bool) -> tuple[Pairs, Pairs]:
    """Solve all classes with the weights above them held fixed, taking in pairs that turn out to cost something.

    Gives the pairs as they are then, and the pairs of the climb with the same ones taken in.
    """
    leaves, pairs, classes = replace(climb.pairs, alphas=climb.pairs.alphas.copy()), climb.pairs, task.classes
    closely = tolerance <= task.settings.tolerance
    for _ in range(LOOKS if closely else 1):
        _settle(task, leaves, climb.deltas, known, classes, 0.5 * tolerance)
        if complete or task.settings.fast:
            break
        documents, strays = _screen(task, leaves, known, climb.deltas, classes, MARGIN * tolerance, closely)
        leaves, pairs = widen(leaves, documents, strays), widen(pairs, documents, strays)
        if known.strays.sum() <= 0.1 * tolerance * known.certificates[:, 0].sum():
            break
        classes = np.unique(strays)
    return leaves, pairs


def _solve_tree(task: Task, pairs: Pairs, complete: bool) -> Solution:
    settings, known = task.settings, Known.nothing(len(pairs))
    siblings = gather_siblings(task.rows, task.own, task.forest, task.executor)
    climb = _start_climb(task, pairs)
    tolerance = settings.tolerance if complete else max(settings.tolerance, FIRST_IN_TREE)
    with stage("solving", None) as step:
        while True:
            aim = AIM if complete or tolerance > settings.tolerance else AIM_UNSEEN
            _climb(task, climb, siblings, tolerance, aim, settings.max_iter if complete else MOST_ROUNDS)
            if tolerance <= settings.tolerance:
                _regather(task, climb)
            leaves, pairs = _settle_leaves(task, climb, known, tolerance, complete)
            unseen = _estimate_strays(task, leaves, known, climb.deltas) if settings.fast and not complete else 0.0
            inner = climb.deltas.half_squares()
            dual = inner + float(_duals(task, climb, task.classes).sum())
            certificate = known.certificate(inner + unseen, dual, climb.rounds)
            step.advance()
            if certificate.gap <= settings.tolerance or climb.rounds >= settings.max_iter or settings.fast:
                return Solution(climb.pairs, leaves, known.stretch, climb.deltas, certificate)
            tolerance = settings.tolerance
            if len(pairs.documents) > len(climb.pairs.documents):
                rounds = climb.rounds
                del climb, leaves  # the next one needs the room
                climb = _start_climb(task, pairs, rounds)
