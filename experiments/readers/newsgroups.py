"""The 20 newsgroups by date: ``20news-bydate-train/<group>/<number>`` and the same for test, one post a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from experiments.readers.layout import Layout, Split
from ramify.data import Corpus
from ramify.data.encodings import open_binary
from ramify.errors import DataError
from ramify.taxonomy import Taxonomy

FOLDERS = ("20news-bydate-train", "20news-bydate-test")


def find(folder: Path) -> list[Path]:
    """All posts, where both parts are there."""
    if not all((folder / part).is_dir() for part in FOLDERS):
        return []
    return [file for part in FOLDERS for file in (folder / part).glob("*/*") if file.is_file()]


def read(folder: Path) -> Split:
    """Posts with all their headers."""
    train, test = (_read_part(folder / part) for part in FOLDERS)
    return train, test, dotted_taxonomy({labels[0] for labels in (*train.labels, *test.labels)})


def _read_part(folder: Path) -> Corpus:
    files = sorted(file for file in folder.glob("*/*") if file.is_file())
    if not files:
        raise DataError(f"{folder} holds no posts; each should lie in a folder with the name of its newsgroup.")
    return Corpus(str(folder), [_read_post(file) for file in files], [[file.parent.name] for file in files])


def _read_post(path: Path) -> str:
    with open_binary(path) as file:
        return file.read().decode("latin-1")


def dotted_taxonomy(names: Iterable[str]) -> Taxonomy:
    """Names with dots as a tree: above each, its first word and every longer beginning that it shares with another.

    >>> tree = dotted_taxonomy(["rec.autos", "rec.sport.hockey", "rec.sport.baseball", "misc.forsale"])
    >>> tree.show(tree.index("rec.sport.hockey"))
    'rec > rec.sport > rec.sport.hockey'
    """
    words = {name: name.split(".") for name in sorted(names)}
    shared = Counter(".".join(parts[:n]) for parts in words.values() for n in range(1, len(parts)))
    above = {begin for begin, count in shared.items() if count > 1 or "." not in begin}
    edges: dict[str, str | None] = {}
    for name in sorted(above | set(words)):
        parts = name.split(".")
        ancestors = (".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1))
        edges[name] = next((begin for begin in ancestors if begin in above), None)
    return Taxonomy.from_edges(edges.items())


LAYOUT = Layout("the folders 20news-bydate-train and 20news-bydate-test", find, read)
