"""Titles of a SKOS file in the language that is asked for."""

import logging

import pytest

import ramify
from ramify.cli.main import main
from ramify.errors import InputError, TaxonomyError
from ramify.taxonomy.files import parse_taxonomy, render_taxonomy

HEAD = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
LABELS = {
    "x:all": '"Apfel"@de, "apple"@en, "plain", "pomme"@fr',
    "x:plain": '"bare", "pear"@en, "poire"@fr',
    "x:english": '"British"@en-GB, "cerise"@fr',
    "x:other": '"uva"@it, "raisin"@fr-CA',
    "x:variety": '"Marille"@de-AT, "apricot"@en',
}
TURTLE = HEAD + "".join(f"<{name}> a skos:Concept ; skos:prefLabel {labels} .\n" for name, labels in LABELS.items())
TURTLE += "<x:none> a skos:Concept .\n"


def titles(text, language=None):
    taxonomy = parse_taxonomy(text, language=language)
    return dict(zip(taxonomy.names, taxonomy.titles, strict=True))


def test_titles_fall_back_to_no_language_then_english_then_any():
    assert titles(TURTLE, "de") == {
        "x:all": "Apfel",
        "x:plain": "bare",
        "x:english": "British",
        "x:other": "raisin",
        "x:variety": "Marille",
        "x:none": "x:none",
    }


def test_the_exact_language_comes_before_a_variety():
    text = HEAD + '<x:a> a skos:Concept ; skos:prefLabel "A"@de-AT, "Z"@de, "B"@de-CH .'
    assert titles(text, "de") == {"x:a": "Z"}
    assert titles(text, "de-ch") == {"x:a": "B"}


def test_without_a_language_titles_are_english_as_before():
    found = titles(TURTLE)
    assert found["x:all"] == "apple"
    assert found["x:plain"] == "pear"


def test_how_many_titles_are_missing_is_said(caplog):
    with caplog.at_level(logging.WARNING, "ramify"):
        titles(TURTLE, "de")
    assert "4 of 6 concepts without a label in 'de' keep another one" in caplog.text


def test_nothing_is_said_if_no_title_is_missing(caplog):
    with caplog.at_level(logging.WARNING, "ramify"):
        titles(HEAD + '<x:a> a skos:Concept ; skos:prefLabel "A"@de .', "DE")
    assert caplog.text == ""


def test_a_language_that_no_concept_has_is_refused_with_those_there_are():
    with pytest.raises(TaxonomyError, match="has a label in 'es'; it has labels in de, de-at, en, en-gb, fr, fr-ca, it"):
        titles(TURTLE, "es")


@pytest.mark.parametrize("language", ["", "deutsch land", "de_DE", "<x>", 5])
def test_what_is_no_language_is_refused(language):
    with pytest.raises(InputError, match="give a code such as 'de' or 'pt-BR'"):
        parse_taxonomy(TURTLE, language=language)


def test_other_formats_have_no_languages():
    with pytest.raises(InputError, match="'paths' has no languages, only skos has"):
        parse_taxonomy("a > b", language="de")


def test_titles_are_written_with_their_language(tmp_path):
    taxonomy = parse_taxonomy(TURTLE, language="de")
    ramify.write_taxonomy(taxonomy, tmp_path / "out.ttl", language="de")
    assert '"Apfel"@de' in (tmp_path / "out.ttl").read_text()
    assert ramify.read_taxonomy(tmp_path / "out.ttl", language="de") == taxonomy
    assert '"Apfel"' in render_taxonomy(taxonomy, "skos")


def test_the_command_line_takes_a_language(tmp_path, capsys):
    (tmp_path / "in.ttl").write_text(TURTLE)
    assert main(["taxonomy", "convert", str(tmp_path / "in.ttl"), "--language", "de", "--to", "edges"]) == 0
    shown = capsys.readouterr()
    assert "x:all\tROOT\tApfel" in shown.out.replace("\t\t", "\tROOT\t")
    assert "4 of 6 concepts without a label in 'de'" in shown.err


def test_training_takes_a_language(tmp_path):
    (tmp_path / "in.ttl").write_text(TURTLE)
    rows = [f"red round {i},Apfel" for i in range(8)] + [f"small orange {i},Marille" for i in range(8)]
    (tmp_path / "data.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    given = ["--taxonomy", str(tmp_path / "in.ttl"), "--language", "de", "--system", "nb", "--model", str(tmp_path / "model")]
    assert main(["train", str(tmp_path / "data.csv"), *given]) == 0
    assert ramify.load(tmp_path / "model").predict(["red"]).tolist() == ["Apfel"]
