"""The solver of classes tied along a DAG or an undirected graph of labels.

    min over W   ½ Σ_ab M_ab w_a·w_b + Σ_n Σ_i U_in L(y_in w_n·x_i)        (Gopal & Yang 2013, section 3; M: taxonomy_ties.py)

Deviation from the paper. It uses coordinate descent over the classes, each given its neighbours; information then moves one
edge per round. This solver alternates between ties and losses (Douglas–Rachford splitting, as in ADMM), with a state s, one
vector per class, and a diagonal T. T_n is the geometric mean of the curvatures of w_n with its neighbours fixed and free,
M_nn and 1 / (M⁻¹)_nn:

    ties     V = (M + T)⁻¹ T s              all units at once, units without loss included, by one sparse factorization
    losses   W = argmin over w_n of ½ T_n ‖w_n − (2 v_n − s_n)‖² + Σ_i U_in L     every class by itself, in the dual
    state    s ← s + W − V, mixed with the last few steps after Anderson

At T = diag M the second step is the paper's: 2 v_n − s_n is then the weighted mean of n's neighbours in V. The dual
variables α of that step give a bound: with u_n = Σ_i α y x no weights have an objective below Σ U h(α/U) − ½ Σ_ab (M⁻¹)_ab
u_a·u_b. The gap between W's objective and that bound is the gap of the classes by themselves, plus ½ r·M⁻¹r with r = MW −
u, the gap of the ties; their ratio decides how closely classes are solved in the next round. Training stops when the best
of both sides differ by no more than the tolerance. All pairs of a document and a class are used.

The units belong to the workers of a group: one worker with all threads of this process, or many on a cluster. W, u and s of
a class stay with its owner; only right-hand sides of units at the boundary between workers (see graph_partition.py) and
sums are sent. This file is the driver; it saves its own few numbers after each round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from ramify.errors import InputError
from ramify.learners.linear import graph_partition
from ramify.learners.linear.dual_solver import TrainedWeights
from ramify.learners.linear.graph_partition import Given, GraphPartition
from ramify.learners.linear.graph_problem import SCALES, AndersonMixer, GraphProblem
from ramify.learners.linear.graph_worker import GraphWorker, feature_ranges
from ramify.learners.linear.partition import sums
from ramify.learners.linear.problem import Certificate, Pairs, in_order
from ramify.learners.linear.weights import merge_weights
from ramify.parallel import Executor, WorkerGroup, WorkerLostError, stage
from ramify.parallel.checkpoints import invalid_checkpoint

MOST_WEIGHTS = 1 << 30  # units × features of a worker
DEPTH = 5  # steps that are mixed
MEMORY = 1 << 28  # numbers that a worker stores for mixing
CLASS_TOLERANCE = 1e-6  # times the gap so far: small, for ties multiply the gap of the classes by up to 1 / anchor
PASSES = (2, 64)  # over the pairs of a class in a round, at least and at most
CLOSER, LOOSER = 0.3, 0.03  # ratio of the classes' gap to the ties' gap beyond which passes double or halve


def solve_graph(problem: GraphProblem, executor: Executor, with_pairs: bool = False) -> TrainedWeights:
    """Solve a problem to the relative duality gap of its settings, or until its rounds are used up.

    with_pairs: whether to return the dual variables of the last round.
    """
    structure, n_features = problem.structure, problem.rows.n_features
    partitions = graph_partition.partition_units(structure, problem.work, executor.worker_threads)
    _refuse_too_many(partitions, n_features, len(executor.worker_threads))
    size = 2 * n_features * max(len(each.classes) for each in partitions)
    partitions = [replace(each, depth=min(DEPTH, MEMORY // max(1, size))) for each in partitions]
    needs = graph_partition.estimate_graph_needs(problem, partitions)
    with executor.start_workers(GraphWorker, executor.place(problem), partitions, needs) as group:
        while True:
            try:
                certificate = _run(problem, group, len(partitions[0].boundary))
                pairs = Pairs.joined(group.call(GraphWorker.dual_variables)) if with_pairs else None
                if pairs is not None and len(partitions) > 1:
                    pairs = in_order(pairs, np.concatenate([each.classes for each in partitions]))
                units, no_parents = [each.units for each in partitions], np.full(len(structure), -1, dtype=np.int32)
                class_units = structure.class_units.astype(np.int64)
                weights = merge_weights(group.call(GraphWorker.weights), units, no_parents, class_units, executor)
                return TrainedWeights(weights, certificate, pairs=pairs)
            except WorkerLostError:
                group.restart()


def _refuse_too_many(partitions: Sequence[GraphPartition], n_features: int, n_nodes: int) -> None:
    most = max(len(each.units) for each in partitions)
    if most * n_features > MOST_WEIGHTS:
        ways = [f"keep at most {MOST_WEIGHTS // most} features", "or use a tree"]
        if len(partitions) == n_nodes:  # otherwise more nodes would not get more work
            ways.insert(0, "use more nodes")
        raise InputError(
            f"{most} units with {n_features} features each are {most * n_features} weights, and one node can have "
            f"{MOST_WEIGHTS} of a graph or DAG; {', '.join(ways)}."
        )


def _run(problem: GraphProblem, group: WorkerGroup[GraphWorker], n_boundary: int) -> Certificate:
    """Rounds of ties and losses, until the gap is within the tolerance or rounds are used up."""
    best, passes, gap, mixer = _restored(group.saved_round)
    complements = partial(graph_partition.sum_complements, n_boundary)
    vectors = partial(graph_partition.sum_vectors, n_boundary)

    def send_boundary(give: Callable[[GraphWorker], Given], take: Callable[[GraphWorker, Any], None]) -> None:
        """Add up the right-hand sides of the boundary, for one range of features after the other."""
        for _ in feature_ranges(problem.rows.n_features, n_boundary):
            group.all_reduce(give, vectors, take)

    if group.saved_round is None:
        group.all_reduce(GraphWorker.give_ties, complements, GraphWorker.take_ties)
        group.all_reduce(GraphWorker.give_shifted, complements, GraphWorker.take_shifted)
    with stage("training", None) as step:
        while True:
            send_boundary(GraphWorker.give_point, GraphWorker.take_point)
            group.call(GraphWorker.solve_classes, passes, CLASS_TOLERANCE * gap, best.rounds)
            send_boundary(GraphWorker.give_solved, GraphWorker.take_solved)
            ties, bound, entropy, class_gap, *others = sums(group.call(GraphWorker.measure))
            losses, products = others[: len(SCALES)], others[len(SCALES) :]
            primals = np.square(SCALES) * ties + losses
            primal, dual = float(primals.min()), entropy - bound
            if primal < best.primal:
                group.call(GraphWorker.keep_best, SCALES[int(primals.argmin())])
            best = Certificate(min(best.primal, primal), max(best.dual, dual), best.rounds + 1)
            step.advance()
            if best.gap <= problem.settings.tolerance or best.rounds >= problem.settings.max_iter:
                send_boundary(GraphWorker.give_best, GraphWorker.take_best)
                return best
            group.call(GraphWorker.step, mixer.next(products))
            gap, tie_gap = min(gap, best.gap), max(0.0, primal - dual - class_gap)
            if class_gap > CLOSER * tie_gap:
                passes = min(2 * passes, PASSES[1])
            elif class_gap < LOOSER * tie_gap:
                passes = max(passes // 2, PASSES[0])
            mixing = {"gram": mixer.gram.tolist(), "size": mixer.size, "is_first": mixer.is_first}
            group.save({"best": asdict(best), "passes": passes, "gap": gap, "mixer": mixing})


def _restored(saved: dict[str, Any] | None) -> tuple[Certificate, int, float, AndersonMixer]:
    """The best certificate, passes, gap and mixer of the last saved round, or those of the beginning."""
    if saved is None:
        return Certificate(np.inf, -np.inf, 0), 2 * PASSES[0], 1.0, AndersonMixer()
    try:
        gram = np.asarray(saved["mixer"]["gram"], dtype=np.float64)
        size, is_first = float(saved["mixer"]["size"]), bool(saved["mixer"]["is_first"])
        mixer = AndersonMixer(gram.reshape(len(gram), len(gram)), size, is_first)
        return Certificate(**saved["best"]), int(saved["passes"]), float(saved["gap"]), mixer
    except (KeyError, TypeError, ValueError):
        raise invalid_checkpoint("a round of another solver") from None
