"""The slow twins of AdaBoost.MH and TreeBoost.MH: in every round every term is tried, one after the other.

has[i, k]: whether document i has term k. positive[i, j]: whether y_ij = +1. D[i, j]: weights of pairs, adding up to 1.
A vote is a pair of vectors over classes: for documents without the term and for those with it.

What is equal in mathematics may differ by rounding, so ties are taken with a tolerance of TIE, relative. Where a choice
stands near the edge of that tolerance, another order of additions may choose otherwise: `clear` counts the rounds before
the first such choice.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from oracles.taxonomy import close_upward, most_specific
from oracles.top_down import ways_from
from ramify.features import TermSelector

TIE = 1e-9
LEFT_TO_LEARN = 1e-12  # learning ends where a round would take less than this from the bound on the error
NEAR_ZERO = 1e-6  # a sum of votes so small may be 0 but for rounding

Parents = list[list[int]]


@dataclass
class Committee:
    """The rounds learnt for the classes below a node; rounds beyond the first `clear` hang on rounding."""

    node: int
    classes: list[int]
    pivots: list[int] = field(default_factory=list)
    absent: list[np.ndarray] = field(default_factory=list)
    present: list[np.ndarray] = field(default_factory=list)
    z: list[float] = field(default_factory=list)
    normalizers: list[float] = field(default_factory=list)
    clear: float = math.inf
    abstains: bool = False  # where the term is absent

    def score(self, has: np.ndarray) -> np.ndarray:
        """Documents × classes: the sum of all votes."""
        total = np.zeros((len(has), len(self.classes)))
        for pivot, absent, present in zip(self.pivots, self.absent, self.present, strict=True):
            total += np.where(has[:, [pivot]], present, absent)
        return total

    def is_sure(self, has: np.ndarray) -> np.ndarray:
        """Documents × classes: whether the score is so far from 0 that rounding does not decide, or nobody voted."""
        voted = has[:, self.pivots].any(axis=1) if self.abstains else np.full(len(has), bool(self.pivots))
        return (np.abs(self.score(has)) > NEAR_ZERO) | ~voted[:, None]

    def add(self, pivot: int, absent: np.ndarray, present: np.ndarray, z: float, normalizer: float) -> None:
        self.pivots.append(pivot)
        self.absent.append(absent)
        self.present.append(present)
        self.z.append(z)
        self.normalizers.append(normalizer)

    def doubt(self) -> None:
        """The round to come hangs on rounding."""
        self.clear = min(self.clear, len(self.pivots))


# ---- one committee ----------------------------------------------------------------------------------------------------


def boost(has, positive, weights, n_rounds, variant, node, classes, allowed=None) -> Committee:
    """Rounds for one problem of documents of positive weight. allowed: the terms to choose from, all by default."""
    n_classes = positive.shape[1]
    committee = Committee(node, classes, abstains=variant == "RA")
    D = np.repeat(weights[:, None], n_classes, axis=1) / (n_classes * weights.sum())
    y, epsilon = np.where(positive, 1.0, -1.0), smoothing(weights, n_classes)
    terms = range(has.shape[1]) if allowed is None else allowed
    active = [k for k in terms if has[:, k].any()] or ([] if variant == "RA" else [0])
    while active and len(committee.pivots) < n_rounds:
        pivot, z = choose(committee, [(k, z_of(variant, weigh(D, positive, has[:, k]))) for k in active])
        absent, present = votes(committee, variant, weigh(D, positive, has[:, pivot]), epsilon)
        if not has[:, pivot].any():  # a term that nobody has tells nothing, and votes alike for all
            present = absent
        loss = D * np.exp(-y * np.where(has[:, [pivot]], present, absent))
        normalizer = float(loss.sum())
        if LEFT_TO_LEARN / 10 < 1 - normalizer < LEFT_TO_LEARN * 10:
            committee.doubt()
        if normalizer >= 1 - LEFT_TO_LEARN:
            break
        committee.add(pivot, absent, present, z, normalizer)
        D = loss / normalizer
    return committee


def smoothing(weights, n_classes) -> float:
    """ε: one over the number of pairs of a document and a class; a document of weight two counts as two."""
    return 1 / (float(weights.sum()) * n_classes)


def weigh(D, positive, has_term):
    """W[x, y]: one number a class, the weight of documents whose term is x and whose class is y, each true or false."""
    pairs = [(x, y) for x in (False, True) for y in (False, True)]
    return {(x, y): np.where((has_term == x)[:, None] & (positive == y), D, 0.0).sum(axis=0) for x, y in pairs}


def z_of(variant, W) -> float:
    """How much a term leaves to learn, before smoothing: the smaller the better.

    Of discrete votes it is √(1 − r²), r = Σ |W+ − W−|. As all weights add up to 1, 1 − r is twice the weight of the lighter
    sides, which is exactly 0 where nothing is on a lighter side; 1 − r itself would be the rounding of r.
    """
    if variant == "D":
        half = sum(float(np.minimum(W[x, True], W[x, False]).sum()) for x in (False, True))
        return 2 * math.sqrt(half * (1 - half))
    z_with, z_without = (2 * float(np.sqrt(W[x, True] * W[x, False]).sum()) for x in (True, False))
    if variant == "RA":
        return z_with + float((W[False, True] + W[False, False]).sum())
    return z_with + z_without


def choose(committee, candidates):
    """The first term with the smallest Z, and that Z."""
    least = min(z for _, z in candidates)
    if any(least * (1 + TIE / 10) < z < least * (1 + TIE * 10) for _, z in candidates):
        committee.doubt()
    return next((k, z) for k, z in candidates if z <= least * (1 + TIE))


def votes(committee, variant, W, epsilon):
    """The votes of a term, for documents without it and for those with it."""
    if variant == "D":
        r = sum(float(np.abs(W[x, True] - W[x, False]).sum()) for x in (False, True))
        alpha = 0.5 * math.log((1 + r + epsilon) / (max(1 - r, 0.0) + epsilon))
        return tuple(alpha * signs(committee, W[x, True], W[x, False], epsilon) for x in (False, True))
    absent, present = (0.5 * np.log((W[x, True] + epsilon) / (W[x, False] + epsilon)) for x in (False, True))
    return (np.zeros_like(absent) if variant == "RA" else absent), present


def signs(committee, plus, minus, epsilon):
    """+1 where the positive side is heavier, -1 where it is lighter or both weigh the same."""
    heavier = plus > minus * (1 + TIE)
    near_the_edge = (plus > minus * (1 + TIE / 10)) & (plus < minus * (1 + TIE * 10))
    too_light_to_tell = heavier & (plus - minus < 1e-6 * epsilon)
    if np.any(near_the_edge | too_light_to_tell):
        committee.doubt()
    return np.where(heavier, 1.0, -1.0)


# ---- flat -------------------------------------------------------------------------------------------------------------


def adaboost(parents: Parents, X, rows: list[set[int]], n_rounds, variant="R", weights=None) -> Committee:
    """One committee for all nodes that are some document's most specific label."""
    has, kept, w = prepare(X, weights)
    own = [most_specific(parents, rows[i]) for i in kept]
    classes = sorted(set().union(*own))
    return boost(has, membership(own, classes), w, n_rounds, variant, -1, classes)


def prepare(X, weights):
    """Which document has which term, the documents of positive weight, and their weights; of these documents only."""
    has = dense(X) != 0
    weights = np.ones(len(has)) if weights is None else np.asarray(weights, dtype=float)
    kept = np.flatnonzero(weights > 0)
    return has[kept], kept, weights[kept]


def dense(X) -> np.ndarray:
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


def membership(rows: list[set[int]], nodes: list[int]) -> np.ndarray:
    """Documents × nodes: whether the document has the node."""
    return np.array([[node in row for node in nodes] for row in rows], dtype=bool).reshape(len(rows), len(nodes))


# ---- trees ------------------------------------------------------------------------------------------------------------


@dataclass
class Tree:
    """A committee for each node that has a question to ask; merged nodes carry all documents of the node above."""

    parents: Parents
    committees: dict[int, Committee]
    merged: set[int]

    def scores(self, X) -> np.ndarray:
        """Documents × nodes, each committee asked about every document; -inf where there were no documents."""
        has = dense(X) != 0
        S = np.full((len(has), len(self.parents)), -np.inf)
        for committee in self.committees.values():
            S[:, committee.classes] = committee.score(has)
        # parents have smaller numbers, so a forward sweep knows the score of the parent
        for node in sorted(self.merged):
            S[:, node] = S[:, self.parents[node][0]] if self.parents[node] else 1.0
        return S

    def sets(self, X) -> list[set[int]]:
        """The nodes that each document passes on its way down."""
        return [self.passed(row, -1) for row in self.scores(X)]

    def is_sure(self, X) -> np.ndarray:
        """Whether no score of the document hangs on rounding."""
        has = dense(X) != 0
        return np.all([np.ones(len(has), dtype=bool)] + [c.is_sure(has).all(axis=1) for c in self.committees.values()], axis=0)

    def passed(self, scores, node) -> set[int]:
        found: set[int] = set()
        for child in ways_from(self.parents, node):
            if scores[child] > 0:
                found |= {child} | self.passed(scores, child)
        return found


def treeboost(parents: Parents, X, rows: list[set[int]], n_rounds, variant="R", weights=None, **selection) -> Tree:
    """A committee at every node, and above the roots, for those of its children that only some of its documents carry."""
    has, kept, w = prepare(X, weights)
    closed, tree = [close_upward(parents, rows[i]) for i in kept], Tree(parents, {}, set())
    for node in range(-1, len(parents)):
        here = np.array([i for i, labels in enumerate(closed) if node < 0 or node in labels], dtype=int)
        counts = {child: sum(child in closed[i] for i in here) for child in ways_from(parents, node)}
        classes = [child for child, count in counts.items() if 0 < count < len(here)]
        tree.merged |= {child for child, count in counts.items() if 0 < count == len(here)}
        if classes:
            positive = membership([closed[i] for i in here], classes)
            allowed = select(dense(X)[kept][here], positive, **selection)
            tree.committees[node] = boost(has[here], positive, w[here], n_rounds, variant, node, classes, allowed)
    return tree


def select(X, positive, n_terms=None, measure="information-gain", join="round-robin"):
    """The terms that a node may look at; None: all."""
    if n_terms is None:
        return None
    return TermSelector(n_terms, measure=measure, join=join).fit(csr_array(X), csr_array(positive)).columns_.tolist()


# ---- comparing --------------------------------------------------------------------------------------------------------


def check_same(found, expected: Committee, tolerance: float = 1e-8) -> None:
    """Fail where a fast committee differs from a slow one in a round that does not hang on rounding."""
    assert found.node == expected.node
    assert found.classes.tolist() == expected.classes
    if expected.clear == math.inf:
        assert len(found.pivots) == len(expected.pivots)
    clear = min(len(expected.pivots), expected.clear)
    assert found.pivots[:clear].tolist() == expected.pivots[:clear]
    shape = (clear, len(expected.classes))
    for name in ("z", "normalizers", "absent", "present"):
        numbers = np.asarray(getattr(expected, name)[:clear]).reshape(shape if name in ("absent", "present") else clear)
        np.testing.assert_allclose(getattr(found, name)[:clear], numbers, rtol=tolerance, atol=tolerance, err_msg=name)
