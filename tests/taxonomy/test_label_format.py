import io

import numpy as np
import pytest
from rich.console import Console

from ramify import Taxonomy
from ramify.errors import LabelError
from ramify.reports.terminal import draw
from ramify.taxonomy import find_label_format, normalize_labels, taxonomy_of_labels


def test_lists_and_single_labels_are_told_apart():
    assert normalize_labels(["a", None, "b"]) == ([["a"], [], ["b"]], False, False)
    assert normalize_labels([["a", "b"], []]) == ([["a", "b"], []], True, False)
    assert normalize_labels(np.asarray([3, 4])) == ([["3"], ["4"]], False, True)
    with pytest.raises(LabelError, match=r"document 2 has label 1.5"):
        normalize_labels(["a", 1.5])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["fruit", "apple"], "apple"), (["fruit/apple"], "fruit/apple"), (["fruit > apple"], "fruit > apple")],
)
def test_predictions_are_written_as_the_labels_were(labels, expected):
    taxonomy = Taxonomy.from_edges([("fruit", None), ("apple", "fruit")])
    form = find_label_format([[label] for label in labels], False, False, taxonomy)
    assert form.write(taxonomy, [1]) == [expected]


def test_titles_are_written_as_titles():
    taxonomy = Taxonomy.from_paths(["fruit/apple"])
    assert find_label_format([["apple"]], False, False, taxonomy).write(taxonomy, [1]) == ["apple"]


def test_labels_spell_out_a_taxonomy():
    assert taxonomy_of_labels([["a > b"], ["a > c", "a"]]).names == ("a", "a > b", "a > c")
    assert taxonomy_of_labels([["x"], ["y"]]).names == ("x", "y")
    with pytest.raises(LabelError, match="no document has a label"):
        taxonomy_of_labels([[], []])


def test_the_picture_shows_counts_and_says_what_it_leaves_out():
    taxonomy = Taxonomy.from_paths([f"a/b{i}/c" for i in range(12)])
    console = Console(record=True, width=80, file=io.StringIO())
    console.print(draw(taxonomy, counts=list(range(len(taxonomy))), levels=2))
    shown = console.export_text()
    assert "tree of 25 nodes, 12 leaves, 3 levels" in shown
    assert "and 4 more" in shown
    assert "1 below" in shown
