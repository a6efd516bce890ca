"""From margins to probabilities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from ramify.calibration import KINDS, Calibration, check_kind, fit_calibration, fit_sigmoid
from ramify.errors import InputError, ModelError

NAN = float("nan")


def noisy(seed, n=80, slope=2.0, offset=0.0):
    rng = np.random.default_rng(seed)
    m = rng.normal(size=n)
    return m, rng.random(n) < 1 / (1 + np.exp(-(slope * m + offset)))


def unlikelihood(m, true):
    """What a sigmoid's slope and offset are to make small, written out."""
    n, n_true = len(m), true.sum()
    target = np.where(true, (n_true + 1) / (n_true + 2), 1 / (n - n_true + 2))

    def of(slope, offset):
        p = np.clip(1 / (1 + np.exp(-(slope * m + offset))), 1e-300, 1 - 1e-16)
        return -np.sum(target * np.log(p) + (1 - target) * np.log(1 - p))

    return of


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.1, 20), st.floats(-2, 2))
def test_no_sigmoid_makes_the_targets_likelier(seed, slope, offset):
    m, true = noisy(seed, slope=slope, offset=offset)
    loss = unlikelihood(m, true)
    if not 0 < true.sum() < len(m):
        return
    with_offset, without = fit_sigmoid(m, true, True), fit_sigmoid(m, true, False)
    best = minimize(lambda ab: loss(*ab), [max(with_offset[0], 0.1), 0.0], bounds=[(0, None), (None, None)])
    assert loss(*with_offset) <= best.fun + 1e-6
    best = minimize(lambda a: loss(a[0], 0.0), [1.0], bounds=[(0, None)])
    assert loss(*without) <= best.fun + 1e-6
    assert without[1] == 0


def test_margins_that_separate_everything_give_a_finite_sigmoid():
    m = np.array([-2.0, -1.0, 1.0, 2.0])
    slope, _ = fit_sigmoid(m, m > 0, False)
    assert 0 < slope < 10


@pytest.mark.parametrize("with_offset", [True, False])
def test_no_classifier_is_turned_around(with_offset):
    m = np.array([-2.0, -1.0, 1.0, 2.0])
    slope, offset = fit_sigmoid(m, m < 0, with_offset)
    assert (slope, round(offset, 9)) == (0.0, 0.0)


def test_with_one_kind_of_document_only_margins_are_log_odds():
    assert fit_sigmoid(np.array([1.0, 2.0]), np.array([True, True]), True) == (1.0, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_rise_with_margins_and_nan_stays_nan(kind):
    m, true = noisy(1)
    fitted = fit_calibration(kind, m[:, None], true[:, None])
    p = fitted.apply(np.linspace(-5, 5, 50)[:, None])
    assert np.all(np.diff(p[:, 0]) >= 0)
    assert np.all((p >= 0) & (p <= 1))
    assert np.isnan(fitted.apply(np.array([[NAN]]))[0, 0])


def test_without_offset_the_side_of_a_margin_stays():
    m, true = noisy(2, offset=3.0)
    p = fit_calibration("sigmoid", m[:, None], true[:, None]).apply(np.array([[-0.01], [0.0], [0.01]]))[:, 0]
    assert p[0] < 0.5 == p[1] < p[2]


def test_isotonic_calibration_is_isotonic_regression():
    m, true = noisy(3)
    fitted = fit_calibration("isotonic", m[:, None], true[:, None])
    expected = IsotonicRegression(out_of_bounds="clip").fit(m, true).predict(np.linspace(-4, 4, 30))
    np.testing.assert_allclose(fitted.apply(np.linspace(-4, 4, 30)[:, None])[:, 0], expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_with_too_few_documents_gets_the_pooled_curve(kind):
    m, true = noisy(4)
    M = np.full((len(m) + 1, 2), NAN)
    M[:-1, 0], M[-1, 1] = m, 0.3
    truth = np.zeros(M.shape, dtype=bool)
    truth[:-1, 0], truth[-1, 1] = true, True
    fitted = fit_calibration(kind, M, truth)
    together = fit_calibration(kind, np.append(m, 0.3)[:, None], np.append(true, True)[:, None])
    at = np.linspace(-2, 2, 9)
    np.testing.assert_allclose(fitted.apply(np.column_stack([at, at]))[:, 1], together.apply(at[:, None])[:, 0])


def test_documents_that_a_classifier_was_not_asked_about_do_not_count():
    m, true = noisy(5)
    M, truth = np.append(m, NAN)[:, None], np.append(true, True)[:, None]
    assert fit_calibration("platt", M, truth).margins == fit_calibration("platt", m[:, None], true[:, None]).margins


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_gives_the_same_curves(kind):
    m, true = noisy(6)
    fitted = fit_calibration(kind, np.column_stack([m, m / 2]), np.column_stack([true, true]))
    again = Calibration.from_arrays(kind, fitted.arrays(), 2)
    np.testing.assert_array_equal(again.apply(np.column_stack([m, m])), fitted.apply(np.column_stack([m, m])))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("curve_offsets", np.array([0, 1])),
        ("curve_offsets", np.array([0, 2, 1])),
        ("curve_offsets", np.array([0.0, 1.0, 2.0])),
        ("curve_margins", np.array([1.0])),
        ("curve_margins", np.array([1.0, NAN])),
        ("curve_probabilities", np.array([1.0, np.inf])),
    ],
)
def test_curves_that_do_not_fit_are_refused(name, wrong):
    m, true = noisy(7)
    arrays = fit_calibration("platt", np.column_stack([m, m]), np.column_stack([true, true])).arrays()
    with pytest.raises(ModelError, match="train the model again"):
        Calibration.from_arrays("platt", arrays | {name: wrong}, 2)


@pytest.mark.parametrize("scale", [1e-10, 1e-4, 1e6, 1e12])
@pytest.mark.parametrize("with_offset", [True, False])
def test_the_unit_of_margins_does_not_matter(scale, with_offset):
    m, true = noisy(8)
    slope, offset = fit_sigmoid(m, true, with_offset)
    scaled = fit_sigmoid(m * scale, true, with_offset)
    np.testing.assert_allclose([scaled[0] * scale, scaled[1]], [slope, offset], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_document_that_weighs_nothing_does_not_count(kind):
    m, true = noisy(9)
    weights = (np.arange(len(m)) % 2).astype(float)
    some = fit_calibration(kind, m[weights > 0][:, None], true[weights > 0][:, None])
    all_of_them = fit_calibration(kind, m[:, None], true[:, None], weights)
    np.testing.assert_allclose(all_of_them.apply(m[:, None]), some.apply(m[:, None]))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("platt", {"curve_margins": np.array([-1.0, 1.0])}),
        ("isotonic", {"curve_offsets": np.array([0, 1, 2]), "curve_probabilities": np.array([0.5, 1.5])}),
        ("isotonic", {"curve_offsets": np.array([0, 2]), "curve_margins": np.array([1.0, 0.0])}),
        ("isotonic", {"curve_offsets": np.array([0, 2]), "curve_probabilities": np.array([0.9, 0.1])}),
    ],
)
def test_curves_that_fall_are_refused(kind, wrong):
    good = {"curve_offsets": np.array([0, 1, 2]), "curve_margins": np.array([0.5, 1.0])}
    arrays = good | {"curve_probabilities": np.array([0.1, 0.9])} | wrong
    with pytest.raises(ModelError, match="train the model again"):
        Calibration.from_arrays(kind, arrays, len(arrays["curve_offsets"]) - 1)


def test_an_unknown_calibration_is_refused():
    with pytest.raises(InputError, match="calibration is 'plat'.*Did you mean 'platt'"):
        check_kind("plat")
