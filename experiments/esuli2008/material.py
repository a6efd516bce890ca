"""Corpora as the presence of terms, and the trees over their categories."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from experiments.data import DataSet
from experiments.trees import narrowed
from ramify.data import Corpus
from ramify.features import TermSelector, Vectorizer
from ramify.metrics.flat import per_node
from ramify.taxonomy import LearnedTaxonomy, Taxonomy, learn_groups

N_GROUPS = 4
EACH = 60  # terms that each category chooses where the paper pools them
N_TERMS = 2012  # what the paper came to with 60 a category
SHOWN = 6  # categories of a group that are named
NUMBERS = re.compile("[0-9]+")

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Words:
    """Texts to test on, without what is not a word, and the vectorizer that reads them."""

    texts: list[str]
    vectorizer: Vectorizer


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents to train on and to test on.

    X, X_test: documents × terms, 1 where the term is. words: None where there are no texts.
    judged: what AdaBoost.MH learns over, and what answers are judged on. trees: what TreeBoost.MH learns over; each has all
    nodes of `judged`. n_terms: how many are chosen where not all terms are taken.
    """

    X: csr_array
    X_test: csr_array
    labels: list[list[str]]
    labels_test: list[list[str]]
    judged: Taxonomy
    trees: dict[str, Taxonomy]
    n_terms: int
    words: Words | None = None

    def on_judged(self, Y: Any, tree: Taxonomy) -> csr_array:
        """Labels over the nodes of a tree as labels over those that are judged."""
        return csr_array(csr_array(Y)[:, [tree.index(name) for name in self.judged.names]])

    def truth(self) -> csr_array:
        """The labels of the test documents."""
        return self.judged.encode(self.labels_test)

    def sizes(self) -> Ints:
        """How many training documents each category has."""
        return per_node(self.judged.encode(self.labels))


@dataclass(frozen=True, slots=True)
class News:
    """Reuters-21578. weighted: the training documents as tf-idf. learnt: the tree of groups. official: that of the corpus."""

    collection: Collection
    weighted: csr_array
    learnt: LearnedTaxonomy
    official: Taxonomy


# ---- reading ------------------------------------------------------------------------------------------------------------


def read_news(data: DataSet, keeps_numbers: bool = False) -> News:
    """The stories, without numbers and stop words, stemmed; and a tree learned on the training documents alone."""
    train, test = data.train, data.test
    X, X_test, words = read_presence(train, test, keeps_numbers)
    weighted = make_vectorizer("tf-idf").fit_transform(clean(train.documents, keeps_numbers))
    categories = Taxonomy.flat(sorted({name for names in train.labels for name in names}))
    learnt = learn_groups(weighted, categories.encode(train.labels), categories.names, min(N_GROUPS, len(categories) - 1))
    trees = {"learnt": learnt.taxonomy, "official": data.taxonomy}
    collection = Collection(X, X_test, train.labels, test.labels, categories, trees, N_TERMS, words)
    return News(collection, weighted, learnt, data.taxonomy)


def read_tree(train: Corpus, test: Corpus, taxonomy: Taxonomy, n_terms: int) -> Collection:
    """A corpus with a tree of its own: its categories are those that have training documents."""
    X, X_test, words = read_presence(train, test)
    kept = np.flatnonzero(per_node(taxonomy.encode(train.labels)))
    tree = narrowed(taxonomy, kept)
    labels, labels_test = (tree.decode(taxonomy.encode(part.labels)[:, kept]) for part in (train, test))
    return Collection(X, X_test, labels, labels_test, tree, {"tree": tree}, n_terms, words)


def read_presence(train: Corpus, test: Corpus, keeps_numbers: bool = False) -> tuple[csr_array, csr_array, Words | None]:
    """Which terms both parts have; of vectors, which features."""
    if train.has_vectors:
        width = train.documents.shape[1]
        X, X_test = (csr_array(part.with_width(width).documents != 0, dtype=np.float32) for part in (train, test))
        return X, X_test, None
    texts, texts_test = (clean(part.documents, keeps_numbers) for part in (train, test))
    vectorizer = make_vectorizer("binary")
    return vectorizer.fit_transform(texts), vectorizer.transform(texts_test), Words(texts_test, vectorizer)


def clean(texts: Iterable[str], keeps_numbers: bool) -> list[str]:
    """Texts with blanks in place of digits."""
    return list(texts) if keeps_numbers else [NUMBERS.sub(" ", text) for text in texts]


def make_vectorizer(weighting: str) -> Vectorizer:
    """The paper's words: no stop words, Porter's stems; one thread, since it is timed."""
    return Vectorizer(weighting, stop_words="english-long", stemmer="porter", n_jobs=1)


# ---- terms and trees ----------------------------------------------------------------------------------------------------


def choose_globally(of: Collection) -> Ints:
    """The columns that categories choose in turns, as many as the paper had."""
    n_terms = min(of.n_terms, of.X.shape[1])
    chosen = TermSelector(n_terms, measure="information-gain", join="round-robin")
    return np.asarray(chosen.fit(of.X, of.judged.encode(of.labels)).columns_)


def count_pooled(of: Collection) -> int:
    """How many different columns are among the best 60 of each category, chosen apart from the others'."""
    Y = of.judged.encode(of.labels)
    each = min(EACH, of.X.shape[1])
    taken = [TermSelector(each).fit(of.X, Y[:, [j]].toarray().ravel()).columns_ for j in range(Y.shape[1])]
    return len(np.unique(np.concatenate(taken)))


def shuffled(tree: Taxonomy, seed: int) -> Taxonomy:
    """The same tree with its leaves in places drawn at random: groups as large as before, without a meaning."""
    leaves = [name for name, is_leaf in zip(tree.names, tree.is_leaf, strict=True) if is_leaf]
    drawn = dict(zip(leaves, np.random.default_rng(seed).permutation(leaves).tolist(), strict=True))
    parents = [tree.names[p] if p >= 0 else None for p in tree.parent.tolist()]
    return Taxonomy.from_edges((drawn.get(name, name), parent) for name, parent in zip(tree.names, parents, strict=True))


# ---- telling ------------------------------------------------------------------------------------------------------------


def tell(of: Collection) -> dict[str, Any]:
    """Numbers to compare with the paper's."""
    sizes, tree = of.sizes(), of.judged
    each = np.array([len(names) for names in of.labels])
    return {
        "train": len(of.labels),
        "test": len(of.labels_test),
        "categories": len(tree),
        "leaves": int(tree.is_leaf.sum()),
        "inner": int((~tree.is_leaf).sum()),
        "labels a document": float(each.mean()),
        "most labels": int(max(len(names) for names in (*of.labels, *of.labels_test))),
        "mean size": float(sizes.mean()),
        "least size": int(sizes.min()),
        "largest size": int(sizes.max()),
        "terms": int(of.X.shape[1]),
    }


def tell_news(news: News) -> dict[str, Any]:
    """The same, the pooled terms, and what is in the groups."""
    of = news.collection
    more = {"pooled terms": count_pooled(of), "learnt groups": learnt_groups(news), "official groups": official_groups(news)}
    return tell(of) | more


def learnt_groups(news: News) -> list[list[Any]]:
    """Number of categories and documents, the largest categories and the telling stems of every learnt group."""
    terms: Any = [] if news.collection.words is None else news.collection.words.vectorizer.terms_
    return [
        [len(group.categories), group.documents, group.categories[:SHOWN], [terms[t] for t in group.top_features]]
        for group in news.learnt.groups
    ]


def official_groups(news: News) -> list[list[Any]]:
    """Name, number of categories and documents, and the largest categories of every group of the corpus."""
    of, tree = news.collection, news.official
    sizes = dict(zip(of.judged.names, of.sizes().tolist(), strict=True))
    found = []
    for node in tree.roots.tolist():
        names = sorted((tree.names[child] for child in tree.children_of(node)), key=lambda name: -sizes.get(name, 0))
        documents = sum(not set(names).isdisjoint(held) for held in of.labels)
        found.append([tree.names[node].removeprefix("group:"), len(names), documents, names[:SHOWN]])
    return sorted(found, key=lambda row: -row[2])
