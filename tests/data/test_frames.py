"""Tables in memory: of pandas, polars, pyarrow, data sets, and dictionaries."""

import pandas
import polars
import pyarrow
import pytest

import ramify
from ramify.data import frames, read_corpus
from ramify.data.frames import Frame, like_frame, stream_frame, with_columns
from ramify.errors import DataError, InputError

BODIES = [f"parcel {i} is late" if i % 2 else f"dark screen {i}" for i in range(40)]
LABELS = ["Orders > Late" if i % 2 else "TV > Picture" for i in range(40)]
TABLE = {"id": list(range(40)), "body": BODIES, "category": LABELS}
INDEX = [f"row {i}" for i in range(40)]


class Dataset:
    """As the data sets of Hugging Face behave."""

    __module__ = "datasets.arrow_dataset"

    def __init__(self, columns):
        self._columns, self.column_names, self.num_rows = columns, list(columns), len(next(iter(columns.values())))
        self.shape = (self.num_rows, len(columns))

    def __getitem__(self, rows):
        return {name: cells[rows] for name, cells in self._columns.items()}


MAKERS = {
    "pandas": lambda columns: pandas.DataFrame(columns, index=INDEX[: len(columns["body"])]),
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
    "datasets": Dataset,
    "dict": dict,
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def test_a_table_in_memory_is_read_like_a_file(make):
    corpus = read_corpus(make(TABLE))
    assert (corpus.documents, corpus.labels) == (BODIES, [[label] for label in LABELS])
    assert corpus.found == {"text": "body", "label": ["category"], "label_separator": None}
    assert corpus.lines[:2] == [1, 2]


def test_empty_cells_are_no_label_and_no_text(make):
    labels = [None, "n/a", *LABELS[2:]]
    corpus = read_corpus(make({**TABLE, "body": [*BODIES[:39], None], "category": labels}))
    assert corpus.labels[:3] == [[], [], ["TV > Picture"]]
    assert [(bad.line, bad.reason) for bad in corpus.bad_rows] == [(40, "the text is null")]


def test_every_function_takes_a_table(make):
    result = ramify.train(make(TABLE), system="nb")
    assert result.classifier.predict(["the parcel is late"]).tolist() == ["Orders > Late"]
    assert ramify.evaluate(result.classifier, make(TABLE)).documents == 40
    assert ramify.audit("nb", make(TABLE)).as_dict()["documents"] == 40
    assert ramify.compare(["nb", "svm"], make(TABLE), n_resamples=10).as_dict()
    predicted = ramify.predict(result.classifier, make(TABLE))
    assert predicted.labels[:2] == [["TV > Picture"], ["Orders > Late"]]


def test_a_classifier_takes_a_table_and_gives_one(make):
    clf = ramify.TextClassifier("nb").fit(make(TABLE), "category")
    again = ramify.TextClassifier("nb").fit(make({"body": BODIES}), LABELS)
    predictions = clf.predict(BODIES).tolist()
    for each in (clf, again):
        found = each.predict(make(TABLE)) if make is not Dataset else {"predicted": predictions}
        assert (
            list(found["predicted"].to_pylist() if hasattr(found["predicted"], "to_pylist") else found["predicted"])
            == predictions
        )
        assert each.predict_proba(make(TABLE)).shape == (40, 4)


def test_the_index_of_pandas_is_kept():
    frame = MAKERS["pandas"](TABLE)
    clf = ramify.TextClassifier("nb").fit(frame, "category")
    found, whole = clf.predict(frame), ramify.predict(clf, frame).to_frame()
    assert type(found) is type(whole) is pandas.DataFrame
    assert found.index.tolist() == whole.index.tolist() == INDEX
    assert whole["predicted"].tolist() == found["predicted"].tolist()
    assert whole["body"].tolist() == BODIES
    assert 0 < whole["probability"].iloc[0] <= 1


def test_the_columns_of_the_training_table_are_used_for_predictions():
    clf = ramify.TextClassifier("nb").fit(MAKERS["pandas"](TABLE), "category")
    other = pandas.DataFrame({"text": ["a very long text about screens and pictures"], "body": ["late parcel"]})
    assert clf.predict(other)["predicted"].tolist() == ["Orders > Late"]


@pytest.mark.parametrize(
    ("table", "error", "match"),
    [
        (
            {"train": pandas.DataFrame(TABLE), "test": pandas.DataFrame(TABLE)},
            InputError,
            r"2 tables: 'train', 'test'.*\['train'\]",
        ),
        (pandas.DataFrame([["a", "b"]], columns=["text", 3]), DataError, "column '3' .* has no string as its name"),
        (pandas.DataFrame([["a", "b"]], columns=["text", "text"]), DataError, "two columns named 'text'"),
        ({"text": ["a", "b"], "label": ["x"]}, DataError, "column 'text' has 2 rows, but column 'label' has 1"),
        (pandas.DataFrame({"text": [], "label": []}), DataError, "has column names but no rows"),
        (pandas.DataFrame({"a": [1.5, 2.5], "b": [1, 2]}), DataError, "no column looks like"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(table, error, match):
    with pytest.raises(error, match=match):
        read_corpus(table)


def test_rows_come_in_blocks_and_missing_cells_are_none(make, monkeypatch):
    monkeypatch.setattr(frames, "BLOCK", 7)
    rows = list(stream_frame(make(TABLE), ["category", "id"]))
    assert rows == [(i + 1, {"category": LABELS[i], "id": i}) for i in range(40)]


def test_classes_that_a_data_set_numbers_are_read_by_name():
    made = Dataset({"text": BODIES[:4], "label": [1, 0, -1, 1]})
    made.features = {"text": None, "label": type("ClassLabel", (), {"names": ["tea", "tv"]})()}
    assert read_corpus(made).labels == [["tv"], ["tea"], [], ["tv"]]


def test_what_is_no_table_is_none():
    for other in (None, "text", ["a"], {}, {"a": 1}, pandas.Series(["a"]), polars.Series(["a"]), {"a": "text"}):
        assert not isinstance(other, Frame)


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow", "dict"])
def test_new_tables_are_of_the_same_library(name):
    table = MAKERS[name](TABLE)
    assert type(like_frame(table, {"x": list(range(40))})) is type(table)
    more = with_columns(table, {"x": list(range(40))})
    assert type(more) is type(table)
    assert [row["x"] for _, row in stream_frame(more, ["body", "x"])] == list(range(40))
