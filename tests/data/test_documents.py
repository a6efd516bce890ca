import gzip
import json

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.data import read_corpus, stream_rows
from ramify.errors import DataError

ROWS = [("the parcel is late", "Orders > Late"), ("no picture", "TV > Picture"), ("both, broken", "TV > Picture")]


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def as_csv(delimiter):
    return "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in [("text", "label"), *ROWS]) + "\n"


def as_jsonl():
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in ROWS)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_any_delimiter_is_found(tmp_path, delimiter):
    corpus = read_corpus(write(tmp_path, "docs.csv", as_csv(delimiter)))
    assert corpus.documents == [text for text, _ in ROWS]
    assert corpus.labels == [[label] for _, label in ROWS]
    assert corpus.lines == [2, 3, 4]


def test_all_table_formats_read_the_same(tmp_path):
    parquet = tmp_path / "docs.parquet"
    polars.DataFrame({"text": [t for t, _ in ROWS], "label": [lab for _, lab in ROWS]}).write_parquet(parquet)
    zipped = tmp_path / "docs.jsonl.gz"
    zipped.write_bytes(gzip.compress(as_jsonl().encode()))
    files = [write(tmp_path, "docs.csv", as_csv(",")), write(tmp_path, "docs.jsonl", as_jsonl()), parquet, zipped]
    files += [write(tmp_path, "plain", as_jsonl()), write(tmp_path, "table", as_csv(","))]
    for file in files:
        corpus = read_corpus(file)
        assert (corpus.documents, corpus.labels) == ([t for t, _ in ROWS], [[lab] for _, lab in ROWS]), file


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=1, max_size=5))
def test_any_text_survives_csv(tmp_path_factory, rows):
    import csv

    rows = [(text.replace("\x00", "?"), label.replace("\x00", "?")) for text, label in rows]
    path = tmp_path_factory.mktemp("csv") / "docs.csv"
    try:
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    except UnicodeEncodeError:
        return
    expected = [text for text, _ in rows if text.strip()]
    if 10 * (len(rows) - len(expected)) > len(rows):
        with pytest.raises(DataError, match="the text is empty"):
            read_corpus(path, text="text", label="label", label_separator="no such mark")
    else:
        assert read_corpus(path, text="text", label="label", label_separator="no such mark").documents == expected


def test_level_columns_make_paths(tmp_path):
    path = write(tmp_path, "docs.csv", "text,level1,level2\nhello there,a,b\nbye now,a,\nmore text,c,d\n")
    assert read_corpus(path).labels == [["a > b"], ["a"], ["c > d"]]
    assert read_corpus(path, label="level1,level2").found["label"] == ["level1", "level2"]


def test_several_labels_are_split_only_where_the_pieces_are_labels(tmp_path):
    path = write(tmp_path, "docs.csv", "text,label\none,a | b\ntwo,a\nthree,b\nfour,\n")
    assert read_corpus(path).labels == [["a", "b"], ["a"], ["b"], []]
    names = write(tmp_path, "names.csv", 'text,label\none,"TV, audio"\ntwo,phones\nthree,"TV, audio"\n')
    assert read_corpus(names).labels == [["TV, audio"], ["phones"], ["TV, audio"]]
    known = write(tmp_path, "known.csv", "text,label\none,a;b\n")
    assert read_corpus(known, is_label={"a", "b"}.__contains__).labels == [["a", "b"]]


def test_json_lists_are_labels_and_repetitions_do_not_count(tmp_path):
    path = write(tmp_path, "docs.jsonl", '{"text": "x", "labels": ["a", "b"]}\n{"text": "y", "labels": []}\n')
    assert read_corpus(path).labels == [["a", "b"], []]
    twice = write(tmp_path, "twice.csv", "text,label\none,a|a\ntwo,a\n")
    assert read_corpus(twice).labels == [["a"], ["a"]]


def test_numbers_can_be_labels(tmp_path):
    assert read_corpus(write(tmp_path, "d.jsonl", '{"text": "x", "label": 5}\n')).labels == [["5"]]


@pytest.mark.parametrize(
    ("header", "text", "label"),
    [
        ("id,body,category", "body", "category"),
        ("Category,Message", "Message", "Category"),
        ("id,long,kind", "long", "kind"),
    ],
)
def test_columns_are_found_by_name_or_by_content(tmp_path, header, text, label):
    columns = header.split(",")
    rows = [{"id": str(i), text: f"a long text number {i}", label: f"kind {i % 2}"} for i in range(10)]
    body = "\n".join(",".join(row[column] for column in columns) for row in rows)
    found = read_corpus(write(tmp_path, "docs.csv", f"{header}\n{body}\n")).found
    assert (found["text"], found["label"]) == (text, [label])


GOOD = "".join(f"text {i},a\n" for i in range(30))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b",a\n", "the text is empty"),
        (b"   ,a\n", "the text is empty"),
        (b"\xc3\xa9t\xc3\xa9 caf\xe9,a\n", "not UTF-8"),
        (b"one,two,three\n", "3 cells, but 2 columns"),
        (b"lonely\n", "1 cells"),
        (b'"a"b,c\n', "expected"),
    ],
)
def test_a_bad_row_is_left_out_and_named_by_line_and_strict_refuses_it(tmp_path, row, reason):
    path = write(tmp_path, "docs.csv", b"text,label\n" + row + GOOD.encode())
    corpus = read_corpus(path)
    assert len(corpus) == 30
    assert [bad.line for bad in corpus.bad_rows] == [2]
    assert reason in corpus.bad_rows[0].reason
    with pytest.raises(DataError, match="1 of 31 rows are bad, and --strict allows none.*line 2"):
        read_corpus(path, strict=True)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b'{"text": null, "label": "a"}', "the text is null"),
        (b'{"text": 3, "label": "a"}', "the text is 3, not a string"),
        (b'{"label": "a"}', "the text is null"),
        (b'{"text": "x", "label": [3]}', "something other than strings"),
        (b'{"text": "x", "label": {"a": 1}}', "not a string or a list"),
        (b"{broken", "not valid JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b'{"text": "\xc3\xa9t\xc3\xa9 caf\xe9"}', "not UTF-8"),
    ],
)
def test_bad_json_rows_are_named(tmp_path, row, reason):
    good = b"".join(b'{"text": "fine %d", "label": "a"}\n' % i for i in range(20))
    corpus = read_corpus(write(tmp_path, "docs.jsonl", good + row + b"\n"))
    assert [(bad.line, reason in bad.reason) for bad in corpus.bad_rows] == [(21, True)]


def test_a_file_with_many_bad_rows_is_refused_even_without_strict(tmp_path):
    path = write(tmp_path, "docs.csv", "text,label\n,a\n,b\nfine,c\n")
    expected = "2 of 3 rows are bad, and more than one in ten is too many.* Texts are taken from 'text'; --text names other"
    with pytest.raises(DataError, match=expected):
        read_corpus(path)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "is empty; give a table"),
        ("\n\n", {}, "is empty"),
        ("text,label\n", {}, "has column names but no rows"),
        ("text,label\nx,a\n", {"text": "body"}, "has no column 'body'; its columns are 'text', 'label'"),
        ("text,label\nx,a\n", {"label": "lable"}, "Did you mean 'label'"),
        ("text,label\nx,a\n", {"label": "level1,level2"}, "has no column 'level1'"),
        ("text,text\nx,a\n", {}, "two columns named 'text'"),
        ("text,other\nhello you,1\nbye you,2\n", {}, "no column looks like labels; name it with --label"),
        ('text,label\nx,a\n"never closed,b\nmore,c\n', {}, "line 3: a quoted cell is never closed"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_sentence(tmp_path, content, options, message):
    with pytest.raises(DataError, match=message) as caught:
        read_corpus(write(tmp_path, "docs.csv", content), **options)
    assert "\n" not in str(caught.value)


def test_broken_archives_are_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be read: Compressed file ended"):
        read_corpus(write(tmp_path, "docs.csv.gz", gzip.compress(as_csv(",").encode() * 50)[:80]))
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_corpus(write(tmp_path, "docs.parquet", b"PAR1 nonsense"))
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_corpus(tmp_path / "missing.csv")
    with pytest.raises(DataError, match="holds no JSON object"):
        read_corpus(write(tmp_path, "docs.jsonl", ""))


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    assert read_corpus(write(tmp_path, "docs.csv", b"\xef\xbb\xbftext,label\nx,a\ny,b\n")).documents == ["x", "y"]


def test_rows_stream_with_their_lines_and_texts_may_span_lines(tmp_path):
    path = write(tmp_path, "docs.csv", 'id,text\n1,"two\nlines"\n2,one\n3,\n')
    columns, text, rows = stream_rows(path)
    assert (columns, text.text) == (["id", "text"], "text")
    assert [(line, row["id"]) for line, row in rows] == [(2, "1"), (4, "2"), (5, "3")]


@given(st.binary(max_size=200))
def test_any_bytes_give_a_corpus_or_one_clear_sentence(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "docs"
    path.write_bytes(content)
    try:
        read_corpus(path)
    except DataError as error:
        assert "\n" not in str(error)


def test_level_columns_make_a_tree_even_when_few_rows_go_deep(tmp_path):
    from ramify.taxonomy import taxonomy_of_labels

    path = write(tmp_path, "d.csv", "text,level1,level2\none,A,\ntwo,B,\nthree,C,\nfour,A,x\n")
    assert taxonomy_of_labels(read_corpus(path).labels).names == ("A", "A > x", "B", "C")


def test_lines_are_counted_from_the_top_of_the_file(tmp_path):
    assert read_corpus(write(tmp_path, "d.csv", "\n\ntext,label\nx y,a\nz w,b\n")).lines == [4, 5]


@pytest.mark.parametrize("encoding", ["UTF-8", "utf8", "utf_8"])
def test_encodings_go_by_any_of_their_names(tmp_path, encoding):
    path = write(tmp_path, "d.csv", b"\xef\xbb\xbftext,label\nx,a\ny,b\n")
    assert read_corpus(path, encoding=encoding).documents == ["x", "y"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1252"])
def test_json_lines_come_in_any_encoding(tmp_path, encoding):
    path = write(tmp_path, "d.jsonl", '{"text": "café", "label": "a"}\n{"text": "thé", "label": "b"}\n'.encode(encoding))
    assert read_corpus(path, encoding=encoding).documents == ["café", "thé"]


@pytest.mark.parametrize("encoding", ["klingon", "hex", "base64", "rot13"])
def test_what_is_no_text_encoding_is_refused(tmp_path, encoding):
    from ramify.errors import InputError

    with pytest.raises(InputError, match="is unknown; give one such as"):
        read_corpus(write(tmp_path, "d.csv", "text,label\nx,a\n"), encoding=encoding)


@pytest.mark.parametrize("row", ['{"text": "x", "m": {"a": "\\ud800"}}', '{"text": "x", "\\ud800": 1}', '{"text": "\\ud800"}'])
def test_half_a_character_anywhere_makes_a_bad_row(tmp_path, row):
    good = '{"text": "fine", "label": "a"}\n' * 20
    corpus = read_corpus(write(tmp_path, "d.jsonl", good + row + "\n"))
    assert [bad.line for bad in corpus.bad_rows] == [21]
    assert all("\ud800" not in str(value) for bad in corpus.bad_rows for value in bad.cells.values())


def test_a_label_column_may_hold_its_own_name(tmp_path):
    path = write(tmp_path, "d.csv", "text,type\none,type\ntwo,other\n")
    assert read_corpus(path).labels == [["type"], ["other"]]
