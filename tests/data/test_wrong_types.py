"""Arguments of a wrong type are refused before any file is read."""

import pytest

from ramify import ReadOptions
from ramify.data import read_corpus
from ramify.errors import InputError


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "documents.csv"
    path.write_text("text,label\nred apple,fruit\nrye bread,bread\n")
    return path


@pytest.mark.parametrize("wrong", [None, 1, 1.5, [], {}, b"a", object(), iter("a")])
def test_what_is_no_path_is_not_read(wrong):
    for read in (read_corpus, ReadOptions().read):
        with pytest.raises(InputError, match=r"is .*; give a path, as a string or a pathlib.Path\."):
            read(wrong)


@pytest.mark.parametrize("wrong", ["\ud800", "a\0b"])
def test_what_no_file_can_be_called_is_not_read(wrong):
    with pytest.raises(InputError, match="which no file can be called; give another path"):
        read_corpus(wrong)


@pytest.mark.parametrize("name", ["text", "label", "label_separator", "like", "is_label", "strict", "encoding"])
@pytest.mark.parametrize("wrong", [1, b"a", [], object()])
def test_a_setting_of_a_wrong_type_is_named(table, name, wrong):
    with pytest.raises(InputError, match=rf"^{name} .*; give .*\.$"):
        read_corpus(table, **{name: wrong})


def test_settings_of_the_right_type_are_taken(table):
    corpus = read_corpus(str(table), text="text", label="label", label_separator="|", like={}, is_label=str.islower)
    assert corpus.labels == [["fruit"], ["bread"]]
