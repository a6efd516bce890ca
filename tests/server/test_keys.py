from __future__ import annotations

import json
import os
import stat

import pytest

from ramify.errors import InputError
from ramify.server import keys as module
from ramify.server.keys import Caller, KeyRing, add_key, read_keys, remove_key

STEERING = ("\n", "\t", "\r", "\x1b", "\x85", "\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202e", "\u2066", "\ud800")


def test_a_key_is_known_and_no_other_is(tmp_path):
    path = tmp_path / "keys.json"
    key = add_key(path, "ann", "review")
    ring = KeyRing(path)
    assert ring.find(key) == Caller("ann", "review")
    assert ring.find(key[:-1]) is None
    assert ring.find("") is None


def test_the_file_holds_no_key(tmp_path):
    path = tmp_path / "keys.json"
    key = add_key(path, "ann", "read")
    assert key not in path.read_text()
    assert key.removeprefix("ramify_") not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_that_is_taken_away_stops_working_without_a_restart(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHECK_INTERVAL", 0.0)
    path = tmp_path / "keys.json"
    first, second = add_key(path, "ann", "read"), add_key(path, "ben", "admin")
    ring = KeyRing(path)
    remove_key(path, "ann")
    assert ring.find(first) is None
    assert ring.find(second) == Caller("ben", "admin")
    third = add_key(path, "cem", "read")
    assert ring.find(third) == Caller("cem", "read")


def test_nobody_is_let_in_by_a_file_that_cannot_be_read_any_more(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHECK_INTERVAL", 0.0)
    path = tmp_path / "keys.json"
    key = add_key(path, "ann", "read")
    ring = KeyRing(path)
    for damage in (lambda: path.write_text("{"), path.unlink):
        damage()
        assert ring.find(key) is None


def test_roles_include_those_below_them():
    assert [Caller("x", "admin").may(role) for role in module.ROLES] == [True, True, True]
    assert [Caller("x", "review").may(role) for role in module.ROLES] == [True, True, False]
    assert [Caller("x", "read").may(role) for role in module.ROLES] == [True, False, False]


@pytest.mark.parametrize("place", ["pipe", "/dev/null", "/dev/zero"])
def test_keys_are_kept_in_files_only(tmp_path, monkeypatch, place):
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / place
    for change in (lambda: add_key(path, "ann", "read"), lambda: remove_key(path, "ann")):
        with pytest.raises(InputError, match="is a pipe or a device, which keeps no keys"):
            change()
    with pytest.raises(InputError, match="it is not a regular file"):
        read_keys(path)


def test_a_server_does_not_wait_for_a_pipe_in_the_place_of_its_keys(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHECK_INTERVAL", 0.0)
    path = tmp_path / "keys.json"
    key = add_key(path, "ann", "read")
    ring = KeyRing(path)
    path.unlink()
    os.mkfifo(path)
    assert ring.find(key) is None


def test_a_key_file_is_read_up_to_a_limit(tmp_path, monkeypatch):
    path = tmp_path / "keys.json"
    add_key(path, "ann", "read")
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    with pytest.raises(InputError, match="it has more than 10 bytes"):
        read_keys(path)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"format": "other", "keys": []}', '{"format": "ramify-keys", "keys": [1]}']
)
def test_files_that_are_no_keys_are_refused(tmp_path, content):
    path = tmp_path / "keys.json"
    path.write_text(content)
    with pytest.raises(InputError, match="not a key file"):
        read_keys(path)


def test_an_unknown_role_in_the_file_is_refused(tmp_path):
    path = tmp_path / "keys.json"
    add_key(path, "ann", "read")
    values = json.loads(path.read_text())
    values["keys"][0]["role"] = "root"
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match="not a key file"):
        KeyRing(path)


def test_names_and_roles_that_cannot_be_are_refused(tmp_path):
    path = tmp_path / "keys.json"
    for name, role in (("", "read"), (" ann", "read"), ("ann", "root"), *((f"a{mark}b", "read") for mark in STEERING)):
        with pytest.raises(InputError):
            add_key(path, name, role)
    add_key(path, "ann", "read")
    with pytest.raises(InputError, match="already"):
        add_key(path, "ann", "admin")
    with pytest.raises(InputError, match="no key for"):
        remove_key(path, "ben")
