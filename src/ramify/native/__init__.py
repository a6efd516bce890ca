"""Ramify's compiled kernels, and the structs of arrays that they take.

A struct checks sizes and index ranges when it is made and copies nothing; make it once for many calls. An array of another type
is a TypeError and never converted. Kernels hold no state and have a slow twin in ``tests/oracles``.
"""

from typing import Any

import numpy as np

# isort: off
from ramify.native._core import ActiveSet, BoostRounds, ClassVectors, Committees, Documents, DoubleRows, FoldLanes
from ramify.native._core import LabelledDocuments, MixtureLimits, Pairs, Pattern, Rows, SiblingProducts, SparseVectors
from ramify.native._core import StructuredProblem, TermIndex, TermRules, Terms, TreePartition, WordCounts
from ramify.native._core import assemble_class_weights_in_place, assemble_tree_deltas_in_place, boost_in_place, close_upward
from ramify.native._core import compact_columns_in_place, compute_structured_losses_in_place, count_hashed_terms
from ramify.native._core import LANES, cross_fit_classes_in_place
from ramify.native._core import count_known_terms, count_new_terms, find_candidates_in_place, find_negative_candidates_in_place
from ramify.native._core import find_top_classes_in_place, fit_mixtures_in_place, index_terms, keep_most_general
from ramify.native._core import keep_most_specific, list_tree_features, minimize_h_loss, minimize_softmax_bound_in_place
from ramify.native._core import multiply_rows_in_place, multiply_siblings_in_place, predict_committees, read_csv_rows
from ramify.native._core import reallocate_probability_in_place, renumber_rows, reorder_features_in_place
from ramify.native._core import score_candidates_in_place, score_committees_in_place, score_mixtures_in_place
from ramify.native._core import score_rows_in_place, score_units_in_place, screen_classes_in_place, smooth_trees_in_place
from ramify.native._core import solve_classes_in_place, sort_terms, sum_class_vectors, take_columns, take_rows, transpose_rows
from ramify.native._core import update_structured_duals_in_place, update_tree_duals_in_place, weigh_rows_in_place
# isort: on

__all__ = [
    "LANES", "ActiveSet", "BoostRounds", "ClassVectors", "Committees", "Documents", "DoubleRows", "FoldLanes",
    "LabelledDocuments", "MixtureLimits", "Pairs", "Pattern", "Rows", "SiblingProducts", "SparseVectors",
    "StructuredProblem", "TermIndex", "TermRules", "Terms", "TreePartition", "WordCounts", "assemble_class_weights_in_place",
    "assemble_tree_deltas_in_place", "boost_in_place", "close_upward", "compact_columns_in_place",
    "compute_structured_losses_in_place", "count_hashed_terms", "count_known_terms", "count_new_terms",
    "cross_fit_classes_in_place", "find_candidates_in_place", "find_negative_candidates_in_place",
    "find_top_classes_in_place", "fit_mixtures_in_place", "index_terms", "keep_most_general", "keep_most_specific",
    "list_tree_features", "minimize_h_loss", "minimize_softmax_bound_in_place", "multiply_rows_in_place",
    "multiply_siblings_in_place", "pattern_of", "predict_committees", "read_csv_rows", "reallocate_probability_in_place",
    "renumber_rows", "reorder_features_in_place", "rows_of", "score_candidates_in_place", "score_committees_in_place",
    "score_mixtures_in_place", "score_rows_in_place", "score_units_in_place", "screen_classes_in_place",
    "smooth_trees_in_place", "solve_classes_in_place", "sort_terms", "sum_class_vectors", "take_columns", "take_rows",
    "transpose_rows", "update_structured_duals_in_place", "update_tree_duals_in_place", "weigh_rows_in_place",
]  # fmt: skip


def pattern_of(matrix: Any) -> Pattern:
    """The stored places of a CSR matrix, or of a CSC matrix column by column; nothing is copied where types fit."""
    offsets, columns = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
    return Pattern(offsets, columns, matrix.shape[matrix.format == "csr"])


def rows_of(matrix: Any) -> Rows | DoubleRows:
    """A CSR matrix, or a CSC matrix column by column, with values as they are: float32, or float64."""
    offsets, columns = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
    make = DoubleRows if matrix.dtype == np.float64 else Rows
    return make(offsets, columns, matrix.data, matrix.shape[matrix.format == "csr"])
