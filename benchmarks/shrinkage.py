"""Training naive Bayes with shrinkage beside plain naive Bayes: ``python benchmarks/shrinkage.py --data DIR``.

DIR holds the 20 newsgroups, train.* and test.*. From texts to a model: `Vectorizer` and `ShrinkageNaiveBayes` over the
tree of newsgroups, and scikit-learn's `CountVectorizer` and `MultinomialNB`, which knows no tree. Parts of the corpus of
1/8, 1/4, 1/2 and all of its posts tell how time grows. Both take turns; the best of some rounds counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from measuring import host_facts
from scaling import slope
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from ramify.features import Vectorizer
from ramify.learners import ShrinkageNaiveBayes

sys.path.insert(0, str(Path(__file__).parent.parent))  # experiments is not installed

from experiments.newsgroups import newsgroups_taxonomy, read_newsgroups

PARTS = (1 / 8, 1 / 4, 1 / 2, 1.0)
COLUMNS = ("posts", "words", "row", "threads", "words s", "model s", "together s", "ns a word", "× scikit-learn")

Figures = dict[str, Any]
Way = tuple[str, int, Callable[[], tuple[Any, Any]]]


def main() -> None:
    """Measure every part of the corpus with every row."""
    given = parse()
    corpus = read_newsgroups(given.data)
    order = np.random.default_rng(0).permutation(len(corpus.documents))
    measured = []
    show(COLUMNS)
    show(["---"] * len(COLUMNS))
    for part in PARTS:
        chosen = order[: round(part * len(order))].tolist()
        texts, labels = [corpus.documents[k] for k in chosen], [corpus.labels[k][0] for k in chosen]
        measured += measure(texts, labels, given)
    growth = growth_of(measured)
    print("\n" + "\n".join(f"{name}: time ∝ words^{k:.2f}" for name, k in growth.items()))
    if given.out:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        found = {"machine": host_facts(), "date": date, "rounds": given.rounds, "growth": growth, "rows": measured}
        given.out.write_text(json.dumps(found, indent=1))


def measure(texts: list[str], labels: list[str], given: argparse.Namespace) -> list[Figures]:
    """The figures of all rows on some posts, scikit-learn first."""
    ways = [("scikit-learn", 1, plain), *(("shrinkage-nb", n, shrinking(n)) for n in sorted({1, given.threads}))]
    rounds: list[list[Figures]] = [[] for _ in ways]
    for _ in range(given.rounds):
        for way, so_far in zip(ways, rounds, strict=True):
            so_far.append(train(way, texts, labels))
    rows = [min(so_far, key=lambda figures: figures["seconds"]) for so_far in rounds]
    for row in rows:
        row["times_plain"] = row["seconds"] / rows[0]["seconds"]
        show(cells_of(row))
    return rows


def train(way: Way, texts: list[str], labels: list[str]) -> Figures:
    """One row, once."""
    name, threads, make = way
    vectorizer, learner = make()
    start = perf_counter()
    X = vectorizer.fit_transform(texts)
    halfway = perf_counter()
    learner.fit(X, labels)
    end = perf_counter()
    times = {"vectorizer_seconds": halfway - start, "learner_seconds": end - halfway, "seconds": end - start}
    return {"row": name, "threads": threads, "posts": len(texts), "words": int(X.sum(dtype=np.float64)), **times}


def plain() -> tuple[Any, Any]:
    """scikit-learn's words and naive Bayes."""
    return CountVectorizer(), MultinomialNB()


def shrinking(threads: int) -> Callable[[], tuple[Any, Any]]:
    """Ramify's words and naive Bayes with shrinkage."""
    taxonomy = newsgroups_taxonomy()
    return lambda: (Vectorizer("counts", n_jobs=threads), ShrinkageNaiveBayes(taxonomy, n_jobs=threads))


def growth_of(rows: list[Figures]) -> dict[str, float]:
    """For every row the k of time ∝ wordsᵏ."""
    names = dict.fromkeys(map(title, rows))
    return {name: slope([(row["words"], row["seconds"]) for row in rows if title(row) == name]) for name in names}


# ---- reporting ------------------------------------------------------------------------------------------------------


def title(row: Figures) -> str:
    """The name of a row with its threads."""
    return f"{row['row']}, {row['threads']} thread{'s' if row['threads'] > 1 else ''}"


def cells_of(row: Figures) -> list[str]:
    """A row as it is shown."""
    times = [f"{row[name]:.3f}" for name in ("vectorizer_seconds", "learner_seconds", "seconds")]
    ratios = [f"{1e9 * row['seconds'] / row['words']:,.0f}", f"{row['times_plain']:.2f}"]
    return [f"{row['posts']:,}", f"{row['words']:,}", row["row"], str(row["threads"]), *times, *ratios]


def show(cells: Any) -> None:
    """One line of the table, at once."""
    print(f"| {' | '.join(cells)} |", flush=True)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the 20 newsgroups")
    parser.add_argument("--threads", type=int, default=2, help="beside one")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
