"""Documents that are rows of numbers, and texts in the containers that people have."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from some_texts import LABELS, TEXTS

import ramify
from ramify import TextClassifier
from ramify.errors import InputError
from ramify.features import Vectorizer, Vectors

VECTORIZER = TfidfVectorizer().fit(TEXTS)
X = VECTORIZER.transform(TEXTS)
NAMES = VECTORIZER.get_feature_names_out().tolist()
FRAME = pandas.DataFrame(X.toarray(), columns=NAMES)


@pytest.mark.parametrize("steps", [[TfidfVectorizer()], [TfidfVectorizer(), TruncatedSVD(4, random_state=0)]], ids=len)
def test_a_pipeline_may_have_any_transformer_in_front(steps):
    fitted = make_pipeline(*steps, TextClassifier("svm")).fit(TEXTS, LABELS)
    assert fitted.predict(TEXTS).tolist() == LABELS
    assert fitted.score(TEXTS, LABELS) == 1
    assert fitted.predict_proba(TEXTS).shape == (24, 5)


@pytest.mark.parametrize(
    "matrix",
    [
        *(X, csr_matrix(X), csc_array(X), csr_array(X), X.toarray(), X.toarray().tolist(), X.toarray().astype(object)),
        *(FRAME, polars.from_pandas(FRAME), pyarrow.Table.from_pandas(FRAME)),
    ],
    ids=lambda matrix: type(matrix).__module__.partition(".")[0] + type(matrix).__name__ + str(getattr(matrix, "dtype", "")),
)
def test_rows_of_numbers_take_the_place_of_texts(matrix):
    fitted = TextClassifier("svm").fit(matrix, LABELS)
    same = TextClassifier("svm").fit(X, LABELS)
    assert fitted.n_features_in_ == len(NAMES)
    assert fitted.predict(matrix).tolist() == LABELS
    assert fitted.score(matrix, LABELS) == 1
    np.testing.assert_allclose(fitted.predict_proba(matrix), same.predict_proba(X), rtol=1e-5)


def test_columns_of_a_frame_name_features_in_explanations_also_after_loading(tmp_path):
    fitted = TextClassifier("svm").fit(FRAME, LABELS)
    fitted.save(tmp_path / "model")
    again = ramify.load(tmp_path / "model")
    for model in (fitted, again):
        assert model.feature_names_in_.tolist() == NAMES
        assert model.n_features_in_ == len(NAMES)
        assert {word for word, _ in model.explain(FRAME.iloc[[0]]).words} == {"sweet", "red", "apple"}
    assert again.predict(FRAME).tolist() == LABELS
    bare = TextClassifier("svm").fit(X, LABELS)
    assert bare.explain(X[[0]]) == bare.explain(X.toarray()[0])


def test_a_matrix_without_names_has_none_and_texts_have_neither():
    assert not hasattr(TextClassifier("svm").fit(X, LABELS), "feature_names_in_")
    texts = TextClassifier("svm").fit(TEXTS, LABELS)
    assert not hasattr(texts, "n_features_in_")
    assert not hasattr(TextClassifier(), "n_features_in_")
    assert not hasattr(TextClassifier(), "classes_")


@pytest.mark.parametrize(
    ("trained", "given", "message"),
    [
        (X, X[:, :3], "X has 3 features, but Vectors is expecting 15 features as input. Give the columns of training"),
        (FRAME, FRAME.rename(columns={"apple": "pear"}), "feature names should match .* Give the columns of training.*'apple'"),
        (X, TEXTS, "trained on 15 numeric features, not on texts; give a matrix with 15 columns"),
        (TEXTS, X, "trained on texts, and the documents are a matrix of numbers; give a list of texts"),
        (TEXTS, X.toarray()[0], "an array of numbers of shape .*Reshape your data"),
        (TEXTS, np.array([TEXTS, TEXTS]).T, "an array of texts of shape .24, 2.; give one text per document"),
        (TEXTS, np.zeros((2, 2, 2)), "an array of shape .2, 2, 2."),
        (TEXTS, [[1, 2], [3]], "lists of different lengths"),
        (X, pandas.DataFrame({"text": TEXTS, "id": range(24)}), "trained on 15 numeric features, not on texts"),
    ],
)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_documents_of_another_kind_are_refused(trained, given, message, method):
    fitted = TextClassifier("nb").fit(trained, LABELS)
    with pytest.raises(InputError, match=message):
        getattr(fitted, method)(given)


def test_features_that_do_not_suit_the_documents_are_refused():
    with pytest.raises(InputError, match=r"a matrix of numbers, and features=Vectorizer\(\) reads texts; leave features out"):
        TextClassifier("nb", features=Vectorizer()).fit(X, LABELS)
    with pytest.raises(InputError, match=r"features=Vectors\(\) takes a matrix of numbers, and the documents are texts"):
        TextClassifier("nb", features=Vectors()).fit(TEXTS, LABELS)
    with pytest.raises(InputError, match="'ngram_range' is a parameter of features of texts; leave it out"):
        TextClassifier("nb", params={"ngram_range": (1, 2)}).fit(X, LABELS)
    with pytest.raises(InputError, match="3 documents to explain; give one at a time"):
        TextClassifier("nb").fit(X, LABELS).explain(X[:3])


def test_documents_of_a_matrix_can_be_kept_back():
    for matrix in (X, FRAME, polars.from_pandas(FRAME)):
        fitted = TextClassifier("svm", keep_back=0.25).fit(matrix, LABELS)
        assert fitted.figures_["documents"] == 18
        assert fitted.guarantee_.is_proven


@pytest.mark.parametrize(
    "container",
    [
        pandas.Series,
        polars.Series,
        pyarrow.array,
        lambda values: pyarrow.chunked_array([values[:5], values[5:]]),
        lambda values: np.array(values)[:, None],
        lambda values: np.array(values, dtype=object)[:, None],
        lambda values: pandas.DataFrame({"text": values}),
        lambda values: polars.DataFrame({"text": values}),
    ],
    ids=["pandas", "polars", "pyarrow", "chunks", "column", "objects", "pandas frame", "polars frame"],
)
def test_texts_may_be_a_column(container):
    fitted = TextClassifier("nb").fit(container(TEXTS), LABELS)
    assert fitted.vectorizer_.terms_.tolist() == NAMES
    found = fitted.predict(container(TEXTS))
    assert list(found["predicted"] if hasattr(found, "columns") else found) == LABELS
    assert fitted.score(container(TEXTS), LABELS) == 1


def test_a_missing_text_in_a_column_is_named():
    for column in (pandas.Series([None, *TEXTS[1:]]), polars.Series([None, *TEXTS[1:]]), pyarrow.array([None, *TEXTS[1:]])):
        with pytest.raises(InputError, match="text 1 is .*every text is a string"):
            TextClassifier("nb").fit(column, LABELS)
