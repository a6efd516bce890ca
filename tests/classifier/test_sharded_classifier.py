"""A classifier in shards: predictions, rules, explanations and pages as of the whole, from a few nodes of each text."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import ramify
from ramify.classifier import explain_nodes
from ramify.classifier.fitting import RULES
from ramify.decisions import RCut, SCut
from ramify.learners import RecursiveSVM
from ramify.server.model_registry import ServedModel
from ramify.workflows import PredictOptions, Predictor, predict_rows

WORDS = {
    "food/fruit/apple": "apple cider orchard core",
    "food/fruit/pear": "pear orchard sweet juice",
    "food/bread": "bread rye crust oven",
    "food": "meal lunch plate",
    "drink/tea": "tea leaf cup hot",
    "drink/milk": "milk cow cup cold",
}
TEXTS = [f"{a} {b}" for words in WORDS.values() for a in words.split() for b in words.split() if a != b]
LABELS = [label for label, words in WORDS.items() for _ in range(len(words.split()) * (len(words.split()) - 1))]
ASKED = [*TEXTS, "apple tea", "rye milk cup", "nothing known here", "orchard"]


@pytest.fixture(scope="module", params=[False, True], ids=["one label", "several"])
def pair(request, tmp_path_factory):
    """A classifier, and the same in three shards."""
    labels = [[label, "drink/tea"] if request.param and i % 3 == 0 else [label] for i, label in enumerate(LABELS)]
    learner = RecursiveSVM(C=1.0)  # with a larger C, many scores lie on the margin, where rounding decides which is higher
    whole = ramify.TextClassifier("hr-svm", learner=learner).fit(TEXTS, labels if request.param else LABELS)
    path = tmp_path_factory.mktemp("sharded") / "model"
    whole.save(path, shards=3)
    return whole, ramify.load(path)


def predictions(classifier, options):
    """The labels of each text; of the others, which may be equally likely but for rounding, only how many there are."""
    return [([node for node, _ in labels], len(others)) for labels, others in Predictor(classifier, options).predict(ASKED)]


def chances(classifier, options):
    return [p for found in Predictor(classifier, options).predict(ASKED) for part in found for _, p in part]


OPTIONS = [
    PredictOptions(),
    PredictOptions(top=3),
    PredictOptions(threshold=0.5),
    PredictOptions(top=2, threshold=0.3),
    PredictOptions(within=("drink",)),
    PredictOptions(without=("food/fruit",), top=3),
    PredictOptions(within=("food",), without=("food/bread",), threshold=0.2),
]


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_answers_are_those_of_the_whole(pair, options):
    whole, sharded = pair
    assert sharded.scores_candidates_only
    assert predictions(sharded, options) == predictions(whole, options)
    np.testing.assert_allclose(chances(sharded, options), chances(whole, options), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_probabilities_of_all_nodes_come_with_answers(pair, options):
    whole, sharded = pair
    for (_, _, p), (_, _, expected) in zip(
        *(Predictor(clf, options).with_probabilities(ASKED) for clf in (sharded, whole)), strict=True
    ):
        np.testing.assert_allclose(p, expected, rtol=1e-4, atol=1e-6)


def rules():
    nodes = 8
    learnt = {
        "scut": SCut(thresholds=[-0.5] * nodes),
        "gcut": RULES["gcut"](threshold=-0.3),
        "rcut": RCut(k=2),
        "pcut": RULES["pcut"](factor=1.0, thresholds=[-0.2] * nodes),
    }
    learnt["predicted-cut"] = RULES["predicted-cut"](intercept=-0.4, coefficients=[0.5, 0.1])
    learnt["isotonic"] = RULES["isotonic"](penalty=5)
    return [learnt.get(kind) or rule() for kind, rule in RULES.items()]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.kind)
@pytest.mark.parametrize("beam", [2, 20])
def test_every_rule_decides(pair, rule, beam):
    whole, sharded = (clf.redecided(rule) for clf in pair)
    sharded.learner_.beam_ = beam
    try:
        Y, P = sharded.decide_with_probabilities(ASKED)
        assert (sharded.predict_matrix(ASKED) != Y).nnz == 0
        assert P.shape == Y.shape
        assert np.isfinite(P).all()
        for labels, _ in Predictor(sharded, PredictOptions()).predict(ASKED):
            assert all(0 <= p <= 1 for _, p in labels)
        assert sharded.explain("apple tea").steps
        if beam == 20:
            assert (whole.predict_matrix(ASKED) != Y).nnz == 0
            np.testing.assert_allclose(P, whole.predict_proba(ASKED), rtol=1e-4, atol=1e-6)
    finally:
        sharded.learner_.beam_ = 20


def test_explanations_are_those_of_the_whole_also_of_labels_that_were_not_looked_at(pair):
    whole, sharded = pair
    for label in (None, "drink/milk", "food"):
        found, expected = (clf.explain("apple cider cup", label) for clf in (sharded, whole))
        assert found.path == expected.path
        assert found.rival == expected.rival
        assert found.margin == pytest.approx(expected.margin, rel=1e-4, abs=1e-6)
        assert sorted(word for word, _ in found.words) == sorted(word for word, _ in expected.words)
    sharded.learner_.beam_ = 2
    try:
        far = sharded.explain("apple cider", "drink/milk")
        assert far.probabilities[-1] == 0
        assert far.margin == pytest.approx(whole.explain("apple cider", "drink/milk").margin, rel=1e-4)
        assert explain_nodes(sharded, "apple cider", ["drink/milk"])
    finally:
        sharded.learner_.beam_ = 20


def test_within_a_subtree_the_likeliest_classes_of_that_subtree_are_looked_at(pair):
    whole, sharded = pair
    sharded.learner_.beam_ = 2
    try:
        options = PredictOptions(within=("drink",))
        assert predictions(sharded, options) == predictions(whole, options)
    finally:
        sharded.learner_.beam_ = 20


def test_few_texts_or_none_are_answered(pair):
    _, sharded = pair
    assert Predictor(sharded).predict([]) == []
    assert sharded.predict_matrix([]).shape == (0, 8)
    Y, P = sharded.decide_sparse([])
    assert Y.shape == P.shape == (0, 8)
    assert isinstance(P, csr_array)


def test_rows_are_answered_in_batches_that_do_not_shrink_with_the_taxonomy(pair):
    whole, sharded = pair
    rows = [(i, {"text": text}) for i, text in enumerate(ASKED)]
    found, expected = (list(predict_rows(clf, rows, "text")) for clf in (sharded, whole))
    assert [[label for label, _ in row.labels] for row in found] == [[label for label, _ in row.labels] for row in expected]
    assert Predictor(sharded).batch_size == 500
    assert Predictor(sharded.redecided(RCut(k=1))).batch_size == Predictor(whole).batch_size


def test_documents_times_nodes_is_never_made_for_answers(pair, monkeypatch):
    _, sharded = pair

    def refuse(*_):
        raise AssertionError("documents × nodes was made")

    monkeypatch.setattr(type(sharded.learner_), "_score", refuse)
    assert len(Predictor(sharded, PredictOptions(top=3)).predict(ASKED)) == len(ASKED)
    assert len(sharded.predict(ASKED)) == len(ASKED)
    assert sharded.score(TEXTS, sharded.predict(TEXTS)) == 1


def test_a_server_answers_from_shards(pair, tmp_path):
    whole, sharded = pair
    sharded.save(tmp_path / "model")
    served = ServedModel.load("m", tmp_path / "model")
    found = served.predict(PredictOptions(top=2), ["apple cider", "hot tea"])
    assert [entry["labels"][0]["label"] for entry in found] == ["food/fruit/apple", "drink/tea"]
    path = found[0]["labels"][0]
    expected = whole.predict_proba(["apple cider"])[0]
    nodes = whole.taxonomy_.nodes_to(whole.taxonomy_.index("food/fruit/apple"))
    assert path["probabilities"] == pytest.approx([expected[node] for node in nodes], abs=1e-4)


def test_threads_change_nothing(pair):
    _, sharded = pair
    alone, together = sharded.with_threads(1), sharded.with_threads(2)
    assert (alone.predict_matrix(ASKED) != together.predict_matrix(ASKED)).nnz == 0
    assert (alone.learner_.top_k(alone.vectorizer_.transform(ASKED), 2)[0] == together.learner_.top_k(together.vectorizer_.transform(ASKED), 2)[0]).all()  # fmt: skip
