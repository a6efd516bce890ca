"""What the definitions say: worked examples, degenerate cases, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from scipy.sparse import csr_array
from strategies import as_matrix, build, labelled

from ramify import Taxonomy, metrics
from ramify.errors import InputError

EVERY = [
    "accuracy",
    "micro_f1",
    "macro_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "hierarchical_f1",
    "document_f1",
]


@pytest.fixture
def pair(food):
    """apple right; apple taken for pear; apple taken for bread; drink missed; nothing true, drink said."""
    true = food.encode(["apple", "apple", "apple", "drink", None])
    predicted = food.encode(["apple", "pear", "bread", None, "drink"])
    return true, predicted, food


def test_a_worked_example(pair):
    assert metrics.accuracy(*pair) == pytest.approx(1 / 5)
    # true pairs 3 + 3 + 3 + 1 + 0, predicted 3 + 3 + 2 + 0 + 1, shared 3 + 2 + 1 + 0 + 0
    assert metrics.hierarchical_precision(*pair) == pytest.approx(6 / 9)
    assert metrics.hierarchical_recall(*pair) == pytest.approx(6 / 10)
    assert metrics.hierarchical_f1(*pair) == pytest.approx(12 / 19)
    # wrong first at: -, apple and pear, fruit and bread, drink, drink
    assert metrics.h_loss(*pair) == pytest.approx((0 + 2 + 2 + 1 + 1) / 5)
    assert metrics.h_loss_by_depth(*pair).tolist() == pytest.approx([2 / 5, 2 / 5, 2 / 5])
    assert metrics.tree_distance(*pair).tolist() == [0, 2, 3, 1, 1]
    confused = [(row.true, row.predicted, row.count) for row in metrics.sibling_confusion(*pair)]
    names = pair[2].names
    assert [(names[a], names[b], n) for a, b, n in confused] == [
        ("food/fruit", "food/bread", 1),
        ("food/fruit/apple", "food/fruit/pear", 1),
    ]


@pytest.mark.parametrize("name", EVERY)
def test_perfect_predictions_score_one(name, food):
    Y = food.encode(["apple", ["pear", "drink"], None, "food"])
    assert getattr(metrics, name)(Y, Y, food) == 1


@pytest.mark.parametrize("name", EVERY)
def test_nothing_true_and_nothing_predicted_is_agreement(name, food):
    empty = food.encode([None, None])
    assert getattr(metrics, name)(empty, empty, food) == 1
    none = food.encode([])
    assert getattr(metrics, name)(none, none, food) == 1


@pytest.mark.parametrize("name", [name for name in EVERY if name != "macro_f1"])
def test_one_side_empty_scores_zero(name, food):
    something, nothing = food.encode(["apple", "drink"]), food.encode([None, None])
    assert getattr(metrics, name)(something, nothing, food) == 0
    assert getattr(metrics, name)(nothing, something, food) == 0


def test_an_absent_class_counts_as_asked(food):
    Y, wrong = food.encode(["apple"]), food.encode(["pear"])
    # of four leaves apple and pear are wrong, bread and drink absent
    assert metrics.macro_f1(Y, wrong, food) == 0.5
    assert metrics.macro_f1(Y, wrong, food, empty=0.0) == 0
    assert metrics.macro_f1(Y, wrong, food, empty="skip") == 0


def test_own_counts_documents_that_stop_at_inner_nodes(food):
    true, predicted = food.encode(["food", "apple"]), food.encode(["food", "food"])
    assert metrics.micro_f1(true, predicted, food, over="own") == 0.5
    assert metrics.micro_f1(true, predicted, food, over="leaves") == 0
    assert metrics.macro_f1(true, predicted, food, over="own") == pytest.approx((2 / 3 + 0) / 2)


@given(labelled(matrices=2))
def test_closing_the_matrices_first_changes_nothing(case):
    parents, true, predicted = case
    taxonomy, n = build(parents), len(parents)
    raw = metrics.make_report(as_matrix(true, n), as_matrix(predicted, n), taxonomy)
    Y = taxonomy.encode(taxonomy.decode(as_matrix(true, n))), csr_array(as_matrix(predicted, n))
    assert metrics.make_report(*Y, taxonomy).as_dict() == raw.as_dict()


@given(labelled(matrices=2, most_parents=1))
def test_the_parts_of_h_loss_add_up_and_never_exceed_the_wrong_nodes(case):
    parents, true, predicted = case
    pair = as_matrix(true, len(parents)), as_matrix(predicted, len(parents)), build(parents)
    total = metrics.h_loss(*pair)
    assert metrics.h_loss_by_node(*pair).sum() == pytest.approx(total)
    assert metrics.h_loss_by_depth(*pair).sum() == pytest.approx(total)
    assert total <= (metrics.tree_distance(*pair).mean() if true else 0) + 1e-12


def test_matrices_of_other_shapes_are_refused(food):
    Y = food.encode(["apple"])
    with pytest.raises(InputError, match="Y_true has 1 documents and Y_pred has 2"):
        metrics.accuracy(Y, food.encode(["apple", "pear"]), food)
    with pytest.raises(InputError, match="6 nodes"):
        metrics.accuracy(np.zeros((1, 4)), np.zeros((1, 4)), food)
    with pytest.raises(InputError, match="scores have shape"):
        metrics.document_auc(Y, np.zeros((1, 2)), food)
    with pytest.raises(InputError, match="probabilities have shape"):
        metrics.reliability(Y, np.zeros((1, 2)), food)


@pytest.mark.parametrize("costs", ["sibling", [1.0], [float("nan")] * 6, [-1.0] * 6])
def test_costs_that_make_no_sense_are_refused(food, costs):
    Y = food.encode(["apple"])
    with pytest.raises(InputError, match="costs"):
        metrics.h_loss(Y, Y, food, costs=costs)


def test_wrong_options_are_refused(food):
    Y = food.encode(["apple"])
    with pytest.raises(InputError, match="over is 'leafs'"):
        metrics.micro_f1(Y, Y, food, over="leafs")
    with pytest.raises(InputError, match="k is 0"):
        metrics.precision_at_k(Y, np.zeros((1, 6)), food, 0)


def test_an_empty_taxonomy_can_be_evaluated():
    nothing = Taxonomy.from_edges([])
    report = metrics.make_report(np.zeros((2, 0)), np.zeros((2, 0)), nothing)
    assert report.figures["accuracy"] == 1
