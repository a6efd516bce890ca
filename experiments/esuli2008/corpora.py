"""Reuters-21578 and clinical reports as matrices, and trees over the categories of Reuters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from ramify import Taxonomy
from ramify.datasets import read_corpus
from ramify.features import TermSelector, Vectorizer
from ramify.taxonomy import LearntTaxonomy, learn_groups, read_taxonomy

N_GROUPS = 4
N_TERMS = 2012  # what the paper came to with 60 a category
EACH = 60
SHOWN = 6  # categories of a group that are named
NUMBERS = re.compile("[0-9]+")

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class News:
    """Stories to learn from and to test on.

    X: documents × terms, 1 where the term is. texts: as the vectorizer takes them. categories: the taxonomy without parents.
    learnt: the tree of groups. official: that of the corpus.
    """

    X: csr_array
    X_test: csr_array
    texts_test: list[str]
    vectorizer: Vectorizer
    labels: list[list[str]]
    labels_test: list[list[str]]
    categories: Taxonomy
    weighted: csr_array
    learnt: LearntTaxonomy
    official: Taxonomy

    def at_categories(self, Y: Any, tree: Taxonomy) -> csr_array:
        """Labels over the nodes of a tree as labels over the categories."""
        return csr_array(csr_array(Y)[:, [tree.index(name) for name in self.categories.names]])

    def sizes(self) -> Ints:
        """How many training documents each category has."""
        return np.bincount(self.categories.encode(self.labels).indices, minlength=len(self.categories))


def read_news(folder: Path, keeps_numbers: bool = False) -> News:
    """The stories, without numbers and stop words, stemmed; and trees learnt from the training documents alone."""
    train, test = (read_corpus(folder / f"{part}.jsonl.gz") for part in ("train", "test"))
    texts, texts_test = (clean(part.documents, keeps_numbers) for part in (train, test))
    words = make_vectorizer("binary")
    weighted = make_vectorizer("tf-idf").fit_transform(texts)
    categories = Taxonomy.flat(sorted({name for names in train.labels for name in names}))
    return News(
        X=words.fit_transform(texts),
        X_test=words.transform(texts_test),
        texts_test=texts_test,
        vectorizer=words,
        labels=train.labels,
        labels_test=test.labels,
        categories=categories,
        weighted=weighted,
        learnt=learn_groups(weighted, categories.encode(train.labels), categories.names, N_GROUPS),
        official=read_taxonomy(folder / "taxonomy.tsv"),
    )


def clean(texts: Iterable[str], keeps_numbers: bool) -> list[str]:
    """Texts with blanks in place of digits."""
    return list(texts) if keeps_numbers else [NUMBERS.sub(" ", text) for text in texts]


def make_vectorizer(weighting: str) -> Vectorizer:
    """The paper's words: no stop words, Porter's stems; one thread, since it is timed."""
    return Vectorizer(weighting, stop_words="english-long", stemmer="porter", n_jobs=1)


def choose_globally(news: News) -> Ints:
    """The columns that categories choose in turns, as many as the paper had."""
    chosen = TermSelector(N_TERMS, measure="information-gain", join="round-robin")
    return np.asarray(chosen.fit(news.X, news.categories.encode(news.labels)).columns_)


def count_pooled(news: News) -> int:
    """How many different columns are among the best 60 of each category, chosen apart from the others'."""
    Y = news.categories.encode(news.labels)
    taken = [TermSelector(EACH).fit(news.X, Y[:, [j]].toarray().ravel()).columns_ for j in range(Y.shape[1])]
    return len(np.unique(np.concatenate(taken)))


def tell(news: News) -> dict[str, Any]:
    """Numbers to compare with the paper's, and what is in the groups."""
    sizes = news.sizes()
    each, each_test = (np.array([len(names) for names in part]) for part in (news.labels, news.labels_test))
    terms = news.vectorizer.terms_
    groups = [[len(g.categories), g.documents, g.categories[:SHOWN], [terms[t] for t in g.telling]] for g in news.learnt.groups]
    return {
        "train": len(each),
        "test": len(each_test),
        "categories": len(sizes),
        "labels a document": float(each.mean()),
        "most labels": int(max(each.max(), each_test.max())),
        "most labels, training": int(each.max()),
        "mean size": float(sizes.mean()),
        "least size": int(sizes.min()),
        "largest size": int(sizes.max()),
        "terms": int(news.X.shape[1]),
        "pooled terms": count_pooled(news),
        "learnt groups": groups,
        "official groups": official_groups(news),
    }


def official_groups(news: News) -> list[list[Any]]:
    """Name, number of categories and documents, and the largest categories of every group of the corpus."""
    tree, sizes = news.official, dict(zip(news.categories.names, news.sizes().tolist(), strict=True))
    found = []
    for node in tree.roots.tolist():
        names = sorted((tree.names[child] for child in tree.children_of(node)), key=lambda name: -sizes[name])
        documents = sum(not set(names).isdisjoint(held) for held in news.labels)
        found.append([tree.names[node].removeprefix("group:"), len(names), documents, names[:SHOWN]])
    return sorted(found, key=lambda row: -row[2])


def shuffled(tree: Taxonomy, seed: int) -> Taxonomy:
    """The same tree with its leaves in places drawn at random: groups as large as before, without a meaning."""
    leaves = [name for name, is_leaf in zip(tree.names, tree.is_leaf, strict=True) if is_leaf]
    drawn = dict(zip(leaves, np.random.default_rng(seed).permutation(leaves).tolist(), strict=True))
    parents = [tree.names[p] if p >= 0 else None for p in tree.parent.tolist()]
    return Taxonomy.from_edges((drawn.get(name, name), parent) for name, parent in zip(tree.names, parents, strict=True))


def read_reports(folder: Path) -> tuple[csr_array, csr_array, Taxonomy]:
    """All clinical reports, those to learn from and to test on together: X, Y over the nodes of the tree, and the tree."""
    parts = [read_corpus(folder / f"{part}.svm.gz") for part in ("train", "test")]
    tree = read_taxonomy(folder / "taxonomy.tsv")
    width = max(part.documents.shape[1] for part in parts)
    for part in parts:
        part.documents.resize((part.documents.shape[0], width))
    X = csr_array(vstack([part.documents for part in parts], format="csr"))
    return X, tree.encode([names for part in parts for names in part.labels]), tree
