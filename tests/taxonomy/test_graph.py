import pytest

from ramify import LabelGraph
from ramify.errors import LabelError, TaxonomyError


def test_edges_have_no_direction_and_count_once():
    graph = LabelGraph.from_edges([("a", "b"), ("b", "a"), ("b", "c")], names=["d"])
    assert graph.names == ("d", "a", "b", "c")
    assert graph.neighbours_of(graph.index("b")).tolist() == [1, 3]
    assert (graph.adjacency != graph.adjacency.T).nnz == 0
    assert graph.adjacency.nnz == 4


def test_components_separate_what_is_not_joined():
    part = LabelGraph.from_edges([("a", "b"), ("c", "d")], names=["e"]).components()
    assert len(set(part.tolist())) == 3


def test_a_taxonomy_forgets_its_direction(diamond):
    graph, bottom = LabelGraph.from_taxonomy(diamond), diamond.index("bottom")
    assert graph.names == diamond.names
    assert graph.neighbours_of(bottom).tolist() == sorted(diamond.parents_of(bottom).tolist())


def test_errors_are_refused():
    with pytest.raises(TaxonomyError, match="'a' has an edge to itself"):
        LabelGraph.from_edges([("a", "a")])
    with pytest.raises(LabelError, match="Did you mean 'apple'"):
        LabelGraph.from_edges([("apple", "pear")]).index("aple")


def test_an_empty_graph_is_a_graph():
    assert len(LabelGraph.from_edges([])) == 0
