"""Folders of texts by category."""

import os

import pytest

from ramify.data import is_file_set, read_corpus
from ramify.errors import DataError


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "mail"
    for name, text in {
        "ham/work/1.txt": "see you at ten",
        "ham/home/2.txt": "buy milk",
        "spam/10.txt": "win",
        "spam/9.txt": "free",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def fill(folder, n_files):
    for k in range(n_files):
        (folder / "spam" / f"more{k}.txt").write_text(f"more words {k}")


def test_folders_are_labels_and_numbers_are_in_order(folder):
    corpus = read_corpus(folder)
    assert corpus.labels == [["ham > home"], ["ham > work"], ["spam"], ["spam"]]
    assert corpus.documents == ["buy milk", "see you at ten", "free", "win"]
    assert corpus.location_of(2) == f"{folder / 'spam' / '9.txt'}, line 1"


def test_tables_in_folders_are_tables(folder, tmp_path):
    (tmp_path / "parts" / "one").mkdir(parents=True)
    (tmp_path / "parts" / "one" / "a.csv").write_text("text,label\n")
    assert is_file_set(tmp_path / "parts")
    assert not is_file_set(folder)


def test_hidden_files_and_folders_are_skipped(folder):
    for name in (".DS_Store", "spam/._9.txt", "_notes.txt"):
        (folder / name).write_text("hidden")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("hidden")
    assert len(read_corpus(folder)) == 4


@pytest.mark.parametrize("kind", ["link", "pipe", "binary", "empty"])
def test_what_is_no_text_of_the_folder_is_left_out_and_told(folder, tmp_path, kind):
    fill(folder, 20)
    place, outside = folder / "spam" / "odd.txt", tmp_path / "secret.txt"
    outside.write_text("a secret")
    reasons = {"link": "it is a link that leads out of the folder", "pipe": "it is no regular file"}
    reasons |= {"binary": "it is no text", "empty": "the text is empty"}
    if kind == "link":
        place.symlink_to(outside)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.write_bytes(b"\x00\x01\x02\xff" * 50 if kind == "binary" else b"")
    corpus = read_corpus(folder)
    assert (len(corpus), len(corpus.bad_rows)) == (24, 1)
    assert corpus.bad_rows[0].reason.startswith(reasons[kind])
    assert "a secret" not in corpus.documents


def test_a_link_to_a_folder_is_not_followed(folder, tmp_path):
    (folder / "spam" / "loop").symlink_to(folder)
    (folder / "spam" / "away").symlink_to(tmp_path)
    assert len(read_corpus(folder)) == 4


def test_encodings_of_files_may_differ(folder):
    (folder / "spam" / "9.txt").write_bytes("größer und schöner für alle".encode("cp1252"))
    (folder / "spam" / "10.txt").write_bytes("größer".encode("utf-16"))
    assert read_corpus(folder).documents[2:] == ["größer und schöner für alle", "größer"]


def test_a_folder_of_mostly_binary_files_is_refused(folder):
    for k in range(9):
        (folder / "spam" / f"{k}.bin").write_bytes(bytes(range(256)))
    with pytest.raises(DataError, match="rows are bad, and more than one in ten is too many"):
        read_corpus(folder)


def test_each_of_ten_thousand_files_is_looked_at_a_few_times_only(folder, monkeypatch):
    for k in range(10_000):
        (folder / "ham" / "work" / f"{k}.txt").write_bytes(b"some words")
    n_opened, opened = [0], open

    def counted(*arguments, **options):
        n_opened[0] += 1
        return opened(*arguments, **options)

    monkeypatch.setattr("builtins.open", counted)
    assert len(read_corpus(folder)) == 10_003
    assert n_opened[0] < 30_000
