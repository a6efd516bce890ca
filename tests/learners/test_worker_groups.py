"""The linear solver with a group of several workers: the same objective as with one, and nothing lost on the way."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from apart import ApartExecutor
from hypothesis import given, settings
from hypothesis import strategies as st
from learners.test_linear_solver import (
    LOSSES,
    TIES,
    make_problem,
    objective_of,
    oracle_problem,
    random_problem,
    solve,
    tie_in_dag,
    unit_costs,
)
from oracles import recursive_regularization as oracle
from seeds import each_seed
from strategies import build, parent_lists

from ramify.data import make_web_directory
from ramify.errors import InputError
from ramify.learners import OneVsRestSVM, RecursiveSVM
from ramify.learners.linear import dual_solver, flat_worker, tree_worker
from ramify.learners.linear.flat_worker import FlatWorker
from ramify.learners.linear.partition import estimate_needs, partition_classes, sum_vectors, to_sparse
from ramify.learners.linear.problem import Pairs, all_others, pair_up
from ramify.learners.linear.shards import ShardedWeights
from ramify.learners.linear.taxonomy_ties import tie_along_paths, tie_flat
from ramify.learners.linear.tree_worker import TreeWorker
from ramify.learners.linear.weights import Weights
from ramify.parallel import Checkpoints, Needs, SerialExecutor, checkpointing, choose_executor, running_on, writing_shards_to
from ramify.parallel.cluster import Node, describe_needs, refuse_what_cannot_fit

pytestmark = pytest.mark.slow

THREADS = [(1, 1), (2, 1, 1), (1,) * 7]


def some_problem(seed, tie, loss="hinge", tolerance=1e-4, **sizes):
    X, own, taxonomy, _ = random_problem(seed, **({"n_docs": 60, "n_nodes": 20, "roots": 1 + seed % 3} | sizes))
    forest = tie(taxonomy, np.unique(own.indices).astype(np.int64))
    return make_problem(X, own, forest, unit_costs(forest, X.shape[0]), loss, tolerance)


def all_pairs(problem):
    return pair_up(problem.own, all_others(problem.own), problem.costs.positive, problem.costs.negative)


@pytest.fixture(params=["all pairs", "near pairs first"])
def pairs_at_first(request, monkeypatch):
    if request.param == "near pairs first":
        monkeypatch.setattr(dual_solver, "SMALL", 0)
        monkeypatch.setattr(dual_solver, "CANDIDATES", 1)
        monkeypatch.setattr(flat_worker, "MOST_VIOLATORS", 3)


@pytest.mark.usefixtures("pairs_at_first")
@pytest.mark.parametrize("threads", THREADS, ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tie", TIES)
@each_seed(2)
def test_workers_that_share_no_memory_reach_the_objective_of_an_independent_solver(seed, tie, loss, threads):
    problem = some_problem(seed, tie, loss, several=seed % 2 == 1)
    found = solve(problem, executor=ApartExecutor(*threads))
    _, best, _ = oracle.solve(*oracle_problem(problem), loss)
    assert found.certificate.gap <= 1e-4
    assert found.certificate.dual <= best * (1 + 1e-6)
    objective = objective_of(problem, found)
    assert objective == pytest.approx(found.certificate.primal, rel=2e-4)
    assert best * (1 - 1e-6) <= objective <= best * (1 + 3e-4)


@pytest.mark.parametrize("tie", TIES)
def test_the_same_workers_come_to_the_same_bits(tie):
    problem = some_problem(4, tie, tolerance=1e-3)
    first, again = (solve(problem, executor=ApartExecutor(1, 2, 1)) for _ in range(2))
    np.testing.assert_array_equal(first.weights.deltas.data, again.weights.deltas.data)
    assert first.certificate == again.certificate


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_from_another_cost_works_across_workers(tie, loss):
    X, own, taxonomy, _ = random_problem(3, n_docs=60, n_nodes=20)
    forest = tie(taxonomy, np.unique(own.indices).astype(np.int64))
    problems = [make_problem(X, own, forest, unit_costs(forest, X.shape[0], C), loss, 1e-4) for C in (0.1, 2.0)]
    executor = ApartExecutor(1, 1, 1)
    warm = solve(problems[1], solve(problems[0], executor=executor), executor=executor)
    assert warm.certificate.primal == pytest.approx(solve(problems[1]).certificate.primal, rel=3e-4)


@pytest.mark.parametrize("tie", [tie_along_paths, tie_in_dag])
def test_a_worker_that_must_save_memory_comes_to_the_same_objective(tie):
    problem = some_problem(2, tie)

    class Frugal(SerialExecutor):
        threads = (2, 1)

        def start_workers(self, make, placed, partitions, needs=None):
            return super().start_workers(lambda common, partition, _: make(common, partition, 1), placed, partitions, needs)

    found = solve(problem, executor=Frugal())
    assert found.certificate.primal == pytest.approx(solve(problem).certificate.primal, rel=3e-4)


class StoppedError(Exception):
    pass


class Stopping(ApartExecutor):
    """Stops at a call."""

    def __init__(self, *threads, at):
        super().__init__(*threads)
        self.left = at

    def start_workers(self, *arguments):
        group = super().start_workers(*arguments)
        call = group.call

        def count(method, *given):
            self.left -= 1
            if self.left == 0:
                raise StoppedError
            return call(method, *given)

        group.call = count
        return group


@pytest.mark.usefixtures("pairs_at_first")
@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("at", [1, 3, 6, 12, 24])
def test_work_that_is_stopped_at_any_call_and_resumed_comes_to_the_same_bits(tie, at, tmp_path):
    problem = some_problem(5, tie, tolerance=1e-2, n_docs=60, n_nodes=20)
    whole = solve(problem, executor=ApartExecutor(1, 2))
    with checkpointing(Checkpoints(tmp_path / "kept", work_per_save=0)):
        try:
            assert solve(problem, executor=Stopping(1, 2, at=at)).certificate == whole.certificate
            return  # it was done before
        except StoppedError:
            pass
    with checkpointing(Checkpoints(tmp_path / "kept", resume=True, work_per_save=0)):
        found = solve(problem, executor=ApartExecutor(1, 2))
    assert found.certificate == whole.certificate
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found.weights.deltas, part), getattr(whole.weights.deltas, part))
    np.testing.assert_array_equal(found.weights.bias, whole.weights.bias)


@pytest.mark.parametrize("make", [FlatWorker, TreeWorker])
def test_a_state_makes_a_worker_that_does_the_same(make):
    problem = some_problem(6, tie_flat if make is FlatWorker else tie_along_paths)
    partition = partition_classes(problem, all_pairs(problem), (1,), complete=True)[0]
    one, other = make(problem, partition), make(problem, partition)
    if make is TreeWorker:
        one.begin_ascent(one.count_paths())
        for _ in range(3):
            one.add_changes(one.ascent_round())
    else:
        one.solve_classes(0.1)
    other.restore({name: array.copy() for name, array in one.state().items()})
    for each in (one, other):
        if make is TreeWorker:
            each.add_changes(each.ascent_round())
        else:
            each.solve_classes(0.01)
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name)


# ---- shards ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["exact", "fast"])
@pytest.mark.parametrize("learner", [OneVsRestSVM, RecursiveSVM])
@pytest.mark.parametrize("threads", [(1,), (2, 1)], ids=str)
def test_workers_write_shards_that_hold_what_would_have_been_gathered(threads, learner, mode, tmp_path, monkeypatch):
    monkeypatch.setattr(dual_solver, "MOST_GATHERED", 0)
    monkeypatch.setattr(flat_worker, "SHARD_WEIGHTS", 3000)
    monkeypatch.setattr(dual_solver, "SMALL", 0)
    made = make_web_directory(n_leaves=40, n_docs=500, seed=0)
    with running_on(ApartExecutor(*threads)):
        whole = learner(made.taxonomy, mode=mode).fit(made.X, made.Y)
        with writing_shards_to(tmp_path):
            found = learner(made.taxonomy, mode=mode).fit(made.X, made.Y)
    assert isinstance(whole.weights_, Weights)
    assert isinstance(found.weights_, ShardedWeights)
    assert len(found.weights_.shards) > len(threads)
    assert found.weights_.n_classes == whole.weights_.n_classes == 40
    assert found.gap_ == whole.gap_
    for k in range(40):
        w, bias = whole.weights_.of_class(k)
        v, other = found.weights_.of_class(k)
        np.testing.assert_allclose(v, w, atol=1e-6)
        assert other == pytest.approx(bias, abs=1e-6)
    np.testing.assert_array_equal(found.search(made.X, width=40)[0], whole.search(made.X, width=40)[0])
    sent = pickle.loads(pickle.dumps(found))
    assert sent.weights_.shards[0].weights.deltas.data.base is not None
    np.testing.assert_array_equal(sent.search(made.X)[1], found.search(made.X)[1])


# ---- partitions ---------------------------------------------------------------------------------------------------------------


@given(parent_lists(max_nodes=14), st.lists(st.integers(1, 3), min_size=1, max_size=6), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_every_class_has_one_owner_and_every_shared_unit_is_counted_once(parents, threads, random):
    taxonomy = build(parents)
    labelled = np.unique([random.randrange(len(taxonomy)) for _ in range(len(taxonomy))]).astype(np.int64)
    forest = tie_along_paths(taxonomy, labelled)
    rng = np.random.default_rng(random.randrange(1000))
    n_docs = 12
    from scipy.sparse import csr_array

    chosen = rng.integers(len(labelled), size=n_docs)
    own = csr_array((np.ones(n_docs, bool), labelled[chosen], np.arange(n_docs + 1)), shape=(n_docs, len(taxonomy)))
    problem = make_problem(
        csr_array(rng.random((n_docs, 4), dtype=np.float32)), own, forest, unit_costs(forest, n_docs), "hinge"
    )
    pairs = all_pairs(problem)
    partitions = partition_classes(problem, pairs, threads, complete=True)
    assert [partition.first for partition in partitions] == [0, *(partition.last for partition in partitions[:-1])]
    assert partitions[-1].last == problem.n_classes
    assert all(partition.last > partition.first for partition in partitions)
    assert len(partitions) == min(len(threads), problem.n_classes)
    passed = [set(forest.part(partition.first, partition.last)[1].tolist()) for partition in partitions]
    shared = {unit for units in passed for unit in units if sum(unit in other for other in passed) > 1}
    for partition, units in zip(partitions, passed, strict=True):
        assert set(partition.shared.tolist()) == units & shared
    answered = [unit for partition in partitions for unit in partition.counted.tolist()]
    assert sorted(answered) == sorted(shared)
    joined = Pairs.joined([partition.pairs for partition in partitions])
    for mine, theirs in zip(joined.arrays, pairs.arrays, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("tie", [tie_along_paths, tie_in_dag])
def test_a_part_of_a_forest_has_the_same_paths(tie):
    problem = some_problem(1, tie)
    forest = problem.forest
    for first, last in [(0, 3), (2, 9), (5, problem.n_classes)]:
        part, units = forest.part(first, last)
        for k in range(first, last):
            above = forest.above[forest.above_offsets[k] : forest.above_offsets[k + 1]]
            here = part.above[part.above_offsets[k - first] : part.above_offsets[k - first + 1]]
            np.testing.assert_array_equal(units[here], above)
        np.testing.assert_array_equal(part.node, forest.node[units])
        on_path = part.on_paths(slice(None))[0]
        for unit, parent in enumerate(part.parent):
            if on_path[unit]:  # a unit that joins add may be without its own path
                assert forest.parent[units[unit]] == (-1 if parent < 0 else units[parent])
            assert units[part.joins.added_by(unit)].tolist() == forest.joins.added_by(units[unit])


def test_cuts_are_made_where_few_units_are_shared():
    """Twelve classes in three subtrees of four: an even cut into two would go through the one in the middle."""
    from ramify import Taxonomy

    taxonomy = Taxonomy.from_paths([f"{top}/{k}" for top, n in (("a", 11), ("b", 10)) for k in range(n)])
    forest = tie_along_paths(taxonomy, np.flatnonzero(taxonomy.is_leaf))
    X, own, *_ = random_problem(0, n_docs=42, n_nodes=len(taxonomy))
    costs = unit_costs(forest, 42)
    problem = make_problem(X, own, forest, costs, "hinge")
    partitions = partition_classes(problem, all_pairs(problem), (1, 1), complete=True)
    assert partitions[0].last == 11
    assert all(len(partition.shared) == 0 for partition in partitions)


@given(
    st.lists(st.dictionaries(st.integers(0, 4), st.lists(st.integers(-3, 3), min_size=5, max_size=5), max_size=4), max_size=4)
)
def test_vectors_of_the_same_units_are_added_up(parts):
    given = [to_sparse({unit: np.asarray(vector, dtype=np.float32) for unit, vector in part.items()}) for part in parts]
    units, ends, features, values = sum_vectors(given)
    assert units.tolist() == sorted({unit for part in parts for unit in part})
    for k, unit in enumerate(units.tolist()):
        here = slice(int(ends[k - 1]) if k else 0, int(ends[k]))
        dense = np.zeros(5)
        dense[features[here]] = values[here]
        np.testing.assert_array_equal(dense, np.sum([part[unit] for part in parts if unit in part], axis=0))


# ---- what it needs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tie", TIES)
def test_needs_grow_with_the_problem_and_shrink_with_the_workers(tie):
    small, large = some_problem(0, tie), some_problem(0, tie, n_docs=3000, n_nodes=20)

    def needs(problem, *threads):
        return estimate_needs(problem, partition_classes(problem, all_pairs(problem), threads, complete=False))

    assert needs(large, 1).shared > needs(small, 1).shared
    assert needs(large, 1).each[0] > needs(small, 1).each[0]
    assert needs(large, 1).seconds > needs(small, 1).seconds
    assert needs(large, 1, 1).seconds < 0.75 * needs(large, 1).seconds
    assert max(needs(large, 1, 1).each) < needs(large, 1).each[0]


def test_what_cannot_fit_is_refused_in_words():
    node = Node("a", "10.0.0.5", 4, memory=4 * 10**9, store=10**9)
    refuse_what_cannot_fit(Needs(10**9, (4 * 10**9,), 1.0), [node])
    with pytest.raises(InputError, match=r"need 1\.1 GB in the object store of every node, and 10\.0\.0\.5 has 1\.0 GB"):
        refuse_what_cannot_fit(Needs(11 * 10**8, (1,), 1.0), [node])
    with pytest.raises(InputError, match=r"needs about 4\.1 GB on 10\.0\.0\.5, which has 4\.0 GB for it"):
        refuse_what_cannot_fit(Needs(1, (41 * 10**8,), 1.0), [node])
    with pytest.raises(InputError, match=r"needs about 4\.2 GB on 10\.0\.0\.5"):  # two workers there, one elsewhere
        refuse_what_cannot_fit(Needs(1, (21 * 10**8,) * 3, 1.0), [node, replace(node, address="10.0.0.6")])
    assert describe_needs(Needs(0, (10**9,), 7200.0)).endswith("about 2 hours.")


def test_learners_use_the_executor_that_is_said():
    made = make_web_directory(n_leaves=30, n_docs=300, seed=0)
    here = RecursiveSVM(made.taxonomy).fit(made.X, made.Y)
    with running_on(ApartExecutor(1, 1)):
        assert choose_executor(None).worker_threads == (1, 1)
        there = RecursiveSVM(made.taxonomy).fit(made.X, made.Y)
    assert there.gap_.primal == pytest.approx(here.gap_.primal, rel=2e-3)
    assert there.gap_ <= there.tol
    assert tree_worker.REACTIVATION > 0


@pytest.mark.parametrize("at", [3, 5, 9])
def test_classes_that_are_independent_are_not_solved_again_when_work_is_resumed(at, tmp_path, monkeypatch):
    monkeypatch.setattr(dual_solver, "CLASSES_PER_SAVE", 1)
    problem = some_problem(5, tie_flat, loss="logistic", tolerance=1e-2, n_docs=60, n_nodes=20)
    counting, resuming = Stopping(1, 2, at=-1), Stopping(1, 2, at=-1)
    whole = solve(problem, executor=counting)
    assert counting.left < -9
    with checkpointing(Checkpoints(tmp_path / "kept", work_per_save=0)), pytest.raises(StoppedError):
        solve(problem, executor=Stopping(1, 2, at=at))
    with checkpointing(Checkpoints(tmp_path / "kept", resume=True, work_per_save=0)):
        found = solve(problem, executor=resuming)
    assert resuming.left == counting.left + at - 1  # so many calls fewer
    np.testing.assert_array_equal(found.weights.deltas.toarray(), whole.weights.deltas.toarray())
