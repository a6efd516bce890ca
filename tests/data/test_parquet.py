"""Parquet files: rows in batches that fit into memory, and small files that unpack to more than that."""

from __future__ import annotations

import tracemalloc
from datetime import date
from unittest.mock import patch

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.data import limits, parquet, parquet_pages, read_corpus
from ramify.data.parquet_pages import read_row_groups
from ramify.data.tables import TableFormat, stream_part, stream_table
from ramify.errors import DataError

TABLE = polars.DataFrame(
    {
        "text": ["a" * 300, None, "", "é" * 40, "b"] * 40,
        "labels": [["x" * 100, "y"], [], None, [None], ["z"] * 30] * 40,
        "nested": [[["a"], []], None, [None], [], [["b" * 200]]] * 40,
        "kind": polars.Series(["one", "two", None, "one", "one"] * 40, dtype=polars.Categorical),
        "pair": [{"a": "x" * 50, "b": [1, 2]}, {"a": None, "b": None}, None, {"a": "", "b": []}, {"a": "y", "b": [3]}] * 40,
        "raw": [b"ab" * 90, None, b"", b"c", b"d"] * 40,
        "vector": polars.Series(
            [[1.0, 2.0], [3.0, 4.0], None, [5.0, 6.0], [7.0, 8.0]] * 40, dtype=polars.Array(polars.Float32, 2)
        ),
        "day": [date(2026, 1, 1), None, None, None, None] * 40,
    }
)

PARQUET = TableFormat("parquet")


def rows(path):
    return [row for _, row in stream_table(path, PARQUET)[1]]


def traced_peak(path):
    """Bytes of Python's memory to read the rows one after the other."""
    tracemalloc.start()
    try:
        for _ in stream_table(path, PARQUET)[1]:
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("parquet") / "t.parquet"
    TABLE.write_parquet(path, row_group_size=70)
    return path


@given(st.integers(1, 20_000), st.integers(1, 250), st.booleans(), st.integers(0, 200), st.integers(0, 200))
def test_batches_of_any_size_hold_the_same_rows(table, size, most, is_damaged, start, stop):
    settings = {"BATCH_SIZE": size, "MOST_ROWS": most, "read_row_groups": (lambda _: None) if is_damaged else read_row_groups}
    with patch.multiple(parquet, **settings):
        found = list(stream_part(table, PARQUET, range(start, stop)))
    assert [row for _, row in found] == TABLE.to_dicts()[start:stop]
    assert [number for number, _ in found] == list(range(start + 1, max(start, stop) + 1))


def test_the_size_of_a_cell_is_that_of_its_texts():
    per_value = parquet.VALUE_SIZE
    expected = {
        "text": [300, 0, 0, 80, 1],
        "labels": [101 + 2 * per_value, 0, 0, per_value, 30 + 30 * per_value],
        "nested": [1 + 3 * per_value, 0, per_value, 0, 200 + 2 * per_value],
        "kind": [3, 3, 0, 3, 3],
        "pair": [50 + 4 * per_value, *[2 * per_value] * 3, 1 + 3 * per_value],
        "raw": [180, 0, 0, 1, 1],
        "vector": [2 * per_value, 2 * per_value, 0, 2 * per_value, 2 * per_value],
    }
    for name, sizes in expected.items():
        np.testing.assert_array_equal(parquet._cell_sizes(TABLE[name]), sizes * 40)
    assert parquet._cell_sizes(TABLE["day"]) is None


def test_equal_texts_that_polars_stores_once_are_not_all_made_at_once(tmp_path):
    path = tmp_path / "same.parquet"
    polars.DataFrame({"text": ["a" * 100_000] * 3_000, "label": ["b"] * 3_000}).write_parquet(path)
    assert path.stat().st_size < 5_000
    assert traced_peak(path) < 100_000_000


def test_a_small_file_whose_texts_fill_the_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "USUAL_SIZE", 1_000_000)
    path = tmp_path / "same.parquet"
    polars.DataFrame({"text": ["a b " * 2_000] * 500, "label": ["b"] * 500}).write_parquet(path)
    with pytest.raises(DataError, match=r"same.parquet unpacks to more than 1,000,000 bytes"):
        read_corpus(path)


def test_a_long_cell_is_refused_with_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_CELL", 1_000)
    path = tmp_path / "long.parquet"
    polars.DataFrame({"text": ["é" * 1_000] * 30, "label": ["b"] * 30}).write_parquet(path)
    assert len(read_corpus(path)) == 30
    polars.DataFrame({"text": ["a"] * 20_000 + ["é" * 1_001], "label": ["b"] * 20_001}).write_parquet(path)
    with pytest.raises(DataError, match=r"long.parquet, row 20001 has a cell of more than 1,000 characters"):
        read_corpus(path)


def test_a_row_of_very_many_values_is_refused(tmp_path):
    path = tmp_path / "list.parquet"
    polars.DataFrame({"text": ["a", "b"], "label": [["l"], ["l"] * 1_100_000]}).write_parquet(path)
    with pytest.raises(DataError, match=r"list.parquet, row 2 takes more than 100,000,000 bytes"):
        read_corpus(path)


PAGES = {
    "many pages": {"text": ["a" * 50_000 + str(k) for k in range(100)]},
    "one page": {"text": ["a" * 50_000 + str(k) for k in range(100)]},
    "values of lists": {"text": ["a"] * 100, "labels": [["l"] * 4_000] * 100},
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_that_unpack_to_far_more_than_their_size_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_pages, "MAX_UNPACKED", 1_000_000)
    path = tmp_path / "pages.parquet"
    polars.DataFrame(PAGES[name]).write_parquet(path, data_page_size=1 << 30 if name == "one page" else 100_000)
    with pytest.raises(DataError, match=r"bytes of 100 rows unpack to \d,\d\d\d,\d\d\d; write"):
        rows(path)


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize("statistics", [True, "full"])
def test_the_sizes_of_pages_are_those_of_what_they_hold(compression, statistics, tmp_path):
    texts = [f"text {k} " * (k % 50) for k in range(5_000)]
    frame = polars.DataFrame({"text": texts, "id": range(5_000), "is_new": [True, False] * 2_500})
    path = tmp_path / "t.parquet"
    frame.write_parquet(path, compression=compression, row_group_size=2_000, data_page_size=10_000, statistics=statistics)
    groups = read_row_groups(path)
    assert [group.n_rows for group in groups] == [2_000, 2_000, 1_000]
    n_bytes = sum(map(len, texts)) + 5_000 * (4 + 8)
    assert n_bytes < sum(group.size for group in groups) < 1.1 * n_bytes


def test_large_cells_make_small_batches(tmp_path):
    path = tmp_path / "large.parquet"
    polars.DataFrame({"text": [str(k) + "a" * 1_000 for k in range(1_000)]}).write_parquet(path)
    groups = read_row_groups(path)
    assert parquet._batch_length(groups, 0) == 10_000
    with patch.object(parquet, "BATCH_SIZE", 20_000):
        assert 15 <= parquet._batch_length(groups, 0) <= 20
    with patch.object(parquet, "BATCH_SIZE", 10):
        assert parquet._batch_length(groups, 0) == 1
    assert parquet._batch_length(groups, 5_000) == 10_000  # there are no rows


def test_the_page_reader_ends_whatever_the_bytes(table, tmp_path):
    rng, sound, path = np.random.default_rng(0), table.read_bytes(), tmp_path / "damaged.parquet"
    for _ in range(300):
        damaged = bytearray(sound)
        for place in rng.integers(len(damaged), size=rng.integers(1, 30)):
            damaged[place] = rng.choice([0, 0x80, 0xFF, rng.integers(256)])
        path.write_bytes(damaged)
        groups = read_row_groups(path)
        assert groups is None or all(group.size >= 0 for group in groups)
