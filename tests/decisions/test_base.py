"""Sparse scores, of the few nodes that were looked at, are decided as dense ones with NaN elsewhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import build, parent_lists

from ramify import Taxonomy
from ramify.decisions import Best, PCut, SCut
from ramify.decisions.base import read_sparse_scores
from ramify.errors import InputError


@st.composite
def sparse_scores(draw):
    """A taxonomy, and for each document the scores of some nodes, many of them equal, as sparse rows and with NaN elsewhere."""
    taxonomy = build(draw(parent_lists()))
    number = st.sampled_from([-1.0, 0.0, 0.0, 0.5, 2.0])
    rows = draw(st.lists(st.dictionaries(st.integers(0, len(taxonomy) - 1), number), max_size=5))
    ends = np.cumsum([0, *map(len, rows)])
    columns, data = [node for row in rows for node in row], [s for row in rows for s in row.values()]
    sparse = csr_array(
        (np.asarray(data, dtype=np.float32), np.asarray(columns, dtype=np.int32), ends), shape=(len(rows), len(taxonomy))
    )
    dense = np.full(sparse.shape, np.nan, dtype=np.float32)
    for i, row in enumerate(rows):
        dense[i, list(row)] = list(row.values())
    return taxonomy, sparse, dense


def same(found, expected):
    return found.shape == expected.shape and found.dtype == bool and (found != expected).nnz == 0


@given(sparse_scores(), st.booleans())
def test_the_best_of_sparse_scores_is_that_of_dense_scores(problem, leaves_only):
    taxonomy, sparse, dense = problem
    rule = Best(leaves_only=leaves_only)
    assert same(rule.decide(sparse, taxonomy), rule.decide(dense, taxonomy))


@given(sparse_scores(), st.data(), st.booleans(), st.sampled_from([SCut, PCut]))
def test_thresholds_cut_sparse_as_they_cut_dense_scores(problem, data, at_least_one, kind):
    taxonomy, sparse, dense = problem
    cuts = st.sampled_from([-1.0, 0.0, 0.25, 2.0, np.inf])
    thresholds = data.draw(st.lists(cuts, min_size=len(taxonomy), max_size=len(taxonomy)))
    rule = kind(thresholds=thresholds, at_least_one=at_least_one)
    assert same(rule.decide(sparse, taxonomy), rule.decide(dense, taxonomy))


def test_entries_that_are_no_scores_count_as_absent():
    taxonomy = Taxonomy.flat(["a", "b", "c"])
    sparse = csr_array(np.asarray([[np.nan, -np.inf, 0.5], [np.nan, -np.inf, 0.0]], dtype=np.float32))
    assert taxonomy.decode(Best().decide(sparse, taxonomy)) == [["c"], []]


def test_sparse_scores_of_another_width_and_infinite_ones_are_refused():
    taxonomy = Taxonomy.flat(["a", "b", "c"])
    with pytest.raises(InputError, match=r"scores have shape \(1, 2\); the taxonomy has 3 nodes"):
        read_sparse_scores(csr_array([[1.0, 2.0]]), taxonomy)
    with pytest.raises(InputError, match="a score is infinite"):
        read_sparse_scores(csr_array([[1.0, np.inf, 0]]), taxonomy)


def test_what_is_given_stays_as_it_is():
    sparse = csr_array((np.asarray([1.0, 2.0]), np.asarray([2, 0]), np.asarray([0, 2])), shape=(1, 3))
    Best().decide(sparse, Taxonomy.flat(["a", "b", "c"]))
    assert sparse.indices.tolist() == [2, 0]
