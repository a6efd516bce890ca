"""Damaged Parquet files, and files that unpack to more than fits in memory: one sentence, and nothing else printed."""

from __future__ import annotations

import gzip
import io
import json
import random
import tracemalloc
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest.mock import patch

import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.data import headers, json_tables, limits, read_corpus
from ramify.data import parquet as parquet_files
from ramify.data.corpus import BadRow
from ramify.data.documents import stream_rows
from ramify.data.parquet import count_rows
from ramify.data.tables import TableFormat, stream_table
from ramify.errors import DataError


@pytest.fixture
def parquet(tmp_path):
    texts = [f"some text number {i} " * (i % 5 + 1) for i in range(300)]
    table = polars.DataFrame({"text": texts, "label": [["a/b", "a/c", "d"][i % 3] for i in range(300)]})
    table.write_parquet(tmp_path / "t.parquet", row_group_size=100)
    return tmp_path / "t.parquet"


def test_a_panic_of_polars_is_an_error_of_the_file_and_prints_nothing(parquet, monkeypatch, capfd):
    def panic(*_, **__):
        parquet_files.os.write(2, b"thread '<unnamed>' panicked at somewhere:\n")
        raise polars.exceptions.PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr(polars.LazyFrame, "collect", panic)
    for read in (read_corpus, count_rows):
        with pytest.raises(DataError, match="t.parquet cannot be read as Parquet: it is damaged"):
            read(parquet)
    assert capfd.readouterr().err == ""


def test_what_others_print_while_parquet_is_read_is_not_lost(parquet, capfd):
    with parquet_files._parquet_errors(parquet):
        parquet_files.os.write(2, b"a warning\n")
    with pytest.raises(DataError), parquet_files._parquet_errors(parquet):
        parquet_files.os.write(2, b"another\n")
        raise polars.exceptions.ComputeError("no")
    assert capfd.readouterr().err == "a warning\nanother\n"


def test_random_damage_of_parquet_is_refused_or_harmless(parquet, capfd):
    rng, sound = random.Random(1), parquet.read_bytes()
    for number in range(40):
        content = bytearray(sound)
        place = rng.randrange(len(content))
        if number % 4 == 0:
            content = content[:place]
        elif number % 4 == 1:
            del content[place : place + 10]
        else:
            content[place] ^= 1 << rng.randrange(8)
        parquet.write_bytes(content)
        for read in (read_corpus, count_rows):
            try:
                read(parquet)
            except DataError as error:
                assert len(str(error)) < 500
    assert capfd.readouterr().err == ""


@contextmanager
def traced(most):
    """Refuse a block that takes more bytes of Python's memory."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most


def packed(path, *pieces):
    with gzip.open(path, "wb", 1) as file:
        for piece in pieces:
            file.write(piece)
    return path


LINE = [b"a" * 1_000_000] * 30
PACKED = {
    "line.csv.gz": [b"text,label\n", *LINE],
    "header.csv.gz": LINE,
    "quoted.csv.gz": [b'text,label\n"', *[b"a\n" * 500_000] * 30],
    "row.csv.gz": [b'text,label\n"x', *[b'ab\n","' * 200_000] * 30],
    "line.jsonl.gz": [b'{"text": "a", "label": "b"}\n{"text": "', *LINE],
    "list.json.gz": [b'[{"text": "', *LINE],
    "line.svm.gz": [b"a 1:1\nb ", *[b"1:1 " * 250_000] * 30],
}


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_line_is_refused_before_it_fills_the_memory(name, tmp_path, monkeypatch):
    for limit in ("MAX_CELL", "MAX_LINE"):
        monkeypatch.setattr(limits, limit, 1_000_000)
    path = packed(tmp_path / name, *PACKED[name])
    with traced(15_000_000), pytest.raises(DataError, match=r"more than 1,000,000|longer than 1,000,000"):
        read_corpus(path)


@pytest.mark.parametrize(
    ("name", "start"), [("list.json.gz", b'[{"text": "a", "z": ['), ("lines.jsonl.gz", b'{"text": "a"}\n{"text": "a", "z": [')]
)
@pytest.mark.parametrize("values", [b"[],", b"{},", b'"",', b"1,"])
def test_an_object_of_very_many_values_is_refused_before_it_fills_the_memory(name, start, values, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_VALUES", 100_000)
    monkeypatch.setattr(json_tables, "CHUNK", 50_000)
    path = packed(tmp_path / name, start, values * 2_000_000, b"1]}")
    with traced(35_000_000), pytest.raises(DataError, match=r"(object 1|line 2) has more than 100,000 values"):
        read_corpus(path)


def test_marks_inside_texts_are_no_values(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_VALUES", 100)
    row = {"text": '[{",\\' * 100, "label": "a", "more": [1] * 90}
    (tmp_path / "lines.jsonl").write_text(json.dumps(row))
    (tmp_path / "list.json").write_text(json.dumps([row, row]))
    assert [len(read_corpus(tmp_path / name)) for name in ("lines.jsonl", "list.json")] == [1, 2]
    (tmp_path / "lines.jsonl").write_text(json.dumps({**row, "more": [1] * 100}))
    with pytest.raises(DataError, match="line 1 has more than 100 values"):
        read_corpus(tmp_path / "lines.jsonl")


def test_a_row_of_very_many_cells_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_VALUES", 100)
    (tmp_path / "row.csv").write_text("text,label\na,b\n" + '"\n",' * 200 + "\n")
    with pytest.raises(DataError, match="line 3: a row has more than 100 cells"):
        read_corpus(tmp_path / "row.csv")
    (tmp_path / "head.csv").write_text(",".join(map(str, range(101))) + "\n")
    with pytest.raises(DataError, match="more than 100 columns"):
        read_corpus(tmp_path / "head.csv")


class Counted(str):
    """A text that counts how often any is compared."""

    n_times = 0

    def __eq__(self, other):
        Counted.n_times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__

    def strip(self):
        return self


def test_a_column_that_comes_twice_is_found_without_comparing_all_with_all(tmp_path):
    names = [Counted(k) for k in (*range(1_000), 999)]
    assert headers.named_columns(tmp_path, names)[-1] == "999 (2)"
    assert Counted.n_times < 10_000


REPEATED = {
    "rows.csv.gz": [b"text,label\n", b"ab,c\n" * 200_000],
    "bad.csv.gz": [b"text,label\n", b"a\n" * 200_000],
    "lines.jsonl.gz": [b'{"text": "ab", "label": ["c", "d"]}\n' * 50_000],
    "keys.jsonl.gz": [b'{"text": "ab", "label": "c"}\n', *(b'{"%d": 1}\n' % k for k in range(50_000))],
    "list.json.gz": [b'[{"text": "ab", "label": "c"}', b",1" * 200_000, b"]"],
    "rows.svm.gz": [b"a 1:1\n" * 50_000],
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "USUAL_SIZE", 1_000_000)
    monkeypatch.setattr(limits, "MAX_RATIO", 0)
    path = packed(tmp_path / name, *REPEATED[name])
    with traced(10_000_000), pytest.raises(DataError, match="unpacks to more than 1,000,000 bytes"):
        read_corpus(path)


@pytest.mark.parametrize("name", REPEATED)
def test_a_file_that_is_not_packed_never_is_out_of_proportion(name, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "USUAL_SIZE", 0)
    path = tmp_path / name.removesuffix(".gz")
    path.write_bytes(b"".join(REPEATED[name]))
    with (
        pytest.raises(DataError, match="rows are bad")
        if name in ("bad.csv.gz", "keys.jsonl.gz", "list.json.gz")
        else nullcontext()
    ):
        assert len(read_corpus(path)) >= 50_000


def test_long_rows_are_not_all_held_to_find_the_columns(tmp_path):
    path = packed(tmp_path / "rows.csv.gz", b"text,label\n", *[b"%s,b\n" % (b"ab " * 1_000_000)] * 60)
    with traced(150_000_000):
        assert sum(1 for _ in stream_rows(path)[2]) == 60


# ---- JSON lists -----------------------------------------------------------------------------------------------------------


def elements(text, chunk):
    with patch.object(json_tables, "CHUNK", chunk):
        return [row for row, _ in json_tables._list_elements(Path("list.json"), io.StringIO(text))]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.lists(json_values), st.sampled_from([None, 1, "\t"]), st.booleans(), st.integers(1, 40))
def test_a_list_read_in_chunks_is_the_list(rows, indent, is_ascii, chunk):
    text = json.dumps(rows, indent=indent, ensure_ascii=is_ascii)
    assert elements(f"{text} \r\n", chunk) == rows


@given(st.lists(json_values, max_size=4), st.data(), st.integers(1, 40))
def test_a_list_read_in_chunks_is_refused_when_it_is_no_json(rows, data, chunk):
    text = json.dumps(rows)
    at = data.draw(st.integers(1, len(text)))
    text = (
        text[:at]
        + data.draw(st.sampled_from(["", ",", "]", "}", '"', "1", "x", " ", "\\", "NaN", "-"]))
        + text[at + data.draw(st.integers(0, 2)) :]
    )
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            elements(text, chunk)
    else:
        assert repr(elements(text, chunk)) == repr(expected)


def test_a_large_list_is_read_piece_by_piece(tmp_path):
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"text": f"text {k} " * 20, "label": "a"} for k in range(50_000)]))
    with traced(5_000_000):
        assert sum(1 for _ in stream_table(path, TableFormat("jsonl", "utf-8"))[1]) == 50_000


@pytest.mark.parametrize("encoding", ["utf-7", "unicode_escape"])
@pytest.mark.parametrize("form", ['{"text": "%s"}\n', '[{"text": "%s"}]'])
def test_half_a_character_of_any_encoding_makes_a_bad_row(tmp_path, encoding, form):
    path = tmp_path / "half.json"
    path.write_text(form % {"utf-7": "+2AA-", "unicode_escape": "\\ud800"}[encoding])
    ((_, row),) = json_tables.json_objects(path, encoding)
    assert isinstance(row, BadRow)
