import numpy as np
import pytest
from hypothesis import given
from oracles import taxonomy as oracle
from scipy.sparse import csr_array
from strategies import as_matrix, as_sets, build, labelled, parent_lists

from ramify.errors import InputError, LabelError
from ramify.taxonomy import ancestor_matrix, expand_to_ancestors, most_specific


@given(labelled())
def test_encode_equals_the_oracle(case):
    parents, rows = case
    taxonomy = build(parents)
    Y = taxonomy.encode([[f"n{node}" for node in nodes] for nodes in rows])
    assert as_sets(Y) == [oracle.close_upward(parents, nodes) for nodes in rows]
    assert Y.dtype == bool
    assert Y.has_sorted_indices


@given(labelled())
def test_decode_gives_the_most_specific_names(case):
    parents, rows = case
    expected = [sorted(oracle.most_specific(parents, nodes)) for nodes in rows]
    decoded = build(parents).decode(as_matrix(rows, len(parents)))
    assert decoded == [[f"n{node}" for node in nodes] for nodes in expected]


@given(labelled())
def test_encoding_what_was_decoded_changes_nothing(case):
    parents, rows = case
    taxonomy = build(parents)
    Y = expand_to_ancestors(as_matrix(rows, len(parents)), taxonomy)
    assert (taxonomy.encode(taxonomy.decode(Y)) != Y).nnz == 0


@given(labelled())
def test_closing_twice_is_closing_once_and_keeps_every_label(case):
    parents, rows = case
    taxonomy, Y = build(parents), as_matrix(rows, len(parents))
    once = expand_to_ancestors(Y, taxonomy)
    assert (expand_to_ancestors(once, taxonomy) != once).nnz == 0
    assert not np.any(Y & ~once.toarray())


@given(labelled())
def test_most_specific_equals_the_oracle_for_dense_and_sparse(case):
    parents, rows = case
    taxonomy, Y = build(parents), as_matrix(rows, len(parents))
    expected = [oracle.most_specific(parents, nodes) for nodes in rows]
    assert as_sets(most_specific(Y, taxonomy)) == expected
    assert as_sets(most_specific(csr_array(Y), taxonomy)) == expected


@given(parent_lists())
def test_ancestor_matrix_holds_each_node_and_its_ancestors(parents):
    expected = [oracle.ancestors(parents, node) | {node} for node in range(len(parents))]
    assert as_sets(ancestor_matrix(build(parents))) == expected


def test_labels_come_as_a_name_a_list_or_none(food):
    Y = food.encode(["apple", ["pear", "drink"], None, []])
    assert food.decode(Y) == [["food/fruit/apple"], ["food/fruit/pear", "drink"], [], []]


def test_an_inner_label_stays_at_its_node(food):
    assert food.decode(food.encode([["food/fruit"]])) == [["food/fruit"]]


def test_an_ancestor_beside_its_descendant_is_not_most_specific(food):
    assert food.decode(food.encode([["food", "apple"]])) == [["food/fruit/apple"]]


def test_an_unknown_label_names_the_document(food):
    with pytest.raises(LabelError, match="document 2: label 'plum' is not in the taxonomy"):
        food.encode([["apple"], ["plum"]])


def test_a_label_that_is_no_string_is_refused(food):
    with pytest.raises(LabelError, match="document 1 has label 7; labels are names or paths"):
        food.encode([[7]])


@pytest.mark.parametrize("Y", [np.zeros((2, 3)), np.zeros(6)])
def test_a_matrix_of_another_shape_is_refused(food, Y):
    with pytest.raises(InputError, match=r"columns|dimensions"):
        expand_to_ancestors(Y, food)
