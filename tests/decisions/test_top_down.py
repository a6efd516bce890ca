import numpy as np
import pytest

from ramify import Taxonomy
from ramify.decisions import Sign, sign, top_down
from ramify.errors import InputError

TREE = Taxonomy.from_paths(["a/x", "a/y", "b"])
DAG = Taxonomy.from_edges([("x", "a"), ("x", "b"), ("a", None), ("b", None)])


def test_nodes_at_or_above_the_threshold_are_taken_with_all_their_ancestors():
    S = np.array([[-1.0, 0.0, -2.0, np.nan], [np.nan, np.nan, np.nan, np.nan], [3.0, -1.0, 1.0, 2.0]])
    assert TREE.decode(sign(S, TREE)) == [["a/x"], [], ["a/y", "b"]]
    assert TREE.decode(sign(S, TREE, threshold=1.5)) == [[], [], ["a", "b"]]


def test_a_dag_is_as_good_as_a_tree():
    taken = sign([[-1.0 if name != "x" else 1.0 for name in DAG.names]], DAG)
    assert taken.toarray().all()


def test_it_is_the_rule_from_the_top_down_where_parents_are_no_lower_than_children():
    S = np.random.default_rng(0).normal(size=(50, 4))
    S[:, 0] = np.maximum(S[:, 0], S[:, 1:3].max(axis=1))
    assert (sign(S, TREE) != top_down(S, TREE)).nnz == 0


def test_a_threshold_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="threshold is 'low'"):
        sign([[0.0] * 4], TREE, threshold="low")
    assert "threshold" in Sign(threshold=np.nan).problem()
