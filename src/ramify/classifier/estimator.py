"""What scikit-learn asks of an estimator: parameters by name, classes, features, metadata and tags."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metadata_routing import UNUSED

from ramify.classifier.class_columns import class_values
from ramify.classifier.parameters import full_name, given_params, known_params, set_by_name
from ramify.errors import InputError
from ramify.taxonomy import Taxonomy


class ScikitClassifier(ClassifierMixin, BaseEstimator):
    """The scikit-learn side of a text classifier: its parameters include those of the parts of its system."""

    # scikit-learn calls them X and y, which are no metadata
    __metadata_request__fit = {"texts": UNUSED, "labels": UNUSED}  # noqa: RUF012
    __metadata_request__partial_fit = {"texts": UNUSED, "labels": UNUSED, "taxonomy": UNUSED}  # noqa: RUF012
    __metadata_request__score = {"texts": UNUSED, "labels": UNUSED}  # noqa: RUF012
    __metadata_request__predict = {"texts": UNUSED}  # noqa: RUF012
    __metadata_request__predict_proba = {"texts": UNUSED}  # noqa: RUF012
    __metadata_request__decision_function = {"texts": UNUSED}  # noqa: RUF012

    taxonomy_: Taxonomy
    vectorizer_: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; deep: also those of the system's parts, as ``learner__C``."""
        found: dict[str, Any] = super().get_params(deep)
        if not deep:
            return found
        for part, values in known_params(self).items():
            found |= {f"{part}__{name}": value for name, value in values.items() if f"{part}__{name}" not in found}
        try:
            chosen = given_params(self)
        except InputError:
            return found  # `fit` says what is wrong
        return found | {f"{part}__{name}": value for part, values in chosen.items() for name, value in values.items()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of parts: ``C=0.3`` or ``learner__C=0.3``."""
        own = {name: value for name, value in params.items() if name in self._get_param_names()}
        super().set_params(**own)  # first, since the system decides which parameters there are
        for name, value in ((name, value) for name, value in params.items() if name not in own):
            if not set_by_name(self, name, value):
                super().set_params(**{full_name(self, name): value})
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """What the columns of scores and probabilities stand for."""
        check_has(self, "taxonomy_", "classes_")
        return class_values(self)

    @property
    def n_features_in_(self) -> int:
        """The number of columns, where documents are vectors."""
        check_has(self, "vectorizer_", "n_features_in_")
        return int(self.vectorizer_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The names of the columns, where documents are rows of a data frame."""
        check_has(self, "vectorizer_", "feature_names_in_")
        return np.asarray(self.vectorizer_.feature_names_in_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "taxonomy_" in self.__dict__


def check_has(classifier: ScikitClassifier, attribute: str, name: str) -> None:
    """Raise an AttributeError, as Python does, for what only a fitted classifier has."""
    if attribute not in classifier.__dict__:
        raise AttributeError(f"TextClassifier has {name} only after fit.")
