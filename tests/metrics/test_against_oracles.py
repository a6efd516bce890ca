"""Every metric equals its slow twin on random trees, forests and DAGs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import metrics as oracle
from strategies import as_matrix, build, labelled

from ramify import metrics

PAIR = labelled(matrices=2)
PLAIN = [
    "accuracy",
    "hierarchical_precision",
    "hierarchical_recall",
    "hierarchical_f1",
    "h_loss",
    "h_loss_by_depth",
    "h_loss_by_node",
    "tree_distance",
    "document_precision",
    "document_recall",
    "document_f1",
]


def both(name, case, *args, **options):
    parents, true, predicted = case
    matrices = as_matrix(true, len(parents)), as_matrix(predicted, len(parents))
    fast = getattr(metrics, name)(*matrices, build(parents), *args, **options)
    return fast, getattr(oracle, name)(true, predicted, parents, *args, **options)


@pytest.mark.parametrize("name", PLAIN)
@given(case=PAIR)
def test_metric_equals_its_oracle(name, case):
    fast, slow = both(name, case)
    np.testing.assert_allclose(fast, slow, atol=1e-12)


@pytest.mark.parametrize("over", ["leaves", "nodes", "own"])
@given(case=PAIR)
def test_micro_f1_equals_its_oracle(over, case):
    fast, slow = both("micro_f1", case, over=over)
    assert fast == pytest.approx(slow)


@pytest.mark.parametrize("over", ["leaves", "nodes", "own"])
@pytest.mark.parametrize("empty", [1.0, 0.0, "skip"])
@given(case=PAIR)
def test_macro_f1_equals_its_oracle(over, empty, case):
    fast, slow = both("macro_f1", case, over=over, empty=empty)
    assert fast == pytest.approx(slow)


@given(PAIR)
def test_scores_of_every_node_equal_the_oracle(case):
    fast, slow = both("precision_recall_f1", case)
    for field, values in slow.items():
        np.testing.assert_allclose(getattr(fast, field), values)


@given(PAIR, st.sampled_from(["siblings", "given"]), st.data())
def test_h_loss_with_costs_equals_its_oracle(case, kind, data):
    n_nodes = len(case[0])
    numbers = st.lists(st.floats(0, 5), min_size=n_nodes, max_size=n_nodes)
    costs = "siblings" if kind == "siblings" else data.draw(numbers)
    for name in ("h_loss", "h_loss_by_depth", "h_loss_by_node"):
        fast, slow = both(name, case, costs=costs)
        np.testing.assert_allclose(fast, slow, atol=1e-12)


@pytest.mark.parametrize("name", ["by_level", "by_subtree"])
@given(case=PAIR)
def test_tables_equal_their_oracles(name, case):
    fast, slow = both(name, case)
    assert len(fast) == len(slow)
    for row, expected in zip(fast, slow, strict=True):
        assert row.key == expected["depth" if name == "by_level" else "root"]
        for field in ("nodes", "support", "precision", "recall", "f1", "macro_f1"):
            assert getattr(row, field) == pytest.approx(expected[field])


@given(PAIR)
def test_sibling_confusion_equals_its_oracle(case):
    fast, slow = both("sibling_confusion", case)
    assert [(row.true, row.predicted, row.count) for row in fast] == slow


@st.composite
def scored(draw, values):
    """Labels, and a value or nothing for each document and node; few distinct values, so that ties are common."""
    parents, true = draw(labelled())
    row = st.lists(st.one_of(st.just(float("nan")), values), min_size=len(parents), max_size=len(parents))
    return parents, true, draw(st.lists(row, min_size=len(true), max_size=len(true)))


def with_scores(name, case, *args):
    parents, true, scores = case
    S = np.asarray(scores, dtype=float).reshape(len(true), len(parents))
    fast = getattr(metrics, name)(as_matrix(true, len(parents)), S, build(parents), *args)
    return fast, getattr(oracle, name)(true, scores, parents, *args)


@given(scored(st.sampled_from([-1.0, 0.0, 0.5, 2.0])))
def test_document_auc_equals_its_oracle(case):
    fast, slow = with_scores("document_auc", case)
    np.testing.assert_allclose(fast, slow)


@given(scored(st.sampled_from([-1.0, 0.0, 0.5, 2.0])), st.integers(1, 4))
def test_precision_at_k_equals_its_oracle(case, k):
    fast, slow = with_scores("precision_at_k", case, k)
    assert fast == pytest.approx(slow)


PROBABILITIES = st.one_of(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0]), st.floats(0, 1))


@given(scored(PROBABILITIES), st.integers(1, 12))
def test_reliability_equals_its_oracle(case, bins):
    fast, slow = with_scores("reliability", case, bins)
    assert len(fast) == len(slow)
    for level, expected in zip(fast, slow, strict=True):
        found = list(zip(level.count, level.mean_probability, level.fraction_true, strict=True))
        np.testing.assert_allclose(found, expected, atol=1e-12)


@given(scored(PROBABILITIES), st.integers(1, 12))
def test_calibration_error_equals_its_oracle(case, bins):
    fast, slow = with_scores("expected_calibration_error", case, bins)
    assert fast == pytest.approx(slow)


@st.composite
def answered(draw):
    parents, true, predicted = draw(labelled(matrices=2))
    row = st.lists(PROBABILITIES, min_size=len(parents), max_size=len(parents))
    return parents, true, predicted, draw(st.lists(row, min_size=len(true), max_size=len(true)))


@given(answered(), st.integers(1, 12))
def test_calibration_of_predictions_equals_its_oracle(case, bins):
    parents, true, predicted, probabilities = case
    P = np.asarray(probabilities, dtype=float).reshape(len(true), len(parents))
    pair = as_matrix(true, len(parents)), as_matrix(predicted, len(parents))
    fast = metrics.prediction_calibration_error(*pair, P, build(parents), bins)
    assert fast == pytest.approx(oracle.prediction_calibration_error(true, predicted, probabilities, parents, bins))
