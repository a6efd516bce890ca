"""How many labels documents have: on this depends which rule decides, and how probabilities are calibrated."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.base import clone

from ramify.calibration import LogPotentials, calibration_class
from ramify.classifier.guarantees import Guarantee, Ints
from ramify.decisions import fit_conformal
from ramify.errors import InputError, ModelError
from ramify.features.base import BaseVectorizer
from ramify.learners.linear.weights import are_finite
from ramify.parallel import stage
from ramify.taxonomy import Taxonomy, most_specific

MULTI_LABEL_SHARE = 0.05  # the share of documents with several labels from which answers may have several, too


def multi_label_share(Y: csr_array, taxonomy: Taxonomy) -> float:
    """The share of documents that have more than one most specific label."""
    return float(np.mean(np.diff(most_specific(Y, taxonomy).indptr) > 1))


def is_single_label(Y: csr_array, taxonomy: Taxonomy) -> bool:
    """Whether nearly all documents have just one most specific label."""
    return float(np.mean(np.diff(most_specific(Y, taxonomy).indptr) == 1)) > 1 - MULTI_LABEL_SHARE


# --------------------------------------------------------------------------------------------------------------
# From texts to the matrix that a learner learns from, with the words chosen that tell most.


def selector_for(selector: Any, learner: Any) -> Any:
    """What chooses words before learning; None where nothing does, or the learner itself does so at each node."""
    if selector is None:
        return None
    if selector.scope != "glocal":
        return clone(selector).set_params(taxonomy=learner.taxonomy)
    name = next((name for name in ("n_words", "n_terms") if name in learner.get_params()), None)
    if name is None:
        raise InputError(
            "words of their own at every node ('glocal') are for learners that can use them: pachinko-nb and treeboost-mh; "
            "give scope 'flat' or 'hierarchical'."
        )
    learner.set_params(**{name: selector.n_features}, measure=selector.measure, join=selector.join)
    return None


def fit_features(vectorizer: Any, texts: Any, selector: Any, Y: csr_array) -> csr_array:
    """Fit a vectorizer, keep the terms that the selector chooses, and give the matrix of the texts."""
    is_ours = isinstance(vectorizer, BaseVectorizer)
    X = vectorizer.fit_count(texts) if is_ours else vectorizer.fit_transform(texts)
    if X.shape[0] != Y.shape[0]:
        raise InputError(f"there are {X.shape[0]} texts but labels for {Y.shape[0]}; give one entry a text.")
    if not is_ours:
        if selector is not None:
            raise InputError(f"terms cannot be chosen after {type(vectorizer).__name__}; use Vectorizer or Vectors.")
        return X
    if selector is not None:
        columns = selector.fit(X, Y).columns_
        vectorizer.select_columns(columns)
        X = csr_array(X[:, columns])
    return vectorizer.weight_counts(X)


class Narrow:
    """The parts of a classifier over the words that its learner asks for, where it asks for some only; made when needed."""

    def __init__(self) -> None:
        self._made: tuple[Any, Any, Any] = (None, None, None)

    def parts(self, vectorizer: Any, learner: Any) -> tuple[Any, Any]:
        """A vectorizer and a learner that give the same scores."""
        found = learner.with_used_features() if isinstance(vectorizer, BaseVectorizer) else None
        if found is None or not len(found[0]):
            return vectorizer, learner
        columns, narrow = found
        of_vectorizer, of_learner, kept = self._made  # read once, since other threads may be here, too
        if of_vectorizer is not vectorizer or of_learner is not narrow:
            kept = copy(vectorizer)
            kept.select_columns(columns)
            self._made = vectorizer, narrow, kept
        if "n_jobs" in vectorizer.get_params():
            kept.n_jobs = vectorizer.n_jobs
        return kept, narrow


# --------------------------------------------------------------------------------------------------------------
# Values of documents by learners of the same kind that have not seen them: what rules and calibrations are learnt from.
#
# Documents are dealt into folds, and each fold is scored by a learner that learnt from the others. Where there are very many
# documents, some folds are enough; where there are very many nodes, a few documents must do.


FOLDS = 5  # or twice as many, of which at most so many are scored
ENOUGH = 10_000  # documents from which calibrations are learnt
MOST_VALUES = 1 << 24  # documents × nodes for calibrations
UNIT = 1e-3  # how far from 1 the lengths of documents may be that are taken to be of length 1
FEWEST = 1000  # documents, however many nodes there are

Give = Callable[[Any, NDArray[np.float32]], Any]  # what is wanted of a learner and its scores


def cross_fit(learner: Any, X: csr_array, Y: csr_array, folds: list[Ints], give: Give) -> tuple[Ints, list[Any]]:
    """Documents, and what is wanted of each fold of them; folds without which nothing could be learnt are left out."""
    documents, found = [np.zeros(0, dtype=np.int64)], []
    with stage("learning from held-out documents", len(folds)) as step:
        for held_out in folds:
            seen = np.setdiff1d(np.arange(X.shape[0]), held_out)
            if len(held_out) and can_learn(Y[seen], learner):
                fitted = alike(learner).fit(X[seen], Y[seen])
                found.append(give(fitted, fitted.scores(as_new(X, held_out, seen))))
                documents.append(held_out)
            step.advance()
    return np.concatenate(documents), found


def as_new(X: csr_array, held_out: Ints, seen: Ints) -> csr_array:
    """Documents as they would come if they were new: without the features that no document seen has, and again of length 1."""
    rows = csr_array(X[held_out], copy=True)
    is_known = np.bincount(X[seen].indices, minlength=X.shape[1]) > 0
    if is_known[rows.indices].all():
        return rows
    before = _lengths(rows)
    rows.data[~is_known[rows.indices]] = 0
    rows.eliminate_zeros()
    if np.allclose(before[before > 0], 1, atol=UNIT):
        lengths = _lengths(rows)
        rows.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(rows.indptr)).astype(rows.dtype)
    return rows


def _lengths(rows: csr_array) -> NDArray[np.float64]:
    squares = csr_array((rows.data.astype(np.float64) ** 2, rows.indices, rows.indptr), shape=rows.shape)
    lengths: NDArray[np.float64] = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    return lengths


def few_folds(n_documents: int, n_nodes: int) -> list[Ints]:
    """Folds for a calibration: as many as have documents enough, and small where documents are many.

    A learner that has seen more is more like the one that learns from all of them.

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


def can_learn(Y: csr_array, learner: Any) -> bool:
    """Whether documents of at least two classes are there."""
    own: NDArray[Any] = most_specific(Y, learner.taxonomy_).indices
    return len(np.unique(own)) > 1


def alike(learner: Any) -> Any:
    """A new learner with the parameters of one, and with those that it chose for itself."""
    return clone(learner).set_params(**learner.selected_params())


# --------------------------------------------------------------------------------------------------------------
# The documents that a model learnt from, kept with it so that it can be updated.


NAMES = ("offsets", "features", "values", "label_offsets", "labels")
TYPES = ("int64", "int32", "float32", "int64", "int32")


@dataclass(frozen=True, slots=True)
class TrainingData:
    """Documents as the learner saw them.

    X: documents × features. own: documents × nodes, their most specific labels.
    """

    X: csr_array
    own: csr_array

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def followed_by(self, X: csr_array, own: csr_array, columns: NDArray[np.int64] | None, nodes: NDArray[np.int64]) -> Self:
        """With more documents after them. columns, nodes: the numbers that features and nodes so far have among theirs."""
        mine = self.X if columns is None else _renumbered(self.X, columns, X.shape[1])
        labels = _renumbered(self.own, nodes, own.shape[1])
        return type(self)(csr_array(vstack([mine, X], format="csr")), csr_array(vstack([labels, own], format="csr")))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps."""
        parts = (self.X.indptr, self.X.indices, self.X.data, self.own.indptr, self.own.indices)
        return {name: part.astype(kind, copy=False) for name, kind, part in zip(NAMES, TYPES, parts, strict=True)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], n_features: int, n_nodes: int) -> Self:
        """Make them of what was kept, after checking types, shapes and ranges."""
        offsets, features, values, label_offsets, labels = (arrays[name] for name in NAMES)
        typed = all(arrays[name].dtype.name == kind and arrays[name].ndim == 1 for name, kind in zip(NAMES, TYPES, strict=True))
        if not typed or len(offsets) != len(label_offsets) or len(features) != len(values) or not are_finite(values):
            raise ModelError("the documents that the model keeps are not such as it writes; train the model again.")
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
        raise ModelError(f"the {what} of the documents that the model keeps do not fit it; train the model again.")


def refuse_unkeepable(learner: Any) -> None:
    """Refuse to keep documents for a learner that could not learn the same from them once more."""
    if learner.get_params().get("class_weight") is not None:
        raise InputError("a model with class_weight cannot keep documents, since files do not hold the weights; leave one out.")


# --------------------------------------------------------------------------------------------------------------
# Learning what probabilities mean, from documents that the learner has not seen.


FEWEST_HELD_OUT = 100  # documents from which on a calibration is learnt
MOST_NODES = 50_000  # beyond them, documents × nodes of enough documents have no room


def calibrate_learner(
    learner: Any, X: csr_array, Y: csr_array, one_each: bool, promises: bool = True
) -> tuple[Any, Guarantee | None]:
    """A calibration of a learner by cross-fitted scores, and what can be promised, if that is wanted.

    There is neither where documents are too few, or nodes too many. one_each: whether documents have one label each.
    """
    if Y.shape[0] < FEWEST_HELD_OUT or Y.shape[1] > MOST_NODES or learner.scores_candidates_only:
        return None, None
    taxonomy = learner.taxonomy_
    kind = calibration_class(taxonomy, multi_label=not one_each)
    documents, values = _unseen(learner, X, Y, kind.takes)
    if not len(documents):
        return None, None
    with stage("calibrating", 2) as step:
        calibration = kind.fit(values, Y[documents], taxonomy)
        step.advance()
        if not promises:
            return calibration, None
        P = calibration.apply(values, taxonomy).astype(np.float32)
        promise = fit_conformal(P, Y[documents], taxonomy, multi_label=not one_each)
    return calibration, Guarantee(promise, len(documents), is_proven=False)


def _unseen(learner: Any, X: csr_array, Y: csr_array, takes: str) -> tuple[Ints, Any]:
    """Documents, and what learners say that have not seen them."""
    if learner.held_out_ is not None:
        documents, scores = learner.held_out_
        return documents, learner.convert_scores(scores, takes)
    documents, found = cross_fit(
        learner, X, Y, few_folds(*Y.shape), lambda fitted, scores: fitted.convert_scores(scores, takes)
    )
    if not found:
        return documents, None
    return documents, LogPotentials.concatenate(found) if isinstance(found[0], LogPotentials) else np.concatenate(found)
