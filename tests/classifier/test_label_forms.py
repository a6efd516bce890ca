"""Labels in every form that people have: recognized, given back by `predict`, or refused with a sentence."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.preprocessing import MultiLabelBinarizer
from some_texts import LABELS, PATHS, TEXTS

import ramify
from ramify import Taxonomy, TextClassifier
from ramify.errors import LabelError, ModelError
from ramify.taxonomy import LabelFormat, read_labels

TAXONOMY = Taxonomy.from_paths(LABELS)
BINARIZER = MultiLabelBinarizer()
MARKS = BINARIZER.fit_transform([[label] for label in LABELS])
NAMES = BINARIZER.classes_.tolist()
CLOSED = TAXONOMY.encode(LABELS).toarray()
LEVELS = np.array([list(path) for path in PATHS])
PADDED = np.array([[*path, None] for path in PATHS], dtype=object)
NESTED = [[list(path), ["drink", "tea"]] for path in PATHS[:4]] + [[list(path)] for path in PATHS[4:]]
LEVELS_3D = np.array([[list(path), ["", ""]] for path in PATHS])


def same(a, b):
    """Whether two lists, arrays, matrices or frames of one type hold the same."""
    if hasattr(a, "columns"):
        return type(a) is type(b) and list(a.columns) == list(b.columns) and np.array_equal(a.to_numpy(), b.to_numpy())
    if isinstance(a, csr_array | csr_matrix):
        return (a != b).nnz == 0
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


FORMS = {
    "strings": (LABELS, np.array(LABELS)),
    "lists": ([[label] for label in LABELS], None),
    "sets": ([{label} for label in LABELS], [[label] for label in LABELS]),
    "tuples": (PATHS, None),
    "lists of tuples": ([[path] for path in PATHS], None),
    "lists of lists of levels": ([[list(path)] for path in PATHS], None),
    "levels": (LEVELS, None),
    "levels as objects": (PADDED, np.array([[*path, ""] for path in PATHS])),
    "levels of several labels": (LEVELS_3D, LEVELS_3D[:, :1]),
    "levels as a frame": (pandas.DataFrame(LEVELS, columns=["top", "leaf"]), LEVELS),
    "integers": ([10, 10, 9, 9, 2, 2] * 4, np.array([10, 10, 9, 9, 2, 2] * 4)),
    "whole floats": (np.array([10.0, 10, 9, 9, 2, 2] * 4), np.array([10, 10, 9, 9, 2, 2] * 4)),
    "objects": (np.array(LABELS, dtype=object), np.array(LABELS)),
    "pandas": (pandas.Series(LABELS), np.array(LABELS)),
    "categories": (pandas.Series(LABELS, dtype="category"), np.array(LABELS)),
    "polars": (polars.Series(LABELS), np.array(LABELS)),
    "polars lists": (polars.Series([[label] for label in LABELS]), [[label] for label in LABELS]),
    "pyarrow": (pyarrow.array(LABELS), np.array(LABELS)),
    "chunks": (pyarrow.chunked_array([LABELS[:7], LABELS[7:]]), np.array(LABELS)),
    "one column": (pandas.DataFrame({"label": LABELS}), np.array(LABELS)),
    "indicators in pandas": (pandas.DataFrame(MARKS, columns=NAMES), None),
    "flags in pandas": (pandas.DataFrame(MARKS.astype(bool), columns=NAMES), pandas.DataFrame(MARKS, columns=NAMES)),
    "indicators in polars": (polars.DataFrame(MARKS, schema=NAMES), None),
}


@pytest.mark.parametrize("form", FORMS)
def test_predictions_have_the_form_of_the_labels_also_after_loading(form, tmp_path):
    labels, expected = FORMS[form]
    fitted = TextClassifier("svm").fit(TEXTS, labels)
    assert same(fitted.predict(TEXTS), labels if expected is None else expected)
    assert fitted.score(TEXTS, labels) == 1
    fitted.save(tmp_path / "model")
    assert same(ramify.load(tmp_path / "model").predict(TEXTS), labels if expected is None else expected)


@pytest.mark.parametrize(
    "form", ["tuples", "lists of tuples", "lists of lists of levels", "levels", "levels of several labels", "strings"]
)
def test_paths_make_the_same_taxonomy_however_they_are_given(form):
    assert read_labels(FORMS[form][0]).taxonomy.names == read_labels(PATHS).taxonomy.names
    assert read_labels(FORMS[form][0]).rows == [[label] for label in LABELS]


@pytest.mark.parametrize("labels", [PATHS, [[path] for path in PATHS], LEVELS, PADDED, LEVELS_3D])
@pytest.mark.parametrize(
    "taxonomy",
    [
        TAXONOMY,
        Taxonomy.from_edges(
            [("F", None), ("D", None), ("f", "F"), ("b", "F"), ("t", "D")],
            titles={"F": "food", "D": "drink", "f": "fruit", "b": "bread", "t": "tea"},
        ),
    ],
    ids=["paths", "titles"],
)
def test_paths_are_found_in_a_taxonomy(labels, taxonomy):
    Y = taxonomy.encode(read_labels(labels, taxonomy).rows)
    expected = [taxonomy.path_of(node) for node in Y.indices[1::2]]
    assert expected == PATHS


@pytest.mark.parametrize("labels", [CLOSED, CLOSED.astype(bool), CLOSED.astype(float), csr_array(CLOSED), csr_matrix(CLOSED)])
def test_columns_of_a_matrix_are_the_nodes_of_the_taxonomy(labels):
    fitted = TextClassifier("svm", TAXONOMY).fit(TEXTS, labels)
    predicted = fitted.predict(TEXTS)
    assert isinstance(predicted, np.ndarray if isinstance(labels, np.ndarray) else csr_array)
    assert np.array_equal(predicted if isinstance(predicted, np.ndarray) else predicted.toarray(), CLOSED)


def test_ancestors_are_marked_where_they_were_marked():
    own = CLOSED.copy()
    own[:, [TAXONOMY.index("food"), TAXONOMY.index("drink")]] = 0
    assert np.array_equal(TextClassifier("svm", TAXONOMY).fit(TEXTS, own).predict(TEXTS), own)


def test_several_labels_come_back_as_several():
    fitted = TextClassifier("svm").fit(TEXTS, NESTED)
    assert fitted.form_.multi_label
    assert fitted.score(TEXTS, NESTED) > 0
    assert all(isinstance(path, list) for row in fitted.predict(TEXTS) for path in row)


def test_names_that_contain_every_separator_but_one_make_paths():
    labels = [("a/b > c", "x"), ("a/b > c", "y")] * 12
    assert TextClassifier("nb").fit(TEXTS, labels).predict(TEXTS)[0][0] == "a/b > c"


def test_more_paths_extend_a_taxonomy_that_was_read_from_labels():
    fitted = TextClassifier("nb").fit(TEXTS, PATHS).partial_fit(["fresh milk"] * 8, [("drink", "milk")] * 8)
    assert "drink/milk" in fitted.taxonomy_
    assert fitted.predict(["fresh milk"]) == [("drink", "milk")]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (MARKS, "a 0/1 matrix with 3 columns and no names; give a data frame whose columns are the labels"),
        (csr_array(MARKS), "a 0/1 matrix with 3 columns and no names"),
        (MARKS.astype(bool), "a 0/1 matrix with 3 columns and no names"),
        (np.arange(48).reshape(24, 2), "values are not all 0 or 1; give one label per document"),
        (pandas.DataFrame(MARKS * 2, columns=NAMES), "values are not all 0 or 1"),
        (pandas.DataFrame(MARKS * 0, columns=NAMES), "no document has a label"),
        (pandas.DataFrame(MARKS, columns=["a", "a", "b"]), "two columns 'a'; give each label one column"),
        (pandas.Series([None, *LABELS[1:]]), "1 of 24 labels are missing, that of document 1 the first; drop"),
        (pandas.Series([np.nan, *LABELS[1:]]), "1 of 24 labels are missing"),
        (pandas.Series([None, *LABELS[1:]], dtype="category"), "1 of 24 labels are missing"),
        (pandas.DataFrame({"label": [None, *LABELS[1:]]}), "1 of 24 labels are missing"),
        (polars.Series([None, *LABELS[1:]]), "1 of 24 labels are missing"),
        (pyarrow.array([None, *LABELS[1:]]), "1 of 24 labels are missing"),
        (np.array([np.nan, *LABELS[1:]], dtype=object), "document 1 has label nan; labels are names or paths"),
        (np.array([0.5, 1.0] * 12), "document 1 has label 0.5, so the labels are continuous"),
        (np.array([np.nan, 1.0] * 12), "document 1 has label nan; drop it"),
        ([("comedy", "drama"), ("drama",)] * 12, "'drama' is also the top of one; give a list for several labels"),
        ([(1, 2), (3,)] * 12, "with 1 in it; the parts of a path are strings.*For several labels, give a list"),
        ([("food", ""), ("food", "", "x")] * 12, "in which a level is empty; name it"),
        ([*PATHS[:-1], "food"], "document 24 has label 'food', and others have tuples"),
        ([[*PATHS[:1], "food"]] * 24, "document 1 has 'food' beside paths"),
        ([None, ()] * 12, "no document has a label"),
    ],
    ids=str,
)
def test_what_has_no_clear_meaning_is_refused(labels, message):
    with pytest.raises(LabelError, match=message):
        TextClassifier("svm").fit(TEXTS, labels)


def test_tuples_and_matrices_that_do_not_fit_the_taxonomy_are_refused():
    fit = TextClassifier("svm", TAXONOMY).fit
    with pytest.raises(
        LabelError, match=r"document 1: \('fruit', 'bread'\) is a tuple, so a path, and the taxonomy has no such"
    ):
        fit(TEXTS, [("fruit", "bread")] * 24)
    with pytest.raises(LabelError, match=r"document 1: the path \('food', 'fish'\) is not in the taxonomy of 5 nodes"):
        fit(TEXTS, [("food", "fish")] * 24)
    with pytest.raises(LabelError, match="a 0/1 matrix with 3 columns and no names, and the taxonomy has 5 nodes"):
        fit(TEXTS, MARKS)


@pytest.mark.parametrize(
    "wrong",
    [{"shape": "cube"}, {"container": "os"}, {"width": -1}, {"width": True}, {"columns": ["no such"]}, {"closed": 1}],
    ids=str,
)
def test_a_form_that_no_model_has_is_not_loaded(wrong):
    with pytest.raises(ModelError, match="label format is invalid"):
        LabelFormat.from_state({**LabelFormat(True).state(), **wrong}, TAXONOMY)


def test_a_column_of_one_label_each_warns_as_scikit_learn_does():
    from sklearn.exceptions import DataConversionWarning

    with pytest.warns(DataConversionWarning, match="column-vector"):
        fitted = TextClassifier("svm").fit(TEXTS, np.array(LABELS)[:, None])
    assert fitted.predict(TEXTS).tolist() == LABELS
