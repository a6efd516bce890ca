"""AdaBoost.MH against its slow twin, and the laws that boosting keeps."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oracles import boosting as oracle
from oracles.taxonomy import close_upward, most_specific
from scipy.sparse import csr_array
from seeds import each_seed
from strategies import as_matrix, as_sets, build, random_forest, trees

from ramify.learners import AdaBoostMH

VARIANTS = ["R", "RA", "D"]
FLAT = [[], [], []]  # three classes


def fit(parents, X, rows, n_rounds, variant="R", weights=None, **parameters):
    """A fitted learner; rows: the label set of each document."""
    learner = AdaBoostMH(build(parents), n_rounds=n_rounds, variant=variant, **parameters)
    return learner.fit(csr_array(X), as_matrix(rows, len(parents)), weights)


def check_against_the_oracle(parents, X, rows, n_rounds, variant, weights=None, tolerance=1e-8):
    (found,) = fit(parents, X, rows, n_rounds, variant, weights).committees_
    oracle.check_same(found, oracle.adaboost(parents, X, rows, n_rounds, variant, weights), tolerance)


def random_problem(seed, n_documents=30, n_terms=8, parents=FLAT):
    """Documents with none to two labels, each label with words of its own among noise."""
    rng = np.random.default_rng(seed)
    rows = [set(rng.choice(len(parents), size=rng.integers(0, 3), replace=False).tolist()) for _ in range(n_documents)]
    rows[0], rows[1] = {0}, {len(parents) - 1}
    liked = rng.random((len(parents), n_terms)) < 0.3
    chance = 0.15 + 0.6 * np.array([liked[sorted(row)].any(axis=0) for row in rows])
    X = rng.random((n_documents, n_terms)) * (rng.random((n_documents, n_terms)) < chance)
    return X.astype(np.float32), rows


def with_odd_terms(X):
    """The same terms and, before and after them: one twice, one turned round, one everywhere, in one document, nowhere."""
    once = np.eye(len(X))[:, :1]
    odd = [X[:, :1], X[:, :1] == 0, np.ones((len(X), 1)), once, 1 - once, np.zeros((len(X), 1))]
    return np.hstack([odd[1], odd[3], X, *odd]).astype(np.float32)


# ---- equal to the slow twin -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "vote_without", "vote", "z", "normalizer"),
    [
        ("R", -math.log(3) / 2, math.log(3) / 2, 0, 1 / math.sqrt(3)),
        ("RA", 0, math.log(3) / 2, 1 / 2, 1 / 2 + 1 / math.sqrt(12)),
        ("D", -math.log(17) / 2, math.log(17) / 2, 0, 1 / math.sqrt(17)),
    ],
)
def test_a_round_worked_out_by_hand(variant, vote_without, vote, z, normalizer):
    """Term 0 marks the first class: it has 2/8 of the weight on one side, 0 on the other, and ε is 1/8; r is 1."""
    X, rows = np.array([[1, 0], [1, 0], [0, 0], [0, 1]], dtype=np.float32), [{0}, {0}, {1}, {1}]
    slow, (fast,) = oracle.adaboost([[], []], X, rows, 1, variant), fit([[], []], X, rows, 1, variant).committees_
    for committee in (slow, fast):
        assert list(committee.pivots) == [0]
        np.testing.assert_allclose(committee.absent, [[vote_without, -vote_without]], atol=1e-15)
        np.testing.assert_allclose(committee.present, [[vote, -vote]], atol=1e-15)
        np.testing.assert_allclose(committee.z, [z], atol=1e-8)
        np.testing.assert_allclose(committee.normalizers, [normalizer])


@pytest.mark.parametrize("n_rounds", [1, 5, 30])
@pytest.mark.parametrize("variant", VARIANTS)
def test_rounds_equal_the_oracle(variant, n_rounds):
    for seed in range(12):
        X, rows = random_problem(seed, n_terms=4 + seed % 5)
        check_against_the_oracle(FLAT, X, rows, n_rounds, variant)


@each_seed(8)
@pytest.mark.parametrize("variant", VARIANTS)
def test_rounds_with_odd_terms_and_weights_equal_the_oracle(variant, seed):
    X, rows = random_problem(seed, n_documents=10 + 2 * seed, n_terms=4)
    weights = np.random.default_rng(seed).choice([0, 0.3, 1, 2.5], size=len(X))
    weights[:2] = 1
    check_against_the_oracle(FLAT, with_odd_terms(X), rows, 20, variant)
    check_against_the_oracle(FLAT, with_odd_terms(X), rows, 20, variant, weights)


@pytest.mark.parametrize("variant", VARIANTS)
def test_classes_are_the_most_specific_labels(variant):
    for seed in range(8):
        parents = random_forest(np.random.default_rng(seed), 7)
        check_against_the_oracle(parents, *random_problem(seed, parents=parents), 12, variant)


@st.composite
def tiny_problems(draw):
    """Parents, documents, label sets and weights: every kind of tie comes up among so few."""
    parents = draw(st.one_of(st.just([[], []]), st.just(FLAT), trees(max_nodes=5, min_nodes=2)))
    shape = st.tuples(st.integers(2, 7), st.integers(1, 4))
    X = draw(hnp.arrays(np.float32, shape, elements=st.sampled_from([0, 0, 1, 0.5])))
    labels = st.sets(st.integers(0, len(parents) - 1), max_size=2)
    rows = draw(st.lists(labels, min_size=len(X), max_size=len(X)))
    weights = draw(st.none() | st.lists(st.sampled_from([0.0, 1.0, 1.0, 0.3]), min_size=len(X), max_size=len(X)))
    kept = rows if weights is None else [row for row, weight in zip(rows, weights, strict=True) if weight > 0]
    assume(len(set().union(*(most_specific(parents, row) for row in kept))) >= 2)
    return parents, X, rows, weights


@given(tiny_problems(), st.sampled_from(VARIANTS), st.sampled_from([1, 2, 12]))
def test_rounds_of_tiny_problems_equal_the_oracle(problem, variant, n_rounds):
    parents, X, rows, weights = problem
    check_against_the_oracle(parents, X, rows, n_rounds, variant, weights)


EYE = np.eye(6, dtype=np.float32)
SPLIT = EYE[[0, 0, 1, 1, 1, 0]][:, :2]
ODD = {
    "identical documents with different labels": (np.ones((6, 2)), [{0}, {1}, {2}, {0}, {0, 1}, set()]),
    "one term": (EYE[:, 2:3], [{0}, {1}, {2}, {0}, {0, 1}, set()]),
    "a class without negatives": (EYE, [{0}, {0, 1}, {0, 2}, {0}, {0, 1}, {0}]),
    "every class without negatives": (EYE, [{0, 1}] * 6),
    "a class with one positive": (EYE[:, :4], [{0}, {1}, {1}, {2}, {1}, {2}]),
    "every term in one document": (EYE, [{0}, {0}, {1}, {1}, {2}, {2}]),
    "every term in all documents but one": (1 - EYE, [{0}, {0}, {1}, {1}, {2}, {2}]),
    "no document has a term": (0 * EYE, [{0}, {1}, {2}, {0}, {0}, set()]),
    "terms that say nothing": (EYE[[0, 0, 1, 1, 2, 2]], [{0}, {1}] * 3),
    "most documents without labels": (EYE[[0, 1, 2, 2, 1, 0]], [{0}, {1}, set(), set(), set(), set()]),
    "columns that separate all classes, and their opposites": (np.hstack([SPLIT, 1 - SPLIT]), [{0}, {0}, {1}, {1}, {1}, {0}]),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("variant", VARIANTS)
def test_odd_problems_equal_the_oracle(case, variant):
    X, rows = ODD[case]
    for n_rounds in (1, 25):
        check_against_the_oracle(FLAT, X.astype(np.float32), rows, n_rounds, variant)


@pytest.mark.parametrize("variant", VARIANTS)
def test_long_runs_stay_with_the_oracle(variant):
    for seed in (1, 2):
        X, rows = random_problem(seed, n_documents=60, n_terms=12)
        assert oracle.adaboost(FLAT, X, rows, 300, variant).clear >= 50
        check_against_the_oracle(FLAT, X, rows, 300, variant, tolerance=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("variant", VARIANTS)
def test_long_runs_where_terms_name_the_classes_stay_with_the_oracle(variant, n_classes):
    """Every round changes weights by large factors; what rounding left must not grow with them."""
    named, rows = np.eye(n_classes)[np.arange(100) % n_classes], [{i % n_classes} for i in range(100)]
    check_against_the_oracle([[]] * n_classes, np.hstack([named, 1 - named]).astype(np.float32), rows, 60, variant)


# ---- ties and edges -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_of_equal_terms_the_first_is_taken(variant):
    for seed in range(6):
        X, rows = random_problem(seed, n_terms=5)
        once, twice = (fit(FLAT, Z, rows, 20, variant).committees_[0] for Z in (X, np.hstack([X, X])))
        assert once.pivots.tolist() == twice.pivots.tolist()


@pytest.mark.parametrize("variant", ["R", "D"])
def test_a_term_and_its_opposite_are_equal_and_the_first_is_taken(variant):
    for seed in range(6):
        X, rows = random_problem(seed, n_terms=5)
        opposite = (X == 0).astype(np.float32)
        (first,) = fit(FLAT, np.hstack([X, opposite]), rows, 20, variant).committees_
        (second,) = fit(FLAT, np.hstack([opposite, X]), rows, 20, variant).committees_
        assert first.pivots.tolist() == second.pivots.tolist()
        assert first.pivots.max() < 5
        np.testing.assert_allclose(first.present, second.absent, atol=1e-8)


def test_sides_of_the_same_weight_are_voted_no():
    X, rows = np.array([[1, 1], [1, 0], [0, 1], [0, 0]]), [{0, 1}, {0}, {1}, set()]
    (found,) = fit([[], []], X, rows, 1, "D").committees_
    assert found.pivots.tolist() == [0]
    assert np.sign(found.present).tolist() == [[1, -1]]
    assert np.sign(found.absent).tolist() == [[-1, -1]]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_term_is_there_where_its_value_is_not_zero(variant):
    X, rows = random_problem(3)
    (plain,) = fit(FLAT, X, rows, 10, variant).committees_
    values = np.where(X == 0, 0, np.random.default_rng(0).choice([-2.0, 0.1, 7.0], X.shape)).astype(np.float32)
    stored = csr_array((values.ravel(), np.tile(np.arange(8), 30), np.arange(31) * 8), shape=X.shape)  # zeros too
    for other in (values, stored):
        (found,) = fit(FLAT, other, rows, 10, variant).committees_
        assert found.pivots.tolist() == plain.pivots.tolist()
        np.testing.assert_allclose(found.present, plain.present, atol=1e-12)
        np.testing.assert_allclose(found.absent, plain.absent, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_documents_of_no_weight_are_as_if_left_out(variant):
    X, rows = random_problem(5)
    (weighted,) = fit(FLAT, X, rows, 10, variant, [1.0] * 20 + [0.0] * 10).committees_
    (short,) = fit(FLAT, X[:20], rows[:20], 10, variant).committees_
    assert weighted.pivots.tolist() == short.pivots.tolist()
    np.testing.assert_allclose([weighted.present, weighted.absent], [short.present, short.absent], atol=1e-12)


def test_learning_ends_where_nothing_is_left_to_learn():
    X, rows = np.array([[1, 0], [1, 0], [0, 1], [0, 1]]), [{0}, {1}, {0}, {1}]
    for variant in VARIANTS:
        fitted = fit([[], []], X, rows, 50, variant)
        assert fitted.committees_[0].pivots.shape == (0,)
        assert fitted.committees_[0].present.shape == fitted.committees_[0].absent.shape == (0, 2)
        assert np.all(fitted.scores(csr_array(X, dtype=np.float32)) == 0)
        assert fitted.predict_sets(csr_array(X, dtype=np.float32)).nnz == 0


# ---- laws -----------------------------------------------------------------------------------------------------------------


@given(tiny_problems(), st.sampled_from(VARIANTS))
@settings(max_examples=60)
def test_normalizers_bound_the_share_of_wrong_decisions_in_every_round(problem, variant):
    parents, X, rows, weights = problem
    (found,) = fit(parents, X, rows, 15, variant, weights).committees_
    has, kept, w = oracle.prepare(X, weights)
    positive = oracle.membership([most_specific(parents, rows[i]) for i in kept], found.classes.tolist())
    total, share = np.zeros(positive.shape), w[:, None] / (w.sum() * positive.shape[1])
    for s, bound in enumerate(np.cumprod(found.normalizers)):
        total += np.where(has[:, [found.pivots[s]]], found.present[s], found.absent[s])
        assert np.sum(share * ((total > 0) != positive)) <= bound + 1e-9


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_round_makes_the_bound_worse_and_smoothing_costs_a_little(variant):
    for seed in range(6):
        X, rows = random_problem(seed)
        (found,) = fit(FLAT, with_odd_terms(X), rows, 60, variant).committees_
        assert len(found.normalizers) > 5
        assert np.all(found.normalizers < 1)
        assert np.all(found.z <= found.normalizers + 1e-12)


# ---- scores, stages, more rounds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_are_the_sums_of_votes_and_sets_the_classes_above_zero(variant):
    parents = [[], [0], [0], [1], []]
    X, rows = random_problem(4, parents=parents)
    new = random_problem(40, n_documents=50)[0]
    fitted, slow = fit(parents, X, rows, 20, variant), oracle.adaboost(parents, X, rows, 20, variant)
    expected, S = slow.score(new != 0), fitted.scores(csr_array(new))
    assert S.dtype == np.float32
    np.testing.assert_allclose(S[:, slow.classes], expected, rtol=1e-5, atol=1e-5)
    assert np.isnan(np.delete(S, slow.classes, axis=1)).all()
    assert slow.is_sure(new != 0).all()
    above = [close_upward(parents, np.array(slow.classes)[row > 0].tolist()) for row in expected]
    assert as_sets(fitted.predict_sets(csr_array(new))) == above


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_scores_of_a_stage_are_those_of_a_learner_of_so_many_rounds(variant):
    X, rows = random_problem(6)
    fitted = fit(FLAT, X, rows, 20, variant)
    stages = list(fitted.staged_scores(csr_array(X), rounds=[1, 5, 20]))
    assert [s for s, _ in stages] == [1, 5, 20]
    for s, scores in stages:
        short = fit(FLAT, X, rows, s, variant)
        np.testing.assert_allclose(scores, short.scores(csr_array(X)), rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(fitted.at_round(s).scores(csr_array(X)), short.scores(csr_array(X)))
        assert len(fitted.at_round(s).committees_[0].pivots) == s
    assert len(fitted.committees_[0].pivots) == 20


@pytest.mark.parametrize("variant", VARIANTS)
def test_learning_goes_on_as_if_it_had_not_stopped(variant):
    X, rows = random_problem(7)
    (whole,), half = fit(FLAT, X, rows, 25, variant).committees_, fit(FLAT, X, rows, 10, variant).set_params(n_rounds=15)
    (parts,) = half.partial_fit(csr_array(X), as_matrix(rows, 3)).committees_
    assert len(parts.pivots) == 25
    assert parts.pivots.tolist() == whole.pivots.tolist()
    for name in ("absent", "present", "z", "normalizers"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-8)


def test_threads_and_batches_change_nothing():
    X, rows = random_problem(8, n_documents=80, n_terms=12)
    one, two = (fit(FLAT, X, rows, 40, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.committees_[0].pivots.tolist() == two.committees_[0].pivots.tolist()
    np.testing.assert_array_equal(one.committees_[0].present, two.committees_[0].present)
    together = one.scores(csr_array(X))
    np.testing.assert_array_equal(two.scores(csr_array(X)), together)
    for batch in ([3], [9, 3], range(79, -1, -1)):
        np.testing.assert_array_equal(one.scores(csr_array(X)[list(batch)]), together[list(batch)])
