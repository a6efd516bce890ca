"""AdaBoost.MH and TreeBoost.MH on Reuters-21578 and on clinical reports, after Esuli, Fagni & Sebastiani 2008, section 5.

    python experiments/esuli2008/reuters.py --data DIR [--medical DIR] [--part rounds tests variants trees medical]
        [--out results.json] [--plots DIR] [--quick]

--data holds ``train.jsonl.gz``, ``test.jsonl.gz`` and ``taxonomy.tsv``, whose groups are the second tree; the first is learnt
from the training documents. --medical holds ``train.svm.gz``, ``test.svm.gz`` and ``taxonomy.tsv``.

rounds    F1, pivots and times after 5 to 1,000 rounds: all words, some for all nodes, some at every inner node (Table 2)
tests     whether TreeBoost.MH is better than AdaBoost.MH, or was lucky (Table 5)
variants  real-valued, abstaining and discrete votes
trees     F1 with other trees and other words, and with as many stumps for AdaBoost.MH
medical   F1 by cross-validation on clinical reports

Rounds are learnt once and cut off for effectiveness; training times are those of fits of their own. Everything that is timed
runs on one thread, again and again for a second, and the shortest time counts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from corpora import EACH, N_TERMS, News, choose_globally, read_news, read_reports, shuffled, tell
from plots import draw_all
from scipy.sparse import csr_array
from tables import print_all

from ramify import Taxonomy
from ramify.learners import AdaBoostMH, TreeBoostMH
from ramify.metrics import compare_answers, modified_f1
from ramify.taxonomy import learn_taxonomy

ROUNDS = (5, 10, 20, 50, 100, 200, 500, 1000)
QUICK = (5, 10)
LINKAGES = ("complete", "average")
VARIANTS = ("R", "RA", "D")
SIZES = ((1, 9), (10, 99), (100, 10_000))  # training documents of rare, middling and frequent categories
N_SHUFFLED = 5

Row = dict[str, Any]
Make = Callable[[int], Any]


# ---- what is measured ---------------------------------------------------------------------------------------------------


def ways(news: News, terms: str) -> dict[str, tuple[Taxonomy, Make]]:
    """The learners by name: their taxonomy, and what makes one of so many rounds."""
    n_terms = N_TERMS if terms == "glocal" else None
    learnt, official = news.learnt.taxonomy, news.official
    trees = {
        "learnt": (learnt, lambda s: TreeBoostMH(learnt, n_rounds=s, n_terms=n_terms, n_jobs=1)),
        "official": (official, lambda s: TreeBoostMH(official, n_rounds=s, n_terms=n_terms, n_jobs=1)),
    }
    flat = news.categories, lambda s: AdaBoostMH(news.categories, n_rounds=s, n_jobs=1)
    return trees if terms == "glocal" else {"adaboost": flat, **trees}


def measure(news: News, given: csr_array) -> Row:
    """F1 over the categories, and by how many training documents these have."""
    true = news.categories.encode(news.labels_test)
    found = modified_f1(true, given, news.categories).all
    right = true.multiply(given).sum()
    row: Row = {"micro": found.micro_f1, "macro": found.macro_f1, "macro_occurring": found.macro_f1_occurring}
    row |= {"precision": float(right / max(1, given.nnz)), "recall": float(right / true.nnz)}
    among = [(news.sizes() >= low) & (news.sizes() <= high) for low, high in SIZES]
    row |= {"n_by_size": [int(some.sum()) for some in among], "by_size": [macro_of(true, given, some) for some in among]}
    return row


def macro_of(true: csr_array, given: csr_array, some: Any) -> float:
    """Macro F1 over some of the categories."""
    columns = np.flatnonzero(some)
    names = Taxonomy.flat([str(column) for column in columns])
    return modified_f1(true[:, columns], given[:, columns], names).all.macro_f1


def seconds(work: Callable[[], Any], at_least: float) -> float:
    """The shortest time that some work takes, repeated until so many seconds are over."""
    times: list[float] = []
    while not times or sum(times) < at_least:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def answer_texts(news: News, learner: Any) -> Callable[[], Any]:
    """From texts to labels with the words that pivots need, and no others."""
    columns, narrow = learner.narrowed()
    words = copy(news.vectorizer)
    words.keep(columns)
    return lambda: narrow.predict_sets(words.transform(news.texts_test))


def count_sums(learner: Any, X: csr_array) -> tuple[int, int]:
    """What scoring adds up, for the committees that documents meet: over all pivots, as the paper counts, and over theirs."""
    passed, over_all, over_present = learner.predict_sets(X).tocsc(), 0, 0
    for committee in learner.committees_:
        met = X if committee.node < 0 else X[passed.indices[passed.indptr[committee.node] : passed.indptr[committee.node + 1]]]
        pivots, n_classes = np.unique(committee.pivots), len(committee.classes)
        over_all += met.shape[0] * len(pivots) * n_classes
        over_present += int(np.isin(met.indices, pivots).sum()) * n_classes
    return over_all, over_present


# ---- parts --------------------------------------------------------------------------------------------------------------


def run_rounds(news: News, given: argparse.Namespace) -> Row:
    """By terms, way and number of rounds."""
    found: Row = {}
    for terms in ("all", "global", "glocal"):
        columns = choose_globally(news) if terms == "global" else np.arange(news.X.shape[1])
        for way, (tree, make) in ways(news, terms).items():
            X, X_test = csr_array(news.X[:, columns]), csr_array(news.X_test[:, columns])
            found.setdefault(terms, {})[way] = follow(news, (X, X_test), tree, make, given, terms == "all")
    return found


def follow(news: News, Xs: tuple[csr_array, csr_array], tree: Taxonomy, make: Make, given: Any, from_texts: bool) -> Row:
    """One way to learn, after every number of rounds."""
    Y, rows = tree.encode(news.labels), {}
    longest = make(max(given.rounds)).fit(Xs[0], Y)
    for s in given.rounds:
        learner = longest.at_round(s)
        row = measure(news, news.at_categories(learner.predict_sets(Xs[1]), tree))
        pivots = [committee.pivots for committee in learner.committees_]
        row |= {"committees": len(pivots), "stumps": sum(map(len, pivots)), "pivots": len(np.unique(np.concatenate(pivots)))}
        row["sums"], row["present_sums"] = count_sums(learner, Xs[1])
        row["train"] = seconds(partial(make(s).fit, Xs[0], Y), given.at_least)
        row["classify"] = seconds(partial(learner.predict_sets, Xs[1]), given.at_least)
        if from_texts:
            row["texts"] = seconds(answer_texts(news, learner), given.at_least)
        rows[str(s)] = row
    return rows


def run_tests(news: News, given: argparse.Namespace) -> Row:
    """p-values after the last round: TreeBoost.MH against AdaBoost.MH, and both ways of choosing words."""
    answers: dict[tuple[str, str], csr_array] = {}
    for terms in ("all", "global", "glocal"):
        columns = choose_globally(news) if terms == "global" else np.arange(news.X.shape[1])
        for way, (tree, make) in ways(news, terms).items():
            learner = make(max(given.rounds)).fit(csr_array(news.X[:, columns]), tree.encode(news.labels))
            answers[way, terms] = news.at_categories(learner.predict_sets(csr_array(news.X_test[:, columns])), tree)
    found: Row = {}
    for way in ("learnt", "official"):
        pairs = [((way, terms), ("adaboost", terms.replace("glocal", "global"))) for terms in ("all", "global", "glocal")]
        for a, b in [*pairs, ((way, "global"), (way, "glocal"))]:
            found[f"{' '.join(a)} > {' '.join(b)}"] = compare(news, answers[a], answers[b])
    return found


def compare(news: News, a: csr_array, b: csr_array) -> Row:
    """Every test's p-value and the difference that it saw."""
    tested = compare_answers(news.categories.encode(news.labels_test), a, b, news.categories)
    return {name: [float(test.p_value), float(test.difference)] for name, test in tested.items()}


def run_variants(news: News, given: argparse.Namespace) -> Row:
    """By variant and way, after every number of rounds."""
    return {
        variant: {
            "adaboost": staged(news, AdaBoostMH(news.categories, variant=variant), given),
            "learnt": staged(news, TreeBoostMH(news.learnt.taxonomy, variant=variant), given),
        }
        for variant in VARIANTS
    }


def staged(news: News, learner: Any, given: argparse.Namespace, times: int = 1) -> Row:
    """F1 after so many times every number of rounds, and the seconds that learning took."""
    tree, start = learner.taxonomy, time.perf_counter()
    learner.set_params(n_rounds=times * max(given.rounds), n_jobs=1).fit(news.X, tree.encode(news.labels))
    rows: Row = {"seconds": time.perf_counter() - start}
    for s in given.rounds:
        rows[str(s)] = measure(news, news.at_categories(learner.at_round(times * s).predict_sets(news.X_test), tree))
    return rows


def run_trees(news: News, given: argparse.Namespace) -> Row:
    """F1 with other trees, with numbers among the words, and with as many stumps in one committee as the tree has in all."""
    tree, Y, names = news.learnt.taxonomy, news.categories.encode(news.labels), news.categories.names
    others = {f"{link} linkage": learn_taxonomy(news.weighted, Y, names, linkage=link) for link in LINKAGES}
    others["presence of words"] = learn_taxonomy(news.X, Y, names)
    others |= {f"{n} groups": learn_taxonomy(news.weighted, Y, names, n) for n in (2, 12, 30)}
    others |= {f"shuffled {seed}": shuffled(tree, seed) for seed in range(N_SHUFFLED)}
    found = {name: staged(news, TreeBoostMH(other), given) for name, other in others.items()}
    found["stumps"] = staged(news, AdaBoostMH(news.categories), given, 1 + len(tree.roots))
    numbers = read_news(given.data, keeps_numbers=True)
    found["adaboost, numbers"] = staged(numbers, AdaBoostMH(numbers.categories), given)
    found["learnt, numbers"] = staged(numbers, TreeBoostMH(numbers.learnt.taxonomy), given)
    return found


def run_medical(news: News, given: argparse.Namespace) -> Row:
    """F1 of answers that each document got from learners that had not seen it; news are not looked at."""
    X, Y, tree = read_reports(given.medical)
    n = X.shape[0]
    folds = np.array_split(np.random.default_rng(given.seed).permutation(n), min(n, given.folds))
    found: Row = {"documents": n, "leaves": int(tree.is_leaf.sum()), "nodes": len(tree), "folds": len(folds)}
    for way, learner in {"adaboost": AdaBoostMH, "learnt": TreeBoostMH}.items():

        def answer(test: Any, make: Any = learner) -> list[csr_array]:
            rest = np.setdiff1d(np.arange(n), test)
            learnt = make(tree, n_rounds=max(given.rounds), n_jobs=1).fit(X[rest], Y[rest])
            return [learnt.at_round(s).predict_sets(X[test]) for s in given.rounds]

        with ThreadPoolExecutor(given.jobs) as threads:
            found[way] = pooled(list(threads.map(answer, folds)), folds, Y, tree, given.rounds)
    return found


def pooled(parts: list[list[csr_array]], folds: Sequence[Any], Y: csr_array, tree: Taxonomy, rounds: Sequence[int]) -> Row:
    """F1 over the answers of all folds together."""
    rows = {}
    true = Y[np.concatenate(folds)]
    for k, s in enumerate(rounds):
        given = np.concatenate([part[k].toarray() for part in parts])
        scores = modified_f1(true, csr_array(given), tree).all
        rows[str(s)] = {"micro": scores.micro_f1, "macro": scores.macro_f1}
    return rows


PARTS = {"rounds": run_rounds, "tests": run_tests, "variants": run_variants, "trees": run_trees, "medical": run_medical}


# ---- all of it ----------------------------------------------------------------------------------------------------------


def main() -> None:
    """Fill in what the results lack, print the tables, draw the plots."""
    given = parse()
    results = json.loads(given.out.read_text()) if given.out and given.out.exists() else {}
    missing = [part for part in given.part if part not in results and (part != "medical" or given.medical)]
    if missing:
        news = read_news(given.data)
        results |= {"corpus": tell(news), "settings": {"rounds": given.rounds, "terms": N_TERMS, "each": EACH}}
    for part in missing:
        start = time.perf_counter()
        results[part] = PARTS[part](news, given)
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
    options.add_argument("--medical", type=Path, help="clinical reports; without them that part is left out")
    options.add_argument("--part", nargs="+", default=list(PARTS), choices=list(PARTS))
    options.add_argument("--folds", type=int, default=10, help="of clinical reports; as many as these for leave-one-out")
    options.add_argument("--jobs", type=int, default=2, help="threads for folds, which are not timed")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--quick", action="store_true", help="a few rounds, timed once, to see that all works")
    options.add_argument("--out", type=Path, help="results as JSON; parts that are there are not run again")
    options.add_argument("--plots", type=Path, help="folder for the plots")
    given = options.parse_args()
    given.rounds, given.at_least = (QUICK, 0.0) if given.quick else (ROUNDS, 1.0)
    return given


if __name__ == "__main__":
    main()
