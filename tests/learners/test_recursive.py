"""Recursive learners on trees, DAGs and graphs as users call them, and the search for the best classes."""

import numpy as np
import pytest
from graph_problems import random_dag
from oracles import recursive_regularization as oracle
from scipy.sparse import csr_array, random_array
from seeds import each_seed

from ramify import LabelGraph, Taxonomy
from ramify.errors import InputError, ModelError
from ramify.learners import OneVsRestSVM, RecursiveLogistic, RecursiveSVM
from ramify.learners.linear import dual_solver, weights
from ramify.learners.linear.incremental import add_empty_leaves
from ramify.learners.linear.shards import cut_evenly, take_classes
from ramify.learners.linear.taxonomy_ties import ANCHOR, tie_along_paths

DAG = Taxonomy.from_edges([("a", None), ("b", None), ("x", "a"), ("x", "b"), ("y", "a"), ("z", "b"), ("deep", "z")])
GRAPH = LabelGraph.from_edges([("p", "q"), ("q", "r"), ("r", "p"), ("r", "s"), ("s", "t")], names=["alone"])


def documents(n_docs=40, n_features=8, seed=0):
    rng = np.random.default_rng(seed)
    density = 0.5 if n_features < 50 else 0.05
    return csr_array(random_array((n_docs, n_features), density=density, rng=rng, format="csr")).astype(np.float32)


def labels_from(names, n_docs=40, seed=1):
    return np.random.default_rng(seed).choice(names, n_docs)


def weights_of(fitted, n_units):
    """Units × features, the bias last."""
    made = [fitted.weights_.of_unit(unit) for unit in range(n_units)]
    return np.asarray([np.append(w, b) for w, b in made])


@pytest.mark.parametrize("n_features", [8, 200])
@pytest.mark.parametrize(("learner", "loss"), [(RecursiveSVM, "hinge"), (RecursiveLogistic, "logistic")])
def test_edges_of_a_dag_and_a_graph_reach_the_objective_of_an_independent_solver(learner, loss, n_features):
    X = documents(n_features=n_features)
    dense = np.column_stack([X.toarray(), np.ones(X.shape[0])]).astype(float)
    dag_names, graph_names = ["x", "y", "deep"], ["p", "q", "s", "alone"]
    cases = [
        (DAG, dag_names, oracle.hierarchy_regularizer(6, [(2, 0), (2, 1), (3, 0), (4, 1), (5, 4)]), [2, 3, 5]),
        (GRAPH, graph_names, oracle.graph_regularizer(6, _graph_edges(), ANCHOR), [GRAPH.index(n) for n in graph_names]),
    ]
    for structure, names, M, units in cases:
        y = labels_from(names)
        fitted = learner(structure, tol=1e-5, max_iter=3000, ties="edges").fit(X, [[name] for name in y])
        signs = np.where(y[:, None] == np.asarray(names)[None, :], 1.0, -1.0)
        order = [names.index(structure.names[node]) for node in fitted.class_nodes_]
        signs = signs[:, order]
        units = [units[k] for k in order]
        _, best, _ = oracle.solve(M, dense, signs, np.ones_like(signs), units, loss)
        found = oracle.objective(weights_of(fitted, len(M)), M, dense, signs, np.ones_like(signs), units, loss)
        assert found == pytest.approx(best, rel=1e-4)
        assert fitted.gap_.primal == pytest.approx(best, rel=1e-4)
        assert fitted.gap_.dual <= best * (1 + 1e-6)


def _graph_edges():
    a, b = GRAPH.adjacency.nonzero()
    return [(int(i), int(j)) for i, j in zip(a, b, strict=True) if i < j]


# ---- ancestors of a DAG -------------------------------------------------------------------------------------------------


def random_task(seed, n_features, n_docs=50):
    """A random DAG with labels anywhere, several to a document now and then."""
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, n_nodes=11)
    names = rng.permutation(dag.names)[: int(rng.integers(2, len(dag) + 1))]
    labels = [sorted(set(rng.choice(names, size=1 + (rng.random() < 0.2)).tolist())) for _ in range(n_docs)]
    return dag, documents(n_docs, n_features, seed), labels


def own_labels(dag, labels):
    """The labels that are not above another one of the same document."""
    numbers = [{dag.index(name) for name in each} for each in labels]
    return [each - {int(a) for node in each for a in dag.ancestors_of(node)} for each in numbers]


def as_the_oracle_takes_it(fitted, X, labels):
    """One unit for each node at or above a label, and below a labelled inner node one for its own documents."""
    dag, own = fitted.taxonomy_, own_labels(fitted.taxonomy_, labels)
    classes = fitted.class_nodes_.tolist()
    nodes = sorted({int(v) for node in classes for v in [node, *dag.ancestors_of(node)]})
    place = {node: k for k, node in enumerate(nodes)}
    edges = [(place[v], place[int(p)]) for v in nodes for p in dag.parents_of(v)]
    inner, units, n = {parent for _, parent in edges}, [], len(nodes)
    for node in classes:
        units.append(n if place[node] in inner else place[node])
        if place[node] in inner:
            edges.append((n, place[node]))
            n += 1
    signs = np.array([[1.0 if node in each else -1.0 for node in classes] for each in own])
    dense = np.column_stack([X.toarray(), np.ones(X.shape[0])]).astype(float)
    return oracle.ancestor_regularizer(n, edges), dense, signs, np.ones_like(signs), units


@pytest.mark.parametrize("n_features", [8, 200])
@pytest.mark.parametrize("loss", oracle.LOSSES)
@each_seed(2)
def test_a_dag_reaches_the_objective_and_the_scores_of_an_independent_solver(loss, n_features, seed):
    dag, X, labels = random_task(seed, n_features)
    learner = RecursiveLogistic if loss == "logistic" else RecursiveSVM
    fitted = learner(dag, tol=1e-6, **({} if loss == "logistic" else {"loss": loss})).fit(X, labels)
    M, dense, signs, costs, units = as_the_oracle_takes_it(fitted, X, labels)
    W, best, _ = oracle.solve(M, dense, signs, costs, units, loss, tolerance=1e-5)
    assert fitted.gap_.primal == pytest.approx(best, rel=1e-4)
    assert fitted.gap_.dual <= best * (1 + 1e-5)
    np.testing.assert_allclose(fitted.scores(X)[:, fitted.class_nodes_], dense @ W[units].T, atol=3e-2)


@pytest.mark.parametrize("n_features", [8, 200])
def test_an_edge_that_adds_no_ancestor_changes_nothing(n_features):
    """An edge to a grandparent makes a tree a DAG, but not another problem."""
    tree = Taxonomy.from_edges([("top", None), ("a", "top"), ("b", "top"), ("x", "a"), ("y", "a"), ("z", "b")])
    dag = Taxonomy.from_edges([("top", None), ("a", "top"), ("b", "top"), ("x", "a"), ("x", "top"), ("y", "a"), ("z", "b")])
    X, y = documents(n_features=n_features), labels_from(["x", "y", "z", "a"]).tolist()
    first, other = RecursiveSVM(tree).fit(X, y), RecursiveSVM(dag).fit(X, y)
    np.testing.assert_array_equal(first.scores(X), other.scores(X))
    assert first.gap_.primal == other.gap_.primal


@pytest.mark.parametrize("parameters", [{}, {"mode": "fast"}, {"C": "auto"}, {"n_jobs": 2}], ids=str)
def test_a_saved_model_of_a_dag_scores_the_same_in_one_piece_and_in_shards(parameters, monkeypatch):
    monkeypatch.setattr(dual_solver, "SMALL", 0)
    dag, X, labels = random_task(3, 200, 80)
    fitted = RecursiveSVM(dag, **parameters).fit(X, labels)
    assert fitted.weights_.joins is not None
    values, arrays = fitted.state()
    loaded = RecursiveSVM.from_state(dag, values, arrays)
    np.testing.assert_array_equal(loaded.scores(X), fitted.scores(X))
    many = len(fitted.class_nodes_)
    cut = [take_classes(fitted.weights_, some) for some in cut_evenly(many, 3)]
    together = np.concatenate([part.score(X) for part in cut], axis=1)
    np.testing.assert_allclose(together, fitted.weights_.score(X), rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(weights, "MAX_TABLE", 0)
    np.testing.assert_allclose(fitted.weights_.score(X), together, rtol=1e-5, atol=1e-5)
    for node in fitted.class_nodes_[:3].tolist():
        _, parts, bias = fitted.contributions(X[[0]], node)
        k = fitted.class_nodes_.tolist().index(node)
        assert parts.sum() + bias == pytest.approx(together[0, k], abs=1e-4)


def test_joins_of_a_model_file_that_name_no_units_are_refused():
    dag, X, labels = random_task(3, 200)
    values, arrays = RecursiveSVM(dag).fit(X, labels).state()
    with pytest.raises(ModelError, match="a join of the linear model has a number outside 0 to"):
        RecursiveSVM.from_state(dag, values, arrays | {"join_units": arrays["join_units"] + np.int32(1000)})
    with pytest.raises(ModelError, match="the joins of the linear model do not fit its units"):
        RecursiveSVM.from_state(dag, values, arrays | {"join_offsets": arrays["join_offsets"][:-1]})


def test_a_leaf_without_documents_has_the_increments_of_all_its_ancestors():
    edges = [
        ("a", None),
        ("b", None),
        ("x", "a"),
        ("x", "b"),
        ("y", "a"),
        ("z", "b"),
        ("new", "x"),
        ("new", "z"),
        ("out", None),
    ]
    dag = Taxonomy.from_edges([*edges, ("p", "x"), ("q", "z")])
    X, y = documents(n_features=200), labels_from(["p", "y", "q"]).tolist()
    fitted = RecursiveSVM(dag).fit(X, y)
    ties = tie_along_paths(dag, np.sort(fitted.class_nodes_))
    made, leaves = add_empty_leaves(fitted.weights_, ties, np.array([dag.index("new"), dag.index("out")]), dag)
    assert [dag.names[leaf] for leaf in leaves] == ["new"]
    rows = {dag.names[node]: row for row, node in reversed(list(zip(made.deltas.toarray(), ties.node.tolist(), strict=False)))}
    expected = rows["a"] + rows["b"] + rows["x"] + rows["z"]
    np.testing.assert_allclose(made.of_class(made.n_classes - 1)[0], expected, atol=1e-6)
    np.testing.assert_allclose(made.score(X)[:, -1], X @ expected + made.of_class(made.n_classes - 1)[1], atol=1e-5)


def test_ties_that_do_not_exist_are_refused_with_those_that_do():
    with pytest.raises(InputError, match="ties is 'edge'; give one of 'ancestors', 'edges'. Did you mean 'edges'?"):
        RecursiveSVM(DAG, ties="edge").fit(np.eye(3), ["x", "y", "z"])


def test_a_graph_labels_documents_with_its_names():
    X = documents()
    y = labels_from(["p", "q", "s"])
    predicted = RecursiveSVM(GRAPH).fit(X, y.tolist()).predict(X)
    assert set(predicted) <= {"p", "q", "s"}


def test_a_label_outside_the_graph_is_refused():
    with pytest.raises(ValueError, match="'nowhere' is not in the taxonomy"):
        RecursiveSVM(GRAPH).fit(np.eye(3), ["p", "q", "nowhere"])


@pytest.mark.parametrize("learner", [OneVsRestSVM, RecursiveSVM])
@pytest.mark.parametrize("n_features", [8, 300])
def test_a_search_as_wide_as_all_classes_gives_the_best_of_all(learner, n_features):
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/z/deep", "c"])
    X = documents(60, n_features)
    y = labels_from(["a/x", "a/y", "b/x", "b/z/deep", "c", "b"], 60)
    fitted = learner(taxonomy).fit(X, y.tolist())
    S = fitted.scores(X)
    nodes, scores = fitted.search(X, k=3, width=6)
    np.testing.assert_allclose(np.take_along_axis(S, nodes, axis=1), scores, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(fitted.top_k(X, k=3)[1], scores, rtol=1e-4, atol=1e-5)


def test_a_search_for_more_than_its_width_is_refused():
    fitted = OneVsRestSVM().fit(np.eye(3), ["a", "b", "c"])
    with pytest.raises(InputError, match="k is 3 and width 2; give k of 1 or more, and a width that is no smaller"):
        fitted.search(np.eye(3), k=3, width=2)
    nodes, scores = fitted.search(np.eye(3), k=3, width=10)
    assert nodes.shape == scores.shape == (3, 3)
    assert (nodes[:, 0] == np.arange(3)).all()
