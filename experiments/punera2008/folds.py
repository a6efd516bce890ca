"""Training and scoring of one fold.

Four of five parts of the posts are for training, and a tenth of these is held out to choose C of the SVMs. Every node, inner
or leaf, has a classifier of its own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.punera2008.measures import Bools, Floats, label_measures, measures
from experiments.punera2008.posts import Posts, Protocol
from ramify.decisions import IsotonicSmooth
from ramify.features import Vectorizer
from ramify.learners import NodeClassifiers
from ramify.taxonomy import Taxonomy, expand_to_ancestors

COSTS = (0.1, 1.0, 10.0)
HELD_OUT = 0.1
KINDS: dict[str, dict[str, Any]] = {
    "svm": {"base": "svm", "calibration": "platt"},
    "nb": {"base": "nb", "calibration": None},
    "nb-platt": {"base": "nb", "calibration": "platt"},
    "nb-isotonic": {"base": "nb", "calibration": "isotonic"},
}


@dataclass(frozen=True, slots=True)
class Scored:
    """What the classifiers of one fold say of the test documents.

    P: documents × nodes, the probability of each node as its classifier sees it. T: the true labels, ancestors included.
    T_learnt: those of the documents that the classifiers were trained on.
    """

    taxonomy: Taxonomy
    P: Floats
    T: Bools
    T_learnt: Any

    def measure(self, scores: Floats) -> dict[str, float]:
        """All measures of scores of the test documents, without smoothing; no document is made to have a label."""
        return measures(self.T, scores, scores >= 0.5, self.taxonomy)

    def measure_smoothed(self, P: Floats, **settings: Any) -> dict[str, float]:
        """All measures of scores after smoothing."""
        rule = IsotonicSmooth(at_least_one=True, **settings)
        smoothed = np.asarray(rule.refine(P, self.taxonomy), dtype=np.float64)
        return measures(self.T, smoothed, rule.cut(smoothed, P, self.taxonomy).toarray(), self.taxonomy)


def split(n: int, fold: int, folds: int, seed: int) -> list[NDArray[np.int64]]:
    """Posts to train on, posts to choose C by, posts to test on."""
    fold_of = np.random.default_rng(seed).permutation(n) % folds
    rest = np.random.default_rng([seed, fold]).permutation(np.flatnonzero(fold_of != fold))
    n_held_out = round(HELD_OUT * len(rest))
    return [rest[n_held_out:], rest[:n_held_out], np.flatnonzero(fold_of == fold)]


def parts_of(posts: Posts, fold: int, protocol: Protocol, seed: int, hybrids: bool) -> list[Posts]:
    """The parts of a fold; hybrid documents are made from the posts of one part alone."""
    parts = [posts.some(chosen) for chosen in split(len(posts.texts), fold, protocol.folds, seed)]
    if not hybrids:
        return parts
    sizes = [round(protocol.per_node * len(part.texts) / len(posts.texts)) for part in parts]
    return [part.with_hybrids(size, seed) for part, size in zip(parts, sizes, strict=True)]


def score_fold(parts: list[Posts], kind: str, threads: int) -> tuple[Scored, dict[str, Any]]:
    """Train the classifiers of one fold and let them score its test documents; then what is to be told of the training."""
    taxonomy = parts[0].taxonomy
    vectorizer = Vectorizer(sublinear_tf=True) if kind == "svm" else Vectorizer("counts")
    X = vectorizer.fit_transform(parts[0].texts)
    X_held_out, X_test = (vectorizer.transform(part.texts) for part in parts[1:])
    Y, Y_held_out, Y_test = (taxonomy.encode([[name] for name in part.names]) for part in parts)
    start = time.perf_counter()
    trained = {C: train(taxonomy, X, Y, kind, C, threads) for C in (COSTS if kind == "svm" else (None,))}
    seconds = (time.perf_counter() - start) / len(trained)
    T_held_out = expand_to_ancestors(Y_held_out, taxonomy).toarray()
    best = max(trained, key=lambda C: quality(trained[C], X_held_out, T_held_out))
    P, T = memberships(trained[best], X_test), expand_to_ancestors(Y_test, taxonomy).toarray()
    scored = Scored(taxonomy, P, T, expand_to_ancestors(Y, taxonomy))
    return scored, {"C": best, "seconds": seconds, "learnt": X.shape[0], "test": len(P), "words": X.shape[1]}


def train(taxonomy: Taxonomy, X: Any, Y: Any, kind: str, C: float | None, threads: int) -> NodeClassifiers:
    """A classifier at every node, each against all other documents; naive Bayes has no C."""
    cost: dict[str, Any] = {} if C is None else {"C": C}
    return NodeClassifiers(taxonomy, negatives="all", n_jobs=threads, **cost, **KINDS[kind]).fit(X, Y)


def memberships(trained: NodeClassifiers, X: Any) -> Floats:
    """P(node), as each node's classifier sees it."""
    return np.asarray(trained.memberships(trained.scores(X)), dtype=np.float64)


def quality(trained: NodeClassifiers, X: Any, T: Bools) -> float:
    """F of a document without any smoothing."""
    return label_measures(T, memberships(trained, X) >= 0.5)["f"]
