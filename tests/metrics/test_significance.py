"""Tests of significance: against their definitions, against scipy, and where there is nothing to test."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import significance as oracle
from scipy import stats
from scipy.sparse import csr_array
from strategies import as_matrix, build, labelled

from ramify import Taxonomy, metrics
from ramify.errors import InputError
from ramify.metrics import hierarchical
from ramify.metrics.flat import f1, per_node
from ramify.metrics.resampling import modified_classes, on_classes

SIDES = ["two-sided", "greater", "less"]
BY_CLASS = [metrics.macro_sign_test, metrics.t_test, metrics.rank_t_test, metrics.wilcoxon_test]
EVERY = [metrics.sign_test, *BY_CLASS, metrics.proportions_test]


@st.composite
def decisions(draw, min_classes=0, max_classes=6, max_documents=8):
    """Truth and two systems' answers, documents × classes."""
    shape = draw(st.integers(0, max_documents)), draw(st.integers(min_classes, max_classes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shares = [draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])) for _ in range(3)]
    return tuple(rng.random(shape) < share for share in shares)


def with_f1(a, b, size=20):
    """Decisions in which A has F1 = a[c] / size and B has b[c] / size on class c: that many of `size` are right."""
    T = np.zeros((2 * size, len(a)), dtype=bool)
    A, B = T.copy(), T.copy()
    T[:size] = True
    for c, (k, m) in enumerate(zip(a, b, strict=True)):
        A[size - k : 2 * size - k, c] = True  # as many as are true, k of them right
        B[size - m : 2 * size - m, c] = True
    return T, A, B


def twenty(seed=7, classes=12):
    rng = np.random.default_rng(seed)
    return with_f1(rng.integers(4, 21, classes), rng.integers(0, 15, classes))


# ---- worked examples ----------------------------------------------------------------------------------------------------


def test_eight_heads_of_ten_have_the_p_value_of_the_binomial_table():
    T, A, B = np.ones((10, 1), bool), np.zeros((10, 1), bool), np.zeros((10, 1), bool)
    A[:8], B[8:] = True, True
    found = metrics.sign_test(T, A, B)
    assert (found.n, found.statistic, found.difference) == (10, 8, pytest.approx(0.6))
    assert found.p_value == pytest.approx(2 * (45 + 10 + 1) / 1024)
    assert metrics.sign_test(T, A, B, "greater").p_value == pytest.approx(56 / 1024)
    assert metrics.sign_test(T, A, B, "less").p_value == pytest.approx(1 - 11 / 1024)


def test_decisions_that_both_got_right_or_wrong_do_not_speak():
    T, A, B = [[1, 1, 0, 0]], [[1, 0, 1, 0]], [[1, 0, 0, 0]]
    assert metrics.sign_test(T, A, B) == metrics.Significance(0.0, 1.0, 1, -1.0)


def test_the_macro_sign_test_counts_classes():
    found = metrics.macro_sign_test(*with_f1([10, 12, 8, 9, 15, 4], [8, 10, 8, 3, 16, 2]))
    assert (found.n, found.statistic) == (5, 4)
    assert found.p_value == pytest.approx(2 * (5 + 1) / 32)
    assert found.difference == pytest.approx(3 / 5)


def test_the_t_test_by_hand():
    # F1 0.5, 0.6, 0.7, 0.9 against 0.4, 0.4, 0.6, 0.5: differences 0.1, 0.2, 0.1, 0.4 with mean 0.2 and variance 0.06 / 3
    found = metrics.t_test(*with_f1([10, 12, 14, 18], [8, 8, 12, 10]))
    assert found.n == 4
    assert found.difference == pytest.approx(0.2)
    assert found.statistic == pytest.approx(0.2 / math.sqrt(0.02 / 4))
    assert found.p_value == pytest.approx(2 * stats.t.sf(2.8284271247461903, 3))
    assert found.p_value == pytest.approx(0.0663, abs=1e-4)


def test_the_rank_t_test_by_hand():
    # pooled in order 0.4 0.4 | 0.5 0.5 | 0.6 0.6 | 0.7 | 0.9: ranks 1.5 1.5 3.5 3.5 5.5 5.5 7 8
    found = metrics.rank_t_test(*with_f1([10, 12, 14, 18], [8, 8, 12, 10]))
    a, b = np.array([3.5, 5.5, 7, 8]), np.array([1.5, 1.5, 5.5, 3.5])
    assert found.difference == pytest.approx(np.mean(a - b))
    assert found.statistic == pytest.approx(3 / math.sqrt(((2 - 3) ** 2 + 1 + 1.5**2 + 1.5**2) / 3 / 4))
    assert found.p_value == pytest.approx(stats.ttest_rel(a, b).pvalue)


def test_two_proportions_by_hand():
    # precision 6 / 8 against 3 / 6: pooled 9 / 14
    T, A, B = (np.zeros((20, 1), bool) for _ in range(3))
    T[:10], A[4:12], B[7:13] = True, True, True
    found = metrics.proportions_test(T, A, B, "precision")
    z = (6 / 8 - 3 / 6) / math.sqrt(9 / 14 * 5 / 14 * (1 / 8 + 1 / 6))
    assert found.statistic == pytest.approx(z)
    assert found.p_value == pytest.approx(math.erfc(z / math.sqrt(2)))
    assert (found.n, found.difference) == (14, pytest.approx(0.25))
    recall = metrics.proportions_test(T, A, B, "recall")
    assert recall.statistic == pytest.approx(0.3 / math.sqrt(0.45 * 0.55 * (1 / 10 + 1 / 10)))
    right = metrics.proportions_test(T, A, B, "accuracy")  # wrong: 4 + 2 of 20, 7 + 3 of 20
    assert right.statistic == pytest.approx(0.2 / math.sqrt(0.6 * 0.4 * (1 / 20 + 1 / 20)))
    assert right.n == 40


def test_a_test_of_two_proportions_is_a_chi_squared_test():
    T, A, B = twenty()
    for of, n in (("precision", A.sum()), ("recall", T.sum())):
        right = [(T & Y).sum() for Y in (A, B)]
        table = [[right[0], n - right[0]], [right[1], n - right[1]]]
        assert metrics.proportions_test(T, A, B, of).p_value == pytest.approx(
            stats.chi2_contingency(table, correction=False).pvalue
        )


def test_five_signed_ranks_have_the_p_value_of_the_table():
    # differences 1, 2, 3, 4 and 0 of 20 classes' worth, all one way: 2 / 2⁴
    found = metrics.wilcoxon_test(*with_f1([11, 12, 13, 14, 9], [10, 10, 10, 10, 9]))
    assert (found.n, found.statistic, found.p_value) == (4, 10, 2 / 16)
    assert found.difference == 1  # all ranks are A's


@pytest.mark.parametrize("n", [13, 14, 30, 50, 51])
@pytest.mark.parametrize("tied", [False, True])
def test_signed_ranks_of_any_number_agree_with_scipy(n, tied):
    rng = np.random.default_rng(n)
    sizes = rng.integers(1, 6, size=n) if tied else rng.permutation(n) + 1
    d = sizes * np.where(rng.random(n) < 0.7, 1, -1)
    T, A, B = with_f1(np.maximum(d, 0).tolist(), np.maximum(-d, 0).tolist(), size=60)
    assert metrics.wilcoxon_test(T, A, B).p_value == pytest.approx(stats.wilcoxon(d).pvalue)


def test_the_side_of_the_ranks_counts_not_that_of_the_mean():
    """A is a little better on many classes, and far worse on one."""
    found = metrics.wilcoxon_test(*with_f1([2] * 12 + [0], [1] * 12 + [20]))
    assert found.p_value < 0.05
    assert found.difference > 0


def test_equal_differences_that_round_differently_are_tied():
    # 0.15 - 0.1 and 0.9 - 0.85 are not the same floating-point numbers
    T, A, B = with_f1([3, 18, 9], [2, 17, 15])
    assert np.ptp(np.subtract(*oracle_f1(T, A, B))[:2]) > 0
    assert metrics.wilcoxon_test(T, A, B).statistic == 3.0
    assert metrics.wilcoxon_test(T, A, B).p_value == pytest.approx(oracle.signed_rank_p([1, 1, -6], "two-sided"))


def oracle_f1(T, A, B):
    return np.array(oracle.class_f1(T, A)), np.array(oracle.class_f1(T, B))


# ---- against definitions and scipy --------------------------------------------------------------------------------------


@given(decisions(), st.sampled_from(SIDES))
def test_sign_tests_are_exact(matrices, side):
    n, k = oracle.counts_of_signs(*matrices)
    found = metrics.sign_test(*matrices, side)
    assert (found.n, found.statistic) == (n, k)
    assert found.p_value == pytest.approx(oracle.binomial_p(k, n, side) if n else 1.0)
    a, b = oracle_f1(*matrices)
    n, k = int(sum(a != b)), int(sum(a > b))
    found = metrics.macro_sign_test(*matrices, side)
    assert (found.n, found.statistic) == (n, k)
    assert found.p_value == pytest.approx(oracle.binomial_p(k, n, side) if n else 1.0)


@given(decisions(min_classes=2), st.sampled_from(SIDES))
def test_t_tests_are_those_of_the_definition(matrices, side):
    a, b = oracle_f1(*matrices)
    assume(np.ptp(a - b) > 1e-9)
    t, p = oracle.t_p(a, b, side)
    found = metrics.t_test(*matrices, side)
    assert (found.statistic, found.p_value, found.n) == (pytest.approx(t), pytest.approx(p), len(a))
    ranks = oracle.average_ranks([*a, *b])
    x, y = ranks[: len(a)], ranks[len(a) :]
    assume(np.ptp(np.subtract(x, y)) > 0)
    t, p = oracle.t_p(x, y, side)
    found = metrics.rank_t_test(*matrices, side)
    assert (found.statistic, found.p_value) == (pytest.approx(t), pytest.approx(p))


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=8), st.sampled_from(SIDES))
def test_few_signed_ranks_are_exact_ties_included(differences, side):
    assume(any(differences))
    a = [max(d, 0) for d in differences]
    b = [max(-d, 0) for d in differences]
    assert metrics.wilcoxon_test(*with_f1(a, b), side).p_value == pytest.approx(oracle.signed_rank_p(differences, side))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("classes", [12, 200])
def test_per_class_tests_agree_with_scipy(side, classes):
    T, A, B = twenty(classes=classes)
    a, b = oracle_f1(T, A, B)
    assert metrics.t_test(T, A, B, side).p_value == pytest.approx(stats.ttest_rel(a, b, alternative=side).pvalue)
    whole = np.round((a - b) * 20)
    by_scipy = stats.wilcoxon(whole[whole != 0], alternative=side).pvalue
    assert metrics.wilcoxon_test(T, A, B, side).p_value == pytest.approx(by_scipy)
    k, n = int((a > b).sum()), int((a != b).sum())
    assert metrics.macro_sign_test(T, A, B, side).p_value == pytest.approx(stats.binomtest(k, n, alternative=side).pvalue)


@given(decisions(), st.sampled_from(["precision", "recall", "accuracy"]))
def test_one_sided_tests_of_proportions_halve_the_two_sided_one(matrices, of):
    found = {side: metrics.proportions_test(*matrices, of, side) for side in SIDES}
    assume(found["two-sided"].p_value < 1)
    ahead = "greater" if found["two-sided"].difference > 0 else "less"
    assert found[ahead].p_value == pytest.approx(found["two-sided"].p_value / 2)
    assert found["greater"].p_value + found["less"].p_value == pytest.approx(1)


@given(decisions(min_classes=2), st.sampled_from(EVERY))
def test_systems_that_change_places_change_the_sign_only(matrices, test):
    T, A, B = matrices
    one, other = test(T, A, B), test(T, B, A)
    assert one.p_value == pytest.approx(other.p_value)
    assert one.difference == pytest.approx(-other.difference)
    assert test(T, A, B, alternative="greater").p_value == pytest.approx(test(T, B, A, alternative="less").p_value)


@given(decisions())
def test_sparse_and_dense_matrices_give_the_same(matrices):
    for test in (metrics.sign_test, metrics.macro_sign_test, metrics.proportions_test, metrics.wilcoxon_test):
        assert test(*matrices) == test(*(csr_array(Y) for Y in matrices))


# ---- nothing to test ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", EVERY)
@pytest.mark.parametrize("side", SIDES)
def test_the_same_predictions_have_a_p_value_of_one(test, side):
    T, A, _ = twenty()
    half = test is metrics.proportions_test and side != "two-sided"  # z = 0 lies in the middle of the normal distribution
    assert test(T, A, A, alternative=side).p_value == pytest.approx(0.5 if half else 1.0)
    assert test(T, A, A, alternative=side).difference == 0


@pytest.mark.parametrize("test", EVERY)
@pytest.mark.parametrize("shape", [(0, 3), (4, 3)])
def test_nothing_true_and_nothing_predicted_has_a_p_value_of_one(test, shape):
    found = test(*(np.zeros(shape, bool) for _ in range(3)))
    assert (found.p_value, found.difference) == (1.0, 0.0)


def test_a_t_test_of_fewer_than_two_classes_is_not_a_number():
    for test in (metrics.t_test, metrics.rank_t_test):
        one = test([[1], [0]], [[1], [0]], [[0], [1]])
        assert (math.isnan(one.p_value), one.n) == (True, 1)
        assert math.isnan(test(*(np.zeros((3, 0), bool) for _ in range(3))).p_value)


def test_a_constant_difference_is_infinitely_significant():
    # 0.15 - 0.1, 0.9 - 0.85: constant but for rounding
    T, A, B = with_f1([3, 18, 9], [2, 17, 8])
    found = metrics.t_test(T, A, B)
    assert (found.statistic, found.p_value, found.difference) == (math.inf, 0.0, pytest.approx(0.05))
    assert metrics.t_test(T, B, A).statistic == -math.inf
    assert [metrics.t_test(T, A, B, side).p_value for side in ("greater", "less")] == [0.0, 1.0]
    assert [metrics.t_test(T, B, A, side).p_value for side in ("greater", "less")] == [1.0, 0.0]


@pytest.mark.parametrize("of", ["precision", "recall"])
def test_proportions_of_nothing_have_a_p_value_of_one(of):
    T, nothing = np.eye(4, dtype=bool), np.zeros((4, 4), bool)
    assert metrics.proportions_test(nothing, T, nothing, "recall").p_value == 1.0
    found = metrics.proportions_test(T, T, nothing, "precision")
    assert (found.p_value, found.difference, found.n) == (1.0, 1.0, 4)
    assert metrics.proportions_test(T, T, T, of).p_value == 1.0
    assert metrics.proportions_test(T, ~T, ~T, of).p_value == 1.0


def test_what_is_no_matrix_of_the_same_decisions_is_refused():
    T = np.eye(3)
    with pytest.raises(InputError, match=r"shapes \(3, 3\), \(3, 3\) and \(3, 2\); give the same documents"):
        metrics.sign_test(T, T, T[:, :2])
    with pytest.raises(InputError, match="not 1 dimensions"):
        metrics.t_test([1, 0], [1, 0], [1, 0])
    for test in EVERY:
        with pytest.raises(InputError, match="alternative is 'better'; give 'two-sided', 'greater'"):
            test(T, T, T, alternative="better")
    with pytest.raises(InputError, match="of is 'f1'; give 'precision'"):
        metrics.proportions_test(T, T, T, "f1")


# ---- resampling ---------------------------------------------------------------------------------------------------------


def flat_metric(name, n_classes):
    taxonomy = Taxonomy.flat([f"c{c}" for c in range(n_classes)])
    if name == "micro_f1":
        return lambda T, P: metrics.micro_f1(T, P, taxonomy)
    return lambda T, P: metrics.macro_f1(T, P, taxonomy, empty="skip")


@settings(max_examples=50)
@given(decisions(min_classes=1), st.sampled_from(["micro_f1", "macro_f1"]), st.integers(0, 99), st.sampled_from(SIDES))
def test_the_quick_bootstrap_gives_the_numbers_of_the_slow_one(matrices, name, seed, side):
    assume(len(matrices[0]))
    given_name = metrics.paired_bootstrap(*matrices, name, n_resamples=30, seed=seed, alternative=side)
    slow = flat_metric(name, matrices[0].shape[1])
    assert given_name == metrics.paired_bootstrap(*matrices, slow, n_resamples=30, seed=seed, alternative=side)


def test_the_quick_bootstrap_does_not_depend_on_its_blocks(monkeypatch):
    T, A, B = twenty()
    at_once = metrics.paired_bootstrap(T, A, B, "macro_f1", n_resamples=50)
    monkeypatch.setattr(
        "ramify.metrics.resampling.row_blocks", lambda n, *_, **__: [slice(k, min(k + 7, n)) for k in range(0, n, 7)]
    )
    assert metrics.paired_bootstrap(T, A, B, "macro_f1", n_resamples=50) == at_once


@pytest.mark.parametrize("side", SIDES)
def test_the_bootstrap_is_that_of_the_definition(side):
    T, A, B = (Y[:, :1] for Y in twenty(seed=3))
    accuracy = lambda T, P: 1 - (T != P).nnz / T.shape[0]  # noqa: E731
    found = metrics.paired_bootstrap(T, A, B, accuracy, n_resamples=200, seed=5, alternative=side)
    gain = ((A == T).astype(int) - (B == T).astype(int))[:, 0]
    rng = np.random.default_rng(5)
    drawn = [gain[rng.integers(len(T), size=len(T))].mean() for _ in range(200)]
    assert found.difference == pytest.approx(gain.mean())
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])))
    assert found.p_value == pytest.approx(oracle.bootstrap_p(np.round(drawn, 9).tolist(), side))
    assert (found.n, found.n_resamples) == (len(T), 200)


def test_a_bootstrap_of_a_clear_difference_is_as_sure_as_its_resamples_let_it_be():
    T = np.eye(4, dtype=bool)[np.arange(200) % 4]
    B = np.roll(T, 1, axis=1)
    assert metrics.paired_bootstrap(T, T, B, n_resamples=99).p_value == pytest.approx(2 / 100)
    assert metrics.paired_bootstrap(T, T, B, n_resamples=99, alternative="greater").p_value == pytest.approx(1 / 100)
    assert metrics.paired_bootstrap(T, T, B, n_resamples=99, alternative="less").p_value == 1.0


def test_a_bootstrap_of_the_same_predictions_finds_nothing():
    T, A, _ = twenty()
    found = metrics.paired_bootstrap(T, A, A, n_resamples=50)
    assert (found.difference, found.low, found.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_a_false_alarm_is_as_rare_as_its_p_value():
    """Two systems that guess equally well: p < 0.1 must come in about one of ten comparisons."""
    rng = np.random.default_rng(0)
    alarms = 0
    for k in range(200):
        T = rng.random((120, 3)) < 0.5
        A, B = (T ^ (rng.random(T.shape) < 0.3) for _ in range(2))
        alarms += metrics.paired_bootstrap(T, A, B, n_resamples=100, seed=k).p_value < 0.1
    assert 8 <= alarms <= 34


def test_a_bootstrap_needs_documents_resamples_and_a_metric():
    T = np.eye(3, dtype=bool)
    with pytest.raises(InputError, match="no documents to draw from"):
        metrics.paired_bootstrap(T[:0], T[:0], T[:0])
    with pytest.raises(InputError, match="n_resamples is 0"):
        metrics.paired_bootstrap(T, T, T, n_resamples=0)
    with pytest.raises(InputError, match="metric is 'f1'; give 'micro_f1'"):
        metrics.paired_bootstrap(T, T, T, "f1")
    with pytest.raises(InputError, match="gave no number on some resamples"):
        metrics.paired_bootstrap(T, T, T, lambda T, P: math.nan)


# ---- many comparisons ---------------------------------------------------------------------------------------------------


def test_corrections_by_hand():
    p = [0.01, 0.04, 0.03, 0.005]
    assert metrics.correct_p_values(p, "bonferroni") == pytest.approx([0.04, 0.16, 0.12, 0.02])
    # in order 0.005·4, 0.01·3, 0.03·2, 0.04·1, none below the one before
    assert metrics.correct_p_values(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # 0.005·4/1, 0.01·4/2, 0.03·4/3, 0.04·4/4, none above the one after
    assert metrics.correct_p_values(p, "benjamini-hochberg") == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert metrics.correct_p_values(p, "none").tolist() == p


p_values = st.lists(st.floats(0, 1), max_size=8)


@given(p_values)
def test_holm_is_the_step_down_rule(p):
    """A hypothesis falls at level α when all with smaller p fall, the i-th smallest of m at α / (m - i + 1)."""
    corrected = metrics.correct_p_values(p, "holm")
    for alpha in (0.01, 0.05, 0.2, 0.5):
        if np.isclose(corrected, alpha, rtol=1e-9).any():
            continue
        falls, m = set(), len(p)
        for i, k in enumerate(sorted(range(m), key=p.__getitem__)):
            if p[k] * (m - i) > alpha:
                break
            falls.add(k)
        assert {k for k in range(m) if corrected[k] <= alpha} == falls


@given(p_values)
def test_benjamini_hochberg_is_the_step_up_rule(p):
    """All up to the largest i fall for which the i-th smallest p is at most α i / m."""
    corrected = metrics.correct_p_values(p, "benjamini-hochberg")
    for alpha in (0.01, 0.05, 0.2, 0.5):
        if np.isclose(corrected, alpha, rtol=1e-9).any():
            continue
        m, order = len(p), sorted(range(len(p)), key=p.__getitem__)
        largest = max((i + 1 for i, k in enumerate(order) if p[k] * m / (i + 1) <= alpha), default=0)
        assert {k for k in range(m) if corrected[k] <= alpha} == set(order[:largest])


@given(p_values)
def test_corrections_keep_order_and_lie_between_each_other(p):
    none, fdr, holm, bonferroni = (metrics.correct_p_values(p, c) for c in ("none", "benjamini-hochberg", "holm", "bonferroni"))
    for smaller, larger in ((none, fdr), (fdr, holm), (holm, bonferroni)):
        assert np.all(smaller <= larger + 1e-12)
    assert fdr == pytest.approx(stats.false_discovery_control(p) if p else [])
    for corrected in (fdr, holm, bonferroni):
        assert np.all(np.diff(corrected[np.argsort(p, kind="stable")]) >= -1e-12)
        assert np.all(corrected <= 1)


def test_tests_that_could_not_be_made_are_not_counted():
    assert metrics.correct_p_values([0.01, math.nan, 0.02], "bonferroni") == pytest.approx([0.02, math.nan, 0.04], nan_ok=True)
    assert metrics.correct_p_values([]).tolist() == []


def test_what_is_no_p_value_or_no_correction_is_refused():
    with pytest.raises(InputError, match="a p-value is 1.5; p-values lie between 0 and 1"):
        metrics.correct_p_values([0.5, 1.5])
    with pytest.raises(InputError, match="correction 'hom' is unknown.*Did you mean 'holm'"):
        metrics.correct_p_values([0.5], "hom")


# ---- over a taxonomy ----------------------------------------------------------------------------------------------------


@given(labelled(matrices=2))
def test_classes_are_those_of_the_modified_hierarchy(case):
    parents, true, said = case
    taxonomy = build(parents)
    T, P = as_matrix(true, len(taxonomy)), as_matrix(said, len(taxonomy))
    classes = modified_classes(T, taxonomy)
    own_true, own_said = on_classes(T, classes, taxonomy), on_classes(P, classes, taxonomy)
    right = own_true.multiply(own_said)
    by_hand = hierarchical.modified_f1(T, P, taxonomy).all
    assert float(f1(right.nnz, own_true.nnz, own_said.nnz)) == pytest.approx(by_hand.micro_f1)
    each = f1(per_node(csr_array(right)), per_node(own_true), per_node(own_said))
    assert (len(classes), each.mean()) == (by_hand.n_classes, pytest.approx(by_hand.macro_f1))


def test_all_tests_look_at_leaves_and_at_inner_nodes_where_documents_stop(food):
    # classes: apple, pear, bread, drink, and fruit for the documents that stop there; B answers 'food', which is no class
    T = food.encode(["food/fruit/apple", "food/fruit", "drink", "food/bread"] * 6)
    B = food.encode(["food/fruit/apple", "food/fruit/pear", "drink", "food"] * 6)
    found = metrics.compare_predictions(T, T, B, food, n_resamples=50)
    assert list(found) == [
        *("sign", "macro_sign", "t", "rank_t", "wilcoxon"),
        *("precision", "recall", "accuracy"),
        *(f"bootstrap_{name}" for name in ("accuracy", "micro_f1", "macro_f1", "hierarchical_f1", "h_loss")),
    ]
    assert found["sign"].n == 6 * 3  # fruit, pear, bread
    assert found["t"].n == 5
    assert found["precision"].n == 24 + 18
    assert found["recall"].difference == pytest.approx(0.5)
    assert found["bootstrap_micro_f1"].difference == pytest.approx(1 - 2 * 12 / (24 + 18))
    assert all(result.difference > 0 for result in found.values())


@settings(max_examples=30)
@given(labelled(matrices=3))
def test_any_predictions_over_any_taxonomy_can_be_compared(case):
    parents, *rows = case
    taxonomy = build(parents)
    assume(rows[0])
    matrices = [as_matrix(some, len(taxonomy)) for some in rows]
    found = metrics.compare_predictions(*matrices, taxonomy, n_resamples=10)
    assert all(0 <= result.p_value <= 1 or math.isnan(result.p_value) for result in found.values())


def test_predictions_for_other_documents_are_refused(food):
    T = food.encode(["drink", "drink"])
    with pytest.raises(InputError, match="must be the same documents"):
        metrics.compare_predictions(T, T, food.encode(["drink"]), food)


# ---- intervals ----------------------------------------------------------------------------------------------------------


@given(labelled(matrices=2))
def test_measures_are_those_of_the_metrics(case):
    parents, true, said = case
    taxonomy = build(parents)
    assume(true)
    T, P = as_matrix(true, len(taxonomy)), as_matrix(said, len(taxonomy))
    found = metrics.measure_predictions([(T, P)], taxonomy, modified_classes(T, taxonomy), n_resamples=5)
    by_hand = hierarchical.modified_f1(T, P, taxonomy).all
    assert found["micro_f1"].value == pytest.approx(by_hand.micro_f1)
    assert found["macro_f1"].value == pytest.approx(by_hand.macro_f1_occurring)
    for name in ("accuracy", "hierarchical_f1", "h_loss"):
        assert found[name].value == pytest.approx(getattr(metrics, name)(T, P, taxonomy))


def test_an_interval_of_accuracy_is_that_of_the_binomial(food):
    T = food.encode(["drink"] * 400)
    P = food.encode(["drink"] * 300 + ["food/bread"] * 100)
    found = metrics.measure_predictions([(T, P)], food, modified_classes(T, food), n_resamples=2000)["accuracy"]
    half = 1.96 * math.sqrt(0.75 * 0.25 / 400)
    assert (found.low, found.high) == pytest.approx((0.75 - half, 0.75 + half), abs=0.006)


def test_folds_are_averaged_and_narrow_the_interval(food):
    T = food.encode(["drink"] * 100)
    half, all_right = food.encode(["drink", "food/bread"] * 50), T
    classes = modified_classes(T, food)
    one = metrics.measure_predictions([(T, half)], food, classes)["accuracy"]
    two = metrics.measure_predictions([(T, half), (T, all_right)], food, classes)["accuracy"]
    assert (two.value, two.by_fold) == (0.75, [0.5, 1.0])
    assert two.high - two.low == pytest.approx((one.high - one.low) / 2, rel=0.05)


def test_an_interval_holds_its_value_where_most_classes_are_rare():
    """Resamples miss rare classes, which moves macro F1; the interval must not move with it."""
    taxonomy = Taxonomy.flat([f"c{c}" for c in range(40)])
    rng = np.random.default_rng(1)
    T = np.eye(40, dtype=bool)[np.arange(80) % 40]
    P = np.where(rng.random((80, 1)) < 0.4, T, np.eye(40, dtype=bool)[rng.integers(5, size=80)])
    found = metrics.measure_predictions([(T, P)] * 5, taxonomy, np.arange(40))["macro_f1"]
    assert found.low < found.value < found.high


def test_an_interval_stays_among_possible_values():
    taxonomy = Taxonomy.flat([f"c{c}" for c in range(10)])
    T = np.eye(10, dtype=bool)[np.arange(40) % 10]
    for wrong in (1, 39):
        P = np.concatenate([np.roll(T[:wrong], 1, axis=1), T[wrong:]])
        found = metrics.measure_predictions([(T, P)], taxonomy, np.arange(10))
        assert all(0 <= measured.low <= measured.high for measured in found.values())
        assert all(found[name].high <= 1 for name in ("accuracy", "micro_f1", "macro_f1", "hierarchical_f1"))
        assert found["h_loss"].high > 1 or wrong == 1
