"""Graphs that several workers own: divided solves against dense ones, and solutions against one worker and the slow twin."""

import json
from collections import Counter
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from apart import ApartExecutor, ApartWorkerGroup
from graph_problems import (
    LOSSES,
    as_the_oracle_takes_it,
    assert_solved,
    make_task,
    random_dag,
    random_graph,
    solve_graph,
    some_of,
    weights_of,
)
from oracles import recursive_regularization as oracle
from scipy.sparse import csr_array

from ramify.errors import InputError
from ramify.learners import RecursiveLogistic
from ramify.learners.linear import graph_partition, graph_worker
from ramify.learners.linear import graph_solver as graph_solver
from ramify.learners.linear.graph_partition import (
    OwnedUnits,
    estimate_graph_needs,
    partial_system,
    partial_system_with_fixed,
    partition_units,
    sum_complements,
)
from ramify.learners.linear.graph_worker import GraphWorker
from ramify.learners.linear.taxonomy_ties import tie_dag, tie_graph
from ramify.parallel import Checkpoints, SerialExecutor, checkpointing, reporting_to, running_on
from ramify.parallel.values import size_of
from ramify.taxonomy import LabelGraph, Taxonomy

pytestmark = pytest.mark.slow

THREADS = [(3, 1), (2, 1, 1), (1, 1, 1, 1, 1)]


def labels_tied(n, edges):
    return LabelGraph.from_edges([(f"l{a}", f"l{b}") for a, b in edges], [f"l{a}" for a in range(n)])


def in_groups(sizes):
    starts = np.cumsum([0, *sizes])
    return [(a, b) for first, last in pairwise(starts) for a in range(first, last) for b in range(first, a)]


def wide_dag():
    """Two levels below two roots; some leaves have two or three parents, and some inner nodes documents of their own."""
    edges = [("r", None), ("s", None), *((f"i{k}", "r" if k < 3 else "s") for k in range(5))]
    edges += [(f"l{k}", f"i{k % 5}") for k in range(10)] + [("l3", "i0"), ("l7", "i4"), ("l7", "s"), ("i2", "s")]
    taxonomy = Taxonomy.from_edges(edges)
    return tie_dag(taxonomy, np.array([taxonomy.index(name) for name in ("i1", "i4", *(f"l{k}" for k in range(10)))]))


KINDS = {
    "a DAG": wide_dag,
    "a chain": lambda: tie_graph(labels_tied(12, [(k, k + 1) for k in range(11)]), np.arange(0, 12, 2)),
    "a clique": lambda: tie_graph(labels_tied(7, in_groups([7])), np.arange(6)),
    "a hub": lambda: tie_graph(labels_tied(11, [(4, k) for k in range(11) if k != 4]), np.arange(11)),
    "a hub without documents": lambda: tie_graph(labels_tied(9, [(8, k) for k in range(8)]), np.arange(8)),
    "parts": lambda: tie_graph(labels_tied(12, in_groups([4, 3, 5])), np.array([0, 1, 4, 5, 8, 9, 11])),
    "isolated labels": lambda: tie_graph(labels_tied(6, []), np.array([0, 2, 3])),
    "two cliques with a bridge": lambda: tie_graph(labels_tied(10, [*in_groups([5, 5]), (2, 7)]), np.arange(10)),
}


def partitions_of(structure, threads, work=None):
    return partition_units(structure, np.ones(len(structure)) if work is None else work, threads)


def random_structure(seed):
    rng = np.random.default_rng(seed)
    if seed % 2:
        taxonomy = random_dag(rng, 30)
        return tie_dag(taxonomy, some_of(rng, 30))
    return tie_graph(random_graph(rng, 25, density=(0.03, 0.1, 0.3)[seed % 3]), some_of(rng, 25))


STRUCTURES = [pytest.param(make, id=name) for name, make in KINDS.items()] + [
    pytest.param(lambda seed=seed: random_structure(seed), id=f"random {seed}") for seed in range(6)
]


# ---- who owns what ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("threads", [(1,), *THREADS])
def test_inner_units_of_different_workers_are_not_tied(structure, threads):
    structure = structure()
    partitions = partitions_of(structure, threads)
    owner = np.full(len(structure), -1)
    for k, partition in enumerate(partitions):
        assert np.all(owner[partition.units] == -1)
        owner[partition.units] = k
        np.testing.assert_array_equal(partition.units[np.isin(partition.units, structure.class_units)],
                                      np.sort(structure.class_units[partition.classes]))  # fmt: skip
    assert np.all(owner >= 0)
    assert all(len(partition.classes) for partition in partitions)
    assert len(partitions) == min(len(threads), len(structure.class_units))
    is_inner = ~np.isin(np.arange(len(structure)), partitions[0].boundary)
    a, b = structure.M.nonzero()
    assert np.all((owner[a] == owner[b]) | ~(is_inner[a] & is_inner[b]))


def test_boundaries_are_as_small_as_they_can_be():
    sizes = {name: len(partitions_of(make(), (1, 1, 1))[0].boundary) for name, make in KINDS.items()}
    assert sizes["a hub"] == sizes["a hub without documents"] == 1
    assert sizes["isolated labels"] == 0
    assert sizes["a chain"] == 2
    assert len(partitions_of(KINDS["two cliques with a bridge"](), (1, 1))[0].boundary) == 1
    assert len(partitions_of(tie_graph(labels_tied(12, in_groups([4] * 3)), np.arange(12)), (1, 1, 1))[0].boundary) == 0


def test_a_large_tree_is_cut_along_its_branches():
    edges = [("r", None), *((f"r{a}", "r") for a in range(8)), *((f"r{a}-{b}", f"r{a}") for a in range(8) for b in range(50))]
    taxonomy = Taxonomy.from_edges(edges)
    partitions = partitions_of(tie_dag(taxonomy, np.flatnonzero(taxonomy.is_leaf)), (1, 1, 1, 1))
    assert len(partitions[0].boundary) == 1
    assert [len(partition.classes) for partition in partitions] == [100] * 4


def test_groups_are_found_whatever_their_labels_are_called():
    rng = np.random.default_rng(0)
    number = rng.permutation(60)
    within = [
        (a, b) for first in (0, 30) for a in range(first, first + 30) for b in rng.integers(first, first + 30, size=4) if a != b
    ]
    edges = {tuple(sorted((number[a], number[b]))) for a, b in [*within, (0, 31), (5, 44), (9, 58)]}
    partitions = partitions_of(tie_graph(labels_tied(60, edges), np.arange(60)), (1, 1))
    assert len(partitions[0].boundary) == 3
    assert [len(partition.units) for partition in partitions] == [30, 30]


def test_work_is_divided_in_proportion_to_threads():
    partitions = partitions_of(tie_graph(labels_tied(400, [(k, k + 1) for k in range(399)]), np.arange(400)), (1, 4, 3))
    np.testing.assert_allclose([len(partition.units) for partition in partitions], [50, 200, 150], atol=10)


def test_needs_grow_with_the_problem_and_shrink_with_the_workers():
    structure = KINDS["two cliques with a bridge"]()
    small, large = (make_task(np.random.default_rng(0), structure, "hinge", n_documents=n) for n in (25, 25_000))

    def needs(task, *threads):
        return estimate_graph_needs(task, partition_units(structure, task.work, threads))

    assert needs(large, 1).shared > needs(small, 1).shared
    assert needs(large, 1).each[0] > needs(small, 1).each[0]
    assert needs(large, 1, 1).seconds == pytest.approx(needs(large, 2).seconds) == pytest.approx(needs(large, 1).seconds / 2)
    assert max(needs(large, 1, 1).each) < needs(large, 1).each[0]


def test_labels_that_are_tied_too_closely_are_divided_among_fewer_workers(monkeypatch):
    monkeypatch.setattr(graph_partition, "MOST_BOUNDARY", 3)
    told = []
    with reporting_to(Notes(told)):
        partitions = partitions_of(KINDS["a clique"](), (1, 1, 1))
    assert [len(partition.boundary) for partition in partitions] == [3, 3]
    assert told == ["Labels are tied so closely that only 2 of 3 nodes are used."]
    monkeypatch.setattr(graph_partition, "MOST_BOUNDARY", 2)
    assert len(partitions_of(KINDS["a clique"](), (1, 1, 1))) == 1


class Notes:
    def __init__(self, told):
        self.told = told

    def stage(self, title, total):
        return nullcontext()

    def note(self, line):
        self.told.append(line)


# ---- divided solves --------------------------------------------------------------------------------------------------------


def solve_divided(systems, parts, boundary, right):
    """x of all units, from what workers find with each other's help."""
    S = sum_complements(len(boundary), [(p.places, s.complement()[None]) for s, p in zip(systems, parts, strict=True)])[0]
    local = [np.where((np.arange(len(part)) < part.n_own)[:, None], right[part.units], 0) for part in parts]
    given = np.zeros((len(boundary), right.shape[1]))
    for system, part, b in zip(systems, parts, local, strict=True):
        system.close(S)
        given[part.places[part.touched]] += system.condense(b)
    x = np.full(right.shape, np.nan)
    for system, part, b in zip(systems, parts, local, strict=True):
        x[part.units[: part.n_own]] = system.solve(b, given)[: part.n_own]
    return x


@pytest.fixture(params=[(1,), *THREADS], ids=str)
def divide(request):
    def make(structure):
        partitions = partitions_of(structure, request.param)
        return partitions[0].boundary, [
            OwnedUnits.of(structure.M, partition.units, partition.boundary) for partition in partitions
        ]

    return make


@pytest.mark.parametrize("structure", STRUCTURES)
def test_divided_solves_equal_dense_ones(structure, divide, monkeypatch):
    monkeypatch.setattr(graph_partition, "BLOCK", 100)
    structure = structure()
    boundary, parts = divide(structure)
    M, rng = structure.M.toarray(), np.random.default_rng(0)
    right = rng.normal(size=(len(M), 5))
    found = solve_divided([partial_system(part, part.submatrix(structure.M)) for part in parts], parts, boundary, right)
    np.testing.assert_allclose(found, np.linalg.solve(M, right), rtol=1e-9, atol=1e-10 * np.abs(found).max())


@pytest.mark.parametrize("structure", STRUCTURES)
def test_divided_solves_with_fixed_classes_equal_dense_ones(structure, divide):
    structure = structure()
    boundary, parts = divide(structure)
    M, fixed, right = structure.M.toarray(), structure.class_units, np.random.default_rng(1).normal(size=(len(structure), 3))
    A = M.copy()
    A[fixed] = np.eye(len(M))[fixed]
    systems = [partial_system_with_fixed(part, part.submatrix(structure.M), np.isin(part.units, fixed)) for part in parts]
    found = solve_divided(systems, parts, boundary, right)
    np.testing.assert_allclose(found, np.linalg.solve(A, right), rtol=1e-9, atol=1e-10 * np.abs(found).max())


@pytest.mark.parametrize("structure", STRUCTURES)
def test_what_workers_measure_adds_up(structure, divide):
    structure = structure()
    _, parts = divide(structure)
    x = np.random.default_rng(2).normal(size=len(structure))
    sizes = [x[part.units] @ (part.energy(part.submatrix(structure.M)) @ x[part.units]) for part in parts]
    assert sum(sizes) == pytest.approx(x @ structure.M.toarray() @ x, rel=1e-12)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("threads", THREADS)
def test_classes_are_as_stiff_as_the_dense_inverse_says(structure, threads):
    task = make_task(np.random.default_rng(0), structure(), "hinge")
    partitions = partitions_of(task.structure, threads)
    workers = [GraphWorker(task, partition) for partition in partitions]
    complements = sum_complements(len(partitions[0].boundary), [worker.give_ties() for worker in workers])
    M, T = task.structure.M.toarray(), np.empty(task.own.shape[1])
    for worker, partition in zip(workers, partitions, strict=True):
        worker.take_ties(complements)
        T[partition.classes] = worker.T
    np.testing.assert_allclose(T, np.sqrt(M.diagonal() / np.linalg.inv(M).diagonal())[task.structure.class_units], rtol=1e-9)


# ---- solutions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("threads", THREADS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_workers_together_reach_the_optimum(kind, threads, loss):
    task = make_task(np.random.default_rng(9), KINDS[kind](), loss)
    solution, dual = assert_solved(task, ApartExecutor(*threads))
    alone = solve_graph(task).certificate
    most = 1 + 6 * task.settings.tolerance
    assert alone.primal / most <= solution.certificate.primal <= alone.primal * most
    assert dual / most <= solution.certificate.primal


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_is_that_of_the_dual_variables(kind, loss):
    """After one round, so that bound and dual variables are of the same round; a bound too high would be a lie."""
    task = make_task(np.random.default_rng(8), KINDS[kind](), loss, max_iter=1)
    solution, problem = solve_graph(task, ApartExecutor(1, 1, 1)), as_the_oracle_takes_it(task)
    pairs, alphas = solution.pairs, np.zeros(task.own.shape)
    alphas[pairs.documents, np.repeat(np.arange(len(pairs)), np.diff(pairs.offsets))] = pairs.alphas
    assert solution.certificate.dual == pytest.approx(oracle.dual_objective(alphas, *problem, loss), rel=1e-5)
    value = oracle.objective(weights_of(solution, task.rows), *problem, loss)
    assert solution.certificate.primal == pytest.approx(value, rel=1e-5)


def test_one_worker_that_shares_no_memory_finds_what_threads_find():
    task = make_task(np.random.default_rng(0), wide_dag(), "hinge", max_iter=20)
    assert_same(solve_graph(task, ApartExecutor(1)), solve_graph(task, SerialExecutor()))


@pytest.mark.parametrize("threads", THREADS, ids=str)
def test_a_solution_can_be_repeated(threads):
    task = make_task(np.random.default_rng(0), random_structure(2), "hinge", max_iter=12)
    assert_same(solve_graph(task, ApartExecutor(*threads)), solve_graph(task, ApartExecutor(*threads)))


def assert_same(first, second):
    np.testing.assert_array_equal(first.weights.deltas.toarray(), second.weights.deltas.toarray())
    np.testing.assert_array_equal(first.weights.bias, second.weights.bias)
    np.testing.assert_array_equal(first.pairs.alphas, second.pairs.alphas)
    np.testing.assert_array_equal(first.pairs.documents, second.pairs.documents)
    assert first.certificate == second.certificate


def test_features_may_be_sent_in_ranges(monkeypatch):
    task = make_task(np.random.default_rng(0), wide_dag(), "logistic", max_iter=6)
    at_once = Watched(1, 1, 1)
    first = solve_graph(task, at_once)
    monkeypatch.setattr(graph_worker, "MOST_SENT", 2 * 8 * len(at_once.boundary))
    in_stretches = Watched(1, 1, 1)
    second = solve_graph(task, in_stretches)
    assert in_stretches.count["give_point"] == 4 * at_once.count["give_point"]  # seven features, two at a time
    assert second.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-6)
    np.testing.assert_allclose(weights_of(first, task.rows), weights_of(second, task.rows), atol=1e-5)


def test_a_worker_that_saves_memory_finds_the_same():
    task = make_task(np.random.default_rng(0), wide_dag(), "hinge", n_features=9, max_iter=5)
    first, second = (solve_graph(task, executor) for executor in (ApartExecutor(2, 1), Frugal(2, 1)))
    assert second.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-6)


class Frugal(ApartExecutor):
    def start_workers(self, make, placed, partitions, needs=None):
        return super().start_workers(FrugalWorker, placed, partitions, needs)


class FrugalWorker(GraphWorker):
    def __init__(self, problem, partition, memory_saving):
        super().__init__(problem, partition, memory_saving=8)
        assert self.block < 8 * len(self.owned) * problem.rows.n_features


def test_workers_give_the_weights_of_their_own_units():
    task = make_task(np.random.default_rng(0), wide_dag(), "hinge", max_iter=5)
    watched = Watched(1, 1, 1)
    whole = solve_graph(task, watched).weights
    for partition, part in zip(watched.partitions, watched.own_weights, strict=True):
        np.testing.assert_array_equal(part.deltas.toarray(), whole.deltas[partition.units].toarray())
        np.testing.assert_array_equal(part.bias, whole.bias[partition.units])
        np.testing.assert_array_equal(partition.units[part.class_units], whole.class_units[partition.classes])


def test_more_nodes_can_have_more_weights(monkeypatch):
    task = make_task(np.random.default_rng(0), tie_graph(labels_tied(9, []), np.arange(9)), "hinge")
    monkeypatch.setattr(graph_solver, "MOST_WEIGHTS", 40)
    with pytest.raises(InputError, match="9 units with 7 features .* 63 weights, .*; use more nodes, keep at most 4 features"):
        solve_graph(task)
    assert solve_graph(task, ApartExecutor(1, 1)).certificate.gap <= 3e-5
    clique = make_task(np.random.default_rng(0), KINDS["a clique"](), "hinge")
    monkeypatch.setattr(graph_partition, "MOST_BOUNDARY", 0)
    with pytest.raises(InputError, match="of a graph or DAG; keep at most 5 features, or use a tree"):
        solve_graph(clique, ApartExecutor(1, 1))


@pytest.mark.parametrize("tied", ["dag", "graph"])
def test_a_learner_trains_on_a_cluster(tied):
    rng = np.random.default_rng(3)
    taxonomy = random_dag(rng, 12) if tied == "dag" else random_graph(rng, 12, density=0.15)
    X = csr_array((rng.random((80, 300)) < 0.05) * rng.random((80, 300))).astype(np.float32)
    Y = csr_array((np.ones(80, dtype=bool), (np.arange(80), rng.integers(12, size=80))), shape=(80, 12))
    alone = RecursiveLogistic(taxonomy=taxonomy, tol=1e-6, ties="edges").fit(X, Y)
    watched = Watched(1, 1, 1)
    with running_on(watched):
        together = RecursiveLogistic(taxonomy=taxonomy, tol=1e-6, ties="edges").fit(X, Y)
    assert len(watched.partitions) == 3
    np.testing.assert_allclose(together.decision_function(X), alone.decision_function(X), rtol=0.02, atol=0.02)


# ---- what travels ----------------------------------------------------------------------------------------------------------


class WatchedGroup(ApartWorkerGroup):
    def call(self, method, *arguments):
        answers, watch, what = super().call(method, *arguments), self.executor, method.__name__
        watch.count[what] += 1
        watch.sent[what] += size_of(arguments)
        watch.given[what] += sum(size_of(answer) for answer in answers)
        if what == "weights":
            watch.own_weights = list(answers)
        return answers


class Watched(ApartExecutor):
    """Counts calls, and the bytes that go to each worker and come from all of them."""

    group = WatchedGroup

    def start_workers(self, make, placed, partitions, needs=None):
        self.partitions, self.boundary = partitions, partitions[0].boundary
        self.count, self.sent, self.given = Counter(), Counter(), Counter()
        return super().start_workers(make, placed, partitions, needs)


@pytest.mark.parametrize("threads", THREADS, ids=str)
def test_only_vectors_of_boundary_units_are_sent(threads):
    rng, rounds = np.random.default_rng(1), 4
    edges = [("r", None), *((f"i{k}", "r") for k in range(10)), *((f"l{k}", f"i{k % 10}") for k in range(80))]
    taxonomy = Taxonomy.from_edges([*edges, ("l3", "i8"), ("l40", "i7")])
    structure = tie_dag(taxonomy, np.flatnonzero(taxonomy.is_leaf))
    task = make_task(rng, structure, "hinge", n_features=199, max_iter=rounds, tolerance=1e-9)
    watched = Watched(*threads)
    solve_graph(task, watched)
    boundary, workers = len(watched.boundary), len(threads)
    assert 0 < boundary <= 5
    carried = ("point", "solved", "best")
    vector = 4 * task.rows.n_features
    vectors_of_a_round = 3 * boundary * vector
    to_each, from_all = (sum(bytes_of[f"{way}_{what}"] for what in carried)
                         for bytes_of, way in ((watched.sent, "take"), (watched.given, "give")))  # fmt: skip
    assert to_each <= (rounds + 1) * vectors_of_a_round
    assert from_all <= workers * ((rounds + 1) * vectors_of_a_round + 1000)
    once = [
        watched.sent["take_ties"] + watched.sent["take_shifted"],
        watched.given["give_ties"] + watched.given["give_shifted"],
    ]
    assert once[0] <= 3 * 8 * boundary**2
    assert once[1] <= workers * (3 * 8 * boundary**2 + 1000)
    others = set(watched.count) - {f"{way}_{what}" for way in ("give", "take") for what in (*carried, "ties", "shifted")}
    assert others == {"solve_classes", "measure", "keep_best", "step", "weights", "dual_variables"}
    numbers = others - {"weights", "dual_variables"}  # these are given once, at the end
    assert sum(watched.sent[what] + watched.given[what] for what in numbers) <= 1000 * workers * rounds
    # a round needs the state, W and u of all classes: what travels is a small part of that
    assert from_all + workers * to_each < 0.5 * (rounds + 1) * 3 * len(structure.class_units) * vector


# ---- resuming --------------------------------------------------------------------------------------------------------------


class BrokenOffError(Exception):
    pass


class BreakingGroup(ApartWorkerGroup):
    def call(self, method, *arguments):
        self.executor.left -= 1
        if self.executor.left < 0:
            raise BrokenOffError
        return super().call(method, *arguments)


class Breaking(ApartExecutor):
    """Workers whose group breaks at a call."""

    group = BreakingGroup

    def __init__(self, *threads, at):
        super().__init__(*threads)
        self.left = at


@pytest.mark.parametrize("threads", [(1,), (2, 1, 1)], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_work_that_was_broken_off_goes_on_bit_by_bit(tmp_path, threads, loss):
    task = make_task(np.random.default_rng(5), wide_dag(), loss, max_iter=14, tolerance=1e-9)
    straight = Watched(*threads)
    whole = solve_graph(task, straight)
    n_calls = sum(straight.count.values())
    for at in range(3, n_calls, max(1, n_calls // 7)):
        place = tmp_path / str(at)
        with pytest.raises(BrokenOffError), checkpointing(Checkpoints(place, work_per_save=0)):
            solve_graph(task, Breaking(*threads, at=at))
        rest = Watched(*threads)
        with checkpointing(Checkpoints(place, resume=True, work_per_save=0)):
            assert_same(solve_graph(task, rest), whole)
        rounds_done = at // (n_calls // 14 + 1) - 1
        assert rest.count["solve_classes"] <= 14 - max(0, rounds_done)
        saved = json.loads((place / "0000" / "checkpoint.json").read_bytes())["driver"]
        assert len(json.dumps(saved)) < 2000  # a few numbers, and no messages


def test_a_step_back_is_resumed_too(tmp_path, monkeypatch):
    monkeypatch.setattr("ramify.learners.linear.graph_problem.WORSE", 0.7)  # residuals that hardly shrink are stepped back from
    task = make_task(np.random.default_rng(5), wide_dag(), "hinge", max_iter=12, tolerance=1e-9)
    straight = Steps(1, 1)
    whole = solve_graph(task, straight)
    assert 0 < straight.gammas.count(None) < len(straight.gammas)
    for at in range(30, 90, 8):
        with pytest.raises(BrokenOffError), checkpointing(Checkpoints(tmp_path / str(at), work_per_save=0)):
            solve_graph(task, Breaking(1, 1, at=at))
        with checkpointing(Checkpoints(tmp_path / str(at), resume=True, work_per_save=0)):
            assert_same(solve_graph(task, ApartExecutor(1, 1)), whole)


class StepsGroup(ApartWorkerGroup):
    def call(self, method, *arguments):
        if method is GraphWorker.step:
            self.executor.gammas.append(arguments[0])
        return super().call(method, *arguments)


class Steps(ApartExecutor):
    """Notes how steps were mixed."""

    group = StepsGroup

    def start_workers(self, make, placed, partitions, needs=None):
        self.gammas = []
        return super().start_workers(make, placed, partitions, needs)
