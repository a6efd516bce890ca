import copy
import pickle
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import taxonomy as oracle
from strategies import build, parent_lists, trees

from ramify import Taxonomy, read_taxonomy
from ramify.errors import InputError, LabelError, TaxonomyError


@given(parent_lists())
def test_structure_equals_the_oracle(parents):
    taxonomy = build(parents)
    for node in range(len(parents)):
        assert taxonomy.parents_of(node).tolist() == parents[node]
        assert taxonomy.children_of(node).tolist() == sorted(oracle.children(parents, node))
        assert set(taxonomy.ancestors_of(node).tolist()) == oracle.ancestors(parents, node)
        assert set(taxonomy.descendants_of(node).tolist()) == oracle.descendants(parents, node)
        assert taxonomy.depth[node] == oracle.depth(parents, node)
        assert taxonomy.is_leaf[node] == oracle.is_leaf(parents, node)


@given(parent_lists(), st.randoms(use_true_random=False))
def test_parents_come_before_children_whatever_the_order_of_the_edges(parents, random):
    edges = [(f"n{i}", f"n{p}") for i, above in enumerate(parents) for p in above]
    edges += [(f"n{i}", None) for i, above in enumerate(parents) if not above]
    random.shuffle(edges)
    taxonomy = Taxonomy.from_edges(edges)
    assert sorted(taxonomy.names) == sorted(f"n{i}" for i in range(len(parents)))
    for node in range(len(taxonomy)):
        assert all(parent < node for parent in taxonomy.parents_of(node))
        above = {taxonomy.names[p] for p in taxonomy.parents_of(node)}
        assert above == {f"n{p}" for p in parents[int(taxonomy.names[node][1:])]}


@given(parent_lists())
def test_edges_that_list_parents_first_keep_their_order(parents):
    assert build(parents).names == tuple(f"n{i}" for i in range(len(parents)))


@given(trees())
def test_parent_of_a_tree_is_minus_one_at_roots(parents):
    assert build(parents).parent.tolist() == [above[0] if above else -1 for above in parents]


def test_the_design_example_reads_as_written():
    taxonomy = Taxonomy.from_edges([("apple", "fruit"), ("fruit", None)])
    assert taxonomy.names == ("fruit", "apple")
    assert taxonomy.index("apple") == 1
    assert taxonomy.depth.tolist() == [0, 1]
    assert taxonomy.is_leaf.tolist() == [False, True]
    assert taxonomy.children_of(0).tolist() == [1]
    assert taxonomy.ancestors_of(1).tolist() == [0]


def test_a_node_is_found_by_name_path_and_unique_title(food):
    apple = food.index("food/fruit/apple")
    assert food.index("apple") == apple
    assert food.index("food > fruit > apple") == apple
    assert "apple" in food
    assert "plum" not in food
    assert food.show(apple) == "food/fruit/apple"


def test_a_path_finds_a_node_of_a_taxonomy_made_from_edges():
    taxonomy = Taxonomy.from_edges([("fruit", None), ("apple", "fruit")])
    assert taxonomy.index("fruit/apple") == taxonomy.index("apple") == 1


def test_an_ambiguous_title_asks_for_the_path():
    taxonomy = Taxonomy.from_paths(["a/other", "b/other"])
    advice = "more than one node has the title 'other'; give the whole path, for example 'a/other'"
    with pytest.raises(LabelError, match=advice):
        taxonomy.index("other")


def test_an_unknown_label_names_the_nearest_one(food):
    advice = r"'food/fruit/aple' is not in the taxonomy of 6 nodes. Did you mean 'food/fruit/apple'"
    with pytest.raises(LabelError, match=advice):
        food.index("food/fruit/aple")


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b"), ("b", "a")], "has a cycle: 'a' is below 'b' is below 'a'"),
        ([("a", "a")], "has a cycle: 'a' is below 'a'"),
        ([("a", None), ("a", None)], "node 'a' is listed twice as a root"),
        ([("b", None), ("a", "b"), ("a", "b")], "node 'a' is listed twice below 'b'"),
        ([("b", None), ("a", "b"), ("a", None)], "both as a root and below 'b'"),
        ([("b", None), ("a", None), ("a", "b")], "both as a root and below 'b'"),
        ([("a", "b")], "'b', the parent of 'a', has no row of its own"),
        ([("", None)], "a node needs a name"),
        ([("a", "")], "the parent of 'a' is ''"),
        ([(3, None)], "a node needs a name"),
    ],
)
def test_edges_that_make_no_taxonomy_are_refused(edges, message):
    with pytest.raises(TaxonomyError, match=message):
        Taxonomy.from_edges(edges)


def test_two_parents_are_refused_only_where_a_tree_is_needed(diamond):
    assert not diamond.is_tree
    with pytest.raises(TaxonomyError, match="node 'bottom' has two parents, 'left' and 'right'; hsvm needs a tree"):
        diamond.require_tree("hsvm")
    with pytest.raises(TaxonomyError, match="needs a tree"):
        _ = diamond.parent


def test_arrays_are_frozen_and_copies_are_the_same_object(food):
    with pytest.raises(ValueError, match="read-only"):
        food.depth[0] = 3
    assert copy.deepcopy(food) is food
    assert pickle.loads(pickle.dumps(food)) == food


def test_equal_taxonomies_are_equal_and_hash_alike(food):
    again = Taxonomy.from_paths(["food/fruit/apple", "food/fruit/pear", "food/bread", "drink"])
    assert again == food
    assert hash(again) == hash(food)
    assert food != Taxonomy.flat(["food"])


def test_an_empty_taxonomy_has_no_levels():
    empty = Taxonomy.from_edges([])
    assert len(empty) == 0
    assert empty.n_levels == 0
    assert empty.encode([[]]).shape == (1, 0)


def test_a_hundred_thousand_nodes_load(tmp_path):
    n = 100_000
    parent = np.random.default_rng(0).integers(0, np.maximum(1, np.arange(n)))
    edges = [("n0", None)] + [(f"n{i}", f"n{parent[i]}") for i in range(1, n)]
    path = tmp_path / "taxonomy.tsv"
    path.write_text("".join(f"{child}\t{above or 'ROOT'}\n" for child, above in edges))
    taxonomy = read_taxonomy(path)
    assert len(taxonomy) == n
    assert taxonomy.parent[1:].tolist() == parent[1:].tolist()
    assert taxonomy.encode([["n99999"]]).nnz == taxonomy.depth[-1] + 1


def test_networkx_round_trip(diamond):
    from ramify.taxonomy.graph import to_networkx

    assert Taxonomy.from_networkx(to_networkx(diamond)) == diamond


def test_a_path_is_followed_through_every_sibling_of_the_same_title():
    edges = [("1", None), ("2", None), ("x1", "1"), ("y2", "2"), ("x2", "2")]
    taxonomy = Taxonomy.from_edges(edges, titles={"1": "A", "2": "A", "x1": "x", "x2": "x", "y2": "y"})
    assert taxonomy.names[taxonomy.index("A > y")] == "y2"
    with pytest.raises(LabelError, match="more than one node has the title 'A > x'"):
        taxonomy.index("A > x")


@pytest.mark.parametrize("path", ["a > > b", "a > ", " > a", "a//b"])
def test_a_path_with_an_empty_part_is_refused(path):
    with pytest.raises(TaxonomyError, match="empty part"):
        Taxonomy.from_paths([path], "/" if "/" in path else " > ")


def test_an_unpickled_taxonomy_is_frozen_too(food):
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(pickle.dumps(food)).depth[0] = 1


def test_an_undirected_graph_is_no_taxonomy():
    import networkx

    with pytest.raises(TaxonomyError, match="directed"):
        Taxonomy.from_networkx(networkx.Graph([("a", "b")]))


def test_long_paths_and_many_equal_titles_are_no_trouble():
    depth = 3000
    chain = Taxonomy.from_edges([("0", None), *((str(i), str(i - 1)) for i in range(1, depth))])
    assert chain.index("/".join(map(str, range(depth)))) == depth - 1
    same = Taxonomy.from_edges([(str(i), None) for i in range(60_000)], titles=dict.fromkeys(map(str, range(60_000)), "same"))
    assert "same" not in same
    ladder = [("a0", None), ("b0", None)]
    for i in range(1, 40):
        ladder += [(f"{side}{i}", f"{above}{i - 1}") for side in "ab" for above in "ab"]
    titles = {f"{side}{i}": str(i) for side in "ab" for i in range(40)}
    with pytest.raises(LabelError, match="more than one node"):
        Taxonomy.from_edges(ladder, titles=titles).index("/".join(map(str, range(40))))


def test_arrays_given_stay_as_they_were():
    offsets, nodes = np.asarray([0, 0, 1]), np.asarray([0], dtype=np.int32)
    Taxonomy(("a", "b"), offsets, nodes)
    offsets[0] = 0
    nodes[0] = 0


def test_labels_nested_too_deeply_are_refused(food):
    with pytest.raises(LabelError, match="document 1 has label"):
        food.encode([[["apple"]]])


@pytest.mark.parametrize("method", ["children_of", "parents_of", "ancestors_of", "descendants_of"])
@pytest.mark.parametrize("node", [-1, 6])
def test_a_node_outside_the_taxonomy_is_refused(food, method, node):
    with pytest.raises(InputError, match="numbered from 0"):
        getattr(food, method)(node)


@given(parents=parent_lists(), narrow=st.sampled_from([0, 2, 100]))
def test_narrow_and_wide_levels_have_the_same_descendants(parents, narrow):
    taxonomy = build(parents)
    with mock.patch("ramify.taxonomy.hierarchy.NARROW", narrow):
        found = [taxonomy.descendants_of(node).tolist() for node in range(len(taxonomy))]
    assert found == [[n for n in range(len(taxonomy)) if node in taxonomy.ancestors_of(n)] for node in range(len(taxonomy))]
