"""scikit-learn's tools around a classifier: scores, folds, ensembles, weights and metadata."""

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, cross_val_score, learning_curve, permutation_test_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from some_texts import LABELS, PATHS, TEXTS

import ramify
from ramify import Taxonomy, TextClassifier
from ramify.classifier.class_columns import label_nodes
from ramify.decisions import IsotonicSmooth
from ramify.errors import InputError, LabelError
from ramify.features import FeatureUnion
from ramify.systems import SYSTEMS

ARRAY = np.array(LABELS)
ORDER = ["drink/tea", "food/bread", "food/fruit"]


def made(system="svm", **params):
    return TextClassifier(system, classes="labels", **params)


# ---- classes, scores and probabilities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_columns_of_labels_are_in_sorted_order_and_probabilities_sum_to_one(system, tmp_path):
    fitted = made(system).fit(TEXTS, LABELS)
    assert fitted.classes_.tolist() == ORDER
    P = fitted.predict_proba(TEXTS)
    assert P.shape == (24, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-5)
    assert fitted.classes_[P.argmax(axis=1)].tolist() == LABELS
    assert fitted.classes_[fitted.decision_function(TEXTS).argmax(axis=1)].tolist() == LABELS
    fitted.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert again.classes_.tolist() == ORDER
    np.testing.assert_array_equal(again.predict_proba(TEXTS), P)


def test_columns_of_nodes_are_in_taxonomy_order():
    fitted = TextClassifier("svm").fit(TEXTS, LABELS)
    assert fitted.classes_.tolist() == list(fitted.taxonomy_.names)
    S = fitted.decision_function(TEXTS)
    assert S.shape == (24, 5)
    assert np.isfinite(S).all()
    assert (S[:, fitted.taxonomy_.index("food")] == np.finfo(np.float32).min).all()


def test_two_classes_have_one_score():
    fitted = TextClassifier("svm").fit(TEXTS, np.array([0, 0, 0, 0, 1, 1] * 4))
    S = fitted.decision_function(TEXTS)
    assert S.shape == (24,)
    assert (S > 0).astype(int).tolist() == fitted.predict(TEXTS).tolist()


def test_whole_numbers_are_classes_in_numeric_order():
    numbers = np.array([10, 10, 9, 9, 2, 2] * 4)
    fitted = TextClassifier("svm").fit(TEXTS, numbers)
    assert fitted.classes_.tolist() == [2, 9, 10]
    assert fitted.classes_[fitted.predict_proba(TEXTS).argmax(axis=1)].tolist() == numbers.tolist()


def test_inner_nodes_with_documents_are_labels_and_keep_what_their_children_leave():
    labels = ["food", "food", "food/bread", "food/bread", "drink/tea", "drink/tea"] * 4
    for system in SYSTEMS:
        fitted = made(system).fit(TEXTS, labels)
        assert fitted.classes_.tolist() == ["drink/tea", "food", "food/bread"]
        assert [fitted.taxonomy_.names[node] for node in sorted(label_nodes(fitted).tolist())] == [
            name for name in fitted.taxonomy_.names if name != "drink"
        ]
    P, all_nodes = made("nb").fit(TEXTS, labels).predict_proba(TEXTS), TextClassifier("nb").fit(TEXTS, labels)
    names = all_nodes.taxonomy_.names
    Q = all_nodes.predict_proba(TEXTS)
    np.testing.assert_allclose(P[:, 1], Q[:, names.index("food")] - Q[:, names.index("food/bread")], atol=1e-5)


def test_classes_say_what_they_are():
    with pytest.raises(InputError, match="classes is 'leaves'; give 'nodes', or 'labels'"):
        TextClassifier(classes="leaves").fit(TEXTS, LABELS)


# ---- the top labels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_first_of_the_top_labels_is_the_predicted_one(system):
    fitted = TextClassifier(system).fit(TEXTS, LABELS)
    top = fitted.predict(TEXTS, top=2)
    assert [row[0] for row in top] == fitted.predict(TEXTS).tolist()
    assert all(len(set(row)) == 2 and set(row) <= set(ORDER) for row in top)
    assert all(sorted(row) == ORDER for row in fitted.predict(TEXTS, top=9))


def test_the_top_labels_follow_probabilities_and_have_the_form_of_the_labels():
    fitted = made().fit(TEXTS, PATHS)
    top = fitted.predict(["red tea pie"], top=3)[0]
    P = fitted.predict_proba(["red tea pie"])[0]
    assert top[0] == fitted.predict(["red tea pie"])[0]
    rest = [P[fitted.classes_.tolist().index("/".join(path))] for path in top[1:]]
    assert rest == sorted(rest, reverse=True)
    assert all(isinstance(path, tuple) for path in top)


def test_a_number_of_top_labels_is_checked():
    fitted = TextClassifier("nb").fit(TEXTS, LABELS)
    for top in (0, 1.5, True, "2"):
        with pytest.raises(InputError, match="top is .*give a whole number of at least 1"):
            fitted.predict(TEXTS, top=top)
    with pytest.raises(InputError, match="top and risk do not go together"):
        fitted.predict(TEXTS, 0.1, top=2)


# ---- weights ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_text_of_weight_zero_is_left_out(system):
    weights = np.array([1.0] * 20 + [0.0] * 4)
    weighted = TextClassifier(system).fit(TEXTS[:20] + ["loud noise"] * 4, LABELS, sample_weight=weights)
    without = TextClassifier(system).fit(TEXTS[:20], LABELS[:20])
    np.testing.assert_allclose(weighted.predict_proba(TEXTS), without.predict_proba(TEXTS), atol=1e-6)
    assert weighted.figures_["documents"] == 20


@pytest.mark.parametrize("system", SYSTEMS)
def test_weights_decide_between_contradicting_labels(system):
    texts = [*TEXTS, *["apple"] * 8]
    labels = [*LABELS, *["food/fruit"] * 4, *["drink/tea"] * 4]
    predicted = [
        TextClassifier(system).fit(texts, labels, np.array([1.0] * 24 + [heavy] * 4 + [100 - heavy] * 4)).predict(["apple"])[0]
        for heavy in (99.9, 0.1)
    ]
    assert predicted == ["food/fruit", "drink/tea"]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight.shape == \(3,\), expected \(24,\)"),
        (np.zeros(24), "all sample weights are zero"),
        (-np.ones(24), "negative values"),
        (np.full(24, np.nan), "not finite"),
        (["a"] * 24, "not numbers"),
    ],
    ids=str,
)
def test_weights_are_checked(weights, message):
    with pytest.raises(InputError, match=message):
        TextClassifier("svm").fit(TEXTS, LABELS, sample_weight=weights)
    with pytest.raises(InputError, match=message):
        TextClassifier("svm").fit(TEXTS, LABELS).score(TEXTS, LABELS, sample_weight=weights)


def test_weights_count_in_the_score():
    fitted = TextClassifier("svm").fit(TEXTS, LABELS)
    wrong = ["drink/tea", *LABELS[1:]]
    assert fitted.score(TEXTS, wrong) == pytest.approx(23 / 24)
    assert fitted.score(TEXTS, wrong, sample_weight=[24, *[1] * 23]) == pytest.approx(23 / 47)
    several = TextClassifier("svm").fit(TEXTS, [[label] for label in LABELS])
    assert several.score(TEXTS, [[label] for label in LABELS], sample_weight=np.ones(24)) == 1


def test_weights_and_training_data_kept_with_the_model_exclude_each_other():
    with pytest.raises(InputError, match="a model with sample_weight cannot keep its training data"):
        TextClassifier("svm", keep_training_data=True).fit(TEXTS, LABELS, sample_weight=np.ones(24))


def test_metadata_is_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        asked = TextClassifier("svm").set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        weights = np.array([1.0] * 23 + [0.0])
        fitted = make_pipeline(asked).fit(TEXTS, LABELS, sample_weight=weights)
        assert fitted[-1].figures_["documents"] == 23
        scores = cross_val_score(asked, TEXTS, LABELS, cv=2, params={"sample_weight": np.ones(24)})
        assert scores.tolist() == [1, 1]
        with pytest.raises(TypeError):
            TextClassifier().set_fit_request(texts=True)


# ---- tools --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro", "neg_log_loss", "roc_auc_ovr", "top_k_accuracy"])
def test_scorers_match_columns_and_classes(scoring):
    scores = cross_val_score(made(), TEXTS, LABELS, cv=2, scoring=scoring, error_score="raise")
    assert (scores >= (-1 if scoring == "neg_log_loss" else 1)).all()


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("classes", ["nodes", "labels"])
def test_out_of_fold_predictions_are_over_sorted_labels(method, classes):
    labels = np.array([f"{number}" for number in (10, 10, 9, 9, 2, 2)] * 4)
    found = cross_val_predict(TextClassifier("svm", classes=classes), TEXTS, labels, cv=2, method=method)
    assert np.unique(labels)[found.argmax(axis=1)].tolist() == labels.tolist()


def test_labels_that_scikit_learn_has_numbered_are_not_in_a_taxonomy():
    with pytest.raises(
        LabelError, match="label '2' is not in the taxonomy.*as cross_val_predict does for probabilities, leave the"
    ):
        cross_val_predict(TextClassifier("svm", Taxonomy.from_paths(LABELS)), TEXTS, LABELS, cv=2, method="predict_proba")


def test_processes_share_folds():
    assert cross_val_score(TextClassifier("nb"), TEXTS, LABELS, cv=2, n_jobs=2).tolist() == [1, 1]


def test_learning_curves_and_permutations():
    sizes, _, scores = learning_curve(
        TextClassifier("nb"), TEXTS, LABELS, cv=2, train_sizes=[0.5, 1.0], shuffle=True, random_state=0
    )
    assert (sizes.tolist(), scores[-1].tolist()) == ([6, 12], [1, 1])
    score, permuted, _ = permutation_test_score(TextClassifier("nb"), TEXTS, ARRAY, cv=2, n_permutations=3, random_state=0)
    assert score == 1 > permuted.mean()


@pytest.mark.parametrize(
    "tool",
    [
        OneVsRestClassifier(TextClassifier("svm")),
        CalibratedClassifierCV(made(), cv=2),
        CalibratedClassifierCV(made(), cv=2, method="isotonic"),
        StackingClassifier([("svm", TextClassifier("svm")), ("nb", TextClassifier("nb"))], LogisticRegression(), cv=2),
        VotingClassifier([("svm", TextClassifier("svm")), ("nb", TextClassifier("nb"))], voting="soft"),
        VotingClassifier([("svm", TextClassifier("svm")), ("nb", TextClassifier("nb"))]),
    ],
    ids=["one-vs-rest", "sigmoid", "isotonic", "stacking", "soft voting", "hard voting"],
)
def test_tools_that_train_several_classifiers(tool):
    fitted = tool.fit(np.array(TEXTS), ARRAY)
    assert fitted.predict(np.array(TEXTS)).tolist() == LABELS
    assert fitted.classes_.tolist() == ORDER


def test_rules_that_refine_probabilities_work_with_labels_as_classes():
    P = made("nb", decision=IsotonicSmooth(at_least_one=True)).fit(TEXTS, LABELS).predict_proba(TEXTS)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_frames_as_output_of_all_transformers_change_nothing(output):
    with sklearn.config_context(transform_output=output):
        fitted = TextClassifier().fit(TEXTS, LABELS)
        assert fitted.predict(TEXTS).tolist() == LABELS
        foreign = TextClassifier("svm", features=make_pipeline(TfidfVectorizer(), TruncatedSVD(5, random_state=0)))
        assert foreign.fit(TEXTS, LABELS).predict(TEXTS).tolist() == LABELS
    assert not hasattr(FeatureUnion(), "set_output")
