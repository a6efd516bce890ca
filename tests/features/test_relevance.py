import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import relevance as oracle
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from seeds import each_seed
from sklearn.feature_selection import chi2 as sklearn_chi2
from sklearn.metrics import mutual_info_score
from strategies import as_matrix

from ramify.errors import InputError
from ramify.features import relevance, term_relevance

MEASURES = list(relevance.MEASURES)
every_measure = pytest.mark.parametrize("measure", MEASURES)
counts = st.sampled_from([0, 0, 0, 1, 1, 2, 5])
weights = st.sampled_from([0.0, 0.0, 0.25, 0.1, 1.5, 3e-7])


@st.composite
def problems(draw, values=counts, max_documents=7, max_terms=4, max_classes=3):
    """Rows of counts, and for each a set of classes that may be empty; few values, so that ties abound."""
    n_documents, n_terms = draw(st.integers(1, max_documents)), draw(st.integers(1, max_terms))
    n_classes = draw(st.integers(1, max_classes))
    rows = draw(st.lists(st.lists(values, min_size=n_terms, max_size=n_terms), min_size=n_documents, max_size=n_documents))
    classes = st.sets(st.integers(0, n_classes - 1))
    return rows, draw(st.lists(classes, min_size=n_documents, max_size=n_documents)), n_classes


def random_problem(rng, n_documents=30, n_terms=8, n_classes=5, single=False):
    rows = rng.poisson(rng.choice([0.1, 0.5, 2.0], size=n_terms), size=(n_documents, n_terms))
    many = np.ones(n_documents, dtype=int) if single else rng.integers(0, 3, size=n_documents)
    labels = [set(rng.choice(n_classes, size=k, replace=False).tolist()) for k in many]
    return rows.tolist(), labels, n_classes


def expected(problem, measure):
    rows, labels, n_classes = problem
    return np.array(oracle.relevance(rows, labels, list(range(n_classes)), len(rows[0]), measure), dtype=float)


def found(problem, measure):
    rows, labels, n_classes = problem
    return term_relevance(csr_array(np.array(rows, dtype=float)), csr_array(as_matrix(labels, n_classes)), measure)


# ---- the formulas ---------------------------------------------------------------------------------------------------


@every_measure
@given(problem=problems())
def test_relevance_is_what_the_formula_says(measure, problem):
    np.testing.assert_allclose(found(problem, measure), expected(problem, measure), rtol=1e-11, atol=1e-14)


@every_measure
@given(problem=problems(values=weights))
def test_weights_follow_the_formula_too(measure, problem):
    np.testing.assert_allclose(found(problem, measure), expected(problem, measure), rtol=1e-9, atol=1e-13)


@every_measure
@each_seed(4)
def test_larger_problems_follow_the_formula(measure, seed):
    problem = random_problem(np.random.default_rng(seed))
    np.testing.assert_allclose(found(problem, measure), expected(problem, measure), rtol=1e-11, atol=1e-14)


@every_measure
@given(problem=problems())
def test_what_tells_nothing_has_a_relevance_of_exactly_0_and_nothing_has_less(measure, problem):
    R = found(problem, measure)
    np.testing.assert_array_equal(R > 0, expected(problem, measure) > 0)
    assert (R >= 0).all()


@each_seed(5)
def test_weights_in_the_same_proportions_everywhere_tell_nothing_whatever_the_last_digit(seed):
    rng = np.random.default_rng(seed)
    X = np.outer(rng.random(30), rng.random(6))
    assert not term_relevance(X, np.eye(3)[np.arange(30) % 3], "mutual-information").any()


@pytest.mark.parametrize("n_documents", [1_000, 1_000_000])
def test_a_faint_dependence_in_many_documents_keeps_its_digits(n_documents):
    """For a faint dependence information gain is χ² / 2N, up to a share of it about as large as u."""
    half = n_documents // 2
    x, m = np.zeros((n_documents, 1)), np.zeros((n_documents, 1), dtype=bool)
    m[:half] = True
    x[: half // 2 + 1], x[half : half + half // 2 - 1] = 1, 1
    gain, chi2 = term_relevance(x, m), term_relevance(x, m, "chi2")
    assert 0 < gain[0, 0] == pytest.approx(chi2[0, 0] / (2 * n_documents), rel=1e-4)


# ---- the formulas elsewhere -----------------------------------------------------------------------------------------


@each_seed(3)
def test_information_gain_is_scikit_learns_mutual_information_of_presence_and_class(seed):
    rows, labels, n_classes = problem = random_problem(np.random.default_rng(seed))
    gain = found(problem, "information-gain")
    for c in range(n_classes):
        for t in range(len(rows[0])):
            theirs = mutual_info_score([row[t] > 0 for row in rows], [c in own for own in labels])
            assert gain[c, t] == pytest.approx(theirs, abs=1e-12)


@each_seed(3)
def test_chi2_is_scikit_learns_summed_over_presence_and_absence(seed):
    """scikit-learn's looks at the documents with the term alone; those without it make up the rest of the table."""
    rows, labels, n_classes = problem = random_problem(np.random.default_rng(seed))
    here = (np.array(rows) > 0).astype(int)
    ours = found(problem, "chi2")
    for c in range(n_classes):
        inside = [c in own for own in labels]
        theirs = sklearn_chi2(here, inside)[0] + sklearn_chi2(1 - here, inside)[0]
        np.testing.assert_allclose(ours[c], theirs, rtol=1e-10)


@each_seed(3)
def test_summed_over_classes_it_is_the_mutual_information_of_class_and_word(seed):
    rows, labels, _ = problem = random_problem(np.random.default_rng(seed), single=True)
    summed = found(problem, "mutual-information").sum(axis=0)
    for t in range(len(rows[0])):
        events = [
            (term == t, *own) for row, own in zip(rows, labels, strict=True) for term, n in enumerate(row) for _ in range(n)
        ]
        is_term, of_class = zip(*events, strict=True)
        assert summed[t] == pytest.approx(mutual_info_score(is_term, of_class), abs=1e-12)


# ---- edges ----------------------------------------------------------------------------------------------------------


@every_measure
def test_classes_and_terms_of_all_documents_or_none_tell_nothing(measure):
    X = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 1]])
    M = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 0]])
    R = term_relevance(X, M, measure)
    assert R[1].tolist() == [0, 0, 0]
    if measure != "mutual-information":
        assert R[0].tolist() == [0, 0, 0]
        assert R[:, :2].tolist() == [[0, 0]] * 3
        assert R[2, 2] > 0


@every_measure
def test_one_class_alone_tells_nothing_and_no_class_gives_no_row(measure):
    X = [[1, 0], [0, 2]]
    assert term_relevance(X, [[1], [1]], measure).tolist() == [[0, 0]]
    assert term_relevance(X, np.zeros((2, 0)), measure).shape == (0, 2)
    assert term_relevance(np.zeros((0, 2)), np.zeros((0, 3)), measure).tolist() == [[0, 0]] * 3
    assert term_relevance(X, np.zeros((2, 1)), measure).tolist() == [[0, 0]]


def test_documents_without_a_class_are_outside_every_class_but_their_words_are_not_counted():
    X, M = np.array([[2, 0], [0, 1], [1, 1]]), np.array([[1, 0], [0, 1], [0, 0]])
    assert (term_relevance(X, M, "chi2") != term_relevance(X[:2], M[:2], "chi2")).any()
    np.testing.assert_array_equal(
        term_relevance(X, M, "mutual-information"), term_relevance(X[:2], M[:2], "mutual-information")
    )


@every_measure
def test_the_order_of_documents_changes_no_bit_for_counts(measure):
    rng = np.random.default_rng(5)
    rows, labels, n_classes = random_problem(rng, n_documents=50)
    order = rng.permutation(50)
    shuffled = [rows[i] for i in order], [labels[i] for i in order], n_classes
    np.testing.assert_array_equal(found((rows, labels, n_classes), measure), found(shuffled, measure))


@every_measure
def test_only_information_counted_in_words_looks_at_how_often_a_word_occurs(measure):
    rows, labels, n_classes = random_problem(np.random.default_rng(6))
    tripled = [[3 * n if d % 2 else n for n in row] for d, row in enumerate(rows)]
    same = np.array_equal(found((rows, labels, n_classes), measure), found((tripled, labels, n_classes), measure))
    assert same == (measure != "mutual-information")


@every_measure
def test_blocks_of_classes_make_up_the_whole(measure, monkeypatch):
    problem = random_problem(np.random.default_rng(7), n_classes=7)
    whole = found(problem, measure)
    monkeypatch.setattr(relevance, "row_blocks", lambda n, *_: [slice(i, min(i + 2, n)) for i in range(0, n, 2)])
    np.testing.assert_array_equal(found(problem, measure), whole)


def test_blocks_stay_small_where_classes_times_terms_would_not():
    n_terms = 200_000
    X = csr_array((np.ones(40), np.arange(40) * 5_000, np.arange(41)), shape=(40, n_terms))
    M = csr_array((np.ones(40, dtype=bool), np.arange(40), np.arange(41)), shape=(40, 10_000))
    blocks = relevance.relevance_blocks(relevance.count_contingencies(X, M, "chi2"), "chi2")
    classes, block = next(blocks)
    assert block.shape == (classes.stop, n_terms)
    assert block.nbytes * relevance.ARRAYS_PER_BLOCK <= relevance.BLOCK_BYTES


@every_measure
@pytest.mark.parametrize("form", [np.asarray, csr_array, csc_array, csr_matrix, coo_array, lambda A: A.tolist()])
def test_every_form_of_matrix_is_taken_and_stays_as_it_is(measure, form):
    rows, labels, n_classes = problem = random_problem(np.random.default_rng(8))
    X, M = form(np.array(rows, dtype=float)), form(as_matrix(labels, n_classes))
    np.testing.assert_array_equal(term_relevance(X, M, measure), found(problem, measure))
    assert np.array_equal(X.toarray() if hasattr(X, "toarray") else X, rows)


@every_measure
def test_stored_zeros_and_repeated_entries_are_no_counts_of_their_own(measure):
    X = csr_array((np.array([1.0, 1.0, 0.0, 3.0]), np.array([0, 0, 1, 1]), np.array([0, 3, 4])), shape=(2, 2))
    M = csr_array((np.array([True, False, True]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_array_equal(term_relevance(X, M, measure), term_relevance([[2, 0], [0, 3]], np.eye(2), measure))
    assert X.nnz == 4
    assert M.nnz == 3


@pytest.mark.parametrize(
    ("X", "M", "measure", "complaint"),
    [
        ([[1]], [[1]], "information", "measure is 'information'; give one of 'information-gain', 'chi2', 'mutual-information'"),
        ([[1]], [[1]], "chi", "Did you mean 'chi2'"),
        ([[1]], [[1]], None, "measure is None"),
        ([[1], [-2]], [[1], [0]], "chi2", "Negative values in data: document 2 has one"),
        ([[1], [2]], [[1]], "chi2", "X has 2 documents, but labels are given for 1"),
        ([[1]], [1], "chi2", "not 1 dimensions"),
        ([[float("nan")]], [[1]], "chi2", "NaN"),
        ([["word"]], [[1]], "chi2", "could not convert"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(X, M, measure, complaint):
    with pytest.raises(InputError, match=complaint):
        term_relevance(X, M, measure)
