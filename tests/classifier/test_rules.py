"""Decision rules that are learnt along with a classifier."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

import ramify
from ramify import Taxonomy, TextClassifier
from ramify.classifier import fitting
from ramify.classifier.fitting import fit_rule
from ramify.decisions import Best, GCut, PCut, RCut, SCut

FLAT = Taxonomy.flat(["a", "b", "c"])


class Spy(BaseEstimator):
    """Scores documents, which carry their numbers as a feature, and notes whose it scores after learning from whose."""

    log: list = []  # noqa: RUF012 - clones share it, which is the point
    held_out_ = None

    def __init__(self, alpha=1.0, taxonomy=None):
        self.alpha, self.taxonomy = alpha, taxonomy

    def fit(self, X, Y):
        self.taxonomy_, self.seen = self.taxonomy, set(X.toarray().ravel().tolist())
        assert Y.shape == (len(self.seen), len(self.taxonomy))
        return self

    def scores(self, X):
        asked = X.toarray().ravel()
        Spy.log.append((self.alpha, self.seen, set(asked.tolist())))
        return np.tile(asked[:, None], (1, len(self.taxonomy))).astype(np.float32)

    def convert_scores(self, scores, quantity):
        return scores

    def selected_params(self):
        return {}


class Recorder:
    """A rule that records what it was fitted on."""

    takes = "scores"

    def fit(self, scores, Y, taxonomy):
        self.scores, self.Y, self.taxonomy = np.asarray(scores), Y, taxonomy
        return self


@pytest.fixture
def spied():
    Spy.log = []
    return Spy.log


def numbered(n_docs, taxonomy=FLAT):
    """Documents that say their numbers, from 1, and labels that follow from these."""
    X = csr_array(np.arange(1, n_docs + 1, dtype=np.float32)[:, None])
    return X, taxonomy.encode([[taxonomy.names[i % len(taxonomy)]] for i in range(1, n_docs + 1)])


@pytest.mark.parametrize("n_docs", [4, 5, 6, 20])
def test_a_rule_learns_from_scores_by_learners_that_had_not_seen_the_document(spied, n_docs):
    X, Y = numbered(n_docs)
    learner = Spy(alpha=0.5, taxonomy=FLAT).fit(X, Y)
    fit_rule(rule := Recorder(), learner, X, Y)
    for alpha, seen, asked in spied:
        assert alpha == 0.5
        assert not seen & asked
        assert seen | asked == set(range(1, n_docs + 1))
    assert sorted(i for _, _, asked in spied for i in asked) == list(range(1, n_docs + 1))
    # scores say which document each row is about, and its labels stand beside it
    for row, labels in zip(rule.scores, rule.Y.toarray(), strict=True):
        assert labels.tolist() == Y.toarray()[int(row[0]) - 1].tolist()


def test_the_learner_itself_stays_as_it_was(spied):
    X, Y = numbered(9)
    learner = Spy(taxonomy=FLAT).fit(X, Y)
    fit_rule(Recorder(), learner, X, Y)
    assert learner.seen == set(range(1, 10))
    assert len(spied) == fitting.RULE_FOLDS


def test_where_scores_would_be_too_many_some_documents_are_only_trained_on(spied, monkeypatch):
    monkeypatch.setattr(fitting, "MAX_SCORES", 3 * 6)
    X, Y = numbered(20)
    fit_rule(rule := Recorder(), Spy(taxonomy=FLAT).fit(X, Y), X, Y)
    assert rule.scores.shape == (6, 3)
    assert all(not seen & asked and len(seen) == 18 for _, seen, asked in spied)


def test_a_cost_that_was_chosen_is_not_chosen_again(spied):
    X, Y = numbered(9)

    class SelectsC(Spy):
        def __init__(self, C="auto", taxonomy=None):
            super().__init__(taxonomy=taxonomy)
            self.C = C

        def fit(self, X, Y):
            self.C_ = 10.0 if self.C == "auto" else self.C
            self.alpha = self.C
            return super().fit(X, Y)

        def selected_params(self):
            return {"C": self.C_}

    fit_rule(Recorder(), SelectsC(taxonomy=FLAT).fit(X, Y), X, Y)
    assert [alpha for alpha, _, _ in spied] == [10.0] * fitting.RULE_FOLDS


# ---- tiny corpora ---------------------------------------------------------------------------------------------------------


def test_with_too_few_documents_to_hold_any_out_the_learner_scores_its_own(spied):
    X, Y = numbered(1)
    fit_rule(rule := Recorder(), Spy(taxonomy=FLAT).fit(X, Y), X, Y)
    assert rule.scores.shape == (1, 3)


def test_of_two_documents_the_learner_scores_its_own(spied):
    X, Y = numbered(2)
    fit_rule(rule := Recorder(), Spy(taxonomy=FLAT).fit(X, Y), X, Y)
    assert rule.scores.shape == (2, 3)


TEXTS = ["apple pear", "bread crust", "tea milk", "tea leaf", "apple pie", "rye bread"]


@pytest.mark.parametrize("system", ["svm", "lr", "hr-svm", "hr-lr"])
@pytest.mark.parametrize("n_texts", [2, 3, 4])
def test_a_corpus_in_which_every_label_is_new_can_be_learnt(system, n_texts):
    labels = [["f", "g"], ["b"], ["t"], ["l"]][:n_texts]
    assert len(TextClassifier(system).fit(TEXTS[:n_texts], labels).predict(TEXTS[:2])) == 2


@pytest.mark.parametrize("system", ["svm", "lr", "hr-svm", "hr-lr"])
def test_a_corpus_with_a_few_documents_a_label_can_be_learnt(system):
    labels = [["food/fruit", "drink"], ["food/bread"], ["drink/tea"], ["drink/tea"], ["food/fruit"], ["food/bread"]]
    clf = TextClassifier(system).fit(TEXTS, labels)
    assert isinstance(clf.decision_, GCut)
    answers = clf.predict(TEXTS)
    assert all(isinstance(row, list) and row for row in answers)


# ---- texts ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def multi_label():
    """Texts of one or two topics each."""
    words = {"fruit": "apple pear plum", "bread": "rye crust loaf", "tea": "leaf cup kettle"}
    paths = {"fruit": "food/fruit", "bread": "food/bread", "tea": "drink/tea"}
    rng, names = np.random.default_rng(0), list(words)
    texts, labels = [], []
    for i in range(36):
        topics = [names[i % 3]] if i % 2 else [names[i % 3], names[(i + 1) % 3]]
        texts.append(" ".join(word for topic in topics for word in rng.permutation(words[topic].split())[:2]))
        labels.append(sorted(paths[topic] for topic in topics))
    return texts, labels


@pytest.mark.parametrize("system", ["svm", "hr-lr"])
def test_texts_with_several_labels_get_lists_with_several(system, multi_label):
    texts, labels = multi_label
    clf = TextClassifier(system).fit(texts, labels)
    answers = clf.predict(texts)
    assert isinstance(clf.decision_, GCut)
    assert all(isinstance(row, list) and row for row in answers)
    assert np.mean([sorted(row) == truth for row, truth in zip(answers, labels, strict=True)]) > 0.9


@pytest.mark.parametrize("system", ["svm", "hr-svm"])
def test_texts_with_one_label_get_one(system, multi_label):
    texts, labels = multi_label
    one = [row[0] for row in labels]
    clf = TextClassifier(system).fit(texts, one)
    assert isinstance(clf.decision_, Best)
    answers = clf.predict(texts)
    assert answers.shape == (len(texts),)
    assert set(answers.tolist()) <= set(one)
    in_lists = TextClassifier(system).fit(texts, [[label] for label in one]).predict(texts)
    assert in_lists == [[answer] for answer in answers]


@pytest.mark.parametrize(
    "rule", [None, SCut(fbr=0.3, below_fbr="never"), PCut(), RCut()], ids=["of the system", "SCut", "PCut", "RCut"]
)
def test_a_learnt_rule_is_kept_with_the_model(rule, multi_label, tmp_path):
    texts, labels = multi_label
    clf = TextClassifier("svm", decision=rule).fit(texts, labels)
    clf.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    assert again.decision_ == clf.decision_
    assert again.predict(texts) == clf.predict(texts)
    if isinstance(clf.decision_, SCut):
        np.testing.assert_array_equal(again.decision_.thresholds, clf.decision_.thresholds)
        assert np.isfinite(clf.decision_.thresholds).sum() >= 3


def test_a_rule_that_was_given_stays_as_it_was(multi_label):
    rule = SCut()
    clf = TextClassifier("svm", decision=rule).fit(*multi_label)
    assert rule.thresholds is None
    assert clf.decision is rule
    assert clf.decision_.thresholds is not None


def test_thresholds_are_fitted_on_held_out_scores_and_not_on_training_scores(multi_label):
    """In words that no other text has, every document is its own: scores that were fitted would be far higher."""
    _, labels = multi_label
    texts = [f"word{i} other{i} third{i}" for i in range(len(labels))]
    clf = TextClassifier("svm", decision=SCut(fbr=0)).fit(texts, labels)
    fitted = clf.learner_.scores(clf.vectorizer_.transform(texts))
    leaves = [clf.taxonomy_.index(path) for path in ("food/fruit", "food/bread", "drink/tea")]
    assert np.all(clf.decision_.thresholds[leaves] < np.quantile(fitted[:, leaves], 0.9, axis=0))


def test_documents_whose_label_no_other_has_say_nothing_of_a_rule(spied):
    taxonomy = Taxonomy.flat(["a", "b", "c", "d"])
    X = csr_array(np.arange(1, 11, dtype=np.float32)[:, None])
    Y = taxonomy.encode([["a"], ["b"], ["a"], ["b"], ["a", "c"], ["d"], ["a"], ["b"], [], ["a", "b"]])
    fit_rule(rule := Recorder(), Spy(taxonomy=taxonomy).fit(X, Y), X, Y)
    assert sorted(rule.scores[:, 0].tolist()) == [1, 2, 3, 4, 7, 8, 9, 10]


def test_with_one_document_a_class_answers_do_not_have_dozens_of_labels(shop):
    train, first = shop.train.labelled(), {}
    for document in np.random.default_rng(2).permutation(len(train)).tolist():
        first.setdefault(train.labels[document][0], document)
    few = train.take(np.sort(list(first.values())))
    fitted = TextClassifier(taxonomy=shop.taxonomy).fit(few.documents, few.labels)
    assert fitted.decision_.kind == "gcut"
    assert np.mean([len(found) for found in fitted.predict(shop.test.documents)]) < 1.5
