"""The corpora as word counts, and training sets of any size drawn from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from experiments.bundled import requests_at_leaves
from experiments.data import DataSet
from experiments.newsgroups import EMPTY_LINE, join_posts, strip_headers
from ramify.features import Vectorizer
from ramify.taxonomy import Taxonomy

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
Names = NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class Counted:
    """Documents × words, how often each occurs; the class of every document; the tree above the classes."""

    X: csr_array
    names: Names
    taxonomy: Taxonomy

    def without_parents(self) -> Taxonomy:
        """The tree in which every class is a child of the root."""
        return Taxonomy.from_edges([(ROOT, None), *((name, ROOT) for name in np.unique(self.names).tolist())])

    def topics_of(self, names: Names) -> Names:
        """Above each class the highest node, or the highest below the root where there is but one."""
        tree = self.taxonomy
        level = int(len(tree.roots) == 1)
        topic_of = {name: tree.names[tree.nodes_to(tree.index(name))[level]] for name in np.unique(names).tolist()}
        return np.asarray([topic_of[name] for name in names])

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
    """The paper's two levels: 15 newsgroups under five topics.

    >>> tree = usenet_taxonomy()
    >>> len(tree), int(tree.is_leaf.sum())
    (21, 15)
    """
    topics = [(topic, ROOT) for topic in CHILDREN]
    return Taxonomy.from_edges([(ROOT, None), *topics, *((name, topic) for topic, below in CHILDREN.items() for name in below)])


def count_usenet(corpus: DataSet, keep: Sequence[str] = (), letters: bool = False) -> Counted:
    """The posts of the 15 newsgroups, both parts of the corpus together.

    keep: headers that stay. letters: words are runs of letters alone.
    """
    posts, taxonomy = join_posts(corpus.title, (corpus.train, corpus.test)), usenet_taxonomy()
    chosen = [place for place, labels in enumerate(posts.labels) if labels[0] in taxonomy.names]
    texts = [leave_out_headers(posts.documents[place], keep) for place in chosen]
    names = np.asarray([posts.labels[place][0] for place in chosen])
    return Counted(count_words(texts, letters), names, taxonomy)


def leave_out_headers(post: str, keep: Sequence[str]) -> str:
    """A post that has its From and Subject still, with some of them or without."""
    return strip_headers(post, keep) if keep else EMPTY_LINE.split(post, maxsplit=1)[-1]


def count_words(texts: list[str], letters: bool = False) -> csr_array:
    """Counts of all words but stop words and those that occur once."""
    if letters:
        texts = [OTHER_THAN_LETTERS.sub(" ", text) for text in texts]
    X = Vectorizer("counts", stop_words="english").fit_transform(texts)
    return csr_array(X[:, np.flatnonzero(np.asarray(X.sum(axis=0)).ravel() > 1)])


# ---- other trees --------------------------------------------------------------------------------------------------------


def count_tree(corpus: DataSet) -> Counted:
    """The documents with one label, both parts of the corpus together."""
    pooled = corpus.pooled()
    rows = [(text, labels[0]) for text, labels in zip(pooled.documents, pooled.labels, strict=True) if len(labels) == 1]
    return Counted(count_words([text for text, _ in rows]), np.asarray([name for _, name in rows]), corpus.taxonomy)


def count_requests() -> Counted:
    """The bundled requests."""
    texts, names, taxonomy = requests_at_leaves()
    return Counted(count_words(texts), np.asarray(names), taxonomy)
