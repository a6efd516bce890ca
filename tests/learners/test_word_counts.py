"""Learning in pieces is learning at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.naive_bayes import MultinomialNB

from ramify import Taxonomy
from ramify.errors import InputError, LabelError
from ramify.learners import MultinomialNaiveBayes, PachinkoNaiveBayes, ShrinkageNaiveBayes

TAXONOMY = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/z/deep", "c"])
LABELS = ("a/x", "a/y", "b", "b/x", "b/z/deep", "c")
COUNTING = [MultinomialNaiveBayes, ShrinkageNaiveBayes, PachinkoNaiveBayes]
EXACT = [MultinomialNaiveBayes, PachinkoNaiveBayes]


def documents(seed=0, n=60):
    rng = np.random.default_rng(seed)
    labels = [[LABELS[i] for i in rng.choice(len(LABELS), size=1 + (rng.random() < 0.2), replace=False)] for _ in range(n)]
    X = rng.poisson(0.5, (n, 15)).astype(np.float32)
    for row, mine in zip(X, labels, strict=True):
        row[[LABELS.index(label) for label in mine]] += 3
    return X, labels


@pytest.mark.parametrize("learner", EXACT)
@given(cut=st.integers(10, 50), seed=st.integers(0, 20))
def test_pieces_give_the_same_scores_as_all_at_once(learner, cut, seed):
    X, y = documents(seed)
    pieces = learner(TAXONOMY).partial_fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:])
    np.testing.assert_allclose(pieces.scores(X), learner(TAXONOMY).fit(X, y).scores(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("learner", COUNTING)
def test_counts_and_priors_add_up(learner):
    X, y = documents()
    pieces, whole = learner(TAXONOMY).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]), learner(TAXONOMY).fit(X, y)
    assert (pieces.counts_ != whole.counts_).nnz == 0
    np.testing.assert_allclose(pieces.log_prior_, whole.log_prior_)
    assert pieces.class_nodes_.tolist() == whole.class_nodes_.tolist()


@pytest.mark.parametrize("learner", COUNTING)
def test_sample_weights_add_up_too(learner):
    X, y = documents()
    weight = np.random.default_rng(1).random(len(y))
    pieces = learner(TAXONOMY).partial_fit(X[:30], y[:30], sample_weight=weight[:30])
    pieces.partial_fit(X[30:], y[30:], sample_weight=weight[30:])
    np.testing.assert_allclose(pieces.counts_.toarray(), learner(TAXONOMY).fit(X, y, weight).counts_.toarray())


@pytest.mark.parametrize("learner", COUNTING)
def test_a_class_that_comes_later_is_learnt(learner):
    X, y = documents()
    late = np.asarray(["b/z/deep" in labels for labels in y])
    early_y, late_y = [y[i] for i in np.flatnonzero(~late)], [y[i] for i in np.flatnonzero(late)]
    fitted = learner(TAXONOMY).partial_fit(X[~late], early_y)
    assert TAXONOMY.index("b/z/deep") not in fitted.class_nodes_
    fitted.partial_fit(X[late], late_y)
    best = fitted.predict_proba(X[late])[:, TAXONOMY.index("b/z/deep")]
    assert best.mean() > 0.5


@pytest.mark.parametrize("learner", COUNTING)
def test_a_taxonomy_may_grow(learner):
    X, y = documents()
    small = Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/z", "c"])
    larger = Taxonomy.from_paths(["0", "a/x", "a/y", "a/new", "b/x", "b/z/deep", "c/below"])
    rename = {"b/z/deep": "b/z"}
    early = [[rename.get(label, label) for label in labels] for labels in y[:30]]
    late = [["a/new"] if "c" in labels else labels for labels in y[30:]]
    fitted = learner(small).partial_fit(X[:30], early).partial_fit(X[30:], late, taxonomy=larger)
    whole = learner(larger).fit(X, early + late)
    assert (fitted.counts_ != whole.counts_).nnz == 0
    assert fitted.taxonomy_ is larger
    assert fitted.class_nodes_.tolist() == whole.class_nodes_.tolist()
    if learner in EXACT:
        np.testing.assert_allclose(fitted.scores(X), whole.scores(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("learner", COUNTING)
def test_nodes_are_neither_moved_nor_taken_away(learner):
    X, y = documents()
    fitted = learner(TAXONOMY).fit(X, y)
    with pytest.raises(InputError, match="'c' is missing from the new taxonomy"):
        fitted.partial_fit(X[:2], ["a/x", "a/y"], taxonomy=Taxonomy.from_paths(["a/x", "a/y", "b/x", "b/z/deep"]))
    edges = [
        ("a", None),
        ("a/x", None),
        ("a/y", "a"),
        ("b", None),
        ("b/x", "b"),
        ("b/z", "b"),
        ("b/z/deep", "b/z"),
        ("c", None),
    ]
    with pytest.raises(InputError, match="'a/x' has another parent"):
        fitted.partial_fit(X[:2], ["a/y", "c"], taxonomy=Taxonomy.from_edges(edges))


def test_plain_classes_in_pieces_equal_scikit_learn():
    X, _ = documents()
    y = np.arange(60) % 3 + 5
    ours, theirs = MultinomialNaiveBayes(), MultinomialNB()
    for part in (slice(0, 1), slice(1, 30), slice(30, 60)):
        ours.partial_fit(X[part], y[part], classes=[5, 6, 7])
        theirs.partial_fit(X[part], y[part], classes=[5, 6, 7])
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_plain_classes_may_be_added():
    X, _ = documents()
    fitted = MultinomialNaiveBayes().partial_fit(X[:20], ["b", "d"] * 10).partial_fit(X[20:40], ["a", "c"] * 10)
    assert fitted.classes_.tolist() == ["a", "b", "c", "d"]
    whole = MultinomialNaiveBayes().fit(X[:40], ["b", "d"] * 10 + ["a", "c"] * 10)
    np.testing.assert_allclose(fitted.predict_proba(X), whole.predict_proba(X), atol=1e-6)
    with pytest.raises(InputError, match="mix types"):
        fitted.partial_fit(X[:2], [1, 2])


def test_one_class_is_too_few_at_first():
    with pytest.raises(LabelError, match="at least two classes"):
        MultinomialNaiveBayes(TAXONOMY).partial_fit([[1, 0]], ["c"])


def test_room_for_more_words_changes_no_count():
    X, y = documents()
    columns = np.asarray([i + i // 3 for i in range(15)])
    fitted = ShrinkageNaiveBayes(TAXONOMY).fit(X, y)
    before = fitted.mixture_weights("a/x")
    fitted.widen(columns, 22)
    assert fitted.n_features_in_ == 22
    wide = np.zeros((len(X), 22), dtype=np.float32)
    wide[:, columns] = X
    assert (fitted.counts_ != ShrinkageNaiveBayes(TAXONOMY).fit(wide, y).counts_).nnz == 0
    assert fitted.mixture_weights("a/x") == before


@pytest.mark.parametrize("tie_weights", ["auto", "always", "never"])
def test_weights_go_on_from_those_before(tie_weights):
    """New documents move the weights of their classes, the more of them there are; other classes keep theirs."""
    X, y = documents(n=400)
    made = ShrinkageNaiveBayes(TAXONOMY, tie_weights=tie_weights)
    fitted = clone(made).fit(X[:200], y[:200])
    kept = dict(fitted.mixture_weights("c")), dict(fitted.mixture_weights("a/x"))
    some = [i for i in range(200, 400) if y[i] == ["a/x"]]
    fitted.partial_fit(X[some], [y[i] for i in some])
    assert dict(fitted.mixture_weights("c")) == pytest.approx(kept[0])
    assert dict(fitted.mixture_weights("a/x")) != pytest.approx(kept[1])
    whole, pieces = clone(made).fit(X, y), clone(made).fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    for label in LABELS:
        one, other = pieces.mixture_weights(label), whole.mixture_weights(label)
        assert max(abs(a - b) for (_, a), (_, b) in zip(one, other, strict=True)) < 0.2


def test_held_out_weights_cannot_go_on():
    X, y = documents()
    with pytest.raises(InputError, match="needs weights='leave-one-out'"):
        ShrinkageNaiveBayes(TAXONOMY, weights="held-out").fit(X, y).partial_fit(X, y)
    with pytest.raises(InputError, match="needs all words"):
        PachinkoNaiveBayes(TAXONOMY, n_words=3).fit(X, y).partial_fit(X, y)


@pytest.mark.parametrize("learner", COUNTING)
def test_top_terms_name_the_words_of_a_class(learner):
    X, y = documents()
    fitted = learner(TAXONOMY).fit(X, y)
    assert fitted.top_terms("a/x", 1)[0][0] == LABELS.index("a/x")
    assert fitted.top_terms("a/x", 2, [f"w{i}" for i in range(15)])[0][0] == "w0"
    with pytest.raises(InputError, match="2 feature names for 15 features"):
        fitted.top_terms("a/x", 2, ["one", "two"])


def test_one_new_document_moves_the_weights_of_many_before_it_little():
    X, y = documents(n=400)
    fitted = ShrinkageNaiveBayes(TAXONOMY).fit(X, y)
    before = fitted.mixture_weights("a/x")
    odd = np.zeros((1, 15), dtype=np.float32)
    odd[0, 14] = 5  # nothing that the class has said before
    fitted.partial_fit(odd, [["a/x"]])
    moves = [abs(a - b) for (_, a), (_, b) in zip(fitted.mixture_weights("a/x"), before, strict=True)]
    assert 0 < max(moves) < 0.05
