"""Recursive learners on trees, DAGs and graphs as users call them, and the search for the best classes."""

import numpy as np
import pytest
from oracles import recursive_regularization as oracle
from scipy.sparse import csr_array, random_array

from ramify import LabelGraph, Taxonomy
from ramify.errors import InputError
from ramify.learners import OneVsRestSVM, RecursiveLogistic, RecursiveSVM
from ramify.learners.linear.taxonomy_ties import ANCHOR

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
def test_a_dag_and_a_graph_reach_the_objective_of_an_independent_solver(learner, loss, n_features):
    X = documents(n_features=n_features)
    dense = np.column_stack([X.toarray(), np.ones(X.shape[0])]).astype(float)
    dag_names, graph_names = ["x", "y", "deep"], ["p", "q", "s", "alone"]
    cases = [
        (DAG, dag_names, oracle.hierarchy_regularizer(6, [(2, 0), (2, 1), (3, 0), (4, 1), (5, 4)]), [2, 3, 5]),
        (GRAPH, graph_names, oracle.graph_regularizer(6, _graph_edges(), ANCHOR), [GRAPH.index(n) for n in graph_names]),
    ]
    for structure, names, M, units in cases:
        y = labels_from(names)
        fitted = learner(structure, tol=1e-5, max_iter=3000).fit(X, [[name] for name in y])
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
