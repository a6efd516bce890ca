"""Ramify's compiled kernels. Each takes plain arrays, holds no state, and has a slow twin in ``tests/oracles``."""

from ramify.native._core import (
    arrange_vectors,
    ascend_tree_in_place,
    close_upward,
    gather_classes,
    gather_tree,
    hold_classes,
    keep_most_general,
    keep_most_specific,
    multiply_siblings,
    nearest_classes,
    regather_tree_in_place,
    score_candidates,
    score_rows_in_place,
    score_units_in_place,
    screen_classes,
    solve_classes_in_place,
)

__all__ = [
    "arrange_vectors",
    "ascend_tree_in_place",
    "close_upward",
    "gather_classes",
    "gather_tree",
    "hold_classes",
    "keep_most_general",
    "keep_most_specific",
    "multiply_siblings",
    "nearest_classes",
    "regather_tree_in_place",
    "score_candidates",
    "score_rows_in_place",
    "score_units_in_place",
    "screen_classes",
    "solve_classes_in_place",
]
