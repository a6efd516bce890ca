"""Blocks of features side by side."""

import json

import numpy as np
import pytest
from scipy.sparse import hstack
from sklearn.base import clone

import ramify
from ramify.errors import InputError, ModelError
from ramify.features import Characters, FeatureUnion, TermSelector, Vectorizer, Words
from ramify.features.union import choose_blocks

TEXTS = ["the red fox jumps", "a red cat sleeps", "the old dog barks loudly", "cats and dogs", "foxes jump over dogs"]


def test_a_union_is_its_blocks_side_by_side_with_their_weights():
    blocks = [Words(ngram_range=(1, 2)), Characters(2, 4)]
    union = FeatureUnion(blocks, [3.0, 4.0])
    X = union.fit_transform(TEXTS)
    expected = hstack([weight * clone(block).fit_transform(TEXTS) for block, weight in zip(blocks, (0.6, 0.8), strict=True)])
    np.testing.assert_allclose(X.toarray(), expected.toarray(), rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(X.toarray(), axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(union.transform(TEXTS).toarray(), X.toarray())
    np.testing.assert_array_equal(union.weight_counts(clone(union).fit_count(TEXTS)).toarray(), X.toarray())
    assert union.block_ends == [len(blocks[0].fit(TEXTS).terms_), X.shape[1]]


def test_iterators_are_read_once_for_all_blocks():
    union = FeatureUnion([Words(), Characters()])
    np.testing.assert_array_equal(union.fit_transform(iter(TEXTS)).toarray(), clone(union).fit_transform(TEXTS).toarray())
    assert union.transform(iter(TEXTS)).shape[0] == len(TEXTS)


def test_selected_columns_are_those_of_the_blocks():
    union = FeatureUnion([Words(), Characters(3, 3)]).fit(TEXTS)
    names, X = union.get_feature_names_out(), union.transform(TEXTS)
    kept = np.arange(1, X.shape[1], 2)
    union.select_columns(kept)
    assert union.get_feature_names_out().tolist() == names[kept].tolist()
    assert union.n_features_out == len(kept)
    words_only = FeatureUnion([Words(), Characters(3, 3)]).fit(TEXTS)
    words_only.select_columns(np.arange(2))
    assert len(words_only.blocks_) == 1


def test_terms_point_into_the_text():
    union, text = FeatureUnion([Words(), Characters(3, 3)]).fit(TEXTS), "A Red fox!"
    names = union.get_feature_names_out()
    found = {(text[start:end].lower(), names[column]) for start, end, column in union.locate(text)}
    assert {("red", "red"), ("fox", "fox"), ("red", '"red"'), ("fox", '"fox"')} <= found
    columns = union.transform([text]).indices.astype(np.int64)
    assert union.term_names(text, columns) == names[columns].tolist()


def test_blocks_suit_the_length_of_texts():
    def found(texts):
        return [(block.analyzer, block.ngram_range) for block in choose_blocks(texts)[0]]

    assert found(["three short words"] * 100) == [("word", (1, 2)), ("char_wb", (3, 4))]
    assert found(["word " * 100] * 100) == [("word", (1, 1)), ("word", (2, 2)), ("char_wb", (4, 4))]
    assert found(["word " * 300] * 100) == [("word", (1, 1)), ("char_wb", (4, 4))]
    assert found(["人工智能在医学中的应用越来越广泛"] * 100) == [("word", (1, 1)), ("char", (1, 3))]
    assert choose_blocks(["a b"] * 9, {"stop_words": "english"})[0][0].stop_words == "english"


@pytest.mark.parametrize(("n_texts", "limits"), [(20, [1, 1, 1]), (999, [1, 2, 2]), (1000, [1, 5, 3])])
def test_rare_pairs_and_n_grams_of_many_longer_texts_are_left_out(n_texts, limits):
    assert [block.min_df for block in choose_blocks(["word " * 60] * n_texts)[0]] == limits
    assert choose_blocks(["word " * 300] * n_texts)[0][1].min_df == limits[2]


def test_a_block_without_terms_is_left_out_unless_it_was_given():
    assert len(FeatureUnion().fit(["x y z", "y z"]).blocks_) == 1  # no words of two letters
    with pytest.raises(InputError, match="no words"):
        FeatureUnion([Words(), Characters()]).fit(["x y z", "y z"])
    with pytest.raises(InputError, match="no words"):
        FeatureUnion().fit(["", ""])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": []}, "features is"),
        ({"blocks": "words"}, "features is"),
        ({"blocks": [Words()], "weights": [1, 2]}, "weights is"),
        ({"blocks": [Words()], "weights": [0.0]}, "weights is"),
        ({"words": {"min_df": 0}}, "min_df is"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        FeatureUnion(**settings).fit(TEXTS)


def test_a_classifier_saves_loads_selects_and_explains_a_union(tmp_path):
    labels = ["fox", "cat", "dog", "dog", "fox"]
    union = FeatureUnion([Words(), Characters(2, 3)], [1.0, 0.5])
    clf = ramify.TextClassifier("svm", features=union, selector=TermSelector(20)).fit(TEXTS, labels)
    assert clf.vectorizer_.n_features_out == 20
    clf.save(tmp_path / "model")
    loaded = ramify.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(TEXTS), clf.predict_proba(TEXTS))
    assert loaded.explain(TEXTS[0]).words == clf.explain(TEXTS[0]).words
    assert ramify.TextClassifier("svm", features=[Words(), Characters()]).fit(TEXTS, labels).predict(TEXTS[:1]) == ["fox"]
    again = clone(loaded).fit(TEXTS, labels)
    np.testing.assert_allclose(again.predict_proba(TEXTS), clf.predict_proba(TEXTS), atol=1e-6)


@pytest.mark.parametrize("change", [{"weight": 0.0}, {"weight": "x"}, {"kind": "pickle"}])
def test_broken_states_are_refused(change):
    values, arrays = FeatureUnion([Words(), Vectorizer()]).fit(TEXTS).state()
    values = json.loads(json.dumps(values))
    assert FeatureUnion.from_state(values, arrays).n_features_out
    values["blocks"][0] |= change
    with pytest.raises(ModelError):
        FeatureUnion.from_state(values, arrays)
    with pytest.raises(ModelError):
        FeatureUnion.from_state({**values, "blocks": []}, arrays)
