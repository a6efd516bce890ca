import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import shrinkage as oracle
from oracles import tied_weights as slow
from oracles.shrinkage import Corpus
from scipy.sparse import csr_array
from seeds import each_seed
from shrinkage_problems import CORNERS, FAMILY, assert_same_scores, corpora, corpus_of, fit, lam_of, random_corpus
from sklearn.exceptions import ConvergenceWarning

from ramify import Taxonomy
from ramify.errors import InputError, ModelError
from ramify.learners import ShrinkageNaiveBayes
from ramify.learners.naive_bayes import tied_weights as fast

TIES = ("always", "auto")


def fit_tied(corpus, tie_weights="auto", **options):
    return fit(corpus, **{"newton": True, "tol": 1e-12, "tie_weights": tie_weights, **options})


def class_units(corpus):
    return [("class", c) for c in oracle.classes(corpus)]


def assert_same_weights(learner, corpus, shrunk, held_out=frozenset()):
    expected = slow.tied_weights(corpus, class_units(corpus), shrunk, set(held_out))
    for unit, lam in expected.items():
        np.testing.assert_allclose(lam_of(learner, unit[1]), lam, rtol=0, atol=2e-5)
    return expected


# ---- against the oracle ---------------------------------------------------------------------------------------------


@each_seed(60)
@pytest.mark.parametrize("tie_weights", TIES)
def test_tied_weights_and_scores_equal_the_oracle(seed, tie_weights):
    corpus = random_corpus(seed)
    learner = fit_tied(corpus, tie_weights)
    expected = assert_same_weights(learner, corpus, tie_weights == "auto")
    theta = {unit: oracle.mixed(corpus, unit, lam) for unit, lam in expected.items()}
    assert_same_scores(learner, corpus, theta, np.vstack([corpus.X[:3], np.zeros((1, corpus.X.shape[1]))]))


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("tie_weights", TIES)
@pytest.mark.parametrize("newton", [False, True])
def test_tied_weights_of_corners_equal_the_oracle(corner, tie_weights, newton):
    learner = fit_tied(CORNERS[corner], tie_weights, newton=newton, tol=1e-11, max_iter=200_000)
    assert_same_weights(learner, CORNERS[corner], tie_weights == "auto")


@each_seed(30)
@pytest.mark.parametrize("tie_weights", TIES)
def test_tied_weights_from_held_out_documents_equal_the_oracle(seed, tie_weights):
    corpus = random_corpus(seed)
    learner = fit_tied(corpus, tie_weights, weights="held-out", held_out=[0.3, 0.6][seed % 2], random_state=seed)
    held_out = set(learner.held_out_documents_.tolist())
    if held_out:
        assert_same_weights(learner, corpus, tie_weights == "auto", held_out)


@each_seed(40)
@pytest.mark.parametrize("tie_weights", TIES)
def test_inner_nodes_have_groups_of_their_own_and_equal_the_oracle(seed, tie_weights):
    corpus = random_corpus(seed, "positive")
    if not corpus.X.sum(axis=1).all():
        return  # all documents of a forest are a unit that the oracle does not fit
    learner, plain = fit_tied(corpus, tie_weights, branches=2), fit_tied(corpus, tie_weights)
    expected = slow.tied_weights(corpus, oracle.units(corpus), tie_weights == "auto", set())
    for unit, (node, is_inner) in enumerate(zip(learner.units_.node, learner.units_.is_inner, strict=True)):
        if node >= 0:
            lam = expected["inner" if is_inner else "class", int(node)]
            np.testing.assert_allclose(learner.weights_[learner.units_.weights_at(unit)], lam, rtol=0, atol=2e-5)
    for c in oracle.classes(corpus):  # which do not depend on the weights of inner nodes
        np.testing.assert_array_equal(lam_of(learner, c), lam_of(plain, c))


# ---- by hand --------------------------------------------------------------------------------------------------------


def test_a_class_with_one_document_trusts_itself():
    learner = fit_tied(corpus_of(FAMILY, [[2, 1, 0], [0, 1, 2]], [{1}, {2}]))
    np.testing.assert_allclose(lam_of(learner, 1), [4 / 9, 2 / 9, 1 / 3])  # equal ones would make the classes equal
    scores = learner.scores(csr_array([[1.0, 0, 0], [0, 0, 1]]))
    assert scores[0, 1] > scores[0, 2]
    assert scores[1, 2] > scores[1, 1]


@each_seed(30)
@pytest.mark.parametrize("tie_weights", TIES)
def test_an_own_word_counts_at_least_twice_as_much_as_one_of_the_next_estimate(seed, tie_weights):
    corpus = random_corpus(seed)
    learner = fit_tied(corpus, tie_weights)
    for c in oracle.classes(corpus):
        lam = lam_of(learner, c)[slow.with_data(corpus, ("class", c), set())]
        totals = slow.words_behind(corpus, ("class", c), set())
        if len(totals) > 1 and totals[0] > 0:
            assert lam[0] / totals[0] >= 2 * lam[1] / totals[1] - 1e-12


def test_a_class_with_one_document_takes_the_weights_of_classes_with_two():
    # n1 and n2 have two documents each that say the same, n3 has one
    corpus = corpus_of([[], [0], [0], [0]], [[4, 0, 0], [4, 0, 0], [0, 4, 0], [0, 4, 0], [0, 0, 4]], [{1}, {1}, {2}, {2}, {3}])
    learner = fit_tied(corpus, "always")
    np.testing.assert_array_equal(lam_of(learner, 3), lam_of(learner, 1))
    assert lam_of(learner, 3)[0] > 0.5
    assert lam_of(fit(corpus), 3)[0] == 0


def test_sizes_are_powers_of_two_of_the_documents_left():
    rng = np.random.default_rng(0)
    sizes = {1: 2, 2: 3, 3: 4, 4: 5, 5: 8, 6: 9}
    labels = [{c} for c, n in sizes.items() for _ in range(n)]
    corpus = corpus_of([[], *([[0]] * 6)], rng.poisson(1.0, (len(labels), 8)), labels)
    lam = {c: tuple(lam_of(fit_tied(corpus, "always"), c)) for c in sizes}
    # left: 1 | 2, 3 | 4, 7 | 8; each class takes the group of its whole size
    assert lam[1] == lam[2]  # 2 and 3
    assert lam[3] == lam[4]  # 4 and 5
    assert lam[5] == lam[6]  # 8 and 9
    assert len(set(lam.values())) == 3


def test_depth_counts_only_nodes_that_add_documents():
    # n2 hangs from n0 by a chain, n3 directly: both mix themselves, the root and the uniform estimate
    corpus = corpus_of([[], [0], [1], [0]], [[3, 1, 0], [2, 1, 1], [0, 1, 3], [1, 0, 3]], [{2}, {2}, {3}, {3}])
    learner = fit_tied(corpus, "always")
    deep = lam_of(learner, 2)
    assert deep[1] == 0
    np.testing.assert_array_equal(deep[[0, 2, 3]], lam_of(learner, 3))


def test_a_long_document_counts_as_much_as_a_short_one():
    short = corpus_of(FAMILY, [[2, 1, 0], [1, 2, 0], [0, 1, 2], [1, 0, 2]], [{1}, {1}, {2}, {2}])
    theta = oracle.estimates(short, oracle.layers_of(short, ("class", 1)))
    assert theta.shape == (3, 3)
    once = slow.words(short, ("class", 1), set())
    assert sum(mass for mass, _ in once) == pytest.approx(2)
    long = corpus_of(FAMILY, np.asarray(short.X) * [[50], [1], [1], [1]], short.own)
    masses = slow.words(long, ("class", 1), set())
    assert sum(mass for mass, _ in masses) == pytest.approx(2)
    assert_same_weights(fit_tied(long, "always"), long, shrunk=False)


# ---- laws -----------------------------------------------------------------------------------------------------------


@given(corpora(), st.sampled_from(TIES))
def test_tied_weights_are_a_distribution_over_estimates_with_data(corpus, tie_weights):
    learner = fit_tied(corpus, tie_weights, max_iter=50)
    for c in oracle.classes(corpus):
        lam, theta = lam_of(learner, c), learner.estimates_for(c)
        assert lam.min() >= 0
        assert lam.sum() == pytest.approx(1, abs=1e-12)
        assert theta.sum() == pytest.approx(1, abs=1e-9)
        has_data = oracle.estimates(corpus, oracle.layers_of(corpus, ("class", c))).sum(axis=1) > 0
        assert (lam > 0).tolist() == has_data.tolist()


@each_seed(15)
@pytest.mark.parametrize("tie_weights", TIES)
def test_order_threads_and_the_unit_of_weight_do_not_matter(seed, tie_weights, monkeypatch):
    monkeypatch.setattr(fast, "MOST_WORDS", [2**20, 5][seed % 2])
    corpus = random_corpus(seed)
    order = np.random.default_rng(seed).permutation(len(corpus.X))
    moved = Corpus(corpus.parents, corpus.X[order], [corpus.own[d] for d in order], corpus.s[order])
    heavier = Corpus(corpus.parents, corpus.X, corpus.own, corpus.s * 5)
    straight = fit_tied(corpus, tie_weights)
    others = [fit_tied(moved, tie_weights), fit_tied(corpus, tie_weights, n_jobs=2), fit_tied(heavier, tie_weights)]
    for other in others:
        for c in oracle.classes(corpus):
            np.testing.assert_allclose(lam_of(other, c), lam_of(straight, c), rtol=0, atol=1e-6)


def test_large_groups_read_a_part_of_their_documents(monkeypatch):
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.3), size=2)
    X = np.vstack([rng.multinomial(30, topic, size=300) for topic in topics]).astype(np.float32)
    y = [0] * 300 + [1] * 300
    whole = ShrinkageNaiveBayes(tie_weights="always").fit(X, y)
    monkeypatch.setattr(fast, "MOST_WORDS", 3000)
    part = ShrinkageNaiveBayes(tie_weights="always").fit(X, y)
    assert part.mixture_weights(0) != whole.mixture_weights(0)
    np.testing.assert_allclose(lam_of(part, 0), lam_of(whole, 0), atol=0.05)


def test_weights_move_from_those_of_the_group_to_those_of_the_class_with_more_documents():
    rng = np.random.default_rng(1)
    topics = np.hstack([rng.dirichlet(np.full(60, 0.3), size=3), np.zeros((3, 5000))])
    topics[2] = np.where(np.arange(5060) < 60, 0, 1 / 5000)  # a class whose documents have nothing in common
    far = []
    for n in (4, 30, 200):
        X = np.vstack([rng.multinomial(10, topic, size=n) for topic in topics])
        corpus = corpus_of([[], [0], [0], [0]], X, [{1}] * n + [{2}] * n + [{3}] * n)
        own, tied, auto = (lam_of(fit_tied(corpus, tie), 3)[-1] for tie in ("never", "always", "auto"))
        assert tied < auto < own
        far.append((auto - tied) / (own - tied))
    assert far == sorted(far)
    assert far[0] < 0.1
    assert far[-1] > 0.4


# ---- more documents, saving -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tie_weights", ["auto", "always", "never"])
def test_training_by_one_part_is_training_and_saving_changes_nothing(tie_weights):
    corpus = random_corpus(3, "positive")
    Y = fit_tied(corpus, tie_weights).taxonomy_.encode([[f"n{c}" for c in own] for own in corpus.own])
    made = ShrinkageNaiveBayes(Taxonomy.from_edges(edges(corpus)), tie_weights=tie_weights, max_iter=5000)
    whole, first = made.fit(csr_array(corpus.X), Y), None
    first = ShrinkageNaiveBayes(made.taxonomy, tie_weights=tie_weights, max_iter=5000).partial_fit(csr_array(corpus.X), Y)
    np.testing.assert_array_equal(first.weights_, whole.weights_)
    loaded = ShrinkageNaiveBayes.from_state(made.taxonomy, *whole.state())
    assert loaded.tie_weights == tie_weights
    np.testing.assert_allclose(loaded.weights_, whole.weights_, rtol=1e-12)
    np.testing.assert_allclose(loaded.scores(corpus.X), whole.scores(corpus.X), rtol=1e-6)


def edges(corpus):
    return [(f"n{node}", f"n{above[0]}" if above else None) for node, above in enumerate(corpus.parents)]


def test_a_model_file_with_unknown_ties_is_refused():
    fitted = fit_tied(CORNERS["one document a class"])
    values, arrays = fitted.state()
    values["parameters"]["tie_weights"] = "sometimes"
    with pytest.raises(ModelError, match="parameters of naive Bayes are not ones that it takes"):
        ShrinkageNaiveBayes.from_state(fitted.taxonomy_, values, arrays)


def test_a_second_document_moves_a_class_and_its_group():
    corpus = corpus_of([[], [0], [0], [0]], [[4, 1, 0], [0, 4, 1], [1, 0, 4]], [{1}, {2}, {3}])
    learner = fit_tied(corpus)
    kept = lam_of(learner, 3)
    learner.partial_fit(csr_array([[5.0, 0, 0]]), [["n1"]])
    assert lam_of(learner, 1)[0] > kept[0]
    np.testing.assert_allclose(lam_of(learner, 3), kept)  # without new documents it keeps its weights


# ---- what is said ---------------------------------------------------------------------------------------------------


def test_weights_that_did_not_converge_are_reported():
    corpus = random_corpus(1)
    learner = ShrinkageNaiveBayes(max_iter=2, newton=False, tie_weights="never")
    with pytest.warns(
        ConvergenceWarning, match="fits of mixture weights reached max_iter=2 before tol=1e-10; raise max_iter, set newton"
    ):
        learner.fit(csr_array(corpus.X), np.arange(len(corpus.X)) % 2)
    assert learner.n_iter_ == 2
    learner.set_params(tol=0.0).fit(csr_array(corpus.X), np.arange(len(corpus.X)) % 2)  # which asks for just so many steps


@each_seed(100)
@pytest.mark.parametrize("tie_weights", ["auto", "always", "never"])
def test_default_settings_converge(seed, tie_weights):
    corpus = random_corpus(seed)
    Y = fit(corpus, max_iter=1).taxonomy_.encode([[f"n{c}" for c in own] for own in corpus.own])
    ShrinkageNaiveBayes(Taxonomy.from_edges(edges(corpus)), tie_weights=tie_weights).fit(
        csr_array(corpus.X), Y, sample_weight=corpus.s
    )  # warnings are errors


def test_unknown_ties_are_refused():
    with pytest.raises(InputError, match="tie_weights is 'often'; give 'auto', 'always' or 'never'"):
        ShrinkageNaiveBayes(tie_weights="often").fit([[1, 0], [0, 1]], [0, 1])
