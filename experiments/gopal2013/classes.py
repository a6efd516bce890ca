"""Table 3 on corpora with one class per document: quality, times, and which differences are significant.

A document with several labels is right where the best class is one of them; F1 is that of the best class against the first.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from experiments.gopal2013.problem import Problem, make_problem, some_of
from experiments.gopal2013.systems import Row, Way, try_all
from experiments.packing import pack, unpack
from experiments.study import Run
from ramify.data import Corpus, load_electronics
from ramify.metrics import macro_f1, micro_f1
from ramify.metrics.resampling import compare_all_predictions
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

SOME, FEW = 2_000, 200  # documents on each side of a quick and of a tiny run
RESAMPLES = 1_000
Cut = tuple[Corpus, Corpus, Taxonomy]

TESTS = ("sign", "macro_sign", "wilcoxon", "bootstrap_micro_f1", "bootstrap_macro_f1")


def run_imclef(run: Run) -> Row:
    """Vectors standardized."""
    return {"standardized": run_corpus(run, _cut(run, "imclef07a"))}


def run_imclef_of_length_one(run: Run) -> Row:
    """Vectors standardized, and every one then scaled to length 1, as those of texts are."""
    return {"standardized, length 1": run_corpus(run, _cut(run, "imclef07a"), has_length_one=True)}


def run_named(name: str, run: Run) -> Row:
    """A corpus by name."""
    return {"as it is": run_corpus(run, _cut(run, name))}


def run_standing_in(run: Run) -> Row:
    """The corpus that comes with Ramify, without the documents that have two labels."""
    shop = load_electronics()
    most = run.choose(None, SOME, FEW)
    train, test = (some_of(_with_one_label(part), most, run.seed) for part in (shop.train, shop.test))
    return {"as it is": run_corpus(run, (train, test, shop.taxonomy))}


def _with_one_label(corpus: Corpus) -> Corpus:
    return corpus.take([i for i, labels in enumerate(corpus.labels) if len(labels) == 1])


def _cut(run: Run, name: str) -> Cut:
    """Both parts of a corpus, as many documents as the size allows, and its taxonomy."""
    data, most = run.corpus(name), run.choose(None, SOME, FEW)
    return some_of(data.train, most, run.seed), some_of(data.test, most, run.seed), data.taxonomy


def run_corpus(run: Run, corpus: Cut, has_length_one: bool = False) -> Row:
    """Every system on one corpus."""
    way = Way(best_nodes, judge, partial(compare_pairs, run.choose(RESAMPLES, RESAMPLES, 20)))
    return try_all(run, make_problem(*corpus, has_length_one), way)


def best_nodes(problem: Problem, learner: Any) -> str:
    """The best node of every test document."""
    return pack(most_specific(learner.predict(problem.X_test), problem.taxonomy).indices)


def one_label_each(nodes: str, n_nodes: int) -> csr_array:
    """One node a document as a matrix."""
    best = unpack(nodes)
    return csr_array((np.ones(len(best), dtype=bool), best, np.arange(len(best) + 1)), shape=(len(best), n_nodes))


def judge(problem: Problem, nodes: str) -> Row:
    """Macro and micro F1, and the share of documents whose answer is one of their labels, in percent."""
    tree = problem.taxonomy
    given = expand_to_ancestors(one_label_each(nodes, len(tree)), tree)
    right = np.asarray(given.multiply(problem.Y_test).sum(axis=1)).ravel() == np.asarray(given.sum(axis=1)).ravel()
    return {
        "macro": 100 * macro_f1(problem.first, given, tree, over="own"),
        "micro": 100 * micro_f1(problem.first, given, tree, over="own"),
        "right": 100 * float(right.mean()),
    }


def compare_pairs(n_resamples: int, problem: Problem, answers: dict[str, str]) -> list[Row]:
    """p-value and difference of some tests, for every pair of systems."""
    given = {name: one_label_each(nodes, len(problem.taxonomy)) for name, nodes in answers.items()}
    tested = compare_all_predictions(problem.first, given, problem.taxonomy, n_resamples=n_resamples)
    return [
        {"a": a, "b": b, **{name: [tests[name].p_value, tests[name].difference] for name in TESTS}}
        for (a, b), tests in tested.items()
    ]
