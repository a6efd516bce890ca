"""Texts of others, as a terminal or a spreadsheet can show them."""

from __future__ import annotations

import csv
import io

import pytest

from ramify.formatting import csv_line, cut, visible, visible_name

MARKS = [
    "\x1b",
    "\r",
    "\x07",
    "\x9b",
    "\x85",
    "\x7f",
    "\u061c",
    "\u200e",
    "\u200f",
    "\u2028",
    "\u2029",
    "\u202e",
    "\u2066",
    "\u2069",
]


@pytest.mark.parametrize("mark", [*MARKS, "\udcff", "\0"])
def test_what_could_steer_a_terminal_is_written_out(mark):
    for shown in (visible(f"a{mark}b"), visible_name(f"a{mark}b")):
        assert mark not in shown
        assert shown.isprintable()
        assert f"{ord(mark):02x}" in shown


def test_a_name_stays_on_one_line_in_one_place():
    assert visible_name("a\nb\tc\rd\\n") == "a\\nb\\tc\\x0dd\\n"


def test_ordinary_text_stays_as_it_is():
    text = "größer\tals\nنسرین 中文 😀 \\x1b [red]"
    assert visible(text) == text


def test_long_messages_lose_their_middle_and_say_so():
    message = "label '" + "x" * 100_000 + "' is unknown; correct it."
    assert len(cut(message)) < 2_100
    assert cut(message).startswith("label 'xxx")
    assert "characters left out" in cut(message)
    assert cut(message).endswith("is unknown; correct it.")
    assert cut("short") == "short"


@pytest.mark.parametrize("cell", ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "=", "-1+1"])
def test_formulas_are_escaped_only_on_demand(cell):
    for asked, expected in ((False, cell), (True, f"'{cell}")):
        line = csv_line(["x", cell], escape_formulas=asked)
        assert next(csv.reader(io.StringIO(line, newline=""))) == ["x", expected]


@pytest.mark.parametrize("cell", ["a=1", "-0.5", "+3", "-inf", "'=1", "", -1.5, None, 3])
def test_numbers_and_other_texts_are_no_formulas(cell):
    assert csv_line([cell], escape_formulas=True) == csv_line([cell])


@pytest.mark.parametrize("text", ["a\rb", "a\r\nb", "a\nb", 'say "a", b', "a\tb", " a "])
def test_every_text_reads_back_as_it_was(text):
    line = csv_line([text, "x"])
    assert list(csv.reader(io.StringIO(line, newline=""))) == [[text, "x"]]
    assert line.endswith(",x\n")
