"""From margins to probabilities: one curve per classifier, fitted on documents that it was not trained on.

    sigmoid    p = 1 / (1 + exp(−s m))            one slope: the sign of a margin decides, as before
    platt      p = 1 / (1 + exp(−(s m + b)))      slope and offset
    isotonic   p = a rising step function, linear in between

Sources: Platt 1999 with his smoothed targets, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2); without offset, Cesa-Bianchi, Gentile &
Zaniboni 2006, section 4; Zadrozny & Elkan 2002 for isotonic calibration.
Deviations: a slope is never negative, so no classifier is inverted; classifiers with too few positive or negative documents
get the curve of all margins pooled.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from ramify.errors import InputError, ModelError, suggest
from ramify.persistence import are_offsets, is_increasing

KINDS = ("sigmoid", "platt", "isotonic")
MIN_DOCUMENTS = 2  # positive and negative ones each, for a curve of its own
MAX_ITERATIONS, TOLERANCE = 100, 1e-10
MAX_POOLED = 1 << 20  # margins for the pooled curve

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of n classifiers: of classifier k the margins and probabilities at ``offsets[k] … offsets[k + 1]``.

    A sigmoid has one such pair, its slope and its offset; an isotonic curve has its points.
    """

    kind: str
    offsets: NDArray[np.int64]
    margins: Floats
    probabilities: Floats

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def apply(self, margins: NDArray[np.floating[Any]]) -> Floats:
        """Probabilities of documents × classifiers; NaN stays NaN."""
        m = np.asarray(margins, dtype=np.float64)
        if self.kind != "isotonic":
            return np.asarray(expit(self.margins * m + self.probabilities))
        parts = (slice(first, last) for first, last in pairwise(self.offsets))
        columns = [np.interp(m[:, k], self.margins[part], self.probabilities[part]) for k, part in enumerate(parts)]
        return np.where(np.isnan(m), np.nan, np.column_stack(columns)) if columns else m

    def append(self, other: Calibration) -> Calibration:
        """The curves of both, one after the other."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]])
        margins = np.concatenate([self.margins, other.margins])
        return Calibration(self.kind, offsets, margins, np.concatenate([self.probabilities, other.probabilities]))

    def take(self, classifiers: NDArray[np.int64]) -> Calibration:
        """The curves of some classifiers."""
        lengths = np.diff(self.offsets)[classifiers]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        taken = np.repeat(self.offsets[classifiers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Calibration(self.kind, offsets, self.margins[taken], self.probabilities[taken])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file stores."""
        return {"curve_offsets": self.offsets, "curve_margins": self.margins, "curve_probabilities": self.probabilities}

    @classmethod
    def from_arrays(cls, kind: str, arrays: dict[str, NDArray[Any]], n: int) -> Self:
        """Make curves from stored arrays, after checking them."""
        made = cls(kind, *(arrays[f"curve_{name}"] for name in ("offsets", "margins", "probabilities")))
        fits = made.margins.dtype == made.probabilities.dtype == np.float64 and made.margins.ndim == 1
        fits = fits and made.margins.shape == made.probabilities.shape and are_offsets(made.offsets, n, len(made.margins))
        if not fits or not is_increasing(made.offsets, strictly=True) or not np.isfinite(made.margins).all():
            raise ModelError("the calibration does not fit the classifiers; train the model again.")
        m, p = made.margins, made.probabilities
        if kind == "isotonic":
            inside = np.setdiff1d(np.arange(1, len(m)), made.offsets)
            rises = all((array[inside] >= array[inside - 1]).all() for array in (m, p)) and ((p >= 0) & (p <= 1)).all()
        else:
            rises = len(m) == n and np.isfinite(p).all() and (m >= 0).all()
        if not rises:
            raise ModelError("the calibration does not give probabilities that rise; train the model again.")
        return made


def check_kind(kind: Any) -> None:
    """Refuse an unknown calibration."""
    if kind is not None and kind not in KINDS:
        names = ", ".join(map(repr, KINDS))
        raise InputError(f"calibration is {kind!r}; give one of {names}, or None for none.{suggest(str(kind), KINDS)}")


def fit_calibration(
    kind: str, margins: NDArray[np.floating[Any]], truth: NDArray[np.bool_], weights: Floats | None = None
) -> Calibration:
    """Fit the curves to held-out margins, documents × classifiers; a classifier ignores documents where its margin is NaN.

    weights: of the documents (default: 1 each).

    >>> margins = np.array([[-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0]])
    >>> fitted = fit_calibration("sigmoid", margins, margins > -0.7)
    >>> fitted.apply(np.array([[0.0], [1.0]])).round(2).tolist()
    [[0.5], [0.68]]
    """
    weights = np.ones(len(margins)) if weights is None else weights
    pooled: tuple[Floats, Floats] | None = None
    curves = []
    for column in range(margins.shape[1]):
        counts = ~np.isnan(margins[:, column]) & (weights > 0)
        m, true, weight = margins[counts, column].astype(np.float64), truth[counts, column], weights[counts]
        if MIN_DOCUMENTS <= true.sum() <= len(true) - MIN_DOCUMENTS:
            curves.append(_curve(kind, m, true, weight))
        else:
            pooled = pooled or _curve(kind, *_pool(margins, truth, weights))
            curves.append(pooled)
    offsets = np.cumsum([0, *(len(m) for m, _ in curves)])
    ends = [np.concatenate([curve[part] for curve in curves] or [np.zeros(0)]) for part in (0, 1)]
    return Calibration(kind, offsets.astype(np.int64), ends[0], ends[1])


def _pool(margins: NDArray[Any], truth: NDArray[np.bool_], weights: Floats) -> tuple[Any, Any, Any]:
    """Margins, truth and weights of all classifiers; of a sample of the documents where there are very many."""
    some = np.arange(len(margins))
    if margins.size > MAX_POOLED:
        some = np.sort(np.random.default_rng(0).permutation(len(margins))[: max(1, MAX_POOLED // margins.shape[1])])
    counts = ~np.isnan(margins[some]) & (weights[some, None] > 0)
    each = np.broadcast_to(weights[some, None], counts.shape)
    return margins[some][counts].astype(np.float64), truth[some][counts], each[counts]


def _curve(kind: str, m: Floats, true: NDArray[np.bool_], weight: Floats) -> tuple[Floats, Floats]:
    if kind != "isotonic":
        slope, offset = fit_sigmoid(m, true, kind == "platt", weight)
        return np.array([slope]), np.array([offset])
    if not len(m):
        return np.array([-1.0, 1.0]), np.array([0.0, 1.0])
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(m, true.astype(np.float64), weight)
    return fitted.X_thresholds_.astype(np.float64), fitted.y_thresholds_.astype(np.float64)


def fit_sigmoid(m: Floats, true: NDArray[np.bool_], with_offset: bool, weight: Floats | None = None) -> tuple[float, float]:
    """Slope and offset with the highest likelihood of Platt's smoothed targets; 1 and 0 where all documents are alike."""
    weight = np.ones(len(m)) if weight is None else weight
    n_true, n = float(weight[true].sum()), float(weight.sum())
    scale = float(np.abs(m).max(initial=0.0))
    if not 0 < n_true < n or scale == 0:
        return 1.0, 0.0
    target = np.where(true, (n_true + 1) / (n_true + 2), 1 / (n - n_true + 2))
    Z = np.column_stack([m / scale, np.ones(len(m))]) if with_offset else m[:, None] / scale
    # Newton's method with step halving for a logistic model without regularization
    beta = np.zeros(Z.shape[1])
    value = _likelihood(Z @ beta, target, weight)
    for _ in range(MAX_ITERATIONS):
        p = expit(Z @ beta)
        gradient = Z.T @ (weight * (target - p))
        curvature = (Z * (weight * p * (1 - p))[:, None]).T @ Z + 1e-12 * np.eye(Z.shape[1])
        step, size = np.linalg.lstsq(curvature, gradient, rcond=None)[0], 1.0
        while size > TOLERANCE and _likelihood(Z @ (beta + size * step), target, weight) < value:
            size /= 2
        beta = beta + size * step
        new_value = _likelihood(Z @ beta, target, weight)
        if new_value - value <= TOLERANCE * abs(value):
            break
        value = new_value
    if beta[0] < 0:  # margins that point the wrong way are ignored: the probability is how often the label is true
        rate = float(np.clip(np.average(target, weights=weight), 1e-12, 1 - 1e-12))
        return 0.0, float(np.log(rate / (1 - rate))) if with_offset else 0.0
    return float(beta[0]) / scale, float(beta[1]) if with_offset else 0.0


def _likelihood(z: Floats, target: Floats, weight: Floats) -> float:
    """Σ weight · (target ln p + (1 − target) ln(1 − p)), without overflow."""
    return float(np.sum(weight * (target * z - np.logaddexp(0, z))))
