"""Every pair of many systems, put to every test."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import as_matrix, build, labelled

from ramify import Taxonomy, metrics
from ramify.errors import InputError
from ramify.metrics.resampling import MEASURES, compare_all_predictions, from_sums, measure_rows, modified_classes, on_classes

SLOW = {
    "accuracy": metrics.accuracy,
    "hierarchical_f1": metrics.hierarchical_f1,
    "h_loss": lambda T, P, taxonomy: -metrics.h_loss(T, P, taxonomy),
}


def close(one, other):
    """The same findings, but for rounding; NaN is NaN."""
    return all(a == b or (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b) for a, b in zip(one, other, strict=True))


@settings(max_examples=25)
@given(labelled(matrices=4), st.integers(0, 99))
def test_every_pair_is_tested_as_it_would_be_alone(case, seed):
    parents, *rows = case
    assume(rows[0])
    taxonomy = build(parents)
    T, *answers = [as_matrix(some, len(taxonomy)) for some in rows]
    predictions = dict(zip("xyz", answers, strict=True))
    found = compare_all_predictions(T, predictions, taxonomy, n_resamples=15, seed=seed)
    assert list(found) == list(combinations("xyz", 2))
    for a, b in found:
        alone = metrics.compare_predictions(T, predictions[a], predictions[b], taxonomy, n_resamples=15, seed=seed)
        assert list(found[a, b]) == list(alone)
        for test, its in found[a, b].items():
            assert close((its.p_value, its.difference, its.n), (alone[test].p_value, alone[test].difference, alone[test].n))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_bootstraps_are_those_of_the_measures_one_resample_at_a_time(food, alternative):
    """Above zero, A is better, also in a loss."""
    rng = np.random.default_rng(0)
    labels = np.array(["food/fruit/apple", "food/fruit/pear", "food/fruit", "food/bread", "drink"])
    T, A, B = (
        food.encode(labels[np.where(rng.random(60) < share, np.arange(60) % 5, rng.integers(5, size=60))].tolist())
        for share in (1, 0.8, 0.5)
    )
    found = metrics.compare_predictions(T, A, B, food, n_resamples=60, seed=3, alternative=alternative)
    for name, measure in SLOW.items():
        one_by_one = metrics.paired_bootstrap(
            T, A, B, lambda T, P, m=measure: m(T, P, food), n_resamples=60, seed=3, alternative=alternative
        )  # fmt: skip
        quick = found[f"bootstrap_{name}"]
        assert (quick.difference, quick.low, quick.high) == pytest.approx(
            (one_by_one.difference, one_by_one.low, one_by_one.high)
        )
        assert quick.p_value == pytest.approx(one_by_one.p_value)
        assert quick.difference > 0
    classes = modified_classes(T, food)
    own = [on_classes(Y, classes, food) for Y in (T, A, B)]
    for name in ("micro_f1", "macro_f1"):
        drawn = metrics.paired_bootstrap(*own, name, n_resamples=60, seed=3, alternative=alternative)
        assert found[f"bootstrap_{name}"].p_value == drawn.p_value


@given(labelled(matrices=2), st.integers(0, 99))
def test_many_sums_are_measured_as_one_by_one(case, seed):
    parents, *rows = case
    assume(rows[0])
    taxonomy = build(parents)
    T, P = (as_matrix(some, len(taxonomy)) for some in rows)
    documents = measure_rows(T, P, taxonomy, modified_classes(T, taxonomy))
    times = np.random.default_rng(seed).integers(1, 4, size=(5, documents.shape[0])).astype(float)
    at_once = from_sums(times @ documents)
    assert at_once.shape == (5, len(MEASURES))
    assert np.array_equal(at_once, np.stack([from_sums(row) for row in times @ documents]))


def test_resampling_nothing_and_nothing_to_resample_are_refused():
    taxonomy = Taxonomy.flat(["a", "b"])
    T = taxonomy.encode(["a"])
    with pytest.raises(InputError, match="n_resamples is 0"):
        compare_all_predictions(T, {"x": T, "y": T}, taxonomy, n_resamples=0)
    nothing = taxonomy.encode([])
    for compare in (
        lambda: compare_all_predictions(nothing, {"x": nothing, "y": nothing}, taxonomy),
        lambda: metrics.compare_predictions(nothing, nothing, nothing, taxonomy),
    ):
        with pytest.raises(InputError, match="no documents to draw from"):
            compare()
