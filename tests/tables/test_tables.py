"""Files as people have them: what is found in each, what is said of it, and how it is refused."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tomllib
from pathlib import Path

import pytest
from tables import make_files

from ramify.cli.main import main
from ramify.data import read_corpus, spreadsheets
from ramify.errors import DataError, RamifyError
from ramify.taxonomy import taxonomy_of_labels

HERE = Path(__file__).parent
EXPECTED = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
READ = [name for name, expected in EXPECTED.items() if "refused" not in expected]
REFUSED = [name for name, expected in EXPECTED.items() if "refused" in expected]
BROKEN = {
    "cut.xlsx": "cannot be read as a spreadsheet",
    "zip_of_text.xlsx": "cannot be read as a spreadsheet",
    "zip_of_text.zip": "cannot be read as a spreadsheet",
    "encrypted.xlsx": "is protected by a password; save it without one",
    "broken_xml.xlsx": "cannot be read as a spreadsheet",
    "cut.csv.gz": "cannot be read: Compressed file ended",
    "wrong_sum.csv.gz": "cannot be read: CRC check failed",
    "cut.parquet": "cannot be read as Parquet",
    "broken.parquet": "cannot be read as Parquet",
    "text_named.parquet": "cannot be read as Parquet",
    "cut_list.json": "is not a valid JSON list",
    "cut_object.json": "is not valid JSON",
    "cut_lines.jsonl": "line 2: not valid JSON",
    "binary.csv": "is a binary file",
    "picture.csv": "is a binary file",
    "program": "is a binary file",
    "document.pdf": "is a PDF document, not a table",
    "web_page.html": "is a web page, not a table",
    "cut_utf16.csv": "is not valid UTF-16",
    "open_quote.csv": "line 3: a quoted cell is never closed",
    "only_zeros.csv": "is a binary file",
}
FILES = {**make_files.excel_exports(), **make_files.spreadsheets(), **make_files.others(), **make_files.broken()}


@pytest.fixture
def place(tmp_path):
    """Gives the path of a file by its name."""

    def placed(name: str) -> Path:
        if name in FILES:
            (tmp_path / name).write_bytes(FILES[name])
            return tmp_path / name
        return (
            Path(shutil.copytree(HERE / "files" / name, tmp_path / name))
            if (HERE / "files" / name).is_dir()
            else Path(shutil.copy(HERE / "files" / name, tmp_path))
        )

    return placed


def refused(capsys, *arguments):
    """The sentence of a command that must fail."""
    code, told = main([str(argument) for argument in arguments]), capsys.readouterr()
    assert code == 2, told
    last = told.err.splitlines()[-1]
    assert last.startswith("ramify: ")
    assert "Traceback" not in told.err
    return last


def test_every_file_has_an_entry_and_every_entry_a_file():
    made = {*make_files.excel_exports(), *make_files.spreadsheets(), *make_files.others()}
    assert set(EXPECTED) == made | {path.name for path in (HERE / "files").iterdir()}
    assert set(BROKEN) | {"text_named.xlsx"} == set(make_files.broken())
    assert len(EXPECTED) >= 45


@pytest.mark.parametrize("name", READ)
def test_a_file_gives_its_documents_and_labels(name, place):
    expected, corpus = EXPECTED[name], read_corpus(place(name))
    assert len(corpus) == expected["documents"]
    assert len(corpus.bad_rows) == expected.get("bad", 0)
    assert sum(not labels for labels in corpus.labels) == expected.get("unlabelled", 0)
    labels = {label for some in corpus.labels for label in some}
    assert labels >= set(expected.get("labels", ()))
    assert corpus.found["text"] == expected.get("text", corpus.found["text"])
    assert corpus.found["label"] == expected.get("labels_in", corpus.found["label"])
    assert corpus.found["label_separator"] == expected.get("separator")
    taxonomy = taxonomy_of_labels(corpus.labels)
    if "levels" in expected:
        assert taxonomy.n_levels == expected["levels"]
    if "split" in expected:
        assert taxonomy.separator == expected["split"]


@pytest.mark.parametrize("name", READ)
def test_the_command_line_says_what_was_found_and_trains(name, place, tmp_path, capsys):
    path, expected = place(name), EXPECTED[name]
    assert main(["inspect", str(path), "--json"]) == 0
    inspected = capsys.readouterr()
    facts = json.loads(inspected.out)
    assert facts["kind"] == "data"
    assert facts["documents"] == expected["documents"]
    assert facts["unlabelled"] == expected.get("unlabelled", 0)
    assert main(["train", str(path), "--model", str(tmp_path / "model"), "--holdout", "0", "--system", "nb"]) == 0
    trained = capsys.readouterr()
    for told in (inspected.err, trained.err):
        assert "Traceback" not in told
        assert repr(read_corpus(path).found["label"][0]) in told or len(read_corpus(path).found["label"]) > 1
        for piece in expected.get("says", ()):
            assert piece in told
    if expected.get("unlabelled"):
        assert f"{expected['unlabelled']} document" in trained.err


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_could_be_misread_is_refused_with_a_sentence(name, place, tmp_path, capsys):
    path, sentence = place(name), EXPECTED[name]["refused"]
    with pytest.raises(RamifyError) as caught:
        read_corpus(path)
    assert sentence in str(caught.value)
    assert sentence in refused(capsys, "inspect", path, "--as", "data")
    assert sentence in refused(capsys, "train", path, "--model", tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_one_sentence(name, place, tmp_path, capsys):
    path = place(name)
    with pytest.raises(DataError) as caught:
        read_corpus(path)
    assert BROKEN[name] in str(caught.value)
    assert len(str(caught.value)) < 400
    assert BROKEN[name] in refused(capsys, "train", path, "--model", tmp_path / "model")


def test_a_name_does_not_tell_what_a_file_is(place, tmp_path):
    assert len(read_corpus(place("text_named.xlsx"))) == 2
    (tmp_path / "table.csv").write_bytes(FILES["libreoffice.ods"])
    assert len(read_corpus(tmp_path / "table.csv")) == 6
    (tmp_path / "old.xls").write_bytes(FILES["plain.xlsx"])
    assert len(read_corpus(tmp_path / "old.xls")) == 6


def test_a_sheet_that_is_named_is_read_also_if_it_is_hidden(place):
    assert len(read_corpus(place("several_sheets.xlsx"), sheet="February")) == 6
    found = read_corpus(place("hidden_sheet.xlsx"), sheet="Codes", text="meaning", label="code")
    assert found.documents == ["Orders", "TV"]


def test_questions_are_answered_by_the_options_that_they_name(place, capsys, tmp_path):
    answers = {
        "category_and_topic.csv": ["--label", "topic"],
        "two_label_columns.csv": ["--label", "team"],
        "two_free_texts.csv": ["--text", "pros,cons"],
        "duplicate_columns.csv": ["--text", "text (2)"],
        "several_sheets.xlsx": ["--sheet", "January"],
        "isco_jobs.csv": ["--label", "isco"],
        "cyrillic_cp1251.csv": ["--encoding", "cp1251"],
    }
    for name, options in answers.items():
        arguments = [
            "train",
            str(place(name)),
            "--model",
            str(tmp_path / "model"),
            "--holdout",
            "0",
            "--system",
            "nb",
            "--force",
        ]
        assert main([*arguments, *options]) == 0, capsys.readouterr().err


def test_spellings_are_merged_where_the_remark_says_so(place, capsys):
    path = place("mixed_case.csv")
    assert {label for labels in read_corpus(path, merge_spellings=True).labels for label in labels} == {
        "Orders", "Orders > Late", "Orders > Lost",
    }  # fmt: skip
    assert main(["inspect", str(path), "--merge-spellings"]) == 0
    assert "taken for one label" in capsys.readouterr().err


def test_a_spreadsheet_that_unpacks_to_more_than_its_memory_is_refused(tmp_path, monkeypatch):
    cells = '<c r="A1" t="inlineStr"><is><t>text</t></is></c><c r="B1" t="inlineStr"><is><t>label</t></is></c>'
    rows = f'<row r="1">{cells}</row><row r="1000000"><c r="XFD1000000"><v>1</v></c></row>'  # and all cells between them
    bomb = make_files.with_sheet(FILES["plain.xlsx"], f"<sheetData>{rows}</sheetData>")
    (tmp_path / "bomb.xlsx").write_bytes(bomb)
    monkeypatch.setattr(spreadsheets, "LIMITS", spreadsheets.SheetLimits(megabytes=200, by_size=0))
    with pytest.raises(DataError, match="needs more memory or time than a spreadsheet of its size may take"):
        read_corpus(tmp_path / "bomb.xlsx")


def test_a_folder_with_a_binary_file_leaves_it_out_and_says_so(place, capsys):
    folder = place("newsgroups")
    for k in range(20):
        (folder / "sci" / "med" / f"more{k}.txt").write_text(f"more words on health {k}")
    (folder / "sci" / "med" / "picture.png").write_bytes(FILES["picture.csv"])
    corpus = read_corpus(folder)
    assert (len(corpus), len(corpus.bad_rows)) == (27, 1)
    assert main(["inspect", str(folder)]) == 0
    assert "picture.png, line 1: it is no text" in capsys.readouterr().err


def test_a_folder_with_an_unreadable_folder_is_refused(place, monkeypatch):
    folder, scandir = place("newsgroups"), os.scandir

    def may_not(path):
        if Path(path).name == "sci":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", may_not)
    with pytest.raises(DataError, match="sci cannot be read: Permission denied; change its permissions"):
        read_corpus(folder)


def test_the_made_files_are_the_same_each_time():
    texts = {name: content for name, content in make_files.others().items() if name.endswith(".gz")}
    assert texts == {name: FILES[name] for name in texts}
    assert gzip.decompress(FILES["packed.csv.gz"]).startswith(b"text,label")
