"""Documents that come as vectors already: a vectorizer that passes them on."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ramify.errors import InputError, ModelError, first_sentence
from ramify.persistence import is_increasing


class Vectors(TransformerMixin, BaseEstimator):
    """Take a document matrix as it is, as CSR float32; remembers and checks the number of features.

    ``selected_columns_``: the features that are passed on, None for all.
    """

    kind: ClassVar[str] = "vectors"
    selected_columns_: NDArray[np.int64] | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the number of features."""
        self.fit_count(X)
        return self

    def fit_count(self, X: Any) -> csr_array:
        """Remember the number of features, and give the matrix."""
        self.selected_columns_ = None
        return check_documents(self, X, reset=True, allow_nan=True)

    def select_columns(self, columns: NDArray[np.int64]) -> None:
        """Pass on some of the features only, rising."""
        self.selected_columns_ = columns if self.selected_columns_ is None else self.selected_columns_[columns]

    def weight_counts(self, X: csr_array) -> csr_array:
        """Features have their weights already."""
        return X

    def transform(self, X: Any) -> csr_array:
        """The same matrix, checked; only the features that are passed on."""
        check_is_fitted(self)
        checked = check_documents(self, X, reset=False, allow_nan=True)
        return checked if self.selected_columns_ is None else csr_array(checked[:, self.selected_columns_])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The numbers of the features, as names."""
        columns = range(self.n_features_in_) if self.selected_columns_ is None else self.selected_columns_.tolist()
        return np.asarray([f"feature {column}" for column in columns], dtype=object)

    @property
    def n_features_out(self) -> int:
        """The number of features that are passed on."""
        return int(self.n_features_in_) if self.selected_columns_ is None else len(self.selected_columns_)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same."""
        arrays = {} if self.selected_columns_ is None else {"columns": self.selected_columns_}
        return {"features": int(self.n_features_in_)}, arrays

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Vectors:
        """Make one from its state."""
        made = cls()
        made.n_features_in_ = values["features"]
        if not isinstance(made.n_features_in_, int) or made.n_features_in_ < 1:
            raise ModelError(f"the number of features is {values['features']!r}; train the model again.")
        made.selected_columns_ = checked_columns(arrays.get("columns"), made.n_features_in_)
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def checked_columns(columns: NDArray[Any] | None, n_columns: int) -> NDArray[np.int64] | None:
    """Columns of a model file that are passed on, rising and within bounds; None for all."""
    if columns is None:
        return None
    fits = columns.dtype == np.int64 and columns.ndim == 1 and len(columns) > 0
    if not fits or columns[0] < 0 or columns[-1] >= n_columns or not is_increasing(columns, strictly=True):
        raise ModelError("the selected columns do not fit the features; train the model again.")
    return columns


def check_documents(estimator: Any, X: Any, reset: bool, allow_nan: bool = False) -> csr_array:
    """A document matrix as CSR float32, as scikit-learn checks it, with its complaint as an error of ours."""
    if not reset and not allow_nan and _is_ready(X, getattr(estimator, "n_features_in_", -1)):
        return X
    finite = "allow-nan" if allow_nan else True
    options = {"accept_sparse": "csr", "dtype": np.float32, "ensure_min_samples": int(reset), "ensure_all_finite": finite}
    try:
        return csr_array(validate_data(estimator, X, reset=reset, **options))
    except ValueError as error:
        advice = " Fill in missing values first." if "NaN" in str(error) else ""
        raise InputError(first_sentence(error) + advice) from None


def _is_ready(X: Any, width: int) -> bool:
    """Whether a matrix is what checking would make of it, as rows of our vectorizers are; asking costs less than checking."""
    is_ours = type(X) is csr_array and X.dtype == np.float32 and X.shape[1] == width
    return is_ours and bool(np.isfinite(X.data).all())
