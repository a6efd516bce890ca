"""The compiled kernels, called as the product calls them."""

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import scoring as oracle
from oracles import taxonomy as slow
from scipy.sparse import csr_array
from strategies import build, labelled

from ramify.native import close_upward, keep_most_general, keep_most_specific, score_rows_in_place, score_units_in_place


def packed(rows):
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return offsets, np.asarray([node for row in rows for node in row], dtype=np.int32)


def unpacked(offsets, nodes):
    return [nodes[a:b].tolist() for a, b in itertools.pairwise(offsets)]


@given(labelled())
def test_close_upward_equals_the_oracle(case):
    parents, rows = case
    taxonomy = build(parents)
    closed = close_upward(*packed(rows), taxonomy.parent_offsets, taxonomy.parent_nodes)
    assert unpacked(*closed) == [sorted(slow.close_upward(parents, row)) for row in rows]


@given(labelled())
def test_keep_most_specific_equals_the_oracle_on_closed_rows(case):
    parents, rows = case
    taxonomy = build(parents)
    closed = [sorted(slow.close_upward(parents, row)) for row in rows]
    kept = keep_most_specific(*packed(closed), taxonomy.parent_offsets, taxonomy.parent_nodes)
    assert unpacked(*kept) == [sorted(slow.most_specific(parents, row)) for row in rows]


@given(labelled())
def test_keep_most_general_equals_the_oracle_on_any_rows(case):
    parents, rows = case
    taxonomy = build(parents)
    kept = keep_most_general(*packed([sorted(row) for row in rows]), taxonomy.parent_offsets, taxonomy.parent_nodes)
    assert unpacked(*kept) == [sorted(node for node in row if not row & set(parents[node])) for row in rows]


small = st.floats(-4, 4, width=32).map(lambda x: round(x * 8) / 8)


@given(st.data(), st.integers(0, 5), st.integers(1, 6), st.integers(1, 19))
def test_score_rows_equals_the_oracle(data, n_rows, n_features, n_classes):
    X = data.draw(hnp.arrays(np.float32, (n_rows, n_features), elements=small))
    W = data.draw(hnp.arrays(np.float32, (n_features, n_classes), elements=small))
    bias = data.draw(hnp.arrays(np.float64, n_classes, elements=small))
    sparse, scores = csr_array(X), np.full((n_rows, n_classes), np.nan)
    score_rows_in_place(sparse.indptr.astype(np.int64), sparse.indices.astype(np.int32), sparse.data, W, bias, scores)
    assert scores.tolist() == oracle.score_rows(X.tolist(), W.tolist(), bias.tolist())


@given(st.data(), st.integers(0, 5), st.integers(1, 6), st.integers(1, 9))
def test_score_units_adds_up_the_scores_of_a_path(data, n_rows, n_features, n_units):
    X = data.draw(hnp.arrays(np.float32, (n_rows, n_features), elements=small))
    W = data.draw(hnp.arrays(np.float32, (n_features, n_units), elements=small))
    bias = data.draw(hnp.arrays(np.float64, n_units, elements=small))
    parent = np.asarray([data.draw(st.integers(-1, unit - 1)) for unit in range(n_units)], dtype=np.int32)
    sparse, by_feature, scores = csr_array(X), csr_array(W), np.full((n_rows, n_units), np.nan)
    arrays = [(made.indptr.astype(np.int64), made.indices.astype(np.int32), made.data) for made in (sparse, by_feature)]
    score_units_in_place(*arrays[0], *arrays[1], parent, bias, scores)
    for found, alone in zip(scores.tolist(), oracle.score_rows(X.tolist(), W.tolist(), bias.tolist()), strict=True):
        for unit in range(n_units):
            path, above = [unit], parent[unit]
            while above >= 0:
                path.append(int(above))
                above = parent[above]
            assert found[unit] == sum(alone[step] for step in path)


def test_arrays_of_another_type_are_refused():
    with pytest.raises(TypeError):
        close_upward(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32))


def test_kernels_run_side_by_side_in_threads():
    taxonomy = build([[], *([i] for i in range(2000))])
    rows = packed([[2000]] * 200)
    results = []
    work = [
        threading.Thread(target=lambda: results.append(close_upward(*rows, taxonomy.parent_offsets, taxonomy.parent_nodes)))
        for _ in range(4)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(results) == 4
    assert all(len(nodes) == 200 * 2001 for _, nodes in results)
