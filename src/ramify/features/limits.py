"""Which terms are frequent enough, and not too frequent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.errors import InputError


@dataclass(frozen=True, slots=True)
class Limits:
    """fewest, most: documents that a term must and may be in. at_most: how many terms are kept, None for all."""

    fewest: float
    most: float
    at_most: int | None


def find_limits(min_df: Any, max_df: Any, max_features: Any, n_texts: int) -> Limits:
    """Settings as numbers of documents; a float is a share of the texts."""
    fewest, most = _documents("min_df", min_df, n_texts), _documents("max_df", max_df, n_texts)
    if max_features is not None and (not isinstance(max_features, (int, np.integer)) or max_features < 1):
        raise InputError(f"max_features is {max_features!r}; give a whole number of 1 or more, or None.")
    return Limits(fewest, most, None if max_features is None else int(max_features))


def are_none(min_df: Any, max_df: Any, max_features: Any) -> bool:
    """Whether settings leave out nothing; a whole number 1 as max_df is one document, 1.0 are all."""
    return find_limits(min_df, max_df, max_features, 2) == Limits(1.0, 2.0, None)


def keep_within(limits: Limits, documents: NDArray[Any], occurrences: NDArray[Any]) -> NDArray[np.int64]:
    """The terms within limits, rising, by the documents that each is in and its occurrences.

    Which of equally frequent terms are kept at the border is what scikit-learn keeps.
    """
    kept = np.flatnonzero((documents >= limits.fewest) & (documents <= limits.most))
    if limits.at_most is not None and len(kept) > limits.at_most:
        kept = np.sort(kept[(-occurrences[kept].astype(np.float64)).argsort()[: limits.at_most]])
    if not len(kept):
        raise InputError("min_df, max_df and max_features leave no term; loosen them.")
    return kept


def _documents(name: str, value: Any, n_texts: int) -> float:
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if is_whole and value >= 1:
        return float(value)
    if isinstance(value, (float, np.floating)) and 0 <= value <= 1:
        return float(value) * n_texts
    raise InputError(f"{name} is {value!r}; give a whole number of documents from 1 on, or a share of them from 0.0 to 1.0.")
