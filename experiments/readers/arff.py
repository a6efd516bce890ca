"""ImCLEF07A in Clus's form of ARFF: numbers, then ``@ATTRIBUTE class hierarchical 1,1/2,…`` with values ``1@1/2``.

The attribute lists the nodes as paths; the value of a document lists its nodes, ancestors included or not.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from experiments.readers.layout import Layout, Split, find_file, open_text
from ramify.data import Corpus
from ramify.data.svmlight import MAX_VALUE
from ramify.errors import DataError
from ramify.taxonomy import Taxonomy, most_specific

FILES = ("ImCLEF07A_Train.arff", "ImCLEF07A_Test.arff")


class Table(NamedTuple):
    """What a file holds: the paths of its class attribute, rows of numbers, and the labels of each row."""

    paths: list[str]
    values: list[list[float]]
    labels: list[list[str]]


def find(folder: Path) -> list[Path]:
    """Both files, where both are there."""
    files = [path for name in FILES if (path := find_file(folder, name)) is not None]
    return files if len(files) == len(FILES) else []


def read(folder: Path) -> Split:
    """Vectors whose features count from 1, as in our own layout."""
    files = find(folder)
    tables = [read_table(path) for path in files]
    taxonomy = tree_of_paths([path for table in tables for path in table.paths])
    train, test = (_corpus(path, table, taxonomy) for path, table in zip(files, tables, strict=True))
    return train, test, taxonomy


def read_table(path: Path) -> Table:
    """Head and rows of one file."""
    table, in_data = Table([], [], []), False
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            words = line.strip()
            if not words or words.startswith("%"):
                continue
            if in_data:
                _add_row(path, number, words, table)
            elif words.lower().startswith("@data"):
                in_data = True
            else:
                table.paths.extend(_paths(words))
    if not table.paths or not table.values:
        raise DataError(f"{path} has no attribute 'class hierarchical' or no rows; give the file as Clus publishes it.")
    return table


def _paths(words: str) -> list[str]:
    """The nodes of a hierarchical attribute; none for any other line."""
    parts = words.split(maxsplit=3)
    if len(parts) < 4 or parts[0].lower() != "@attribute" or parts[2].lower() != "hierarchical":
        return []
    return [path.strip() for path in parts[3].split(",") if path.strip()]


def _add_row(path: Path, number: int, words: str, table: Table) -> None:
    *cells, labels = words.split(",")
    try:
        table.values.append([0.0 if cell.strip() == "?" else _number(cell) for cell in cells])
    except ValueError:
        raise DataError(f"{path}, line {number}: a value is no number; give the file as Clus publishes it.") from None
    if len(cells) != len(table.values[0]):
        raise DataError(f"{path}, line {number}: {len(cells)} values where the first row has {len(table.values[0])}.")
    names = [label.strip() for label in labels.split("@") if label.strip()]
    for name in names:
        # the nodes above a path need not be listed
        if not any(f"{known}/".startswith(f"{name}/") for known in table.paths):
            raise DataError(f"{path}, line {number}: class {name!r} is not among those of the attribute 'class hierarchical'.")
    table.labels.append(names)


def _number(cell: str) -> float:
    value = float(cell)
    if not abs(value) <= MAX_VALUE:  # nor is NaN
        raise ValueError(cell)
    return value


def tree_of_paths(paths: list[str]) -> Taxonomy:
    """Paths as nodes, each below the path without its last step.

    >>> tree_of_paths(["1/2/3"]).names
    ('1', '1/2', '1/2/3')
    """
    steps = [path.split("/") for path in paths]
    nodes = sorted({"/".join(parts[:n]) for parts in steps for n in range(1, len(parts) + 1)})
    return Taxonomy.from_edges((node, node.rpartition("/")[0] or None) for node in nodes)


def _corpus(path: Path, table: Table, taxonomy: Taxonomy) -> Corpus:
    labels = taxonomy.decode(most_specific(taxonomy.encode(table.labels), taxonomy))
    values = np.asarray(table.values, dtype=np.float32)
    X = csr_array(np.hstack([np.zeros((len(values), 1), dtype=np.float32), values]))
    return Corpus(str(path), X, [list(names) for names in labels])


LAYOUT = Layout(f"the files {FILES[0]} and {FILES[1]}", find, read)
