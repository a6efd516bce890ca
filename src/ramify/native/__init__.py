"""Ramify's compiled kernels. Each takes plain arrays, holds no state, and has a slow twin in ``tests/oracles``."""

from ramify.native._core import close_upward, keep_most_general, keep_most_specific, score_rows_in_place

__all__ = ["close_upward", "keep_most_general", "keep_most_specific", "score_rows_in_place"]
