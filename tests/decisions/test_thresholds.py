import copy
import inspect
import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from oracles import thresholds as oracle
from seeds import each_seed
from sklearn.linear_model import Ridge
from strategies import as_matrix, as_sets, build, parent_lists

import ramify
from ramify import Taxonomy, decisions, metrics
from ramify.classifier.fitting import RULES as BY_NAME
from ramify.decisions import FittableRule, GCut, PCut, PredictedCut, RCut, SCut
from ramify.errors import InputError, ModelError

RULES = [
    member
    for _, member in inspect.getmembers(decisions, inspect.isclass)
    if member is not FittableRule and hasattr(member, "fit") and hasattr(member, "over")
]
NAN = float("nan")


@st.composite
def held_out(draw):
    """Parents, scores with ties and gaps, and labels; at least one true label has a score under any `over`."""
    parents = draw(parent_lists(max_nodes=6))
    value = st.sampled_from([NAN, -np.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 3.0, 4.0])
    n_documents = draw(st.integers(1, 8))
    row = st.lists(value, min_size=len(parents), max_size=len(parents))
    scores = draw(st.lists(row, min_size=n_documents, max_size=n_documents))
    nodes = st.sets(st.integers(0, len(parents) - 1))
    labels = draw(st.lists(nodes, min_size=n_documents, max_size=n_documents))
    own = oracle.truth_of(labels, parents, "own")
    assume(any(oracle.has_score(s[n]) for s, true in zip(scores, own, strict=True) for n in true))
    return parents, scores, labels


def fit(rule, case):
    parents, scores, labels = case
    return rule.fit(np.asarray(scores), as_matrix(labels, len(parents)), build(parents))


def decided(rule, case):
    return as_sets(rule.decide(np.asarray(case[1]), build(case[0])))


overs = st.sampled_from(["own", "nodes"])


def test_there_are_rules_to_check():
    assert {GCut, SCut, RCut, PCut, PredictedCut} == set(RULES)
    assert all(BY_NAME[rule.kind] is rule for rule in RULES)
    assert all(isinstance(rule(), FittableRule) for rule in RULES)
    assert not isinstance(decisions.Best(), FittableRule)


# ---- each rule is the best of all that could be tried ---------------------------------------------------------------


@given(held_out(), overs, st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]), st.sampled_from(["highest", "never"]), st.booleans())
def test_scut_equals_the_oracle_ties_and_missing_scores_included(case, over, fbr, below_fbr, at_least_one):
    parents, scores, labels = case
    rule = fit(SCut(over, fbr, below_fbr, at_least_one), case)
    expected = oracle.scut(scores, oracle.truth_of(labels, parents, over), len(parents), fbr, below_fbr)
    assert rule.thresholds.tolist() == expected
    assert decided(rule, case) == oracle.decide(oracle.passing(scores, expected), scores, parents, at_least_one)


@given(held_out(), overs, st.booleans())
def test_no_other_threshold_for_all_nodes_is_better_than_that_of_gcut(case, over, at_least_one):
    parents, scores, labels = case
    rule, truth = fit(GCut(over, at_least_one), case), oracle.truth_of(labels, parents, over)
    everything = sorted({score for row in scores for score in row if np.isfinite(score)})
    qualities = {t: oracle.gcut_quality(scores, truth, t, at_least_one) for t in [*everything, everything[-1] + 1]}
    chosen = oracle.gcut_quality(scores, truth, rule.threshold, at_least_one)
    true = {row[node] for row, some in zip(scores, truth, strict=True) for node in some if np.isfinite(row[node])}
    assert chosen == pytest.approx(max(qualities[t] for t in true), abs=1e-12)
    passing = [{n for n, score in enumerate(row) if score >= rule.threshold} for row in scores]
    assert decided(rule, case) == oracle.decide(passing, scores, parents, at_least_one)


@given(held_out(), overs)
def test_rcut_equals_the_oracle_ties_and_missing_scores_included(case, over):
    parents, scores, labels = case
    rule = fit(RCut(over), case)
    assert rule.k == oracle.rcut(scores, oracle.truth_of(labels, parents, over), len(parents))
    assert decided(rule, case) == oracle.decide([oracle.best_nodes(row, rule.k) for row in scores], scores, parents)


@given(held_out(), st.integers(1, 9))
def test_a_given_k_needs_no_learning(case, k):
    parents, scores, _ = case
    assert decided(RCut(k=k), case) == oracle.decide([oracle.best_nodes(row, k) for row in scores], scores, parents)


@given(held_out(), overs, st.booleans(), st.booleans(), st.data())
def test_pcut_equals_the_oracle_ties_and_missing_scores_included(case, over, at_least_one, with_proportions, data):
    parents, scores, labels = case
    share = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    proportions = data.draw(st.lists(share, min_size=len(parents), max_size=len(parents))) if with_proportions else None
    factors = (1.0, 0.5, 0.25, 2.0, 1e300, 0.0)
    S, Y = np.asarray(scores), as_matrix(labels, len(parents))
    rule = PCut(over, factors, at_least_one).fit(S, Y, build(parents), proportions)
    truth = oracle.truth_of(labels, parents, over)
    factor, thresholds = oracle.pcut(scores, truth, len(parents), factors, proportions)
    assert (rule.factor, rule.thresholds.tolist()) == (factor, thresholds)
    assert decided(rule, case) == oracle.decide(oracle.passing(scores, thresholds), scores, parents, at_least_one)


@given(held_out(), overs, st.integers(1, 8), st.sampled_from([1e-3, 0.1, 10.0]), st.booleans())
def test_predicted_cut_is_the_ridge_regression_to_the_best_thresholds_of_documents(case, over, n_scores, ridge, at_least_one):
    parents, scores, labels = case
    rule = fit(PredictedCut(over, n_scores, ridge, at_least_one), case)
    k = min(n_scores, len(parents))
    cuts = oracle.document_cuts(scores, oracle.truth_of(labels, parents, over))
    X = np.array([oracle.highest(row, k) for row, cut in zip(scores, cuts, strict=True) if cut < np.inf])
    t = np.array([cut for cut in cuts if cut < np.inf])
    spread = X.var(axis=0).mean()
    if spread > 0:
        expected = Ridge(alpha=ridge * spread * len(X), solver="svd").fit(X, t)
        np.testing.assert_allclose(rule.coefficients, expected.coef_, atol=1e-8)
        np.testing.assert_allclose(rule.intercept, expected.intercept_, atol=1e-8)
    else:
        assert not rule.coefficients.any()
        assert rule.intercept == pytest.approx(t.mean())
    thresholds = rule.thresholds_of(np.asarray(scores))
    chosen = [{n for n, s in enumerate(row) if oracle.has_score(s) and s >= thresholds[d]} for d, row in enumerate(scores)]
    assert decided(rule, case) == oracle.decide(chosen, scores, parents, at_least_one)


@given(held_out(), st.floats(-5, 5), st.lists(st.floats(-2, 2), min_size=1, max_size=8))
def test_a_predicted_threshold_is_the_weighted_sum_of_the_highest_scores(case, intercept, coefficients):
    _, scores, _ = case
    thresholds = PredictedCut(intercept=intercept, coefficients=coefficients).thresholds_of(np.asarray(scores))
    for row, threshold in zip(scores, thresholds, strict=True):
        if any(map(oracle.has_score, row)):
            expected = intercept + np.dot(oracle.highest(row, len(coefficients)), coefficients)
            assert threshold == pytest.approx(expected, abs=1e-9)


# ---- what holds of all of them --------------------------------------------------------------------------------------


def problem(seed=0, n_documents=60):
    """Scores without ties that say something about the labels, on a taxonomy with a node that has no classifier."""
    rng = np.random.default_rng(seed)
    taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/z/deep", "c"])
    own = as_matrix(
        [set(rng.choice(len(taxonomy), rng.integers(0, 3), replace=False)) for _ in range(n_documents)], len(taxonomy)
    )
    Y = ramify.taxonomy.expand_to_ancestors(own, taxonomy)
    S = (rng.normal(size=Y.shape) + 2 * Y.toarray()).astype(np.float32)
    S[:, 3] = NAN
    S[5] = NAN
    return S, Y, taxonomy


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("over", ["own", "nodes"])
def test_a_row_is_decided_the_same_in_any_batch(rule, over):
    S, Y, taxonomy = problem()
    fitted = rule(over=over).fit(S, Y, taxonomy)
    together = fitted.decide(S, taxonomy).toarray()
    alone = np.vstack([fitted.decide(row, taxonomy).toarray() for row in S])
    backwards = fitted.decide(S[::-1], taxonomy).toarray()[::-1]
    assert (together == alone).all()
    assert (together == backwards).all()


@pytest.mark.parametrize("rule", RULES)
def test_labels_are_closed_upward_and_boolean(rule):
    S, Y, taxonomy = problem()
    answer = rule().fit(S, Y, taxonomy).decide(S, taxonomy)
    assert answer.dtype == bool
    assert (answer != ramify.taxonomy.expand_to_ancestors(answer, taxonomy)).nnz == 0


@pytest.mark.parametrize("rule", RULES)
def test_learning_pays(rule):
    S, Y, taxonomy = problem(n_documents=400)
    best = decisions.Best().decide(S, taxonomy)
    fitted = rule(over="nodes").fit(S[:200], Y[:200], taxonomy).decide(S[200:], taxonomy)
    assert metrics.micro_f1(Y[200:], fitted, taxonomy, "nodes") > metrics.micro_f1(Y[200:], best[200:], taxonomy, "nodes")


@pytest.mark.parametrize("rule", RULES)
def test_neither_scores_nor_the_rule_are_changed_by_learning_and_deciding(rule):
    S, Y, taxonomy = problem()
    before, unfitted = S.copy(), rule()
    unfitted.fit(S, Y, taxonomy).decide(S, taxonomy)
    np.testing.assert_array_equal(S, before)
    assert unfitted == rule()


@pytest.mark.parametrize("rule", RULES)
def test_labels_may_come_closed_or_not_and_scores_as_lists_or_in_either_precision(rule):
    S, Y, taxonomy = problem()
    own = ramify.taxonomy.most_specific(Y, taxonomy)
    fitted = rule().fit(S, Y, taxonomy)
    assert fitted == rule().fit(S, own.toarray(), taxonomy) == rule().fit(S.astype(np.float64).tolist(), Y, taxonomy)
    assert rule().fit(np.asfortranarray(S), Y, taxonomy) == fitted


@pytest.mark.parametrize("rule", RULES)
def test_a_document_without_scores_gets_no_label(rule):
    S, Y, taxonomy = problem()
    for values in (NAN, -np.inf):
        assert rule().fit(S, Y, taxonomy).decide(np.full((2, len(taxonomy)), values), taxonomy).nnz == 0


@pytest.mark.parametrize("rule", [SCut, PCut, PredictedCut])
def test_at_least_one_label_where_a_document_has_a_score(rule):
    S, Y, taxonomy = problem()
    low = S - 20
    without = rule().fit(S, Y, taxonomy)
    answer = rule(at_least_one=True).fit(S, Y, taxonomy).decide(low, taxonomy)
    assert without.decide(low, taxonomy).sum() < answer.sum()
    assert (answer.sum(axis=1) > 0).tolist() == np.isfinite(S).any(axis=1).tolist()


@pytest.mark.parametrize(
    "rule", [SCut(thresholds=[]), PCut(thresholds=[]), RCut(k=3), PredictedCut(intercept=0.0, coefficients=[1.0])]
)
def test_no_documents_and_no_nodes_give_no_labels(rule):
    empty = Taxonomy.flat([])
    assert rule.decide(np.zeros((2, 0)), empty).shape == (2, 0)
    assert rule.decide(np.zeros((0, 0)), empty).shape == (0, 0)


@pytest.mark.parametrize("rule", RULES)
def test_no_documents_are_decided_on_any_taxonomy(rule):
    S, Y, taxonomy = problem()
    assert rule().fit(S, Y, taxonomy).decide(S[:0], taxonomy).shape == (0, len(taxonomy))


# ---- definitions, by hand -------------------------------------------------------------------------------------------


def test_a_threshold_lies_in_the_widest_of_equally_good_gaps():
    # one true document at 9 and one at 1, false ones at 8 and 7, and further down: taking 1 or 4 documents gives 2/3
    one = Taxonomy.flat(["a"])
    S, Y = [[9.0], [8.0], [7.0], [1.0], [0.5]], [[1], [0], [0], [1], [0]]
    assert SCut().fit(S, Y, one).thresholds.tolist() == [8.5]
    assert SCut().fit([[9.0], [8.0], [7.0], [1.0], [-4.0]], Y, one).thresholds.tolist() == [-1.5]


def test_the_higher_of_equally_good_and_equally_wide_gaps_is_taken():
    one = Taxonomy.flat(["a"])
    S, Y = [[9.0], [8.0], [7.0], [1.0], [0.0]], [[1], [0], [0], [1], [0]]
    assert SCut().fit(S, Y, one).thresholds.tolist() == [8.5]


def test_a_node_below_the_floor_gets_its_highest_score_or_none():
    ab = Taxonomy.flat(["a", "b"])
    S, Y = [[1.0, 5.0], [2.0, 4.0], [3.0, 3.0]], [[1, 1], [0, 1], [0, 0]]
    assert SCut(fbr=0.5).fit(S, Y, ab).thresholds.tolist() == [1.0, 3.5]
    assert SCut(fbr=0.6).fit(S, Y, ab).thresholds.tolist() == [3.0, 3.5]
    assert SCut(fbr=0.6, below_fbr="never").fit(S, Y, ab).thresholds.tolist() == [np.inf, 3.5]


def test_nodes_without_true_documents_or_scores():
    abc = Taxonomy.flat(["a", "b", "c"])
    S, Y = [[1.0, 5.0, NAN], [2.0, 4.0, NAN]], [[1, 0, 1], [0, 0, 0]]
    assert SCut(fbr=0).fit(S, Y, abc).thresholds.tolist() == [1.0, 5.0, np.inf]
    assert PCut().fit(S, Y, abc).thresholds.tolist()[1:] == [np.inf, np.inf]


def test_own_labels_and_membership_are_different_things():
    chain = Taxonomy.from_paths(["a/b"])
    S, Y = [[5.0, 1.0], [4.0, 9.0]], [[1, 0], [1, 1]]
    assert SCut("own").fit(S, Y, chain).thresholds.tolist() == [4.5, 5.0]
    assert SCut("nodes").fit(S, Y, chain).thresholds.tolist() == [4.0, 5.0]


def test_neighbouring_numbers_are_distinguished():
    one, low = Taxonomy.flat(["a"]), 1.0
    high = np.nextafter(low, 2)
    rule = SCut().fit([[high], [low]], [[1], [0]], one)
    assert rule.decide([[high], [low]], one).toarray().tolist() == [[True], [False]]


@each_seed(5)
def test_documents_that_are_all_the_same_teach_their_mean_threshold(seed):
    rng = np.random.default_rng(seed)
    abc, row = Taxonomy.flat(["a", "b", "c"]), np.sort(rng.random(3))[::-1]
    n_labels = rng.integers(1, 3, size=7)
    rule = PredictedCut().fit(np.tile(row, (7, 1)), np.arange(3) < n_labels[:, None], abc)
    assert rule.coefficients.tolist() == [0, 0, 0]
    assert rule.intercept == pytest.approx(np.mean([(row[n - 1] + row[n]) / 2 for n in n_labels]))


# ---- stored and made again ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_state_survives_strict_json_infinite_thresholds_included(rule):
    S, Y, taxonomy = problem()
    settings = {"below_fbr": "never", "fbr": 0.9} if rule is SCut else {}
    for made in (rule(**settings).fit(S, Y, taxonomy), rule(**settings)):
        again = rule.from_state(json.loads(json.dumps(made.state(), allow_nan=False)))
        assert again == made
        assert again.state() == made.state()
        assert copy.deepcopy(made) == made
    with pytest.raises(InputError, match="is not fitted yet"):
        again.decide(S, taxonomy)


def test_rules_of_different_kinds_or_values_are_not_equal():
    assert SCut() != PCut()
    assert SCut(thresholds=[1.0]) != SCut(thresholds=[2.0])
    assert SCut(thresholds=[1.0]) == SCut(thresholds=np.array([1.0]))
    assert SCut() != "scut"


@pytest.mark.parametrize("rule", RULES)
def test_a_classifier_keeps_its_rule_in_the_model_directory(rule, tmp_path):
    texts = ["red apple", "apple pie", "rye bread", "bread and apple", "black tea", "tea and bread"] * 2
    labels = [["food/fruit"], ["food/fruit"], ["food/bread"], ["food/bread", "food/fruit"], ["tea"], ["tea", "food/bread"]] * 2
    first = ramify.TextClassifier("nb").fit(texts, labels)
    S = first.learner_.scores(first.vectorizer_.transform(texts))
    settings = {"fbr": 0.99, "below_fbr": "never"} if rule is SCut else {}
    fitted = rule(**settings).fit(S, first.taxonomy_.encode(labels), first.taxonomy_)
    clf = ramify.TextClassifier("nb", decision=fitted).fit(texts, labels)
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert again.decision_ == fitted
    assert (again.predict_matrix(texts) != clf.predict_matrix(texts)).nnz == 0


@pytest.mark.parametrize(
    ("rule", "values", "complaint"),
    [
        (SCut, {"over": "leaves"}, "over is 'leaves', not 'own' or 'nodes'; train the model again"),
        (SCut, {"over": [1.0]}, "over is"),
        (SCut, {"fbr": 1.5}, "fbr is 1.5, not a number from 0 to 1"),
        (SCut, {"fbr": True}, "fbr is True"),
        (SCut, {"fbr": 10**400}, "fbr is 1000"),
        (SCut, {"fbr": [0.5]}, "fbr is"),
        (SCut, {"below_fbr": "zero"}, "below_fbr is 'zero'"),
        (SCut, {"at_least_one": 1}, "at_least_one is 1, not true or false"),
        (SCut, {"thresholds": "1"}, "the thresholds are not numbers"),
        (SCut, {"thresholds": {"a": 1}}, "the thresholds are not numbers"),
        (SCut, {"thresholds": ["1"]}, "thresholds are not all numbers"),
        (SCut, {"thresholds": [True]}, "thresholds are not all numbers"),
        (SCut, {"thresholds": [[1.0]]}, "thresholds are not all numbers"),
        (SCut, {"thresholds": [NAN]}, "thresholds are not all numbers"),
        (SCut, {"thresholds": [10**400]}, "thresholds are not all numbers"),
        (PCut, {"factors": []}, "there is no factor"),
        (PCut, {"factors": [-1.0]}, "-1.0 is among the factors, and is not a number from 0 upwards"),
        (PCut, {"factors": [None]}, "inf is among the factors"),
        (PCut, {"factor": "1"}, "factor is '1'"),
        (PCut, {"thresholds": 5}, "the thresholds are not one list"),
        (RCut, {"k": 0}, "k is 0, not a whole number of at least 1"),
        (RCut, {"k": 1.5}, "k is 1.5"),
        (RCut, {"k": True}, "k is True"),
        (PredictedCut, {"n_scores": 0}, "n_scores is 0"),
        (PredictedCut, {"ridge": -1}, "ridge is -1"),
        (PredictedCut, {"intercept": NAN}, "intercept is nan, not a finite number"),
        (PredictedCut, {"coefficients": [None]}, "inf is among the coefficients"),
    ],
)
def test_a_state_with_other_values_is_refused(rule, values, complaint):
    with pytest.raises(ModelError, match=complaint):
        rule.from_state({**rule().state(), **values})


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        SCut(fbr=2),
        SCut("leaves"),
        PCut(factors="all"),
        PCut(factors=()),
        RCut(k=0),
        PredictedCut(n_scores=0),
        PredictedCut(ridge=NAN),
    ],
)
def test_settings_that_make_no_sense_are_refused_when_learning(rule):
    with pytest.raises(InputError):
        rule.fit(*problem())


@pytest.mark.parametrize("rule", [SCut(thresholds=[NAN]), RCut(k=-1), PredictedCut(intercept=0.0, coefficients=[NAN])])
def test_values_given_by_hand_are_checked_before_deciding(rule):
    with pytest.raises(InputError):
        rule.decide([[1.0]], Taxonomy.flat(["a"]))


@pytest.mark.parametrize("rule", RULES)
def test_held_out_data_that_cannot_teach_are_refused(rule, food):
    S, none = np.ones((2, 6)), np.zeros((2, 6), dtype=bool)
    nothing = "no held-out document has a true label with a score"
    for scores, labels, taxonomy in [
        (S, none, food),
        (S[:0], none[:0], food),
        (np.full((2, 6), NAN), ~none, food),
        (np.zeros((1, 0)), np.zeros((1, 0)), Taxonomy.flat([])),
    ]:
        with pytest.raises(InputError, match=nothing):
            rule().fit(scores, labels, taxonomy)


@pytest.mark.parametrize("rule", RULES)
def test_scores_and_labels_that_do_not_fit_are_refused(rule, food):
    S, Y, taxonomy = problem()
    with pytest.raises(InputError, match="scores of 60 documents and labels of 59"):
        rule().fit(S, Y[:59], taxonomy)
    with pytest.raises(InputError, match="the taxonomy has 6 nodes"):
        rule().fit([[1.0, 2.0]], Y, food)
    with pytest.raises(InputError, match="the taxonomy has 6 nodes"):
        rule().fit(S, Y, taxonomy).decide([[1.0, 2.0]], food)
    with pytest.raises(InputError, match="a score is infinite"):
        rule().fit(S, Y, taxonomy).decide([[np.inf] * len(taxonomy)], taxonomy)


@pytest.mark.parametrize("rule", [SCut, PCut])
def test_thresholds_of_another_taxonomy_are_refused(rule, food):
    with pytest.raises(InputError, match="there are 2 thresholds for 6 nodes"):
        rule(thresholds=[0.0, 1.0]).decide(np.zeros((1, 6)), food)


@pytest.mark.parametrize(
    ("proportions", "complaint"), [([0.5], "1 proportions for 8 nodes"), ([2.0] * 8, "2.0 is among the proportions")]
)
def test_proportions_that_are_none_are_refused(proportions, complaint):
    with pytest.raises(InputError, match=complaint):
        PCut().fit(*problem(), proportions)
