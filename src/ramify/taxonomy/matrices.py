"""0/1 matrices as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from ramify.arguments import REAL
from ramify.errors import InputError


def as_boolean_matrix(given: Any, what: str, columns: str) -> csr_array:
    """A dense or sparse 0/1 matrix as boolean CSR with sorted columns; nothing is copied if it is one already.

    what, columns: of the matrix and its columns, for messages.

    >>> as_boolean_matrix([[0, 1], [1, 1]], "a label matrix", "nodes").indices.tolist()
    [1, 0, 1]
    """
    try:
        matrix = given if issparse(given) else np.asarray(given)
    except ValueError:
        raise InputError(f"the rows of {what} have different lengths; give one column for each of the {columns}.") from None
    if matrix.ndim != 2:
        raise InputError(f"{what} has documents as rows and {columns} as columns, not {matrix.ndim} dimensions.")
    if isinstance(matrix, csr_array) and matrix.dtype == bool and matrix.has_canonical_format and matrix.data.all():
        return matrix
    if matrix.dtype.kind not in REAL:
        raise InputError(f"{what} holds values of type {matrix.dtype}; give 0 and 1, or False and True.")
    if not issparse(matrix):
        matrix = matrix.astype(bool, copy=False)  # sparse matrices have fewer types, such as no float16
    made = csr_array(matrix).astype(bool)
    made.eliminate_zeros()
    made.sum_duplicates()
    return made
