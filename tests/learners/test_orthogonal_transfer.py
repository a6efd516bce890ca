"""Orthogonal transfer equals its slow twin, by either solver, and is what it should be where there are no levels."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from joint_problems import draw_small
from oracles import orthogonal_transfer as slow
from scipy.sparse import csr_array
from seeds import each_seed
from strategies import build, trees

from ramify import Taxonomy, TextClassifier, load
from ramify.errors import InputError, LabelError
from ramify.learners import HierarchicalSVM, OrthogonalTransfer
from ramify.learners.structured import problem as joint_problem
from ramify.learners.structured.ot import Branches, OrthogonalPenalty
from ramify.learners.top_down_base import find_branches


def draw(seed):
    """A small problem in which more than one class has weight, and a coupling."""
    for more in range(0, 10_000, 1_000):
        small = draw_small(seed + more, roots=0.3, costs=(-2, 1))
        if len({end for end, weight in zip(small.ends, small.weights, strict=True) if weight}) > 1:
            return small, float(np.random.default_rng(seed).choice([0.0, 0.3, 0.9, 0.99]))
    raise AssertionError("no problem found")


def pose_slowly(small, coupling):
    branches = slow.branches_of(small.parents, small.ends)
    return slow.couplings(branches, small.parents, coupling), branches


def fit(small, coupling, **settings):
    settings = {"C": small.C, "tol": 1e-5, "max_iter": 5000, "coupling": coupling} | settings
    return OrthogonalTransfer(small.taxonomy, **settings).fit(small.X, small.names, small.weights)


def as_the_oracle_numbers(fitted, branches):
    """Weights with the bias last, in the oracle's order of branches."""
    ours = {(int(n), int(p)): k for k, (n, p) in enumerate(zip(fitted.branch_nodes_, fitted.branch_parents_, strict=True))}
    W = np.column_stack([fitted.weights_.deltas.toarray(), fitted.weights_.bias])
    return W[[ours[b.node, b.parent] for b in branches]]


@each_seed(30)
def test_the_objective_is_that_of_the_slow_twin(seed):
    small, coupling = draw(seed)
    K, branches = pose_slowly(small, coupling)
    given_ = branches, small.parents, small.with_bias(), small.ends, small.costs
    _, best, bound = slow.solve(K, *given_)
    fitted = fit(small, coupling)
    assert fitted.gap_ <= 1e-5
    assert fitted.gap_.dual <= best * (1 + 1e-6)
    assert bound * (1 - 1e-6) <= fitted.gap_.primal <= best * (1 + 2e-5)
    kept = slow.objective(as_the_oracle_numbers(fitted, branches), K, *given_)
    assert kept == pytest.approx(fitted.gap_.primal, rel=1e-5)


@each_seed(8)
def test_dual_averaging_takes_the_steps_of_its_slow_twin(seed):
    small, coupling = draw(seed)
    K, branches = pose_slowly(small, coupling)
    given_ = branches, small.parents, small.with_bias(), small.ends, small.costs
    _, value = slow.average_slopes(K, *given_, coupling, 30)
    with pytest.warns(UserWarning, match="stopped after 30 rounds"):
        fitted = fit(small, coupling, solver="dual-averaging", tol=1e-15, max_iter=30)
    assert fitted.gap_.primal == pytest.approx(value, rel=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@given(seed=st.integers(0, 100_000))
@settings(max_examples=25)
@example(seed=3119)  # Newton steps stall, and dual ascent goes on from where they stopped
def test_both_solvers_bound_each_other(seed):
    small, coupling = draw(seed)
    exact, averaged = fit(small, coupling, tol=1e-4), fit(small, coupling, solver="dual-averaging", tol=1e-3, max_iter=200)
    assert exact.gap_ <= 1e-4
    assert averaged.gap_.dual <= exact.gap_.primal * (1 + 1e-6)
    assert exact.gap_.dual <= averaged.gap_.primal * (1 + 1e-6)


@given(trees(max_nodes=12, min_nodes=2), st.sampled_from([0.0, 0.5, 0.999]))
def test_any_coupling_below_one_keeps_the_problem_convex(parents, coupling):
    taxonomy = build(parents)
    everywhere = np.ones(len(taxonomy), dtype=bool)
    branches = Branches(*find_branches(taxonomy, everywhere, everywhere).T, taxonomy)
    K = OrthogonalPenalty.of(branches, coupling).metric(-np.ones(len(branches.above()[0])))
    assert np.linalg.eigvalsh(K).min() >= 1 - coupling - 1e-12


def leafy(seed=0, n=60):
    rng = np.random.default_rng(seed)
    names = ["a/x", "a/y", "b/x", "b/y"]
    y = rng.integers(0, 4, size=n)
    X = rng.normal(size=(n, 7)) * 0.3 + np.eye(7)[y] + np.eye(7)[4 + y // 2]
    return X.astype(np.float32), np.asarray([names[label] for label in y])


def test_without_levels_it_is_one_machine_of_all_classes():
    X, y = leafy()
    flat, joint = OrthogonalTransfer(tol=1e-6).fit(X, y), HierarchicalSVM(tol=1e-6).fit(X, y)
    assert flat.gap_.primal == pytest.approx(joint.gap_.primal, rel=1e-5)


def test_a_node_with_one_way_on_is_no_branch():
    X, y = leafy()
    plain = np.asarray([name.replace("/", " ") for name in y])
    chains = Taxonomy.from_paths([f"above {name}/{name}" for name in sorted(set(plain))])
    flat = OrthogonalTransfer(tol=1e-6).fit(X, plain)
    deep = OrthogonalTransfer(chains, tol=1e-6).fit(X, [f"above {name}/{name}" for name in plain])
    assert deep.gap_.primal == pytest.approx(flat.gap_.primal, rel=1e-5)


def test_a_coupling_makes_branches_orthogonal_to_those_above():
    X, y = leafy()
    tree = Taxonomy.from_paths(sorted(set(y)))

    def largest_cosine(coupling):
        fitted = OrthogonalTransfer(tree, coupling=coupling, C=1, fit_intercept=False).fit(X, y)
        W = fitted.weights_.deltas.toarray()
        W = W / np.linalg.norm(W, axis=1, keepdims=True)
        upper, lower = Branches(fitted.branch_nodes_, fitted.branch_parents_, tree).above()
        return float(np.abs(np.sum(W[upper] * W[lower], axis=1)).max())

    assert largest_cosine(0.9) < 0.5 * largest_cosine(0.0)


def test_few_dense_features_far_from_zero_are_solved_too():
    rng = np.random.default_rng(0)
    X = rng.normal(loc=100, size=(60, 2)).astype(np.float32)
    y = np.where(X[:, 0] + X[:, 1] > 200, "a/high", np.where(X[:, 0] > 100, "a/right", "b"))
    assert OrthogonalTransfer(Taxonomy.from_paths(["a/high", "a/right", "b"])).fit(X, y).gap_ <= 1e-3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_second_order_steps_never_lose_what_ascent_has_found():
    rng = np.random.default_rng(0)
    X, y = leafy(n=24)
    X = X * np.logspace(-8, 8, len(X))[rng.permutation(len(X)), None]
    tree = Taxonomy.from_paths(sorted(set(y)))
    before, after = (OrthogonalTransfer(tree, max_iter=rounds).fit(X, y).gap_ for rounds in (20, 25))
    assert after.primal <= before.primal
    assert after.dual >= before.dual


class Limit(int):
    """A number that nothing exceeds, and that keeps what it was compared with."""

    def __new__(cls, seen):
        made = super().__new__(cls, 0)
        made.seen = seen
        return made

    def __lt__(self, other):
        self.seen.append(other)
        return False


def test_many_siblings_need_no_table_of_all_their_pairs():
    n = 60
    tracemalloc.start()
    OrthogonalTransfer().fit(np.tile(np.eye(n), (2, 1)), [f"c{k}" for k in range(n)] * 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    pairs = n * (n - 1)
    assert peak < 8 * pairs**2 / 4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["exact", "dual-averaging"])
def test_memory_stays_near_what_would_be_refused(solver, monkeypatch):
    X, y = leafy()
    wide = csr_array((X.ravel(), np.random.default_rng(0).integers(0, 100_000, X.size), np.arange(len(X) + 1) * X.shape[1]))
    needed = []
    monkeypatch.setattr(joint_problem, "MOST_NUMBERS", Limit(needed))
    tracemalloc.start()
    OrthogonalTransfer(Taxonomy.from_paths(sorted(set(y))), solver=solver, max_iter=2).fit(wide, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * 8 * needed[0]


def test_what_it_cannot_take_is_refused_in_one_sentence(food, monkeypatch):
    X = np.eye(4)
    with pytest.raises(
        LabelError, match="1 of 4 documents have multiple labels or none, number 2 the first; ot takes one label per document"
    ):
        OrthogonalTransfer(food).fit(X, [["drink"], ["drink", "food/bread"], ["drink"], ["food/bread"]])
    for coupling in (1.0, -0.1, True, "much"):
        with pytest.raises(InputError, match="coupling is .*; with solver='exact' give a number from 0 to 0.9999"):
            OrthogonalTransfer(coupling=coupling).fit(X, list("abca"))
    with pytest.raises(InputError, match="solver is 'fast'"):
        OrthogonalTransfer(solver="fast").fit(X, list("abca"))
    monkeypatch.setattr(joint_problem, "MOST_NUMBERS", 10)
    with pytest.raises(InputError, match="use system='td-svm', which scales"):
        OrthogonalTransfer().fit(X, list("abca"))


def test_too_many_siblings_are_refused_before_their_pairs_are_listed(monkeypatch):
    def list_pairs(*_):
        raise AssertionError("all pairs were listed")

    monkeypatch.setattr("ramify.learners.structured.ot.branch_outputs", list_pairs)
    monkeypatch.setattr(joint_problem, "MOST_NUMBERS", 5_000)
    with pytest.raises(InputError, match="1,560 dual variables"):
        OrthogonalTransfer().fit(np.eye(80)[:, :5], [f"c{k % 40}" for k in range(80)])


def test_costs_are_chosen_and_models_saved_and_loaded(tmp_path, shop):
    paths = [shop.taxonomy.path_of(shop.taxonomy.index(row[0]))[:2] for row in shop.train.labels]
    branch = [k for k, path in enumerate(paths) if path[0] in (paths[0][0], paths[-1][0])][:60]
    texts, labels = [shop.train.documents[k] for k in branch], [" > ".join(paths[k]) for k in branch]
    fitted = TextClassifier("ot", learner=OrthogonalTransfer(C="auto"), calibrate=False).fit(texts, labels)
    assert fitted.learner_.C_ in fitted.learner_.C_scores_
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(texts[:20]).tolist() == fitted.predict(texts[:20]).tolist()
