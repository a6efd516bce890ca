"""Text classifiers that go on learning, choose words, and take every kind of text."""

import numpy as np
import pytest
from sklearn.base import clone

from ramify import Taxonomy, TextClassifier, load
from ramify.decisions import SCut
from ramify.errors import InputError, LabelError
from ramify.features import TermSelector, Vectorizer, Vectors

TEXTS = [
    "sweet red apple from the orchard",
    "green apple pie with sugar",
    "yellow ripe banana bunch",
    "banana bread with ripe fruit",
    "rye bread with a dark crust",
    "white bread loaf and crust",
    "black tea from the hills",
    "green tea with lemon",
]
LABELS = ["food/fruit/apple"] * 2 + ["food/fruit/banana"] * 2 + ["food/bread"] * 2 + ["drink/tea"] * 2
MORE = ["roasted coffee beans", "coffee with hot milk", "crisp apple juice"]
MORE_LABELS = ["drink/coffee", "drink/coffee", "food/fruit/apple"]
COUNTING = ["nb", "shrinkage-nb", "pachinko-nb"]


@pytest.mark.parametrize("system", ["nb", "pachinko-nb"])
def test_pieces_equal_all_at_once_with_new_words_and_classes(system):
    pieces = TextClassifier(system).fit(TEXTS, LABELS).partial_fit(MORE, MORE_LABELS)
    whole = TextClassifier(system).fit(TEXTS + MORE, LABELS + MORE_LABELS)
    assert pieces.vectorizer_.terms_.tolist() == whole.vectorizer_.terms_.tolist()
    assert pieces.taxonomy_.names == whole.taxonomy_.names
    every = TEXTS + MORE + ["", "unknown words only"]
    np.testing.assert_allclose(pieces.predict_proba(every), whole.predict_proba(every), atol=1e-6)
    assert pieces.predict(["coffee"]).tolist() == ["drink/coffee"]
    assert pieces.figures_["documents"] == len(TEXTS) + len(MORE)


def test_shrinkage_counts_add_up_and_new_classes_are_found():
    pieces = TextClassifier("shrinkage-nb").fit(TEXTS, LABELS).partial_fit(MORE, MORE_LABELS)
    whole = TextClassifier("shrinkage-nb").fit(TEXTS + MORE, LABELS + MORE_LABELS)
    assert (pieces.learner_.counts_ != whole.learner_.counts_).nnz == 0
    assert pieces.predict(["coffee with milk"]).tolist() == ["drink/coffee"]


@pytest.mark.parametrize("system", COUNTING)
def test_a_saved_model_goes_on(system, tmp_path):
    TextClassifier(system).fit(TEXTS, LABELS).save(tmp_path / "model")
    straight = TextClassifier(system).fit(TEXTS, LABELS).partial_fit(MORE, MORE_LABELS)
    loaded = load(tmp_path / "model").partial_fit(MORE, MORE_LABELS)
    loaded.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(TEXTS + MORE), straight.predict_proba(TEXTS + MORE))


def test_partial_fit_may_come_first():
    first = TextClassifier("nb").partial_fit(TEXTS, LABELS)
    np.testing.assert_array_equal(first.predict_proba(MORE), TextClassifier("nb").fit(TEXTS, LABELS).predict_proba(MORE))


def test_a_given_taxonomy_is_not_added_to_by_labels():
    taxonomy = Taxonomy.from_paths(sorted(set(LABELS)))
    fitted = TextClassifier("nb", taxonomy).fit(TEXTS, LABELS)
    with pytest.raises(LabelError, match="'drink/coffee' is not in the taxonomy"):
        fitted.partial_fit(MORE, MORE_LABELS)
    assert fitted.predict(["tea"]).tolist() == ["drink/tea"]  # as it was
    larger = Taxonomy.from_paths(sorted({*LABELS, *MORE_LABELS}))
    assert fitted.partial_fit(MORE, MORE_LABELS, larger).predict(["coffee"]).tolist() == ["drink/coffee"]


def test_limited_vocabularies_stay_as_they_are():
    for vectorizer in (Vectorizer("counts", min_df=2), Vectorizer("counts", hashing=64), Vectorizer()):
        fitted = TextClassifier("nb", features=vectorizer).fit(TEXTS, LABELS)
        width = fitted.vectorizer_.n_features_out
        fitted.partial_fit(MORE, MORE_LABELS)
        assert fitted.vectorizer_.n_features_out == width


def test_systems_that_cannot_go_on_say_so():
    fitted = TextClassifier("svm").fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="system 'svm' trains on all documents at once"):
        fitted.partial_fit(MORE, MORE_LABELS)
    ruled = TextClassifier("nb", decision=SCut(at_least_one=True)).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="was fitted for the current nodes"):
        ruled.partial_fit(MORE, MORE_LABELS)
    with pytest.raises(InputError, match="3 texts but labels for 2"):
        TextClassifier("nb").fit(TEXTS, LABELS).partial_fit(MORE, MORE_LABELS[:2])


def test_labels_of_another_form_change_the_form_of_answers():
    fitted = TextClassifier("nb").fit(["red apple", "rye bread"], [1, 2]).partial_fit(["steel hammer"], ["tool"])
    assert fitted.predict(["hammer", "apple"]).tolist() == ["tool", "1"]
    fitted.partial_fit(["apple bread"], [["1", "2"]])
    assert fitted.predict(["hammer"]) == [["tool"]]


def test_texts_may_come_from_an_iterator_and_none_are_refused():
    fitted = TextClassifier("nb").fit(TEXTS, LABELS)
    assert fitted.partial_fit(iter(MORE), MORE_LABELS).predict(["coffee"]).tolist() == ["drink/coffee"]
    with pytest.raises(InputError, match="no labelled document"):
        fitted.partial_fit([], [])


def test_a_clone_of_a_loaded_model_chooses_words_again(tmp_path):
    selector = TermSelector(5, measure="chi2", join="sum")
    TextClassifier("nb", selector=selector).fit(TEXTS, LABELS).save(tmp_path / "model")
    again = clone(load(tmp_path / "model")).fit(TEXTS, LABELS)
    assert again.vectorizer_.n_features_out == 5


# ---- choosing words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["flat", "hierarchical"])
@pytest.mark.parametrize("vectorizer", [Vectorizer("counts"), Vectorizer(sublinear_tf=True), Vectorizer(hashing=256)], ids=str)
def test_words_that_tell_most_are_kept_and_weighed_as_if_there_were_no_others(scope, vectorizer, tmp_path):
    selector = TermSelector(6, scope=scope)
    fitted = TextClassifier("svm", features=vectorizer, selector=selector).fit(TEXTS, LABELS)
    assert fitted.vectorizer_.n_features_out == 6 == fitted.learner_.n_features_in_
    X = fitted.vectorizer_.transform(TEXTS)
    if vectorizer.weighting == "tf-idf":
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)))
        assert np.allclose(lengths[lengths > 0], 1)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_selection_is_the_selector_s_own():
    selector = TermSelector(5, measure="chi2", join="round-robin")
    fitted = TextClassifier("nb", selector=selector).fit(TEXTS, LABELS)
    vectorizer = Vectorizer("counts")
    X = vectorizer.fit_count(TEXTS)
    taxonomy = fitted.taxonomy_
    chosen = TermSelector(5, measure="chi2", join="round-robin", taxonomy=taxonomy).fit(X, taxonomy.encode(LABELS))
    assert fitted.vectorizer_.terms_.tolist() == vectorizer.terms_[chosen.columns_].tolist()
    assert not hasattr(selector, "columns_")  # the one given is not fitted


def test_glocal_words_go_to_learners_that_can_use_them():
    selector = TermSelector(2, scope="glocal", measure="chi2", join="max")
    fitted = TextClassifier("pachinko-nb", selector=selector).fit(TEXTS, LABELS)
    assert {len(words) for words in fitted.learner_.sets_.values()} <= {0, 1, 2}
    with pytest.raises(InputError, match="pachinko-nb"):
        TextClassifier("svm", selector=selector).fit(TEXTS, LABELS)


def test_vectors_are_selected_too(tmp_path):
    X = np.random.default_rng(0).poisson(0.5, (40, 20)).astype(np.float32)
    y = [["a/x", "a/y", "b"][i % 3] for i in range(40)]
    X[np.arange(40), np.arange(40) % 3] += 5
    fitted = TextClassifier("nb", features=Vectors(), selector=TermSelector(3)).fit(X, y)
    assert fitted.vectorizer_.selected_columns_.tolist() == [0, 1, 2]
    fitted.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(X).tolist() == fitted.predict(X).tolist()


def test_terms_of_any_transformer_can_be_selected():
    from sklearn.feature_extraction.text import CountVectorizer

    fitted = TextClassifier("nb", features=CountVectorizer(), selector=TermSelector(3)).fit(TEXTS, LABELS)
    assert fitted.vectorizer_.n_features_out == 3


# ---- every kind of text -------------------------------------------------------------------------------------------------

ODD_TEXTS = {
    "chinese": "苹果很甜 红苹果",
    "arabic": "الشاي الأخضر مع الليمون",
    "emoji": "🍎🍏👩‍👩‍👧‍👦 🍌",
    "empty": "",
    "spaces": " \t\n ",
    "stop words only": "the and of to",
    "null characters": "apple\0banana\0",
    "lone surrogate": "apple \ud800 pie",
    "one letter words": "a b c d",
    "capital sigma": "ΣΊΣΥΦΟΣ ΟΔΥΣΣΕΎΣ",
}


@pytest.mark.parametrize("system", [*COUNTING, "svm", "td-svm"])
def test_every_kind_of_text_gets_an_answer(system):
    fitted = TextClassifier(system, features=Vectorizer("counts", stop_words="english")).fit(TEXTS, LABELS)
    answers = fitted.predict(list(ODD_TEXTS.values()))
    assert set(answers.tolist()) <= set(fitted.taxonomy_.names)
    P = fitted.predict_proba(list(ODD_TEXTS.values()))
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P[:, [n for n, up in enumerate(fitted.taxonomy_.parent) if up < 0]].sum(axis=1), 1, atol=0.5)


@pytest.mark.parametrize("system", COUNTING)
def test_a_long_line_is_a_document_like_any_other(system):
    fitted = TextClassifier(system).fit(TEXTS, LABELS)
    assert fitted.predict(["ripe banana " * 900_000]).tolist() == ["food/fruit/banana"]  # 10 MB


@pytest.mark.parametrize("system", COUNTING)
def test_words_of_other_scripts_are_learnt(system):
    texts = ["苹果很甜 红苹果", "الشاي الأخضر", "苹果派 苹果很甜", "الشاي الأسود"]
    fitted = TextClassifier(system).fit(texts, ["苹果", "شاي", "苹果", "شاي"])
    assert fitted.predict(["苹果很甜", "الشاي"]).tolist() == ["苹果", "شاي"]


def test_texts_without_any_word_cannot_be_trained_on():
    with pytest.raises(InputError, match="have no words"):
        TextClassifier("shrinkage-nb").fit(["🍎", "", " "], ["a", "b", "a"])
