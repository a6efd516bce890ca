"""Transformers and classifiers of scikit-learn as parts of a classifier, and what a model file may hold of them."""

import sys
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import ComplementNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from some_texts import LABELS, TEXTS

import ramify
from ramify import TextClassifier
from ramify.errors import InputError, LabelError, ModelError
from ramify.features import TermSelector, Transformer
from ramify.learners import ScikitLearner
from ramify.persistence.skops_parts import dump_estimator, load_estimator

TRANSFORMERS = [
    CountVectorizer(),
    TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)),
    HashingVectorizer(n_features=64),
    make_pipeline(TfidfVectorizer(), TruncatedSVD(5, random_state=0)),
    make_pipeline(TfidfVectorizer(), SelectKBest(chi2, k=8)),
]
CLASSIFIERS = [LogisticRegression(), LinearSVC(), GaussianNB(), ComplementNB(), RidgeClassifier(), Perceptron()]
CLASSIFIERS += [CalibratedClassifierCV(LinearSVC(), cv=2)]


ON_DENSE = make_pipeline(FunctionTransformer(csr_array.toarray, accept_sparse=True), KNeighborsClassifier(algorithm="kd_tree"))


def name(part):
    return type(part).__name__


@parametrize_with_checks([Transformer(StandardScaler())])
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("features", TRANSFORMERS, ids=name)
def test_any_transformer_makes_features_also_after_loading(features, tmp_path):
    fitted = TextClassifier("svm", features=features).fit(TEXTS, LABELS)
    assert fitted.predict(TEXTS).tolist() == LABELS
    fitted.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert again.explain(TEXTS[0]) == fitted.explain(TEXTS[0])
    assert again.fit(TEXTS, LABELS).predict(TEXTS).tolist() == LABELS


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=name)
def test_any_classifier_is_a_learner_also_after_loading(learner, tmp_path):
    fitted = TextClassifier("svm", learner=learner).fit(TEXTS, LABELS)
    assert fitted.predict(TEXTS).tolist() == LABELS
    P = fitted.predict_proba(TEXTS)
    food = fitted.taxonomy_.index("food")
    below = P[:, fitted.taxonomy_.children_of(food)].sum(axis=1)
    np.testing.assert_allclose(P[:, food], below, rtol=1e-5)
    fitted.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(TEXTS), P)
    assert again.fit(TEXTS, LABELS).predict(TEXTS).tolist() == LABELS
    why = fitted.explain(TEXTS[0])
    assert (why.path, why.words, why.additive) == (("food", "fruit"), [], False)
    assert why.margin > 0


def test_probabilities_are_those_of_the_classifier():
    fitted = TextClassifier("svm", learner=LogisticRegression(), calibrate=False, classes="labels").fit(TEXTS, LABELS)
    X = fitted.vectorizer_.transform(TEXTS)
    expected = LogisticRegression().fit(X, np.array(LABELS)).predict_proba(X)
    np.testing.assert_allclose(fitted.predict_proba(TEXTS), expected, rtol=1e-4)


def test_vectors_go_through_a_transformer(tmp_path):
    X = TfidfVectorizer().fit_transform(TEXTS).toarray()
    fitted = TextClassifier("svm", features=StandardScaler(), learner=GaussianNB()).fit(X, LABELS)
    assert fitted.n_features_in_ == X.shape[1]
    fitted.save(tmp_path / "model")
    assert ramify.load(tmp_path / "model").predict(X).tolist() == LABELS
    with pytest.raises(InputError, match="StandardScaler made no features of the documents: X has 3 features"):
        fitted.predict(X[:, :3])


def test_parameters_of_these_parts_are_set_by_name():
    given = TextClassifier("svm", features=CountVectorizer(), learner=LogisticRegression())
    best = GridSearchCV(given, {"features__ngram_range": [(1, 2)], "C": [0.5]}, cv=2).fit(TEXTS, LABELS).best_estimator_
    assert best.learner_.estimator_.C == 0.5
    assert "red apple" in best.vectorizer_.get_feature_names_out()
    by_dictionary = TextClassifier("svm", learner=LogisticRegression(), params={"C": 0.5}).fit(TEXTS, LABELS)
    assert by_dictionary.learner_.estimator_.C == 0.5


def test_terms_of_a_transformer_can_be_selected(tmp_path):
    fitted = TextClassifier("nb", features=CountVectorizer(), selector=TermSelector(6)).fit(TEXTS, LABELS)
    assert len(fitted.vectorizer_.get_feature_names_out()) == fitted.vectorizer_.n_features_out == 6
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(ramify.load(tmp_path / "model").predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def test_weights_reach_a_classifier_that_takes_them():
    weights = np.array([1.0] * 23 + [5.0])
    fitted = TextClassifier("svm", learner=LogisticRegression()).fit(TEXTS, LABELS, sample_weight=weights)
    without = TextClassifier("svm", learner=LogisticRegression()).fit(TEXTS, LABELS)
    assert not np.array_equal(fitted.learner_.estimator_.coef_, without.learner_.estimator_.coef_)
    with pytest.raises(InputError, match="KNeighborsClassifier takes no weights of documents; leave sample_weight out"):
        TextClassifier("svm", learner=KNeighborsClassifier()).fit(TEXTS, LABELS, sample_weight=weights)


def test_several_labels_are_refused():
    with pytest.raises(LabelError, match="a classifier of scikit-learn takes one label per document"):
        TextClassifier("svm", learner=LogisticRegression()).fit(TEXTS, [[label, "drink/tea"] for label in LABELS])


def test_what_has_no_scores_is_refused():
    with pytest.raises(InputError, match="SVC has neither|estimator is"):
        ScikitLearner(estimator=StandardScaler()).fit(np.eye(4), ["a", "b", "a", "b"])


# ---- model files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parts",
    [
        {"features": make_pipeline(TfidfVectorizer(), FunctionTransformer(lambda X: X))},
        {"features": TfidfVectorizer(tokenizer=lambda text: text.split(), token_pattern=None)},
        {"learner": RandomForestClassifier(3, random_state=0)},
        {"features": make_pipeline(TfidfVectorizer(), TruncatedSVD(3)), "learner": ON_DENSE},
        {"learner": SVC(kernel="linear")},
    ],
    ids=["a function", "a tokenizer", "trees", "neighbours", "sparse arrays"],
)
def test_what_could_not_be_loaded_is_not_saved(parts, tmp_path):
    fitted = TextClassifier("svm", **parts).fit(TEXTS, LABELS)
    assert len(fitted.predict(TEXTS)) == 24
    with pytest.raises(InputError, match="cannot be saved.*use a part of Ramify"):
        fitted.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_unsafe_type_in_a_file_is_refused_before_anything_is_made():
    from skops import io

    made = []

    class Tells:
        def __setstate__(self, state):
            made.append(state)

    Tells.__qualname__ = "Tells"
    sys.modules[__name__].Tells = Tells
    data = np.frombuffer(io.dumps(Tells()), dtype=np.uint8)
    with pytest.raises(ModelError, match="Tells, which is not safe to load"):
        load_estimator(data)
    assert made == []


@pytest.mark.parametrize("stored", [np.zeros(9, np.uint8), np.zeros(9), np.zeros((3, 3), np.uint8), np.zeros(0, np.uint8)])
def test_damaged_bytes_are_refused(stored):
    with pytest.raises(ModelError, match="train the model again"):
        load_estimator(stored)


def test_an_archive_that_unpacks_to_more_than_it_has_is_refused():
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", " " * 10_000_000)
    with pytest.raises(ModelError, match="its archive is packed"):
        load_estimator(np.frombuffer(packed.getvalue(), dtype=np.uint8))


def test_a_part_of_another_kind_is_refused(tmp_path):
    fitted = TextClassifier("svm", learner=LogisticRegression(), features=CountVectorizer()).fit(TEXTS, LABELS)
    values, arrays = fitted.learner_.state()
    for wrong in (StandardScaler().fit(np.eye(3)), LogisticRegression().fit(np.eye(3), [0, 1, 2]), {"a": 1}):
        with pytest.raises(ModelError, match="train the model again"):
            ScikitLearner.from_state(fitted.taxonomy_, values, {**arrays, "estimator": dump_estimator(wrong)})
    values, arrays = fitted.vectorizer_.state()
    with pytest.raises(ModelError, match="not made by a transformer"):
        Transformer.from_state(values, {**arrays, "estimator": dump_estimator(LogisticRegression())})
    with pytest.raises(ModelError, match="number of features"):
        Transformer.from_state({"features": 0}, arrays)


def test_without_skops_saving_and_loading_say_what_to_install(tmp_path, monkeypatch):
    fitted = TextClassifier("svm", learner=LogisticRegression()).fit(TEXTS, LABELS)
    fitted.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "skops", None)
    with pytest.raises(InputError, match=r"saving a model with LogisticRegression needs skops: pip install 'ramify\[skops\]'"):
        fitted.save(tmp_path / "other")
    with pytest.raises(ModelError, match=r"need skops: pip install 'ramify\[skops\]'"):
        ramify.load(tmp_path / "model")
