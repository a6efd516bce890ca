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

The work is done by a crew, whose members own the classes: one with all threads of this process, or many on a cluster. Here is
said what they do next, and when they are done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify.learners.linear.candidates import Signatures, find_candidates, learn_signatures
from ramify.learners.linear.estimates import count_weights, estimate_needs
from ramify.learners.linear.flat_worker import FlatWorker
from ramify.learners.linear.partition import Share, add_up, partition_classes, sum_counts, sums
from ramify.learners.linear.problem import Certificate, Pairs, Problem, all_others, pair_up
from ramify.learners.linear.shards import ShardedWeights
from ramify.learners.linear.tree_worker import WAKING, TreeWorker
from ramify.learners.linear.warm_start import Dual, resume
from ramify.learners.linear.weights import Weights, merge_weights
from ramify.parallel import Executor, Stage, WorkerGroup, describe, stage

NEAR = 40  # classes near a document that it is a first negative of, when classes stand alone
NEAR_IN_FAST = 20  # the same when they are all the negatives that it will ever have
NEAR_IN_TREE = 20  # the same when they are tied: fewer documents then matter to a class
SAMPLE = 64  # classes on which the fast mode judges what it did not look at
FIRST, FIRST_IN_TREE = 1e-2, 3e-2  # relative gap at which all pairs are screened for the first time
SMALL = 1 << 18  # pairs up to which all are taken at once
MARGIN = 5  # in tolerances: how far outside its margin an unknown pair of a tree may lie and still be taken
LOOKS = 4  # at the pairs of a tree that are not known, while the weights above its classes stay
MOST_LOOKS = 20  # at all pairs of classes that stand alone
MOST_ROUNDS = 40  # over a tree before the next look, where there are pairs to look for
MOST_GATHERED = 1 << 26  # weights that are gathered where they could be written by members
SETTLED, MOST_PARTS = 1024, 16  # classes of a member that are settled before work can be kept, and parts at most
JUDGES, JUDGES_OF_A_PART = 128, 48  # classes on which the gap is judged before all are settled
AIM, AIM_UNSEEN = 0.9, 0.6  # share of the tolerance that must be reached there, and where pairs not yet known will add to it
TURN, SPARED = 3, 0.25  # rounds before it is asked again who has something to gain; what others may gain, in tolerances
PACE, SLOWEST = 0.17, 0.04  # by how much a round over a tree is taken to lower the logarithm of the gap, at most and at least


@dataclass(frozen=True, slots=True)
class Solution:
    """Weights and what is certain of them.

    near: by what near classes were found, unless all pairs were taken. pairs: the dual variables, where they were asked for.
    figures: of every class its part of the objective and of the bound; inner units add as much to both.
    """

    weights: Weights | ShardedWeights
    certificate: Certificate
    near: Signatures | None = None
    pairs: Pairs | None = None
    figures: NDArray[np.float64] | None = None


def solve(
    problem: Problem,
    executor: Executor,
    start: Solution | Dual | None = None,
    keep_dual: bool = False,
    shards: Path | None = None,
) -> Solution:
    """Solve a problem, from the dual variables of an earlier solution with other costs if there is one.

    start: a solution for the same classes, or dual variables of classes that may have changed.

    keep_dual: whether another solution is going to start from this one. shards: where weights are written by the members, if
    they are too many to be gathered.
    """
    complete = len(problem.rows) * problem.n_classes <= SMALL or problem.settings.loss == "logistic"
    placed = executor.place(problem.rows)
    near: Signatures | None
    if isinstance(start, Dual):
        near, pairs = None, resume(start, problem, complete)
    elif start is not None and start.pairs is not None:
        near, pairs = start.near, _rescaled(start.pairs, problem)
    else:
        near, others = (None, all_others(problem.own)) if complete else _find_near(problem, executor, placed)
        pairs = pair_up(problem.own, others, problem.costs.positive, problem.costs.negative)
    signatures = near.in_original_order(problem.rows.place) if near is not None and problem.settings.fast else None
    ending = Ending(problem, signatures, keep_dual, shards)
    resumed = start if isinstance(start, Dual) else None
    return replace(_solve(problem, executor, placed, pairs, complete, ending, resumed), near=near)


def solve_given(problem: Problem, executor: Executor, pairs: Pairs) -> Solution:
    """Solve classes that stand alone on the pairs given, taking all others to cost nothing."""
    return _solve(problem, executor, executor.place(problem.rows), pairs, complete=True, ending=Ending(problem))


def _find_near(problem: Problem, executor: Executor, placed: Any) -> tuple[Signatures, csc_array]:
    """How near classes are found, and for every class the documents that are near to it."""
    with stage("finding near classes", 2) as step:
        near = learn_signatures(problem.rows, problem.own, executor, placed)
        step.advance()
        count = NEAR_IN_FAST if problem.settings.fast else NEAR if problem.forest.is_flat else NEAR_IN_TREE
        others = csc_array(find_candidates(problem.rows, near, csr_array(problem.own), count, executor, placed))
        step.advance()
    return near, others


def _rescaled(pairs: Pairs, problem: Problem) -> Pairs:
    """Dual variables in proportion to the new costs, so that those at a bound stay there."""
    costs = problem.costs
    factor = costs.negative / np.maximum(pairs.cost_negative, np.float32(1e-30))
    alphas = pairs.alphas * np.repeat(factor, np.diff(pairs.offsets))
    return replace(pairs, cost_positive=costs.positive, cost_negative=costs.negative, alphas=alphas)


def _solve(
    problem: Problem,
    executor: Executor,
    placed: Any,
    pairs: Pairs,
    complete: bool,
    ending: Ending,
    resumed: Dual | None = None,
) -> Solution:
    """Gather a crew, let it work, and take what it has found."""
    make, solver = (FlatWorker, FlatSolver) if problem.forest.is_flat else (TreeWorker, TreeSolver)
    shares = partition_classes(problem, pairs, executor.worker_threads, complete)
    needs = estimate_needs(problem, shares)
    del pairs  # the members have them now
    with executor.start_workers(make, executor.place(replace(problem, rows=placed)), shares, needs) as crew:
        certificate = solver(problem, crew, shares, complete, resumed).run()
        crew.keep()
        figures = np.concatenate(crew.ask("figures_by_class"))
        return Solution(ending.weights(crew, shares, executor), certificate, pairs=ending.pairs(crew), figures=figures)


@dataclass(frozen=True, slots=True)
class Ending:
    """What is taken from a crew when it is done.

    near: the signatures of all classes, where these know near documents only. keep_dual, shards: as of :func:`solve`.
    """

    problem: Problem
    near: Signatures | None = None
    keep_dual: bool = False
    shards: Path | None = None

    def pairs(self, crew: WorkerGroup) -> Pairs | None:
        """The dual variables, where they are wanted."""
        return Pairs.joined(list(crew.fetch("dual_variables"))) if self.keep_dual else None

    def weights(self, crew: WorkerGroup, shares: list[Share], executor: Executor) -> Weights | ShardedWeights:
        """All weights: gathered, or, where they are too many for that, in the files that members write."""
        if self.shards is not None and count_weights(self.problem, shares) > MOST_GATHERED:
            names = crew.ask("write_shards", str(self.shards), self.near)
            return ShardedWeights.open([self.shards / name for member in names for name in member])
        forest = self.problem.forest
        units = [forest.part(share.first, share.last)[1] for share in shares] if len(shares) > 1 else []
        return merge_weights(list(crew.fetch("weights")), units, forest, executor)


@dataclass(slots=True)
class FlatSolver:
    """Tells a crew that owns classes that stand alone what to do.

    complete: whether there are no other pairs than those that the members begin with. resumed: the dual variables that they
    begin with, where these are those of an earlier solution.
    """

    problem: Problem
    crew: WorkerGroup
    shares: list[Share]
    complete: bool
    resumed: Dual | None = None
    rounds: int = 0
    gaining: NDArray[np.int64] | None = None  # classes that have something to gain, where the others are left out

    def run(self) -> Certificate:
        """Work until the gap is within the tolerance, or nothing more can be found."""
        settings, looks = self.problem.settings, 0
        tolerance = settings.tolerance if self.complete or self.resumed else max(settings.tolerance, FIRST)
        with stage("solving", None) as step:
            while True:
                self.rounds, looks = self.rounds + self._settle(tolerance), looks + 1
                if self.complete or settings.fast:
                    unseen = 0.0 if self.complete else self.estimate_strays()
                    primal, dual = sums(self.crew.ask("figures"))
                    return Certificate(primal + unseen, dual, self.rounds)
                found = self.crew.ask("screen", 0.5 * tolerance, tolerance <= settings.tolerance)
                n_strays, primal, dual = sums(found)
                certificate = Certificate(primal, dual, self.rounds)
                step.advance()
                self.describe(step, f"look {looks}, gap {certificate.gap:.1e}, {n_strays:,.0f} more pairs")
                is_last = looks >= MOST_LOOKS or (tolerance < settings.tolerance and n_strays == 0)
                if certificate.gap <= settings.tolerance or is_last:
                    return certificate
                # classes without strays are done, once they are solved as closely as they must be
                self.crew.ask("widen", tolerance < settings.tolerance)
                self.crew.keep()
                tolerance = 0.9 * settings.tolerance

    def _settle(self, tolerance: float) -> int:
        """Solve all chosen classes, so many at a time that what is done can be kept; gives the most passes of one."""
        parts = min(1 + self.problem.n_classes // (SETTLED * len(self.shares)), MOST_PARTS)
        passes = 0
        for part in range(parts):
            passes = max(passes, *self.crew.ask("settle", tolerance, part, parts))
            self.crew.keep()
        return passes

    def describe(self, step: Stage, where: str) -> None:
        """Say how far the work is, and what went over the wire."""
        describe(step, "; ".join(filter(None, (where, self.crew.told()))))

    def estimate_strays(self) -> float:
        """What all unknown pairs cost at most, judged by those of a sample of the classes."""
        sample = self.sample(SAMPLE, self.problem.classes)
        return math.fsum(self.crew.ask("estimate", sample)) * self.problem.n_classes / len(sample)

    def sample(self, size: int, classes: NDArray[Any]) -> list[int]:
        """Some of the classes, the same ones every time."""
        order = np.random.default_rng(self.problem.settings.seed).permutation(classes)
        return sorted(order[:size].tolist())


class TreeSolver(FlatSolver):
    """Tells a crew that owns the classes of a tree what to do."""

    def run(self) -> Certificate:
        """Climb and settle in turn until the gap is within the tolerance, or rounds are used up."""
        settings = self.problem.settings
        self._begin()
        tolerance = settings.tolerance if self.complete or self.resumed else max(settings.tolerance, FIRST_IN_TREE)
        with stage("solving", None) as step:
            while True:
                aim = AIM if self.complete or tolerance > settings.tolerance else AIM_UNSEEN
                climb = self._climb if self.resumed is None else self._go_on
                climb(step, tolerance, aim, settings.max_iter if self.complete else MOST_ROUNDS)
                if tolerance <= settings.tolerance:
                    self.crew.exchange("regather", add_up, "take_changes")
                self._settle_leaves(tolerance)
                unseen = self.estimate_strays() if settings.fast and not self.complete else 0.0
                primal, dual, inner, taken_in = sums(self.crew.ask("certify"))
                certificate = Certificate(primal + inner + unseen, dual + inner, self.rounds)
                step.advance()
                if certificate.gap <= settings.tolerance or self.rounds >= settings.max_iter or settings.fast:
                    return certificate
                tolerance = settings.tolerance
                if taken_in:
                    self.crew.ask("grow")
                elif self.resumed is not None:  # what was left out is missed
                    self.resumed = self.gaining = None
                else:
                    continue
                self._begin()

    def _begin(self) -> None:
        self.crew.exchange("count_walks", sum_counts, "begin")
        if any(len(share.shared) for share in self.shares):
            self.crew.exchange("give_deltas", add_up, "take_changes")

    def _climb(self, step: Stage, tolerance: float, aim: float, most: int) -> None:
        """Rounds over all classes until the gap, judged by a sample of the classes, is within a share of the tolerance."""
        last = min(self.rounds + most, self.problem.settings.max_iter)
        judged, before, pace, gap = min(self.rounds + WAKING, last), None, PACE, ""
        while True:
            while self.rounds < judged:
                self._ascend(step, gap)
            excess = self._sampled_gap(tolerance) / (aim * tolerance)
            gap = f", gap about {excess * aim * tolerance:.1e}"
            if excess <= 1 or self.rounds >= last:
                break
            if before is not None:
                pace = min(PACE, max(SLOWEST, math.log(before[1] / excess) / (self.rounds - before[0])))
            before = self.rounds, excess
            judged = min(self.rounds + math.ceil(math.log(excess) / pace), last)

    def _ascend(self, step: Stage, gap: str) -> None:
        self.crew.exchange("ascend", add_up, "take_changes")
        self.rounds += 1
        self.crew.keep()
        self.describe(step, f"round {self.rounds}{gap}")

    def _go_on(self, step: Stage, tolerance: float, aim: float, most: int) -> None:
        """The same from an earlier solution, most of which is still right: rounds over classes that have something to gain.

        At first there may be nothing to do.
        """
        last, is_first = min(self.rounds + most, self.problem.settings.max_iter), self.gaining is None
        self._narrow(tolerance)
        gap = self._sampled_gap(tolerance)
        while (gap > aim * tolerance or not is_first) and self.rounds < last:
            for _ in range(min(TURN, last - self.rounds)):
                self._ascend(step, f", gap about {gap:.1e}")
            self._narrow(tolerance)
            gap, is_first = self._sampled_gap(tolerance), True

    def _narrow(self, tolerance: float) -> None:
        """Leave out the classes that have the least to gain, and all together next to nothing."""
        primal, dual = np.concatenate(self.crew.ask("gains_by_class")).T
        order = np.argsort(primal - dual)
        is_left_out = np.cumsum((primal - dual)[order]) <= SPARED * tolerance * primal.sum()
        self.gaining = np.sort(order[~is_left_out])
        self.crew.ask("narrow", self.gaining.tolist())

    def _sampled_gap(self, tolerance: float) -> float:
        """The relative gap that settling all classes would show: objective and dual are sums over inner units and classes."""
        duals = primals = inner = 0.0
        for sample, share in self._samples():
            dual, primal, inner = sums(self.crew.ask("judge", sample, tolerance))
            duals, primals = duals + dual / share, primals + primal / share
        return (primals - duals) / max(inner + primals, 1e-300)

    def _samples(self) -> list[tuple[list[int], float]]:
        """Some classes, and the share of all that they stand for; of those that have something to gain, and of the others."""
        classes = self.problem.classes
        parts = [classes] if self.gaining is None else [self.gaining, np.setdiff1d(classes, self.gaining)]
        size = JUDGES if self.gaining is None else JUDGES_OF_A_PART
        drawn = [(self.sample(size, part), len(part)) for part in parts if len(part)]
        return [(sample, len(sample) / total) for sample, total in drawn]

    def _settle_leaves(self, tolerance: float) -> None:
        """Solve all classes with the weights above them held fixed, taking in pairs that turn out to cost something."""
        closely = tolerance <= self.problem.settings.tolerance
        self.crew.ask("begin_settling")
        for _ in range(LOOKS if closely else 1):
            self.crew.ask("settle", 0.5 * tolerance)
            if self.complete or self.problem.settings.fast:
                break
            strays, primal = sums(self.crew.ask("look", MARGIN * tolerance, closely))
            if strays <= 0.1 * tolerance * primal:
                break
