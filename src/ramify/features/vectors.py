"""Documents that are vectors already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from ramify.errors import ModelError
from ramify.features.base import BaseVectorizer, State, check_documents, checked_columns


class Vectors(BaseVectorizer):
    """Pass a document matrix through as CSR float32; checks the number of features."""

    kind: ClassVar[str] = "vectors"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Store the number of features."""
        self.fit_count(X)
        return self

    def fit_count(self, X: Any) -> csr_array:
        """Store the number of features, and return the matrix."""
        self.selected_columns_ = None
        return check_documents(self, X, reset=True, allow_nan=True)

    def weight_counts(self, X: csr_array) -> csr_array:
        """The matrix as it is: features are weighted already."""
        return X

    def transform(self, X: Any) -> csr_array:
        """The selected features of a matrix, checked."""
        check_is_fitted(self)
        checked = check_documents(self, X, reset=False, allow_nan=True)
        return checked if self.selected_columns_ is None else csr_array(checked[:, self.selected_columns_])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the features in a data frame, or their numbers."""
        columns = range(self.n_features_in_) if self.selected_columns_ is None else self.selected_columns_.tolist()
        return np.asarray(self._names_of(columns), dtype=object)

    def _names_of(self, columns: Iterable[int]) -> list[str]:
        names = vars(self).get("feature_names_in_")
        return [f"feature {column}" if names is None else str(names[column]) for column in columns]

    def term_names(self, X: Any, columns: NDArray[np.int64]) -> list[str]:
        """The names of some columns; those of all might fill the memory."""
        numbers = columns if self.selected_columns_ is None else self.selected_columns_[columns]
        return self._names_of(numbers.tolist())

    @property
    def n_features_out(self) -> int:
        """The number of selected features."""
        return int(self.n_features_in_) if self.selected_columns_ is None else len(self.selected_columns_)

    def state(self) -> State:
        """Plain values and arrays from which :meth:`from_state` makes an equal object."""
        arrays = {} if self.selected_columns_ is None else {"columns": self.selected_columns_}
        names = vars(self).get("feature_names_in_")
        named = {} if names is None else {"names": [str(name) for name in names]}
        return {"features": int(self.n_features_in_), **named}, arrays

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Vectors:
        """Make one from its state, after checking it."""
        made = cls()
        made.n_features_in_ = values["features"]
        if type(made.n_features_in_) is not int or not 1 <= made.n_features_in_ < 1 << 31:
            raise ModelError(f"the number of features is {str(values['features'])[:80]}; train the model again.")
        if (names := values.get("names")) is not None:
            if not isinstance(names, list) or len(names) != made.n_features_in_ or not all(isinstance(n, str) for n in names):
                raise ModelError("the names of the features do not fit their number; train the model again.")
            made.feature_names_in_ = np.asarray(names, dtype=object)
        made.selected_columns_ = checked_columns(arrays.get("columns"), made.n_features_in_)
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return "n_features_in_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
