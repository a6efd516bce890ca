"""Our own layout: ``train.*``, ``test.*`` and ``taxonomy.tsv`` in a folder with the corpus's name."""

from __future__ import annotations

from pathlib import Path

from experiments.readers.layout import Layout, Split
from ramify.data import read_corpus
from ramify.taxonomy import read_taxonomy

PARTS = ("train", "test")


def layout(names: tuple[str, ...]) -> Layout:
    """The layout of a corpus whose folder has one of some names."""
    return Layout(f"a folder {names[0]} (train.*, test.*, taxonomy.tsv)", lambda folder: find(folder, names), read)


def find(folder: Path, names: tuple[str, ...]) -> list[Path]:
    """Both parts and the taxonomy, where all are there."""
    if folder.resolve().name.lower() not in names:
        return []
    files = [*(found for part in PARTS if len(found := list(folder.glob(f"{part}.*"))) == 1), [folder / "taxonomy.tsv"]]
    return [file for found in files for file in found] if len(files) == 3 and files[2][0].is_file() else []


def read(folder: Path) -> Split:
    """Documents as texts or vectors."""
    taxonomy = read_taxonomy(folder / "taxonomy.tsv")
    train, test = (read_corpus(next(folder.glob(f"{part}.*")), is_label=taxonomy.__contains__) for part in PARTS)
    return train, test, taxonomy
