"""The documents and how much is done with them: the newsgroups, or the bundled requests in their place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.bundled import requests_at_leaves
from experiments.newsgroups import add_hybrids, join_posts, newsgroups_taxonomy
from experiments.study import Run
from ramify.taxonomy import Taxonomy

SHOP = "shop"


@dataclass(frozen=True, slots=True)
class Posts:
    """Texts, each with the name of its class, a leaf of the taxonomy."""

    texts: list[str]
    names: list[str]
    taxonomy: Taxonomy

    def some(self, chosen: NDArray[np.int64]) -> Posts:
        """Those at the places given."""
        return Posts([self.texts[i] for i in chosen], [self.names[i] for i in chosen], self.taxonomy)

    def sample(self, size: int | None, seed: int) -> Posts:
        """Some of them, drawn at random; all when no size is given."""
        chosen = np.random.default_rng(seed).permutation(len(self.texts))[:size]
        return self.some(np.sort(chosen))

    def with_hybrids(self, per_node: int, seed: int) -> Posts:
        """Followed by documents for the inner nodes, made of these posts alone."""
        return Posts(*add_hybrids(self.texts, self.names, self.taxonomy, per_node, seed), self.taxonomy)


@dataclass(frozen=True, slots=True)
class Protocol:
    """How much is done.

    folds: into which the posts are split. tested: how many of these are. draws: of missing classifiers, in every fold.
    per_node: hybrid documents of an inner node, over all folds. sample: take so many of the posts only.
    """

    folds: int
    tested: int
    draws: int
    per_node: int
    sample: int | None = None


NEWSGROUPS = {
    "full": Protocol(folds=5, tested=5, draws=30, per_node=1000),
    "quick": Protocol(folds=5, tested=2, draws=5, per_node=160, sample=3000),
    "tiny": Protocol(folds=2, tested=1, draws=1, per_node=8),
}
REQUESTS = {
    "full": Protocol(folds=5, tested=5, draws=30, per_node=54),  # as many as a leaf has on average
    "quick": Protocol(folds=5, tested=2, draws=3, per_node=54),
    "tiny": Protocol(folds=2, tested=1, draws=1, per_node=6, sample=600),
}
Source = Callable[[Run], tuple[Posts, Protocol]]


def newsgroups(run: Run) -> tuple[Posts, Protocol]:
    """The posts with From and Subject, as in the release that the paper uses."""
    held, protocol = run.corpus("20newsgroups"), run.choose(**NEWSGROUPS)
    joined = join_posts(held.title, (held.train, held.test))
    posts = Posts(list(joined.documents), [labels[0] for labels in joined.labels], newsgroups_taxonomy())
    return posts.sample(protocol.sample, run.seed), protocol


def requests(run: Run) -> tuple[Posts, Protocol]:
    """The bundled requests with one label that is a leaf, below one root, as the newsgroups are."""
    texts, names, forest = requests_at_leaves()
    protocol = run.choose(**REQUESTS)
    return Posts(texts, names, below_one_root(forest)).sample(protocol.sample, run.seed), protocol


def below_one_root(forest: Taxonomy) -> Taxonomy:
    """The trees of a forest as branches of one tree.

    >>> tree = below_one_root(Taxonomy.from_edges([("tv", None), ("radio", None)]))
    >>> tree.names
    ('shop', 'tv', 'radio')
    """
    parents = [forest.names[parent] if parent >= 0 else SHOP for parent in forest.parent.tolist()]
    return Taxonomy.from_edges([(SHOP, None), *zip(forest.names, parents, strict=True)])
