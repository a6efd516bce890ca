"""Documents that come as vectors already: a vectorizer that passes them on."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ramify.errors import InputError, ModelError, first_sentence


class Vectors(TransformerMixin, BaseEstimator):
    """Take a document matrix as it is, as CSR float32; remembers and checks the number of features."""

    kind: ClassVar[str] = "vectors"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Remember the number of features."""
        check_documents(self, X, reset=True, allow_nan=True)
        return self

    def transform(self, X: Any) -> csr_array:
        """The same matrix, checked."""
        check_is_fitted(self)
        return check_documents(self, X, reset=False, allow_nan=True)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The numbers of the features, as names."""
        return np.asarray([f"feature {column}" for column in range(self.n_features_in_)], dtype=object)

    @property
    def n_features_out(self) -> int:
        """The number of features."""
        return int(self.n_features_in_)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same."""
        return {"features": int(self.n_features_in_)}, {}

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Vectors:
        """Make one from its state."""
        made = cls()
        made.n_features_in_ = values["features"]
        if not isinstance(made.n_features_in_, int) or made.n_features_in_ < 1:
            raise ModelError(f"the number of features is {values['features']!r}; train the model again.")
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def check_documents(estimator: Any, X: Any, reset: bool, allow_nan: bool = False) -> csr_array:
    """A document matrix as CSR float32, as scikit-learn checks it, with its complaint as an error of ours."""
    finite = "allow-nan" if allow_nan else True
    options = {"accept_sparse": "csr", "dtype": np.float32, "ensure_min_samples": int(reset), "ensure_all_finite": finite}
    try:
        return csr_array(validate_data(estimator, X, reset=reset, **options))
    except ValueError as error:
        advice = " Fill in missing values first." if "NaN" in str(error) else ""
        raise InputError(first_sentence(error) + advice) from None
