"""Spreadsheets: read in a process of their own, which ends when nobody reads on."""

import subprocess
import sys

import pytest
from tables.make_files import book, rows_of

from ramify.data import read_corpus, spreadsheets, stream_rows
from ramify.data.spreadsheets import stream_spreadsheet
from ramify.errors import DataError, InputError


@pytest.fixture
def long_sheet(tmp_path):
    rows = [["text", "label"], *([f"a text of some length {k}", "ab"[k % 2]] for k in range(3_000))]
    (tmp_path / "long.xlsx").write_bytes(book(("Sheet1", rows)))
    return tmp_path / "long.xlsx"


@pytest.fixture
def processes(monkeypatch):
    """The processes that were started."""
    started, popen = [], subprocess.Popen

    def start(*arguments, **options):
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(spreadsheets.subprocess, "Popen", start)
    return started


def test_all_rows_come_with_their_numbers(long_sheet, processes):
    columns, rows = stream_spreadsheet(long_sheet)
    numbers = [number for number, _ in rows]
    assert (columns, numbers) == (["text", "label"], list(range(2, 3_002)))
    assert processes[0].returncode is not None


def test_the_process_ends_when_nobody_reads_on(long_sheet, processes):
    _, rows = stream_spreadsheet(long_sheet)
    next(rows)
    assert processes[0].poll() is None or len(processes) == 1
    del rows
    assert processes[0].returncode is not None


def test_without_the_reader_the_sentence_names_what_to_install(long_sheet, monkeypatch, tmp_path):
    (tmp_path / "python_calamine.py").write_text("raise ImportError\n")
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    popen = subprocess.Popen
    monkeypatch.setattr(
        spreadsheets.subprocess,
        "Popen",
        lambda command, **options: popen([sys.executable, "-c", script, *command[2:]], **options),
    )
    with pytest.raises(InputError, match=r"reading it needs python-calamine; install ramify\[excel\], or save it as CSV"):
        read_corpus(long_sheet)


def test_a_process_that_breaks_off_is_an_error_and_no_short_table(long_sheet, monkeypatch):
    monkeypatch.setattr(spreadsheets, "LIMITS", spreadsheets.SheetLimits(seconds=0))
    with pytest.raises(DataError, match="needs more memory or time than a spreadsheet of its size may take"):
        read_corpus(long_sheet)


def test_sheets_are_named_in_the_question_and_in_the_answer(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(book(("January", rows_of("text", "label")), ("Février", rows_of("text", "label")), ("Empty", [])))
    with pytest.raises(DataError, match="has 2 sheets with cells: 'January', 'Février'; name one of them with --sheet"):
        read_corpus(path)
    with pytest.raises(InputError, match="has no sheet 'Januar'; its sheets are 'January', 'Février', 'Empty'.*'January'"):
        read_corpus(path, sheet="Januar")
    assert len(read_corpus(path, sheet="Février")) == 6
    assert len(list(stream_rows(path, sheet="January")[2])) == 6
    with pytest.raises(DataError, match="is empty; give a sheet with a header row"):
        read_corpus(path, sheet="Empty")


def test_a_sheet_may_begin_anywhere_and_numbers_are_those_of_its_rows(tmp_path):
    rows = [[], [], [None, "text", "label"], *([None, *row] for row in rows_of("text", "label")[1:]), [None, "", "TV"]]
    (tmp_path / "t.xlsx").write_bytes(book(("Sheet1", rows)))
    columns, found = stream_spreadsheet(tmp_path / "t.xlsx")
    assert columns == ["text", "label"]
    assert [number for number, _ in found] == [4, 5, 6, 7, 8, 9, 10]


def test_a_cell_beside_the_table_is_told(tmp_path):
    rows = [*rows_of("text", "label"), *rows_of("text", "label")[1:], ["a text", "TV", "a remark"]]
    (tmp_path / "t.xlsx").write_bytes(book(("Sheet1", rows)))
    corpus = read_corpus(tmp_path / "t.xlsx")
    assert [str(bad) for bad in corpus.bad_rows] == [f"{tmp_path / 't.xlsx'}, line 14: a cell beside the 2 columns"]
