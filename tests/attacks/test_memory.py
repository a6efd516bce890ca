"""Small files that say of themselves that they are large: they are refused, or take no more memory than what they hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from ramify import Taxonomy
from ramify.errors import ModelError, TaxonomyError
from ramify.features import Vectorizer, vectorizer
from ramify.learners.linear import weights as linear_weights
from ramify.learners.linear.weights import Weights
from ramify.taxonomy import hierarchy


def chain_of_units(n, joins=None):
    arrays = {"delta_offsets": np.zeros(n + 1, dtype=np.int64), "delta_features": np.zeros(0, dtype=np.int32)}
    arrays |= {"delta_values": np.zeros(0, dtype=np.float32), "unit_bias": np.zeros(n)}
    return arrays | {"unit_parent": np.arange(-1, n - 1, dtype=np.int32), "class_units": np.arange(n)} | (joins or {})


def test_a_chain_of_units_whose_paths_would_fill_the_memory_is_refused():
    assert Weights.from_arrays(chain_of_units(5_000), 3).n_classes == 5_000
    with pytest.raises(ModelError, match="too many units above them"):
        Weights.from_arrays(chain_of_units(50_000), 3)


def test_joins_that_add_every_unit_to_every_path_are_refused():
    n = 1_000
    joins = {"join_offsets": np.arange(n + 1) * n, "join_units": np.tile(np.arange(n, dtype=np.int32), n)}
    with pytest.raises(ModelError, match="too many units above them"):
        Weights.from_arrays(chain_of_units(n, joins), 3)


@pytest.fixture
def some_weights():
    rng = np.random.default_rng(0)
    deltas = csr_array(random_array((7, 300), density=0.02, rng=rng, dtype=np.float32))
    parent = np.asarray([-1, 0, 0, 1, 1, -1, 5], dtype=np.int32)
    return Weights(deltas, rng.normal(size=7), parent, np.asarray([2, 3, 4, 6]))


def test_leaving_out_features_without_weights_changes_no_score(some_weights, monkeypatch):
    X = csr_array(random_array((20, 300), density=0.1, rng=1, dtype=np.float32))
    assert not some_weights.is_hollow
    scores = some_weights.score(X)
    monkeypatch.setattr(linear_weights, "MAX_HOLLOW", 0)
    monkeypatch.setattr(linear_weights, "MOST_HOLLOW", 1)
    assert some_weights.is_hollow
    np.testing.assert_allclose(some_weights.score(X), scores, rtol=1e-6)


def test_the_weights_at_some_features_are_those_of_the_whole_row(some_weights):
    features = np.asarray([250, 3, 17, 3, 299, 0])
    for k in range(some_weights.n_classes):
        (w, bias), (found, same) = some_weights.of_class(k), some_weights.at_features(k, features)
        np.testing.assert_allclose(found, w[features], rtol=1e-6)
        assert same == bias


def test_selected_columns_among_very_many_are_those_among_few(monkeypatch):
    texts = ["red fox and cat", "blue cat", ""]
    made = Vectorizer(hashing=1 << 10, weighting="counts").fit(texts)
    made.select_columns(np.unique(made.transform(texts).indices).astype(np.int64)[1:])
    expected = made.transform(texts)
    monkeypatch.setattr(vectorizer, "WIDE", 1)
    np.testing.assert_array_equal(made.transform(texts).toarray(), expected.toarray())


def test_a_chain_of_nodes_whose_ancestors_would_fill_the_memory_is_refused():
    edges = [("0", None), *((str(k), str(k - 1)) for k in range(1, 10_000))]
    with pytest.raises(TaxonomyError, match=r"10,000 levels, too many for 10,000 nodes"):
        Taxonomy.from_edges(edges)


def test_a_path_whose_names_would_fill_the_memory_is_refused():
    with pytest.raises(TaxonomyError, match="the paths are too long"):
        Taxonomy.from_paths(["a/" * 100_000 + "b"])


def test_usual_taxonomies_of_any_size_are_not_refused(monkeypatch):
    monkeypatch.setattr(hierarchy, "MOST_ABOVE", 0)
    monkeypatch.setattr(hierarchy, "MOST_CHARACTERS", 0)
    assert len(Taxonomy.from_paths(["food/fruit/apple", "food/bread"])) == 4
