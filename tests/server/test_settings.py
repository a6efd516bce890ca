from __future__ import annotations

from pathlib import Path

import pytest

from ramify.errors import InputError
from ramify.server.settings import Settings, is_loopback, name_models

MODELS = {"m": Path("m")}


def test_nobody_outside_is_served_without_keys_unless_that_is_said():
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(InputError, match="--keys"):
            Settings(MODELS, host=host).check()
        Settings(MODELS, host=host, is_open=True).check()
        Settings(MODELS, host=host, keys=Path("keys.json")).check()
    Settings(MODELS).check()


def test_loopback_addresses_are_known():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "")))


def test_without_keys_only_names_of_this_machine_are_answered_to():
    assert Settings(MODELS).allowed_hosts == ("localhost", "127.0.0.1", "::1")
    assert "shop.example" in (Settings(MODELS, hosts=("Shop.Example",)).allowed_hosts or ())
    assert Settings(MODELS, host="0.0.0.0", keys=Path("k")).allowed_hosts is None


def test_models_are_named_by_their_directories_or_as_given():
    assert name_models(["a/b", "x=c/d"]) == {"b": Path("a/b"), "x": Path("c/d")}
    with pytest.raises(InputError, match="two models"):
        name_models(["a/m", "b/m"])
    with pytest.raises(InputError, match="no directory"):
        name_models(["a="])
    for bad in ("/", "../..", "a/ü b"):
        with pytest.raises(InputError, match="cannot be the name"):
            name_models([bad])


def test_a_queue_needs_a_place():
    with pytest.raises(InputError, match="--no-reviews"):
        Settings(MODELS, review_below=0.5).check()
