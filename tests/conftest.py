"""Shared fixtures: tiny hand-drawn taxonomies and one small trained model."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator

import hypothesis
import pytest

import ramify

hypothesis.settings.register_profile("ramify", deadline=None, max_examples=150, print_blob=True)
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=3000, print_blob=True)
hypothesis.settings.register_profile("brief", deadline=None, max_examples=15, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ramify"))


@pytest.fixture(autouse=True)
def own_logs() -> Iterator[None]:
    """Handlers that a test sets write to streams that are closed after it."""
    loggers = [logging.getLogger(name) for name in ("ramify", "uvicorn")]
    before = [(each, each.handlers, each.propagate, each.level) for each in loggers]
    yield
    for each, handlers, propagate, level in before:
        each.handlers, each.propagate = handlers, propagate
        each.setLevel(level)


def pytest_collection_finish() -> None:
    """Thousands of tests stay until the end: what collects garbage need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def food() -> ramify.Taxonomy:
    """food > fruit > apple, pear; food > bread; drink."""
    return ramify.Taxonomy.from_paths(["food/fruit/apple", "food/fruit/pear", "food/bread", "drink"])


@pytest.fixture(scope="session")
def diamond() -> ramify.Taxonomy:
    """top over left and right, both over bottom."""
    edges = [("top", None), ("left", "top"), ("right", "top"), ("bottom", "left"), ("bottom", "right")]
    return ramify.Taxonomy.from_edges(edges)


@pytest.fixture(scope="session")
def shop() -> ramify.data.bundled.Electronics:
    return ramify.data.load_electronics()


@pytest.fixture(scope="session")
def classifier(shop: ramify.data.bundled.Electronics) -> ramify.TextClassifier:
    return ramify.TextClassifier("nb", shop.taxonomy).fit(shop.train.documents, shop.train.labels)


@pytest.fixture
def tickets(tmp_path) -> str:
    """A small table that trains: two branches, two leaves each."""
    lines = ["body,category"]
    lines += [f"parcel late courier {i},Orders > Late" for i in range(6)]
    lines += [f"wrong item in box {i},Orders > Wrong" for i in range(6)]
    lines += [f"screen dark no picture {i},TV > Picture" for i in range(6)]
    lines += [f"sound crackles speaker {i},TV > Sound" for i in range(6)]
    path = tmp_path / "tickets.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)
