"""Main parents of a DAG, its main-parent tree, and values that are carried over from the tree to the DAG."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import main_parents as oracle
from oracles.taxonomy import close_upward, most_specific
from strategies import as_matrix, as_sets, build, labelled, parent_lists, trees

from ramify import Taxonomy
from ramify.errors import TaxonomyError
from ramify.taxonomy import expand_to_ancestors, labels_on_tree, largest_below, spread_over_dag


def with_documents(parents, rows):
    dag = build(parents)
    Y = expand_to_ancestors(as_matrix(rows, len(parents)), dag)
    return dag.with_main_parents(np.bincount(Y.indices, minlength=len(dag))), Y


@given(labelled(max_documents=4))
def test_the_main_parent_is_the_most_specific_one(case):
    parents, rows = case
    dag, _ = with_documents(parents, rows)
    listed = [dag.parents_of(node).tolist() for node in range(len(dag))]
    assert dag.tree.parent.tolist() == oracle.main_parents(listed, rows)


@given(labelled(max_documents=4))
def test_the_tree_has_the_same_nodes_and_only_edges_of_the_dag(case):
    parents, rows = case
    dag, _ = with_documents(parents, rows)
    tree = dag.tree
    assert tree.is_tree
    assert (tree.names, tree.titles, tree.separator) == (dag.names, dag.titles, dag.separator)
    for node in range(len(dag)):
        assert set(tree.parents_of(node).tolist()) <= set(dag.parents_of(node).tolist())
        assert len(tree.parents_of(node)) == min(1, len(dag.parents_of(node)))
        assert dag.nodes_to(node) == tree.nodes_to(node)


@given(trees())
def test_a_tree_is_its_own_tree(parents):
    tree = build(parents)
    assert tree.with_main_parents(np.zeros(len(tree))) is tree.tree is tree


@given(labelled(max_documents=4))
def test_main_parents_survive_saving_and_pickling_and_are_not_chosen_again(case):
    parents, rows = case
    dag, _ = with_documents(parents, rows)
    assert dag.with_main_parents(-np.arange(len(dag))) is dag
    for again in (Taxonomy.from_state(dag.state()), pickle.loads(pickle.dumps(dag)), build(parents).with_main_parents_of(dag)):
        assert again == dag
        assert again.tree == dag.tree


def test_a_larger_dag_keeps_known_main_parents_where_they_are_still_parents():
    edges = [("a", None), ("b", None), ("x", "a"), ("x", "b"), ("y", "a"), ("y", "b")]
    known = Taxonomy.from_edges(edges).with_main_parents(np.array([3, 1, 1, 1]))
    larger = Taxonomy.from_edges([("c", None), *edges[:5], ("y", "c"), ("z", "c"), ("z", "b")]).with_main_parents_of(known)
    placed = {name: larger.tree.names[larger.tree.parent[larger.index(name)]] for name in "xyz"}
    assert placed == {"x": "b", "y": "a", "z": "c"}


@pytest.mark.parametrize("main", ["c", "x", "", None, 1])
def test_a_main_parent_that_is_no_parent_is_refused(main):
    node = {"name": "x", "parents": ["a", "b"], "main_parent": main}
    with pytest.raises(
        TaxonomyError, match="node 'x' has the main parent .*, which is not one of its parents; give one of 'a', 'b'"
    ):
        Taxonomy.from_state({"nodes": [{"name": "a"}, {"name": "b"}, {"name": "c"}, node]})


@given(labelled(max_documents=4))
def test_labels_on_the_tree_are_the_most_specific_ones_and_what_is_above_them(case):
    parents, rows = case
    dag, Y = with_documents(parents, rows)
    above = [[p] if p >= 0 else [] for p in dag.tree.parent.tolist()]
    expected = [close_upward(above, most_specific(parents, close_upward(parents, row))) for row in rows]
    assert as_sets(labels_on_tree(Y, dag)) == expected


@given(parent_lists(), st.integers(0, 9))
def test_the_largest_below_is_that_of_all_descendants(parents, seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 0.25, 0.5, np.nan], size=(3, len(parents)))
    np.testing.assert_array_equal(largest_below(values, build(parents)), oracle.largest_below(values, parents))


@given(labelled(max_documents=4), st.integers(0, 9))
def test_a_node_gets_the_sum_of_what_ends_at_and_below_it(case, seed):
    parents, rows = case
    dag, _ = with_documents(parents, rows)
    main, rng = dag.tree.parent.tolist(), np.random.default_rng(seed)
    ends = rng.dirichlet(np.ones(len(parents)), size=3)
    P = ends.copy()
    for node in range(len(parents) - 1, -1, -1):
        if main[node] >= 0:
            P[:, main[node]] += P[:, node]
    np.testing.assert_allclose(spread_over_dag(P, dag), oracle.sums_of_ends(P, parents, main), atol=1e-12)
