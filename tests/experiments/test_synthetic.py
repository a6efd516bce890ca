import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.synthetic import N_FEATURES, RECIPES, Recipe, _draw, _grow_trees, make_cesa_bianchi
from ramify.errors import InputError
from ramify.taxonomy import expand_to_ancestors, most_specific

NAMES = sorted(RECIPES)
ROUNDING = 1e-6


def drawn(recipe, n_docs, drop_empty, seed):
    """x, v and the margins u·x, in double precision."""
    x, v, u = _draw(recipe, _grow_trees(), n_docs, drop_empty, np.random.default_rng(seed))
    return x, v, x.astype(np.float64) @ u.T.astype(np.float64), u


def draw_slowly(recipe, u, n_docs, rng):
    """The paper's steps, one document at a time; labels of documents, empty ones included."""
    parent = _grow_trees().parent
    labels = []
    while len(labels) < n_docs:
        x = rng.standard_normal(N_FEATURES)
        margins = u @ (x / np.linalg.norm(x))
        if (np.abs(margins) < recipe.least_margin).any():
            continue
        v = np.zeros(len(u), dtype=bool)
        for i in range(len(u)):
            if parent[i] < 0 or v[parent[i]]:
                v[i] = rng.random() < 1 / (1 + np.exp(-recipe.alpha * margins[i]))
        if not (v & (margins < recipe.least_positive_margin)).any():
            labels.append(v)
    return np.asarray(labels)


def paths_a_document(problem):
    return np.diff(most_specific(problem.Y, problem.taxonomy).indptr).mean()


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 1000), drop_empty=st.booleans(), n_docs=st.integers(1, 60))
@settings(max_examples=8)
def test_margins_and_labels_follow_the_recipe(name, seed, drop_empty, n_docs):
    recipe = RECIPES[name]
    x, v, margins, u = drawn(recipe, n_docs, drop_empty, seed)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1, rtol=1e-5)
    assert np.abs(margins).min() >= recipe.least_margin - ROUNDING
    assert margins[v].min(initial=1) >= recipe.least_positive_margin - ROUNDING
    assert v.any(axis=1).all() or not drop_empty


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_has_39_nodes_100_features_and_labels_closed_upward(name):
    problem = make_cesa_bianchi(name, n_docs=300, seed=2)
    taxonomy = problem.taxonomy
    assert (problem.X.shape, problem.X.dtype, problem.Y.shape) == ((300, 100), np.float32, (300, 39))
    assert problem.X.has_canonical_format
    assert (expand_to_ancestors(problem.Y, taxonomy) != problem.Y).nnz == 0
    assert taxonomy.is_tree
    assert np.bincount(taxonomy.depth).tolist() == [3, 9, 27]
    assert [len(taxonomy.children_of(node)) for node in range(12)] == [3] * 12


@pytest.mark.parametrize("name", NAMES)
def test_documents_without_a_label_stay_when_asked_for(name):
    has_label = np.diff(make_cesa_bianchi(name, n_docs=2000, drop_empty=False, seed=1).Y.indptr) > 0
    low, high = {"synth1": (0.35, 0.65), "synth2": (0.15, 0.35)}[name]
    assert low < has_label.mean() < high
    assert (np.diff(make_cesa_bianchi(name, n_docs=2000, seed=1).Y.indptr) > 0).all()


def test_without_any_least_margin_documents_are_uniform_on_the_sphere():
    x, _, _, u = drawn(Recipe(0, -1, 20), 50_000, False, 0)
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=0.003)
    np.testing.assert_allclose(N_FEATURES * x.T @ x / len(x), np.eye(N_FEATURES), atol=0.04)
    within = np.linalg.norm(x @ np.linalg.qr(u.T)[0], axis=1) ** 2  # a share of 39 in 100, by the law Beta(39/2, 61/2)
    assert abs(within.mean() - 0.39) < 0.002
    assert abs(within.var() - 0.39 * 0.61 / 51) < 0.0003


def test_labels_are_as_frequent_as_when_drawn_one_document_at_a_time():
    recipe = RECIPES["synth2"]
    _, v, _, u = drawn(recipe, 20_000, False, 5)
    slow = draw_slowly(recipe, u, 2000, np.random.default_rng(0))
    assert abs(v.sum(axis=1).mean() - slow.sum(axis=1).mean()) < 0.1
    np.testing.assert_allclose(v[:, :3].mean(axis=0), slow[:, :3].mean(axis=0), atol=0.03)


@pytest.mark.parametrize(("name", "low", "high"), [("synth1", 1.9, 2.25), ("synth2", 1.2, 1.4)])
def test_paths_a_document_are_as_the_docstring_says(name, low, high):
    assert low < paths_a_document(make_cesa_bianchi(name, n_docs=3000, seed=0)) < high


def test_a_seed_fixes_it():
    one, two, other = (make_cesa_bianchi("synth2", n_docs=100, seed=seed) for seed in (3, 3, 4))
    assert (one.X != two.X).nnz == 0
    assert (one.Y != two.Y).nnz == 0
    assert (one.X != other.X).nnz > 0


def test_unknown_names_and_sizes_that_cannot_be_are_refused():
    with pytest.raises(InputError, match="name is 'synth'; give 'synth1' or 'synth2'. Did you mean"):
        make_cesa_bianchi("synth")
    with pytest.raises(InputError, match="n_docs is 0; give at least one document"):
        make_cesa_bianchi(n_docs=0)
