import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import shrinkage as oracle
from oracles.shrinkage import Corpus
from scipy.optimize import minimize
from scipy.sparse import csr_array
from seeds import each_seed
from shrinkage_problems import CORNERS, FAMILY, assert_same_scores, corpora, corpus_of, fit, lam_of, random_corpus

from ramify import Taxonomy
from ramify.errors import InputError
from ramify.learners import ShrinkageNaiveBayes

STEPS = 300


def assert_same_mixtures(learner, corpus, held_out=None, tol=1e-6, max_iter=STEPS):
    for c in oracle.classes(corpus):
        lam = oracle.weights(corpus, ("class", c), held_out, tol, max_iter)
        np.testing.assert_allclose(lam_of(learner, c), lam, rtol=0, atol=1e-9)
        expected = oracle.mixed(corpus, ("class", c), lam, held_out)
        np.testing.assert_allclose(learner.estimates_for(c), expected, rtol=0, atol=1e-9)


# ---- the oracle itself ----------------------------------------------------------------------------------------------


def sure_words(seed):
    """The unseen words of the first class that has some, and their estimates."""
    corpus = random_corpus(seed)
    found = (oracle.left_out_words(corpus, unit) for unit in oracle.units(corpus))
    return next(((masses, thetas) for masses, thetas in found if len(masses)), (None, None))


def best_likelihood(masses, thetas):
    """The highest mean log-probability of a word over the simplex, by a solver that knows nothing of EM."""
    k = thetas.shape[1]
    result = minimize(
        lambda lam: -oracle.log_likelihood(np.maximum(lam, 1e-300), masses, thetas),
        np.full(k, 1 / k),
        jac=lambda lam: -oracle.gains(np.maximum(lam, 1e-300), masses, thetas),
        bounds=[(0, 1)] * (k - 1) + [(1e-12, 1)],
        constraints={"type": "eq", "fun": lambda lam: lam.sum() - 1, "jac": lambda lam: np.ones(k)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    lam = np.maximum(result.x, 0)
    return oracle.log_likelihood(lam / lam.sum(), masses, thetas)


@each_seed(60)
def test_slow_em_converges_to_the_optimum_within_its_certificate(seed):
    masses, thetas = sure_words(seed)
    if masses is None:
        return
    steps = oracle.em_steps(masses, thetas, tol=1e-9, max_iter=3000)
    values = [oracle.log_likelihood(lam, masses, thetas) for lam in steps]
    assert np.diff(values).min(initial=0) > -1e-12
    best = best_likelihood(masses, thetas)
    for lam, value in zip(steps, values, strict=True):
        assert best <= value + oracle.gains(lam, masses, thetas).max() - 1 + 1e-9
    assert values[-1] >= best - 1e-6


def test_slow_estimates_count_every_pair_once_along_a_path():
    for seed in range(40):
        corpus = random_corpus(seed)
        everything = sorted(pair for c in oracle.classes(corpus) for pair in oracle.pairs_in(corpus, ("class", c)))
        for unit in oracle.units(corpus):
            assert sorted(pair for layer in oracle.layers_of(corpus, unit) for pair in layer) == everything


def test_slow_paths_go_through_the_inner_unit_of_a_labelled_parent():
    parents = [[], [0], [1], [0], []]
    inner = corpus_of(parents, np.ones((3, 1)), [{1}, {2}, {3}])
    assert oracle.path_of(inner, ("class", 1)) == [("class", 1), ("inner", 1), ("inner", 0)]
    assert oracle.path_of(inner, ("class", 3)) == [("class", 3), ("inner", 0)]
    forest = corpus_of(parents, np.ones((2, 1)), [{1}, {4}])
    assert oracle.path_of(forest, ("class", 1)) == [("class", 1), ("inner", 0), oracle.ALL]
    assert oracle.path_of(forest, ("class", 4)) == [("class", 4), oracle.ALL]


# ---- by hand --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "own"), [(0, 1 / 3), (1, 2 / 3), (2, 4 / 5), (3, 8 / 9)])
def test_weights_after_each_step_are_those_computed_by_hand(steps, own):
    # two documents "A A" below one root with "B": without one of them θ is (1, 0), the sibling's is (0, 1)
    corpus = corpus_of(FAMILY, [[1, 0], [1, 0], [0, 1]], [{1}, {1}, {2}])
    learner = fit(corpus, max_iter=steps)
    sibling = 1 / 3 if steps == 0 else 0
    np.testing.assert_allclose(lam_of(learner, "n1"), [own, sibling, 1 - own - sibling], atol=1e-15)
    np.testing.assert_allclose(oracle.weights(corpus, ("class", 1), max_iter=steps), lam_of(learner, 1), atol=1e-15)
    uniform = 1 - own - sibling
    np.testing.assert_allclose(learner.estimates_for(1), [own + uniform / 2, sibling + uniform / 2], atol=1e-15)


def test_the_weights_are_named_from_the_class_to_the_uniform():
    forest = fit(corpus_of([[], [0], []], np.eye(2), [{1}, {2}]))
    assert len(forest.mixture_weights("n1")) == 4  # n1, n0, all, uniform
    assert forest.mixture_weights("n1")[0][0] == "n1"
    assert forest.mixture_weights("n1")[1][0] == "n0"
    assert forest.mixture_weights("n1")[-1][0] == "uniform"
    assert forest.mixture_weights("n1") == forest.mixture_weights(1)


# ---- against the oracle ---------------------------------------------------------------------------------------------


@each_seed(200)
def test_mixtures_and_scores_of_seeded_problems_equal_the_oracle(seed):
    corpus, fit_prior = random_corpus(seed), seed % 3 > 0
    learner = fit(corpus, fit_prior=fit_prior, max_iter=STEPS)
    assert_same_mixtures(learner, corpus)
    new = np.vstack([corpus.X[:3], np.eye(corpus.X.shape[1]), np.zeros((1, corpus.X.shape[1]))])
    assert_same_scores(learner, corpus, oracle.learn(corpus, max_iter=STEPS), new, fit_prior)


@given(corpora(), st.sampled_from([1e-6, 1e-3, 0.0]), st.sampled_from([0, 1, 7, STEPS]))
def test_mixtures_equal_the_oracle_whenever_em_stops(corpus, tol, max_iter):
    assert_same_mixtures(fit(corpus, tol=tol, max_iter=max_iter), corpus, tol=tol, max_iter=max_iter)


@each_seed(60)
def test_held_out_mode_equals_the_oracle(seed):
    corpus = random_corpus(seed)
    options = {"weights": "held-out", "held_out": [0.3, 0.5, 0.8][seed % 3], "random_state": seed}
    learner = fit(corpus, max_iter=STEPS, **options)
    documents = learner.held_out_documents_
    assert documents.dtype == np.int64
    assert np.all(np.diff(documents) > 0)
    assert set(documents.tolist()) <= set(range(len(corpus.X)))
    np.testing.assert_array_equal(documents, fit(corpus, max_iter=0, **options).held_out_documents_)
    held_out = set(documents.tolist())
    assert_same_mixtures(learner, corpus, held_out)
    assert_same_scores(learner, corpus, oracle.learn(corpus, held_out, max_iter=STEPS), corpus.X[:3])


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("max_iter", [0, 1, STEPS])
def test_corners_equal_the_oracle(corner, max_iter):
    corpus = CORNERS[corner]
    learner = fit(corpus, max_iter=max_iter)
    assert_same_mixtures(learner, corpus, max_iter=max_iter)
    theta = oracle.learn(corpus, max_iter=max_iter)
    assert_same_scores(learner, corpus, theta, np.vstack([corpus.X, np.zeros_like(corpus.X[:1])]))


def test_a_parent_with_one_child_has_no_weight():
    # n0 over the chain n1, n2, n3 and the leaf n4
    corpus = corpus_of([[], [0], [1], [2], [0]], [[2, 1, 0], [1, 2, 0], [0, 1, 2]], [{3}, {3}, {4}])
    lam = lam_of(fit(corpus), 3)
    assert lam.shape == (5,)
    assert lam[1] == lam[2] == 0


def test_a_class_with_one_document_never_trusts_itself():
    learner = fit(corpus_of(FAMILY, [[2, 1], [1, 3], [0, 1]], [{1}, {2}, {2}]))
    assert lam_of(learner, 1)[0] == 0
    assert lam_of(learner, 2)[0] > 0


def test_a_class_without_words_takes_equal_parts_of_what_has_data():
    corpus = corpus_of([[], [0], [1], [1], [0]], [[0, 0], [0, 0], [1, 3]], [{2}, {3}, {4}])
    np.testing.assert_allclose(lam_of(fit(corpus), 2), [0, 0, 0.5, 0.5], atol=1e-15)


# ---- laws -----------------------------------------------------------------------------------------------------------


@given(corpora())
def test_weights_are_a_distribution_and_so_are_estimates_and_posteriors(corpus):
    learner = fit(corpus, max_iter=20)
    for c in oracle.classes(corpus):
        lam, theta = lam_of(learner, c), learner.estimates_for(c)
        assert theta.dtype == np.float64
        assert lam.min() >= 0
        assert lam[-1] >= 0.99e-9
        assert lam.sum() == pytest.approx(1, abs=1e-12)
        assert theta.min() > 0
        assert theta.sum() == pytest.approx(1, abs=1e-9)
    total = np.nansum(np.exp(learner.scores(csr_array(corpus.X)).astype(float)), axis=1)
    np.testing.assert_allclose(total, 1, atol=1e-4)


@each_seed(12)
@pytest.mark.parametrize("newton", [False, True])
def test_likelihood_never_falls_with_another_step(seed, newton):
    corpus = random_corpus(seed)
    learners = [fit(corpus, tol=0, max_iter=steps, newton=newton) for steps in (*range(30), 100)]
    for c in oracle.classes(corpus):
        masses, thetas = oracle.left_out_words(corpus, ("class", c))
        if len(masses):
            values = [oracle.log_likelihood(lam_of(learner, c), masses, thetas) for learner in learners]
            assert np.diff(values).min() > -1e-8  # the least weight of the uniform may cost this much


@each_seed(40)
@pytest.mark.parametrize("newton", [False, True])
def test_no_other_weights_make_unseen_words_likelier(seed, newton):
    corpus = random_corpus(seed)
    learner = fit(corpus, tol=1e-12, max_iter=20_000, newton=newton)
    for c in oracle.classes(corpus):
        masses, thetas = oracle.left_out_words(corpus, ("class", c))
        if len(masses):
            reached = oracle.log_likelihood(lam_of(learner, c), masses, thetas)
            assert reached == pytest.approx(best_likelihood(masses, thetas), abs=1e-6)


@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-10])
@pytest.mark.parametrize("held_out", [None, 0.4])
def test_stopping_costs_no_more_likelihood_than_the_tolerance(newton, tol, held_out):
    for seed in range(20):
        corpus = random_corpus(seed)
        options = {} if held_out is None else {"weights": "held-out", "held_out": held_out, "random_state": seed}
        learner = fit(corpus, tol=tol, max_iter=1_000_000, newton=newton, **options)
        left_out = None if held_out is None else set(learner.held_out_documents_.tolist())
        for c in oracle.classes(corpus):
            lam, (masses, thetas) = lam_of(learner, c), oracle.left_out_words(corpus, ("class", c), left_out)
            mixed = oracle.mixed(corpus, ("class", c), lam, left_out)
            np.testing.assert_allclose(learner.estimates_for(c), mixed, rtol=0, atol=1e-12)
            if len(masses):
                assert oracle.gains(lam, masses, thetas).max() - 1 <= tol + 1e-8


@each_seed(15)
@pytest.mark.parametrize("newton", [False, True])
def test_neither_the_order_of_documents_nor_threads_change_anything(seed, newton):
    corpus = random_corpus(seed)
    order = np.random.default_rng(seed).permutation(len(corpus.X))
    moved = Corpus(corpus.parents, corpus.X[order], [corpus.own[d] for d in order], corpus.s[order])
    straight, shuffled, threads = (fit(c, newton=newton, n_jobs=jobs) for c, jobs in ((corpus, 1), (moved, 1), (corpus, 2)))
    for c in oracle.classes(corpus):
        if not newton:  # where many weights are best, Newton's steps may end at any of them, but at the same estimates
            np.testing.assert_allclose(lam_of(shuffled, c), lam_of(straight, c), rtol=0, atol=1e-9)
        np.testing.assert_allclose(shuffled.estimates_for(c), straight.estimates_for(c), rtol=0, atol=1e-9)
        np.testing.assert_array_equal(lam_of(threads, c), lam_of(straight, c))
        np.testing.assert_array_equal(threads.estimates_for(c), straight.estimates_for(c))
    X = csr_array(corpus.X)
    np.testing.assert_allclose(shuffled.scores(X), straight.scores(X), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(threads.scores(X), straight.scores(X))


@each_seed(15)
def test_documents_of_weight_zero_are_as_good_as_absent_and_the_unit_of_weight_is_free(seed):
    corpus = random_corpus(seed, "positive")
    stranger = np.full((1, corpus.X.shape[1]), 9.0)
    padded = Corpus(
        corpus.parents, np.vstack([corpus.X, stranger]), [*corpus.own, {oracle.classes(corpus)[0]}], np.append(corpus.s, 0)
    )
    plain, more, heavier = fit(corpus), fit(padded), fit(Corpus(corpus.parents, corpus.X, corpus.own, corpus.s * 8))
    for c in oracle.classes(corpus):
        for other in (more, heavier):
            np.testing.assert_allclose(lam_of(other, c), lam_of(plain, c), rtol=0, atol=1e-9)
            np.testing.assert_allclose(other.scores(corpus.X), plain.scores(corpus.X), rtol=1e-4, atol=1e-4)


def test_a_class_trusts_itself_more_when_it_has_more_documents():
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(60, 0.3), size=2)
    trust = []
    for n in (3, 10, 40):
        X = np.vstack([rng.multinomial(30, topic, size=n) for topic in words])
        trust.append(lam_of(fit(corpus_of(FAMILY, X, [{1}] * n + [{2}] * n)), 1)[0])
    assert trust == sorted(trust)
    assert trust[0] < trust[-1]


# ---- pruning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("branches", [1, 2, 3])
@pytest.mark.parametrize("held_out", [None, 0.4])
def test_pruned_scores_equal_the_oracle(branches, held_out):
    compared = 0
    for seed in range(40):
        corpus, fit_prior = random_corpus(seed, "positive"), seed % 2 == 0
        options = {} if held_out is None else {"weights": "held-out", "held_out": held_out, "random_state": seed}
        learner = fit(corpus, branches=branches, fit_prior=fit_prior, max_iter=STEPS, **options)
        left_out = None if held_out is None else set(learner.held_out_documents_.tolist())
        theta = oracle.learn(corpus, left_out, max_iter=STEPS)
        new = np.vstack([corpus.X, np.eye(corpus.X.shape[1]), 10 * np.eye(corpus.X.shape[1])])
        clear = [x for x in new if oracle.descend(corpus, theta, x, fit_prior, branches)[1] > 1e-3]
        if clear:
            assert_same_scores(learner, corpus, theta, np.array(clear), fit_prior, branches)
        compared += len(clear)
    assert compared > 100


@each_seed(20)
def test_keeping_every_branch_prunes_nothing(seed):
    corpus = random_corpus(seed)
    whole, pruned = fit(corpus), fit(corpus, branches=len(corpus.parents) + 1)
    np.testing.assert_allclose(pruned.scores(corpus.X), whole.scores(corpus.X), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(pruned.predict_proba(corpus.X), whole.predict_proba(corpus.X), atol=1e-5)


@pytest.mark.parametrize(
    ("labels", "reached"),
    [
        ([{2}, {3}, {4}], [[3], [3, 4], [2, 3, 4]]),  # n1 over n2 comes after the classes n3 and n4
        ([{2}, {3}, {0}], [[0], [0, 3], [0, 2, 3]]),  # the root's own class comes first
        ([{3}, {4}, {1}], [[1], [1, 3], [1, 3, 4]]),  # n1 is a class, with no class below it
    ],
)
@pytest.mark.parametrize("branches", [1, 2, 3])
def test_of_equal_branches_the_first_are_kept(labels, reached, branches):
    corpus = corpus_of([[], [0], [1], [0], [0]], np.eye(3), labels)
    learner = fit(corpus, branches=branches, fit_prior=False)
    P = learner.predict_proba(np.zeros((1, 3)))[0]
    assert [c for c in oracle.classes(corpus) if P[c] > 0] == reached[branches - 1]


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "guessed"},
        {"weights": None},
        *({"weights": "held-out", "held_out": share} for share in (0, 1, -0.1, 1.5, "much")),
        *({"branches": branches} for branches in (0, -1, 1.5, "two")),
        *({"tol": tol} for tol in (-1e-9, float("nan"), "small")),
        *({"max_iter": steps} for steps in (-1, 2.5)),
        {"newton": "yes"},
        {"fit_prior": "yes"},
    ],
)
def test_parameters_out_of_range_are_refused(options):
    with pytest.raises(InputError):
        ShrinkageNaiveBayes(**options).fit(np.eye(4), [0, 0, 1, 1])


def test_negative_values_are_refused():
    with pytest.raises(InputError, match="[Nn]egative"):
        ShrinkageNaiveBayes().fit([[-1, 0], [0, 1]], [0, 1])


def test_in_a_wide_tree_all_branches_give_the_scores_of_no_branches():
    """At the top, few units are compared, while most words are known to many."""
    rng = np.random.default_rng(0)
    leaves = [f"{top}/{leaf}" for top in "ab" for leaf in range(40)]
    taxonomy = Taxonomy.from_paths(leaves)
    y = [leaves[i % 80] for i in range(400)]
    common = rng.poisson(1.0, (400, 6))  # words that all classes have, and words that few have
    rare = rng.poisson(0.02, (400, 60))
    rare[np.asarray([label[0] == "a" for label in y])[:, None] == (np.arange(60) < 30)] = 0  # and that one half alone has
    X = np.concatenate([common, rare], axis=1).astype(np.float32)
    pruned = ShrinkageNaiveBayes(taxonomy, branches=80).fit(X, y)
    np.testing.assert_allclose(pruned.scores(X), ShrinkageNaiveBayes(taxonomy).fit(X, y).scores(X), rtol=1e-5, atol=1e-5)
    for unit in (1, 42):
        counts = np.diff(pruned._unit_counts[:, pruned.units_.path_of(unit)].toarray(), prepend=0.0, axis=1)
        factors = pruned._factors[pruned.units_.weights_at(unit)]
        top = pruned._score_units(csr_array(X), np.asarray([unit], dtype=np.int32), np.zeros(1))
        np.testing.assert_allclose(top[:, 0], X @ np.log(counts @ factors[:-1] + factors[-1]), rtol=1e-10)


def test_no_step_makes_a_word_impossible():
    """A word that one document alone has needs the uniform estimate, if only a little of it."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(200, 0.5))
    X = rng.multinomial(100, p, size=80).astype(np.float32)
    X = np.concatenate([X, np.zeros((80, 1), dtype=np.float32)], axis=1)
    X[0, 200] = 1
    fitted = ShrinkageNaiveBayes().fit(X, np.arange(80) % 2)
    assert fitted.mixture_weights(0)[-1][1] > 1e-6
    slow = ShrinkageNaiveBayes(newton=False, tol=1e-8, max_iter=200_000).fit(X, np.arange(80) % 2)
    np.testing.assert_allclose(fitted.estimates_for(0), slow.estimates_for(0), atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_iter": 10**24}, "max_iter is"),
        ({"random_state": "x"}, "random_state is 'x'"),
        ({"random_state": -1}, "random_state is -1"),
    ],
)
def test_settings_out_of_reach_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        ShrinkageNaiveBayes(**settings).fit([[1, 0], [0, 1]], [0, 1])
