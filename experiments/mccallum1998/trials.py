"""What a trial measures: weights, accuracy by training documents and by words, and work saved by following few branches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from experiments.mccallum1998.corpora import Counted, Ints, Names, count_tree, count_usenet
from experiments.mccallum1998.protocol import NEWSGROUPS, Protocol, Source, Trial, each_trial
from experiments.study import Run
from ramify.features import TermSelector
from ramify.learners import MultinomialNaiveBayes, ShrinkageNaiveBayes
from ramify.taxonomy import Taxonomy

BRANCHES = (1, 2, 3, None)
SHARPER = 0.01  # what flat naive Bayes adds to every count, beside Laplace's 1
COUNTINGS: dict[str, dict[str, Any]] = {
    "words": {},
    "letters": {"letters": True},
    "subjects": {"keep": ("Subject",)},
}
COUNTED_WITH = ("nb", "shrinkage", "shrinkage-flat")
paper_form = partial(ShrinkageNaiveBayes, tie_weights="never")


def likeliest(learner: Any, X: csr_array) -> Names:
    """The likeliest class of every document."""
    names: Names = np.asarray(learner.taxonomy_.names)[np.nanargmax(learner.scores(X), axis=1)]
    return names


def accuracy(learner: Any, X: csr_array, names: Names) -> float:
    """How many documents have their own class as the likeliest."""
    return float((likeliest(learner, X) == names).mean())


# ---- the corpus ---------------------------------------------------------------------------------------------------------


def run_corpus(run: Run) -> dict[str, Any]:
    """By way of counting words: how large the corpus is, and accuracies from few and from many documents."""
    protocol = run.choose(**NEWSGROUPS)
    found: dict[str, Any] = {}
    for way, settings in COUNTINGS.items():
        posts = count_usenet(run.corpus("20newsgroups"), **settings)
        measure = partial(measure_sizes, sizes=protocol.few_and_many, ways=COUNTED_WITH)
        accuracies = each_trial(run, posts, max(protocol.sizes), protocol.trials, measure, key=f"{way}, ")
        found[way] = {"corpus": posts.told(), "accuracy": accuracies}
    return found


# ---- weights ------------------------------------------------------------------------------------------------------------


def run_weights(source: Source, run: Run) -> dict[str, Any]:
    """Of each class the mixture weights and the share of words that no other training document has, trial by trial."""
    documents, protocol = source(run)
    measure = partial(measure_weights, protocol=protocol)
    return dict(each_trial(run, documents, max(protocol.sizes), protocol.trials, measure))


def measure_weights(trial: Trial, protocol: Protocol) -> dict[str, Any]:
    """By vocabulary, training documents and class."""
    found: dict[str, Any] = {}
    for size in protocol.few_and_many:
        X, names = trial.training_set(size)
        for vocabulary, words in (("all", np.arange(X.shape[1])), ("seen", np.unique(X.indices))):
            learnt = paper_form(trial.documents.taxonomy).fit(X[:, words], names)
            weights = {name: [weight for _, weight in learnt.mixture_weights(name)] for name in protocol.shown}
            found.setdefault(vocabulary, {})[str(size)] = {
                name: {"weights": weights[name], "unseen": fraction_unknown(X, names == name)} for name in protocol.shown
            }
    return found


def fraction_unknown(X: csr_array, mine: NDArray[np.bool_]) -> float:
    """The share of some documents' words that no other document has; only the uniform estimate knows them."""
    is_alone = np.bincount(X.indices, minlength=X.shape[1]) == 1
    here = X[np.flatnonzero(mine)]
    return float(here.data[is_alone[here.indices]].sum() / here.data.sum())


# ---- training documents -------------------------------------------------------------------------------------------------


def run_sizes(source: Source, run: Run) -> dict[str, Any]:
    """Accuracies of every learner for every size of the training set, by class and by topic, trial by trial."""
    documents, protocol = source(run)
    measure = partial(measure_sizes, sizes=protocol.sizes)
    return dict(each_trial(run, documents, max(protocol.sizes), protocol.trials, measure))


def measure_sizes(trial: Trial, sizes: Sequence[int], ways: Sequence[str] = ()) -> dict[str, Any]:
    """By learner and size: how often the class is right, and how often the topic is; all learners when none is named."""
    X_test, names_test = trial.test_on()
    topics_test = trial.documents.topics_of(names_test)
    found: dict[str, Any] = {}
    for size in sizes:
        X, names = trial.training_set(size)
        for way, learner in contestants(trial.documents, trial.number).items():
            if way not in (ways or (way,)):
                continue
            words = np.unique(X.indices) if way.endswith("seen") else np.arange(X.shape[1])
            given = likeliest(learner.fit(X[:, words], names), X_test[:, words])
            found.setdefault(way, {})[str(size)] = {
                "accuracy": float((given == names_test).mean()),
                "topic": float((trial.documents.topics_of(given) == topics_test).mean()),
            }
    return found


def contestants(documents: Counted, trial: int) -> dict[str, Any]:
    """Flat naive Bayes, shrinkage, and what tells where the gain comes from."""
    tree = documents.taxonomy
    return {
        "nb": MultinomialNaiveBayes(tree),
        "shrinkage": paper_form(tree),
        "nb-sharper": MultinomialNaiveBayes(tree, alpha=SHARPER),
        "shrinkage-flat": paper_form(documents.without_parents()),
        "shrinkage-held-out": paper_form(tree, weights="held-out", random_state=trial),
        "nb-seen": MultinomialNaiveBayes(tree),
        "shrinkage-seen": paper_form(tree),
    }


# ---- words --------------------------------------------------------------------------------------------------------------


def run_words(source: Source, run: Run) -> dict[str, Any]:
    """By size of the training set, learner with selection, and words asked for: accuracies, and how many words were kept."""
    documents, protocol = source(run)
    measure = partial(measure_words, protocol=protocol)
    return dict(each_trial(run, documents, max(protocol.sizes), protocol.trials, measure))


def measure_words(trial: Trial, protocol: Protocol) -> dict[str, Any]:
    """Flat naive Bayes and shrinkage with every selection of words."""
    taxonomy, (X_test, names_test) = trial.documents.taxonomy, trial.test_on()
    found: dict[str, Any] = {str(size): {} for size in protocol.words_from}
    for size in protocol.words_from:
        X, names = trial.training_set(size)
        for scope, asked, columns in selections(X, names, taxonomy, protocol.words):
            for way, learner in (("nb", MultinomialNaiveBayes), ("shrinkage", paper_form)):
                right = accuracy(learner(taxonomy).fit(X[:, columns], names), X_test[:, columns], names_test)
                found[str(size)].setdefault(f"{way} {scope}", {})[asked] = {"accuracy": right, "kept": len(columns)}
    return found


def selections(X: csr_array, names: Names, taxonomy: Taxonomy, words: Sequence[int]) -> Iterator[tuple[str, str, Ints]]:
    """Where words are chosen, how many, and which; last all of them."""
    Y = taxonomy.encode([[name] for name in names])
    for scope in ("flat", "hierarchical"):
        for n in words:
            chosen = TermSelector(n, measure="mutual-information", join="sum", scope=scope, taxonomy=taxonomy)
            yield scope, str(n), chosen.fit(X, Y).columns_
        yield scope, "all", np.arange(X.shape[1])


# ---- branches -----------------------------------------------------------------------------------------------------------


def run_branches(source: Source, run: Run) -> dict[str, Any]:
    """By number of branches: accuracies, nodes that a document is compared with, seconds a thousand documents."""
    documents, protocol = source(run)
    return follow_branches(run, documents, max(protocol.sizes), protocol.trials)


def run_tree_branches(name: str, run: Run) -> dict[str, Any]:
    """The same in another corpus, of which half of the documents are for training."""
    documents = count_tree(run.corpus(name))
    return follow_branches(run, documents, len(documents.names) // 2, run.choose(full=10, quick=1))


def follow_branches(run: Run, documents: Counted, size: int, trials: int) -> dict[str, Any]:
    """One corpus, of which so many documents are for training and the others classified."""
    measured = each_trial(run, documents, size, trials, measure_branches)
    return {"corpus": documents.told(), "train": size, "branches": measured}


def measure_branches(trial: Trial) -> dict[str, Any]:
    """One model, followed down ever more branches."""
    X, names = trial.test_on()
    learnt = paper_form(trial.documents.taxonomy, branches=1).fit(*trial.training_set(len(trial.pool)))
    found: dict[str, Any] = {}
    for branches in BRANCHES:
        learnt.branches = branches
        compared = float(learnt.count_comparisons(X).mean())
        seconds = time_scoring(learnt, X) * 1000 / len(names)
        found[str(branches)] = {"accuracy": accuracy(learnt, X, names), "compared": compared, "seconds": seconds}
    return found


def time_scoring(learner: Any, X: csr_array) -> float:
    """The shortest of three times, in seconds."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        learner.scores(X)
        times.append(time.perf_counter() - start)
    return min(times)
