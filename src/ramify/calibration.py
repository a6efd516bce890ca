"""From margins to probabilities, one curve a classifier, learnt from margins of documents that it had not seen.

    sigmoid    p = 1 / (1 + exp(−s m))            one slope: the side on which a margin lies stays what it is
    platt      p = 1 / (1 + exp(−(s m + b)))      slope and offset
    isotonic   p = a rising step function, linear in between

Sources: Platt 1999 with his smoothed targets, (n₊ + 1) / (n₊ + 2) and 1 / (n₋ + 2); without offset, Cesa-Bianchi, Gentile &
Zaniboni 2006, section 4; Zadrozny & Elkan 2002 for isotonic calibration.
Deviations: a slope is never below 0, so no classifier is turned around; classifiers with too few documents of one kind share
the curve of all margins together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from ramify.errors import InputError, ModelError, suggest

KINDS = ("sigmoid", "platt", "isotonic")
ENOUGH = 2  # documents of each kind that a curve of its own needs
STEPS, CLOSE = 100, 1e-10

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves of n classifiers: of classifier k the margins and probabilities at ``offsets[k] … offsets[k + 1]``.

    A sigmoid has one such pair, its slope and its offset; an isotonic curve has its corners.
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
        columns = [np.interp(m[:, k], *self._curve(k)) for k in range(len(self))]
        return np.where(np.isnan(m), np.nan, np.column_stack(columns)) if columns else m

    def _curve(self, k: int) -> tuple[Floats, Floats]:
        here = slice(self.offsets[k], self.offsets[k + 1])
        return self.margins[here], self.probabilities[here]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""
        return {
            "curve_offsets": self.offsets,
            "curve_margins": self.margins,
            "curve_probabilities": self.probabilities,
        }

    @classmethod
    def from_arrays(cls, kind: str, arrays: dict[str, NDArray[Any]], n: int) -> Self:
        """Make curves of what was kept, after checking them."""
        made = cls(kind, *(arrays[f"curve_{name}"] for name in ("offsets", "margins", "probabilities")))
        types = [array.dtype for array in (made.offsets, made.margins, made.probabilities)]
        fits = types == [np.int64, np.float64, np.float64] and made.offsets.shape == (n + 1,)
        fits = fits and made.margins.shape == made.probabilities.shape == (int(made.offsets[-1]),) and made.offsets[0] == 0
        if not fits or np.any(np.diff(made.offsets) < 1) or not np.isfinite(made.margins).all():
            raise ModelError("the calibration does not fit the classifiers; train the model again.")
        in_range = ((made.probabilities >= 0) & (made.probabilities <= 1)).all()
        if not (in_range if kind == "isotonic" else np.isfinite(made.probabilities).all() and len(made.margins) == n):
            raise ModelError("the calibration does not give probabilities; train the model again.")
        return made


def check_kind(kind: Any) -> None:
    """Refuse a calibration that there is not."""
    if kind is not None and kind not in KINDS:
        names = ", ".join(map(repr, KINDS))
        raise InputError(f"calibration is {kind!r}; give one of {names}, or None for none.{suggest(str(kind), KINDS)}")


def fit_calibration(kind: str, margins: NDArray[np.floating[Any]], truth: NDArray[np.bool_]) -> Calibration:
    """Learn the curves from held-out margins, documents × classifiers; documents with NaN do not count for a classifier.

    >>> margins = np.array([[-2.0], [-1.0], [-0.5], [0.5], [1.0], [2.0]])
    >>> fitted = fit_calibration("sigmoid", margins, margins > -0.7)
    >>> fitted.apply(np.array([[0.0], [1.0]])).round(2).tolist()
    [[0.5], [0.68]]
    """
    M = np.asarray(margins, dtype=np.float64)
    counts = ~np.isnan(M)
    together = _curve(kind, M[counts], truth[counts])
    curves = []
    for column in range(M.shape[1]):
        m, true = M[counts[:, column], column], truth[counts[:, column], column]
        has_enough = ENOUGH <= true.sum() <= len(true) - ENOUGH
        curves.append(_curve(kind, m, true) if has_enough else together)
    offsets = np.cumsum([0, *(len(m) for m, _ in curves)])
    ends = [np.concatenate([curve[part] for curve in curves] or [np.zeros(0)]) for part in (0, 1)]
    return Calibration(kind, offsets.astype(np.int64), ends[0], ends[1])


def _curve(kind: str, m: Floats, true: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    if kind == "isotonic":
        return _fit_steps(m, true)
    slope, offset = fit_sigmoid(m, true, kind == "platt")
    return np.array([slope]), np.array([offset])


def fit_sigmoid(m: Floats, true: NDArray[np.bool_], with_offset: bool) -> tuple[float, float]:
    """Slope and offset with the highest likelihood of Platt's smoothed targets; 1 and 0 where nothing is to be learnt."""
    n_true = int(true.sum())
    if not 0 < n_true < len(m):
        return 1.0, 0.0
    target = np.where(true, (n_true + 1) / (n_true + 2), 1 / (len(m) - n_true + 2))
    Z = np.column_stack([m, np.ones(len(m))]) if with_offset else m[:, None]
    found = _climb(Z, target)
    if found[0] < 0:  # margins that point the wrong way say nothing; what is left is how often it is true
        rate = float(np.clip(target.mean(), 1e-12, 1 - 1e-12))
        return 0.0, float(np.log(rate / (1 - rate))) if with_offset else 0.0
    return float(found[0]), float(found[1]) if with_offset else 0.0


def _climb(Z: Floats, target: Floats) -> Floats:
    """Newton's method with halved steps for a logistic model without regularization."""
    beta = np.zeros(Z.shape[1])
    value = _likelihood(Z @ beta, target)
    for _ in range(STEPS):
        p = expit(Z @ beta)
        gradient = Z.T @ (target - p)
        curvature = (Z * (p * (1 - p))[:, None]).T @ Z + 1e-12 * np.eye(Z.shape[1])
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        size = 1.0
        while size > CLOSE and _likelihood(Z @ (beta + size * step), target) < value:
            size /= 2
        beta = beta + size * step
        reached = _likelihood(Z @ beta, target)
        if reached - value <= CLOSE * abs(value):
            break
        value = reached
    return beta


def _likelihood(z: Floats, target: Floats) -> float:
    """Σ target ln p + (1 − target) ln(1 − p), without overflow."""
    return float(np.sum(target * z - np.logaddexp(0, z)))


def _fit_steps(m: Floats, true: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    if not len(m):
        return np.array([-1.0, 1.0]), np.array([0.0, 1.0])
    fitted = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(m, true.astype(np.float64))
    return fitted.X_thresholds_.astype(np.float64), fitted.y_thresholds_.astype(np.float64)
