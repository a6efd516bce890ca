"""Any transformer of scikit-learn as a vectorizer."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array

from ramify.errors import InputError, ModelError, first_sentence
from ramify.features.base import BaseVectorizer, State, check_fitted, checked_columns
from ramify.persistence.skops_parts import dump_estimator, load_estimator


class Transformer(BaseVectorizer):
    """Features made by a transformer of scikit-learn or of another library that follows it; saving needs ``ramify[skops]``.

    estimator: turns documents into a matrix, sparse or dense; a pipeline may be one.

    ``estimator_``: the fitted one.

    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> Transformer(CountVectorizer()).fit_transform(["red fox", "red red"]).toarray()
    array([[1., 1.], [0., 2.]], dtype=float32)
    """

    kind: ClassVar[str] = "scikit-learn"
    estimator_: Any
    n_features_out_: int

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, documents: Any, y: Any = None) -> Self:
        """Fit the transformer."""
        self.fit_transform(documents, y)
        return self

    def fit_transform(self, documents: Any, y: Any = None) -> csr_array:
        """Fit and transform. y: one class per document, or a label matrix, whose distinct rows become classes."""
        estimator = clone(self.estimator)
        classes = _classes_of(y) if issparse(y) else y
        X = self._matrix(lambda: estimator.fit_transform(documents, classes))
        self.estimator_, self.n_features_out_, self.selected_columns_ = estimator, int(X.shape[1]), None
        return X

    def fit_count(self, documents: Any) -> csr_array:
        """Fit, and return the matrix."""
        return self.fit_transform(documents)

    def weight_counts(self, counts: csr_array) -> csr_array:
        """The matrix as it is: features are weighted already."""
        return counts

    def transform(self, documents: Any) -> csr_array:
        """The matrix of documents."""
        check_fitted(self, "estimator_")
        X = self._matrix(lambda: self.estimator_.transform(documents))
        return X if self.selected_columns_ is None else csr_array(X[:, self.selected_columns_])

    def _matrix(self, make: Any) -> csr_array:
        try:
            with config_context(transform_output="default"):
                X = make()
            return csr_array(check_array(X, accept_sparse="csr", dtype=np.float32, ensure_min_samples=0))
        except (ValueError, AttributeError) as error:
            name = type(self.estimator).__name__
            raise InputError(f"{name} made no features of the documents: {first_sentence(error)}") from None

    @property
    def n_features_out(self) -> int:
        """The number of columns in use."""
        return self.n_features_out_ if self.selected_columns_ is None else len(self.selected_columns_)

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the documents, where they are vectors."""
        return int(vars(self)["estimator_"].n_features_in_) if "estimator_" in vars(self) else self._missing("n_features_in_")

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The names of the columns of the documents, where they are rows of a data frame."""
        found = vars(self).get("estimator_")
        return np.asarray(found.feature_names_in_) if found is not None else self._missing("feature_names_in_")

    def _missing(self, name: str) -> Any:
        raise AttributeError(f"Transformer has {name} only after fit.")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns: those of the transformer, or numbers."""
        check_fitted(self, "estimator_")
        try:
            names = np.asarray(self.estimator_.get_feature_names_out(), dtype=object)
        except (AttributeError, ValueError, TypeError):  # not every transformer has names
            names = np.asarray([f"feature {column}" for column in range(self.n_features_out_)], dtype=object)
        return names if self.selected_columns_ is None else names[self.selected_columns_]

    def state(self) -> State:
        """Plain values and arrays from which :meth:`from_state` makes an equal object."""
        check_fitted(self, "estimator_")
        arrays: dict[str, NDArray[Any]] = {"estimator": dump_estimator(self.estimator_)}
        if self.selected_columns_ is not None:
            arrays["columns"] = self.selected_columns_
        return {"features": self.n_features_out_}, arrays

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Transformer:
        """Make one from its state, after checking it."""
        fitted, n_features = load_estimator(arrays["estimator"]), values["features"]
        if not isinstance(fitted, BaseEstimator) or not hasattr(fitted, "transform"):
            raise ModelError("the features are not made by a transformer; train the model again.")
        if type(n_features) is not int or not 1 <= n_features < 1 << 31:
            raise ModelError("the number of features is not one; train the model again.")
        made = cls(clone(fitted))
        made.estimator_, made.n_features_out_ = fitted, n_features
        made.selected_columns_ = checked_columns(arrays.get("columns"), n_features)
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.input_tags.allow_nan = False
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _classes_of(Y: csr_array) -> NDArray[np.int64]:
    """A number for each distinct label set.

    >>> _classes_of(csr_array([[1, 1], [1, 0], [1, 1]])).tolist()
    [0, 1, 0]
    """
    known: dict[bytes, int] = {}
    rows = [known.setdefault(np.sort(Y.indices[a:b]).tobytes(), len(known)) for a, b in pairwise(Y.indptr)]
    return np.asarray(rows, dtype=np.int64)
