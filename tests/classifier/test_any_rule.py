"""Any rule on any learner: what a rule is told, and deciding again without training."""

import numpy as np
import pytest

import ramify
from ramify import TextClassifier
from ramify.classifier import explain_nodes, make_rule
from ramify.classifier.fitting import RULES, values_for
from ramify.decisions import Best, IsotonicSmooth, MinimizeHLoss, SCut, TopDown
from ramify.errors import InputError
from ramify.metrics import document_f1
from ramify.systems import SYSTEMS

TEXTS = ["sweet red apple", "apple pie", "rye bread crust", "white bread", "green tea", "black tea leaves"] * 4
LABELS = ["food/fruit", "food/fruit", "food/bread", "food/bread", "drink/tea", "drink/tea"] * 4


NEED_SURE = ("minimize-h-loss", "isotonic", "sign", "top-down")  # so few texts give no sure probabilities


@pytest.fixture(scope="module")
def trained():
    return {name: TextClassifier(name).fit(TEXTS, LABELS) for name in SYSTEMS}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_rule_works_on_every_learner(system, rule):
    clf = TextClassifier(system, decision=RULES[rule]()).fit(TEXTS, LABELS)
    Y = clf.predict_matrix(TEXTS)
    tax = clf.taxonomy_
    inner = np.flatnonzero(tax.parent >= 0)
    dense = Y.toarray()
    assert dense.shape == (len(TEXTS), len(tax))
    assert (dense[:, inner] <= dense[:, tax.parent[inner]]).all()
    P = clf.predict_proba(TEXTS)
    assert (P[:, inner] <= P[:, tax.parent[inner]] + 1e-6).all()
    assert document_f1(tax.encode(LABELS), Y, tax) > (0.5 if rule in NEED_SURE else 0.7)


@pytest.mark.parametrize("system", ["nb", "svm", "td-svm", "h-svm", "isotonic-svm"])
def test_values_are_what_a_rule_takes(trained, system):
    clf = trained[system]
    S = clf.learner_.scores(clf.vectorizer_.transform(TEXTS[:6]))
    if system in ("nb", "svm"):
        assert values_for(Best(), clf.learner_, S) is S
    P, shares = clf.learner_.to_probabilities(S), values_for(MinimizeHLoss(), clf.learner_, S)
    assert ((shares >= 0) & (shares <= 1)).all()
    leaf, above = clf.taxonomy_.index("food/fruit"), clf.taxonomy_.index("food")
    if system != "isotonic-svm":
        np.testing.assert_allclose(shares[:, leaf] * P[:, above], P[:, leaf], atol=1e-6)
    told = values_for(IsotonicSmooth(), clf.learner_, S)
    np.testing.assert_allclose(told, clf.learner_.classifier_probabilities(S) if system == "isotonic-svm" else P, atol=1e-6)
    margins = values_for(TopDown(), clf.learner_, S)
    if system in ("h-svm", "isotonic-svm"):
        assert margins is S
    else:
        np.testing.assert_array_equal(margins >= 0, shares >= 0.5)


@pytest.mark.parametrize("system", ["td-svm", "h-svm", "isotonic-svm"])
def test_scores_about_a_node_given_its_parent_become_chances_to_end_there(trained, system):
    clf = trained[system]
    S, tax = clf.learner_.scores(clf.vectorizer_.transform(TEXTS[:6])), clf.taxonomy_
    told, P, shares = (
        np.exp(values_for(Best(), clf.learner_, S)),
        clf.learner_.to_probabilities(S),
        clf.learner_.conditionals(S),
    )
    for node in range(len(tax)):
        below = tax.children_of(node)
        leave = np.prod(1 - shares[:, below], axis=1) if system != "td-svm" else 1 - shares[:, below].sum(axis=1)
        np.testing.assert_allclose(told[:, node], P[:, node] * leave, atol=1e-6)


@pytest.mark.parametrize("system", ["svm", "b-svm", "isotonic-svm", "isotonic-nb"])
def test_a_classifier_decides_again_without_training(trained, system, tmp_path):
    clf = trained[system]
    other = clf.redecided(TopDown(threshold=-1e6))
    assert other.learner_ is clf.learner_
    assert type(clf.decision_) is not TopDown
    assert other.predict_matrix(TEXTS).toarray().all()
    other.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert again.decision_ == TopDown(threshold=-1e6)
    assert (again.predict_matrix(TEXTS) != other.predict_matrix(TEXTS)).nnz == 0


def test_deciding_again_is_deciding_as_the_other_system_does(trained):
    again = trained["h-svm"].redecided(MinimizeHLoss())
    assert (again.predict_matrix(TEXTS) != trained["b-svm"].predict_matrix(TEXTS)).nnz == 0


def test_a_rule_that_does_not_fit_the_taxonomy_is_refused(trained):
    with pytest.raises(InputError, match="costs have shape"):
        trained["svm"].redecided(MinimizeHLoss(costs=[1.0, 2.0]))


def test_h_svm_and_b_svm_have_the_same_machines(trained):
    X = trained["h-svm"].vectorizer_.transform(TEXTS)
    np.testing.assert_array_equal(trained["h-svm"].learner_.scores(X), trained["b-svm"].learner_.scores(X))


def test_a_rule_that_has_something_to_learn_cannot_be_put_on_afterwards(trained):
    with pytest.raises(InputError, match="'scut' is not fitted"):
        trained["svm"].redecided(SCut())


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_can_be_kept_and_explains_itself(trained, system, tmp_path):
    clf = trained[system]
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(TEXTS[:6]), clf.predict_proba(TEXTS[:6]))
    why = again.explain("a red apple")
    assert why.path[0] in ("food", "drink")
    assert sum(weight for _, weight in why.words) + why.prior == pytest.approx(why.margin, abs=1e-6)


def test_smoothed_scores_are_the_probabilities_of_an_isotonic_system(trained):
    clf = trained["isotonic-svm"]
    S = clf.learner_.scores(clf.vectorizer_.transform(TEXTS))
    smoothed = clf.decision_.refine(clf.learner_.memberships(S), clf.taxonomy_)
    np.testing.assert_allclose(clf.predict_proba(TEXTS), smoothed, rtol=1e-6)


def test_looking_at_a_text_shows_what_the_rule_saw_and_did(trained):
    clf = trained["isotonic-svm"]
    views = {view.name: view for view in explain_nodes(clf, "a red apple", ["drink/tea"])}
    assert views["food/fruit"].is_taken
    assert views["food/fruit"].refined <= views["food"].refined
    assert {name for name, view in views.items() if view.is_first_error} == {"food", "drink"}
    assert views["drink/tea"].is_true
    assert not views["drink/tea"].is_first_error
    plain = explain_nodes(trained["h-svm"], "a red apple")
    assert all(view.refined is None and view.is_true is None for view in plain)


def test_the_order_of_a_look_is_that_of_a_walk_from_the_top(trained):
    names = [view.name for view in explain_nodes(trained["nb"], "a red apple", ["drink/tea", "food/bread"])]
    assert names.index("food") < names.index("food/bread")
    assert names.index("drink") + 1 == names.index("drink/tea")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("isotonik", {}, "rule 'isotonik' is unknown.*Did you mean 'isotonic'"),
        ("top-down", {"treshold": 1}, "'treshold' is not a parameter of rule 'top-down'; it has threshold"),
        ("descend", {"x": 1}, "'x' is not a parameter of rule 'descend'; it has none"),
        ("top-down", {"threshold": "low"}, "threshold is 'low'"),
        ("minimize-h-loss", {"costs": "cousins"}, "costs is 'cousins'"),
        ("minimize-h-loss", {"switch_depth": -1}, "switch_depth is -1"),
        ("isotonic", {"penalties": [1]}, "'penalties' is not a parameter"),
        ("best", {"leaves_only": "yes"}, "leaves_only is 'yes'"),
    ],
)
def test_rules_and_settings_that_there_are_not_are_refused(name, settings, message):
    with pytest.raises(InputError, match=message):
        make_rule(name, settings)


def test_settings_reach_the_rule():
    assert make_rule("minimize-h-loss", {"costs": [1, 2], "switch_depth": 1}).switch_depth == 1
    assert make_rule("isotonic", {"penalty": "inf"}).is_fitted
