"""Duplicates and near-duplicates with different labels."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import auditing as oracle
from scipy.sparse import csr_array

from ramify.workflows.auditing import duplicates
from ramify.workflows.auditing.duplicates import find_groups, similar_pairs


def rows_of(sets, n_terms):
    X = np.zeros((len(sets), n_terms), dtype=np.float32)
    for row, terms in enumerate(sets):
        X[row, sorted(terms)] = 1.0
    return csr_array(X)


@given(st.lists(st.sets(st.integers(0, 7)), max_size=14), st.sampled_from([0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0]))
@settings(max_examples=100)
def test_all_similar_pairs_are_found_and_no_others(sets, similarity):
    X = rows_of(sets, 8)
    first = np.asarray([sets.index(terms) for terms in sets], dtype=np.int64)
    found = similar_pairs(X, first, similarity)
    assert {tuple(pair) for pair in found.tolist()} == oracle.similar_pairs(sets, similarity)


def test_pairs_are_the_same_however_few_are_compared_together(monkeypatch):
    rng = np.random.default_rng(0)
    sets = [set(rng.choice(12, size=rng.integers(3, 9), replace=False).tolist()) for _ in range(120)]
    X, first = rows_of(sets, 12), np.asarray([sets.index(terms) for terms in sets])
    whole = similar_pairs(X, first, 0.7)
    monkeypatch.setattr(duplicates, "AT_ONCE", 20)
    assert len(whole) > 50
    assert np.array_equal(similar_pairs(X, first, 0.7), whole)


def test_terms_of_very_many_documents_lead_to_no_comparison(monkeypatch):
    X = rows_of([{0, k} for k in range(1, 9)] + [{0, 1, 2}], 9)
    own = csr_array(np.eye(9, dtype=bool))
    assert find_groups(X, own, 0.6)
    monkeypatch.setattr(duplicates, "MAX_COMMON", 0)
    assert find_groups(X, own, 0.6) == []
