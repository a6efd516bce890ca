"""Taxonomies learned for flat categories."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import clustering as oracle
from scipy.sparse import csr_array

from ramify import Taxonomy, read_taxonomy, write_taxonomy
from ramify.errors import InputError, RamifyError
from ramify.taxonomy import learn_groups, learn_taxonomy
from ramify.taxonomy.learning import LINKAGES, MAX_CATEGORIES, check_number, refuse_paths

SEEDS = st.integers(0, 2**32 - 1)


def corpus(seed, max_categories=12, max_documents=30):
    """Random sparse documents without ties; every category has one, and some documents have several or none."""
    rng = np.random.default_rng(seed)
    n_categories = int(rng.integers(2, max_categories + 1))
    n_documents = int(rng.integers(n_categories, max_documents + 1))
    X = rng.random((n_documents, 15)) * (rng.random((n_documents, 15)) < 0.6)
    Y = rng.random((n_documents, n_categories)) < 0.15
    Y[:n_categories] = np.eye(n_categories)  # so no two categories have the same documents
    X[:n_categories, 0] += 0.1  # no category is without words
    return X, Y, [f"c{i:02}" for i in rng.permutation(n_categories)]


def groups_of(taxonomy, categories):
    """The sets of categories that share a parent."""
    by_parent = {}
    for name in categories:
        by_parent.setdefault(int(taxonomy.parent[taxonomy.index(name)]), set()).add(name)
    return {frozenset(group) for group in by_parent.values()}


@pytest.mark.parametrize("linkage", LINKAGES)
@given(seed=SEEDS, data=st.data())
def test_the_cut_equals_merging_by_hand(linkage, seed, data):
    X, Y, names = corpus(seed, max_categories=8, max_documents=16)
    n_groups = data.draw(st.integers(2, len(names)))
    vectors = oracle.centroids(X.tolist(), Y.tolist(), len(names))
    slow = {frozenset(names[i] for i in group) for group in oracle.partition(vectors, n_groups, linkage)}
    assert groups_of(learn_taxonomy(X, Y, names, n_groups, linkage=linkage), names) == slow


@given(linkage=st.sampled_from(LINKAGES), sample=st.sampled_from([None, 1, 2]), seed=SEEDS)
def test_the_order_of_documents_and_categories_does_not_matter(linkage, sample, seed):
    X, Y, names = corpus(seed)
    rng = np.random.default_rng(seed + 1)
    rows, columns = rng.permutation(len(X)), rng.permutation(len(names))
    moved = X[rows], Y[rows][:, columns], [names[i] for i in columns]
    settings = {"n_groups": 2, "linkage": linkage, "sample": sample, "seed": 3}
    assert learn_groups(*moved, **settings) == learn_groups(X, Y, names, **settings)


@given(SEEDS, st.data())
def test_the_groups_of_each_level_are_as_many_as_asked_for_and_lie_within_those_above(seed, data):
    X, Y, names = corpus(seed)
    counts = sorted(data.draw(st.sets(st.integers(2, len(names)), min_size=1, max_size=3)))
    learnt = learn_groups(X, Y, names, counts)
    taxonomy = learnt.taxonomy
    assert [int(np.sum(~taxonomy.is_leaf & (taxonomy.depth == level))) for level in range(len(counts))] == counts
    assert {taxonomy.names[i] for i in np.flatnonzero(taxonomy.is_leaf)} == set(names)
    assert set(taxonomy.depth[taxonomy.is_leaf].tolist()) == {len(counts)}
    assert taxonomy.is_tree
    coarse = [group for group in learnt.groups if group.level == 0]
    assert {frozenset(group.categories) for group in coarse} == groups_of(learn_taxonomy(X, Y, names, counts[0]), names)
    for group in learnt.groups:
        below = {taxonomy.names[i] for i in taxonomy.descendants_of(taxonomy.index(group.name)) if taxonomy.is_leaf[i]}
        assert below == set(group.categories)


@given(SEEDS)
def test_groups_are_numbered_by_their_documents(seed):
    X, Y, names = corpus(seed)
    learnt = learn_groups(X, Y, names, 2)
    assert [group.name for group in learnt.groups] == ["group-1", "group-2"]
    for group in learnt.groups:
        columns = [names.index(name) for name in group.categories]
        assert group.documents == int(Y[:, columns].any(axis=1).sum())
        sizes = Y[:, columns].sum(axis=0).tolist()
        assert sizes == sorted(sizes, reverse=True)
    assert learnt.groups[0].documents >= learnt.groups[1].documents


@given(SEEDS, st.integers(1, 3))
def test_a_seed_gives_the_same_groups_again(seed, sample):
    X, Y, names = corpus(seed)
    settings = {"n_groups": 2, "sample": sample, "seed": seed}
    assert learn_groups(X, Y, names, **settings) == learn_groups(csr_array(X), csr_array(Y), names, **settings)


def test_seeds_draw_different_documents_and_a_large_sample_takes_all():
    rng = np.random.default_rng(0)
    X, Y = rng.random((400, 5)), np.repeat(np.eye(8), 50, axis=0)
    names = list("abcdefgh")
    drawn = {learn_taxonomy(X, Y, names, 3, sample=1, seed=seed) for seed in range(10)}
    assert len(drawn) > 1
    assert learn_groups(X, Y, names, 3, sample=50) == learn_groups(X, Y, names, 3)


def test_like_categories_go_together_and_telling_features_say_why():
    X = np.asarray([[3, 1, 0, 0], [2, 1, 0, 0], [0, 0, 1, 5], [0, 0, 2, 5], [0, 0, 3, 5]], dtype=float)
    Y = np.asarray([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]])
    learnt = learn_groups(X, Y, ["pear", "apple", "bus", "car"], 2)
    assert learnt.taxonomy.names == ("group-1", "bus", "car", "group-2", "apple", "pear")
    assert [group.categories for group in learnt.groups] == [("car", "bus"), ("apple", "pear")]
    assert [group.top_features for group in learnt.groups] == [(3, 2), (0, 1)]


def test_equal_distances_are_joined_in_the_order_of_names():
    X = Y = np.eye(4)
    names = ["d", "b", "a", "c"]
    for linkage in LINKAGES:
        assert groups_of(learn_taxonomy(X, Y, names, 3, linkage=linkage), names) == {
            frozenset(group) for group in ("ab", "c", "d")
        }


@pytest.mark.parametrize("linkage", LINKAGES)
def test_equal_distances_stay_equal_in_any_order_of_documents(linkage):
    """Six categories on a ring: each has the same documents with the features moved on, so several pairs are equally near."""
    rng = np.random.default_rng(0)
    documents = rng.random((7, 18))
    X = np.concatenate([np.roll(documents, 3 * category, axis=1) for category in range(6)])
    Y = np.repeat(np.eye(6), 7, axis=0)
    orders = [rng.permutation(len(X)) for _ in range(20)]
    assert len({learn_taxonomy(X[order], Y[order], list("abcdef"), 5, linkage=linkage) for order in orders}) == 1


def test_as_many_groups_as_asked_for_stand_even_where_all_distances_are_equal():
    taxonomy = learn_taxonomy(np.ones((6, 2)), np.eye(6), list("abcdef"), 4)
    assert len(taxonomy.roots) == 4


def test_a_document_of_two_categories_counts_for_both():
    X, Y = [[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert groups_of(learn_taxonomy([*X, [0, 0, 5]], [*Y, [0, 1, 1]], list("abc"), 2), "abc") == {
        frozenset("a"),
        frozenset("bc"),
    }


def test_the_length_of_a_document_does_not_matter():
    X, Y, names = corpus(5)
    longer = X * np.random.default_rng(0).uniform(0.5, 9, size=(len(X), 1))
    assert learn_taxonomy(longer, Y, names, 2) == learn_taxonomy(X, Y, names, 2)


def test_the_matrices_given_stay_as_they_were():
    X = csr_array((np.asarray([1.0, 2.0, 0.0, 3.0]), np.asarray([2, 0, 1, 1]), np.asarray([0, 2, 4])), shape=(2, 3))
    before = X.data.tolist(), X.indices.tolist()
    learn_taxonomy(X, np.eye(2), ["a", "b"], 2)
    assert (X.data.tolist(), X.indices.tolist()) == before


def test_a_category_without_words_is_far_from_all_others():
    X, Y = [[1, 0.1], [1, 0.2], [0, 0]], np.eye(3)
    assert groups_of(learn_taxonomy(X, Y, list("abc"), 2), "abc") == {frozenset("ab"), frozenset("c")}


def test_a_group_of_one_keeps_its_category_below_it(tmp_path):
    taxonomy = learn_taxonomy([[1, 0], [0, 1]], np.eye(2), ["a", "b"], 2)
    assert taxonomy.names == ("group-1", "a", "group-2", "b")
    write_taxonomy(taxonomy, tmp_path / "t.tsv")
    assert read_taxonomy(tmp_path / "t.tsv") == taxonomy


def test_a_group_that_a_finer_level_does_not_split_has_one_group_below_it():
    X = [[1, 0, 0], [1, 0.1, 0], [0, 0, 1], [0, 1, 0.2]]
    taxonomy = learn_taxonomy(X, np.eye(4), list("abcd"), (2, 3))
    assert taxonomy.names == ("group-1", "group-1.1", "a", "b", "group-2", "group-2.1", "c", "group-2.2", "d")


def test_groups_are_not_called_like_categories():
    taxonomy = learn_taxonomy(np.eye(3), np.eye(3), ["group-2", "learned-group-1", "x"], 2)
    assert {taxonomy.names[i] for i in taxonomy.roots} == {"learned-learned-group-1", "learned-learned-group-2"}


BAD = {
    "one category": ({"Y": [[1]] * 3, "names": ["a"]}, "there is 1 category"),
    "no category": ({"Y": np.zeros((3, 0)), "names": []}, "there are no categories"),
    "names there twice": ({"names": ["a", "b", "a"]}, "'a'"),
    "an empty name": ({"names": ["a", "b", ""]}, "name"),
    "other documents": ({"X": np.eye(4)}, "X has 4 rows, Y has 3 rows and 3 columns"),
    "other columns": ({"names": ["a", "b"]}, "there are 2 names"),
    "a row of vectors": ({"X": [1, 2, 3]}, "X is not a matrix"),
    "missing values": ({"X": [[np.nan, 1], [0, 1], [1, 0]]}, "not finite; fill in missing values"),
    "a category without documents": ({"Y": [[1, 0, 0], [0, 0, 1], [0, 0, 1]]}, "category 'b' has no documents"),
    "too many groups": ({"n_groups": 4}, "4 groups are more than the 3 categories"),
    "one group": ({"n_groups": 1}, "the number of groups is 1; give 2 or more"),
    "no groups": ({"n_groups": ()}, "the number of groups is missing"),
    "no number of groups": ({"n_groups": None}, "the number of groups is None"),
    "half a group": ({"n_groups": 2.5}, "the number of groups is 2.5"),
    "groups in words": ({"n_groups": "two"}, "the number of groups is 'two'"),
    "levels that do not rise": ({"n_groups": (3, 2)}, "the numbers of groups are 3,2; each level needs more"),
    "an unknown linkage": ({"linkage": "wart"}, "linkage is 'wart'; give one of ward, .* Did you mean 'ward'"),
    "no sample": ({"sample": 0}, "sample is 0"),
    "a seed below zero": ({"seed": -1}, "seed is -1"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_grouped_is_refused(change, message):
    given = {"X": np.eye(3), "Y": np.eye(3), "names": ["a", "b", "c"], "n_groups": 2, **change}
    with pytest.raises(RamifyError, match=message):
        learn_taxonomy(given.pop("X"), given.pop("Y"), given.pop("names"), **given)


def test_too_many_categories_are_refused_with_the_size_of_their_distances():
    check_number(MAX_CATEGORIES, 4)
    with pytest.raises(InputError, match=r"20,000 categories, whose distances would take 1\.6 GB; at most 10,000"):
        check_number(20_000, 4)
    names = [str(i) for i in range(MAX_CATEGORIES + 1)]
    with pytest.raises(InputError, match="10,001 categories"):
        learn_taxonomy(np.zeros((1, 1)), np.zeros((1, len(names))), names)


def test_labels_that_are_paths_are_refused():
    refuse_paths(["TCP/IP", "fonts", "mice"])
    with pytest.raises(InputError, match="labels such as 'a/b' are paths joined by '/', so they already form a tree"):
        refuse_paths(["a/b", "a/c", "d"])


def test_a_learnt_taxonomy_holds_the_categories_as_labels():
    taxonomy = learn_taxonomy(np.eye(3), np.eye(3), ["a/b", "c", "d"], 2)
    assert isinstance(taxonomy, Taxonomy)
    assert taxonomy.decode(taxonomy.encode(["a/b", "c"])) == [["a/b"], ["c"]]
