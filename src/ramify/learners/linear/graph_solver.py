"""The solver for classes tied along a DAG or an undirected graph of labels.

    min over W   ½ Σ_ab M_ab w_a·w_b + Σ_n Σ_i U_in L(y_in w_n·x_i)        (Gopal & Yang 2013, section 3; M: see structure.py)

Deviation from the paper. It descends over the classes in turn, each given its neighbours; what neighbours have in common then
travels one edge a round. Here ties and losses are taken in turn (Douglas & Rachford's splitting, as in ADMM), with a state s,
one vector a class, and a diagonal T. T_n lies halfway between what holds w_n when its neighbours are fixed and when they are
free, M_nn and 1 / (M⁻¹)_nn:

    ties     V = (M + T)⁻¹ T s              all units at once, units without loss included, by one sparse factorization
    losses   W = argmin over w_n of ½ T_n ‖w_n − (2 v_n − s_n)‖² + Σ_i U_in L     every class by itself, in the dual
    state    s ← s + W − V, mixed with the last few steps after Anderson

At T = diag M the second step is the paper's: 2 v_n − s_n is then the weighted mean of n's neighbours in V. The dual variables
α of that step are a bound: with u_n = Σ_i α y x no weights go below Σ U h(α/U) − ½ Σ_ab (M⁻¹)_ab u_a·u_b. The distance between
W's objective and that bound is what classes lack by themselves, plus ½ r·M⁻¹r with r = MW − u, what ties lack; their proportion
decides how closely classes are solved in the next round. Training stops when the best of both sides differ by no more than the
tolerance. All pairs of a document and a class are worked on.

The work is done by a crew, whose members own the units: one with all threads of this process, or many on a cluster. W, u and s
of a class stay with its owner; all that travels are right-hand sides of units at the boundary between members (see divided.py),
and sums. Here is said what members do next, and when they are done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ramify.errors import InputError
from ramify.learners.linear.estimates import estimate_graph_needs
from ramify.learners.linear.graph_partition import GraphPartition, add_complements, add_vectors, partition_units, with_depth
from ramify.learners.linear.graph_problem import SCALES, AndersonMixer, GraphProblem, Measures
from ramify.learners.linear.graph_worker import GraphWorker, stretches_of
from ramify.learners.linear.partition import sums
from ramify.learners.linear.problem import Certificate, Pairs, in_order
from ramify.learners.linear.taxonomy_ties import Structure
from ramify.learners.linear.weights import Weights, stack_rows
from ramify.parallel import Executor, WorkerGroup, stage

MOST_WEIGHTS = 1 << 30  # units × features of a member
DEPTH = 5  # steps that are mixed
MEMORY = 1 << 28  # numbers that a member keeps for mixing
CLASS_TOLERANCE = 1e-6  # times the gap reached: small, for ties multiply what classes lack by up to 1 / anchor
PASSES = (2, 64)  # over the pairs of a class in a round, at least and at most
CLOSER, LOOSER = 0.3, 0.03  # what classes lack, relative to what ties lack, beyond which passes double or halve


@dataclass(frozen=True, slots=True)
class GraphSolution:
    """Weights of all units, what is certain of them, and the dual variables of the last round, where they were asked for."""

    weights: Weights
    certificate: Certificate
    pairs: Pairs | None = None


def solve_graph(problem: GraphProblem, executor: Executor, with_pairs: bool = False) -> GraphSolution:
    """Solve a problem to the relative duality gap of its settings, or until its rounds are used up."""
    shares = partition_units(problem.structure, problem.work, executor.worker_threads)
    n_features = problem.rows.n_features
    _refuse_too_many(shares, n_features, len(executor.worker_threads))
    size = 2 * n_features * max(len(share.classes) for share in shares)
    shares = with_depth(shares, min(DEPTH, MEMORY // max(1, size)))
    needs = estimate_graph_needs(problem, shares)
    with executor.start_workers(GraphWorker, executor.place(problem), shares, needs) as crew:
        certificate = GraphSolver(problem, crew, len(shares[0].boundary)).run()
        pairs = _join_pairs(list(crew.fetch("dual_variables")), shares) if with_pairs else None
        weights = _join_weights(list(crew.fetch("weights")), shares, problem.structure, executor)
    return GraphSolution(weights, certificate, pairs)


def _refuse_too_many(shares: Sequence[GraphPartition], n_features: int, n_machines: int) -> None:
    most = max(len(share.units) for share in shares)
    if most * n_features > MOST_WEIGHTS:
        ways = [f"keep at most {MOST_WEIGHTS // most} features", "or use a tree"]
        if len(shares) == n_machines:  # otherwise more of them would not have more to do
            ways.insert(0, "use more machines")
        raise InputError(
            f"{most} units with {n_features} features each are {most * n_features} weights, and one machine can have "
            f"{MOST_WEIGHTS} of a graph or DAG; {', '.join(ways)}."
        )


@dataclass(slots=True)
class GraphSolver:
    """Tells a crew that owns the units of a graph what to do."""

    problem: GraphProblem
    crew: WorkerGroup
    n_boundary: int

    def run(self) -> Certificate:
        """Draw and settle classes in turn until the gap is within the tolerance, or rounds are used up."""
        self._begin()
        best, passes, gap, mixer = Certificate(np.inf, -np.inf, 0), 2 * PASSES[0], 1.0, AndersonMixer()
        settings = self.problem.settings
        with stage("solving", None) as step:
            while True:
                self._carry("pull")
                self.crew.ask("settle", passes, CLASS_TOLERANCE * gap, best.rounds)
                self._carry("found")
                look, products = self._look()
                if look.primal < best.primal:
                    self.crew.ask("hold", look.scale)
                best = Certificate(min(best.primal, look.primal), max(best.dual, look.dual), best.rounds + 1)
                step.advance()
                if best.gap <= settings.tolerance or best.rounds >= settings.max_iter:
                    self._carry("best")
                    return best
                self.crew.ask("move", mixer.next(products))
                passes, gap = _choose_passes(passes, look), min(gap, best.gap)
                self.crew.keep()

    def _begin(self) -> None:
        """Let all members know Schur's complements: first of M, from which T follows."""
        for what in ("ties", "drawn"):
            self.crew.exchange(f"give_{what}", partial(add_complements, self.n_boundary), f"take_{what}")

    def _carry(self, what: str) -> None:
        """Let right-hand sides of the boundary travel, for one stretch of features after the other."""
        for _ in stretches_of(self.problem.rows.n_features, self.n_boundary):
            self.crew.exchange(f"give_{what}", partial(add_vectors, self.n_boundary), f"take_{what}")

    def _look(self) -> tuple[Measures, list[float]]:
        """Both sides of the problem at what classes have found, and products for mixing."""
        numbers = sums(self.crew.ask("measure"))
        losses, products = numbers[4 : 4 + len(SCALES)], numbers[4 + len(SCALES) :]
        return Measures.at(numbers[:4], np.asarray(losses)), products


def _choose_passes(passes: int, look: Measures) -> int:
    if look.class_gap > CLOSER * look.tie_gap:
        return min(2 * passes, PASSES[1])
    return max(passes // 2, PASSES[0]) if look.class_gap < LOOSER * look.tie_gap else passes


# ---- what members found, joined --------------------------------------------------------------------------------------------


def _join_weights(parts: list[Weights], shares: Sequence[GraphPartition], structure: Structure, executor: Executor) -> Weights:
    """The weights of all units, from those of the members' own; each part is given up."""
    n, n_features, bias = len(structure), parts[0].n_features, np.zeros(len(structure))
    if len(parts) == 1:
        return parts[0]
    for share, part in zip(shares, parts, strict=True):
        bias[share.units] = part.bias
    rows = [
        (share.units, part.deltas.indptr[1:], part.deltas.indices, part.deltas.data)
        for share, part in zip(shares, parts, strict=True)
    ]
    parts.clear()
    deltas = stack_rows(rows, n, n_features, executor)
    return Weights(deltas, bias, np.full(n, -1, dtype=np.int32), structure.class_units.astype(np.int64))


def _join_pairs(parts: list[Pairs], shares: Sequence[GraphPartition]) -> Pairs:
    """The pairs of all classes, in their order."""
    return parts[0] if len(parts) == 1 else in_order(Pairs.joined(parts), np.concatenate([share.classes for share in shares]))
