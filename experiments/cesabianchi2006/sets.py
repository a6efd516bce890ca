"""The sets of section 5, and what stands in for those that are not at hand."""

from __future__ import annotations

import numpy as np

from experiments.study import Run
from experiments.synthetic import make_cesa_bianchi
from ramify.data import load_electronics
from ramify.data.synthetic import Problem
from ramify.features import Vectorizer


def make_synthetic(name: str, run: Run) -> Problem:
    """Synth1 or Synth2, drawn anew by section 5.1."""
    return make_cesa_bianchi(name, n_docs=run.choose(full=40_000, quick=4_000, tiny=40), seed=run.seed)


def read_rcv1(run: Run) -> Problem:
    """The first stories in the order of time: tf-idf vectors of unit length, as they are published."""
    corpus = run.corpus("rcv1")
    stories = corpus.pooled(first=run.choose(full=100_000, quick=10_000, tiny=500))
    return Problem(stories.documents, corpus.taxonomy.encode(stories.labels), corpus.taxonomy)


def read_electronics(run: Run) -> Problem:
    """The bundled support requests in random order, as tf-idf vectors of unit length."""
    shop = load_electronics()
    texts, labels = ([*getattr(shop.train, what), *getattr(shop.test, what)] for what in ("documents", "labels"))
    order = np.random.default_rng(run.seed).permutation(len(texts))[: run.choose(full=None, quick=None, tiny=150)]
    X = Vectorizer(n_jobs=run.threads).fit_transform([texts[i] for i in order])
    return Problem(X, shop.taxonomy.encode([labels[i] for i in order]), shop.taxonomy)
