"""What vectorizers have in common, and checks of document matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from ramify.errors import InputError, ModelError, first_sentence
from ramify.persistence import are_indices, is_increasing

Ints = NDArray[np.int64]
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]


class BaseVectorizer(TransformerMixin, BaseEstimator, ABC):
    """A vectorizer that a classifier can save, and whose columns can be selected.

    ``selected_columns_``: the columns in use, increasing; None for all.
    """

    kind: ClassVar[str]  # its name in model files
    selected_columns_: Ints | None = None

    def __init_subclass__(cls, **settings: Any) -> None:
        # no set_output, as scikit-learn's TfidfVectorizer has none: the matrix is sparse, whatever is configured for all
        super().__init_subclass__(**{**settings, "auto_wrap_output_keys": None})

    @abstractmethod
    def fit_count(self, documents: Any) -> csr_array:
        """Fit, and return the matrix before weighting."""

    @abstractmethod
    def weight_counts(self, counts: csr_array) -> csr_array:
        """Apply the weighting to a matrix of :meth:`fit_count`, which may be changed in place."""

    def select_columns(self, columns: Ints) -> None:
        """Use only some of the columns, increasing, from now on."""
        self.selected_columns_ = columns if self.selected_columns_ is None else self.selected_columns_[columns]

    @abstractmethod
    def transform(self, documents: Any) -> csr_array:
        """The weighted matrix of documents."""

    @property
    @abstractmethod
    def n_features_out(self) -> int:
        """The number of columns in use."""

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns in use."""

    def term_names(self, document: Any, columns: Ints) -> list[str]:
        """The names of columns that a document has."""
        return [str(name) for name in self.get_feature_names_out()[columns]]

    @property
    def can_add_terms(self) -> bool:
        """Whether :meth:`add_terms` works."""
        return False

    def add_terms(self, documents: Any) -> Ints:
        """Add the terms of more documents; return the new columns of the old terms."""
        raise InputError("only a vectorizer of plain counts that left out no term can add terms.")

    @abstractmethod
    def state(self) -> State:
        """Plain values and arrays from which :meth:`from_state` makes an equal vectorizer."""

    @classmethod
    @abstractmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> BaseVectorizer:
        """Make a vectorizer from its state, after checking it."""


def checked_columns(columns: NDArray[Any] | None, n_columns: int) -> Ints | None:
    """The selected columns of a model file, checked; None for all."""
    if columns is None:
        return None
    fits = columns.dtype == np.int64 and are_indices(columns, n_columns) and len(columns) > 0
    if not fits or not is_increasing(columns, strictly=True):
        raise ModelError("the selected columns do not fit the features; train the model again.")
    return columns


def check_fitted(estimator: Any, attribute: str = "taxonomy_") -> None:
    """Raise scikit-learn's NotFittedError where `fit` has not set the attribute yet; quicker than scikit-learn's check."""
    if attribute not in vars(estimator):
        raise NotFittedError(f"this {type(estimator).__name__} is not fitted yet; call 'fit' first.")


def check_documents(estimator: Any, X: Any, reset: bool, allow_nan: bool = False) -> csr_array:
    """A document matrix as CSR float32, checked as scikit-learn does; its error becomes an InputError."""
    is_ready = not reset and not allow_nan and type(X) is csr_array and X.dtype == np.float32
    if is_ready and X.shape[1] == estimator.n_features_in_ and np.isfinite(X.data).all():
        return X  # as Ramify's vectorizers make it; quicker than scikit-learn's check
    finite = "allow-nan" if allow_nan else True
    options = {"accept_sparse": "csr", "dtype": np.float32, "ensure_min_samples": int(reset), "ensure_all_finite": finite}
    try:
        return csr_array(validate_data(estimator, X, reset=reset, **options))
    except ValueError as error:
        raise InputError(first_sentence(error) + _advice(estimator, str(error))) from None


def _advice(estimator: Any, problem: str) -> str:
    """What to do about a matrix that scikit-learn refuses."""
    if "NaN" in problem:
        return " Fill in missing values first."
    if "feature names should match" in problem:
        names = ", ".join(map(repr, estimator.feature_names_in_[:5].tolist()))
        return f" Give the columns of training, in the same order: {names}{' …' if estimator.n_features_in_ > 5 else ''}."
    return " Give the columns of training, in the same order." if "is expecting" in problem else ""
