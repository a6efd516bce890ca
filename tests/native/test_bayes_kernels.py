"""Kernels of Bayesian logistic regression against NumPy and SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, random_array
from seeds import each_seed

from ramify import native


def minimize(scores, variances, beta=0.0):
    n, k = scores.shape
    betas, bounds = np.full(n, float(beta)), np.empty(n)
    tables = [np.empty((n, k)) for _ in range(3)]
    native.minimize_softmax_bound_in_place(scores, variances, betas, bounds, *tables)
    return betas, bounds, *tables


def bound(z, v, beta, xi=None):
    """Bouchard's bound as it is printed, for ξ where it is best if none is given."""
    xi = np.sqrt((z - beta) ** 2 + v) if xi is None else xi
    lam = np.where(xi < 1e-6, 1 / 8, np.tanh(xi / 2) / (4 * np.maximum(xi, 1e-6)))
    return beta + np.sum((z - beta - xi) / 2 + lam * ((z - beta) ** 2 + v - xi**2) + np.logaddexp(0, xi))


SIZES = st.tuples(st.integers(1, 4), st.integers(2, 6))


@given(SIZES.flatmap(lambda s: arrays(float, s, elements=st.floats(-30, 30))), st.floats(0, 100), st.floats(-1e3, 1e3))
def test_slopes_of_a_document_add_up_to_one_wherever_it_starts(scores, most, start):
    variances = np.random.default_rng(0).random(scores.shape) * most
    betas, bounds, slopes, *_ = minimize(scores, variances, start)
    np.testing.assert_allclose(slopes.sum(axis=1), 1, atol=1e-10)
    np.testing.assert_allclose(bounds, minimize(scores, variances)[1], rtol=1e-12, atol=1e-12)
    assert np.all(bounds >= np.logaddexp.reduce(scores, axis=1) - 1e-9)
    assert np.all(betas >= scores.min(axis=1) - 1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 30.0, 1e6])
@pytest.mark.parametrize("spread", [0.0, 1e-12, 1.0, 1e4])
def test_the_bound_is_the_least_over_beta_and_xi(scale, spread):
    rng = np.random.default_rng(0)
    scores, variances = rng.normal(size=(20, 5)) * scale, rng.random((20, 5)) * spread
    betas, bounds, *_ = minimize(scores, variances)
    for z, v, beta, found in zip(scores, variances, betas, bounds, strict=True):
        assert found == pytest.approx(bound(z, v, beta), rel=1e-10)
        high = z.max() + 10 * (1 + scale + spread**0.5)
        best = minimize_scalar(lambda b, z=z, v=v: bound(z, v, b), bounds=(z.min() - 1, high), method="bounded")
        assert found <= best.fun + 1e-9 * abs(best.fun)
        for factor in (0.5, 0.99, 1.01, 2.0):
            assert found <= bound(z, v, beta, factor * np.sqrt((z - beta) ** 2 + v)) + 1e-9 * abs(found)


def test_slopes_and_curvatures_are_derivatives():
    rng = np.random.default_rng(1)
    z, v = rng.normal(size=(1, 4)) * 2, rng.random((1, 4))
    (beta,), _, (slopes,), (twice_lambda,), (curvatures,) = minimize(z, v)
    xi = np.sqrt((z[0] - beta) ** 2 + v[0])
    np.testing.assert_allclose(twice_lambda, np.tanh(xi / 2) / (2 * xi), rtol=1e-12)
    for k in range(4):
        step = np.zeros((1, 4))
        step[0, k] = 1e-5
        rise = minimize(z + step, v)[1][0] - minimize(z - step, v)[1][0]
        assert slopes[k] == pytest.approx(rise / 2e-5, rel=1e-6)
        # the second derivative with β held, from slopes at shifted scores
        ahead, behind = (0.5 + 0.5 * np.tanh(x / 2) / x * t for t in (z[0, k] - beta + 1e-5, z[0, k] - beta - 1e-5)
                         for x in [np.sqrt(t**2 + v[0, k])])  # fmt: skip
        assert curvatures[k] == pytest.approx((ahead - behind) / 2e-5, rel=1e-5)


@each_seed(5)
@pytest.mark.parametrize("n_columns", [1, 7, 8, 33])
def test_products_are_those_of_scipy(seed, n_columns):
    rng = np.random.default_rng(seed)
    rows = csr_array(random_array((13, 9), density=0.3, rng=rng, format="csr"))
    dense, products = rng.normal(size=(9, n_columns)), np.full((13, n_columns), np.nan)
    native.multiply_rows_in_place(native.rows_of(rows), dense, products)
    np.testing.assert_allclose(products, rows @ dense, rtol=1e-13, atol=1e-15)
