"""The problems: web directories made on the spot, and corpora of a folder that the user names.

One class a document, so that every peer can take part; of several labels the first counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.data import Corpus, make_web_directory, read_corpus
from ramify.features import Vectorizer
from ramify.taxonomy import Taxonomy, most_specific, read_taxonomy

Nodes = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """Documents × features and the node of each document, to train on and to test on."""

    X_train: csr_array
    y_train: Nodes
    X_test: csr_array
    y_test: Nodes
    taxonomy: Taxonomy


@dataclass(frozen=True, slots=True)
class Directory:
    """The size of a made-up web directory; features as many as `make_web_directory` likes when not given."""

    n_leaves: int
    n_train: int
    n_test: int
    n_features: int | None = None


DIRECTORIES = {
    "directory-100": Directory(100, 2_000, 500),
    "directory-200": Directory(200, 3_000, 1_000),
    "directory-1000": Directory(1_000, 16_000, 4_000),
    "directory-12294": Directory(12_294, 128_710, 10_000, 381_580),  # as large as the DMOZ directory of LSHTC 2010
}


def make_problem(name: str, data: Path | None = None) -> Split:
    """A directory by its name, or the corpus of that name below the data folder."""
    if name in DIRECTORIES:
        return split_directory(DIRECTORIES[name])
    if data is None or not (data / name / "train.jsonl.gz").is_file():
        raise SystemExit(f"no problem {name!r}; there are {', '.join(DIRECTORIES)}, and corpora below --data DIR.")
    return read_split(data / name)


def split_directory(size: Directory, seed: int = 0) -> Split:
    """The first documents to train on, the rest to test on."""
    made = make_web_directory(size.n_leaves, size.n_train + size.n_test, n_features=size.n_features, seed=seed)
    nodes = most_specific(made.Y, made.taxonomy).indices.astype(np.int64)
    n = size.n_train
    return Split(made.X[:n], nodes[:n], made.X[n:], nodes[n:], made.taxonomy)


def read_split(folder: Path) -> Split:
    """A corpus of texts as tf-idf of words in two documents or more, 1 + ln(count)."""
    taxonomy = read_taxonomy(folder / "taxonomy.tsv")
    train, test = (_labelled(folder / f"{part}.jsonl.gz", taxonomy) for part in ("train", "test"))
    vectorizer = Vectorizer(min_df=2, sublinear_tf=True)
    X_train = vectorizer.fit_transform(train.documents)
    return Split(X_train, _nodes(train, taxonomy), vectorizer.transform(test.documents), _nodes(test, taxonomy), taxonomy)


def write_problem(split: Split, folder: Path) -> None:
    """The arrays that peers read; what they must predict stays here."""
    for name, X in (("X_train", split.X_train), ("X_test", split.X_test)):
        for part in ("data", "indices", "indptr", "shape"):
            np.save(folder / f"{name}.{part}.npy", np.asarray(getattr(X, part)))
    np.save(folder / "y_train.npy", split.y_train)
    np.save(folder / "parent.npy", first_parents(split.taxonomy))


def describe(split: Split) -> dict[str, int]:
    """The size of a problem."""
    return {
        "train": split.X_train.shape[0],
        "test": split.X_test.shape[0],
        "features": split.X_train.shape[1],
        "nonzeros": int(split.X_train.nnz),
        "classes": len(np.unique(split.y_train)),
        "nodes": len(split.taxonomy),
    }


def first_parents(taxonomy: Taxonomy) -> Nodes:
    """The parent of each node, −1 at a root; the first one where there are several."""
    starts, counts = taxonomy.parent_offsets[:-1], np.diff(taxonomy.parent_offsets)
    parent = np.full(len(taxonomy), -1, dtype=np.int64)
    parent[counts > 0] = taxonomy.parent_nodes[starts[counts > 0]]
    return parent


def _labelled(path: Path, taxonomy: Taxonomy) -> Corpus:
    return read_corpus(path, text="text", label="labels", is_label=lambda name: name in taxonomy.names).labelled()


def _nodes(corpus: Corpus, taxonomy: Taxonomy) -> Nodes:
    return np.array([taxonomy.index(labels[0]) for labels in corpus.labels], dtype=np.int64)
