"""The steps of fitting a classifier: documents kept back, features, out-of-fold values, rules, calibration, training data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from scipy.sparse.linalg import norm as sparse_norm
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import _safe_indexing

from ramify import decisions
from ramify.arguments import as_list, as_numbers, check_kind, describe, frame_columns, sized_entries
from ramify.calibration import LogPotentials, calibration_class
from ramify.classifier.guarantees import Guarantee
from ramify.data.corpus import StoredTexts
from ramify.decisions import DecisionRule, FittableRule, RefiningRule, fit_conformal
from ramify.errors import InputError, LabelError, ModelError, suggest
from ramify.features import FeatureUnion, TermSelector, Transformer
from ramify.features.base import BaseVectorizer
from ramify.learners import ScikitLearner
from ramify.learners.base import Learner
from ramify.parallel import stage
from ramify.persistence import are_finite, are_indices, are_offsets
from ramify.systems import System
from ramify.taxonomy import GivenLabels, Taxonomy, most_specific

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
        found = f"keep_back is {keep_back:g}, which keeps {n_kept} of {n_documents} documents back"
        raise InputError(f"{found}; keep some, not all.")
    return np.sort(order[n_kept:]), np.sort(order[:n_kept])


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Documents, their labels as names, and how much each counts; without weights, all count the same."""

    documents: Any
    rows: list[list[str]]
    weights: NDArray[np.float64] | None = None

    def at(self, positions: Ints) -> TrainingSet:
        """Some of the documents."""
        weights = None if self.weights is None else self.weights[positions]
        return TrainingSet(take(self.documents, positions), [self.rows[i] for i in positions], weights)


def training_sets(
    documents: Any, rows: list[list[str]], sample_weight: Any, keep_back: float
) -> tuple[TrainingSet, TrainingSet | None]:
    """Documents to train on, without those of weight 0, and documents to keep back, if any."""
    fraction = check_fraction(keep_back)
    given = TrainingSet(documents, rows)
    if fraction == 0 and sample_weight is None:
        return given, None
    given = TrainingSet(sized_entries(documents, "texts"), rows)
    if (n := count_texts(given.documents)) != len(rows):
        raise InputError(f"there are {n} texts but labels for {len(rows)}; give one entry per text.")
    if sample_weight is not None:
        weights = check_weights(sample_weight, n)
        given = TrainingSet(given.documents, rows, weights)
        if not weights.all():
            given = given.at(np.flatnonzero(weights))
    if fraction == 0:
        return given, None
    train, kept = split_rows(len(given.rows), fraction)
    return given.at(train), given.at(kept)


def encode_labels(given: GivenLabels, rows: list[list[str]]) -> csr_array:
    """Labels as a matrix over nodes; says so where a tool has replaced the labels by numbers."""
    try:
        return given.taxonomy.encode(rows)
    except LabelError as error:
        numbers = {label for row in rows for label in row}
        if not all(label.isdecimal() and int(label) < len(numbers) for label in numbers) or len(numbers) < 2:
            raise
        cause = "if scikit-learn has numbered the labels, as cross_val_predict does for probabilities, leave the taxonomy out"
        raise LabelError(f"{error} The labels are whole numbers from 0; {cause}.") from None


def check_weights(sample_weight: Any, n_documents: int) -> NDArray[np.float64]:
    """Weights of documents: numbers from 0, one per document, at least one of them above 0."""
    advice = "give one number from 0 per document"
    weights = as_numbers(as_list(sample_weight), "sample weights", advice).astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_documents, float(weights))
    if weights.shape != (n_documents,):
        raise InputError(f"sample_weight.shape == {weights.shape}, expected {(n_documents,)}; {advice}.")
    if not weights.any():
        raise InputError("all sample weights are zero; give a number above 0 for the documents to train on.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        found = "negative values" if (weights < 0).any() else "values that are not finite"
        raise InputError(f"the sample weights have {found}; {advice}.")
    return weights


def choose_rule(given: Any, system: System, multi_label: float, settings: dict[str, Any]) -> Any:
    """The decision rule that was given, or the system's for the fraction of documents with multiple labels."""
    if given is None:
        has_several = multi_label >= MULTI_LABEL_FRACTION
        given = ((has_several and system.multi_label_decision) or system.decision)()
    if settings:
        check_kind(given, DecisionRule, "decision", "a rule of ramify.decisions, such as Best()")
    return with_settings(given, settings)


def with_settings(rule: Any, settings: dict[str, Any]) -> Any:
    """The same rule with other settings."""
    if not settings:
        return rule
    has = rule_params(rule)
    if unknown := [name for name in settings if name not in has]:
        found = f"rule {rule.kind!r}, which decides here, has no parameter {unknown[0]!r}"
        raise InputError(f"{found}; it has {', '.join(has) or 'none'}.{suggest(unknown[0], has)}")
    made = replace(rule, **settings)
    made.check()
    return made


def rule_params(rule: Any) -> dict[str, Any]:
    """The settings of a decision rule, by name."""
    return {each.name: getattr(rule, each.name) for each in fields(rule) if each.repr} if is_dataclass(rule) else {}


def take(texts: Any, positions: Ints) -> Any:
    """Some of the texts, in any form that a classifier reads."""
    if isinstance(texts, np.ndarray) or issparse(texts):
        return texts[positions]
    if isinstance(texts, StoredTexts):
        return texts.take(positions)
    if frame_columns(texts) is not None:
        return _safe_indexing(texts, positions)
    listed = list(texts)
    return [listed[place] for place in positions.tolist()]


def count_texts(texts: Any) -> int:
    """The number of texts, in any form that a classifier reads."""
    return int(texts.shape[0]) if hasattr(texts, "shape") else len(texts)


# ---- features ----------------------------------------------------------------------------------------------------------


def new_vectorizer(given: Any, params: dict[str, Any]) -> Any:
    """An unfitted copy of the user's vectorizer, or of a list of them as blocks side by side, with other parameters."""
    if isinstance(given, (list, tuple)):
        return clone(FeatureUnion(given)).set_params(**params)
    allowed = "a vectorizer, such as ramify.features.Vectorizer(), or a list of them"
    check_kind(given, BaseEstimator, "features", allowed)
    if not hasattr(given, "transform"):
        raise InputError(f"features is {describe(given)}, which turns no texts into features; give {allowed}.")
    made = clone(given).set_params(**params)
    return made if isinstance(made, BaseVectorizer) else Transformer(made)


def new_learner(given: Any, params: dict[str, Any]) -> Any:
    """An unfitted copy of the user's learner, with other parameters."""
    if isinstance(given, BaseEstimator) and not isinstance(given, Learner) and is_classifier(given):
        return ScikitLearner(estimator=clone(given).set_params(**params))
    check_kind(given, Learner, "learner", "a learner of ramify.learners, such as RecursiveSVM(), or a scikit-learn classifier")
    return clone(given).set_params(**params)


def selector_for(selector: Any, learner: Any) -> Any:
    """The selector to apply before training; None without one, or where the learner selects terms at every node by itself."""
    if selector is None:
        return None
    check_kind(selector, TermSelector, "selector", "a ramify.features.TermSelector")
    if selector.scope != "glocal":
        return clone(selector).set_params(taxonomy=learner.taxonomy)
    name = next((name for name in ("n_words", "n_terms") if name in learner.get_params()), None)
    if name is None:
        found = "term selection at every node ('glocal') is for pachinko-nb and treeboost-mh"
        raise InputError(f"{found}; give scope 'flat' or 'hierarchical'.")
    learner.set_params(**{name: selector.n_features}, measure=selector.measure, join=selector.join)
    return None


def fit_features(vectorizer: Any, texts: Any, selector: Any, Y: csr_array) -> csr_array:
    """Fit a vectorizer, select terms, and return the matrix of the texts."""
    counts = isinstance(vectorizer, BaseVectorizer) and selector is not None
    labels = (Y,) if isinstance(vectorizer, Transformer) else ()  # which may select features by them
    X = vectorizer.fit_count(texts) if counts else vectorizer.fit_transform(texts, *labels)
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


# ---- out-of-fold values --------------------------------------------------------------------------------------------------
# Rules and calibrations are fitted on values of documents by learners that were not trained on them. With very many documents
# a few folds are enough; with very many nodes, a sample of the documents.

FOLDS = 5  # twice as many for many documents, of which some are scored
ENOUGH = 10_000  # documents to fit a calibration on
MOST_VALUES = 1 << 24  # documents × nodes of a calibration
UNIT = 1e-3  # tolerance of unit length
FEWEST = 1000  # documents of a calibration, however many nodes there are


def cross_fit(
    learner: Any, X: csr_array, Y: csr_array, folds: list[Ints], weights: NDArray[np.float64] | None = None
) -> Iterator[tuple[Ints, tuple[Any, ...], csr_array]]:
    """By fold: held-out documents, X, Y and weights of the others, X of those held out; one class cannot be trained on."""
    with stage("fitting on held-out documents", len(folds)) as step:
        for held_out in folds:
            others = np.setdiff1d(np.arange(X.shape[0]), held_out)
            if len(held_out) and len(np.unique(most_specific(Y[others], learner.taxonomy_).indices)) > 1:
                train = (X[others], Y[others]) if weights is None else (X[others], Y[others], weights[others])
                yield held_out, train, as_new(X, held_out, others)
            step.advance()


def as_new(X: csr_array, held_out: Ints, others: Ints) -> csr_array:
    """Held-out documents as if they were new: without features that no other document has, normalized again."""
    rows = csr_array(X[held_out], copy=True)
    is_known = np.bincount(X[others].indices, minlength=X.shape[1]) > 0
    if is_known[rows.indices].all():
        return rows
    old_lengths = sparse_norm(rows.astype(np.float64), axis=1)
    rows.data[~is_known[rows.indices]] = 0
    rows.eliminate_zeros()
    if np.allclose(old_lengths[old_lengths > 0], 1, atol=UNIT):
        lengths = sparse_norm(rows.astype(np.float64), axis=1)
        rows.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(rows.indptr)).astype(rows.dtype)
    return rows


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


def unfitted_copy(learner: Any) -> Any:
    """An unfitted learner with the same parameters, and with those that the learner selected by itself."""
    return clone(learner).set_params(**learner.selected_params())


# ---- decision rules ---------------------------------------------------------------------------------------------------

_BY_NODE = (decisions.Best, decisions.Sign, decisions.TopDown, decisions.Descend, decisions.MinimizeHLoss)
_FITTED = (decisions.IsotonicSmooth, decisions.GCut, decisions.SCut, decisions.RCut, decisions.PCut, decisions.PredictedCut)
RULES: dict[str, Any] = {rule.kind: rule for rule in (*_BY_NODE, *_FITTED)}
RULE_FOLDS = 3
FEWEST_PREDICTABLE = 0.25  # fraction of held-out documents whose labels others have, too, to fit a rule on these alone
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
            has = f"it has {', '.join(allowed) or 'none'}.{suggest(given, allowed)}"
            raise InputError(f"{given!r} is not a parameter of rule {name!r}; {has}")
    rule: DecisionRule = RULES[name](**settings)
    rule.check()
    return rule


def values_for(taker: Any, learner: Any, scores: NDArray[np.float32]) -> Any:
    """A learner's scores converted to the values that a rule or a calibration takes."""
    return learner.convert_scores(scores, taker.takes)


def decide_by(rule: DecisionRule, values: Any, taxonomy: Taxonomy) -> tuple[csr_array, NDArray[np.floating[Any]] | None]:
    """Labels, and the refined values of a rule that refines them."""
    if not isinstance(rule, RefiningRule):
        return rule.decide(values, taxonomy), None
    refined = rule.refine(values, taxonomy)
    return rule.cut(refined, values, taxonomy), refined


def refuse_misfit(rule: DecisionRule, taxonomy: Taxonomy) -> None:
    """Refuse a rule that cannot decide over a taxonomy, by trying it on a document without scores, if it is fitted."""
    check_kind(rule, DecisionRule, "decision", "a rule of ramify.decisions, such as Best()")
    rule.notes(taxonomy)
    if not isinstance(rule, FittableRule) or rule.is_fitted:
        rule.decide(np.full((1, len(taxonomy)), np.nan), taxonomy)


def fit_rule(
    rule: FittableRule, learner: Any, X: csr_array, Y: csr_array, weights: NDArray[np.float64] | None = None
) -> FittableRule:
    """Fit a rule on out-of-fold values: each document is scored by a learner that was not trained on it.

    A document with a label that no other document has cannot be predicted right, and so says nothing of the rule.
    """
    n_docs, n_nodes = Y.shape
    if learner.held_out_ is not None:  # from its calibration
        documents, scores = learner.held_out_
        values = values_for(rule, learner, scores)
    else:
        used = np.random.default_rng(0).permutation(n_docs)[: max(RULE_FOLDS, MAX_SCORES // max(1, n_nodes))]
        documents, parts = np.zeros(0, dtype=np.int64), list[Any]()
        folds = [np.sort(used[k::RULE_FOLDS]) for k in range(RULE_FOLDS)]
        for held_out, train, new in cross_fit(learner, X, Y, folds, weights):
            fitted = unfitted_copy(learner).fit(*train)
            documents, parts = np.append(documents, held_out), [*parts, values_for(rule, fitted, fitted.scores(new))]
        scores = values = np.concatenate(parts or [np.zeros((0, n_nodes))])
    all_own = most_specific(Y, learner.taxonomy_)
    own, has_one = csr_array(all_own[documents]), np.bincount(all_own.indices, minlength=n_nodes) == 1
    predictable = np.flatnonzero(own.astype(np.int64) @ has_one.astype(np.int64) == 0)
    own = csr_array(own[predictable]).tocoo()
    is_enough = len(predictable) >= FEWEST_PREDICTABLE * len(documents)
    if is_enough and np.isfinite(scores[predictable][own.row, own.col]).any():
        return rule.fit(values[predictable], Y[documents[predictable]], learner.taxonomy_)
    return rule.fit(values_for(rule, learner, learner.scores(X)), Y, learner.taxonomy_)  # too few documents to hold any out


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
        n, rows = len(offsets) - 1, (("features", offsets, features, n_features), ("labels", label_offsets, labels, n_nodes))
        for what, ends, columns, most in rows:
            if n < 0 or not are_indices(columns, most) or not are_offsets(ends, n, len(columns)):
                raise ModelError(f"the {what} of the training data do not fit the model; train the model again.")
        X = csr_array((values, features, offsets), shape=(n, n_features))
        return cls(X, csr_array((np.ones(len(labels), dtype=bool), labels, label_offsets), shape=(n, n_nodes)))


def _renumbered(matrix: csr_array, columns: NDArray[np.int64], n_columns: int) -> csr_array:
    made = csr_array((matrix.data, columns[matrix.indices], matrix.indptr), shape=(matrix.shape[0], n_columns))
    made.sort_indices()
    return made


def refuse_weights(learner: Any, weights: NDArray[np.float64] | None) -> None:
    """Refuse to keep training data for a learner that could not be trained on it again."""
    name = "class_weight" if learner.get_params().get("class_weight") is not None else None
    name = "sample_weight" if weights is not None else name
    if name is not None:
        found = f"a model with {name} cannot keep its training data, since model files do not hold the weights"
        raise InputError(f"{found}; leave one out.")


# ---- calibration ----------------------------------------------------------------------------------------------------------

FEWEST_HELD_OUT = 100  # documents to fit a calibration on
MOST_CALIBRATED = 2_000_000  # documents × nodes that a calibration is fitted on, where held-out scores cost little
MOST_NODES = 50_000  # beyond that, documents × nodes do not fit into memory


def calibrate_learner(
    learner: Any, X: csr_array, Y: csr_array, has_guarantee: bool = True, weights: NDArray[np.float64] | None = None
) -> tuple[Any, Guarantee | None]:
    """A calibration fitted on out-of-fold scores, and an estimated guarantee if wanted; None, None where it is impossible."""
    n_docs, n_nodes = Y.shape
    if n_docs < FEWEST_HELD_OUT or n_nodes > MOST_NODES or learner.scores_candidates_only:
        return None, None
    taxonomy, multi_label = learner.taxonomy_, not is_single_label(Y, learner.taxonomy_)
    kind = calibration_class(multi_label)
    if learner.held_out_ is not None:
        documents, scores = learner.held_out_
        if len(documents) * n_nodes > MOST_CALIBRATED:
            some = np.random.default_rng(0).permutation(len(documents))[: max(FEWEST, MOST_CALIBRATED // n_nodes)]
            documents, scores = documents[some], scores[some]
        found = [values_for(kind, learner, scores)]
    else:
        documents, found = np.zeros(0, dtype=np.int64), []
        for held_out, train, new in cross_fit(learner, X, Y, few_folds(n_docs, n_nodes), weights):
            fitted = unfitted_copy(learner).fit(*train)
            documents, found = np.append(documents, held_out), [*found, values_for(kind, fitted, fitted.scores(new))]
    if not len(documents):
        return None, None
    values = LogPotentials.concatenate(found) if isinstance(found[0], LogPotentials) else np.concatenate(found)
    with stage("calibrating", 2) as step:
        calibration = kind.fit(values, Y[documents], taxonomy)
        step.advance()
        if not has_guarantee:
            return calibration, None
        P = calibration.apply(values, taxonomy).astype(np.float32)
        predictor = fit_conformal(P, Y[documents], taxonomy, multi_label=multi_label)
    return calibration, Guarantee(predictor, len(documents), is_proven=False)
