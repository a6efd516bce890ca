"""Documents as users give them: texts in any container, or a matrix of numbers that takes the place of texts.

A column of pandas, polars or pyarrow becomes a list; a data frame of numbers keeps the names of its columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from ramify.arguments import REAL, as_list, describe, entries, frame_columns
from ramify.errors import InputError
from ramify.features import Vectorizer, Vectors
from ramify.features.union import FeatureUnion

TEXTS_WANTED = "give the column of texts, such as df['text'], or columns of numbers only"


def read_documents(given: Any) -> Any:
    """Texts, or a matrix: sparse, a 2-D array of numbers, or a data frame of numbers; refuses anything else with columns.

    >>> read_documents(np.array([["red apple"], ["rye bread"]])).tolist()
    ['red apple', 'rye bread']
    >>> read_documents([[1, 0], [0, 2]]).shape
    (2, 2)
    """
    if issparse(given):
        return given
    if (columns := frame_columns(given)) is not None:
        return _read_frame(given, columns)
    given = as_list(given)
    if isinstance(given, np.ndarray) and given.ndim > 1:
        return _read_array(given)
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in REAL and given.size:
        advice = "give texts, or rows of numbers. Reshape your data with array.reshape(1, -1) if it is one row"
        raise InputError(f"a list of texts is needed, not an array of numbers of shape {given.shape}; {advice}.")
    return np.asarray(given) if _are_rows_of_numbers(given) else entries(given, "texts")


def is_matrix(documents: Any) -> bool:
    """Whether documents that were read are rows of numbers rather than texts."""
    return issparse(documents) or len(getattr(documents, "shape", ())) == 2


def one_document(given: Any) -> Any:
    """One text or one row of numbers, as documents."""
    if issparse(given) or frame_columns(given) is not None or (isinstance(given, np.ndarray) and given.ndim == 2):
        documents = read_documents(given)
        if (n := documents.shape[0]) != 1:
            raise InputError(f"there are {n} documents to explain; give one at a time.")
        return documents
    return read_documents([given.tolist() if isinstance(given, np.ndarray) and given.ndim == 1 else given])


def vectorizer_for(documents: Any, vectorizer: Any, is_given: bool, params: dict[str, Any]) -> Any:
    """The vectorizer to train with: a matrix needs none; refuses one that reads texts, and parameters for it."""
    if not is_matrix(documents):
        if isinstance(vectorizer, Vectors):
            raise InputError("features=Vectors() takes a matrix of numbers, and the documents are texts; leave features out.")
        return vectorizer
    if not is_given and params:
        name = next(iter(params))
        raise InputError(
            f"the documents are a matrix of numbers, and {name!r} is a parameter of features of texts; leave it out."
        )
    if not is_given:
        return Vectors()
    if isinstance(vectorizer, (Vectorizer, FeatureUnion)):
        name = type(vectorizer).__name__
        raise InputError(f"the documents are a matrix of numbers, and features={name}() reads texts; leave features out.")
    return vectorizer


def refuse_other_kind(documents: Any, vectorizer: Any) -> None:
    """Refuse texts for a model of numbers, and numbers for a model of texts."""
    if isinstance(vectorizer, Vectors) and not is_matrix(documents):
        n = vectorizer.n_features_in_
        raise InputError(f"the model was trained on {n} numeric features, not on texts; give a matrix with {n} columns.")
    if is_matrix(documents) and isinstance(vectorizer, (Vectorizer, FeatureUnion)):
        raise InputError("the model was trained on texts, and the documents are a matrix of numbers; give a list of texts.")


def _read_frame(given: Any, columns: list[Any]) -> Any:
    """A frame of numbers as it is; of a frame with one column of texts, that column."""
    array = np.asarray(given)
    if len(columns) == 1 and array.dtype.kind not in REAL:
        return entries(array.ravel().tolist(), "texts")
    if array.dtype.kind in REAL:
        return given
    if array.dtype.kind == "O" and _is_numeric(array):  # numbers with missing values, and numbers of several types
        return given
    shown = ", ".join(repr(str(name)) for name in columns[:5]) + (" and others" if len(columns) > 5 else "")
    raise InputError(f"the documents are a data frame with columns {shown}, which are not all numbers; {TEXTS_WANTED}.")


def _read_array(given: Any) -> Any:
    if given.ndim > 2:
        raise InputError(f"the documents are an array of shape {given.shape}; give a list of texts, or rows of numbers.")
    if given.dtype.kind in REAL:
        return given
    if given.shape[1] == 1:
        return given.ravel()
    if given.dtype.kind == "O" and _is_numeric(given):
        return given.astype(np.float64)
    what = "texts" if given.dtype.kind != "c" else "complex numbers"
    advice = "give one text per document, or rows of real numbers"
    raise InputError(f"the documents are an array of {what} of shape {given.shape}; {advice}.")


def _is_numeric(array: Any) -> bool:
    if any(isinstance(value, (str, bytes)) for value in array.ravel().tolist()):
        return False
    try:
        array.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _are_rows_of_numbers(given: Any) -> bool:
    """Whether a list has rows of numbers, all of one length."""
    if not isinstance(given, (list, tuple)) or not given or not isinstance(given[0], (list, tuple, np.ndarray)):
        return False
    try:
        array = np.asarray(given)
    except ValueError:
        raise InputError(f"the documents are lists of different lengths, {describe(given[0])} the first; give texts.") from None
    return array.ndim == 2 and array.dtype.kind in REAL and array.shape[1] > 0
