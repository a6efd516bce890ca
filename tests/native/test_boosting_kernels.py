"""Kernels of boosting that make and pass on parts of sparse rows, against SciPy."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from seeds import each_seed

from ramify import native


def make_rows(seed, n_rows=12, n_columns=9, density=0.3):
    matrix = csr_array(random_array((n_rows, n_columns), density=density, rng=np.random.default_rng(seed), format="csr"))
    matrix.data[:] = 1
    matrix.sort_indices()
    return matrix, native.pattern_of(matrix)


def to_matrix(offsets, items, n_columns):
    return csr_array((np.ones(len(items)), items, offsets), shape=(len(offsets) - 1, n_columns)).toarray()


@each_seed(5)
def test_taken_rows_are_those_of_the_matrix(seed):
    matrix, pattern = make_rows(seed)
    rows = np.random.default_rng(seed).integers(0, 12, size=7).astype(np.int32)
    np.testing.assert_array_equal(to_matrix(*native.take_rows(pattern, rows), 9), matrix.toarray()[rows])
    kept = np.array([1, 4, 8], dtype=np.int32)
    taken = native.take_columns(pattern, rows, kept)
    np.testing.assert_array_equal(to_matrix(*taken, 3), matrix.toarray()[rows][:, kept])
    nothing = native.take_columns(pattern, rows, np.zeros(0, dtype=np.int32))
    assert nothing[1].size == 0
    assert nothing[0].tolist() == [0] * 8


@each_seed(5)
def test_transposed_rows_are_the_transposed_matrix(seed):
    matrix, pattern = make_rows(seed)
    transposed = native.transpose_rows(pattern)
    np.testing.assert_array_equal(to_matrix(*transposed, 12), matrix.toarray().T)
    starts = transposed[0].tolist()
    assert all(np.all(np.diff(transposed[1][a:b]) > 0) for a, b in itertools.pairwise(starts))


def test_items_that_occur_are_numbered_in_their_order():
    items = np.array([7, 2, 7, 30], dtype=np.int32)
    assert native.compact_columns_in_place(items, 31).tolist() == [2, 7, 30]
    assert items.tolist() == [1, 0, 1, 2]
    assert native.compact_columns_in_place(np.zeros(0, dtype=np.int32), 5).tolist() == []


def committees():
    """One at the top over classes 0 and 1, and one below class 1 over class 2; three columns."""
    pivots = native.Pattern(np.array([0, 1, 3], dtype=np.int64), np.array([0, 1, 2], dtype=np.int32), 3)
    below = native.Pattern(np.array([0, 0, 1, 1], dtype=np.int64), np.array([1], dtype=np.int32), 2)
    return native.Committees(
        pivots=pivots,
        class_offsets=np.array([0, 2, 3], dtype=np.int64),
        bias=np.array([-1.0, 0.5, -0.5]),
        sum_offsets=np.array([0, 2, 4], dtype=np.int64),
        sums=np.array([3.0, -1.0, 1.0, 2.0]),
        roots=np.array([0], dtype=np.int32),
        below=below,
    )


ROWS = np.array([0, 0, 1, 2, 4], dtype=np.int64), np.array([0, 2, 1, 2], dtype=np.int32)  # {}, {0}, {2}, {1, 2}
SCORES = [[-1.0, 0.5, -0.5], [2.0, -0.5, -0.5], [-1.0, 0.5, 1.5], [-1.0, 0.5, 2.5]]


@pytest.mark.parametrize("n_times", [1, 1000])  # with few rows pivots are searched, with many they are looked up
def test_scores_of_committees_are_worked_out_by_hand(n_times):
    ends = np.concatenate([[0], np.cumsum(np.tile(np.diff(ROWS[0]), n_times))])
    X = native.Pattern(ends, np.tile(ROWS[1], n_times), 3)
    scores = np.empty((4 * n_times, 3), dtype=np.float32)
    native.score_committees_in_place(committees(), X, -np.inf, scores)
    np.testing.assert_allclose(scores, np.tile(SCORES, (n_times, 1)))
    native.score_committees_in_place(committees(), X, 0.0, scores)
    reached = np.tile(SCORES, (n_times, 1))
    reached[reached[:, 1] <= 0, 2] = np.nan
    np.testing.assert_allclose(scores, reached)


def test_rows_pass_the_nodes_of_classes_above_zero_and_those_that_are_always_passed():
    # class 1 is two nodes
    nodes = native.Pattern(np.array([0, 1, 3, 4], dtype=np.int64), np.array([10, 11, 12, 13], dtype=np.int32), 100)
    X = native.Pattern(*ROWS, 3)
    offsets, passed = native.predict_committees(committees(), X, nodes, np.array([99], dtype=np.int32))
    found = [passed[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    assert found == [[11, 12, 99], [10, 99], [11, 12, 13, 99], [11, 12, 13, 99]]
