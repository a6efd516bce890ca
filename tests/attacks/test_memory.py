"""Small files that say of themselves that they are large: they are refused, or take no more memory than what they hold."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from ramify import Taxonomy
from ramify.errors import ModelError, TaxonomyError
from ramify.features import Vectorizer, vectorizer
from ramify.learners.linear import weights as linear_weights
from ramify.learners.linear.weights import Weights
from ramify.taxonomy import ancestor_matrix, bounds, edges


def chain_of_units(n, joins=None):
    arrays = {"delta_offsets": np.zeros(n + 1, dtype=np.int64), "delta_features": np.zeros(0, dtype=np.int32)}
    arrays |= {"delta_values": np.zeros(0, dtype=np.float32), "unit_bias": np.zeros(n)}
    return arrays | {"unit_parent": np.arange(-1, n - 1, dtype=np.int32), "class_units": np.arange(n)} | (joins or {})


def test_a_chain_of_units_whose_paths_would_fill_the_memory_is_refused():
    assert Weights.from_arrays(chain_of_units(2_000), 3).n_classes == 2_000
    with pytest.raises(ModelError, match="too many units above them"):
        Weights.from_arrays(chain_of_units(50_000), 3)


def test_joins_that_add_every_unit_to_every_path_are_refused():
    n = 1_000
    joins = {"join_offsets": np.arange(n + 1) * n, "join_units": np.tile(np.arange(n, dtype=np.int32), n)}
    with pytest.raises(ModelError, match="too many units above them"):
        Weights.from_arrays(chain_of_units(n, joins), 3)


def test_joins_of_flat_units_and_classes_with_the_same_weights_are_refused(monkeypatch):
    arrays = chain_of_units(400) | {"unit_parent": np.full(400, -1, dtype=np.int32)}
    joins = {"join_offsets": np.arange(401) * 400, "join_units": np.tile(np.arange(400, dtype=np.int32), 400)}
    assert Weights.from_arrays(arrays | joins, 3).n_classes == 400
    monkeypatch.setattr(linear_weights, "MOST_STEPS", 100_000)
    with pytest.raises(ModelError, match="too many units above them"):
        Weights.from_arrays(arrays | joins, 3)
    with pytest.raises(ModelError, match="two classes of the linear model have the same weights"):
        Weights.from_arrays(arrays | {"class_units": np.zeros(400, dtype=np.int64)}, 3)


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
    for name in ("MOST_ABOVE", "MOST_CHARACTERS"):
        monkeypatch.setattr(bounds, name, 0)
    monkeypatch.setattr(edges, "MOST_CHARACTERS", 0)
    assert len(Taxonomy.from_paths(["food/fruit/apple", "food/bread"])) == 4


def hub(n):
    """Roots above one node above leaves: few edges, and n * n pairs of a leaf and a root."""
    edges = [(f"r{k}", None) for k in range(n)] + [("hub", f"r{k}") for k in range(n)]
    return edges + [(f"l{k}", "hub") for k in range(n)]


def test_nodes_with_very_many_ancestors_are_refused():
    assert len(Taxonomy.from_edges(hub(200))) == 401
    with pytest.raises(TaxonomyError, match="pairs of a node and an ancestor, too many for 12,001 nodes"):
        Taxonomy.from_edges(hub(6_000))


@given(st.integers(1, 12).flatmap(lambda n: st.lists(st.sets(st.integers(0, n)), min_size=n, max_size=n)), st.integers(0, 80))
def test_ancestors_are_counted_block_by_block_as_they_are(above, most):
    edges = []
    for node, parents in enumerate(above):
        edges += [(str(node), str(parent)) for parent in parents if parent < node] or [(str(node), None)]
    dag = Taxonomy.from_edges(edges)
    expected = ancestor_matrix(dag).sum() - len(dag)
    with patch.object(bounds, "BLOCK", 3):
        found = bounds._n_above(dag, most)
    assert found == expected if expected <= most else found > most
    assert bounds._n_above_at_most(dag) >= expected


@pytest.mark.parametrize("field", ["name", "title"])
def test_one_very_long_name_among_many_is_refused(field):
    nodes = [{"name": f"n{k}", "parents": []} for k in range(20_000)]
    nodes[7][field] = "a" * 50_000
    with pytest.raises(TaxonomyError, match=rf"the {field} 'aaa.*' has 50,000 characters"):
        Taxonomy.from_state({"nodes": nodes})


def test_a_separator_or_titles_that_make_paths_very_long_are_refused():
    nodes = [{"name": str(k), "parents": [str(k - 1)] if k else []} for k in range(1_000)]
    assert len(Taxonomy.from_state({"nodes": nodes})) == 1_000
    with pytest.raises(TaxonomyError, match="the separator has 1,000,000 characters"):
        Taxonomy.from_state({"nodes": nodes, "separator": ">" * 1_000_000})
    with pytest.raises(TaxonomyError, match="the path to the node '999…' has"):
        Taxonomy.from_state({"nodes": [{**node, "title": "a" * 100} for node in nodes]})
