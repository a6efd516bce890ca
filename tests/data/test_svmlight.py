import numpy as np
import pytest

from ramify.data import read_corpus
from ramify.errors import DataError


def read(tmp_path, text):
    path = tmp_path / "docs.svm"
    path.write_text(text)
    return read_corpus(path)


def test_labels_are_words_and_features_keep_their_numbers(tmp_path):
    corpus = read(tmp_path, "2/1/3,4 1:0.5 3:2\n 2:1\n7 # nothing more\n")
    assert corpus.labels == [["2/1/3", "4"], [], ["7"]]
    assert corpus.documents.toarray().tolist() == [[0, 0.5, 0, 2], [0, 0, 1, 0], [0, 0, 0, 0]]
    assert corpus.has_vectors


def test_labels_may_have_spaces_after_their_commas(tmp_path):
    corpus = read(tmp_path, "33, 39, 42 1:1 6:1\n7 2:1\n")
    assert corpus.labels == [["33", "39", "42"], ["7"]]
    plain = tmp_path / "plain"
    plain.write_text("33, 39, 42 1:1 6:1\n7 2:1\n")
    assert read_corpus(plain).has_vectors


def test_missing_values_and_a_header_are_understood(tmp_path):
    corpus = read(tmp_path, "2 5 3\na 1:nan 2:1\nb 4:1\n")
    assert corpus.labels == [["a"], ["b"]]
    assert np.isnan(corpus.documents.toarray()[0, 1])


@pytest.mark.parametrize("line", ["a 1:x", "a 1:2:3", "a 1 2", "a 1:2:3 4", "a -1:2", "a 1.5:2", "a 99999999999:1"])
def test_a_bad_line_is_named(tmp_path, line):
    corpus = read(tmp_path, "b 1:1\n" * 20 + line + "\n")
    assert [bad.line for bad in corpus.bad_rows] == [21]


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="is empty"):
        read(tmp_path, "\n")


def test_a_mark_inside_a_label_is_no_comment(tmp_path):
    corpus = read(tmp_path, "C# 1:1 # a comment\n# only a comment\nC 2:1\n")
    assert corpus.labels == [["C#"], ["C"]]
    assert corpus.documents.nnz == 2


def test_values_beyond_32_bits_are_bad_rows(tmp_path):
    assert [bad.line for bad in read(tmp_path, "a 1:1\n" * 20 + "b 1:1e39\n").bad_rows] == [21]
