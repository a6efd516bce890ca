"""Giving nodes other probabilities, so that sums still hold and as little as possible changes around them.

One node of each document gets what is wanted. Its siblings and staying at its parent have what the parent has left, in
proportion. Where the parent has too little, it is raised, too, and so is all that lies above it; what lies beside the path has
less then, in proportion again, and never less than a hundredth of what it had. What lies below a node has the share of it that
it had before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.isotonic import IsotonicRegression

from ramify.calibration.nested_logit import (
    Floats,
    Ints,
    LogPotentials,
    NestedLogit,
    Truth,
    fit_nested_logit,
    levels_with_siblings,
    share_out,
)
from ramify.errors import ModelError
from ramify.metrics.calibration import binned_calibration_error
from ramify.native import move_nodes_in_place
from ramify.persistence import are_offsets
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

LEFT = 0.01  # of what lies beside the path: the least that is left there


def likeliest(P: Floats, nodes: Ints) -> Ints:
    """The likeliest of some nodes, of every document; of equals the first."""
    best: Ints = nodes[P[:, nodes].argmax(axis=1)]
    return best


def move_in_place(P: Floats, taxonomy: Taxonomy, nodes: Ints, wanted: Floats, *, raising: bool) -> None:
    """Give one node in every document what is wanted, as far as that can be.

    A node keeps its place before its siblings; it cannot sink where there is nothing beside it, nor rise from 0.
    raising: whether nodes above are raised; otherwise it has at most what leaves its siblings something.

    >>> taxonomy, P = Taxonomy.from_paths(["a/x", "a/y", "b"]), np.array([[0.5, 0.4, 0.1, 0.5]])
    >>> move_in_place(P, taxonomy, np.array([1]), np.array([0.8]), raising=True)
    >>> taxonomy.names, P.round(3).tolist()
    (('a', 'a/x', 'a/y', 'b'), [[0.801, 0.8, 0.001, 0.199]])
    """
    move_nodes_in_place(P, taxonomy.parent.astype(np.int32), nodes.astype(np.int32), wanted, LEFT, raising)


# --------------------------------------------------------------------------------------------------------------
# Probabilities of all nodes that mean what they say and do not contradict each other.
#
#     nested    one label a document, over a tree: choices from the top down, then curves for every depth (see below)
#     closure   one label a document, several parents: a softmax over the nodes where documents end, one sharpness; a node gets
#               the sum of all at and below it
#     several   any number of labels: one curve for every depth, and no child above its parent
#
# NestedLogit (see choices.py) add up: the children of a node and staying there have what the node has. Their sharpness is right on
# the whole, but a sure choice may be too sure and an unsure one not sure enough. So from the top down the likeliest node of
# every
# depth gets the share of documents that were right when it was as likely as here; what lies around it follows (see moving.py).
# A node that turns out likelier than the one above it raises that one, for which its depth's curve did not know of it; so
# all of
# it is done in several rounds, whose curves put right what the round before has changed; the last one raises nothing. Curves
# are
# isotonic, from the middle of one step to the middle of the next, so that they rise everywhere. All of it is learnt from
# documents that the learner had not seen. Each row is answered for itself.


ENOUGH = 50  # documents from which on a depth has a curve of its own
DIGITS = 9  # of the corners of curves
OPEN = 0.1  # of the way to 0 or 1, whichever is nearer: how far a curve goes beyond its first and its last step
NEAR = 0.01  # how far off a depth may be that needs no other curve after its first; more curves learn more by heart
ROUNDS = 4  # how often curves go down a tree; the last one does not raise what lies above
NUMBERS = ("sharpness", "reliance", "staying")

Arrays = dict[str, NDArray[Any]]
NO_CURVE = (np.zeros(0), np.zeros(0))


@dataclass(frozen=True, slots=True)
class Curves:
    """Rising curves, one a depth: corners from `offsets[k]` to `offsets[k + 1]`; without corners nothing is changed."""

    offsets: Ints
    given: Floats
    found: Floats

    @classmethod
    def joined(cls, corners: list[tuple[Floats, Floats]]) -> Self:
        """From the corners of all."""
        offsets = np.cumsum([0, *(len(given) for given, _ in corners)])
        return cls(offsets, *(np.concatenate([np.zeros(0), *(each[part] for each in corners)]) for part in (0, 1)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def apply(self, depth: int, p: Floats) -> Floats:
        """What probabilities at a depth come to."""
        here = slice(int(self.offsets[depth]), int(self.offsets[depth + 1]))
        return np.interp(p, self.given[here], self.found[here]) if here.stop > here.start else p

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        return {"curve_offsets": self.offsets, "curve_given": self.given, "curve_found": self.found}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_levels: int) -> Self:
        """Make curves of what was kept, after checking them."""
        made = cls(*(arrays[f"curve_{name}"] for name in ("offsets", "given", "found")))
        fits = (
            made.given.dtype == made.found.dtype == np.float64 and made.given.ndim == 1 and made.given.shape == made.found.shape
        )
        if not fits or not are_offsets(made.offsets, n_levels, len(made.given)):
            raise ModelError("the curves of the calibration do not fit the taxonomy; train the model again.")
        inside = np.setdiff1d(np.arange(1, len(made.given)), made.offsets)
        rises = all((each[inside] >= each[inside - 1]).all() for each in (made.given, made.found))
        if not rises or not ((made.found >= 0) & (made.found <= 1)).all() or not np.isfinite(made.given).all():
            raise ModelError("the curves of the calibration do not give probabilities that rise; train the model again.")
        return made


def fit_curve(p: Floats, is_true: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The corners of a curve that rises from probabilities to the share that was true; none where documents are too few.

    >>> fit_curve(np.asarray([0.2, 0.8]), np.asarray([False, True]))
    (array([], dtype=float64), array([], dtype=float64))
    """
    if len(p) < ENOUGH:
        return NO_CURVE
    least = 1 / (len(p) + 2)
    curve = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(p, is_true.astype(np.float64))
    fitted = curve.predict(p)
    heights, block = np.unique(fitted, return_inverse=True)
    centres, kept = np.unique(np.round(np.bincount(block, weights=p) / np.bincount(block), DIGITS), return_index=True)
    heights = heights[kept]  # centres rise as heights do; some may be too near to each other
    low, high = heights[[0, -1]] + [-OPEN, OPEN] * np.minimum(heights[[0, -1]], 1 - heights[[0, -1]])
    below, above = int(centres[0] > 0), int(centres[-1] < 1)
    corners = np.concatenate([[0.0][:below], centres, [1.0][:above]])
    return corners, np.concatenate([[low][:below], heights, [high][:above]])


@dataclass(frozen=True, slots=True)
class TreeCalibration:
    """One label a document, over a tree. is_end: nodes at which documents may end; all leaves are."""

    choices: NestedLogit
    is_end: NDArray[np.bool_]
    curves: Curves
    kind: ClassVar[str] = "nested"
    takes: ClassVar[str] = "log_potentials"

    @classmethod
    def fit(cls, log_potentials: LogPotentials, Y: csr_array, taxonomy: Taxonomy) -> Self:
        """From what a learner said of documents that it had not seen, and their labels."""
        truth = truth_of(Y, taxonomy)
        is_end = taxonomy.is_leaf | np.isin(np.arange(len(taxonomy)), truth[1])
        choices = fit_nested_logit(_ending_at(is_end, log_potentials), truth, taxonomy)
        corners: list[tuple[Floats, Floats]] = []
        closed = expand_to_ancestors(Y, taxonomy).toarray()
        cls(choices, is_end, Curves.joined([]))._descend(log_potentials, taxonomy, corners, closed)
        return cls(choices, is_end, Curves.joined(corners))

    def apply(self, log_potentials: LogPotentials, taxonomy: Taxonomy) -> Floats:
        """P(node), documents × nodes."""
        return self._descend(log_potentials, taxonomy)

    def _descend(
        self,
        log_potentials: LogPotentials,
        taxonomy: Taxonomy,
        corners: list[Any] | None = None,
        truth: NDArray[Any] | None = None,
    ) -> Floats:
        """From the top down, in rounds; where the truth is given, curves are learnt on the way, and their corners noted."""
        P = share_out(_ending_at(self.is_end, log_potentials), taxonomy, self.choices)
        levels, rows = levels_with_siblings(taxonomy), np.arange(len(P))
        for level in levels[1:]:
            P[:, level.nodes] *= P[:, level.parents][:, level.group]
        for turn in range(ROUNDS * len(levels) if len(P) else 0):
            best = likeliest(P, levels[turn % len(levels)].nodes)
            p = P[rows, best]
            if corners is None or truth is None:
                wanted = self.curves.apply(turn, p)
            else:
                is_true = truth[rows, best]
                is_needed = turn < len(levels) or binned_calibration_error(p, is_true) > NEAR
                corners.append(fit_curve(p, is_true) if is_needed else NO_CURVE)
                wanted = Curves.joined([corners[-1]]).apply(0, p)
            move_in_place(P, taxonomy, best, wanted, raising=turn < (ROUNDS - 1) * len(levels))
        return P

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        choices = {name: getattr(self.choices, name) for name in NUMBERS}
        return {**choices, "is_end": self.is_end, **self.curves.arrays()}

    @classmethod
    def from_arrays(cls, arrays: Arrays, taxonomy: Taxonomy) -> Self:
        """Make a calibration of what was kept, after checking it."""
        taxonomy.require_tree("this calibration")
        is_end = arrays["is_end"]
        if is_end.dtype != np.bool_ or is_end.shape != (len(taxonomy),) or not is_end[taxonomy.is_leaf].all():
            raise ModelError("the calibration does not fit the taxonomy; train the model again.")
        return cls(_checked(arrays, taxonomy.n_levels), is_end, Curves.from_arrays(arrays, ROUNDS * taxonomy.n_levels))


def _ending_at(is_end: NDArray[np.bool_], log_potentials: LogPotentials) -> LogPotentials:
    """The same, but that documents end nowhere else."""
    return LogPotentials(np.where(is_end, log_potentials.ends, np.nan), log_potentials.steps)


@dataclass(frozen=True, slots=True)
class ClosureCalibration:
    """One label a document, where nodes may have several parents."""

    choices: NestedLogit
    kind: ClassVar[str] = "closure"
    takes: ClassVar[str] = "log_potentials"

    @classmethod
    def fit(cls, log_potentials: LogPotentials, Y: csr_array, taxonomy: Taxonomy) -> Self:
        """From what a learner said of documents that it had not seen, and their labels."""
        return cls(fit_nested_logit(LogPotentials(log_potentials.ends), truth_of(Y, taxonomy), _flattened(taxonomy)))

    def apply(self, log_potentials: LogPotentials, taxonomy: Taxonomy) -> Floats:
        """P(node), documents × nodes."""
        ending = share_out(LogPotentials(log_potentials.ends), _flattened(taxonomy), self.choices)
        above = expand_to_ancestors(csr_array(np.eye(len(taxonomy), dtype=bool)), taxonomy).astype(np.float64)
        return np.asarray(ending @ above).clip(0, 1)

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        return {name: getattr(self.choices, name) for name in NUMBERS}

    @classmethod
    def from_arrays(cls, arrays: Arrays, taxonomy: Taxonomy) -> Self:
        """Make a calibration of what was kept, after checking it."""
        return cls(_checked(arrays, 1))


@dataclass(frozen=True, slots=True)
class MultiLabelCalibration:
    """Any number of labels a document, also none."""

    curves: Curves
    kind: ClassVar[str] = "multi-label"
    takes: ClassVar[str] = "memberships"

    @classmethod
    def fit(cls, memberships: NDArray[Any], Y: csr_array, taxonomy: Taxonomy) -> Self:
        """From what a learner said of documents that it had not seen, and their labels."""
        P, truth = memberships.astype(np.float64), expand_to_ancestors(Y, taxonomy).toarray()
        corners = []
        for depth in range(taxonomy.n_levels):
            columns = np.flatnonzero(taxonomy.depth == depth)
            p, is_true = P[:, columns].ravel(), truth[:, columns].ravel()
            known = ~np.isnan(p)
            corners.append(fit_curve(p[known], is_true[known]))
        return cls(Curves.joined(corners))

    def apply(self, memberships: NDArray[Any], taxonomy: Taxonomy) -> Floats:
        """P(node), documents × nodes."""
        P = np.nan_to_num(memberships.astype(np.float64), nan=0.0)
        for node in range(len(taxonomy)):  # parents come first
            P[:, node] = self.curves.apply(int(taxonomy.depth[node]), P[:, node])
            for parent in taxonomy.parents_of(node).tolist():
                P[:, node] = np.minimum(P[:, node], P[:, parent])
        return P

    def arrays(self) -> Arrays:
        """What a model file keeps."""
        return self.curves.arrays()

    @classmethod
    def from_arrays(cls, arrays: Arrays, taxonomy: Taxonomy) -> Self:
        """Make a calibration of what was kept, after checking it."""
        return cls(Curves.from_arrays(arrays, taxonomy.n_levels))


CALIBRATIONS: dict[str, Any] = {kind.kind: kind for kind in (TreeCalibration, ClosureCalibration, MultiLabelCalibration)}


def calibration_class(taxonomy: Taxonomy, multi_label: bool) -> Any:
    """The kind of calibration for documents with one label, or with any number of them."""
    return MultiLabelCalibration if multi_label else TreeCalibration if taxonomy.is_tree else ClosureCalibration


def truth_of(Y: csr_array, taxonomy: Taxonomy) -> Truth:
    """Where documents end; one with several labels counts once for all of them together."""
    own = most_specific(Y, taxonomy)
    counts = np.diff(own.indptr)
    documents = np.repeat(np.arange(len(counts)), counts)
    return documents, own.indices.astype(np.int64), 1 / np.repeat(counts, counts).astype(np.float64)


def _flattened(taxonomy: Taxonomy) -> Taxonomy:
    """The same nodes without what lies above them."""
    return Taxonomy.flat(taxonomy.names)


def _checked(arrays: Arrays, n_levels: int) -> NestedLogit:
    numbers = [arrays[name] for name in NUMBERS]
    fits = all(each.dtype == np.float64 and each.shape == (n_levels,) and np.isfinite(each).all() for each in numbers)
    if not fits or (numbers[0] <= 0).any() or (numbers[1] < 0).any():
        raise ModelError("the calibration does not fit the taxonomy; train the model again.")
    return NestedLogit(*numbers)
