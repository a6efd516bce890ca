"""Weights in shards: cut, kept, mapped, and searched as the whole is."""

import itertools
import mmap
import os
import pickle
import re
from copy import copy, deepcopy
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import shards as oracle
from scipy.sparse import csc_array, csr_array, issparse
from strategies import trees

from ramify import Taxonomy
from ramify.data import make_web_directory
from ramify.errors import InputError, ModelError
from ramify.learners import OneVsRestLogistic, OneVsRestSVM, RecursiveLogistic, RecursiveSVM, TopDownSVM
from ramify.learners.linear import candidates, dual_solver, shards
from ramify.learners.linear.candidates import Signatures
from ramify.learners.linear.problem import arrange_rows
from ramify.learners.linear.shards import (
    Shard,
    ShardedWeights,
    cut_evenly,
    index_weights,
    open_shard,
    search,
    take_classes,
    take_signatures,
    write_shard,
)
from ramify.learners.linear.weights import Weights
from ramify.parallel import SerialExecutor, choose_executor
from ramify.persistence import open_array_file, write_array_file
from ramify.taxonomy import most_specific

LEARNERS = [OneVsRestSVM, OneVsRestLogistic, RecursiveSVM, RecursiveLogistic]
TREE = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/z/deep", "c"])
DAG = Taxonomy.from_edges([("t", None), ("l", "t"), ("r", "t"), ("b", "l"), ("b", "r"), ("e", "l"), ("f", "r"), ("g", "f")])

# sums and products of a few of these are exact in 32 bits, so that equal means equal
eighths = st.integers(-16, 16).map(lambda x: x / 8)


@st.composite
def models(draw):
    """Weights of a forest of units, many of them zero or equal, documents, and stretches of classes."""
    parents = draw(trees(max_nodes=8))
    n_units, n_features = len(parents), draw(st.integers(1, 4))
    deltas = draw(hnp.arrays(np.float32, (n_units, n_features), elements=st.just(0.0) | eighths))
    bias = draw(hnp.arrays(np.float64, n_units, elements=st.just(0.0) | eighths))
    units = draw(st.lists(st.integers(0, n_units - 1), min_size=1, max_size=n_units, unique=True))
    parent = np.asarray([above[0] if above else -1 for above in parents], dtype=np.int32)
    weights = Weights(csr_array(deltas), bias, parent, np.asarray(sorted(units), dtype=np.int64))
    X = draw(hnp.arrays(np.float32, (draw(st.integers(0, 4)), n_features), elements=st.just(0.0) | eighths))
    cuts = sorted(draw(st.sets(st.integers(1, len(units) - 1)))) if len(units) > 1 else []
    return weights, csr_array(X), [slice(a, b) for a, b in itertools.pairwise([0, *cuts, len(units)])]


def split_weights(weights, stretches):
    return [take_classes(weights, stretch) for stretch in stretches]


def in_shards(weights, stretches):
    return [Shard.by_weights(part, index_weights(part)) for part in split_weights(weights, stretches)]


def whole(weights):
    return [Shard.by_weights(weights, index_weights(weights))]


def table_of(index, n_features):
    """The index as classes × features."""
    table = np.zeros((index.n_classes, n_features), dtype=np.float32)
    for f in range(n_features):
        here = slice(*index.offsets[f : f + 2])
        table[index.classes[here], f] = index.weights[here]
    return table


# ---- cutting --------------------------------------------------------------------------------------------------------------


@given(models())
def test_every_class_has_the_same_weights_in_its_shard_and_no_unit_is_unused(model):
    weights, _, stretches = model
    parts = split_weights(weights, stretches)
    found = [part.of_class(k) for part in parts for k in range(part.n_classes)]
    for k, (w, bias) in enumerate(found):
        expected, expected_bias = weights.of_class(k)
        np.testing.assert_array_equal(w, expected)
        assert bias == expected_bias
    assert len(found) == weights.n_classes
    for part in parts:
        assert (part.parent < np.arange(len(part.parent))).all()
        assert set(part.paths.indices.tolist()) == set(range(len(part.parent)))


@given(st.integers(1, 40), st.integers(1, 50))
def test_even_class_ranges_follow_one_another_and_differ_by_one_class_at_most(n_classes, n_shards):
    stretches = cut_evenly(n_classes, n_shards)
    assert [k for stretch in stretches for k in range(stretch.start, stretch.stop)] == list(range(n_classes))
    sizes = [stretch.stop - stretch.start for stretch in stretches]
    assert len(sizes) == min(n_classes, n_shards)
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("n_shards", [0, -1, 10_001, 2.5, "2", True])
def test_an_invalid_number_of_shards_is_refused(n_shards):
    with pytest.raises(InputError, match="give a whole number from 1 to 10,000"):
        cut_evenly(5, n_shards)


def test_a_shard_with_more_weights_than_stay_mapped_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "MOST_WEIGHTS", 3)
    weights = Weights(csr_array(np.ones((1, 3), dtype=np.float32)), np.zeros(1), np.asarray([-1], np.int32), np.asarray([0]))
    with pytest.raises(InputError, match="a shard has 3 weights; make more shards, of fewer than 3 each"):
        write_shard(tmp_path / "shard", weights)
    assert not list(tmp_path.iterdir())


# ---- the index ------------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.integers(-40, 80), min_size=4, max_size=4, unique=True), min_size=1, max_size=5),
    st.sampled_from([1, 2, 9]),
)
def test_the_index_holds_the_largest_weights_of_every_class(rows, most):
    table = np.asarray(rows, dtype=np.float32)
    weights = Weights(csr_array(table), np.zeros(len(rows)), np.full(len(rows), -1, np.int32), np.arange(len(rows)))
    before, shards.TOP_FEATURES = shards.TOP_FEATURES, most
    try:
        found = table_of(index_weights(weights), 4)
    finally:
        shards.TOP_FEATURES = before
    assert found.tolist() == [oracle.top_features(row, most, shards.SMALLEST) for row in rows]


# ---- searching ------------------------------------------------------------------------------------------------------------


@given(models(), st.integers(1, 9), st.integers(0, 3))
def test_a_search_over_shards_equals_the_oracle(model, width, fewer):
    weights, X, stretches = model
    k, parts = max(1, width - fewer), in_shards(*model[::2])
    known = [weights.of_class(c) for c in range(weights.n_classes)]
    table, biases = np.asarray([w for w, _ in known]), [bias for _, bias in known]
    strong = np.concatenate([table_of(part.index, weights.n_features) for part in parts])
    told = [list(zip(strong[s].tolist(), table[s].tolist(), biases[s], strict=True)) for s in stretches]
    classes, scores = search(X, parts, k, width, SerialExecutor())
    expected = oracle.search(X.toarray().tolist(), told, k, width)
    found = [
        [(c, s) for c, s in zip(*row, strict=True) if c >= 0] for row in zip(classes.tolist(), scores.tolist(), strict=True)
    ]
    assert found == expected
    assert classes.shape == scores.shape == (X.shape[0], k)
    assert (scores[classes < 0] == -np.inf).all()


@given(models(), st.integers(1, 9))
def test_what_is_found_does_not_depend_on_how_a_model_is_cut(model, width):
    weights, X, stretches = model
    for found, expected in zip(
        search(X, in_shards(weights, stretches), width, width, SerialExecutor()),
        search(X, whole(weights), width, width, SerialExecutor()),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)


@given(models())
def test_a_beam_as_wide_as_all_classes_scores_every_class_as_the_whole_does(model):
    weights, X, stretches = model
    classes, scores = shards.score_likeliest(X, in_shards(weights, stretches), weights.n_classes, SerialExecutor())
    np.testing.assert_array_equal(classes, np.tile(np.arange(weights.n_classes), (X.shape[0], 1)))
    np.testing.assert_array_equal(scores, weights.score(X))


def test_blocks_and_threads_change_nothing(monkeypatch):
    made = make_web_directory(30, 200, seed=1)
    fitted = RecursiveSVM(made.taxonomy).fit(made.X, made.Y)
    parts = in_shards(fitted.weights_, cut_evenly(30, 4))
    expected = search(made.X, parts, 3, 5, SerialExecutor())
    monkeypatch.setattr(shards, "ROWS", 7)
    for found, before in zip(search(made.X, parts, 3, 5, choose_executor(2)), expected, strict=True):
        np.testing.assert_array_equal(found, before)


# ---- files ----------------------------------------------------------------------------------------------------------------


def base_of(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base.obj


@settings(max_examples=30)
@given(models(), st.booleans())
def test_a_shard_is_the_same_after_loading(tmp_path_factory, model, is_fast):
    weights, X, _ = model
    path = tmp_path_factory.mktemp("shards") / "shard.safetensors"
    index = index_weights(weights)
    write_shard(path, weights, index if is_fast else None)
    found = open_shard(path)
    assert found.is_fast == is_fast
    for name, array in weights.arrays().items():
        np.testing.assert_array_equal(found.weights.arrays()[name], array)
    for name, array in index.to_arrays().items():
        np.testing.assert_array_equal(found.index.to_arrays()[name], array)
    expected = search(X, [(Shard.by_signatures if is_fast else Shard.by_weights)(weights, index)], 2, 3, SerialExecutor())
    for array, wanted in zip(search(X, [found], 2, 3, SerialExecutor()), expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_the_weights_stay_memory_mapped(tmp_path):
    made = make_web_directory(40, 300, seed=1)
    fitted = RecursiveSVM(made.taxonomy).fit(made.X, made.Y)
    write_shard(tmp_path / "shard", fitted.weights_)
    opened = ShardedWeights.open([tmp_path / "shard"])
    search(made.X, opened.shards, 1, 10, SerialExecutor())
    shard = opened.shards[0]
    deltas, bias, _ = shard.weights.along_paths  # what the kernel that scores is given
    _, (_, features, values, _) = deltas.__reduce__()
    mapped = {"features": features, "values": values, "bias": bias, "index": shard.index.classes}
    mapped |= {"weights": shard.index.weights, "offsets": shard.index.offsets}
    mapped |= {"rows": shard.weights.deltas.data, "columns": shard.weights.deltas.indices}
    assert {name: type(base_of(array)) for name, array in mapped.items()} == dict.fromkeys(mapped, mmap.mmap)
    assert not vars(shard.weights).keys() & {"_table", "_by_feature"}


def resident():
    with open("/proc/self/status") as file:
        return 1024 * int(re.search(r"RssAnon:\s+(\d+)", file.read())[1])


def test_mapping_and_searching_take_little_memory_beside_the_file(tmp_path):
    try:
        resident()
    except (OSError, TypeError):
        pytest.skip("this system does not tell how much memory is anonymous")
    rng = np.random.default_rng(0)
    n_classes, n_features, each = 2000, 20_000, 2000
    features = np.sort(np.stack([rng.choice(n_features, each, replace=False) for _ in range(n_classes)]), axis=1)
    values = rng.random(n_classes * each).astype(np.float32)
    deltas = csr_array((values, features.ravel().astype(np.int32), np.arange(0, n_classes * each + 1, each)))
    write_shard(
        tmp_path / "shard", Weights(deltas, np.zeros(n_classes), np.full(n_classes, -1, np.int32), np.arange(n_classes))
    )
    X = csr_array(deltas[:200])
    del deltas, values, features
    size, before = (tmp_path / "shard").stat().st_size, resident()
    opened = ShardedWeights.open([tmp_path / "shard"])
    classes, _ = search(X, opened.shards, 1, 10, SerialExecutor())
    assert size > 32_000_000
    assert resident() - before < size / 3
    assert (classes[:, 0] == np.arange(200)).all()


def shard_arrays():
    made = make_web_directory(6, 40, seed=1)
    fitted = RecursiveSVM(made.taxonomy).fit(made.X, made.Y)
    return fitted.weights_.arrays() | index_weights(fitted.weights_).to_arrays("index")


SPOILT = {
    "missing": lambda a: None,
    "another type": lambda a: a.astype(np.int16 if a.dtype.kind == "i" else np.float16),
    "2-d": lambda a: a[None, :],
    "shorter": lambda a: a[:-1],
    "too large": lambda a: np.append(a[:-1], np.iinfo(a.dtype).max if a.dtype.kind == "i" else np.inf).astype(a.dtype),
}


@pytest.mark.parametrize("spoilt", SPOILT)
@pytest.mark.parametrize("name", ["delta_offsets", "delta_values", "unit_parent", "class_units", "index_offsets", "index_classes", "index_weights"])  # fmt: skip
def test_a_shard_whose_arrays_do_not_fit_is_refused_with_its_name(tmp_path, name, spoilt):
    arrays = shard_arrays()
    changed = arrays | {name: SPOILT[spoilt](arrays[name])}
    write_array_file(tmp_path / "shard", {key: array for key, array in changed.items() if array is not None})
    with pytest.raises(ModelError, match="shard.*train the model again") as caught:
        open_shard(tmp_path / "shard")
    assert "\n" not in str(caught.value)


def test_a_shard_without_classes_and_shards_of_two_models_are_refused(tmp_path):
    arrays = shard_arrays()
    nothing = {"class_units": np.zeros(0, dtype=np.int64), "index_offsets": np.zeros_like(arrays["index_offsets"])}
    nothing |= {name: arrays[name][:0] for name in ("index_classes", "index_weights")}
    write_array_file(tmp_path / "empty", arrays | nothing)
    with pytest.raises(ModelError, match="empty is a shard without classes"):
        open_shard(tmp_path / "empty")
    for number, n_features in enumerate((3, 4)):
        weights = Weights(
            csr_array((1, n_features), dtype=np.float32), np.zeros(1), np.asarray([-1], np.int32), np.asarray([0])
        )
        write_shard(tmp_path / f"{number}", weights)
    with pytest.raises(ModelError, match="not of one model"):
        ShardedWeights.open([tmp_path / "0", tmp_path / "1"])
    write_shard(tmp_path / "1", Weights(csr_array((1, 3), dtype=np.float32), np.zeros(1), np.asarray([-1], np.int32), np.asarray([0])),
                Signatures(np.zeros(4, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 1))  # fmt: skip
    with pytest.raises(ModelError, match="their modes differ"):
        ShardedWeights.open([tmp_path / "0", tmp_path / "1"])


# ---- learners -------------------------------------------------------------------------------------------------------------


def problem(taxonomy, several, n_features=40):
    rng = np.random.default_rng(0)
    X = csr_array((rng.random((60, n_features)) * (rng.random((60, n_features)) < 0.2)).astype(np.float32))
    rows = [rng.choice(len(taxonomy), size=rng.integers(1, 3) if several else 1, replace=False) for _ in range(60)]
    return X, [[taxonomy.names[node] for node in row] for row in rows]


@cache
def fitted_once(learner, is_tree, several):
    taxonomy = TREE if is_tree else DAG
    return learner(taxonomy).fit(*problem(taxonomy, several))


def cut(learner, directory, n_shards):
    """The same learner with its weights in files of shards."""
    values, arrays, files = learner.state_in_shards(n_shards)
    for number, file in enumerate(files):
        file.write_to(directory / f"{number}")
    mapped = [open_array_file(directory / f"{number}") for number in range(len(files))]
    return type(learner).from_state(learner.taxonomy_, values, arrays, mapped)


def with_unknown(X):
    return csr_array(np.concatenate([X.toarray(), np.zeros((1, X.shape[1]), dtype=np.float32)]))


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("is_tree", [True, False])
@pytest.mark.parametrize("several", [True, False])
@pytest.mark.parametrize("n_shards", [1, 3, 100])
def test_a_learner_in_shards_predicts_as_in_one_piece_if_its_beam_is_wide_enough(tmp_path, learner, is_tree, several, n_shards):
    one = fitted_once(learner, is_tree, several)
    made = cut(one, tmp_path, n_shards)
    assert len(made.weights_.shards) == min(n_shards, len(one.class_nodes_))
    assert made.weights_.n_classes == len(one.class_nodes_) <= made.beam_
    X = with_unknown(problem(one.taxonomy_, several)[0])
    np.testing.assert_allclose(made.scores(X), one.scores(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(made.predict_proba(X), one.predict_proba(X), rtol=1e-4, atol=1e-5)
    for found, expected in zip(made.search(X, 3, 50), one.search(X, 3, 50), strict=True):
        np.testing.assert_array_equal(found, expected)
    nodes, scores = made.top_k(X, 2)
    np.testing.assert_allclose(scores, one.top_k(X, 2)[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(np.take_along_axis(made.scores(X), nodes, axis=1), scores)
    assert (most_specific(made.predict(X), one.taxonomy_).indices == nodes[:, 0]).all()
    for node in one.class_nodes_.tolist():
        assert made.top_terms(node, 5) == one.top_terms(node, 5)
        for found, expected in zip(made.contributions(X[[0]], node), one.contributions(X[[0]], node), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("several", [True, False])
def test_sparse_probabilities_are_those_of_dense_scores(tmp_path, several):
    made = cut(fitted_once(RecursiveSVM, False, several), tmp_path, 2)
    made.beam_ = 3
    X = with_unknown(problem(DAG, several)[0])
    parts = [(few, made.to_probabilities(few)) for _, few in made.map_candidate_scores(X, lambda few: few)]
    few, P = parts[0]
    assert issparse(few)
    assert (np.diff(few.indptr) == 3).all()
    dense = made.scores(X)
    np.testing.assert_array_equal(np.isfinite(dense).sum(axis=1), 3)
    np.testing.assert_allclose(P.toarray(), made.to_probabilities(dense), rtol=1e-6)
    np.testing.assert_array_equal(few.toarray(), np.nan_to_num(dense, nan=0.0))


def test_classes_without_a_score_have_probability_zero_and_the_others_sum_to_one(tmp_path):
    made = make_web_directory(60, 400, seed=1)
    one = RecursiveSVM(made.taxonomy).fit(made.X, made.Y)
    sharded = cut(one, tmp_path, 4)
    sharded.beam_ = 5
    S, P = sharded.scores(made.X), sharded.predict_proba(made.X)
    looked_at = np.isfinite(S)
    assert (looked_at.sum(axis=1) == 5).all()
    leaves = made.taxonomy.is_leaf
    assert (P[:, leaves][~looked_at[:, leaves]] == 0).all()
    np.testing.assert_allclose(P[:, leaves].sum(axis=1), 1, rtol=1e-5)
    found, expected = sharded.predict(made.X), one.predict(made.X)
    assert (found != expected).nnz <= 0.02 * expected.nnz


@pytest.fixture
def candidate_pairs_only(monkeypatch):
    monkeypatch.setattr(dual_solver, "SMALL", 0)
    monkeypatch.setattr(dual_solver, "CANDIDATES", 1)
    monkeypatch.setattr(dual_solver, "CANDIDATES", 1)


@pytest.mark.usefixtures("candidate_pairs_only")
@pytest.mark.parametrize("learner", [OneVsRestSVM, RecursiveSVM])
def test_a_fast_model_in_shards_has_the_candidates_of_the_model_in_one_piece(tmp_path, learner):
    made = make_web_directory(60, 400, seed=1)
    one = learner(made.taxonomy, mode="fast").fit(made.X, made.Y)
    assert one.n_candidates_ > 0
    sharded = cut(one, tmp_path, 7)
    X = with_unknown(made.X)
    for found, expected in zip(sharded.search(X, 3, 9), one.search(X, 3, 9), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert (sharded.predict(X) != one.predict(X)).nnz == 0
    S, whole_scores = sharded.scores(X), one.scores(X)
    looked_at = np.isfinite(S) & (S > -1e4)
    assert looked_at.any(axis=1)[:-1].all()
    np.testing.assert_array_equal(S[looked_at], whole_scores[looked_at])
    assert not looked_at[-1].any()
    assert (sharded.predict_proba(X)[-1] == 0).all()  # a document that is near to nothing


@given(st.integers(0, 6), st.integers(0, 6))
def test_the_signatures_of_a_class_range_are_those_of_its_classes(a, b):
    start, stop = sorted((a, b))
    table = np.arange(24, dtype=np.float32).reshape(6, 4) % 5
    weights = Weights(csr_array(table), np.zeros(6), np.full(6, -1, np.int32), np.arange(6))
    found = take_signatures(index_weights(weights), slice(start, stop))
    assert found.n_classes == stop - start
    np.testing.assert_array_equal(table_of(found, 4), table_of(index_weights(weights), 4)[start:stop])


@pytest.mark.parametrize("beam", [1, 0, 2.5, "10", True, None])
def test_an_invalid_beam_is_refused(tmp_path, beam):
    made = cut(fitted_once(RecursiveSVM, True, False), tmp_path, 2)
    made.beam_ = beam
    with pytest.raises(InputError, match="give a whole number of classes to score, 2 or more"):
        made.scores(problem(TREE, False)[0])


def test_the_beam_is_saved_with_the_model(tmp_path):
    made = cut(fitted_once(RecursiveSVM, True, False), tmp_path, 2)
    made.beam_ = 3
    again = RecursiveSVM.from_state(TREE, *made.state(), shards=made.shard_files())
    assert again.beam_ == 3
    X = problem(TREE, False)[0]
    np.testing.assert_array_equal(again.scores(X), made.scores(X))


@pytest.mark.parametrize("is_fast", [False, True])
def test_shards_that_have_no_file_yet_are_written_when_the_model_is(tmp_path, is_fast):
    one = fitted_once(RecursiveSVM, True, False)
    parts = split_weights(one.weights_, cut_evenly(one.weights_.n_classes, 2))
    make = Shard.by_signatures if is_fast else Shard.by_weights
    made = copy(one)
    made.weights_, made.n_candidates_ = ShardedWeights(tuple(make(part, index_weights(part)) for part in parts)), 5 * is_fast
    for number, file in enumerate(made.shard_files()):
        file.write_to(tmp_path / f"{number}")
    mapped = [open_array_file(tmp_path / f"{number}") for number in range(2)]
    again = RecursiveSVM.from_state(TREE, *made.state(), shards=mapped)
    X = with_unknown(problem(TREE, False)[0])
    np.testing.assert_array_equal(again.scores(X), made.scores(X))


def test_only_allowed_classes_are_candidates(tmp_path):
    one = fitted_once(RecursiveSVM, True, False)
    made = cut(one, tmp_path, 3)
    made.beam_ = 2
    allowed = np.isin(np.arange(len(TREE)), one.class_nodes_[::2])
    X = with_unknown(problem(TREE, False)[0])
    S = made.among(allowed).scores(X)
    assert not np.isfinite(S[:, ~allowed]).any()
    assert (np.isfinite(S[:, allowed]).sum(axis=1) == 2).all()
    assert (np.isfinite(made.scores(X)).sum(axis=1) == 2).all()
    assert np.isfinite(made.scores(X)[:, ~allowed]).any()


def test_shards_that_are_not_those_of_the_model_are_refused(tmp_path):
    one = fitted_once(RecursiveSVM, True, False)
    made = cut(one, tmp_path, 3)
    values, arrays = made.state()
    files = made.shard_files()
    refused = [
        (RecursiveSVM, values, files[:2], "has 2 shards where 3 were written"),
        (RecursiveSVM, values, [*files, files[0]], "has 4 shards where 3 were written"),
        (RecursiveSVM, values, [], "has 0 shards where 3 were written"),
        (RecursiveSVM, values | {"shards": [1, 2, 3]}, files, "classes or features differ"),
        (RecursiveSVM, values | {"n_features": 3}, files, "classes or features differ"),
        (RecursiveSVM, values | {"n_candidates": 5}, files, "their mode differs"),
        (RecursiveSVM, values | {"beam": 0}, files, "2 or more"),
        (TopDownSVM, TopDownSVM(TREE).fit(*problem(TREE, False)).state()[0] | {"shards": values["shards"]}, files, "where none were"),
    ]  # fmt: skip
    for learner, told, given_files, message in refused:
        with pytest.raises((ModelError, InputError), match=message):
            learner.from_state(TREE, told, arrays, given_files)


def test_a_taxonomy_of_one_class_has_one_shard(tmp_path):
    weights = Weights(csr_array(np.ones((1, 2), np.float32)), np.zeros(1), np.asarray([-1], np.int32), np.asarray([0]))
    write_shard(tmp_path / "only", weights)
    classes, scores = search(csr_array(np.eye(2, dtype=np.float32)), [open_shard(tmp_path / "only")], 2, 5, SerialExecutor())
    assert classes.tolist() == [[0, -1], [0, -1]]
    assert scores.tolist() == [[1.0, -np.inf], [1.0, -np.inf]]


def test_a_shard_that_is_sent_as_a_path_is_the_same_one_or_refused(tmp_path):
    made = make_web_directory(n_leaves=12, n_docs=120, seed=0)
    weights = OneVsRestSVM(made.taxonomy).fit(made.X, made.Y).weights_
    write_shard(tmp_path / "a", weights, None)
    sent = pickle.dumps(open_shard(tmp_path / "a"))
    one, other = pickle.loads(sent), pickle.loads(sent)
    assert one.file.data is other.file.data  # it is opened once
    np.testing.assert_array_equal(one.weights.deltas.toarray(), weights.deltas.toarray())
    write_shard(tmp_path / "b", weights, None)
    os.utime(tmp_path / "b", ns=(1, 1))
    os.replace(tmp_path / "b", tmp_path / "a")
    with pytest.raises(ModelError, match="was replaced meanwhile"):
        pickle.loads(sent)
    os.unlink(tmp_path / "a")
    with pytest.raises(ModelError, match=r"is gone .* must find it under the same path"):
        pickle.loads(sent)


def test_a_model_in_shards_can_be_copied_after_its_files_are_gone(tmp_path):
    fitted = RecursiveSVM(TREE, C=1.0).fit(np.eye(4), ["a/x", "a/y", "b/x", "c"])
    write_shard(tmp_path / "a", fitted.weights_)
    weights = ShardedWeights.open([tmp_path / "a"])
    (tmp_path / "a").unlink()
    assert deepcopy(weights).of_class(0)[0].tolist() == weights.of_class(0)[0].tolist()


def test_a_shard_that_was_replaced_before_it_is_sent_is_not_taken_for_the_one_that_was_opened(tmp_path):
    made = make_web_directory(n_leaves=12, n_docs=120, seed=0)
    weights = OneVsRestSVM(made.taxonomy).fit(made.X, made.Y).weights_
    write_shard(tmp_path / "a", weights, None)
    opened = open_shard(tmp_path / "a")
    write_shard(tmp_path / "b", weights, None)
    os.utime(tmp_path / "b", ns=(1, 1))
    os.replace(tmp_path / "b", tmp_path / "a")
    with pytest.raises(ModelError, match="was replaced meanwhile"):
        pickle.loads(pickle.dumps(opened))


def test_the_index_of_a_very_frequent_feature_lists_the_classes_with_the_largest_weights(monkeypatch):
    rng = np.random.default_rng(0)
    X, own = csr_array(rng.random((60, 8)).astype(np.float32)), csc_array(np.repeat(np.eye(20, dtype=bool), 3, axis=0))
    rows = arrange_rows(X)
    whole = candidates.learn_signatures(rows, own, SerialExecutor())
    monkeypatch.setattr(candidates, "LONGEST", 4)
    short = candidates.learn_signatures(rows, own, SerialExecutor())
    lengths = np.diff(whole.offsets)
    assert lengths.max() > 4
    assert np.diff(short.offsets).tolist() == np.minimum(lengths, 4).tolist()
    for a, b, c, d in zip(whole.offsets[:-1], whole.offsets[1:], short.offsets[:-1], short.offsets[1:], strict=True):
        largest = np.sort(np.argsort(-whole.weights[a:b])[:4])
        assert short.classes[c:d].tolist() == whole.classes[a:b][largest].tolist()
        assert short.weights[c:d].tolist() == whole.weights[a:b][largest].tolist()
