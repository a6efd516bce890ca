"""What is no node, label, edge or path is refused in one sentence."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from ramify import LabelGraph, Taxonomy
from ramify.errors import InputError, LabelError, TaxonomyError
from ramify.taxonomy import as_label_matrix, expand_to_ancestors, write_taxonomy

FOOD = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread"])
DAG = Taxonomy.from_edges([("a", None), ("b", None), ("x", "a"), ("x", "b")])
NO_NODES = [None, "fruit", 1.0, [], [1], {}, object(), np.array([1, 2]), csr_array((2, 2))]
NO_LABELS = [None, 1, b"a", [], {}, object(), np.array(["a"]), csr_array((2, 2)), np.ma.masked]
NO_LISTS = [None, 1, 1.5, object(), "a", b"a", np.array(1)]


@pytest.mark.parametrize("wrong", NO_NODES, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_no_node(wrong):
    for call in (FOOD.path_of, FOOD.nodes_to, FOOD.show, FOOD.parents_of, FOOD.children_of, FOOD.ancestors_of):
        with pytest.raises(InputError, match=r"^a node is .*; give its number, such as Taxonomy.index\(name\)\.$"):
            call(wrong)
    with pytest.raises(InputError, match="a node is "):
        FOOD.descendants_of(wrong)


@pytest.mark.parametrize("wrong", [-1, 4, 2**70, np.int64(-5)])
def test_a_number_out_of_range_is_no_node(wrong):
    for call in (FOOD.path_of, FOOD.nodes_to, FOOD.show, FOOD.parents_of, FOOD.ancestors_of, FOOD.descendants_of):
        with pytest.raises(InputError, match="is not one of the 4 nodes, numbered from 0"):
            call(wrong)


def test_whole_numbers_of_numpy_are_nodes():
    assert FOOD.path_of(np.int32(1)) == FOOD.path_of(np.array(1)) == FOOD.path_of(1) == ("fruit", "apple")


@pytest.mark.parametrize("wrong", NO_LABELS, ids=lambda value: type(value).__name__)
def test_what_is_no_string_is_no_label(wrong):
    for call in (FOOD.index, FOOD.has_node, FOOD.nodes_titled, LabelGraph.from_taxonomy(FOOD).index):
        with pytest.raises(LabelError, match=r"^a label is .*; labels are names or paths, as strings\.$"):
            call(wrong)
    assert wrong not in FOOD


@pytest.mark.parametrize("wrong", NO_LISTS, ids=lambda value: type(value).__name__)
def test_what_is_no_list_makes_no_taxonomy(wrong):
    for make in (Taxonomy.from_edges, Taxonomy.from_paths, Taxonomy.flat, Taxonomy.from_title_paths, LabelGraph.from_edges):
        with pytest.raises(TaxonomyError, match=r"^a list of \w+ is needed, not .*\.$"):
            make(wrong)
    with pytest.raises(LabelError, match="a list of labels is needed, not "):
        FOOD.encode(wrong)


@pytest.mark.parametrize("wrong", [1, None, "ab", b"ab", ("a",), ("a", "b", "c"), object(), np.array(1)])
def test_an_edge_that_is_no_pair_is_named_by_its_number(wrong):
    with pytest.raises(TaxonomyError, match=r"^entry 2 of the edges is .*; give each as a pair, \(child, parent\), or"):
        Taxonomy.from_edges([("a", None), wrong])


@pytest.mark.parametrize("wrong", [1, None, b"a", [], object()])
def test_a_path_or_title_that_is_no_string_is_refused(wrong):
    with pytest.raises(TaxonomyError, match="a path is .*; give every path as a string"):
        Taxonomy.from_paths([wrong])
    with pytest.raises(TaxonomyError, match="a title is .*; give every title as a string"):
        Taxonomy.from_title_paths([["fruit", wrong]])
    with pytest.raises(TaxonomyError, match="a title is .*; give every title as a string"):
        Taxonomy.from_edges([("a", None)], titles={"a": wrong})
    with pytest.raises(TaxonomyError, match="a node needs a name"):
        Taxonomy.flat([wrong])
    with pytest.raises(LabelError, match="a label is "):
        LabelGraph.from_edges([("a", wrong)])


@pytest.mark.parametrize("wrong", [1, None, b"/", [], ""])
def test_a_separator_that_is_no_string_is_refused(wrong):
    with pytest.raises(TaxonomyError, match="the separator is .*; give a non-empty string"):
        Taxonomy.from_edges([("a", None)], separator=wrong)
    if wrong != "":  # no separator at all: every path is a name
        with pytest.raises(TaxonomyError, match="the separator is .*; give a string"):
            Taxonomy.from_paths(["a/b"], wrong)


def test_titles_that_are_no_mapping_are_refused():
    with pytest.raises(TaxonomyError, match="titles is a list of length 1; give a mapping from names to titles"):
        Taxonomy.from_edges([("a", None)], titles=["a"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Taxonomy.from_paths(["a/b\ud800"]),
        lambda: Taxonomy.from_paths(["a", "b"], separator="\ud800"),
        lambda: Taxonomy.from_title_paths([["a", "\udfff"]]),
        lambda: Taxonomy.from_edges([("a", None)], titles={"a": "\ud800"}),
        lambda: Taxonomy.from_edges([("a", None)], separator="\ud800"),
        lambda: Taxonomy.from_state({"nodes": [{"name": "a", "title": "\ud800"}]}),
    ],
)
def test_lone_surrogates_are_refused_since_they_could_not_be_written(make):
    with pytest.raises(TaxonomyError, match="contains a lone surrogate, which is not valid text; fix it"):
        make()


@pytest.mark.parametrize("wrong", [[["a", "b", "c", "d"]], np.zeros((1, 4), dtype=object), np.zeros((1, 4), dtype=complex)])
def test_a_label_matrix_of_other_than_numbers_names_its_type(wrong):
    with pytest.raises(InputError, match=r"a label matrix holds values of type [<\w]+; give 0 and 1, or False and True\."):
        expand_to_ancestors(wrong, FOOD)


def test_a_label_matrix_of_any_real_type_is_read():
    for kind in (bool, np.int8, np.uint64, np.float16, np.float64, np.longdouble):
        assert as_label_matrix(np.array([[0, 1, 0, 1]], dtype=kind), FOOD).indices.tolist() == [1, 3]


def test_rows_of_different_lengths_are_no_label_matrix():
    with pytest.raises(InputError, match="the rows of a label matrix have different lengths"):
        as_label_matrix([[0, 1, 0, 1], [1]], FOOD)


@pytest.mark.parametrize("wrong", [None, 1, "a", np.zeros((2, 4)), csr_array((2, 4)), [[1]], LabelGraph.from_taxonomy(FOOD)])
def test_what_is_no_taxonomy_is_refused(wrong, tmp_path):
    for call in (
        lambda: expand_to_ancestors(np.zeros((1, 4)), wrong),
        lambda: DAG.with_main_parents_of(wrong),
        lambda: write_taxonomy(wrong, tmp_path / "taxonomy.tsv"),
    ):
        with pytest.raises(InputError, match=r"^taxonomy is .*; give a ramify.Taxonomy\.$"):
            call()


@pytest.mark.parametrize("wrong", [None, 1, "abc", [1, 2], [[1, 2, 3]], ["a", "b", "c"], [1j, 0, 0]])
def test_main_parents_need_a_number_for_each_node(wrong):
    with pytest.raises(InputError, match=r"the counts .*; give the number of documents at or below each node\.$"):
        DAG.with_main_parents(wrong)
