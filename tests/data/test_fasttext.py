"""Training files of fastText."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ramify
from ramify.cli.main import main
from ramify.data import read_corpus
from ramify.data.fasttext import split_line
from ramify.errors import DataError

LINES = "__label__tea black tea\n__label__tv __label__radio a telly, with sound\nno label\n\n__label__tea  \nhot __label__tea\n"


def test_labels_and_texts_are_told_apart(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text(LINES.replace("__label__tea  \n", ""))
    corpus = read_corpus(path)
    assert corpus.documents == ["black tea", "a telly, with sound", "no label", "hot"]
    assert corpus.labels == [["tea"], ["tv", "radio"], [], ["tea"]]
    assert list(corpus.lines) == [1, 2, 3, 5]


@pytest.mark.parametrize("name", ["train.txt", "train.csv", "train", "train.ft.gz"])
def test_a_file_is_known_by_its_first_line_whatever_its_name(name, tmp_path):
    (tmp_path / name).write_text("__label__tea black, tea\n")
    assert read_corpus(tmp_path / name).labels == [["tea"]]


def test_a_line_without_a_text_is_a_bad_row(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("__label__tea black tea\n" * 10 + "__label__tea\n")
    (bad,) = read_corpus(path).bad_rows
    assert (bad.line, bad.reason) == (11, "the text is empty")


def test_a_line_that_is_not_utf_8_is_a_bad_row(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes("__label__tea grüner tee\n".encode() * 20 + b"__label__tea \xff\xfe\xff\n")
    assert [bad.line for bad in read_corpus(path).bad_rows] == [21]


def test_a_table_with_such_a_label_in_a_cell_stays_a_table(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("text,label\n__label__x is a mark,tea\nblack,tea\n")
    assert read_corpus(path).labels == [["tea"], ["tea"]]


def test_a_line_that_never_ends_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("ramify.data.limits.MAX_LINE", 1000)
    path = tmp_path / "train.txt"
    path.write_text("__label__tea " + "x" * 2000)
    with pytest.raises(DataError, match="longer than 1,000 characters"):
        read_corpus(path)


@given(st.text())
def test_no_line_fails_and_no_word_is_lost(line):
    row = split_line(line)
    kept = [word for word in line.split() if not word.startswith("__label__")]
    assert row["text"].split() == kept


def test_a_model_is_trained_and_predicts_on_such_files(tmp_path, capsys):
    path = tmp_path / "train.txt"
    lines = [f"__label__tea hot black leaf {i}" for i in range(8)] + [f"__label__tv bright screen {i}" for i in range(8)]
    path.write_text("\n".join(lines) + "\n")
    assert main(["train", str(path), "--model", str(tmp_path / "model"), "--system", "nb"]) == 0
    assert ramify.load(tmp_path / "model").predict(["a leaf"]).tolist() == ["tea"]
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "model"), str(path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 17


def test_many_such_files_are_one_table(tmp_path):
    for part in range(2):
        (tmp_path / f"part-{part}.txt").write_text(f"__label__tea black tea {part}\n__label__tv a screen {part}\n")
    corpus = read_corpus(tmp_path / "part-*.txt")
    assert corpus.labels == [["tea"], ["tv"]] * 2
