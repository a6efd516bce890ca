"""Blocks of CSV rows: the same rows as one by one, however the file is cut."""

import gzip
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.csv_rows import read_rows

from ramify.data import csv_blocks, limits, read_corpus
from ramify.data.corpus import BadRow
from ramify.data.csv_blocks import RowBlock, stream_blocks
from ramify.data.csv_tables import decoded_lines, read_csv
from ramify.errors import DataError
from ramify.native import read_csv_rows

BODIES = st.text(alphabet='ab,"\n\r é€\ufeff', max_size=60)
PLAIN = st.lists(st.tuples(st.text(alphabet='a,"\né'), st.sampled_from(["x", "y > z"])), max_size=8)


def without_empty(rows):
    """The rows that have something in them; blocks leave out the others."""
    return [(line, row) for line, row in rows if isinstance(row, BadRow) or any(row.values())]


def flat(path, encoding, wanted):
    """All rows, and the error that ends them, if one does."""
    found = []
    try:
        for item in stream_blocks(path, encoding, wanted):
            found += item.rows() if isinstance(item, RowBlock) else [item]
    except DataError as error:
        return without_empty(found), str(error)
    return without_empty(found), None


def one_by_one(path, encoding):
    found = []
    try:
        for item in read_csv(path, decoded_lines(path, encoding), encoding)[1]:
            found.append(item)
    except DataError as error:
        return without_empty(found), str(error)
    return without_empty(found), None


@given(BODIES, st.integers(1, 30), st.sampled_from(["utf-8", "utf-16", "cp1252", "utf-8-sig"]), st.booleans())
def test_blocks_hold_the_rows_that_are_read_one_by_one(tmp_path_factory, body, size, encoding, is_packed):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    content = ("text,label\n" + body).encode(encoding, "ignore")
    path.write_bytes(gzip.compress(content) if is_packed else content)
    name = encoding.removesuffix("-sig")
    with patch.object(csv_blocks, "BLOCK", size):
        assert flat(path, name, ["text", "label"]) == one_by_one(path, name)


@given(st.binary(max_size=40), st.integers(1, 20))
def test_bytes_that_are_no_text_make_the_same_bad_rows(tmp_path_factory, body, size):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(b"text,label\nplain,row\n" + body + b"\n\xc3\xa9,b\n")
    with patch.object(csv_blocks, "BLOCK", size):
        assert flat(path, "utf-8", ["text", "label"]) == one_by_one(path, "utf-8")


@given(BODIES, st.sampled_from([",", ";", "\t"]), st.integers(1, 3))
def test_the_kernel_reads_what_a_reader_of_single_characters_reads(body, delimiter, n_columns):
    wanted = np.arange(n_columns, dtype=np.int32)
    given = (body.encode(), 0, delimiter.encode(), n_columns, wanted, 1 << 20, True)
    columns, lines, size, n_lines, is_odd, has_blank = read_csv_rows(*given)
    rows, expected_size, expected_lines, expected_odd = read_rows(body, delimiter, n_columns)
    assert list(zip(lines.tolist(), map(list, zip(*columns, strict=True)), strict=True)) == rows
    assert (size, n_lines) == (len(body[:expected_size].encode()), expected_lines)
    assert is_odd == expected_odd
    assert has_blank or all(cell.strip() for _, cells in rows for cell in cells)


@given(PLAIN)
def test_only_wanted_columns_are_read(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    lines = [f'{k},"{text.replace(chr(34), 2 * chr(34))}",{label}' for k, (text, label) in enumerate(rows)]
    path.write_text("\n".join(["id,text,label", *lines]), newline="")
    found, _ = flat(path, "utf-8", ["label", "text"])
    assert [(row["label"], row["text"]) for _, row in found] == [(label, text) for text, label in rows]
    assert all("id" not in row for _, row in found)


def test_lines_are_counted_through_quoted_ones_and_empty_ones(tmp_path):
    path = Path(tmp_path / "t.csv")
    path.write_text('\nsep=;\ntext;label\n"one\ntwo";a\n\n"three\r\nfour";b\nodd;row;here\nlast;c\n' + "x;y\n" * 20, newline="")
    corpus = read_corpus(path)
    assert corpus.lines[:3] == [4, 7, 10]
    assert [row.line for row in corpus.bad_rows] == [9]


def test_a_quote_that_is_left_open_is_refused_with_its_line(tmp_path):
    (tmp_path / "t.csv").write_text('text,label\nx,a\n"y,b\nz,a\n')
    with pytest.raises(DataError, match="line 3: a quoted cell is never closed"):
        read_corpus(tmp_path / "t.csv")


def test_rows_that_never_end_are_refused_before_they_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_LINE", 10_000)
    monkeypatch.setattr(limits, "MAX_VALUES", 1_000)
    monkeypatch.setattr(csv_blocks, "MOST_HELD", 40_000)
    monkeypatch.setattr(csv_blocks, "BLOCK", 1_000)
    for content in ("text,label\n" + "x" * 100_000, 'text,label\n"' + "x\n" * 50_000):
        (tmp_path / "t.csv").write_text(content)
        with pytest.raises(DataError, match="longer than 10,000|more than 10,000"):
            read_corpus(tmp_path / "t.csv")
