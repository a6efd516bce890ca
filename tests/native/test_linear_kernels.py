"""The kernels of linear models against their slow twins."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import linear as oracle
from oracles import shards as shards_oracle
from scipy.sparse import csc_array, csr_array
from strategies import build, parent_lists

from ramify import native
from ramify.learners.linear.problem import Pairs, arrange_rows
from ramify.learners.linear.taxonomy_ties import Deltas, add_changes, lay_out, partition_by_thread, tie_along_paths
from ramify.native import (
    ActiveSet,
    ClassVectors,
    Documents,
    Pattern,
    Rows,
    SiblingProducts,
    SparseVectors,
    TreePartition,
    assemble_class_weights_in_place,
    assemble_tree_deltas_in_place,
    find_candidates_in_place,
    find_negative_candidates_in_place,
    find_top_classes_in_place,
    list_tree_features,
    multiply_siblings_in_place,
    pattern_of,
    reorder_features_in_place,
    rows_of,
    screen_classes_in_place,
    solve_classes_in_place,
    sum_class_vectors,
    update_tree_duals_in_place,
)

# sums and products of a few of these are exact in 32 bits, so that equal means equal
eighths = st.integers(-16, 16).map(lambda x: x / 8)
STEP = 1 / 127  # of a weight in a screening, relative to the largest of its feature


def documents_of(X):
    """Documents with their features as they came."""
    X = csr_array(np.asarray(X, dtype=np.float32))
    norms = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float32).ravel()
    return Documents(rows_of(X), norms)


def pairs_of(listed, cost_positive=None, cost_negative=None):
    """Pairs from one list a class of (document, sign, alpha), own documents first."""
    ordered = [sorted(own, key=lambda pair: -pair[1]) for own in listed]
    flat = [pair for own in ordered for pair in own]
    ones = np.ones(len(listed), dtype=np.float32)
    return Pairs(
        np.cumsum([0, *map(len, ordered)]).astype(np.int64),
        np.asarray([i for i, _, _ in flat], dtype=np.int32),
        np.asarray([sum(sign > 0 for _, sign, _ in own) for own in ordered], dtype=np.int64),
        ones if cost_positive is None else np.asarray(cost_positive, dtype=np.float32),
        ones if cost_negative is None else np.asarray(cost_negative, dtype=np.float32),
        np.asarray([alpha for _, _, alpha in flat], dtype=np.float32),
    )


def no_ancestors(n_classes, n_features):
    """Classes without ancestors, and their vectors."""
    nothing = Pattern(np.zeros(n_classes + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), 1)
    return nothing, native.SparseVectors(*Deltas.zero(1).arrays, n_features)


def vectors_of(W):
    """The rows of a dense matrix."""
    W = csr_array(np.asarray(W, dtype=np.float32))
    ends = W.indptr.astype(np.int64)
    return SparseVectors(ends[:-1].copy(), ends[1:].copy(), W.indices.astype(np.int32), W.data, W.shape[1])


def one_ancestor(W):
    """One unit above every class, with the weights given."""
    n = len(W)
    return Pattern(np.arange(n + 1, dtype=np.int64), np.arange(n, dtype=np.int32), n), vectors_of(W)


@st.composite
def documents_and_pairs(draw, n_classes, max_docs=6, max_features=5):
    """Dense documents in eighths, and for every class some of them with a sign and an alpha."""
    shape = draw(st.integers(1, max_docs)), draw(st.integers(1, max_features))
    X = draw(hnp.arrays(np.float32, shape, elements=eighths))
    pair = st.tuples(st.sampled_from([1, -1]), st.integers(0, 16).map(lambda x: x / 8))
    listed = [draw(st.dictionaries(st.integers(0, shape[0] - 1), pair)) for _ in range(n_classes)]
    return X, [[(i, sign, alpha) for i, (sign, alpha) in own.items()] for own in listed]


def dense(result, n_rows, n_features):
    """Sparse vectors that a kernel gave, row by row."""
    units, ends, features, values, *_ = result
    table = np.zeros((n_rows, n_features))
    for unit, start, end in zip(units, [0, *ends], ends, strict=False):
        table[unit, features[start:end]] = values[start:end]
    return table


# ---- candidates -------------------------------------------------------------------------------------------------------


@given(st.data(), st.integers(0, 5), st.integers(1, 6), st.integers(1, 7), st.integers(1, 9))
def test_negative_candidates_equal_the_oracle(data, n_docs, n_features, n_classes, n_nearest):
    few = st.sampled_from([0, 0, -0.5, 0.5, 1, 2])
    X = data.draw(hnp.arrays(np.float32, (n_docs, n_features), elements=few))
    signatures = data.draw(hnp.arrays(np.float32, (n_classes, n_features), elements=few))
    start = data.draw(hnp.arrays(np.float32, n_classes, elements=few))
    own = data.draw(st.lists(st.sets(st.integers(0, n_classes - 1)), min_size=n_docs, max_size=n_docs))
    index, nearest = rows_of(csc_array(signatures)), np.full((n_docs, n_nearest), 99, dtype=np.int32)
    ends, mine = np.cumsum([0, *map(len, own)]), np.asarray([c for row in own for c in sorted(row)], dtype=np.int32)
    sparse = csr_array(X)
    for some in (slice(0, n_docs // 2), slice(n_docs // 2, n_docs)):
        theirs = Pattern(ends[some.start : some.stop + 1].astype(np.int64), mine, n_classes)
        find_negative_candidates_in_place(rows_of(sparse[some]), index, start, theirs, nearest[some])
    assert nearest.tolist() == oracle.find_negative_candidates(X.tolist(), signatures.tolist(), start.tolist(), own, n_nearest)


@given(st.data(), st.integers(0, 5), st.integers(1, 6), st.integers(1, 7), st.integers(1, 9))
def test_candidates_and_top_classes_equal_their_oracles(data, n_docs, n_features, n_classes, width):
    few = st.sampled_from([0, 0, -0.5, 0.5, 1, 2])
    X = data.draw(hnp.arrays(np.float32, (n_docs, n_features), elements=few))
    table = data.draw(hnp.arrays(np.float32, (n_classes, n_features), elements=few))
    start = data.draw(hnp.arrays(np.float32, n_classes, elements=few | st.just(-np.inf)))
    index, sparse = rows_of(csc_array(table)), csr_array(X)
    for kernel in (find_candidates_in_place, find_top_classes_in_place):
        classes, sums = np.full((n_docs, width), 99, dtype=np.int32), np.full((n_docs, width), 99, dtype=np.float32)
        for some in (slice(0, n_docs // 2), slice(n_docs // 2, n_docs)):
            kernel(rows_of(sparse[some]), index, start, classes[some], sums[some])
        if kernel is find_candidates_in_place:
            expected = oracle.find_negative_candidates(X.tolist(), table.tolist(), start.tolist(), [()] * n_docs, width)
        else:
            expected = [row for row, _ in shards_oracle.find_top_classes(X.tolist(), table.tolist(), start.tolist(), width)]
        assert classes.tolist() == expected
        all_sums = np.column_stack([X @ table.T + start, np.full(n_docs, -np.inf)])  # the last is what -1 finds
        np.testing.assert_array_equal(sums, np.take_along_axis(all_sums, classes.astype(np.int64), axis=1))


def test_of_equal_candidates_the_first_are_chosen():
    X, nearest = rows_of(csr_array(np.ones((1, 1), dtype=np.float32))), np.empty((1, 2), dtype=np.int32)
    classes = np.asarray([4, 2, 0, 3, 1], dtype=np.int32)
    index = Rows(np.asarray([0, 5], dtype=np.int64), classes, np.ones(5, dtype=np.float32), 5)
    own = pattern_of(csr_array(np.asarray([[1, 0, 0, 0, 0]])))
    find_negative_candidates_in_place(X, index, np.zeros(5, dtype=np.float32), own, nearest)
    assert nearest.tolist() == [[1, 2]]


# ---- screening --------------------------------------------------------------------------------------------------------


def screen(X, above, pairs, threshold, most=10**6, loss="hinge", documents=None, stretch=None, closely=True):
    """The pairs found, as a set, and the losses by class."""
    n = len(pairs)
    stretch = np.ones(n) if stretch is None else stretch
    documents = np.ones(len(X), dtype=np.float32) if documents is None else documents
    losses, classes = np.zeros(n), np.arange(n, dtype=np.int32)
    data = documents_of(X), native.Pairs(*pairs.arrays, len(X)), documents, *above, stretch
    found = screen_classes_in_place(*data, classes, loss, threshold, closely, most, losses)
    listed = list(zip(*(part.tolist() for part in found), strict=True))
    assert len(set(listed)) == len(listed)
    return set(listed), losses


def below(score):
    """The largest 32-bit number that is smaller."""
    near = np.float32(score)
    return float(near if near < score else np.nextafter(near, np.float32(-np.inf)))


def screening_problem(seed, n_docs=14, n_classes=37, longest=12):
    """Documents, weights over many magnitudes, known pairs; a third of the weights lie on or between two steps."""
    rng = np.random.default_rng(seed)
    n_features = int(rng.integers(1, longest + 1))
    X = rng.normal(size=(n_docs, n_features)) * (rng.random((n_docs, n_features)) < 0.7)
    X *= 10.0 ** rng.uniform(-4, 4, n_features)
    W = rng.normal(size=(n_classes, n_features)) * 10.0 ** rng.uniform(-6, 6, n_features)
    largest = np.abs(W).max(axis=0)
    on_steps = (rng.integers(-126, 127, W.shape) + rng.choice([0, 0.5], W.shape)) * largest * STEP
    W = np.where(rng.random(W.shape) < 1 / 3, on_steps, W)
    known = [[(i, -1, 0.0) for i in np.flatnonzero(rng.random(n_docs) < 0.2)] for _ in range(n_classes)]
    return X.astype(np.float32), W.astype(np.float32), known, rng


def rounding_of(X, W, closely=False):
    """Documents × classes: what a bound may lie above a score; classes are screened 32 at a time."""
    if closely:
        return 1e-9 * (np.abs(X.astype(float)) @ np.abs(W.T.astype(float)) + 1)
    parts = [np.abs(W[c : c + 32]).max(axis=0) for c in range(0, len(W), 32)]
    by_class = np.repeat(parts, [len(W[c : c + 32]) for c in range(0, len(W), 32)], axis=0).astype(float)
    return 1.02 * STEP * np.abs(X.astype(float)) @ by_class.T + 2e-6


@pytest.mark.parametrize("closely", [False, True])
@given(seed=st.integers(0, 100_000))
@settings(max_examples=30)
def test_no_pair_above_the_threshold_is_missed_and_no_known_pair_is_reported(closely, seed):
    X, W, listed, rng = screening_problem(seed)
    pairs, scores = pairs_of(listed), X.astype(float) @ W.T.astype(float)
    known = {(int(i), c) for c, own in enumerate(listed) for i, _, _ in own}
    unknown = [pair for pair in itertools.product(range(len(X)), range(len(W))) if pair not in known]
    slack = rounding_of(X, W, closely)
    for i, c in rng.permutation(unknown)[:4]:
        threshold = below(scores[i, c])  # the hardest one for this pair
        found, _ = screen(X, one_ancestor(W), pairs, threshold, closely=closely)
        assert oracle.strays(scores.tolist(), known, threshold, np.ones(scores.shape).tolist()) <= found
        assert not found & known
        assert all(scores[pair] + slack[pair] > threshold for pair in found)


@pytest.mark.parametrize("closely", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@given(seed=st.integers(0, 100_000))
@settings(max_examples=25)
def test_losses_are_never_understated_and_only_by_rounding_overstated(loss, closely, seed):
    X, W, listed, rng = screening_problem(seed)
    costs = rng.choice([0.25, 1, 3], len(W)).astype(np.float32)
    weights = rng.choice([0, 0.5, 1], len(X)).astype(np.float32)
    pairs, scores = pairs_of(listed, cost_negative=costs), X.astype(float) @ W.T.astype(float)
    found, losses = screen(X, one_ancestor(W), pairs, -1.0, loss=loss, documents=weights, closely=closely)
    known = {(int(i), c) for c, own in enumerate(listed) for i, _, _ in own}
    least, most, slack = np.zeros(len(W)), np.zeros(len(W)), rounding_of(X, W, closely)
    for i, c in itertools.product(range(len(X)), range(len(W))):
        if (i, c) not in known:
            cost, score = float(costs[c]) * float(weights[i]), scores[i, c]
            least[c] += cost * oracle.loss_of(-score, loss)
            most[c] += cost * oracle.loss_of(-score - slack[i, c], loss)
    assert np.all(losses >= least * (1 - 1e-6))
    assert np.all(losses <= most * (1 + 1e-5))
    assert all(weights[i] > 0 for i, _ in found)


@given(seed=st.integers(0, 100_000))
@settings(max_examples=30)
def test_weights_come_from_what_lies_above_and_from_dual_variables_stretched(seed):
    X, _, _, rng = screening_problem(seed, longest=6)
    X = np.clip(X, -2, 2)
    n_classes = 5
    W = rng.normal(size=(n_classes, X.shape[1])).astype(np.float32)
    listed = [[(int(i), int(rng.choice([1, -1])), float(rng.random())) for i in range(0, len(X), 3)] for _ in range(n_classes)]
    stretch = rng.choice([1.0, 1.003, 1.05], n_classes)
    exact = stretch[:, None] * (W + np.asarray(oracle.sum_class_vectors(X.tolist(), listed)))
    scores = X.astype(float) @ exact.T
    found, _ = screen(X, one_ancestor(W), pairs_of(listed), -0.5, stretch=stretch)
    unknown = {(i, c) for i in range(len(X)) for c in range(n_classes) if i % 3}
    slack = rounding_of(X, exact) + 1e-5 * (1 + np.abs(X) @ np.abs(exact).T)
    assert {pair for pair in unknown if scores[pair] > -0.5 + slack[pair]} <= found
    assert found <= {pair for pair in unknown if scores[pair] > -0.5 - slack[pair]}


@given(st.permutations(range(12)), st.integers(1, 14))
def test_of_too_many_pairs_the_worst_are_kept_while_losses_count_all(order, most):
    X, pairs = np.asarray(order, dtype=np.float32)[:, None] + 1, pairs_of([[], [(order.index(11), -1, 0.0)]])
    found, losses = screen(X, one_ancestor([[1.0], [2.0]]), pairs, 0.0, most)
    best = [i for i in np.argsort(-X[:, 0]) if order[i] != 11]
    assert found == {(order.index(11), 0)} | {(int(i), 0) for i in best[: most - 1]} | {(int(i), 1) for i in best[:most]}
    np.testing.assert_allclose(losses, [np.sum(1 + X), np.sum(1 + 2 * X[X < 12])], rtol=1e-3)


def test_no_pair_of_a_very_long_document_is_missed():
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, w = rng.uniform(0.5, 2, 2).astype(np.float32)
        X, W = np.full((1, 8000), x), np.full((1, 8000), w)
        found, _ = screen(X, one_ancestor(W), pairs_of([[]]), below(float(x) * float(w) * 8000))
        assert found == {(0, 0)}


# ---- sums of dual variables -------------------------------------------------------------------------------------------


@given(st.data(), st.integers(1, 4))
@settings(max_examples=80)
def test_assembled_class_weights_equal_the_oracle(data, n_classes):
    X, listed = data.draw(documents_and_pairs(n_classes))
    first = data.draw(st.integers(0, n_classes - 1))
    stretch = np.full(n_classes, 1.5)
    place = np.asarray(data.draw(st.permutations(range(X.shape[1]))), dtype=np.int32)
    pairs = native.Pairs(*pairs_of(listed).arrays, len(X))
    result = assemble_class_weights_in_place(
        documents_of(X), pairs, stretch, place, 0.0, first, n_classes, bias := np.zeros(n_classes)
    )
    weights = 1.5 * np.asarray(oracle.sum_class_vectors(X.tolist(), listed))
    expected = weights[:, place]
    assert bias[first:].tolist() == weights[first:, 0].tolist()
    expected[:first] = 0
    assert dense(result, *expected.shape).tolist() == expected.tolist()
    assert result[0].tolist() == list(range(first, n_classes))


@given(st.data(), st.integers(1, 4))
def test_class_vectors_are_u_over_all_features_of_the_documents(data, n_classes):
    X, listed = data.draw(documents_and_pairs(n_classes))
    first = data.draw(st.integers(0, n_classes - 1))
    offsets, features, values = sum_class_vectors(
        documents_of(X), native.Pairs(*pairs_of(listed).arrays, len(X)), first, n_classes
    )
    u = oracle.sum_class_vectors(X.tolist(), listed)
    for k, start, end in zip(range(first, n_classes), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        documents = [i for i, _, _ in listed[k]]
        held = features[start:end].tolist()
        assert held == np.flatnonzero(np.any(X[documents] != 0, axis=0)).tolist()
        assert values[start:end].tolist() == [u[k][f] for f in held]


@given(hnp.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 6)), elements=eighths.map(np.float32)), st.data())
def test_reordered_features_stand_in_their_places(W, data):
    units = np.asarray(sorted(data.draw(st.sets(st.integers(0, len(W) - 1), min_size=1))), dtype=np.int32)
    place = np.asarray(data.draw(st.permutations(range(W.shape[1]))), dtype=np.int32)
    result = reorder_features_in_place(vectors_of(W), units, place, bias := np.zeros(len(W)))
    expected = np.zeros(W.shape)
    expected[units] = W[units][:, place]
    assert dense(result, *W.shape).tolist() == expected.tolist()
    assert bias[units].tolist() == W[units, 0].tolist()


@st.composite
def tied_classes(draw):
    """A tree or a DAG, the units above each of its classes, documents, and pairs of the classes."""
    parents = draw(parent_lists())
    labelled = draw(st.sets(st.integers(0, len(parents) - 1), min_size=1))
    forest, above = tie(parents, labelled)
    X, listed = draw(documents_and_pairs(len(above)))
    return forest, above, X, listed


def tie(parents, labelled):
    """A forest, and for each of its classes the units of all nodes above it, read off the parents one step after the other."""
    forest = tie_along_paths(build(parents), np.asarray(sorted(labelled), dtype=np.int64))
    closure = []
    for above in parents:
        closure.append({node for parent in above for node in closure[parent] | {parent}})
    inner = {node for some in labelled for node in closure[some]}
    unit_of = {}
    for unit, node in enumerate(forest.node.tolist()):
        unit_of.setdefault(node, unit)
    return forest, [[unit_of[v] for v in sorted(closure[n] | ({n} & inner))] for n in forest.class_nodes.tolist()]


def partitions_of(forest, walks):
    joins = Pattern(forest.joins.offsets, forest.joins.units, len(forest))
    return [TreePartition(forest.parent, forest.class_of, walks.n_threads, visited, joins) for visited in walks.visited]


def zero_deltas(forest, walks, documents, pairs, n_features, has_added=False):
    """Room for δ of every inner unit. has_added: whether units that joins add have all features."""
    inner, is_added = forest.class_of < 0, np.isin(np.arange(len(forest)), forest.joins.units)
    has_all = inner & (walks.n_threads != 1) | (is_added & has_added)
    is_listed = (inner & ~has_all).astype(np.uint8)
    listed = [list_tree_features(documents, partition, pairs, is_listed) for partition in partitions_of(forest, walks)]
    return lay_out(listed, has_all, n_features)


def assemble(deltas, forest, walks, documents, pairs, n_features):
    """δ of every inner unit, into zeros."""
    vectors = native.SparseVectors(*deltas.arrays, n_features)
    partitions = partitions_of(forest, walks)
    add_changes(deltas, [assemble_tree_deltas_in_place(documents, each, vectors, pairs) for each in partitions])
    return deltas


def table_of(deltas, n_features):
    """Units × features."""
    table = np.zeros((len(deltas.start), n_features))
    for unit, (start, end) in enumerate(zip(deltas.start, deltas.end, strict=True)):
        table[unit, deltas.features[start:end]] = deltas.values[start:end]
    return table


@given(tied_classes(), st.integers(1, 3), st.booleans())
@settings(max_examples=100)
def test_assembled_deltas_equal_the_oracle_for_any_number_of_partitions(case, n_walks, has_added):
    forest, above, X, listed = case
    pairs = pairs_of(listed)
    walks = partition_by_thread(forest, np.diff(pairs.offsets) + 1, n_walks)
    where = forest, walks, documents_of(X), native.Pairs(*pairs.arrays, len(X)), X.shape[1]
    deltas = assemble(zero_deltas(*where, has_added), *where)
    expected = oracle.assemble_tree_deltas(X.tolist(), listed, above, len(forest))
    assert table_of(deltas, X.shape[1]).tolist() == expected
    is_own = (walks.n_threads == 1) & ~forest.joins.is_join & ~(has_added & np.isin(np.arange(len(forest)), forest.joins.units))
    for unit in np.flatnonzero(is_own):  # no features but those below it
        held = deltas.features[deltas.start[unit] : deltas.end[unit]].tolist()
        below = [i for own, units in zip(listed, above, strict=True) if unit in units for i, _, _ in own]
        assert held == np.flatnonzero(np.any(X[below] != 0, axis=0)).tolist()


@pytest.mark.parametrize("loss", oracle.LOSSES)
@given(tied_classes())
@settings(max_examples=40)
def test_what_classes_and_inner_units_add_to_the_dual_is_all_of_it(loss, case):
    forest, paths, X, listed = case
    listed = [[(i, sign, min(alpha, 1.0)) for i, sign, alpha in own] for own in listed]
    pairs = pairs_of(listed)
    inner = np.asarray(oracle.assemble_tree_deltas(X.tolist(), listed, paths, len(forest)))
    above = Pattern(forest.above_offsets, forest.above, len(forest)), vectors_of(inner)
    classes, found = np.arange(len(pairs), dtype=np.int32), np.zeros((len(pairs), 4))
    documents = np.ones(len(X), dtype=np.float32)
    given = documents_of(X), native.Pairs(*pairs.arrays, len(X)), documents
    solve_classes_in_place(*given, *above, classes, loss, 1.0, 0, 0, found)
    expected = oracle.dual_of(X.tolist(), listed, paths, len(forest), loss)
    np.testing.assert_allclose(found[:, 1].sum() + 0.5 * np.sum(inner**2), expected, rtol=1e-5, atol=1e-5)
    assert pairs.alphas.tolist() == [alpha for own in listed for _, _, alpha in sorted(own, key=lambda pair: -pair[1])]


# One step takes the second dual variable from 0 across most of its range: plain Newton steps swing about their aim.
FAR_STEP = (
    *tie([[], [0], [0]], [1]),
    np.asarray([[0, -0.875], [1.75, 2], [0, -1.125]], dtype=np.float32),
    [[(0, -1, 0.5), (1, -1, 0.0), (2, -1, 0.5)]],
)


@pytest.mark.parametrize("loss", oracle.LOSSES)
@pytest.mark.parametrize("is_stored", [False, True])
@given(case=tied_classes(), n_walks=st.integers(1, 3), has_added=st.booleans(), seed=st.integers(0, 100))
@example(case=FAR_STEP, n_walks=1, has_added=False, seed=0)
@settings(max_examples=30)
def test_a_round_updates_deltas_and_stored_vectors_and_never_lowers_the_dual(is_stored, loss, case, n_walks, has_added, seed):
    forest, above, X, listed = case
    listed = [[(i, sign, min(alpha, 1.0)) for i, sign, alpha in own] for own in listed]
    pairs = pairs_of(listed)
    walks = partition_by_thread(forest, np.diff(pairs.offsets) + 1, n_walks)
    rows, listed_pairs = documents_of(X), native.Pairs(*pairs.arrays, len(X))
    stored = [(first, *sum_class_vectors(rows, listed_pairs, first, last)) for first, last in walks.classes(forest)]
    vectors = [ClassVectors(*mine, X.shape[1]) if is_stored else None for mine in stored]
    where = forest, walks, rows, listed_pairs, X.shape[1]
    partitions, deltas = partitions_of(forest, walks), assemble(zero_deltas(*where, has_added), *where)
    n, documents = len(forest), np.ones(len(X), dtype=np.float32)
    nobody = Pattern(np.zeros(n + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), len(X))
    nothing = SiblingProducts(nobody, np.zeros(n + 1, dtype=np.int64), documents[:0])
    is_active, slack = np.ones(len(pairs.documents), dtype=np.uint8), np.full(len(pairs), np.inf, dtype=np.float32)
    dual = oracle.dual_of(X.tolist(), listed, above, len(forest), loss)
    shared, active = native.SparseVectors(*deltas.arrays, X.shape[1]), ActiveSet(is_active, slack)
    parts = [
        update_tree_duals_in_place(rows, partition, shared, listed_pairs, mine, documents, nothing, active, loss, 0, 1, seed)
        for partition, mine in zip(partitions, vectors, strict=True)
    ]
    moved = iter(pairs.alphas.tolist())
    after = [[(i, sign, next(moved)) for i, sign, _ in sorted(own, key=lambda pair: -pair[1])] for own in listed]
    add_changes(deltas, parts)
    expected = np.asarray(oracle.assemble_tree_deltas(X.tolist(), after, above, n))
    np.testing.assert_allclose(table_of(deltas, X.shape[1]), expected, atol=1e-4)
    u = np.asarray(oracle.sum_class_vectors(X.tolist(), after))
    for first, offsets, features, values in stored if is_stored else []:
        owners = first + np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        np.testing.assert_allclose(values, u[owners, features], atol=1e-4)
    assert oracle.dual_of(X.tolist(), after, above, n, loss) >= dual - 1e-4 * (1 + abs(dual))


@given(st.data())
def test_products_of_siblings_are_those_of_all_pairs_of_a_group(data):
    X = data.draw(hnp.arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=eighths))
    groups = data.draw(st.lists(st.lists(st.integers(0, len(X) - 1), unique=True), min_size=1, max_size=4))
    lengths = np.asarray([len(group) for group in groups])
    offsets, ends = np.cumsum([0, *lengths]), np.cumsum([0, *lengths**2])
    documents = np.asarray([i for group in groups for i in group], dtype=np.int32)
    products, first = np.full(ends[-1], 99, dtype=np.float32), data.draw(st.integers(0, len(groups) - 1))
    listed = Pattern(offsets.astype(np.int64), documents, len(X))
    multiply_siblings_in_place(documents_of(X), listed, ends.astype(np.int64), first, len(groups), products)
    expected = [(X[group] @ X[group].T).ravel().tolist() for group in groups[first:]]
    assert products[ends[first] :].tolist() == [product for group in expected for product in group]
    assert np.all(products[: ends[first]] == 99)


# ---- steps ------------------------------------------------------------------------------------------------------------


def solve_one(loss, x, sign, cost, above, weight=1.0):
    """α and the certificate of a class with one pair."""
    pairs, certificate = pairs_of([[(0, sign, 0.0)]], [cost], [cost]), np.zeros((1, 4))
    solve_classes_in_place(
        documents_of([x]), native.Pairs(*pairs.arrays, 1), np.full(1, weight, dtype=np.float32),
        *(no_ancestors(1, len(x)) if above is None else one_ancestor([above])),
        np.zeros(1, dtype=np.int32), loss, 1e-6, 100, 0, certificate,
    )  # fmt: skip
    return float(pairs.alphas[0]), certificate[0]


magnitudes = st.floats(-2, 2).map(lambda power: float(np.float32(10**power)))


@pytest.mark.parametrize("loss", oracle.LOSSES)
@given(
    x=magnitudes, sign=st.sampled_from([1, -1]), cost=magnitudes, weight=st.sampled_from([0.5, 2.0]), score=st.none() | eighths
)
@settings(max_examples=80)
def test_one_pair_is_solved_as_a_scalar_optimizer_does(loss, x, sign, cost, weight, score):
    """Also where weights above move the margin before the first step."""
    above = None if score is None else [0.0, score]
    alpha, (primal, dual, stretch, _) = solve_one(loss, [x, 1.0], sign, cost / weight, above, weight)
    z, norm = sign * (score or 0.0), x * x + 1
    best = oracle.best_alpha(loss, z, norm, cost)
    assert alpha == pytest.approx(best, rel=2e-3, abs=1e-6 * cost)
    value = oracle.entropy_of(best, cost, loss) - best * z - 0.5 * best**2 * norm
    assert dual == pytest.approx(value, rel=1e-4, abs=1e-5 * cost)
    assert primal == pytest.approx(value, rel=1e-4, abs=1e-5 * cost)
    assert 1 <= stretch <= 1.05


@pytest.mark.parametrize("loss", oracle.LOSSES)
def test_a_pair_without_a_cost_stays_out(loss):
    alpha, (primal, dual, _, passes) = solve_one(loss, [1.0], 1, 1.0, None, weight=0.0)
    assert (alpha, primal, dual, passes) == (0, 0, 0, 0)


@pytest.mark.parametrize("loss", oracle.LOSSES)
def test_a_document_without_features_leaves_no_gap(loss):
    _, (primal, dual, _, passes) = solve_one(loss, [0.0], 1, 1.0, None)
    assert primal == pytest.approx(dual)
    assert passes < 100


@pytest.mark.parametrize("loss", oracle.LOSSES)
@pytest.mark.parametrize("n_above", [0, 1, 5])
@given(seed=st.integers(0, 100_000))
@settings(max_examples=15)
def test_features_that_no_document_of_a_class_has_change_nothing(loss, n_above, seed):
    """Where features are many, classes of few documents touch theirs alone, and classes in between touch all of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.3)
    sizes = rng.permutation([0, 1, 2, 3, 40])
    listed = [[(int(i), int(rng.choice([1, -1])), 0.0) for i in rng.permutation(40)[:size]] for size in sizes]
    W = np.repeat(rng.normal(size=(max(1, n_above), 12)), 5 // max(1, n_above), axis=0)

    def solve(n_more):
        pairs, found = pairs_of(listed), np.zeros((5, 4))
        wide, above = (np.hstack([part, np.full((len(part), n_more), more)]) for part, more in ((X, 0.0), (W, 7.0)))
        solve_classes_in_place(
            documents_of(wide), native.Pairs(*pairs.arrays, 40), np.ones(40, dtype=np.float32),
            *(one_ancestor(above) if n_above else no_ancestors(5, wide.shape[1])),
            np.arange(5, dtype=np.int32), loss, 1e-3, 100, seed, found,
        )  # fmt: skip
        return pairs.alphas.tolist(), found.tolist()

    assert solve(0) == solve(100) == solve(5000)


def test_features_are_numbered_by_falling_frequency_behind_the_bias():
    X = csr_array(np.asarray([[0, 1, 2], [0, 0, 3], [4, 0, 5]], dtype=np.float32))
    rows = arrange_rows(X, bias=True)
    made = csr_array((rows.values, rows.features, rows.offsets), shape=(3, 4)).toarray()
    assert rows.place.tolist() == [2, 3, 1]
    assert made.tolist() == [[1, 2, 0, 1], [1, 3, 0, 0], [1, 5, 4, 0]]
    assert rows.squared_norms.tolist() == [6, 10, 42]
    assert arrange_rows(X, bias=False).place.tolist() == [1, 2, 0]
