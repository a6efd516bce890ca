"""The check that retired words do not come back."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
spec = importlib.util.spec_from_file_location("check_words", ROOT / "tools" / "check_words.py")
check_words = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_words)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("class JournalledCrew:\n    pass\n", "crew"),
        ("learn_promise = 1\n", "promise"),
        ("# the weights are drawn to their parent\n", "drawn to"),
        ('HELP = "nb unless told"\n', "unless told"),
        ("def walk_down():\n    pass\n", "walk_down"),
    ],
)
def test_a_retired_word_is_found_in_prose_and_in_parts_of_names(tmp_path, text, word):
    path = tmp_path / "some.py"
    path.write_text(text)
    assert [found for _, found, _ in check_words.find_retired(path)] == [word]


def test_common_words_are_fine_in_prose(tmp_path):
    path = tmp_path / "some.py"
    path.write_text("# look here, the members of the team share a machine\n")
    assert not list(check_words.find_retired(path))


def test_retired_words_in_file_names_are_found(tmp_path):
    path = tmp_path / "choosing.py"
    path.write_text("")
    assert [word for _, word, _ in check_words.find_retired(path) if word == "choosing"]
