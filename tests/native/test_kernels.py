"""The compiled kernels, called as the product calls them."""

import itertools
import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import scoring as oracle
from oracles import taxonomy as slow
from scipy.sparse import csr_array
from strategies import build, labelled

from ramify.native import (
    Pattern,
    close_upward,
    keep_most_general,
    keep_most_specific,
    rows_of,
    score_rows_in_place,
    score_units_in_place,
)


def packed(rows, taxonomy):
    """Rows of nodes, and the parents of all nodes."""
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    nodes, n = np.asarray([node for row in rows for node in row], dtype=np.int32), len(taxonomy)
    return Pattern(offsets, nodes, n), Pattern(taxonomy.parent_offsets, taxonomy.parent_nodes, n)


def unpacked(offsets, nodes):
    return [nodes[a:b].tolist() for a, b in itertools.pairwise(offsets)]


@given(labelled())
def test_close_upward_equals_the_oracle(case):
    parents, rows = case
    taxonomy = build(parents)
    closed = close_upward(*packed(rows, taxonomy))
    assert unpacked(*closed) == [sorted(slow.close_upward(parents, row)) for row in rows]


@given(labelled())
def test_keep_most_specific_equals_the_oracle_on_closed_rows(case):
    parents, rows = case
    taxonomy = build(parents)
    closed = [sorted(slow.close_upward(parents, row)) for row in rows]
    kept = keep_most_specific(*packed(closed, taxonomy))
    assert unpacked(*kept) == [sorted(slow.most_specific(parents, row)) for row in rows]


@given(labelled())
def test_keep_most_general_equals_the_oracle_on_any_rows(case):
    parents, rows = case
    taxonomy = build(parents)
    kept = keep_most_general(*packed([sorted(row) for row in rows], taxonomy))
    assert unpacked(*kept) == [sorted(node for node in row if not row & set(parents[node])) for row in rows]


small = st.floats(-4, 4, width=32).map(lambda x: round(x * 8) / 8)


@given(st.data(), st.integers(0, 5), st.integers(1, 6), st.integers(1, 19))
def test_score_rows_equals_the_oracle(data, n_rows, n_features, n_classes):
    X = data.draw(hnp.arrays(np.float32, (n_rows, n_features), elements=small))
    W = data.draw(hnp.arrays(np.float32, (n_features, n_classes), elements=small))
    bias = data.draw(hnp.arrays(np.float64, n_classes, elements=small))
    sparse, scores = csr_array(X), np.full((n_rows, n_classes), np.nan)
    score_rows_in_place(rows_of(sparse), W, bias, scores)
    assert scores.tolist() == oracle.score_rows(X.tolist(), W.tolist(), bias.tolist())


@given(st.data(), st.integers(0, 5), st.integers(1, 6), st.integers(1, 9))
def test_score_units_adds_up_the_scores_of_a_path(data, n_rows, n_features, n_units):
    X = data.draw(hnp.arrays(np.float32, (n_rows, n_features), elements=small))
    W = data.draw(hnp.arrays(np.float32, (n_features, n_units), elements=small))
    bias = data.draw(hnp.arrays(np.float64, n_units, elements=small))
    parent = np.asarray([data.draw(st.integers(-1, unit - 1)) for unit in range(n_units)], dtype=np.int32)
    sparse, by_feature, scores = csr_array(X), csr_array(W), np.full((n_rows, n_units), np.nan)
    score_units_in_place(rows_of(sparse), rows_of(by_feature), parent, bias, scores)
    for found, alone in zip(scores.tolist(), oracle.score_rows(X.tolist(), W.tolist(), bias.tolist()), strict=True):
        for unit in range(n_units):
            path, above = [unit], parent[unit]
            while above >= 0:
                path.append(int(above))
                above = parent[above]
            assert found[unit] == sum(alone[step] for step in path)


def test_kernels_run_side_by_side_in_threads():
    taxonomy = build([[], *([i] for i in range(2000))])
    rows = packed([[2000]] * 200, taxonomy)
    results = []
    work = [threading.Thread(target=lambda: results.append(close_upward(*rows))) for _ in range(4)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(results) == 4
    assert all(len(nodes) == 200 * 2001 for _, nodes in results)
