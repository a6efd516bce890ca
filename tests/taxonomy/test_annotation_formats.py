"""Labelling configurations of Label Studio and label lists of doccano as taxonomies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import Taxonomy
from ramify.errors import TaxonomyError
from ramify.taxonomy.files import find_format, parse_taxonomy
from ramify.taxonomy.formats import FORMATS

letters = st.characters(codec="utf-8", exclude_characters="/>|\\:", exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp", "Cn"))
titles = st.text(letters, min_size=1, max_size=6)


@given(paths=st.lists(st.lists(titles, min_size=1, max_size=4), min_size=1, max_size=6))
def test_any_titles_survive_in_a_labelling_configuration(paths):
    taxonomy = Taxonomy.from_paths([" > ".join(path) for path in paths], " > ")
    text = FORMATS["label-studio"].render(taxonomy)
    assert find_format(text) == "label-studio"
    again = parse_taxonomy(text)
    assert sorted(again.path_of(node) for node in range(len(again))) == sorted(map(taxonomy.path_of, range(len(taxonomy))))


def test_a_label_list_reads_back_the_same():
    taxonomy = Taxonomy.from_paths(["food > fruit > apple", "food > bread", "drink"], " > ")
    text = FORMATS["doccano"].render(taxonomy)
    assert find_format(text) == "doccano"
    assert parse_taxonomy(text).names == taxonomy.names


def test_quotes_and_marks_are_escaped():
    taxonomy = Taxonomy.from_edges([("a", None)], titles={"a": "\"/><script>&amp;'"})
    text = FORMATS["label-studio"].render(taxonomy)
    assert "<script>" not in text
    assert parse_taxonomy(text).titles == ("\"/><script>&amp;'",)


def test_a_node_with_two_parents_is_written_once(diamond):
    text = FORMATS["label-studio"].render(diamond)
    assert text.count('value="bottom"') == 1


def test_a_chain_of_any_depth_is_written_and_read():
    edges = [("n0", None), *((f"n{i}", f"n{i - 1}") for i in range(1, 3000))]
    again = parse_taxonomy(FORMATS["label-studio"].render(Taxonomy.from_edges(edges)))
    assert again.n_levels == 3000


def test_endless_nesting_is_refused():
    text = "<View><Taxonomy>" + '<Choice value="a">' * 200_000 + "</Choice>" * 200_000 + "</Taxonomy></View>"
    with pytest.raises(TaxonomyError, match="the paths are too long"):
        parse_taxonomy(text)


CHOICES = "<View><Choices name='a' toName='text'>{}</Choices></View>"
TAXONOMY = "<View><Taxonomy name='a' toName='text'>{}</Taxonomy></View>"


def test_an_alias_stands_for_the_value_as_in_annotations():
    text = TAXONOMY.format('<Choice value="Fruit" alias="F"><Choice value="Apple"/></Choice>')
    assert [parse_taxonomy(text).path_of(node) for node in range(2)] == [("F",), ("F", "Apple")]


def test_choices_without_a_taxonomy_tag_are_flat():
    text = "<!-- ours -->\n" + CHOICES.format('<Choice value="a"/><Choice value="b"/>')
    assert parse_taxonomy(text).names == ("a", "b")


WRONG = {
    "no choice": (TAXONOMY.format(""), "no choice"),
    "not closed": ("<View><Taxonomy>", "not valid XML"),
    "a choice without a value": (TAXONOMY.format("<Choice/>"), "choice 1 has no value"),
    "two tags": ("<View>" + 2 * TAXONOMY.format("<Choice value='a'/>") + "</View>", "2 tags"),
    "entities": ('<!DOCTYPE v [<!ENTITY a "aaaa">]><View/>', "declares a document type or entities"),
    "a choice twice": (TAXONOMY.format('<Choice value="a"/><Choice value="a"/>'), "listed twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_configuration_is_refused(name):
    text, sentence = WRONG[name]
    with pytest.raises(TaxonomyError, match=sentence):
        parse_taxonomy(text, "label-studio")


@pytest.mark.parametrize("text", ["[", "{}", "[1]", '[{"text": 1}]', '[{"text": " "}]', '[{"label": "a"}]', "[" * 100_000])
def test_a_wrong_label_list_is_refused(text):
    with pytest.raises(TaxonomyError):
        parse_taxonomy(text, "doccano")


UNWRITABLE = {
    "equal titles": (Taxonomy.from_edges([("a", None), ("b", None)], titles={"a": "x", "b": "x"}), "have the title 'x'"),
    "a separator": (Taxonomy.from_edges([("a", None), ("TCP > IP", "a")]), "holds ' > ', which separates"),
    "a control character": (Taxonomy.from_edges([("a\x07", None)]), "control character"),
}


@pytest.mark.parametrize("name", UNWRITABLE)
def test_a_title_that_would_not_come_back_from_annotations_is_refused(name):
    taxonomy, sentence = UNWRITABLE[name]
    with pytest.raises(TaxonomyError, match=sentence):
        FORMATS["label-studio"].render(taxonomy)
