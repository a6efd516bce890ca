"""F1 on the modified hierarchy, where inner nodes have leaves for the documents that stop at them."""

import io
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import modified_hierarchy as oracle
from oracles.taxonomy import is_leaf
from rich.console import Console
from strategies import as_matrix, as_sets, build, labelled

from ramify import Taxonomy
from ramify.errors import InputError, LabelError
from ramify.metrics import macro_f1, make_report, micro_f1
from ramify.metrics.hierarchical import modified_f1, modified_hierarchy
from ramify.reports.pages import report_page
from ramify.reports.terminal import render_report
from ramify.workflows import evaluate


@st.composite
def compared(draw):
    """Truth, prediction and some more nodes that have dummies, over a forest or DAG."""
    parents, true, predicted = draw(labelled(matrices=2))
    return parents, true, predicted, draw(st.sets(st.integers(0, len(parents) - 1)))


def matrices(parents, *rows):
    return tuple(as_matrix(labels, len(parents)) for labels in rows)


@given(compared())
def test_scores_equal_those_of_a_tree_built_by_hand(case):
    parents, true, predicted, own_nodes = case
    fast = asdict(modified_f1(*matrices(parents, true, predicted), build(parents), own_nodes))
    slow = oracle.modified_f1(true, predicted, parents, own_nodes)
    assert list(fast) == list(slow)
    for group, row in slow.items():
        assert fast[group] == pytest.approx(row)


@given(compared())
def test_the_modified_taxonomy_is_an_ordinary_one_and_its_leaves_give_the_same_f1(case):
    parents, true, predicted, own_nodes = case
    T, P = matrices(parents, true, predicted)
    modified = modified_hierarchy(T, build(parents), own_nodes)
    moved = modified.map_labels(T), modified.map_labels(P), modified.taxonomy
    scores = modified_f1(T, P, build(parents), own_nodes)
    assert micro_f1(*moved) == pytest.approx(scores.all.micro_f1)
    assert macro_f1(*moved) == pytest.approx(scores.all.macro_f1)
    assert macro_f1(*moved, empty="skip") == pytest.approx(scores.all.macro_f1_occurring)


@given(labelled())
def test_every_true_document_stops_at_leaves_only(case):
    parents, true = case
    modified = modified_hierarchy(as_matrix(true, len(parents)), build(parents))
    for row in as_sets(modified.map_labels(as_matrix(true, len(parents)))):
        inner = {node for node in row if not modified.taxonomy.is_leaf[node]}
        assert all(row & set(modified.taxonomy.children_of(node).tolist()) for node in inner)


@given(labelled())
def test_a_perfect_prediction_scores_one_everywhere(case):
    parents, true = case
    scores = asdict(modified_f1(*matrices(parents, true, true), build(parents)))
    for row in scores.values():
        assert row["micro_f1"] == row["macro_f1"] == row["macro_f1_occurring"] == 1.0


@given(compared())
def test_original_leaves_score_as_they_do_without_dummies(case):
    parents, true, predicted, own_nodes = case
    T, P = matrices(parents, true, predicted)
    scores = modified_f1(T, P, build(parents), own_nodes).leaves
    assert scores.micro_f1 == pytest.approx(micro_f1(T, P, build(parents)))
    assert scores.macro_f1 == pytest.approx(macro_f1(T, P, build(parents)))
    assert scores.n_classes == sum(is_leaf(parents, node) for node in range(len(parents)))


def test_a_prediction_at_an_inner_node_without_a_dummy_counts_nowhere(food):
    true, said = food.encode(["apple", "pear"]), food.encode(["fruit", "pear"])
    scores = modified_f1(true, said, food)
    assert scores.dummies.n_classes == 0
    assert scores.all.micro_f1 == pytest.approx(2 / 3)  # one of two found, nothing wrong
    with_dummy = modified_f1(true, said, food, own_nodes=["fruit"])
    assert with_dummy.dummies.n_classes == 1
    assert with_dummy.dummies.micro_f1 == 0
    assert with_dummy.all.micro_f1 == pytest.approx(1 / 2)


def test_a_class_that_neither_occurs_nor_is_predicted_has_f1_one(food):
    Y = food.encode(["apple"]), food.encode(["bread"])
    scores = modified_f1(*Y, food, own_nodes=["fruit"]).all
    assert (scores.n_classes, scores.n_occurring, scores.n_labels) == (5, 2, 1)
    assert scores.macro_f1 == pytest.approx(3 / 5)
    assert scores.macro_f1_occurring == 0


def test_a_dummy_hangs_below_its_node_under_a_name_that_is_free():
    taxonomy = Taxonomy.from_edges([("a", None), ("a (own)", "a"), ("b", "a")])
    modified = modified_hierarchy(taxonomy.encode(["a"]), taxonomy)
    assert modified.taxonomy.names == ("a", "a (own)", "b", "a (own) (own)")
    assert modified.own_nodes.tolist() == [0]
    assert modified.taxonomy.parents_of(3).tolist() == [0]
    assert modified.taxonomy.decode(modified.map_labels(taxonomy.encode(["a", "b"]))) == [["a (own) (own)"], ["b"]]


def test_a_dummy_of_a_dag_hangs_below_its_node_alone(diamond):
    modified = modified_hierarchy(diamond.encode(["left"]), diamond)
    assert modified.taxonomy.names[-1] == "left (own)"
    assert [modified.taxonomy.names[p] for p in modified.taxonomy.parents_of(4)] == ["left"]


def test_nodes_may_be_given_by_name_or_number_and_leaves_among_them_need_no_dummy(food):
    Y = food.encode(["apple"])
    numbers = np.asarray([food.index("fruit"), food.index("apple")])
    assert modified_hierarchy(Y, food, numbers).own_nodes.tolist() == [food.index("fruit")]
    assert modified_hierarchy(Y, food, ["food/fruit", "pear"]).own_nodes.tolist() == [food.index("fruit")]


@pytest.mark.parametrize("own_nodes", ["fruit", [99], [-1], [True], [1.5], [None]])
def test_own_nodes_that_are_no_nodes_are_refused(food, own_nodes):
    with pytest.raises(InputError, match="own_nodes"):
        modified_f1(food.encode(["apple"]), food.encode(["apple"]), food, own_nodes)


def test_an_unknown_name_and_unlike_documents_are_refused(food):
    with pytest.raises(LabelError, match="'plum' is not in the taxonomy"):
        modified_f1(food.encode(["apple"]), food.encode(["apple"]), food, ["plum"])
    with pytest.raises(InputError, match="same documents"):
        modified_f1(food.encode(["apple"]), food.encode(["apple", "pear"]), food)


def shown(report, width=80):
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(render_report(report))
    return console.export_text()


def test_a_report_shows_the_modified_hierarchy_only_when_asked(food):
    Y = food.encode(["apple", "fruit"]), food.encode(["apple", "pear"])
    usual, extra = make_report(*Y, food), make_report(*Y, food, hierarchy="modified")
    assert "modified" not in usual.as_dict()
    assert [row["over"] for row in extra.as_dict()["modified"]] == ["all", "leaves", "dummies"]
    assert {key: value for key, value in extra.as_dict().items() if key != "modified"} == usual.as_dict()
    for show in (shown, lambda report: report_page(report, "t")):
        assert "Modified hierarchy" not in show(usual)
        assert "dummy leaves" in show(extra)


def test_without_dummies_the_tables_show_no_f1_of_them(food):
    Y = food.encode(["apple"])
    report = make_report(Y, Y, food, hierarchy="modified")
    line = next(line for line in shown(report).splitlines() if line.startswith("dummy leaves"))
    assert line.split()[-6:] == ["0", "0", "0", "–", "–", "–"]
    assert report.modified[2]["micro_f1"] == 1


def test_evaluating_on_the_modified_hierarchy_agrees_with_the_measure(classifier, shop):
    report = evaluate(classifier, shop.test, hierarchy="modified")
    true = shop.taxonomy.encode(shop.test.labels)
    scores = modified_f1(true, classifier.predict_matrix(shop.test.documents), shop.taxonomy)
    assert {row["over"]: row["micro_f1"] for row in report.modified} == {
        name: row["micro_f1"] for name, row in asdict(scores).items()
    }
    assert scores.all.n_labels == scores.leaves.n_labels + scores.dummies.n_labels


def test_an_unknown_hierarchy_is_refused(classifier, shop):
    with pytest.raises(InputError, match="hierarchy is 'modifed'; give 'original' or 'modified'"):
        evaluate(classifier, shop.test, hierarchy="modifed")
