import json
import socket
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import build, parent_lists, trees

from ramify import Taxonomy, read_taxonomy, write_taxonomy
from ramify.errors import InputError, TaxonomyError
from ramify.taxonomy.files import find_format, is_taxonomy_file, parse_taxonomy
from ramify.taxonomy.formats import FORMATS
from ramify.taxonomy.formats.text import find_separator

SEPARATING = "/>›»→|\\:\r\n\t\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
letters = st.characters(codec="utf-8", exclude_characters=SEPARATING, exclude_categories=("Cs", "Cc", "Zs"))
titles = st.text(letters, min_size=1, max_size=6).filter(lambda title: "--" not in title)


@pytest.mark.parametrize("name", ["edges", "json", "skos"])
@given(parents=parent_lists())
def test_what_is_written_reads_back_the_same(name, parents):
    taxonomy = build(parents)
    again = FORMATS[name].parse(FORMATS[name].render(taxonomy))
    again_parents = {n: {again.names[p] for p in again.parents_of(i)} for i, n in enumerate(again.names)}
    assert again_parents == {f"n{i}": {f"n{p}" for p in above} for i, above in enumerate(parents)}
    if name != "skos":
        assert again == taxonomy


@pytest.mark.parametrize("name", ["paths", "indented", "edges", "json"])
@given(paths=st.lists(st.lists(titles, min_size=1, max_size=4), min_size=1, max_size=6))
def test_any_titles_survive_in_path_taxonomies(name, paths):
    taxonomy = Taxonomy.from_paths([" > ".join(path) for path in paths], " > ")
    again = FORMATS[name].parse(FORMATS[name].render(taxonomy))
    assert sorted(again.path_of(node) for node in range(len(again))) == sorted(
        taxonomy.path_of(n) for n in range(len(taxonomy))
    )


@given(trees(min_nodes=2))
def test_lshtc_pairs_read_back_the_same_structure(parents):
    joined = [above or [0] for above in parents]
    joined[0] = []
    lines = [f"{p + 10} {i + 10}" for i, above in enumerate(joined) for p in above]
    taxonomy = parse_taxonomy("\n".join(lines))
    assert find_format("\n".join(lines)) == "lshtc"
    assert FORMATS["lshtc"].parse(FORMATS["lshtc"].render(taxonomy)) == taxonomy
    assert {n: [taxonomy.names[p] for p in taxonomy.parents_of(i)] for i, n in enumerate(taxonomy.names)} == {
        str(i + 10): [str(p + 10) for p in above] for i, above in enumerate(joined)
    }


EXAMPLES = {
    "edges": "apple\tfruit\nfruit\tROOT\n",
    "edges, commas and a header": "node,parent\nfruit,\napple,fruit\n",
    "edges, turned round": "parent;child\n;fruit\nfruit;apple\n",
    "edges with titles": "child\tparent\ttitle\nfruit\t\tFruit\napple\tfruit\tAn apple\n",
    "paths": "fruit/apple\n",
    "arrows": "fruit > apple\n",
    "indented": "fruit\n  apple\n",
    "indented with tabs": "fruit\n\tapple\n",
    "json nodes": json.dumps({"nodes": [{"name": "fruit"}, {"name": "apple", "parents": ["fruit"]}]}),
    "json nested": json.dumps({"fruit": ["apple"]}),
    "json children": json.dumps({"name": "fruit", "children": [{"name": "apple"}]}),
    "turtle": (
        "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n"
        "<x:fruit> a skos:Concept ; skos:narrower <x:apple> .\n"
        "<x:apple> a skos:Concept ."
    ),
    "lshtc": "1 2\n",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_content_tells_the_format(tmp_path, name):
    path = tmp_path / "taxonomy"
    path.write_text(EXAMPLES[name], encoding="utf-8")
    taxonomy = read_taxonomy(path)
    assert len(taxonomy) == 2
    assert taxonomy.parent.tolist() == [-1, 0]


def test_a_title_column_is_shown_and_found():
    taxonomy = parse_taxonomy(EXAMPLES["edges with titles"])
    assert taxonomy.show(1) == "Fruit > An apple"
    assert taxonomy.index("An apple") == 1


def test_skos_prefers_the_english_label_and_reads_xml():
    turtle = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<x:a> a skos:Concept ; skos:prefLabel "Obst"@de, "Fruit"@en .
<x:b> a skos:Concept ; skos:prefLabel "Apfel"@de ; skos:broader <x:a> ."""
    taxonomy = parse_taxonomy(turtle)
    assert taxonomy.titles == ("Fruit", "Apfel")
    xml = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:skos="http://www.w3.org/2004/02/skos/core#"><skos:Concept rdf:about="x:a"/><skos:Concept rdf:about="x:b">
    <skos:broader rdf:resource="x:a"/></skos:Concept></rdf:RDF>"""
    assert parse_taxonomy(xml).names == ("x:a", "x:b")


BAD = {
    "empty": ("", "the file is empty"),
    "cycle": ("a\tb\nb\ta\nc\tROOT\n", "has a cycle"),
    "duplicate row": ("a\tROOT\nb\ta\nb\ta\n", "listed twice below 'a'"),
    "duplicate root": ("a\tROOT\na\tROOT\n", "listed twice as a root"),
    "duplicate path": ("a > b\na > b\n", "listed twice"),
    "duplicate indented": ("a\n  b\n  b\n", "a second time"),
    "unnamed parent": ("a\tROOT\nb\tmissing\n", "'missing', the parent of 'b', has no row of its own"),
    "empty part": ("a/b\na//c\n", "empty part"),
    "dedent": ("a\n    b\n  c\n", "is indented by 2"),
    "broken json": ('{"a": ', "not valid JSON"),
    "json numbers": ('{"nodes": [{"name": 3}]}', "needs a 'name'"),
    "json parents": ('{"nodes": [{"name": "a", "parents": "b"}]}', "'parents' as a list"),
    "deep json": ("[" * 100_000, "nested too deeply|not valid JSON"),
    "skos without concepts": ("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n", "no concept"),
    "broken skos": ("@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n<<<", "cannot be parsed"),
    "lshtc with words": ("1 2\n" * 60 + "x y\n", "line 61"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_file_is_refused_with_its_name_and_the_reason(tmp_path, name):
    text, message = BAD[name]
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(TaxonomyError, match=message) as caught:
        read_taxonomy(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_ragged_table_names_the_line(tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text("a\tROOT\n" * 1 + "".join(f"n{i}\ta\n" for i in range(60)) + "lonely\n")
    with pytest.raises(TaxonomyError, match="line 62 has 1 cells"):
        read_taxonomy(path)


def test_bytes_that_are_not_utf8_name_the_line(tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_bytes(b"a\tROOT\nb\xff\ta\n")
    with pytest.raises(TaxonomyError, match="line 2 is not UTF-8"):
        read_taxonomy(path)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(TaxonomyError, match="cannot be read: No such file"):
        read_taxonomy(tmp_path / "none.tsv")


@given(st.text(max_size=60))
@example(",\x0c")
@example("\x1c,")
def test_any_text_gives_a_taxonomy_or_one_clear_sentence(text):
    try:
        found = parse_taxonomy(text)
    except TaxonomyError as error:
        found = error
    assert "\n" not in str(found) if isinstance(found, TaxonomyError) else len(found) > 0


@pytest.mark.parametrize("suffix", [".tsv", ".txt", ".json", ".ttl"])
def test_writing_goes_by_the_ending(tmp_path, food, suffix):
    path = tmp_path / f"out{suffix}"
    write_taxonomy(food, path)
    assert len(read_taxonomy(path)) == len(food)


def test_unknown_formats_are_refused(tmp_path, food):
    with pytest.raises(InputError, match=r"taxonomy format 'path' is unknown.*Did you mean 'paths'"):
        parse_taxonomy("a", "path")
    with pytest.raises(InputError, match="cannot tell the format"):
        write_taxonomy(food, tmp_path / "out.xyz")


@pytest.mark.parametrize("name", ["paths", "indented"])
def test_a_dag_does_not_fit_paths(diamond, name):
    with pytest.raises(TaxonomyError, match="needs a tree"):
        FORMATS[name].render(diamond)


def test_a_table_of_documents_is_not_taken_for_a_taxonomy(tmp_path):
    (tmp_path / "docs.csv").write_text("text,label\nhello there,a\nbye now,b\n")
    (tmp_path / "edges.csv").write_text("child,parent\na,\nb,a\n")
    (tmp_path / "edges.tsv").write_text("a\tROOT\nb\ta\n")
    assert not is_taxonomy_file(tmp_path / "docs.csv")
    assert is_taxonomy_file(tmp_path / "edges.csv")
    assert is_taxonomy_file(tmp_path / "edges.tsv")


def test_a_separator_counts_only_when_half_of_the_labels_have_it():
    assert find_separator(["a/b", "a/c", "a"]) == "/"
    assert find_separator(["TCP/IP", "fonts", "mice"]) is None
    assert find_separator([]) is None


def test_names_that_look_like_uris_or_hold_marks_survive_skos():
    names = ["x:a", "plain name", "a:b<c>", "urn:ramify:x", "ROOT", "ünï"]
    taxonomy = Taxonomy.flat(names)
    assert sorted(FORMATS["skos"].parse(FORMATS["skos"].render(taxonomy)).names) == sorted(names)


def test_a_node_called_root_survives_a_table():
    taxonomy = Taxonomy.from_edges([("ROOT", None), ("a", "ROOT"), ("b", None)])
    assert FORMATS["edges"].parse(FORMATS["edges"].render(taxonomy)) == taxonomy


def test_titles_may_hold_any_separator_in_nested_and_indented_files():
    tree = parse_taxonomy(json.dumps({"a > b": {"c/d": ["e"]}}))
    assert [tree.path_of(node) for node in range(3)] == [("a > b",), ("a > b", "c/d"), ("a > b", "c/d", "e")]
    assert parse_taxonomy("a > b\n  c/d\n", "indented").path_of(1) == ("a > b", "c/d")


def test_names_that_paths_could_not_tell_apart_are_not_written_as_paths():
    with pytest.raises(TaxonomyError, match="write .tsv or .json"):
        FORMATS["paths"].render(Taxonomy.flat(["TCP/IP", "a/b"]))


def test_a_json_node_listed_twice_is_refused():
    nodes = [{"name": "a"}, {"name": "b"}, {"name": "c", "parents": ["a"]}, {"name": "c", "parents": ["b"]}]
    with pytest.raises(TaxonomyError, match="node 'c' is listed twice"):
        parse_taxonomy(json.dumps({"nodes": nodes}))


def test_a_comma_in_a_path_list_makes_no_table():
    assert parse_taxonomy("TV, audio\nPhones, tablets\n").names == ("TV, audio", "Phones, tablets")


@pytest.mark.parametrize("text", ['{"food": {"x": []}, "food": {"y": []}}', '{"name": "a", "children": ["b", "b"]}'])
def test_names_repeated_in_nested_json_are_refused(text):
    with pytest.raises(TaxonomyError, match="listed twice"):
        parse_taxonomy(text)


@pytest.mark.parametrize("title", ["two\nlines", "line\u2028break", "tab\tbed", " space"])
@pytest.mark.parametrize("name", ["paths", "indented"])
def test_titles_that_fit_on_no_line_are_not_written_as_lines(name, title):
    taxonomy = Taxonomy.from_edges([("a", None), ("b", "a")], titles={"b": title})
    with pytest.raises(TaxonomyError, match="does not fit on a line"):
        FORMATS[name].render(taxonomy)
    assert FORMATS["json"].parse(FORMATS["json"].render(taxonomy)) == taxonomy


def test_siblings_with_one_title_are_not_written_as_paths():
    taxonomy = Taxonomy.from_edges([("a", None), ("b", "a"), ("c", "a")], titles={"b": "x", "c": "x"})
    with pytest.raises(TaxonomyError, match="two nodes have the path 'a > x'"):
        FORMATS["indented"].render(taxonomy)


@pytest.mark.parametrize("name", ["edges", "paths", "indented"])
def test_names_that_begin_like_json_are_not_read_as_json(name):
    taxonomy = Taxonomy.from_paths(["[a] > b", "{c} > d"], " > ")
    again = parse_taxonomy(FORMATS[name].render(taxonomy))
    assert sorted(again.path_of(n) for n in range(4)) == sorted(taxonomy.path_of(n) for n in range(4))


def test_a_turned_table_with_a_short_row_names_the_line():
    with pytest.raises(TaxonomyError, match="line 3 has 2 cells"):
        parse_taxonomy("parent,title,child\n,Fruit,fruit\nfruit,Apple\n", "edges")


def test_half_a_character_is_no_name():
    with pytest.raises(TaxonomyError, match="lone surrogate"):
        parse_taxonomy('{"nodes": [{"name": "a\\ud800"}]}')


RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="x:a"><skos:prefLabel>{}</skos:prefLabel></skos:Concept></rdf:RDF>"""
LAUGHS = '<!DOCTYPE rdf [<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY x SYSTEM "http://localhost/x">]>\n'


@pytest.mark.parametrize("head", ["", '<?xml version="1.0"?>\n', '<?xml version="1.0" encoding="utf-16"?>\n', "<!-- a -->"])
@pytest.mark.parametrize("label", ["&b;", "&x;", "plain"])
def test_entities_of_xml_are_refused(head, label):
    with pytest.raises(TaxonomyError, match="declares a document type or entities"):
        parse_taxonomy(head + LAUGHS + RDF.format(label), "skos")
    assert parse_taxonomy(head + RDF.format("a &lt; b")).titles == ("a < b",)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "cp500"])
@pytest.mark.parametrize("format", [None, "skos"])
def test_entities_of_xml_are_refused_in_any_encoding(tmp_path, encoding, format):
    path = tmp_path / "t.rdf"
    path.write_bytes((f'<?xml version="1.0" encoding="{encoding}"?>' + LAUGHS + RDF.format("&b;")).encode(encoding))
    try:
        titles = read_taxonomy(path, format).titles
    except TaxonomyError:
        titles = ()
    assert not any("hahaha" in title for title in titles)


FETCHED = {
    "base": '@base <http://localhost/b/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> . <a> a skos:Concept .',
    "imports": RDF.format("a").replace("<skos:C", '<owl:Ontology xmlns:owl="http://www.w3.org/2002/07/owl#" rdf:about="x:o">'
                                       '<owl:imports rdf:resource="http://localhost/o"/></owl:Ontology><skos:C', 1),
    "schema": RDF.format("a").replace("<rdf:RDF", '<?xml-stylesheet href="http://localhost/s"?><rdf:RDF xml:base="http://localhost/" '
                                      'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://localhost/ s"', 1),
    "document type": '<!DOCTYPE rdf SYSTEM "http://localhost/d">' + RDF.format("a"),
    "parameter": '<!DOCTYPE rdf [<!ENTITY % p SYSTEM "http://localhost/p"> %p;]>' + RDF.format("a"),
    "context": '{"@context": "http://localhost/c", "@id": "x:a", "@type": "http://www.w3.org/2004/02/skos/core#Concept"}',
    "url": "http://localhost/t.ttl",
}  # fmt: skip


@pytest.mark.parametrize("format", [None, "skos", "json"])
@pytest.mark.parametrize("name", FETCHED)
def test_nothing_that_a_file_names_is_ever_fetched(monkeypatch, name, format):
    opened = []
    monkeypatch.setattr(socket, "socket", lambda *_, **__: opened.append("socket"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: opened.append("name"))
    with suppress(TaxonomyError):
        parse_taxonomy(FETCHED[name], format)
    assert not opened


@given(parents=trees(), data=st.data())
def test_indented_and_nested_nodes_are_named_by_their_paths(parents, data):
    names = [data.draw(st.sampled_from("abc")) + str(node) for node in range(len(parents))]
    paths, lines, children = [], [], [[] for _ in parents]
    for node, above in enumerate(parents):
        paths.append(((*paths[above[0]], names[node])) if above else (names[node],))
        if above:
            children[above[0]].append(node)
    expected = Taxonomy.from_title_paths(paths)

    def nested(node):
        lines.append(" " * len(paths[node]) + names[node])
        return {"name": names[node], "children": [nested(child) for child in children[node]]}

    tree = [nested(node) for node, above in enumerate(parents) if not above]
    for found in (FORMATS["json"].parse(json.dumps(tree)), FORMATS["indented"].parse("\n".join(lines))):
        assert sorted(found.names) == sorted(expected.names) == sorted(" > ".join(path) for path in paths)
        assert {found.names[n]: found.path_of(n) for n in range(len(found))} == {
            expected.names[n]: expected.path_of(n) for n in range(len(expected))
        }


# ---- files of others ----------------------------------------------------------------------------------------------------

SKOS = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
SKOS_XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">'
    '<skos:Concept rdf:about="apple"><skos:broader rdf:resource="#food"/></skos:Concept></rdf:RDF>'
)


@pytest.mark.parametrize("text", [f"{SKOS}<apple> a skos:Concept ; skos:broader <#food> .", SKOS_XML])
def test_relative_uris_do_not_say_where_a_skos_file_was_read(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert parse_taxonomy(text, "skos").names == ("#food", "apple")


@pytest.mark.parametrize(
    ("concepts", "found"),
    [
        ('[] a skos:Concept ; skos:prefLabel "x" .', "a concept without a URI"),
        ("<a> skos:broader [] .", "a concept without a URI"),
        ("_:a skos:broader _:b . _:b skos:broader _:a .", "a concept without a URI"),
        ('<a> skos:broader "2020-01-01T00:00:00Z"^^xsd:dateTime, "2020-01-01"^^xsd:date, "Food" .', "instead of a concept"),
    ],
)
def test_concepts_that_have_no_lasting_name_are_refused(concepts, found):
    with pytest.raises(TaxonomyError, match=f"the SKOS file has .*{found}; give each concept"):
        parse_taxonomy(SKOS + concepts, "skos")


@pytest.mark.parametrize(
    "concepts",
    [
        '<a> a skos:Concept ; skos:prefLabel "many"^^xsd:integer .',
        f'<a> a skos:Concept ; skos:prefLabel "{"9" * 6000}"^^xsd:integer .',
        "<a b\\u001b[31m> a skos:Concept .",
    ],
)
def test_what_is_odd_in_a_skos_file_prints_nothing(concepts, capfd, caplog):
    parse_taxonomy(SKOS + concepts, "skos")
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_json_of_empty_lists_which_takes_far_more_memory_than_its_text_is_refused(monkeypatch):
    monkeypatch.setattr("ramify.taxonomy.formats.json_nodes.MOST_BRACKETS", 5)
    for text in ('["a",[],[],[],[],[],[]]', "[[[[[[[[[]]]]]]]]]", '{"a":[{},{},{},{},{},{},{}]}'):
        with pytest.raises(TaxonomyError, match="is mostly brackets"):
            parse_taxonomy(text, "json")
    assert len(parse_taxonomy('{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{}}')) == 6


def test_all_nodes_of_a_repeated_title_are_found():
    taxonomy = Taxonomy.from_paths(["a/x", "b/x", "c/x", "c/y"])
    with pytest.raises(ValueError, match="x"):
        taxonomy.index("x")
    assert taxonomy.index("y") == taxonomy.index("c/y")
