"""Where paths lead, and files that are larger than they may be, or have no end."""

from __future__ import annotations

import os

import pytest

from ramify.persistence.paths import CHUNK, is_at_or_below, is_special, lead_to_same, read_at_most, resolved


def test_links_are_followed(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to("model")
    assert resolved(tmp_path / "link" / "file") == (tmp_path / "model" / "file").resolve()
    assert is_at_or_below(tmp_path / "link" / "sub" / "file", tmp_path / "model")
    assert is_at_or_below(tmp_path / "model", tmp_path / "link")
    assert not is_at_or_below(tmp_path / "model2", tmp_path / "model")


def test_links_of_both_kinds_lead_to_the_same_file(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").write_text("x")
    (tmp_path / "link").symlink_to("file")
    os.link(tmp_path / "file", tmp_path / "hard")
    assert all(lead_to_same(tmp_path / "file", tmp_path / name) for name in ("file", "link", "hard"))
    assert not lead_to_same(tmp_path / "file", tmp_path / "other")
    assert lead_to_same(tmp_path / "none", tmp_path / "x" / ".." / "none")
    assert not lead_to_same(tmp_path / "none", "{" * 5000)


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1])
def test_a_file_is_read_up_to_the_limit(tmp_path, size):
    (tmp_path / "file").write_bytes(b"x" * size)
    assert read_at_most(tmp_path / "file", size) == b"x" * size
    if size:
        with pytest.raises(OSError, match=f"it has more than {size - 1:,} bytes"):
            read_at_most(tmp_path / "file", size - 1)


def test_a_device_without_an_end_is_read_no_further_than_the_limit():
    with pytest.raises(OSError, match="it has more than 10 bytes"):
        read_at_most("/dev/zero", 10)


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert is_special(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is not a regular file"):
        read_at_most(tmp_path / "pipe", 10, only_regular=True)
    assert not is_special(tmp_path)
    assert not is_special(tmp_path / "none")
