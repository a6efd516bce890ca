"""From texts to the matrix that a learner learns from, with the words chosen that tell most."""

from __future__ import annotations

from copy import copy
from typing import Any

from scipy.sparse import csr_array
from sklearn.base import clone

from ramify.errors import InputError


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
    X = vectorizer.fit_count(texts) if hasattr(vectorizer, "fit_count") else vectorizer.fit_transform(texts)
    if X.shape[0] != Y.shape[0]:
        raise InputError(f"there are {X.shape[0]} texts but labels for {Y.shape[0]}; give one entry a text.")
    if not hasattr(vectorizer, "fit_count"):
        if selector is not None:
            raise InputError(f"terms cannot be chosen after {type(vectorizer).__name__}; use Vectorizer or Vectors.")
        return X
    if selector is not None:
        columns = selector.fit(X, Y).columns_
        vectorizer.keep(columns)
        X = csr_array(X[:, columns])
    return vectorizer.weigh(X)


class Narrow:
    """The parts of a classifier over the words that its learner asks for, where it asks for some only; made when needed."""

    def __init__(self) -> None:
        self._made: tuple[Any, Any, Any] = (None, None, None)

    def parts(self, vectorizer: Any, learner: Any) -> tuple[Any, Any]:
        """A vectorizer and a learner that give the same scores."""
        if not (hasattr(learner, "narrowed") and hasattr(vectorizer, "keep")):
            return vectorizer, learner
        columns, narrow = learner.narrowed()
        if not len(columns):
            return vectorizer, learner
        of_vectorizer, of_learner, kept = self._made  # read once, since other threads may be here, too
        if of_vectorizer is not vectorizer or of_learner is not narrow:
            kept = copy(vectorizer)
            kept.keep(columns)
            self._made = vectorizer, narrow, kept
        if "n_jobs" in vectorizer.get_params():
            kept.n_jobs = vectorizer.n_jobs
        return kept, narrow
