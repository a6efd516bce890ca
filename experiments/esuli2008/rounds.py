"""Tables 2 and 5: both learners after few and many rounds, with all terms and with some, and whether one is better.

Rounds are learnt once and cut off for effectiveness; training times are those of fits of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from experiments.esuli2008.material import Collection, choose_globally, read_news, read_tree, tell, tell_news
from experiments.esuli2008.measuring import Row, count_stumps, measure, predict_texts, seconds
from experiments.packing import pack_labels, unpack_labels
from experiments.study import Run
from ramify.data import Corpus, load_electronics
from ramify.learners import AdaBoostMH, TreeBoostMH
from ramify.metrics import compare_predictions
from ramify.taxonomy import Taxonomy

ROUNDS = (5, 10, 20, 50, 100, 200, 500, 1000)
QUICK, TINY = (5, 10, 20, 50, 100, 200), (2, 5)
TERMS = ("all", "global", "glocal")
N_TERMS_RCV1 = 2029
N_TERMS_STANDING_IN = 200
SOME_STORIES = (4_000, 8_000)  # of RCV1, to train on and to test on, where time is short
FEW_STORIES = (300, 300)

Make = Callable[[int], Any]


def rounds_of(run: Run) -> tuple[int, ...]:
    """After how many rounds learners are looked at."""
    return run.choose(ROUNDS, QUICK, TINY)


def run_reuters(run: Run) -> Row:
    """F1, pivots, times and tests on Reuters-21578, with two trees."""
    news = read_news(run.corpus("reuters21578"))
    return {"corpus": run.keep("the corpus", partial(tell_news, news)), **follow_all(run, news.collection)}


def run_rcv1(run: Run) -> Row:
    """The same on RCV1-v2, whose tree is its own."""
    data = run.corpus("rcv1")
    most = run.choose((None, None), SOME_STORIES, FEW_STORIES)
    train, test = (first(part, n) for part, n in zip((data.train, data.test), most, strict=True))
    collection = read_tree(train, test, data.taxonomy, N_TERMS_RCV1)
    return {"corpus": run.keep("the corpus", partial(tell, collection)), **follow_all(run, collection)}


def run_standing_in(run: Run) -> Row:
    """The same on the corpus that comes with Ramify."""
    shop = load_electronics()
    collection = read_tree(shop.train, shop.test, shop.taxonomy, N_TERMS_STANDING_IN)
    return {"corpus": run.keep("the corpus", partial(tell, collection)), **follow_all(run, collection)}


def first(corpus: Corpus, most: int | None) -> Corpus:
    """The first documents of a corpus, or all."""
    return corpus if most is None else corpus.take(range(min(most, len(corpus))))


def follow_all(run: Run, of: Collection) -> Row:
    """By terms, way and number of rounds; and tests after the last round."""
    found: Row = {"rounds": {terms: {} for terms in TERMS}}
    answers: dict[tuple[str, str], csr_array] = {}
    for terms, way, tree, make in ways(of):
        step = run.keep(f"{terms} terms, {way}", partial(follow, run, of, terms, tree, make))
        found["rounds"][terms][way] = step["rows"]
        answers[way, terms] = unpack_labels(step["answers"], len(of.judged))
    return {**found, "tests": run.keep("tests", partial(compare_all, of, answers))}


def ways(of: Collection) -> Iterator[tuple[str, str, Taxonomy, Make]]:
    """Terms, name, taxonomy and what makes a learner of so many rounds; AdaBoost.MH has no nodes to choose terms for."""
    for terms in TERMS:
        n_terms = of.n_terms if terms == "glocal" else None
        if terms != "glocal":
            yield terms, "adaboost", of.judged, partial(make_adaboost, of.judged)
        for name, tree in of.trees.items():
            yield terms, name, tree, partial(make_treeboost, tree, n_terms)


def make_adaboost(judged: Taxonomy, n_rounds: int) -> AdaBoostMH:
    """One committee, on one thread."""
    return AdaBoostMH(judged, n_rounds=n_rounds, n_jobs=1)


def make_treeboost(tree: Taxonomy, n_terms: int | None, n_rounds: int) -> TreeBoostMH:
    """A committee at every inner node, on one thread."""
    return TreeBoostMH(tree, n_rounds=n_rounds, n_terms=n_terms, n_jobs=1)


def follow(run: Run, of: Collection, terms: str, tree: Taxonomy, make: Make) -> Row:
    """One way to learn, after every number of rounds, and its last answers."""
    columns = choose_globally(of) if terms == "global" else np.arange(of.X.shape[1])
    X, X_test, Y = csr_array(of.X[:, columns]), csr_array(of.X_test[:, columns]), tree.encode(of.labels)
    rounds, at_least = rounds_of(run), run.choose(1.0, 0.05, 0.0)
    longest, rows, given = make(max(rounds)).fit(X, Y), {}, csr_array((0, 0))
    for s in rounds:
        learner = longest.at_round(s)
        given = of.on_judged(learner.predict_sets(X_test), tree)
        row = measure(of, given) | count_stumps(learner, X_test)
        row["train"] = seconds(partial(make(s).fit, X, Y), at_least)
        row["classify"] = seconds(partial(learner.predict_sets, X_test), at_least)
        if terms == "all" and (answer := predict_texts(of, learner)) is not None:
            row["texts"] = seconds(answer, at_least)
        rows[str(s)] = row
    return {"rows": rows, "answers": pack_labels(given)}


def compare_all(of: Collection, answers: dict[tuple[str, str], csr_array]) -> list[Row]:
    """p-values after the last round: TreeBoost.MH against AdaBoost.MH, and both ways of choosing terms."""
    found = []
    for way in of.trees:
        pairs = [((way, terms), ("adaboost", terms.replace("glocal", "global"))) for terms in TERMS]
        for a, b in [*pairs, ((way, "global"), (way, "glocal"))]:
            found.append({"a": a, "b": b, "tests": compare(of, answers[a], answers[b])})
    return found


def compare(of: Collection, a: csr_array, b: csr_array) -> Row:
    """Every test's p-value and the difference that it saw."""
    tested = compare_predictions(of.truth(), a, b, of.judged)
    return {name: [float(test.p_value), float(test.difference)] for name, test in tested.items()}
