"""Label cells: separators, lists, marks for no label, and spellings."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.data.labels import as_list, find_label_separator, find_spellings, is_missing, read_labels
from ramify.taxonomy import find_separator, taxonomy_of_labels

parts = st.text(st.sampled_from("abcdefgh"), min_size=1, max_size=3)
NAMES = [
    "TV, audio & smart home",
    "TCP/IP",
    "Phones",
    "R&B",
    "A.I.",
    "Dr. No",
    "e-mail",
    "Rock - Pop",
    "24/7",
    "C++",
    "AC/DC",
    "U.S.",
]


@pytest.mark.parametrize("separator", [" › ", " » ", " > ", "›", ">", "|", "/", ".", " - ", "::", "--", "\\"])
def test_every_usual_separator_of_paths_is_found(separator):
    labels = [separator.join(path) for path in [("Food", "Fruit"), ("Food", "Bread"), ("Home", "Sofa"), ("Home", "Lamp")]]
    assert find_separator(labels) == separator
    assert taxonomy_of_labels([[label] for label in labels]).n_levels == 2


@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=12),
    plain=st.lists(parts, min_size=12, max_size=20, unique=True),
)
def test_marks_inside_names_split_nothing(names, plain):
    assert find_separator([*names, *plain, "x", "y", "z"]) is None


@pytest.mark.parametrize("labels", [["1.5", "2.5", "3.5", "1.0"], ["No. 1", "No. 2", "Dr. No", "Mr. X"], [], ["a"], ["-"]])
def test_numbers_and_sentences_are_no_paths(labels):
    assert find_separator(labels) is None


@given(labels=st.lists(st.text(max_size=12), max_size=30))
def test_any_labels_are_read_without_a_crash(labels):
    found = read_labels(labels, None, None)
    assert len(found.labels) == len(labels)
    assert all(label == label.strip() and label for some in found.labels for label in some)
    merged = read_labels(labels, None, None, merge_spellings=True)
    assert [bool(some) for some in merged.labels] == [bool(some) for some in found.labels]


@given(
    labels=st.lists(
        st.sampled_from(["Late", "late", " LATE", "Lost", "lost ", "tv > sound", "TV > Sound", "TV >Sound", "Sound"])
    )
)
def test_merged_spellings_leave_nothing_to_merge(labels):
    merged = read_labels(labels, None, None, merge_spellings=True)
    counts = Counter(label for some in merged.labels for label in some)
    assert find_spellings(counts) == []
    assert len({label.casefold() for label in counts}) == len(counts)


def test_the_most_frequent_spelling_is_kept():
    merged = read_labels(["late", "Late", "Late", "lost"], None, None, merge_spellings=True)
    assert merged.labels == [["Late"], ["Late"], ["Late"], ["lost"]]
    assert [str(spelling) for spelling in merged.spellings] == ["'late' beside 'Late'"]


def test_a_name_that_ends_two_paths_is_not_merged_into_either():
    assert find_spellings(Counter({"A > Other": 3, "B > Other": 3, "Other": 2})) == []


@pytest.mark.parametrize("cell", ["nan", "NaN", "NULL", "null", "N/A", "n/a", "-", "?", "", "  ", "<NA>", "None", "NA", "#N/A"])
def test_marks_for_no_label_are_no_labels_unless_the_taxonomy_has_them(cell):
    assert is_missing(cell)
    assert is_missing(cell, {"x"}.__contains__)
    assert not cell.strip() or not is_missing(cell, {cell.strip()}.__contains__)


@pytest.mark.parametrize("word", ["none", "na", "no", "0", "unknown", "other", "null pointer", "-1", "?!"])
def test_words_that_may_be_labels_are_labels(word):
    assert not is_missing(word)


@given(
    labels=st.lists(
        st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8).map(str.strip).filter(bool), unique=True
    )
)
def test_a_list_that_python_wrote_gives_its_strings_back(labels):
    assert as_list(str(labels)) == labels


@given(cell=st.text(st.sampled_from("[]'\" ,ab\\n\n"), max_size=20))
def test_no_cell_breaks_the_reading_of_lists(cell):
    found = as_list(cell)
    assert found is None or all(isinstance(label, str) and label for label in found)


@pytest.mark.parametrize(
    "cell", ["[physics]", "[1, 2]", "['a', b]", "['a', 1]", "[", "[]]", "['a'", "('a', 'b')", "['a'] and more"]
)
def test_what_is_no_list_of_strings_is_one_label(cell):
    assert as_list(cell) is None


@pytest.mark.parametrize(
    "cell", ["['" + "\\'" * 200_000 + "]", "['a'" + " " * 200_000 + "x]", "[" + "'a'," * 200_000 + "b]", "[" * 200_000]
)
def test_long_cells_that_are_no_lists_are_looked_at_once(cell):
    assert as_list(cell) is None


def test_spaces_separate_codes_and_no_words():
    assert find_label_separator(["cs.CL cs.LG", "cs.CL", "cs.LG"]) == " "
    assert find_label_separator(["credit card", "credit", "card"]) is None
