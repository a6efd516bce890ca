"""The encoding of a file: what was written in it is read back, and what is no text is refused with a sentence."""

import gzip
import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ramify.data import read_corpus
from ramify.data.encodings import find_encoding, known_encoding
from ramify.errors import DataError, InputError, RamifyError

in_place = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
words = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters='";,\t|'), min_size=1
)
WESTERN = "äöüßéèêçñåøÄÖÜÉ€“”’–…"
western = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz     " + WESTERN), min_size=1, max_size=30)


def table_of(cells, mark=","):
    return "text,label\r\n" + "".join(f"x{cell}x{mark}a\r\n" for cell in cells)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@given(cells=st.lists(words, min_size=1, max_size=20))
@in_place
def test_marked_and_usual_encodings_give_every_text_back(encoding, cells, tmp_path):
    (tmp_path / "t.csv").write_bytes(table_of(cells).encode(encoding))
    assert read_corpus(tmp_path / "t.csv").documents == [f"x{cell}x" for cell in cells]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@given(cells=st.lists(western, min_size=1, max_size=20))
@in_place
def test_utf_16_without_a_mark_is_known_by_its_zeros(encoding, cells, tmp_path):
    (tmp_path / "t.csv").write_bytes(table_of(cells).encode(encoding))
    assert find_encoding(tmp_path / "t.csv") == encoding
    assert read_corpus(tmp_path / "t.csv").documents == [f"x{cell}x" for cell in cells]


@given(cells=st.lists(western, min_size=1, max_size=20))
@in_place
def test_cp1252_gives_western_texts_back(cells, tmp_path):
    many = [*cells, "für Gäste"] + ["a long text in plain letters that tells the language"] * (len(cells) + 1)
    content = table_of(many).encode("cp1252")
    assume(re.search(rb"[\xc2-\xf4][\x80-\xbf]", content) is None)  # such as Å and a dash, which look like UTF-8
    (tmp_path / "t.csv").write_bytes(content)
    corpus = read_corpus(tmp_path / "t.csv")
    assert corpus.documents == [f"x{cell}x" for cell in many]
    assert corpus.remarks[0] == "read as cp1252, which was detected; --encoding overrules it"


@given(content=st.binary(max_size=400), is_packed=st.booleans())
@in_place
def test_any_bytes_are_read_or_refused_with_a_sentence(content, is_packed, tmp_path):
    (tmp_path / "t.csv").write_bytes(gzip.compress(content) if is_packed else content)
    try:
        read_corpus(tmp_path / "t.csv")
    except RamifyError as error:
        assert len(str(error)) < 1_500


def test_one_bad_byte_does_not_change_the_encoding_of_utf_8(tmp_path):
    (tmp_path / "t.csv").write_bytes(table_of(["größer", "später", "früh"]).encode() + b"\xff,b\r\n")
    assert find_encoding(tmp_path / "t.csv") == "utf-8"


@pytest.mark.parametrize(("text", "encoding"), [("привет мир", "koi8-r"), ("привет мир", "cp1251"), ("物流延迟", "gb18030")])
def test_other_alphabets_are_asked_for_and_read_as_told(text, encoding, tmp_path):
    (tmp_path / "t.csv").write_bytes(table_of([text] * 3).encode(encoding))
    with pytest.raises(DataError, match="give its --encoding, such as cp1251, gb18030 or shift_jis"):
        read_corpus(tmp_path / "t.csv")
    corpus = read_corpus(tmp_path / "t.csv", encoding=encoding)
    assert (corpus.documents[0], corpus.remarks) == (f"x{text}x", [])


def test_an_encoding_that_is_given_is_checked_before_a_file_is_read():
    assert known_encoding("latin1") == "iso8859-1"
    for name in ("utf-17", "base64", "\0", "a" * 300):
        with pytest.raises(InputError, match="give one such as 'cp1252' or 'utf-16'"):
            known_encoding(name)


def test_parts_in_different_encodings_are_told(tmp_path):
    (tmp_path / "a.csv").write_bytes(table_of(["früh", "spät"]).encode())
    (tmp_path / "b.csv").write_bytes(table_of(["größer als je zuvor", "für Gäste"]).encode("cp1252"))
    corpus = read_corpus(tmp_path)
    assert corpus.documents[2] == "xgrößer als je zuvorx"
    assert corpus.remarks == [f"{tmp_path / 'b.csv'}: read as cp1252, which was detected; --encoding overrules it"]
