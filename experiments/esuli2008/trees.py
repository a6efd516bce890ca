"""Ours in addition: variants of the votes, and where the gain of a tree comes from."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from experiments.esuli2008.material import Collection, News, read_news, shuffled
from experiments.esuli2008.measuring import Row, measure
from experiments.esuli2008.rounds import rounds_of
from experiments.study import Run
from ramify.learners import AdaBoostMH, TreeBoostMH
from ramify.taxonomy import Taxonomy, learn_taxonomy

LINKAGES = ("complete", "average")
VARIANTS = ("R", "RA", "D")
GROUPS = (2, 12, 30)


def run_variants(run: Run) -> Row:
    """By variant and way, after every number of rounds."""
    news = read_news(run.corpus("reuters21578"))
    of, tree = news.collection, news.learnt.taxonomy
    found: Row = {}
    for variant in VARIANTS:
        learners = {"adaboost": AdaBoostMH(of.judged, variant=variant), "learnt": TreeBoostMH(tree, variant=variant)}
        found[variant] = {
            way: run.keep(f"{variant}, {way}", partial(staged, run, of, learner)) for way, learner in learners.items()
        }
    return found


def run_trees(run: Run) -> Row:
    """F1 with other trees, with numbers among the words, and with as many stumps in one committee as the tree has in all."""
    news = read_news(run.corpus("reuters21578"))
    of = news.collection
    found = {
        name: run.keep(name, partial(stage_tree, run, of, make)) for name, make in other_trees(news, run.choose(5, 2)).items()
    }
    times = 1 + len(news.learnt.taxonomy.roots)
    found["stumps"] = run.keep("stumps", partial(staged, run, of, AdaBoostMH(of.judged), times))
    numbers = read_news(run.corpus("reuters21578"), keeps_numbers=True)
    counted, tree = numbers.collection, numbers.learnt.taxonomy
    found["adaboost, numbers"] = run.keep("adaboost, numbers", partial(staged, run, counted, AdaBoostMH(counted.judged)))
    found["learnt, numbers"] = run.keep("learnt, numbers", partial(staged, run, counted, TreeBoostMH(tree)))
    return found


def other_trees(news: News, n_shuffled: int) -> dict[str, Callable[[], Taxonomy]]:
    """Trees over the categories by name, each made when it is needed."""
    of = news.collection
    Y, names = of.judged.encode(of.labels), of.judged.names
    others: dict[str, Callable[[], Taxonomy]] = {
        f"{link} linkage": partial(learn_taxonomy, news.weighted, Y, names, linkage=link) for link in LINKAGES
    }
    others["presence of words"] = partial(learn_taxonomy, of.X, Y, names)
    sizes = [n for n in GROUPS if n < len(names)]
    others |= {f"{n} groups": partial(learn_taxonomy, news.weighted, Y, names, n) for n in sizes}
    return others | {f"shuffled {seed}": partial(shuffled, news.learnt.taxonomy, seed) for seed in range(n_shuffled)}


def stage_tree(run: Run, of: Collection, make: Callable[[], Taxonomy]) -> Row:
    """TreeBoost.MH over a tree that is made now."""
    return staged(run, of, TreeBoostMH(make()))


def staged(run: Run, of: Collection, learner: Any, times: int = 1) -> Row:
    """F1 after so many times every number of rounds, and the seconds that learning took."""
    tree, rounds, start = learner.taxonomy, rounds_of(run), time.perf_counter()
    learner.set_params(n_rounds=times * max(rounds), n_jobs=1).fit(of.X, tree.encode(of.labels))
    rows: Row = {"seconds": time.perf_counter() - start}
    for s in rounds:
        rows[str(s)] = measure(of, of.on_judged(learner.at_round(times * s).predict_sets(of.X_test), tree))
    return rows
