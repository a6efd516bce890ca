"""The corpora as word counts, and training sets of any size drawn from them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify import Taxonomy
from ramify.datasets import read_corpus
from ramify.datasets.newsgroups import EMPTY_LINE, read_newsgroups, strip_headers
from ramify.features import Vectorizer

ROOT = "root"
CHILDREN = {
    "vehicles": ("rec.autos", "rec.motorcycles"),
    "computers": (
        "comp.graphics",
        "comp.os.ms-windows.misc",
        "comp.sys.ibm.pc.hardware",
        "comp.sys.mac.hardware",
        "comp.windows.x",
    ),
    "politics": ("talk.politics.guns", "talk.politics.mideast", "talk.politics.misc"),
    "religion": ("alt.atheism", "soc.religion.christian", "talk.religion.misc"),
    "sports": ("rec.sport.baseball", "rec.sport.hockey"),
}
OTHER_THAN_LETTERS = re.compile(r"[^A-Za-z]+")
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counted:
    """Documents × words, how often each occurs; the class of every document; the tree above the classes."""

    X: csr_array
    names: NDArray[np.str_]
    taxonomy: Taxonomy

    def without_parents(self) -> Taxonomy:
        """The tree in which every class is a child of the root."""
        return Taxonomy.from_edges([(ROOT, None), *((name, ROOT) for name in np.unique(self.names).tolist())])

    def told(self) -> dict[str, int]:
        """How large all of it is."""
        tree = self.taxonomy
        sizes = {"documents": self.X.shape[0], "vocabulary": self.X.shape[1], "words": int(self.X.sum(dtype=np.float64))}
        depth = max(len(tree.ancestors_of(node)) for node in np.flatnonzero(tree.is_leaf).tolist()) + 1
        return {**sizes, "classes": len(np.unique(self.names)), "nodes": len(tree), "depth": depth}

    def draw_order(self, seed: int, trial: int) -> Ints:
        """Documents in a random order of which any beginning has about the same share of every class."""
        rng = np.random.default_rng([seed, trial])
        place = np.empty(len(self.names))
        for name in np.unique(self.names):
            mine = np.flatnonzero(self.names == name)
            place[mine] = (rng.permutation(len(mine)) + rng.random()) / len(mine)
        return np.argsort(place)


# ---- newsgroups ---------------------------------------------------------------------------------------------------------


def usenet_taxonomy() -> Taxonomy:
    """The paper's two levels: 15 newsgroups under five topics."""
    topics = [(topic, ROOT) for topic in CHILDREN]
    return Taxonomy.from_edges([(ROOT, None), *topics, *((name, topic) for topic, below in CHILDREN.items() for name in below)])


def read_usenet(folder: Path, keep: list[str], letters: bool) -> Counted:
    """The posts of the 15 newsgroups, both parts of the corpus together.

    keep: headers that stay. letters: words are runs of letters alone.
    """
    corpus, taxonomy = read_newsgroups(folder), usenet_taxonomy()
    chosen = [place for place, labels in enumerate(corpus.labels) if labels[0] in taxonomy.names]
    texts = [leave_out_headers(corpus.documents[place], keep) for place in chosen]
    names = np.asarray([corpus.labels[place][0] for place in chosen])
    return Counted(count_words(texts, letters), names, taxonomy)


def leave_out_headers(post: str, keep: list[str]) -> str:
    """A post of ``read_newsgroups``, with its From and Subject or without."""
    return strip_headers(post, keep) if keep else EMPTY_LINE.split(post, maxsplit=1)[-1]


def count_words(texts: list[str], letters: bool = False) -> csr_array:
    """Counts of all words but stop words and those that occur once."""
    if letters:
        texts = [OTHER_THAN_LETTERS.sub(" ", text) for text in texts]
    X = Vectorizer("counts", stop_words="english").fit_transform(texts)
    return csr_array(X[:, np.flatnonzero(np.asarray(X.sum(axis=0)).ravel() > 1)])


# ---- other trees --------------------------------------------------------------------------------------------------------


def read_tree(folder: Path) -> Counted:
    """A corpus with ``train.*``, ``test.*`` and ``taxonomy.tsv`` (child, parent; ROOT for none), both parts together.

    Documents with several labels are left out.
    """
    parts = [read_corpus(next(folder.glob(f"{part}.*"))) for part in ("train", "test")]
    rows = [row for part in parts for row in zip(part.documents, part.labels, strict=True)]
    found = [(text, labels[0]) for text, labels in rows if len(labels) == 1]
    pairs = [line.split("\t") for line in (folder / "taxonomy.tsv").read_text().splitlines()]
    taxonomy = Taxonomy.from_edges([(child, None if parent == "ROOT" else parent) for child, parent in pairs])
    return Counted(count_words([text for text, _ in found]), np.asarray([name for _, name in found]), taxonomy)
