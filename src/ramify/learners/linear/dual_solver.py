"""The dual solver of all linear learners: classes that are independent, or tied by their ancestors in a tree or a DAG.

    min over δ   ½ Σ_v ‖δ_v‖² + Σ_n Σ_i U_in L(y_in w_n·x_i),   w_n = Σ δ_v over n and its ancestors v

over all units v, with the loss L of the classes n. In a tree δ_v = w_v − w_parent(v) (Gopal & Yang 2013, section 3); above a
root, and above every class of a flat problem, there is zero. With u_n = Σ_i α_in y_in x_i and δ_v = Σ u_n over the classes at
and below v, the dual is Σ U h(α/U) − ½ Σ_v ‖δ_v‖².

Deviations from the paper. It alternates between levels; here every dual step changes all ancestors. Only pairs of a
document and a class that can matter are in the working set: candidates first, then those that a screening of all pairs
finds. The objective that is reported is that of the final weights: inner units as the dual has them, and each class solved
once more with the weights above it fixed, which closes nearly all of the gap that dual ascent leaves. Training stops when
that objective, losses of all pairs included, and the dual differ by no more than the tolerance.

The classes belong to the workers of a group: one worker with all threads of this process, or many on a cluster. This file
is the driver. It saves its own few numbers after each round, so that a run can be resumed and a lost worker replaced.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify.learners.linear.candidates import Signatures, find_candidates, learn_signatures
from ramify.learners.linear.flat_worker import FlatWorker
from ramify.learners.linear.partition import count_weights, estimate_needs, partition_classes, sum_counts, sum_vectors, sums
from ramify.learners.linear.problem import Certificate, Dual, Pairs, Problem, all_others, pair_up, resume
from ramify.learners.linear.shards import ShardedWeights, score_classes
from ramify.learners.linear.tree_worker import REACTIVATION, TreeWorker
from ramify.learners.linear.weights import merge_weights
from ramify.parallel import Executor, Stage, WorkerGroup, WorkerLostError, describe, stage
from ramify.parallel.checkpoints import invalid_checkpoint

CANDIDATES = 20  # classes for which a document is a candidate negative at first
CLASSES_PER_CANDIDATE, FEWEST_CANDIDATES = 16, 10  # of independent classes, of which a few candidates are most
SAMPLE = 64  # classes on which the fast mode estimates the cost of missing pairs
FIRST, FIRST_IN_TREE = 5e-2, 3e-2  # relative gap at which all pairs are screened for the first time
SMALL = 1 << 14  # pairs up to which all are used from the start
MARGIN = 5  # in tolerances: how far outside its margin a missing pair of a tree may be and still be added
SCREENINGS = 4  # of the missing pairs of a tree, while the weights above its classes are fixed
MOST_SCREENINGS = 20  # of independent classes
MOST_ROUNDS = 40  # over a tree before the next screening
MOST_GATHERED = 1 << 26  # weights that are gathered if workers could write them to shards
CLASSES_PER_SAVE, MOST_PARTS = 1024, 16  # classes of a worker that are solved between two checkpoints, and parts at most
GAP_SAMPLE, GAP_SAMPLE_OF_PART = 128, 48  # classes on which the gap is estimated before all are solved
TARGET, TARGET_WITH_MISSING = 0.9, 0.6  # fraction of the tolerance to reach there; less if missing pairs will add to the gap
ACTIVE_ROUNDS, IDLE_GAP = 3, 0.25  # rounds between two selections of active classes; gap of all others, in tolerances
PACE, SLOWEST = 0.17, 0.04  # how much a round over a tree should lower the logarithm of the gap, at most and at least


@dataclass(frozen=True, slots=True)
class TrainedWeights:
    """Weights, their certificate, and what a solution for other costs can start from.

    pairs: the dual variables, if requested; dual: the same for documents in their own order. figures: for each class its part
    of the objective and of the bound; inner units add the same to both. signatures, n_candidates: how candidate classes of a
    document are found, unless all pairs were used, and how many are scored. problem, order: of a start: what was solved, and
    the documents in the order of its rows.
    """

    weights: Any  # Weights or ShardedWeights
    certificate: Certificate
    start: Any = None
    pairs: Pairs | None = None
    dual: Dual | None = None
    figures: NDArray[np.float64] | None = None
    signatures: Signatures | None = None
    n_candidates: int = 0
    problem: Problem | None = None
    order: NDArray[np.int64] | None = None

    def score(self, X: csr_array) -> NDArray[np.float32]:
        """Scores, documents × classes; in the fast mode only candidate classes have a score of their own."""
        return score_classes(X, self.weights, self.signatures, self.n_candidates)


def solve(
    problem: Problem, executor: Executor, start: TrainedWeights | Dual | Pairs | None = None, keep_dual: bool = False,
    shards: Path | None = None,
) -> TrainedWeights:  # fmt: skip
    """Solve a problem to the relative duality gap of its settings.

    start: a solution of the same classes with other costs; dual variables of classes that may have changed; or the pairs to
    use, if all others cost nothing. keep_dual: whether to return the dual variables. shards: where workers write the weights
    if there are too many to gather.
    """
    complete = len(problem.rows) * problem.n_classes <= SMALL or problem.settings.loss == "logistic" or isinstance(start, Pairs)
    placed = executor.place(problem.rows)
    signatures: Signatures | None = None
    if isinstance(start, Pairs):
        pairs = start
    elif isinstance(start, Dual):
        pairs = resume(start, problem, complete)
    elif start is not None and start.pairs is not None:
        # dual variables in proportion to the new costs, so that those at a bound stay there; those without a bound change less
        known, costs, signatures = start.pairs, problem.costs, start.signatures
        factor = costs.negative / np.maximum(known.cost_negative, np.float32(1e-30))
        factor = np.sqrt(factor) if problem.settings.loss == "squared_hinge" else factor
        alphas = known.alphas * np.repeat(factor, np.diff(known.offsets))
        pairs = replace(known, cost_positive=costs.positive, cost_negative=costs.negative, alphas=alphas)
    else:
        signatures, others = (None, all_others(problem.own)) if complete else _find_candidates(problem, executor, placed)
        pairs = pair_up(problem.own, others, problem.costs.positive, problem.costs.negative)
    partitions = partition_classes(problem, pairs, executor.worker_threads, complete)
    needs, n_weights = estimate_needs(problem, partitions), count_weights(problem, partitions)
    del pairs  # the workers have them now
    is_warm, placed_problem = isinstance(start, Dual), executor.place(replace(problem, rows=placed))
    make, solver = (FlatWorker, FlatSolver) if problem.forest.is_flat else (TreeWorker, TreeSolver)
    ranges = [(each.first, each.last) for each in partitions]
    with executor.start_workers(make, placed_problem, partitions, needs) as group:
        del partitions
        while True:
            try:
                certificate = solver(problem, group, len(ranges), complete, is_warm).run()
                figures = np.concatenate(group.call(make.objective_by_class))
                if shards is not None and n_weights > MOST_GATHERED:
                    in_fast = signatures if problem.settings.fast else None
                    stored = None if in_fast is None else in_fast.in_original_order(problem.rows.place)
                    names = group.call(FlatWorker.write_shards, str(shards), stored)
                    weights: Any = ShardedWeights.open([shards / name for each in names for name in each])
                else:
                    forest, parts = problem.forest, group.call(FlatWorker.weights)
                    units = [forest.part(*each)[1] for each in ranges] if len(ranges) > 1 else []
                    class_units = np.flatnonzero(forest.class_of >= 0)
                    weights = merge_weights(parts, units, forest.parent, class_units, executor, forest.joins)
                solved_pairs = Pairs.joined(group.call(FlatWorker.dual_variables)) if keep_dual else None
                return TrainedWeights(weights, certificate, pairs=solved_pairs, figures=figures, signatures=signatures)
            except WorkerLostError:
                group.restart()


def _find_candidates(problem: Problem, executor: Executor, placed: Any) -> tuple[Signatures, csc_array]:
    """How candidates are found, and for every class its candidate negatives."""
    with stage("finding candidates", 2) as step:
        signatures = learn_signatures(problem.rows, problem.own, executor, placed)
        step.advance()
        count = CANDIDATES
        if problem.forest.is_flat and not problem.settings.fast:
            count = min(count, max(FEWEST_CANDIDATES, problem.n_classes // CLASSES_PER_CANDIDATE))
        others = csc_array(find_candidates(problem.rows, signatures, csr_array(problem.own), count, executor, placed))
        step.advance()
    return signatures, others


@dataclass(slots=True)
class FlatProgress:
    """Where the solver of independent classes is.

    rounds: inner passes so far. screenings: how many there were. part: the next part of the classes to solve. passes: the
    most inner passes of the parts before.
    """

    tolerance: float
    rounds: int = 0
    screenings: int = 0
    part: int = 0
    passes: int = 0


class FlatSolver:
    """Solves independent classes on a worker group.

    complete: whether all pairs are in the working set. is_warm: whether the dual variables are those of an earlier solution.
    """

    def __init__(
        self, problem: Problem, group: WorkerGroup[FlatWorker], n_workers: int, complete: bool, is_warm: bool = False
    ) -> None:
        self.problem, self.group, self.n_workers = problem, group, n_workers
        self.complete, self.is_warm = complete, is_warm

    def run(self) -> Certificate:
        """Solve all classes, screen the missing pairs, add violators; until the gap is within the tolerance."""
        settings, group = self.problem.settings, self.group
        first = settings.tolerance if self.complete or self.is_warm else max(settings.tolerance, FIRST)
        at = _restored(group, FlatProgress) or FlatProgress(first)
        parts = min(1 + self.problem.n_classes // (CLASSES_PER_SAVE * self.n_workers), MOST_PARTS)
        with stage("training", None) as step:
            while True:
                while at.part < parts:
                    at.passes = max(at.passes, *group.call(FlatWorker.solve_classes, at.tolerance, at.part, parts))
                    at.part += 1
                    group.save(asdict(at))
                at.rounds, at.screenings = at.rounds + at.passes, at.screenings + 1
                if self.complete or settings.fast:
                    missing = 0.0 if self.complete else self.missing_cost()
                    primal, dual = sums(group.call(FlatWorker.objective))
                    return Certificate(primal + missing, dual, at.rounds)
                found = group.call(FlatWorker.screen, 0.5 * at.tolerance, at.tolerance <= settings.tolerance)
                n_violators, primal, dual = sums(found)
                certificate = Certificate(primal, dual, at.rounds)
                step.advance()
                self.describe(step, f"pass {at.screenings}, duality gap {certificate.gap:.1e}")
                is_last = at.screenings >= MOST_SCREENINGS or (at.tolerance < settings.tolerance and n_violators == 0)
                if certificate.gap <= settings.tolerance or is_last:
                    return certificate
                # classes without violators are done, once they are solved as closely as they must be
                group.call(FlatWorker.add_violators, at.tolerance < settings.tolerance)
                at = FlatProgress(0.9 * settings.tolerance, at.rounds, at.screenings)
                group.save(asdict(at))

    def describe(self, step: Stage, where: str) -> None:
        """Show where the solver is, and how much was sent over the network."""
        describe(step, "; ".join(filter(None, (where, self.group.traffic()))))

    def missing_cost(self) -> float:
        """What all missing pairs cost at most, estimated on a sample of the classes."""
        sample = self.sample(SAMPLE, self.problem.classes)
        costs = self.group.call(FlatWorker.estimate_missing_cost, sample)
        return math.fsum(costs) * self.problem.n_classes / len(sample)

    def sample(self, size: int, classes: NDArray[Any]) -> list[int]:
        """Some of the classes, the same ones every time."""
        order = np.random.default_rng(self.problem.settings.seed).permutation(classes)
        return sorted(order[:size].tolist())


@dataclass(slots=True)
class TreeProgress:
    """Where the solver of a tree is.

    is_warm: whether dual ascent continues an earlier solution, on classes whose part of the gap is large (active).
    last: the last round of this ascent. check: the round in which the gap is estimated next. estimates: rounds and gaps, in
    targets, of the estimates so far. pace: how fast the logarithm of the gap falls. has_run: whether this ascent has to run or
    has run rounds.
    """

    tolerance: float
    is_warm: bool
    rounds: int = 0
    active: list[int] | None = None
    last: int = -1
    check: int = 0
    pace: float = PACE
    estimates: list[tuple[int, float]] = field(default_factory=list)
    has_run: bool = True


class TreeSolver(FlatSolver):
    """Solves the classes of a tree on a group of tree workers."""

    group: WorkerGroup[TreeWorker]  # type: ignore[assignment]

    def run(self) -> Certificate:
        """Dual ascent and inner passes in turn, until the gap is within the tolerance or rounds are used up."""
        settings, group = self.problem.settings, self.group
        first = settings.tolerance if self.complete or self.is_warm else max(settings.tolerance, FIRST_IN_TREE)
        self.at = at = _restored(group, TreeProgress) or TreeProgress(first, self.is_warm)
        is_new = group.saved_round is None
        with stage("training", None) as step:
            while True:
                if is_new:
                    group.all_reduce(TreeWorker.count_paths, sum_counts, TreeWorker.begin_ascent)
                    group.all_reduce(TreeWorker.recompute_deltas, sum_vectors, TreeWorker.add_changes)
                self._dual_ascent(step)
                if at.tolerance <= settings.tolerance:
                    group.all_reduce(TreeWorker.recompute_deltas, sum_vectors, TreeWorker.add_changes)
                self._solve_classes()
                missing = self.missing_cost() if settings.fast and not self.complete else 0.0
                primal, dual, inner, n_added = sums(group.call(TreeWorker.certify))
                certificate = Certificate(primal + inner + missing, dual + inner, at.rounds)
                step.advance()
                if certificate.gap <= settings.tolerance or at.rounds >= settings.max_iter or settings.fast:
                    return certificate
                at.tolerance, at.last, is_new = settings.tolerance, -1, n_added > 0 or at.is_warm
                if n_added:
                    group.call(TreeWorker.adopt_added)
                elif at.is_warm:  # the classes that were not active matter, too
                    at.is_warm, at.active = False, None

    def _dual_ascent(self, step: Stage) -> None:
        """Rounds of dual ascent until the gap, estimated on a sample of the classes, is within a fraction of the tolerance."""
        at, group, settings = self.at, self.group, self.problem.settings
        is_final = self.complete or at.tolerance > settings.tolerance
        target = at.tolerance * (TARGET if is_final else TARGET_WITH_MISSING)
        if at.last < 0:  # a new ascent; from an earlier solution there may be nothing to do, so it begins with an estimate
            at.last = min(at.rounds + (settings.max_iter if self.complete else MOST_ROUNDS), settings.max_iter)
            at.check = at.rounds if at.is_warm else min(at.rounds + REACTIVATION, at.last)
            at.pace, at.estimates, at.has_run = PACE, [], at.active is None
        while True:
            while at.rounds < at.check:
                group.all_reduce(TreeWorker.ascent_round, sum_vectors, TreeWorker.add_changes)
                at.rounds, at.has_run = at.rounds + 1, True
                group.save(asdict(at))
                gap = f", duality gap about {at.estimates[-1][1] * target:.1e}" if at.estimates else ""
                self.describe(step, f"round {at.rounds}{gap}")
            if at.is_warm:
                self._select_active()
            duals = primals = inner = 0.0
            for sample, fraction in self._gap_samples():
                dual, primal, inner = sums(group.call(TreeWorker.estimate_gap, sample, at.tolerance))
                duals, primals = duals + dual / fraction, primals + primal / fraction
            excess = (primals - duals) / max(inner + primals, 1e-300) / target
            if (excess <= 1 and at.has_run) or at.rounds >= at.last:
                return
            if at.is_warm:
                n_rounds = ACTIVE_ROUNDS
            else:
                if at.estimates:
                    rounds, previous = at.estimates[-1]
                    at.pace = min(PACE, max(SLOWEST, math.log(previous / excess) / (at.rounds - rounds)))
                n_rounds = math.ceil(math.log(excess) / at.pace)
            at.estimates, at.check = [(at.rounds, excess)], min(at.rounds + n_rounds, at.last)

    def _select_active(self) -> None:
        """Leave out the classes with the smallest gaps, which are next to nothing all together."""
        primal, dual = np.concatenate(self.group.call(TreeWorker.gap_by_class)).T
        order = np.argsort(primal - dual)
        is_idle = np.cumsum((primal - dual)[order]) <= IDLE_GAP * self.at.tolerance * primal.sum()
        self.at.active = np.sort(order[~is_idle]).tolist()
        self.group.call(TreeWorker.select_active, self.at.active)

    def _gap_samples(self) -> list[tuple[list[int], float]]:
        """Samples of the classes and their fraction of all: one of active classes and one of the others, if some are active."""
        classes, active = self.problem.classes, self.at.active
        parts = [classes] if active is None else [np.asarray(active, np.int64), np.setdiff1d(classes, active)]
        size = GAP_SAMPLE if active is None else GAP_SAMPLE_OF_PART
        return [(self.sample(size, part), min(size, len(part)) / len(part)) for part in parts if len(part)]

    def _solve_classes(self) -> None:
        """Solve all classes with the weights above them fixed, adding pairs that violate the margin."""
        tolerance, group = self.at.tolerance, self.group
        closely = tolerance <= self.problem.settings.tolerance
        group.call(TreeWorker.begin_inner_passes)
        for _ in range(SCREENINGS if closely else 1):
            group.call(TreeWorker.solve_classes, 0.1 * tolerance)
            if self.complete or self.problem.settings.fast:
                break
            cost, primal = sums(group.call(TreeWorker.screen_and_add, MARGIN * tolerance, closely))
            if cost <= 0.1 * tolerance * primal:
                break


def _restored(group: WorkerGroup[Any], kind: type[Any]) -> Any:
    """Where the solver was in the last saved round; None at the beginning."""
    if group.saved_round is None:
        return None
    try:
        return kind(**group.saved_round)
    except TypeError:
        raise invalid_checkpoint("a round of another solver") from None
