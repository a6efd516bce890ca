"""Calibrated probabilities of all nodes of a taxonomy that are consistent: a child's is never above its parent's.

    nested       one label per document: a nested logit over the tree, then isotonic regression for every depth; in a DAG over
                 the main-parent tree, and then a node gets the sum of what ends at and below it
    multi-label  any number of labels: isotonic regression for every depth, then no child above its parent

A nested logit (nested_logit.py) is consistent, and right on average, but a high probability may be too high and a low one too
low. So, from the top down, the most probable node of every depth gets the fraction of held-out documents for which it was right
at that probability, and the mass around it is reallocated. A node that becomes more probable than its parent raises it, which
the curve of the parent's depth did not foresee; so this is done in rounds, each with curves of its own that correct what the
last round changed; the last one raises nothing. Curves are isotonic, linear from the middle of one step to the middle of the
next, so that they rise everywhere. Everything is fitted on documents that the learner was not trained on, and applied to each
document on its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.isotonic import IsotonicRegression

from ramify.calibration.nested_logit import Arrays, Floats, Ints, LogPotentials, NestedLogit, Truth, levels_with_siblings
from ramify.errors import ModelError
from ramify.metrics.calibration import binned_calibration_error
from ramify.native import reallocate_probability_in_place
from ramify.persistence import are_offsets
from ramify.taxonomy import Taxonomy, expand_to_ancestors, labels_on_tree, largest_below, most_specific, spread_over_dag

MIN_FRACTION = 0.01  # of the mass beside a path: the least that reallocation leaves
MIN_DOCUMENTS = 50  # for a curve of its own
DIGITS = 9  # of the x values of curves
MARGIN = 0.1  # of the way to 0 or 1, whichever is nearer: how far a curve goes beyond its first and its last step
TOLERANCE = 0.01  # calibration error of a depth that needs no further curve after its first; more curves overfit
ROUNDS = 4  # from the top down; the last one does not raise ancestors
NO_CURVE = (np.zeros(0), np.zeros(0))


def most_probable(P: Floats, nodes: Ints) -> Ints:
    """The most probable of some nodes, of every document; of equals the first."""
    return np.asarray(nodes[P[:, nodes].argmax(axis=1)])


def reallocate_in_place(P: Floats, taxonomy: Taxonomy, nodes: Ints, targets: Floats, *, raise_ancestors: bool) -> None:
    """Give one node in every document a target probability, as far as possible, and keep P consistent.

    Its siblings and stopping at its parent share what the parent has left, in proportion. Where the parent has too little, it
    and its ancestors are raised, and the mass beside the path shrinks in proportion, at most to MIN_FRACTION. Nodes below keep
    their P(node | parent). A node cannot sink where there is nothing beside it, nor rise from 0.
    raise_ancestors: otherwise the node gets at most what leaves its siblings MIN_FRACTION.

    >>> taxonomy, P = Taxonomy.from_paths(["a/x", "a/y", "b"]), np.array([[0.5, 0.4, 0.1, 0.5]])
    >>> reallocate_in_place(P, taxonomy, np.array([1]), np.array([0.8]), raise_ancestors=True)
    >>> taxonomy.names, P.round(3).tolist()
    (('a', 'a/x', 'a/y', 'b'), [[0.801, 0.8, 0.001, 0.199]])
    """
    parent, nodes = taxonomy.parent.astype(np.int32), nodes.astype(np.int32)
    reallocate_probability_in_place(P, parent, nodes, targets, MIN_FRACTION, raise_ancestors)


@dataclass(frozen=True, slots=True)
class Curves:
    """Rising curves, one per depth and round: points from `offsets[k]` to `offsets[k + 1]`; without points, the identity."""

    offsets: Ints
    x: Floats
    y: Floats

    @classmethod
    def concatenate(cls, curves: list[tuple[Floats, Floats]]) -> Self:
        """From the x and y values of each."""
        offsets = np.cumsum([0, *(len(x) for x, _ in curves)])
        return cls(offsets, *(np.concatenate([np.zeros(0), *(curve[part] for curve in curves)]) for part in (0, 1)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def apply(self, k: int, p: Floats) -> Floats:
        """Calibrated probabilities by the k-th curve."""
        part = slice(int(self.offsets[k]), int(self.offsets[k + 1]))
        return np.interp(p, self.x[part], self.y[part]) if part.stop > part.start else p

    def arrays(self) -> Arrays:
        """What a model file stores."""
        return {"curve_offsets": self.offsets, "curve_x": self.x, "curve_y": self.y}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_curves: int) -> Self:
        """Make curves from stored arrays, after checking them."""
        made = cls(*(arrays[f"curve_{name}"] for name in ("offsets", "x", "y")))
        fits = made.x.dtype == made.y.dtype == np.float64 and made.x.ndim == 1 and made.x.shape == made.y.shape
        if not fits or not are_offsets(made.offsets, n_curves, len(made.x)):
            raise ModelError("the curves of the calibration do not fit the taxonomy; train the model again.")
        inside = np.setdiff1d(np.arange(1, len(made.x)), made.offsets)
        rises = all((each[inside] >= each[inside - 1]).all() for each in (made.x, made.y))
        if not rises or not ((made.y >= 0) & (made.y <= 1)).all() or not np.isfinite(made.x).all():
            raise ModelError("the curves of the calibration do not give probabilities that rise; train the model again.")
        return made


def fit_curve(p: Floats, is_true: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The points of a rising curve from probabilities to the fraction that was true; none where documents are too few.

    >>> fit_curve(np.asarray([0.2, 0.8]), np.asarray([False, True]))
    (array([], dtype=float64), array([], dtype=float64))
    """
    if len(p) < MIN_DOCUMENTS:
        return NO_CURVE
    least = 1 / (len(p) + 2)
    curve = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(p, is_true.astype(np.float64))
    fitted = curve.predict(p)
    heights, block = np.unique(fitted, return_inverse=True)
    centres, first = np.unique(np.round(np.bincount(block, weights=p) / np.bincount(block), DIGITS), return_index=True)
    heights = heights[first]  # centres rise as heights do; some may be equal after rounding
    low, high = heights[[0, -1]] + [-MARGIN, MARGIN] * np.minimum(heights[[0, -1]], 1 - heights[[0, -1]])
    below, above = int(centres[0] > 0), int(centres[-1] < 1)
    x = np.concatenate([[0.0][:below], centres, [1.0][:above]])
    return x, np.concatenate([[low][:below], heights, [high][:above]])


@dataclass(frozen=True, slots=True)
class TreeCalibration:
    """One label per document. is_end: nodes at which documents may end; all leaves are."""

    nested_logit: NestedLogit
    is_end: NDArray[np.bool_]
    curves: Curves
    kind: ClassVar[str] = "nested"
    takes: ClassVar[str] = "log_potentials"

    @classmethod
    def fit(cls, log_potentials: LogPotentials, Y: csr_array, taxonomy: Taxonomy) -> Self:
        """From log potentials of documents that the learner was not trained on, and their labels."""
        truth, tree = truth_of(Y, taxonomy), taxonomy.tree
        is_end = tree.is_leaf | np.isin(np.arange(len(tree)), truth[1])
        nested_logit = NestedLogit.fit(_ending_at(is_end, log_potentials), truth, tree)
        curves: list[tuple[Floats, Floats]] = []
        closed = labels_on_tree(expand_to_ancestors(Y, taxonomy), taxonomy).toarray()
        cls(nested_logit, is_end, Curves.concatenate([])).apply(log_potentials, taxonomy, curves, closed)
        return cls(nested_logit, is_end, Curves.concatenate(curves))

    def apply(self, log_potentials: LogPotentials, taxonomy: Taxonomy, new_curves: Any = None, truth: Any = None) -> Floats:
        """P(node), documents × nodes. new_curves, truth: while fitting, where curves go, and the labels (dense, closed)."""
        tree = taxonomy.tree
        P = self.nested_logit.conditionals(_ending_at(self.is_end, log_potentials), tree)
        levels, rows = levels_with_siblings(tree), np.arange(len(P))
        for level in levels[1:]:
            P[:, level.nodes] *= P[:, level.parents][:, level.group]
        for k in range(ROUNDS * len(levels) if len(P) else 0):
            best = most_probable(P, levels[k % len(levels)].nodes)
            p = P[rows, best]
            if new_curves is None:
                targets = self.curves.apply(k, p)
            else:
                is_true = truth[rows, best]
                is_needed = k < len(levels) or binned_calibration_error(p, is_true) > TOLERANCE
                new_curves.append(fit_curve(p, is_true) if is_needed else NO_CURVE)
                targets = Curves.concatenate([new_curves[-1]]).apply(0, p)
            reallocate_in_place(P, tree, best, targets, raise_ancestors=k < (ROUNDS - 1) * len(levels))
        return spread_over_dag(P, taxonomy)

    def arrays(self) -> Arrays:
        """What a model file stores."""
        return {**self.nested_logit.arrays(), "is_end": self.is_end, **self.curves.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Arrays, taxonomy: Taxonomy) -> Self:
        """Make a calibration from stored arrays, after checking them."""
        is_end, tree = arrays["is_end"], taxonomy.tree
        if is_end.dtype != np.bool_ or is_end.shape != (len(tree),) or not is_end[tree.is_leaf].all():
            raise ModelError("the calibration does not fit the taxonomy; train the model again.")
        nested_logit = NestedLogit.from_arrays(arrays, tree.n_levels)
        return cls(nested_logit, is_end, Curves.from_arrays(arrays, ROUNDS * tree.n_levels))


def _ending_at(is_end: NDArray[np.bool_], log_potentials: LogPotentials) -> LogPotentials:
    """The log potentials with no document ending at other nodes."""
    return LogPotentials(np.where(is_end, log_potentials.ends, np.nan), log_potentials.steps)


@dataclass(frozen=True, slots=True)
class MultiLabelCalibration:
    """Any number of labels per document, also none."""

    curves: Curves
    kind: ClassVar[str] = "multi-label"
    takes: ClassVar[str] = "memberships"

    @classmethod
    def fit(cls, memberships: NDArray[Any], Y: csr_array, taxonomy: Taxonomy) -> Self:
        """From memberships of documents that the learner was not trained on, and their labels."""
        P, truth = _over_dag(memberships, taxonomy), expand_to_ancestors(Y, taxonomy).toarray()
        curves = []
        for depth in range(taxonomy.n_levels):
            columns = np.flatnonzero(taxonomy.depth == depth)
            p, is_true = P[:, columns].ravel(), truth[:, columns].ravel()
            known = np.isfinite(p)
            curves.append(fit_curve(p[known], is_true[known]))
        return cls(Curves.concatenate(curves))

    def apply(self, memberships: NDArray[Any], taxonomy: Taxonomy) -> Floats:
        """P(node), documents × nodes."""
        memberships = _over_dag(memberships, taxonomy)
        P = np.nan_to_num(memberships, nan=0.0, neginf=0.0)
        for node in range(len(taxonomy)):  # parents come first
            curve = self.curves.apply(int(taxonomy.depth[node]), P[:, node])
            P[:, node] = np.where(memberships[:, node] == -np.inf, 0.0, curve)
            for parent in taxonomy.parents_of(node).tolist():
                P[:, node] = np.minimum(P[:, node], P[:, parent])
        return P

    def arrays(self) -> Arrays:
        """What a model file stores."""
        return self.curves.arrays()

    @classmethod
    def from_arrays(cls, arrays: Arrays, taxonomy: Taxonomy) -> Self:
        """Make a calibration from stored arrays, after checking them."""
        return cls(Curves.from_arrays(arrays, taxonomy.n_levels))


def _over_dag(memberships: NDArray[Any], taxonomy: Taxonomy) -> Floats:
    """In a DAG, the largest at and below each node, since a learner over the main-parent tree may not know other parents."""
    P = memberships.astype(np.float64)
    return P if taxonomy.is_tree else largest_below(P, taxonomy)


CALIBRATIONS: dict[str, Any] = {kind.kind: kind for kind in (TreeCalibration, MultiLabelCalibration)}


def calibration_class(multi_label: bool) -> Any:
    """The calibration for documents with one label, or with any number of them."""
    return MultiLabelCalibration if multi_label else TreeCalibration


def truth_of(Y: csr_array, taxonomy: Taxonomy) -> Truth:
    """Where documents end; the labels of one document share a weight of 1."""
    own = most_specific(Y, taxonomy)
    counts = np.diff(own.indptr)
    documents = np.repeat(np.arange(len(counts)), counts)
    return documents, own.indices.astype(np.int64), 1 / np.repeat(counts, counts).astype(np.float64)
