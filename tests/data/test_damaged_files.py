"""Damaged Parquet files, and files that unpack to more than fits in memory: one sentence, and nothing else printed."""

from __future__ import annotations

import gzip
import random
import tracemalloc

import polars
import pytest

from ramify.data import read_corpus, tables
from ramify.data.tables import count_rows
from ramify.errors import DataError


@pytest.fixture
def parquet(tmp_path):
    texts = [f"some text number {i} " * (i % 5 + 1) for i in range(300)]
    table = polars.DataFrame({"text": texts, "label": [["a/b", "a/c", "d"][i % 3] for i in range(300)]})
    table.write_parquet(tmp_path / "t.parquet", row_group_size=100)
    return tmp_path / "t.parquet"


def test_a_panic_of_polars_is_an_error_of_the_file_and_prints_nothing(parquet, monkeypatch, capfd):
    def panic(*_, **__):
        tables.os.write(2, b"thread '<unnamed>' panicked at somewhere:\n")
        raise polars.exceptions.PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr(polars.LazyFrame, "collect", panic)
    for read in (read_corpus, count_rows):
        with pytest.raises(DataError, match="t.parquet cannot be read as Parquet: it is damaged"):
            read(parquet)
    assert capfd.readouterr().err == ""


def test_what_others_print_while_parquet_is_read_is_not_lost(parquet, capfd):
    with tables._parquet_errors(parquet):
        tables.os.write(2, b"a warning\n")
    with pytest.raises(DataError), tables._parquet_errors(parquet):
        tables.os.write(2, b"another\n")
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
    "line.jsonl.gz": [b'{"text": "a", "label": "b"}\n{"text": "', *LINE],
    "list.json.gz": [b'[{"text": "', *LINE],
    "line.svm.gz": [b"a 1:1\nb ", *[b"1:1 " * 250_000] * 30],
}


@pytest.mark.parametrize("name", PACKED)
def test_a_packed_line_is_refused_before_it_fills_the_memory(name, tmp_path, monkeypatch):
    for limit in ("MAX_CELL", "MAX_LINE", "MAX_LIST"):
        monkeypatch.setattr(tables, limit, 1_000_000)
    path = packed(tmp_path / name, *PACKED[name])
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"more than 1,000,000|longer than 1,000,000"):
            read_corpus(path)
        assert tracemalloc.get_traced_memory()[1] < 15_000_000
    finally:
        tracemalloc.stop()


def test_a_list_that_is_not_packed_may_be_larger(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MAX_LIST", 20)
    path = tmp_path / "list.json"
    path.write_text('[{"text": "a b", "label": "c"}, {"text": "d e", "label": "f"}]')
    assert len(read_corpus(path)) == 2
