"""The steps of fitting a classifier: documents kept back, features, out-of-fold values, rules, calibration, training data."""

from __future__ import annotations

from collections.abc import Callable, Sized
from copy import copy
from dataclasses import dataclass, fields
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.base import clone

from ramify.calibration import LogPotentials, calibration_class
from ramify.classifier.guarantees import Guarantee
from ramify.data.corpus import StoredTexts
from ramify.decisions import (
    Best,
    DecisionRule,
    Descend,
    FittableRule,
    IsotonicSmooth,
    MinimizeHLoss,
    PCut,
    PredictedCut,
    RCut,
    RefiningRule,
    SCut,
    Sign,
    TopDown,
    fit_conformal,
)
from ramify.errors import InputError, ModelError, suggest
from ramify.features.base import BaseVectorizer
from ramify.learners.linear.weights import are_finite
from ramify.parallel import stage
from ramify.taxonomy import Taxonomy, most_specific

Ints = NDArray[np.int64]
MULTI_LABEL_FRACTION = 0.05  # of documents with multiple labels; from it on, predictions may have multiple labels


def multi_label_fraction(Y: csr_array, taxonomy: Taxonomy) -> float:
    """The fraction of documents that have more than one most specific label."""
    return float(np.mean(np.diff(most_specific(Y, taxonomy).indptr) > 1))


def is_single_label(Y: csr_array, taxonomy: Taxonomy) -> bool:
    """Whether nearly all documents have exactly one most specific label."""
    return float(np.mean(np.diff(most_specific(Y, taxonomy).indptr) == 1)) > 1 - MULTI_LABEL_FRACTION


# ---- documents to keep back ---------------------------------------------------------------------------------------------


def check_fraction(keep_back: Any) -> float:
    """Refuse what is not a fraction of the documents."""
    if isinstance(keep_back, bool) or not isinstance(keep_back, Real) or not 0 <= float(keep_back) < 1:
        raise InputError(f"keep_back is {keep_back!r}; give a fraction of the documents from 0 to below 1, such as 0.1.")
    return float(keep_back)


def split_rows(n_documents: int, keep_back: float) -> tuple[Ints, Ints]:
    """Random documents to train on, and documents to keep back.

    >>> [len(part) for part in split_rows(50, 0.1)]
    [45, 5]
    """
    order = np.random.default_rng(0).permutation(n_documents)
    n_kept = round(keep_back * n_documents)
    if n_kept in (0, n_documents):
        raise InputError(
            f"keep_back is {keep_back:g}, which keeps {n_kept} of {n_documents} documents back; keep some, not all."
        )
    return np.sort(order[n_kept:]), np.sort(order[:n_kept])


def split_texts(texts: Any, rows: list[list[str]], keep_back: float) -> tuple[Any, Any, list[list[str]], list[list[str]]]:
    """Texts to train on and texts to keep back, and the labels of both."""
    fraction = check_fraction(keep_back)
    if fraction == 0 or isinstance(texts, str):
        return texts, None, rows, []
    texts = as_sized(texts)
    if count_texts(texts) != len(rows):
        raise InputError(f"there are {count_texts(texts)} texts but labels for {len(rows)}; give one entry per text.")
    train, kept = split_rows(len(rows), fraction)
    return take(texts, train), take(texts, kept), [rows[i] for i in train], [rows[i] for i in kept]


def as_sized(texts: Any) -> Any:
    """Texts whose number is known; an iterator becomes a list."""
    return texts if issparse(texts) or (isinstance(texts, Sized) and not isinstance(texts, str)) else list(texts)


def take(texts: Any, positions: Ints) -> Any:
    """Some of the texts, in any form that a classifier reads."""
    if isinstance(texts, np.ndarray) or issparse(texts):
        return texts[positions]
    if isinstance(texts, StoredTexts):
        return texts.take(positions)
    listed = list(texts)
    return [listed[place] for place in positions.tolist()]


def count_texts(texts: Any) -> int:
    """The number of texts, in any form that a classifier reads."""
    return int(texts.shape[0]) if issparse(texts) or isinstance(texts, np.ndarray) else len(texts)


# ---- features ----------------------------------------------------------------------------------------------------------


def selector_for(selector: Any, learner: Any) -> Any:
    """The selector to apply before training; None without one, or where the learner selects terms at every node by itself."""
    if selector is None:
        return None
    if selector.scope != "glocal":
        return clone(selector).set_params(taxonomy=learner.taxonomy)
    name = next((name for name in ("n_words", "n_terms") if name in learner.get_params()), None)
    if name is None:
        raise InputError(
            "term selection at every node ('glocal') is for pachinko-nb and treeboost-mh; give scope 'flat' or 'hierarchical'."
        )
    learner.set_params(**{name: selector.n_features}, measure=selector.measure, join=selector.join)
    return None


def fit_features(vectorizer: Any, texts: Any, selector: Any, Y: csr_array) -> csr_array:
    """Fit a vectorizer, select terms, and return the matrix of the texts."""
    counts = isinstance(vectorizer, BaseVectorizer)
    X = vectorizer.fit_count(texts) if counts else vectorizer.fit_transform(texts)
    if X.shape[0] != Y.shape[0]:
        raise InputError(f"there are {X.shape[0]} texts but labels for {Y.shape[0]}; give one entry per text.")
    if not counts:
        if selector is not None:
            raise InputError(f"terms cannot be selected after {type(vectorizer).__name__}; use Vectorizer or Vectors.")
        return X
    if selector is not None:
        columns = selector.fit(X, Y).columns_
        vectorizer.select_columns(columns)
        X = csr_array(X[:, columns])
    return vectorizer.weight_counts(X)


class UsedFeatures:
    """Caches a vectorizer restricted to the features that the learner uses, where it does not use all."""

    def __init__(self) -> None:
        self._cached: tuple[Any, Any, Any] = (None, None, None)

    def parts(self, vectorizer: Any, learner: Any) -> tuple[Any, Any]:
        """A vectorizer and a learner over the used features; they give the same scores."""
        found = learner.with_used_features() if isinstance(vectorizer, BaseVectorizer) else None
        if found is None or not len(found[0]):
            return vectorizer, learner
        columns, restricted = found
        of_vectorizer, of_learner, cached = self._cached  # read once, since other threads may write it
        if of_vectorizer is not vectorizer or of_learner is not restricted:
            cached = copy(vectorizer)
            cached.select_columns(columns)
            self._cached = vectorizer, restricted, cached
        if "n_jobs" in vectorizer.get_params():
            cached.n_jobs = vectorizer.n_jobs
        return cached, restricted


# ---- out-of-fold values --------------------------------------------------------------------------------------------------
# Rules and calibrations are fitted on values of documents by learners that were not trained on them. With very many documents
# a few folds are enough; with very many nodes, a sample of the documents.

FOLDS = 5  # twice as many for many documents, of which some are scored
ENOUGH = 10_000  # documents to fit a calibration on
MOST_VALUES = 1 << 24  # documents × nodes of a calibration
UNIT = 1e-3  # tolerance of unit length
FEWEST = 1000  # documents of a calibration, however many nodes there are

HeldOut = tuple[Ints, list[Any]]  # documents, and their values fold by fold


def cross_fit(
    learner: Any, X: csr_array, Y: csr_array, folds: list[Ints], convert: Callable[[Any, NDArray[np.float32]], Any]
) -> HeldOut:
    """Held-out documents, and their converted scores fold by fold; folds that leave nothing to train on are skipped."""
    documents, found = [np.zeros(0, dtype=np.int64)], list[Any]()
    if not folds:
        return documents[0], found
    with stage("fitting on held-out documents", len(folds)) as step:
        for held_out in folds:
            others = np.setdiff1d(np.arange(X.shape[0]), held_out)
            if len(held_out) and can_train(Y[others], learner):
                fitted = unfitted_copy(learner).fit(X[others], Y[others])
                found.append(convert(fitted, fitted.scores(as_new(X, held_out, others))))
                documents.append(held_out)
            step.advance()
    return np.concatenate(documents), found


def as_new(X: csr_array, held_out: Ints, others: Ints) -> csr_array:
    """Held-out documents as if they were new: without features that no other document has, normalized again."""
    rows = csr_array(X[held_out], copy=True)
    is_known = np.bincount(X[others].indices, minlength=X.shape[1]) > 0
    if is_known[rows.indices].all():
        return rows
    old_lengths = _lengths(rows)
    rows.data[~is_known[rows.indices]] = 0
    rows.eliminate_zeros()
    if np.allclose(old_lengths[old_lengths > 0], 1, atol=UNIT):
        lengths = _lengths(rows)
        rows.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(rows.indptr)).astype(rows.dtype)
    return rows


def _lengths(rows: csr_array) -> NDArray[np.float64]:
    squares = csr_array((rows.data.astype(np.float64) ** 2, rows.indices, rows.indptr), shape=rows.shape)
    lengths: NDArray[np.float64] = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    return lengths


def few_folds(n_documents: int, n_nodes: int) -> list[Ints]:
    """Folds for a calibration: enough documents in all, in small folds where there are many.

    A learner trained on more documents is more like the one that is trained on all of them.

    >>> [len(fold) for fold in few_folds(1000, 50)], [len(fold) for fold in few_folds(40_000, 50)]
    ([200, 200, 200, 200, 200], [4000, 4000, 4000])
    >>> [len(fold) for fold in few_folds(128_710, 14_331)]
    [1170]
    """
    enough = min(ENOUGH, max(FEWEST, MOST_VALUES // max(1, n_nodes)))
    order = np.random.default_rng(0).permutation(n_documents)
    parts = FOLDS if n_documents < 2 * enough else 2 * FOLDS
    if n_documents >= parts * enough:
        return [np.sort(order[:enough])]
    folds = [np.sort(order[k::parts]) for k in range(parts)]
    needed = -(-enough // max(1, len(folds[0])))
    return folds[: max(1, needed)]


def can_train(Y: csr_array, learner: Any) -> bool:
    """Whether there are documents of at least two classes."""
    own: NDArray[Any] = most_specific(Y, learner.taxonomy_).indices
    return len(np.unique(own)) > 1


def unfitted_copy(learner: Any) -> Any:
    """An unfitted learner with the same parameters, and with those that the learner selected by itself."""
    return clone(learner).set_params(**learner.selected_params())


# ---- decision rules ---------------------------------------------------------------------------------------------------

_ALL = (Best, Sign, TopDown, Descend, MinimizeHLoss, IsotonicSmooth, SCut, RCut, PCut, PredictedCut)
RULES: dict[str, Any] = {rule.kind: rule for rule in _ALL}
RULE_FOLDS = 3
MAX_SCORES = 1 << 28  # held-out documents × nodes; beyond that, a sample of the documents is used


def make_rule(name: str, settings: dict[str, Any]) -> DecisionRule:
    """A rule by its name, with parameters.

    >>> make_rule("isotonic", {"penalty": 5})
    IsotonicSmooth(penalty=5, scale=None, weights=None, threshold=0.5, at_least_one=False, prior_weight=0.0, levels='auto')
    """
    if name not in RULES:
        raise InputError(f"rule {name!r} is unknown; the rules are {', '.join(RULES)}.{suggest(name, RULES)}")
    allowed = [setting.name for setting in fields(RULES[name]) if setting.repr]
    for given in settings:
        if given not in allowed:
            raise InputError(f"{given!r} is not a parameter of rule {name!r}; it has {', '.join(allowed) or 'none'}.")
    rule: DecisionRule = RULES[name](**settings)
    rule.check()
    return rule


def values_for(rule: DecisionRule, learner: Any, scores: NDArray[np.float32]) -> NDArray[np.floating[Any]]:
    """A learner's scores converted to the values that a rule takes."""
    values: NDArray[np.floating[Any]] = learner.convert_scores(scores, rule.takes)
    return values


def is_by_sign(rule: DecisionRule) -> bool:
    """Whether a rule predicts the nodes with a margin of 0 or more."""
    return isinstance(rule, (Sign, TopDown)) and rule.threshold == 0


def needs_positive_only(rule: DecisionRule) -> bool:
    """Whether a rule ignores everything below a node with a negative margin."""
    return isinstance(rule, TopDown) and rule.threshold >= 0


def decide_by(
    rule: DecisionRule, values: NDArray[np.floating[Any]], taxonomy: Taxonomy
) -> tuple[csr_array, NDArray[np.floating[Any]] | None]:
    """Labels, and the refined values of a rule that refines them."""
    if not isinstance(rule, RefiningRule):
        return rule.decide(values, taxonomy), None
    refined = rule.refine(values, taxonomy)
    return rule.cut(refined, values, taxonomy), refined


def refuse_misfit(rule: DecisionRule, taxonomy: Taxonomy) -> None:
    """Refuse a rule that cannot decide over a taxonomy, by trying it on a document without scores."""
    rule.decide(np.full((1, len(taxonomy)), np.nan), taxonomy)


def rule_folds(learner: Any, Y: csr_array) -> list[NDArray[np.int64]]:
    """Folds to fit a rule on; none where the learner has held-out scores already, from its calibration."""
    if learner.held_out_ is not None:
        return []
    n_docs, n_nodes = Y.shape
    used = np.random.default_rng(0).permutation(n_docs)[: max(RULE_FOLDS, MAX_SCORES // max(1, n_nodes))]
    return [np.sort(used[k::RULE_FOLDS]) for k in range(RULE_FOLDS)]


def fit_rule(rule: FittableRule, learner: Any, X: csr_array, Y: csr_array, held_out: HeldOut | None = None) -> FittableRule:
    """Fit a rule on out-of-fold values: each document is scored by a learner that was not trained on it.

    held_out: what :func:`cross_fit` returns for :func:`rule_folds`; computed here when not given.
    """
    if learner.held_out_ is not None:
        documents, scores = learner.held_out_
        values = [values_for(rule, learner, scores)] if _has_scored_label(scores, Y[documents], learner) else []
    else:
        if held_out is None:
            held_out = cross_fit(learner, X, Y, rule_folds(learner, Y), partial(values_for, rule))
        documents, values = held_out
        values = values if values and _has_scored_label(np.concatenate(values), Y[documents], learner) else []
    if values:
        return rule.fit(np.concatenate(values), Y[documents], learner.taxonomy_)
    return rule.fit(values_for(rule, learner, learner.scores(X)), Y, learner.taxonomy_)  # too few documents to hold any out


def _has_scored_label(scores: NDArray[np.floating[Any]], Y: csr_array, learner: Any) -> bool:
    own = most_specific(Y, learner.taxonomy_).tocoo()
    return bool(np.isfinite(scores[own.row, own.col]).any())


# ---- training data kept with a model ------------------------------------------------------------------------------------

NAMES = ("offsets", "features", "values", "label_offsets", "labels")
TYPES = ("int64", "int32", "float32", "int64", "int32")


@dataclass(frozen=True, slots=True)
class TrainingData:
    """The documents that a model was trained on, kept with it so that it can be updated.

    X: documents × features. own: documents × nodes, their most specific labels.
    """

    X: csr_array
    own: csr_array

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def followed_by(self, X: csr_array, own: csr_array, columns: NDArray[np.int64] | None, nodes: NDArray[np.int64]) -> Self:
        """These documents followed by others. columns, nodes: the new numbers of the features and nodes of these."""
        mine = self.X if columns is None else _renumbered(self.X, columns, X.shape[1])
        labels = _renumbered(self.own, nodes, own.shape[1])
        return type(self)(csr_array(vstack([mine, X], format="csr")), csr_array(vstack([labels, own], format="csr")))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a model file."""
        parts = (self.X.indptr, self.X.indices, self.X.data, self.own.indptr, self.own.indices)
        return {name: part.astype(kind, copy=False) for name, kind, part in zip(NAMES, TYPES, parts, strict=True)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_features: int, n_nodes: int) -> Self:
        """Training data from the arrays of a model file; types, shapes and ranges are checked."""
        offsets, features, values, label_offsets, labels = (arrays[name] for name in NAMES)
        typed = all(arrays[name].dtype.name == kind and arrays[name].ndim == 1 for name, kind in zip(NAMES, TYPES, strict=True))
        if not typed or len(offsets) != len(label_offsets) or len(features) != len(values) or not are_finite(values):
            raise ModelError("the training data of the model is not what Ramify writes; train the model again.")
        _check_rows(offsets, features, n_features, "features")
        _check_rows(label_offsets, labels, n_nodes, "labels")
        ones = np.ones(len(labels), dtype=bool)
        X = csr_array((values, features, offsets), shape=(len(offsets) - 1, n_features))
        return cls(X, csr_array((ones, labels, label_offsets), shape=(len(offsets) - 1, n_nodes)))


def _renumbered(matrix: csr_array, columns: NDArray[np.int64], n_columns: int) -> csr_array:
    made = csr_array((matrix.data, columns[matrix.indices], matrix.indptr), shape=(matrix.shape[0], n_columns))
    made.sort_indices()
    return made


def _check_rows(offsets: NDArray[Any], columns: NDArray[Any], n_columns: int, what: str) -> None:
    fits = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(columns) and not np.any(offsets[1:] < offsets[:-1])
    if not fits or (len(columns) and (columns.min() < 0 or columns.max() >= n_columns)):
        raise ModelError(f"the {what} of the training data do not fit the model; train the model again.")


def refuse_class_weight(learner: Any) -> None:
    """Refuse to keep training data for a learner that could not be trained on it again."""
    if learner.get_params().get("class_weight") is not None:
        raise InputError(
            "a model with class_weight cannot keep its training data, since model files do not hold the weights; leave one out."
        )


# ---- calibration ----------------------------------------------------------------------------------------------------------

FEWEST_HELD_OUT = 100  # documents to fit a calibration on
MOST_NODES = 50_000  # beyond that, documents × nodes do not fit into memory


def calibration_folds(learner: Any, Y: csr_array) -> list[Ints]:
    """Folds to fit a calibration on; none where there is no calibration, or the learner has held-out scores already."""
    return [] if learner.held_out_ is not None or not can_calibrate(learner, Y) else few_folds(*Y.shape)


def can_calibrate(learner: Any, Y: csr_array) -> bool:
    """Whether there are enough documents, and not too many nodes."""
    return Y.shape[0] >= FEWEST_HELD_OUT and Y.shape[1] <= MOST_NODES and not learner.scores_candidates_only


def calibration_values(learner: Any, Y: csr_array) -> Callable[[Any, NDArray[np.float32]], Any]:
    """Converts scores of a learner to what the calibration of such documents takes."""
    takes = calibration_class(learner.taxonomy_, multi_label=not is_single_label(Y, learner.taxonomy_)).takes
    return lambda fitted, scores: fitted.convert_scores(scores, takes)


def calibrate_learner(
    learner: Any, X: csr_array, Y: csr_array, has_guarantee: bool = True, held_out: HeldOut | None = None
) -> tuple[Any, Guarantee | None]:
    """A calibration fitted on out-of-fold scores, and an estimated guarantee if wanted; None and None where it is impossible.

    held_out: what :func:`cross_fit` returns for :func:`calibration_folds`; computed here when not given.
    """
    if not can_calibrate(learner, Y):
        return None, None
    taxonomy, multi_label = learner.taxonomy_, not is_single_label(Y, learner.taxonomy_)
    if learner.held_out_ is not None:
        documents, scores = learner.held_out_
        found = [calibration_values(learner, Y)(learner, scores)]
    else:
        documents, found = held_out or cross_fit(learner, X, Y, calibration_folds(learner, Y), calibration_values(learner, Y))
    if not len(documents):
        return None, None
    values = LogPotentials.concatenate(found) if isinstance(found[0], LogPotentials) else np.concatenate(found)
    with stage("calibrating", 2) as step:
        calibration = calibration_class(taxonomy, multi_label=multi_label).fit(values, Y[documents], taxonomy)
        step.advance()
        if not has_guarantee:
            return calibration, None
        P = calibration.apply(values, taxonomy).astype(np.float32)
        predictor = fit_conformal(P, Y[documents], taxonomy, multi_label=multi_label)
    return calibration, Guarantee(predictor, len(documents), is_proven=False)
