"""Score thresholds for multi-label data: GCut for all nodes, SCut and PCut per node, RCut and PredictedCut per document.

Chosen nodes bring all their ancestors. Sources: Yang 2001 (A Study of Thresholding Strategies for Text Categorization) for
SCut, PCut and RCut; Lewis et al. 2004 (RCV1) for the floor of SCut, as SCutFBR; Elisseeff & Weston 2001 (A Kernel Method for
Multi-labelled Classification) fit a threshold to all scores of a document by least squares; Gopal & Yang 2010 (Multilabel
Classification with Meta-level Features) and 2013 (section on multi-label data) use it with sorted scores.
Deviations: PCut is turned into thresholds, see there; the predicted threshold uses the highest scores only and a ridge penalty,
and the best threshold has the highest F1 rather than the fewest errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ramify.decisions import base
from ramify.decisions.base import FittableRule, Floats, Numbers, Over, Scores, setting
from ramify.decisions.reasons import NO_SCORE, format_numbers, reasons_of_cuts, why_missing, with_labels_below
from ramify.errors import InputError
from ramify.parallel import row_blocks
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

Counts = NDArray[np.int64]


def read_held_out(scores: Any, Y: Any, taxonomy: Taxonomy, over: str) -> tuple[Scores, csr_array]:
    """Held-out scores, and the labels that they predict: most specific labels, or all nodes."""
    S = base.read_scores(scores, taxonomy)
    T = most_specific(Y, taxonomy) if over == "own" else expand_to_ancestors(Y, taxonomy)
    if T.shape != S.shape:
        raise InputError(f"there are scores of {S.shape[0]} documents and labels of {T.shape[0]}; give both for the same ones.")
    if not np.isfinite(S[base.rows_of(T), T.indices]).any():
        raise InputError("no held-out document has a true label with a score; give documents whose labels occur in training.")
    return S, T


def to_labels(chosen: NDArray[np.bool_], S: Scores, taxonomy: Taxonomy, at_least_one: bool) -> csr_array:
    """The chosen nodes with their ancestors; with `at_least_one`, the best node where none is chosen."""
    if at_least_one:
        scores = np.where(np.isnan(S), -np.inf, S)
        left = np.flatnonzero(~chosen.any(axis=1) & (scores.max(axis=1, initial=-np.inf) > -np.inf))
        chosen = chosen.copy()
        chosen[left, scores[left].argmax(axis=1) if len(left) else left] = True
    return expand_to_ancestors(chosen, taxonomy)


@dataclass(frozen=True, slots=True)
class ScoreList:
    """The scores of one node (over documents) or of one document (over nodes), and which of them are true.

    A threshold takes the scores at and above it. It lies in the middle between the lowest score that it takes and the next
    lower one, or at the lowest score taken where there is no lower one; equal scores are taken together or not at all.

    ascending: every score, sorted. true: scores of the true ones, sorted. n_true: their number, those without a score included.
    """

    ascending: Floats
    true: Floats
    n_true: int

    def best_threshold(self) -> tuple[float, float]:
        """The threshold with the highest F1, and that F1; of equal ones the widest margin, then the highest threshold.

        >>> ScoreList(np.array([0.0, 1.0, 3.0, 4.0]), np.array([3.0, 4.0]), 2).best_threshold()
        (2.0, 1.0)
        """
        if not self.true.size:
            return np.inf, 0.0
        # only a threshold just below a true score can be best: a lower one adds nothing but false ones
        first = np.searchsorted(self.ascending, self.true)
        hits = len(self.true) - np.searchsorted(self.true, self.true)
        f1 = 2 * hits / (self.n_true + len(self.ascending) - first)
        below = self.ascending[np.maximum(first - 1, 0)]
        chosen = np.lexsort((self.true, self.true - below, f1))[-1]
        return float(midpoint(self.true[chosen], below[chosen])), float(f1[chosen])

    def thresholds_of_size(self, sizes: Counts) -> tuple[Floats, Counts, Counts]:
        """Thresholds that take at most so many of the highest scores, how many they take, and how many of these are true.

        >>> ScoreList(np.array([0.0, 1.0, 3.0, 3.0]), np.array([3.0]), 1).thresholds_of_size(np.array([1, 2, 3]))
        (array([inf, 2. , 0.5]), array([0, 2, 3]), array([0, 1, 1]))
        """
        n = len(self.ascending)
        if not n:
            return np.full(len(sizes), np.inf), np.zeros_like(sizes), np.zeros_like(sizes)
        first = n - np.minimum(sizes, n)
        # where equal scores lie on both sides, the threshold moves above all of them
        first = np.where(first > 0, np.searchsorted(self.ascending, self.ascending[first - 1], side="right"), 0)
        above, below = self.ascending[np.minimum(first, n - 1)], self.ascending[np.maximum(first - 1, 0)]
        thresholds = np.where(first < n, midpoint(above, below), np.inf)
        return thresholds, n - first, len(self.true) - np.searchsorted(self.true, thresholds)


def midpoint(above: Any, below: Any) -> Floats:
    """Half way between two scores, rounded so that the upper one is taken and the lower one is not."""
    between = above / 2 + below / 2
    return np.asarray(np.where(between > below, between, above), dtype=np.float64)


def score_lists(S: Scores, T: csr_array) -> Iterator[ScoreList]:
    """One list per row of the scores; for lists of nodes give both matrices transposed."""
    for rows in row_blocks(S.shape[0], 32 * S.shape[1]):
        block = np.ascontiguousarray(base.without_nan(S[rows]))
        ascending = np.sort(block, axis=1)
        n_missing = np.count_nonzero(ascending == -np.inf, axis=1)
        for i, row in enumerate(range(rows.start, rows.stop)):
            true = np.sort(block[i, T.indices[T.indptr[row] : T.indptr[row + 1]]])
            yield ScoreList(ascending[i, n_missing[i] :], true[np.isfinite(true)], len(true))


class NodeThresholds(FittableRule):
    """One threshold per node: what SCut and PCut have in common."""

    __slots__ = ()
    thresholds: Numbers | None
    at_least_one: bool
    takes_sparse: ClassVar[bool] = True

    @property
    def is_fitted(self) -> bool:
        """Whether there are thresholds."""
        return self.thresholds is not None

    def decide(self, scores: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the nodes that score at or above their thresholds, and all their ancestors."""
        self.check_fitted()
        S: Any = base.read_sparse_scores(scores, taxonomy) if issparse(scores) else base.read_scores(scores, taxonomy)
        thresholds = np.asarray(self.thresholds, dtype=np.float64)
        if len(thresholds) != len(taxonomy):
            raise InputError(f"there are {len(thresholds)} thresholds for {len(taxonomy)} nodes; fit the rule again.")
        if issparse(S):
            return base.sparse_to_labels(thresholds[S.indices] <= S.data, S, taxonomy, self.at_least_one)
        return to_labels(thresholds <= S, S, taxonomy, self.at_least_one)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Whether each node's score reaches its threshold.

        >>> SCut(thresholds=[0.5, 0.2]).reasons([0.4, 0.3], Taxonomy.flat(["a", "b"]), [0, 1])
        ['0.40 is below its threshold 0.50', '0.30 reaches its threshold 0.20']
        """
        S, thresholds = base.read_scores(values, taxonomy)[0], np.asarray(self.thresholds, dtype=np.float64)
        return reasons_of_cuts(S, thresholds, "its threshold ", self.at_least_one, taxonomy, nodes)


@dataclass(frozen=True, slots=True, eq=False)
class SCut(NodeThresholds):
    """Each node has the threshold that gave it the highest F1 on held-out documents.

    over: what scores are about: "own", the most specific labels, or "nodes", membership with everything below included.
    fbr: a node whose best F1 is below this, or which has no true document with a score, gets no threshold
    of its own.
    below_fbr: what such a node gets instead: its "highest" held-out score (SCutFBR.1), or none, so that it is "never" chosen
    (SCutFBR.0). A node that has no scores at all is never chosen.
    at_least_one: where no node reaches its threshold, take the node with the highest score.
    thresholds: fitted, one per node; infinite where a node is never chosen.

    Of equally good thresholds, the middle of the widest gap between neighbouring scores is taken.

    >>> ab = Taxonomy.flat(["a", "b"])
    >>> rule = SCut().fit([[0.9, 0.1], [0.8, 0.4], [0.2, 0.3]], [[1, 0], [1, 1], [0, 1]], ab)
    >>> rule.thresholds
    array([0.5, 0.2])
    >>> ab.decode(rule.decide([[0.7, 0.3], [0.1, 0.1]], ab))
    [['a', 'b'], []]
    """

    over: Over = setting("own", base.one_of("own", "nodes"))
    fbr: float = setting(0.1, base.number(0, 1))
    below_fbr: Literal["highest", "never"] = setting("highest", base.one_of("highest", "never"))
    at_least_one: bool = setting(False, base.flag)
    thresholds: Numbers | None = setting(None, base.numbers(most=np.inf), is_fitted=True, repr=False)
    kind: ClassVar[str] = "scut"

    def fit(self, scores: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """Choose a threshold for each node on held-out scores and true labels, both documents × nodes."""
        self.check()
        S, T = read_held_out(scores, Y, taxonomy, self.over)
        thresholds = np.full(len(taxonomy), np.inf)
        for node, column in enumerate(score_lists(S.T, csr_array(T.T))):
            threshold, f1 = column.best_threshold()
            if column.true.size and f1 >= self.fbr:
                thresholds[node] = threshold
            elif self.below_fbr == "highest" and column.ascending.size:
                thresholds[node] = column.ascending[-1]
        return replace(self, thresholds=base.frozen(thresholds))


@dataclass(frozen=True, slots=True, eq=False)
class GCut(FittableRule):
    """One threshold for the scores of all nodes: the one with the largest sum of exact matches and micro F1 when held out.

    A threshold per node (SCut) wins F1 by predicting too many labels where nodes have few documents; one for all cannot.

    over, at_least_one: as in :class:`SCut`. threshold: fitted, or given.

    >>> ab = Taxonomy.flat(["a", "b"])
    >>> rule = GCut().fit([[0.9, 0.1], [0.8, 0.4], [0.2, 0.3]], [[1, 0], [1, 1], [0, 1]], ab)
    >>> rule.threshold
    0.35
    >>> ab.decode(rule.decide([[0.7, 0.4], [0.1, 0.2]], ab))
    [['a', 'b'], ['b']]
    """

    over: Over = setting("own", base.one_of("own", "nodes"))
    at_least_one: bool = setting(True, base.flag)
    threshold: float | None = setting(None, base.number(optional=True), is_fitted=True)
    kind: ClassVar[str] = "gcut"
    takes_sparse: ClassVar[bool] = True

    @property
    def is_fitted(self) -> bool:
        """Whether there is a threshold."""
        return self.threshold is not None

    def fit(self, scores: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """Choose the threshold on held-out scores and true labels, both documents × nodes."""
        self.check()
        S, T = read_held_out(scores, Y, taxonomy, self.over)
        S = base.without_nan(S)
        true = np.sort(S[base.rows_of(T), T.indices])
        true = true[np.isfinite(true)]
        finite = S[np.isfinite(S)]
        others = np.sort(finite[finite > true[0] - 1])  # lower ones are never taken
        # only a threshold just below a true score can be best: a lower one adds nothing but false ones
        highest = np.unique(true)
        below = others[np.maximum(np.searchsorted(others, highest) - 1, 0)]
        tried = np.unique(midpoint(highest, np.minimum(below, highest)))
        hits, taken = len(true) - np.searchsorted(true, tried), len(others) - np.searchsorted(others, tried)
        first, is_right = S.max(axis=1), np.asarray(T[np.arange(len(S)), S.argmax(axis=1)]).ravel().astype(bool)
        if self.at_least_one:  # the best node of a document counts below the threshold, too
            has_score = np.isfinite(first)
            taken = taken + np.searchsorted(np.sort(first[has_score]), tried)
            hits = hits + np.searchsorted(np.sort(first[has_score & is_right]), tried)
        above, up_to = self._exact_between(S, T, first, is_right)
        exact = np.searchsorted(np.sort(above), tried) - np.searchsorted(np.sort(up_to), tried)
        quality = 2 * hits / np.maximum(taken + T.nnz, 1) + exact / len(S)
        return replace(self, threshold=float(tried[np.flatnonzero(quality == quality.max())[-1]]))

    def _exact_between(self, S: Scores, T: csr_array, first: Floats, is_right: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """For documents that some threshold labels exactly right: it lies above the first number, up to the second.

        first, is_right: the highest score of each document, and whether that node is true.
        """
        n_true, lowest_true, false = np.diff(T.indptr), np.full(len(S), np.inf), S.copy()
        np.minimum.at(lowest_true, base.rows_of(T), S[base.rows_of(T), T.indices])
        false[base.rows_of(T), T.indices] = -np.inf
        highest_false = false.max(axis=1)
        fits = (lowest_true > highest_false) & (lowest_true > -np.inf)
        if self.at_least_one:
            is_alone = (n_true == 1) & is_right & np.isfinite(first)
            fits = (fits & (n_true > 0)) | is_alone | ((n_true == 0) & (first == -np.inf))
            lowest_true[is_alone] = np.inf
        return highest_false[fits], lowest_true[fits]

    def decide(self, scores: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the nodes that score at or above the threshold, and all their ancestors."""
        self.check_fitted()
        S: Any = base.read_sparse_scores(scores, taxonomy) if issparse(scores) else base.read_scores(scores, taxonomy)
        if issparse(S):
            return base.sparse_to_labels(S.data >= self.threshold, S, taxonomy, self.at_least_one)
        return to_labels(np.greater_equal(S, float(self.threshold or 0.0)), S, taxonomy, self.at_least_one)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Whether each node's score reaches the threshold."""
        S, thresholds = base.read_scores(values, taxonomy)[0], np.full(len(taxonomy), self.threshold, dtype=np.float64)
        return reasons_of_cuts(S, thresholds, "the threshold ", self.at_least_one, taxonomy, nodes)


def _about_factors(name: str, factors: Any) -> str | None:
    return base.numbers(0)(name, factors) or (None if np.size(factors) else "there is no factor to choose from")


@dataclass(frozen=True, slots=True, eq=False)
class PCut(NodeThresholds):
    """Each node is chosen about as often as it occurs, times a factor common to all nodes.

    Classical PCut gives a node to the x · proportion · n best of the n documents of a batch, so that a document's labels depend
    on the rest of the batch. In Ramify they must not. So the proportion becomes one fixed threshold per node: the one that the
    x · proportion · n highest of the n held-out scores reach (rounded to the nearest number; of equal scores all or none, never
    more than that number). The factor x is the one of `factors` with the highest micro F1 on the held-out documents; of equal
    ones the first.

    over, at_least_one, thresholds: as in :class:`SCut`.
    factor: fitted; the factor chosen.

    >>> ab = Taxonomy.flat(["a", "b"])
    >>> rule = PCut().fit([[0.9, 0.1], [0.8, 0.4], [0.2, 0.3]], [[1, 0], [1, 1], [0, 1]], ab)
    >>> rule.factor, rule.thresholds
    (1.0, array([0.5, 0.2]))
    """

    over: Over = setting("own", base.one_of("own", "nodes"))
    factors: Numbers = setting((1.0, 0.8, 1.25, 0.5, 2.0, 0.3, 3.0, 0.2, 5.0), _about_factors)
    at_least_one: bool = setting(False, base.flag)
    factor: float | None = setting(None, base.number(0, optional=True), is_fitted=True)
    thresholds: Numbers | None = setting(None, base.numbers(most=np.inf), is_fitted=True, repr=False)
    kind: ClassVar[str] = "pcut"

    def fit(self, scores: Any, Y: Any, taxonomy: Taxonomy, proportions: Numbers | None = None) -> Self:
        """Choose the factor, and with it the thresholds, on held-out scores and true labels, both documents × nodes.

        proportions: the proportion of training documents of each node; by default that of the held-out documents.
        """
        self.check()
        S, T = read_held_out(scores, Y, taxonomy, self.over)
        x = np.asarray(self.factors, dtype=np.float64)
        expected: NDArray[Any] = np.bincount(T.indices, minlength=len(taxonomy))
        if proportions is not None:
            if problem := base.numbers(0, 1)("proportions", proportions):
                raise InputError(f"{problem}.")
            if len(proportions) != len(taxonomy):
                raise InputError(f"there are {len(proportions)} proportions for {len(taxonomy)} nodes; give one per node.")
            expected = np.asarray(proportions, dtype=np.float64) * len(S)
        thresholds, taken, hits = np.empty((len(taxonomy), len(x))), np.zeros(len(x)), np.zeros(len(x))
        for node, column in enumerate(score_lists(S.T, csr_array(T.T))):
            sizes = np.floor(x * expected[node] + 0.5).clip(max=len(S)).astype(np.int64)
            thresholds[node], n_taken, n_hits = column.thresholds_of_size(sizes)
            taken, hits = taken + n_taken, hits + n_hits
        chosen = int(np.argmax(2 * hits / (T.nnz + taken)))
        return replace(self, factor=float(x[chosen]), thresholds=base.frozen(thresholds[:, chosen].copy()))


@dataclass(frozen=True, slots=True, eq=False)
class RCut(FittableRule):
    """Each document gets its k best nodes; fitted, k has the highest micro F1 on held-out documents.

    over: what scores are about: "own", the most specific labels, or "nodes", membership with everything below included.
    k: fitted, or given. Of equally good ones the smallest is taken.

    Of equal scores the first in node order wins; a document with fewer than k scores gets all its scored nodes.

    >>> abc = Taxonomy.flat(["a", "b", "c"])
    >>> RCut().fit([[0.9, 0.1, 0.8], [0.2, 0.4, 0.3]], [[1, 0, 1], [0, 1, 1]], abc)
    RCut(over='own', k=2)
    >>> abc.decode(RCut(k=2).decide([[0.1, 0.2, 0.2]], abc))
    [['b', 'c']]
    """

    over: Over = setting("own", base.one_of("own", "nodes"))
    k: int | None = setting(None, base.count(optional=True), is_fitted=True)
    kind: ClassVar[str] = "rcut"

    def fit(self, scores: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """Choose k on held-out scores and true labels, both documents × nodes."""
        self.check()
        S, T = read_held_out(scores, Y, taxonomy, self.over)
        is_scored = np.isfinite(S[base.rows_of(T), T.indices])
        documents, nodes = base.rows_of(T)[is_scored], T.indices[is_scored]
        ranks = np.empty(len(nodes), dtype=np.int64)  # how many nodes come before a true one
        for part in row_blocks(len(nodes), 16 * S.shape[1]):
            others, own = S[documents[part]], S[documents[part], nodes[part], None]
            earlier = np.arange(S.shape[1]) < nodes[part, None]
            ranks[part] = np.count_nonzero((others > own) | ((others == own) & earlier), axis=1)
        hits = np.bincount(ranks)
        n_scored = [np.count_nonzero(np.isfinite(S[rows]), axis=1) for rows in row_blocks(len(S), S.shape[1])]
        # the k-th best node exists in the documents with k scores or more
        n_taken = np.cumsum(np.bincount(np.concatenate(n_scored), minlength=len(hits) + 1)[::-1])[::-1][1 : len(hits) + 1]
        f1 = 2 * np.cumsum(hits) / (T.nnz + np.cumsum(n_taken))
        return replace(self, k=int(np.argmax(f1)) + 1)

    def decide(self, scores: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with its k highest-scoring nodes and all their ancestors."""
        self.check_fitted()
        S, k = base.read_scores(scores, taxonomy), min(int(self.k or 1), max(len(taxonomy), 1))
        chosen = np.isfinite(S)
        for rows in row_blocks(len(S) if k < len(taxonomy) else 0, 32 * len(taxonomy)):
            block = base.without_nan(S[rows])
            kth = np.partition(block, -k, axis=1)[:, [-k]]
            above, equal = kth < block, kth == block
            room = k - np.count_nonzero(above, axis=1)
            chosen[rows] &= above | (equal & (np.cumsum(equal, axis=1) <= room[:, None]))  # of equal ones the first
        return to_labels(chosen, S, taxonomy, at_least_one=False)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Which place each node's score takes, and how many are chosen.

        >>> RCut(k=1).reasons([0.4, 0.3], Taxonomy.flat(["a", "b"]), [0, 1])
        ['0.40, number 1 of 2 scores, of which 1 is chosen', '0.30, number 2 of 2 scores, of which 1 is chosen']
        """
        given, k = base.read_scores(values, taxonomy), int(self.k or 1)
        S = base.without_nan(given)[0]
        n = int(np.count_nonzero(np.isfinite(S)))
        rank = np.empty(len(S), dtype=np.int64)
        rank[np.argsort(-S, kind="stable")] = np.arange(1, len(S) + 1)

        def explain(node: int) -> str:
            if not np.isfinite(S[node]):
                return why_missing(given[0, node], NO_SCORE)
            chosen = "1 is" if min(k, n) == 1 else f"{min(k, n)} are"
            return f"{format_numbers(S[node])[0]}, number {rank[node]} of {n} scores, of which {chosen} chosen"

        return with_labels_below(explain, nodes, np.isfinite(S) & (rank <= k), S, taxonomy)


@dataclass(frozen=True, slots=True, eq=False)
class PredictedCut(FittableRule):
    """Each document has a threshold of its own, predicted from its highest scores.

        threshold = intercept + Σ_j coefficients[j] · (the j-th highest score)

    The coefficients are fitted by ridge regression to the best threshold of each held-out document: the one with the highest F1
    of its labels; of equally good ones, the middle of the widest gap between neighbouring scores. Documents without a scored
    true label are left out. A document with fewer scores than coefficients repeats its lowest one.

    over: what scores are about: "own", the most specific labels, or "nodes", membership with everything below included.
    n_scores: how many of the highest scores the prediction uses.
    ridge: the penalty on squared coefficients, as a fraction of the mean variance of the features.
    at_least_one: where no node reaches its threshold, take the node with the highest score.
    intercept, coefficients: fitted.

    >>> abc = Taxonomy.flat(["a", "b", "c"])
    >>> S = [[4.0, 3.0, 0.0], [0.0, 1.0, 6.0], [2.0, 5.0, 5.0]]
    >>> rule = PredictedCut(n_scores=2).fit(S, [[1, 1, 0], [0, 0, 1], [0, 1, 1]], abc)
    >>> abc.decode(rule.decide(S, abc))
    [['a', 'b'], ['c'], ['b', 'c']]
    """

    over: Over = setting("own", base.one_of("own", "nodes"))
    n_scores: int = setting(10, base.count())
    ridge: float = setting(1e-3, base.number(0))
    at_least_one: bool = setting(False, base.flag)
    intercept: float | None = setting(None, base.number(optional=True), is_fitted=True)
    coefficients: Numbers | None = setting(None, base.numbers(), is_fitted=True, repr=False)
    kind: ClassVar[str] = "predicted-cut"

    def fit(self, scores: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """Fit the regression to held-out scores and true labels, both documents × nodes."""
        self.check()
        S, T = read_held_out(scores, Y, taxonomy, self.over)
        best_thresholds = np.array([row.best_threshold()[0] for row in score_lists(S, T)])
        is_known = np.isfinite(best_thresholds)
        X, t = _highest(S, min(self.n_scores, len(taxonomy)))[is_known], best_thresholds[is_known]
        # minimize mean (t − intercept − X b)² + ridge · (mean variance of X) · |b|²
        coefficients = np.zeros(X.shape[1])
        if np.ptp(X, axis=0).any():  # rows that are all equal have no variance but rounding errors
            Z = X - X.mean(axis=0)
            covariance = Z.T @ Z / len(Z)
            covariance += self.ridge * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
            coefficients = np.linalg.lstsq(covariance, Z.T @ (t - t.mean()) / len(Z), rcond=None)[0]
        intercept = float(t.mean() - X.mean(axis=0) @ coefficients)
        return replace(self, intercept=intercept, coefficients=base.frozen(coefficients))

    def thresholds_of(self, S: Scores) -> Floats:
        """The predicted threshold of each document."""
        coefficients = np.asarray(self.coefficients, dtype=np.float64)
        features = _highest(S, len(coefficients))
        thresholds = np.full(len(S), self.intercept, dtype=np.float64)
        # one feature after the other: a matrix product may round a row differently in another batch
        for feature, coefficient in zip(features.T, coefficients, strict=True):
            thresholds += coefficient * feature
        return thresholds

    def decide(self, scores: Any, taxonomy: Taxonomy) -> csr_array:
        """Label each document with the nodes that score at or above its predicted threshold, and all their ancestors."""
        self.check_fitted()
        S = base.read_scores(scores, taxonomy)
        passes = (self.thresholds_of(S)[:, None] <= S) & np.isfinite(S)
        return to_labels(passes, S, taxonomy, self.at_least_one)

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """Whether each node's score reaches the threshold that was predicted for the document."""
        S = base.read_scores(values, taxonomy)
        thresholds = np.full(S.shape[1], self.thresholds_of(S)[0])
        return reasons_of_cuts(S[0], thresholds, "the threshold for this text, ", self.at_least_one, taxonomy, nodes)


def _highest(S: Scores, k: int) -> Floats:
    """The k highest scores of each row, descending; a row with fewer repeats its lowest, one with none has zeros."""
    features = np.full((len(S), k), -np.inf)
    width = min(k, S.shape[1])
    for rows in row_blocks(len(S) if width else 0, 16 * S.shape[1]):
        features[rows, :width] = np.sort(np.partition(base.without_nan(S[rows]), -width, axis=1)[:, -width:], axis=1)[:, ::-1]
    present = np.isfinite(features)
    lowest = np.min(features, axis=1, keepdims=True, initial=np.inf, where=present)
    return np.where(present, features, np.where(lowest < np.inf, lowest, 0.0))
