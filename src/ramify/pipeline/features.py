"""From texts to the matrix that a learner learns from, with the words chosen that tell most."""

from __future__ import annotations

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
    if "n_words" not in learner.get_params():
        raise InputError(
            "words of their own at every node ('glocal') are for learners that can use them: pachinko-nb; "
            "give scope 'flat' or 'hierarchical'."
        )
    learner.set_params(n_words=selector.n_features, measure=selector.measure, join=selector.join)
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
