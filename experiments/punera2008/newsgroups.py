"""Isotonic smoothing on the 20 newsgroups, after Punera & Ghosh 2008, section 3.

    python experiments/punera2008/newsgroups.py --data DIR [--part penalty missing hybrids] [--out results.json] [--plots DIR]

DIR holds the posts as ``read_newsgroups`` takes them. Five-fold cross-validation: four fifths of the posts are for training,
and a tenth of these is held out to choose C of the SVMs. Every node, inner or leaf, has a classifier of its own.

penalty   Taxonomy I, one penalty for all nodes
missing   Taxonomy I, some classifiers left out: guesses, smoothing, and smoothing where the shares of classes stand in
hybrids   Taxonomy II, documents at inner nodes, too: node penalties by shares, and one penalty for all nodes

A node is a label of a document where its score is 1/2 or more; with "at least one", a document without any gets the path with
the highest smoothed score. Accuracy is the share of documents whose labels, ancestors included, are exactly the true ones.
Precision, recall and F are those of a document's labels, averaged over documents; no ancestors are added to labels that come
without them. AUC is that of a document's scores over all nodes.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from plots import draw_all
from tables import print_all

from ramify import Taxonomy
from ramify.datasets.newsgroups import add_hybrids, newsgroups_taxonomy, read_newsgroups
from ramify.decisions import IsotonicSmooth
from ramify.decisions.smoothing import share_with_a_child
from ramify.features import Vectorizer
from ramify.learners import NodeClassifiers
from ramify.metrics import document_auc
from ramify.taxonomy import expand_to_ancestors

PENALTIES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, np.inf)
SCALES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, np.inf)
SHARES = tuple(range(0, 100, 10))  # percent of the nodes that have no classifier
PRIOR_WEIGHTS = (0.1, 0.5)
COSTS = (0.1, 1.0, 10.0)
HELD_OUT = 0.1
PER_NODE = 1000
KINDS = {
    "svm": {"base": "svm", "calibration": "platt"},
    "nb": {"base": "nb", "calibration": None},
    "nb-platt": {"base": "nb", "calibration": "platt"},
    "nb-isotonic": {"base": "nb", "calibration": "isotonic"},
}
PARTS = {"penalty": ("I", tuple(KINDS)), "missing": ("I", ("svm",)), "hybrids": ("II", ("svm",))}

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Posts:
    """Texts, each with the name of its class."""

    texts: list[str]
    names: list[str]

    def some(self, chosen: NDArray[np.int64]) -> Posts:
        """Those at the places given."""
        return Posts([self.texts[i] for i in chosen], [self.names[i] for i in chosen])

    def with_hybrids(self, taxonomy: Taxonomy, per_node: int, seed: int) -> Posts:
        """Followed by documents for the inner nodes, made of these posts alone."""
        return Posts(*add_hybrids(self.texts, self.names, taxonomy, per_node, seed))


@dataclass(frozen=True, slots=True)
class Scored:
    """What the classifiers of one fold say of the test documents.

    P: documents × nodes, the probability of each node as its classifier sees it. T: the true labels, ancestors included.
    T_learnt: those of the documents that the classifiers learnt from.
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
        return measures(self.T, rule.refine(P, self.taxonomy), rule.decide(P, self.taxonomy).toarray(), self.taxonomy)


# ---- measures -----------------------------------------------------------------------------------------------------------


def measures(T: Bools, scores: Floats, at_least_one: Bools, taxonomy: Taxonomy) -> dict[str, float]:
    """Means over documents; those that end in ``_one`` are of the labels where a document has at least one."""
    G, leaves = scores >= 0.5, taxonomy.is_leaf
    return {
        **label_measures(T, G),
        **{f"{name}_one": value for name, value in label_measures(T, at_least_one).items()},
        "auc": float(np.nanmean(document_auc(T, scores, taxonomy))),
        "unlabelled": float((~G.any(axis=1)).mean()),
        **readings(T[:, leaves], G[:, leaves], scores[:, leaves]),
    }


def label_measures(T: Bools, G: Bools) -> dict[str, float]:
    """Of the labels given; one that is not there is not right."""
    both, true, given = (part.sum(axis=1) for part in (T & G, T, G))
    return {
        "accuracy": float((T == G).all(axis=1).mean()),
        "precision": float((both / np.maximum(given, 1)).mean()),
        "recall": float((both / true).mean()),
        "f": float((2 * both / (true + given)).mean()),
    }


def readings(T: Bools, G: Bools, scores: Floats) -> dict[str, float]:
    """What else accuracy over the leaves may mean; of k equally high scores the own one counts one k-th."""
    is_best = scores == scores.max(axis=1, keepdims=True)
    return {
        "leaves": float((T == G).all(axis=1).mean()),
        "found": float((T & G).any(axis=1).mean()),
        "each": float((T == G).mean()),
        "best": float(((T & is_best).any(axis=1) / is_best.sum(axis=1)).mean()),
    }


# ---- parts --------------------------------------------------------------------------------------------------------------


def penalty_rows(scored: Scored, _: argparse.Namespace, __: np.random.Generator) -> Rows:
    """No smoothing, and every penalty."""
    rows = {"none": scored.measure(scored.P)}
    return rows | {f"{a:g}": scored.measure_smoothed(scored.P, penalty=a) for a in PENALTIES}


def missing_rows(scored: Scored, given: argparse.Namespace, rng: np.random.Generator) -> Rows:
    """Every share of missing classifiers and every way to do without them, each the mean of some draws."""
    n = len(scored.taxonomy)
    priors = np.asarray(scored.T_learnt.sum(axis=0)).ravel() / scored.T_learnt.shape[0]
    rows = {}
    for share in SHARES:
        draws = [rng.permutation(n)[: round(share / 100 * n)] for _ in range(given.draws if share else 1)]
        found = [fill(scored, missing, priors, rng) for missing in draws]
        rows |= {f"{way} {share}": mean_of(draw[way] for draw in found) for way in found[0]}
    return rows


def fill(scored: Scored, missing: NDArray[np.int64], priors: Floats, rng: np.random.Generator) -> Rows:
    """The paper's guesses by class share, its smoothing, plain isotonic regression, smoothing where class shares stand in."""
    guessed, known = scored.P.copy(), scored.P.copy()
    guessed[:, missing] = rng.random((len(guessed), len(missing))) < priors[missing]
    known[:, missing] = np.nan
    rows = {
        "guesses": scored.measure(guessed),
        "strict": scored.measure_smoothed(known, penalty=np.inf),
        "plain": scored.measure_smoothed(known, penalty=0.0),
    }
    for weight in PRIOR_WEIGHTS:
        settings = {"penalty": np.inf, "prior_weight": weight, "priors": priors}
        rows[f"priors-{weight:g}"] = scored.measure_smoothed(known, **settings)
    return rows


def hybrid_rows(scored: Scored, _: argparse.Namespace, __: np.random.Generator) -> Rows:
    """No smoothing, penalties by shares with every scale, and one penalty for all nodes."""
    shares = share_with_a_child(scored.T_learnt, scored.taxonomy)
    rows = {"none": scored.measure(scored.P)}
    for scale in SCALES:
        by_share = np.where(shares > 0, scale, 0.0) * np.where(shares > 0, shares, 1.0)
        rows[f"shares {scale:g}"] = scored.measure_smoothed(scored.P, penalty=by_share)
        rows[f"one {scale:g}"] = scored.measure_smoothed(scored.P, penalty=scale)
    return rows


ROWS: dict[str, Callable[[Scored, argparse.Namespace, np.random.Generator], Rows]] = {
    "penalty": penalty_rows,
    "missing": missing_rows,
    "hybrids": hybrid_rows,
}


def mean_of(rows: Iterable[dict[str, float]]) -> dict[str, float]:
    """The mean of every measure."""
    found = list(rows)
    return {name: float(np.mean([row[name] for row in found])) for name in found[0]}


# ---- training -----------------------------------------------------------------------------------------------------------


def split(n: int, fold: int, given: argparse.Namespace) -> list[NDArray[np.int64]]:
    """Posts to learn from, posts to choose C by, posts to test on."""
    fold_of = np.random.default_rng(given.seed).permutation(n) % given.folds
    rest = np.random.default_rng([given.seed, fold]).permutation(np.flatnonzero(fold_of != fold))
    n_held_out = round(HELD_OUT * len(rest))
    return [rest[n_held_out:], rest[:n_held_out], np.flatnonzero(fold_of == fold)]


def score_fold(posts: Posts, which: str, kind: str, fold: int, given: argparse.Namespace) -> tuple[Scored, dict[str, Any]]:
    """Train the classifiers of one fold and let them score its test documents; then what is to be told of the training."""
    taxonomy = newsgroups_taxonomy()
    parts = [posts.some(chosen) for chosen in split(len(posts.texts), fold, given)]
    if which == "II":
        sizes = [round(PER_NODE * len(part.texts) / len(posts.texts)) for part in parts]
        parts = [part.with_hybrids(taxonomy, size, given.seed) for part, size in zip(parts, sizes, strict=True)]
    learnt, held_out, test = parts
    vectorizer = Vectorizer(sublinear_tf=True) if kind == "svm" else Vectorizer("counts")
    X, X_held_out, X_test = vectorizer.fit_transform(learnt.texts), *map(vectorizer.transform, (held_out.texts, test.texts))
    Y, Y_held_out, Y_test = (taxonomy.encode([[name] for name in part.names]) for part in parts)
    start = time.perf_counter()
    trained = {C: train(taxonomy, X, Y, kind, C, given.threads) for C in (COSTS if kind == "svm" else (None,))}
    seconds = (time.perf_counter() - start) / len(trained)
    T_held_out = expand_to_ancestors(Y_held_out, taxonomy).toarray()
    best = max(trained, key=lambda C: quality(trained[C], X_held_out, T_held_out))
    P, T = memberships(trained[best], X_test), expand_to_ancestors(Y_test, taxonomy).toarray()
    scored = Scored(taxonomy, P, T, expand_to_ancestors(Y, taxonomy))
    return scored, {"C": best, "seconds": seconds, "learnt": X.shape[0], "test": len(P), "words": X.shape[1]}


def train(taxonomy: Taxonomy, X: Any, Y: Any, kind: str, C: float | None, threads: int) -> NodeClassifiers:
    """A classifier at every node, each against all other documents; naive Bayes has no C."""
    cost = {} if C is None else {"C": C}
    return NodeClassifiers(taxonomy, negatives="all", n_jobs=threads, **cost, **KINDS[kind]).fit(X, Y)


def memberships(trained: NodeClassifiers, X: Any) -> Floats:
    """P(node), as each node's classifier sees it."""
    return np.asarray(trained.memberships(trained.scores(X)), dtype=np.float64)


def quality(trained: NodeClassifiers, X: Any, T: Bools) -> float:
    """F of a document without any smoothing."""
    return label_measures(T, memberships(trained, X) >= 0.5)["f"]


# ---- all of it ----------------------------------------------------------------------------------------------------------


def main() -> None:
    """Fill in what the results lack, print the tables, draw the plots."""
    given = parse()
    results = json.loads(given.out.read_text()) if given.out and given.out.exists() else {}
    posts = None
    for which, kind, fold, parts in plan(given):
        folds = results.setdefault(f"{which} {kind}", {})
        if all(part in folds.get(str(fold), {}) for part in parts):
            continue
        posts = posts or read_posts(given)
        folds[str(fold)] = folds.get(str(fold), {}) | run(posts, which, kind, fold, parts, given)
        print(f"{which} {kind} fold {fold}: {folds[str(fold)]['seconds']:.1f} s a training", flush=True)
        if given.out:
            given.out.write_text(json.dumps(results, indent=1))
    average = {name: averages_of(folds) for name, folds in results.items()}
    print_all(results, average)
    if given.plots:
        draw_all(average, given.plots)


def plan(given: argparse.Namespace) -> Iterator[tuple[str, str, int, list[str]]]:
    """What to train, and the parts that take it: taxonomy, learner, fold, parts."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for part in given.part:
        which, kinds = PARTS[part]
        for kind in kinds:
            wanted.setdefault((which, kind), []).append(part)
    for (which, kind), parts in wanted.items():
        for fold in range(given.folds):
            yield which, kind, fold, parts


def run(posts: Posts, which: str, kind: str, fold: int, parts: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """Everything about one fold."""
    scored, told = score_fold(posts, which, kind, fold, given)
    return told | {part: ROWS[part](scored, given, np.random.default_rng([given.seed, fold])) for part in parts}


def averages_of(folds: dict[str, Any]) -> dict[str, Rows]:
    """The rows of the parts that all folds have, each the mean over the folds."""
    found = list(folds.values())
    shared = [part for part in PARTS if all(part in fold for fold in found)]
    return {part: {row: mean_of(fold[part][row] for fold in found) for row in found[0][part]} for part in shared}


def read_posts(given: argparse.Namespace) -> Posts:
    """All posts, or some of them."""
    corpus = read_newsgroups(given.data)
    posts = Posts(list(corpus.documents), [labels[0] for labels in corpus.labels])
    chosen = np.random.default_rng(given.seed).permutation(len(posts.texts))[: given.sample]
    return posts.some(np.sort(chosen))


def parse() -> argparse.Namespace:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--part", nargs="+", default=list(PARTS), choices=list(PARTS))
    options.add_argument("--folds", type=int, default=5)
    options.add_argument("--draws", type=int, default=30, help="of missing classifiers, in every fold")
    options.add_argument("--sample", type=int, help="take so many of the posts only")
    options.add_argument("--threads", type=int, default=-1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, help="results as JSON; what is there is not run again")
    options.add_argument("--plots", type=Path, help="folder for the plots")
    return options.parse_args()


if __name__ == "__main__":
    main()
