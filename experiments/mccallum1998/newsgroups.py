"""Shrinkage on the 20 newsgroups, after McCallum, Rosenfeld, Mitchell & Ng 1998, sections 3 and 4.

    python experiments/mccallum1998/newsgroups.py --data DIR [--trees DIR ...] [--part weights sizes words branches]
        [--out results.json] [--plots DIR]

--data holds the posts as ``read_newsgroups`` takes them; --trees are folders with other corpora for the part "branches", each
with ``train.*``, ``test.*`` and ``taxonomy.tsv``. Of the 20 newsgroups 15 are used, under five topics.

weights   mixture weights of six classes, learnt from few and from many documents (Table 1)
sizes     accuracy against the number of training documents (Figure 3)
words     accuracy against the number of words, chosen for all classes at once or at every inner node (as Figures 2 and 4)
branches  accuracy and work when only the best branches are followed

Every trial puts the posts in a random order of which any beginning has about the same share of every class. Training sets are
beginnings of it, so that smaller ones are parts of larger ones; the test set, whatever the training set, is all that comes
after the largest. The vocabulary is that of the whole corpus ("all", as in the paper) or of the training documents ("seen").
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from corpora import CHILDREN, Counted, read_tree, read_usenet
from numpy.typing import NDArray
from plots import draw_all
from scipy.sparse import csr_array
from tables import print_all

from ramify import Taxonomy
from ramify.features import TermSelector
from ramify.learners import MultinomialNaiveBayes, ShrinkageNaiveBayes

SIZES = (59, 117, 235, 469, 937, 1874, 3749, 7497)  # halved again and again, as 7,497 and 235 of the paper are
FEW_AND_MANY = (235, 7497)
SHOWN = (*CHILDREN["politics"], *CHILDREN["religion"])
WORDS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
WORDS_FROM = (235, 1500, 7497)
BRANCHES = (1, 2, 3, None)
SHARPER = 0.01  # what flat naive Bayes adds to every count, beside Laplace's 1

Ints = NDArray[np.int64]
Part = Callable[[Counted, argparse.Namespace], dict[str, Any]]


# ---- trials -------------------------------------------------------------------------------------------------------------


def trials(posts: Counted, given: argparse.Namespace) -> Iterator[tuple[int, Ints, Ints]]:
    """The number of each trial, the posts to draw training sets from, in order, and those to test on."""
    for trial in range(given.trials):
        order = posts.draw_order(given.seed, trial)
        yield trial, order[: max(SIZES)], np.sort(order[max(SIZES) :])


def accuracy(learner: Any, X: csr_array, names: NDArray[np.str_]) -> float:
    """How many documents have their own class as the likeliest."""
    return float((likeliest(learner, X) == names).mean())


def likeliest(learner: Any, X: csr_array) -> NDArray[np.str_]:
    """The likeliest class of every document."""
    return np.asarray(learner.taxonomy_.names)[np.nanargmax(learner.scores(X), axis=1)]


def topics(names: NDArray[np.str_]) -> NDArray[np.str_]:
    """The topic above every newsgroup."""
    topic_of = {name: topic for topic, below in CHILDREN.items() for name in below}
    return np.asarray([topic_of[name] for name in names])


# ---- parts --------------------------------------------------------------------------------------------------------------


def run_weights(posts: Counted, given: argparse.Namespace) -> dict[str, Any]:
    """Of each class the mixture weights and the share of words that no other training document has, trial by trial."""
    found: dict[str, Any] = {}
    for _, pool, _ in trials(posts, given):
        for size in FEW_AND_MANY:
            X, names = posts.X[pool[:size]], posts.names[pool[:size]]
            for vocabulary, words in (("all", np.arange(X.shape[1])), ("seen", np.unique(X.indices))):
                learnt = ShrinkageNaiveBayes(posts.taxonomy).fit(X[:, words], names)
                classes = found.setdefault(vocabulary, {}).setdefault(str(size), {})
                for name in SHOWN:
                    lists = classes.setdefault(name, {"weights": [], "unseen": []})
                    lists["weights"].append([weight for _, weight in learnt.weights_for(name)])
                    lists["unseen"].append(share_unseen(X, names == name))
    return found


def share_unseen(X: csr_array, mine: NDArray[np.bool_]) -> float:
    """The share of some documents' words that no other document has; only the uniform estimate knows them."""
    is_alone = np.bincount(X.indices, minlength=X.shape[1]) == 1
    here = X[np.flatnonzero(mine)]
    return float(here.data[is_alone[here.indices]].sum() / here.data.sum())


def run_sizes(posts: Counted, given: argparse.Namespace) -> dict[str, Any]:
    """Accuracies of every learner for every size of the training set, by newsgroup and by topic, trial by trial."""
    found: dict[str, Any] = {}
    for trial, pool, test in trials(posts, given):
        X_test, names_test = posts.X[test], posts.names[test]
        for size in SIZES:
            X, names = posts.X[pool[:size]], posts.names[pool[:size]]
            seen = np.unique(X.indices)
            for way, learner in contestants(posts, trial).items():
                words = seen if way.endswith("seen") else np.arange(X.shape[1])
                given_names = likeliest(learner.fit(X[:, words], names), X_test[:, words])
                lists = found.setdefault(way, {}).setdefault(str(size), {"accuracy": [], "topic": []})
                lists["accuracy"].append(float((given_names == names_test).mean()))
                lists["topic"].append(float((topics(given_names) == topics(names_test)).mean()))
    return found


def contestants(posts: Counted, trial: int) -> dict[str, Any]:
    """Flat naive Bayes, shrinkage, and what tells where the gain comes from."""
    return {
        "nb": MultinomialNaiveBayes(posts.taxonomy),
        "shrinkage": ShrinkageNaiveBayes(posts.taxonomy),
        "nb-sharper": MultinomialNaiveBayes(posts.taxonomy, alpha=SHARPER),
        "shrinkage-flat": ShrinkageNaiveBayes(posts.without_parents()),
        "shrinkage-held-out": ShrinkageNaiveBayes(posts.taxonomy, weights="held-out", random_state=trial),
        "nb-seen": MultinomialNaiveBayes(posts.taxonomy),
        "shrinkage-seen": ShrinkageNaiveBayes(posts.taxonomy),
    }


def run_words(posts: Counted, given: argparse.Namespace) -> dict[str, Any]:
    """By size of the training set, learner with selection, and words asked for: accuracies, and how many words were kept."""
    found: dict[str, Any] = {str(size): {} for size in WORDS_FROM}
    for _, pool, test in trials(posts, given):
        for size in WORDS_FROM:
            train = pool[:size]
            for scope, asked, columns in selections(posts.X[train], posts.names[train], posts.taxonomy):
                for way, learner in (("nb", MultinomialNaiveBayes), ("shrinkage", ShrinkageNaiveBayes)):
                    fitted = learner(posts.taxonomy).fit(posts.X[train][:, columns], posts.names[train])
                    lists = found[str(size)].setdefault(f"{way} {scope}", {}).setdefault(asked, {"accuracy": [], "kept": []})
                    lists["accuracy"].append(accuracy(fitted, posts.X[test][:, columns], posts.names[test]))
                    lists["kept"].append(len(columns))
    return found


def selections(X: csr_array, names: NDArray[np.str_], taxonomy: Taxonomy) -> Iterator[tuple[str, str, Ints]]:
    """Where words are chosen, how many, and which; last all of them."""
    Y = taxonomy.encode([[name] for name in names])
    for scope in ("flat", "hierarchical"):
        for n in WORDS:
            chosen = TermSelector(n, measure="mutual-information", join="sum", scope=scope, taxonomy=taxonomy)
            yield scope, str(n), chosen.fit(X, Y).columns_
        yield scope, "all", np.arange(X.shape[1])


def run_branches(posts: Counted, given: argparse.Namespace) -> dict[str, Any]:
    """By corpus and number of branches: accuracies, nodes that a document is compared with, seconds a thousand documents."""
    found = {"newsgroups": follow_branches(posts, max(SIZES), given)}
    for folder in given.trees:
        corpus = read_tree(folder)
        found[folder.name] = follow_branches(corpus, len(corpus.names) // 2, given)
    return found


def follow_branches(corpus: Counted, size: int, given: argparse.Namespace) -> dict[str, Any]:
    """One corpus, of which so many documents are learnt from and the others classified."""
    found: dict[str, Any] = {"corpus": corpus.told(), "train": size}
    for trial in range(given.trials):
        order = corpus.draw_order(given.seed, trial)
        train, test = order[:size], np.sort(order[size:])
        X, names = corpus.X[test], corpus.names[test]
        learnt = ShrinkageNaiveBayes(corpus.taxonomy, branches=1).fit(corpus.X[train], corpus.names[train])
        for branches in BRANCHES:
            learnt.branches = branches
            compared = float(learnt.count_comparisons(X).mean())
            seconds = time_scoring(learnt, X) * 1000 / len(test)
            row = {"accuracy": accuracy(learnt, X, names), "compared": compared, "seconds": seconds}
            lists = found.setdefault(str(branches), {name: [] for name in row})
            for name, value in row.items():
                lists[name].append(value)
    return found


def time_scoring(learner: Any, X: csr_array) -> float:
    """The shortest of three times, in seconds."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        learner.scores(X)
        times.append(time.perf_counter() - start)
    return min(times)


PARTS: dict[str, Part] = {"weights": run_weights, "sizes": run_sizes, "words": run_words, "branches": run_branches}


# ---- all of it ----------------------------------------------------------------------------------------------------------


def main() -> None:
    """Fill in what the results lack, print the tables, draw the plots."""
    given = parse()
    results = json.loads(given.out.read_text()) if given.out and given.out.exists() else {}
    missing = [part for part in given.part if part not in results]
    if missing:
        posts = read_usenet(given.data, given.keep, given.letters)
        results["corpus"] = posts.told()
    for part in missing:
        start = time.perf_counter()
        results[part] = PARTS[part](posts, given)
        print(f"{part}: {time.perf_counter() - start:.0f} s", flush=True)
        if given.out:
            given.out.write_text(json.dumps(results, indent=1))
    print_all(results)
    if given.plots:
        draw_all(results, given.plots)


def parse() -> argparse.Namespace:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--trees", type=Path, nargs="*", default=[], help="other corpora to follow branches in")
    options.add_argument("--part", nargs="+", default=list(PARTS), choices=list(PARTS))
    options.add_argument("--keep", nargs="*", default=[], choices=["From", "Subject"], help="headers that stay")
    options.add_argument("--letters", action="store_true", help="words are runs of letters alone")
    options.add_argument("--trials", type=int, default=10)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, help="results as JSON; parts that are there are not run again")
    options.add_argument("--plots", type=Path, help="folder for the plots")
    return options.parse_args()


if __name__ == "__main__":
    main()
