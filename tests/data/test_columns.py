"""Which columns are texts and labels, and the question where two could be meant."""

import pytest

from ramify.data.columns import GivenColumns, find_columns, training_columns
from ramify.data.headers import find_csv_header, find_header
from ramify.errors import DataError

TEXTS = [
    "my parcel is late again",
    "no picture on the screen",
    "where is the parcel",
    "the sound is bad",
    "parcel lost",
    "dark tv",
]


def rows_of(**columns):
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def found(rows):
    columns = training_columns("t.csv", list(rows[0]), list(enumerate(rows, start=2)), GivenColumns())
    return columns.texts, columns.labels


@pytest.mark.parametrize(
    "beside",
    [
        ["2024-01-01", "2024-01-02"],
        ["01.02.2024 10:15", "02.02.2024 11:20"],
        ["yes", "no"],
        ["TRUE", "FALSE"],
        ["5", "4"],
        ["1.234,50 €", "3,99 €"],
        ["ann@example.com", "ben@example.com"],
        ["https://example.com/a/very/long/address/of/a/page", "https://example.com/b"],
        ["", "N/A"],
    ],
)
def test_dates_flags_numbers_and_addresses_are_neither_texts_nor_labels(beside):
    rows = rows_of(beside=beside * 3, words=TEXTS, group=["orders", "tv"] * 3)
    assert found(rows) == (("words",), ("group",))


def test_flags_are_labels_where_nothing_else_is():
    assert found(rows_of(words=TEXTS, spam=["yes", "no"] * 3)) == (("words",), ("spam",))


@pytest.mark.parametrize("n_rows", [6, 199])
def test_few_rows_are_enough(n_rows):
    rows = rows_of(
        what=[f"a text of some words {k}" for k in range(n_rows)], kind=["a", "b"] * (n_rows // 2) + ["a"] * (n_rows % 2)
    )
    assert found(rows) == (("what",), ("kind",))


def test_paths_are_labels_though_each_is_there_once():
    rows = rows_of(what=TEXTS, place=[f"Shop > Hall {k}" for k in range(6)])
    assert found(rows) == (("what",), ("place",))


def test_long_cells_of_digits_are_looked_at_once():
    rows = rows_of(words=["1" * 300_000 + "x"] * 6, kind=["a", "b"] * 3)
    assert found(rows) == (("words",), ("kind",))


def test_texts_with_an_arrow_in_them_are_no_paths():
    rows = [
        {"title": f"bound {k} holds for p > {k} and all q" if k % 3 else f"about {k}", "group": f"g{k % 4}"} for k in range(40)
    ]
    assert found(rows) == (("title",), ("group",))


def test_texts_that_repeat_are_still_texts():
    rows = rows_of(what=["late parcel", "no sound"] * 3, kind=["a", "b"] * 3)
    assert found(rows) == (("what",), ("kind",))


def test_two_columns_that_could_be_labels_are_both_named():
    rows = rows_of(text=TEXTS, team=["repair", "orders"] * 3, product=["kettle"] * 3 + ["toaster"] * 3)
    with pytest.raises(DataError, match=r"2 columns could be the labels, 'team', 'product'; name one of them with --label"):
        found(rows)


def test_two_columns_that_could_be_texts_are_both_named():
    rows = rows_of(
        pros=[f"good colleagues and pay {k}" for k in range(6)], cons=[f"long hours and old desks {k}" for k in range(6)]
    )
    with pytest.raises(DataError, match=r"2 columns could be the texts, 'pros', 'cons'; .* --text pros,cons"):
        find_columns("t.csv", list(rows[0]), rows, wants_labels=False)


def test_names_are_taken_rather_than_their_numbers():
    rows = rows_of(text=TEXTS, label=[0, 1] * 3, label_text=["late", "tv"] * 3)
    assert found(rows)[1] == ("label_text",)
    rows = rows_of(text=TEXTS, label=[0, 1] * 3, label_quality=["good", "good", "bad"] * 2)
    assert found(rows)[1] == ("label",)


def test_a_column_of_keys_is_no_label_column_whatever_its_name():
    rows = rows_of(text=TEXTS, code=[f"K{k}" for k in range(6)], group=["a", "b"] * 3)
    assert found(rows)[1] == ("group",)


def test_an_empty_column_with_a_usual_name_is_not_the_text():
    rows = rows_of(comment=[""] * 6, description=TEXTS, label=["a", "b"] * 3)
    assert found(rows)[0] == ("description",)


@pytest.mark.parametrize(
    ("rows", "position"),
    [
        ([["text", "label"], ["a", "b"]], 0),
        ([["Tickets"], [], ["nr", "Anfrage"], ["1", "b"]], 2),
        ([["Tickets", ""], ["text", "label"], ["a", "b"]], 1),
        ([["text"], ["Hello, I have"], ["a", "b"]], 0),
        ([["", "text"], ["0", "a"]], 0),
        ([["Beschwerde", ""], ["Paket weg", "eilig"], ["Kein Bild", ""]], 0),
        ([["Total", "", ""], ["1", "2", "3"], ["4", "5", "6"]], 0),
        ([[], ["", ""], ["text", "label"]], 2),
        ([], 0),
        ([[""]], 0),
    ],
)
def test_the_header_is_the_first_row_or_below_a_title(rows, position):
    assert find_header(rows) == position


@pytest.mark.parametrize("text", ['"open\n' + "a,b\n" * 20, '"', '""\n', "\x00,\n", "a" * 200_000])
def test_no_first_line_breaks_the_search_for_a_header(text):
    try:
        assert find_csv_header(text.splitlines(keepends=True)).n_lines >= 1
    except Exception as error:
        assert type(error).__name__ == "Error"  # of the csv module, which the reader tells as a sentence
