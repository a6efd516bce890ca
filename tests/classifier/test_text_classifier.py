import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import ramify
from ramify import Taxonomy, TextClassifier
from ramify.classifier.fitting import RULES
from ramify.classifier.loading import LEARNERS, VECTORIZERS
from ramify.data import Corpus
from ramify.decisions import Best
from ramify.errors import DataError, InputError, LabelError, TaxonomyError
from ramify.features import Vectorizer
from ramify.learners import MultinomialNaiveBayes
from ramify.systems import SYSTEMS, find_system
from ramify.workflows import PredictOptions, evaluate, predict_rows, train_classifier

TEXTS = [
    "sweet red apple",
    "green apple pie",
    "rye bread crust",
    "white bread loaf",
    "strong black tea",
    "tea with milk",
]
PATHS = ["food/fruit", "food/fruit", "food/bread", "food/bread", "drink/tea", "drink/tea"]


BY_NAME = "fit takes texts and labels, which are the first two arguments, but are not called X and y"
CALIBRATED = "calibrated probabilities of classes with close scores may be in another order than the scores"
EXPECTED = {
    "check_fit_score_takes_y": BY_NAME,
    "check_n_features_in_after_fitting": BY_NAME,
    "check_sample_weight_equivalence_on_dense_data": BY_NAME,
    "check_sample_weight_equivalence_on_sparse_data": BY_NAME,
}


def _expected_failures(estimator):
    return EXPECTED | ({"check_classifiers_train": CALIBRATED} if estimator.calibrate else {})


@parametrize_with_checks([TextClassifier(), TextClassifier("svm", calibrate=False)], expected_failed_checks=_expected_failures)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_learns_predicts_explains_and_comes_back_from_disk(system, tmp_path):
    clf = TextClassifier(system=system).fit(TEXTS, PATHS)
    assert clf.predict(["apple pie", "black tea"]).tolist() == ["food/fruit", "drink/tea"]
    assert clf.predict_proba(["apple pie"]).shape == (1, 5)
    assert clf.explain("apple pie").path == ("food", "fruit")
    clf.save(tmp_path / "model")
    assert ramify.load(tmp_path / "model").predict(["apple pie"]).tolist() == ["food/fruit"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_answers_do_not_depend_on_the_batch(system, shop):
    labels = [row if find_system(system).learner().supports_multi_label else row[:1] for row in shop.train.labels[:600]]
    clf = TextClassifier(system, shop.taxonomy).fit(shop.train.documents[:600], labels)
    texts = shop.test.documents[:40]
    together, probabilities = clf.predict(texts), clf.predict_proba(texts)
    for position, text in enumerate(texts):
        assert clf.predict([text])[0] == together[position]
        np.testing.assert_array_equal(clf.predict_proba([text])[0], probabilities[position])


def test_predictions_take_the_form_of_the_labels():
    one = TextClassifier().fit(TEXTS, PATHS).predict(TEXTS)
    assert isinstance(one, np.ndarray)
    many = TextClassifier().fit(TEXTS, [[path] for path in PATHS]).predict(TEXTS)
    assert many == [[path] for path in PATHS]
    arrows = TextClassifier().fit(TEXTS, [path.replace("/", " > ") for path in PATHS]).predict(TEXTS[:1])
    assert arrows.tolist() == ["food > fruit"]
    flat = TextClassifier().fit(TEXTS, ["f", "f", "b", "b", "t", "t"]).predict(TEXTS[:1])
    assert flat.tolist() == ["f"]
    taxonomy = Taxonomy.from_paths(PATHS)
    titles = TextClassifier(taxonomy=taxonomy).fit(TEXTS, [path.split("/")[1] for path in PATHS]).predict(TEXTS[:1])
    assert titles.tolist() == ["fruit"]


def test_inner_labels_several_labels_and_no_labels_can_be_learnt():
    labels = [["food/fruit", "drink/tea"], ["food"], [], ["food/bread"], ["drink/tea"], ["drink"]]
    clf = TextClassifier().fit(TEXTS, labels)
    assert all(isinstance(row, list) for row in clf.predict(TEXTS))
    assert clf.score(TEXTS, clf.predict(TEXTS)) == 1


def test_a_dag_can_be_learnt(diamond):
    clf = TextClassifier(taxonomy=diamond).fit(TEXTS, ["bottom", "bottom", "left", "left", "right", "right"])
    P = clf.predict_proba(TEXTS)
    assert np.allclose(P[:, diamond.index("top")], 1)
    assert np.all(P[:, diamond.index("left")] >= P[:, diamond.index("bottom")])


def test_parts_can_be_exchanged():
    clf = TextClassifier(
        features=Vectorizer("counts", ngram_range=(1, 2)),
        learner=MultinomialNaiveBayes(alpha=0.1),
        decision=Best(leaves_only=True),
    )
    assert clf.fit(TEXTS, PATHS).predict(TEXTS).tolist() == PATHS
    assert clf.learner_.alpha == 0.1
    assert clf.learner.taxonomy is None


def test_it_works_inside_scikit_learn():
    labels = np.asarray(PATHS)
    pipeline = Pipeline([("classifier", TextClassifier())])
    assert pipeline.fit(TEXTS, labels).predict(TEXTS).tolist() == PATHS
    texts, doubled = TEXTS * 2, np.asarray(PATHS * 2)
    assert cross_val_score(TextClassifier(), texts, doubled, cv=2).tolist() == [1, 1]
    grid = {"learner__alpha": [0.1, 1.0], "features__ngram_range": [(1, 1), (1, 2)]}
    base = TextClassifier(learner=MultinomialNaiveBayes(), features=Vectorizer("counts"))
    search = GridSearchCV(base, grid, cv=2).fit(texts, doubled)
    assert search.best_score_ == 1
    copy = clone(TextClassifier(taxonomy=Taxonomy.from_paths(PATHS), system="nb"))
    assert copy.get_params()["system"] == "nb"


def test_explanations_add_up(classifier, shop):
    for text in shop.test.documents[:20]:
        why = classifier.explain(text)
        assert sum(weight for _, weight in why.words) + why.prior == pytest.approx(why.margin)
        assert why.margin >= -1e-4
        assert list(why.probabilities) == sorted(why.probabilities, reverse=True)


@pytest.mark.parametrize(
    ("texts", "labels", "error", "message"),
    [
        (TEXTS, PATHS[:3], InputError, "6 texts but labels for 3"),
        (TEXTS, ["same"] * 6, LabelError, "at least two classes"),
        ([*TEXTS[:5], None], PATHS, InputError, "text 6 is null"),
        ("one text", ["a"], InputError, "a list of texts is needed"),
        (TEXTS, None, InputError, "y is None"),
        (TEXTS, [1.5] * 6, LabelError, r"label 1\.5"),
        ([], [], LabelError, "no document has a label"),
        (TEXTS, ["a/b", "a//b", "a/c", "a/b", "a/b", "a/b"], TaxonomyError, "empty part"),
    ],
)
def test_errors_are_one_sentence(texts, labels, error, message):
    with pytest.raises(error, match=message):
        TextClassifier().fit(texts, labels)


def test_an_unknown_system_or_a_label_outside_the_taxonomy_is_refused(food):
    with pytest.raises(InputError, match="system 'nbb' is unknown.*Did you mean 'nb'"):
        TextClassifier("nbb").fit(TEXTS, PATHS)
    with pytest.raises(LabelError, match="document 5: label 'drink/tea' is not in the taxonomy"):
        TextClassifier(taxonomy=food).fit(TEXTS, ["apple", "apple", "bread", "bread", "drink/tea", "drink"])
    with pytest.raises(NotFittedError):
        TextClassifier().predict(TEXTS)


def test_every_part_of_every_system_may_be_loaded():
    for system in SYSTEMS.values():
        assert system.vectorizer().kind in VECTORIZERS
        assert system.learner().kind in LEARNERS
        assert system.decision().kind in RULES
    parts = [m for _, m in inspect.getmembers(ramify.learners, inspect.isclass) if hasattr(m, "kind")]
    assert {part.kind for part in parts} == set(LEARNERS)


# ---- training from a corpus -------------------------------------------------------------------------------------------


def test_training_holds_out_reports_and_learns_once_more_from_everything(shop):
    trained = train_classifier(TextClassifier("nb"), shop.train, holdout=0.25, seed=1)
    assert trained.trained_on + trained.tested_on == len(shop.train)
    assert trained.refitted
    assert trained.classifier.figures_["documents"] == len(shop.train)
    assert trained.classifier.figures_["evaluation"] == trained.report.figures
    assert trained.report.documents == trained.tested_on


def test_a_test_corpus_takes_the_place_of_a_hold_out(shop):
    trained = train_classifier(TextClassifier("nb", shop.taxonomy), shop.train, shop.test)
    assert (trained.trained_on, trained.tested_on, trained.refitted) == (len(shop.train), len(shop.test), False)
    assert trained.report.as_dict() == evaluate(trained.classifier, shop.test).as_dict()


def test_without_a_share_nothing_is_tested(shop):
    trained = train_classifier(TextClassifier("nb"), shop.train, holdout=0)
    assert trained.report is None
    assert "evaluation" not in trained.classifier.figures_


def test_vectors_are_learnt_without_a_vectorizer(tmp_path):
    path = tmp_path / "docs.svm"
    path.write_text("".join(f"a/x 1:{i + 1}\nb/y 2:{i + 1}\n" for i in range(5)))
    corpus = ramify.data.read_corpus(path)
    trained = train_classifier(TextClassifier("nb"), corpus, holdout=0)
    trained.classifier.save(tmp_path / "model")
    assert ramify.load(tmp_path / "model").predict(corpus.documents).tolist() == ["a/x", "b/y"] * 5


def test_evaluating_on_nothing_is_refused(classifier):
    with pytest.raises(DataError, match="no labelled documents to evaluate on"):
        evaluate(classifier, Corpus("empty.csv", [], []))


def test_large_evaluations_go_without_probabilities(classifier, shop, monkeypatch):
    monkeypatch.setattr("ramify.metrics.evaluation.MAX_DENSE", 10)
    report = evaluate(classifier, shop.test)
    assert "document_auc" not in report.figures
    assert report.notes


def test_rows_stream_through_with_answers_and_reasons_in_place(classifier):
    from ramify.data import BadRow

    rows = [
        (2, {"t": "my parcel is late"}),
        (3, {"t": ""}),
        (4, BadRow("f", 4, "not UTF-8")),
        (5, {"t": "the tv has no picture"}),
    ]
    answers = list(predict_rows(classifier, iter(rows), "t", PredictOptions(top=3)))
    assert [answer.line for answer in answers] == [2, 3, 4, 5]
    assert [answer.problem for answer in answers] == [None, "the text is empty", "not UTF-8", None]
    assert len(answers[0].labels) == 1
    assert len(answers[0].others) == 2
    assert answers[0].labels[0][0] not in [label for label, _ in answers[0].others]


# ---- what scikit-learn's checks leave out for estimators of text --------------------------------------------------------


@pytest.mark.parametrize("estimator", [TextClassifier(), TextClassifier(features=Vectorizer("counts", stemmer="english"))])
def test_a_fitted_classifier_can_be_pickled_cloned_refitted_and_leaves_its_input_alone(estimator):
    texts, labels = list(TEXTS), list(PATHS)
    fitted = clone(estimator).fit(texts, labels)
    assert (texts, labels) == (TEXTS, PATHS)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(TEXTS).tolist() == fitted.predict(TEXTS).tolist()
    np.testing.assert_array_equal(clone(fitted).fit(TEXTS, PATHS).predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert fitted.fit(TEXTS[:4], PATHS[:4]).taxonomy_.names == ("food", "food/bread", "food/fruit")


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_matrix", "explain", "score", "save"])
def test_nothing_works_before_fit_and_it_says_so(method, tmp_path):
    arguments = {"explain": ["a"], "score": [["a"], ["b"]], "save": [tmp_path / "m"]}.get(method, [["a"]])
    with pytest.raises(NotFittedError):
        getattr(TextClassifier(), method)(*arguments)


def test_no_texts_get_no_answers():
    clf = TextClassifier().fit(TEXTS, PATHS)
    assert clf.predict([]).shape == (0,)
    assert clf.predict_proba([]).shape == (0, 5)
    assert clf.predict_matrix([]).shape == (0, 5)


def test_a_failed_fit_leaves_the_earlier_one_whole():
    clf = TextClassifier().fit(TEXTS, PATHS)
    with pytest.raises(LabelError):
        clf.fit(TEXTS, ["one"] * 6)
    assert clf.predict(TEXTS).tolist() == PATHS


def test_whole_numbers_come_back_as_whole_numbers():
    predicted = TextClassifier().fit(TEXTS, [1, 1, 2, 2, 3, 3]).predict(TEXTS)
    assert predicted.tolist() == [1, 1, 2, 2, 3, 3]


def test_a_taxonomy_may_be_named_by_its_file(tmp_path):
    (tmp_path / "tax.txt").write_text("food/fruit\nfood/bread\ndrink/tea\n")
    assert TextClassifier(taxonomy=tmp_path / "tax.txt").fit(TEXTS, PATHS).predict(TEXTS).tolist() == PATHS
    with pytest.raises(InputError, match="taxonomy is a dict; give a ramify.Taxonomy or the path"):
        TextClassifier(taxonomy={"a": "b"}).fit(TEXTS, PATHS)


def test_what_was_loaded_can_be_cloned_and_trains_the_same(tmp_path):
    clf = TextClassifier(features=Vectorizer("counts", ngram_range=(1, 2)), learner=MultinomialNaiveBayes(alpha=0.1)).fit(
        TEXTS, PATHS
    )
    clf.save(tmp_path / "m")
    again = clone(ramify.load(tmp_path / "m")).fit(TEXTS, PATHS)
    np.testing.assert_array_equal(again.predict_proba(TEXTS), clf.predict_proba(TEXTS))


def test_explanations_start_from_the_decision(food):
    texts = ["apple apple", "pear pear", "food food food", "food food", "drink"]
    labels = ["food/fruit/apple", "food/fruit/pear", "food", "food", "drink"]
    clf = TextClassifier(taxonomy=food, decision=Best(leaves_only=True)).fit(texts, labels)
    answer = clf.predict(["food food"])[0]
    assert "/".join(clf.explain("food food").path) == answer != "food"


def test_threads_share_the_work_of_predicting(monkeypatch, classifier, shop):
    seen = []
    blocks = [slice(i, i + 10) for i in range(0, 40, 10)]
    monkeypatch.setattr("ramify.learners.base.row_blocks", lambda *_: blocks)
    monkeypatch.setattr("ramify.learners.base.choose_executor", lambda jobs: Recorder(seen))
    classifier.predict(shop.test.documents[:40])
    assert seen == [4]


class Recorder:
    def __init__(self, seen):
        self.seen = seen

    def map(self, function, blocks):
        self.seen.append(len(blocks))
        return map(function, blocks)


def test_long_texts_are_classified_a_few_at_a_time(monkeypatch):
    from ramify.workflows import predict_stream

    monkeypatch.setattr(predict_stream, "BATCH_CHARACTERS", 30)
    fitted = TextClassifier("nb").fit(["red apple", "rye bread"], ["fruit", "bread"])
    sizes, transform = [], fitted.vectorizer_.transform
    monkeypatch.setattr(fitted.vectorizer_, "transform", lambda texts: sizes.append(len(texts)) or transform(texts))
    rows = [(line, {"text": text}) for line, text in enumerate(["apple", "bread " * 10, "apple", "apple", "bread"])]
    answers = list(predict_stream.predict_rows(fitted, rows, "text"))
    assert [answer.labels[0][0] for answer in answers] == ["fruit", "bread", "fruit", "fruit", "bread"]
    assert sizes == [2, 3]
