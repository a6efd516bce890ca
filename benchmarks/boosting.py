"""Boosting against size, depth, slow oracles and peers: ``python benchmarks/boosting.py --data DIR --images docs/images``.

DIR holds reuters21578_90 and 20news_bydate, each with train.jsonl.gz, test.jsonl.gz and taxonomy.tsv. ``--only`` names the
parts to run: reuters, scaling, oracle, sklearn, depth. What is compared takes turns, and the best of some repetitions counts.
Ends with status 1 where a goal is missed; rounds that differ from a slow oracle's end it at once.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from boosting_oracle import compare_with_oracle
from boosting_peers import compare_with_peers, micro_f1
from boosting_plots import draw
from boosting_problems import ARITY, Split, balanced_tree, directory, read_reuters
from environments import HERE
from measuring import host_facts
from scaling import slope
from timing import Figures, head, interleaved, show

from ramify.learners import AdaBoostMH, TreeBoostMH

MOST_SECONDS = 120  # for 1,000 rounds
MOST_GROWTH = 1.1  # of time a round in non-zeros × classes, as an exponent
SYSTEMS = (AdaBoostMH, TreeBoostMH)

Outcome = tuple[list[Figures], list[str]]


def main() -> None:
    """Run the parts that were asked for, and tell what is wrong."""
    given = parse()
    found, wrong = {}, []
    for name in given.only:
        found[name], complaints = PARTS[name](given)
        wrong += [] if given.quick else complaints
    if given.out:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"machine": host_facts() | {"scikit-learn": version("scikit-learn")}, "date": date, "repeat": given.repeat}
        given.out.write_text(json.dumps(about | found, indent=1))
    for complaint in wrong:
        print(complaint, file=sys.stderr)
    if wrong:
        raise SystemExit(1)


# ---- Reuters-21578 --------------------------------------------------------------------------------------------------


def on_reuters(given: argparse.Namespace) -> Outcome:
    """A thousand rounds, with all words and with 2,000."""
    n_rounds, corpus = 32 if given.quick else 1000, read_reuters(given.data / "reuters21578_90")
    columns = ("words", "non-zeros", "system", "threads", "train s", "× adaboost-mh", "predict docs/s", "× adaboost-mh")
    head(
        f"Reuters-21578: {corpus.X.shape[0]:,} documents, 90 categories in 6 groups, {n_rounds:,} rounds.", *columns, "micro F1"
    )
    rows = [row for split in (corpus, corpus.selected(2000)) for row in all_systems(split, n_rounds, given)]
    slow = [row for row in rows if row["threads"] == max(given.counts) and row["train_seconds"] > MOST_SECONDS]
    return rows, [f"{row['system']} took more than {MOST_SECONDS} s for {n_rounds:,} rounds" for row in slow]


def all_systems(split: Split, n_rounds: int, given: argparse.Namespace) -> list[Figures]:
    """A row for each system and number of threads, in turns."""
    models = [system(split.taxonomy, n_rounds=n_rounds, n_jobs=n) for system in SYSTEMS for n in given.counts]
    trained = interleaved([partial(model.fit, split.X, split.Y) for model in models], given.repeat)
    predicted = interleaved([partial(model.predict_sets, split.X_test) for model in models], 3 * given.repeat)
    leaves, rows = np.flatnonzero(split.taxonomy.is_leaf), []
    for model, (train, _), (predict, sets) in zip(models, trained, predicted, strict=True):
        quality = micro_f1(*(Y[:, leaves].toarray().astype(bool) for Y in (sets, split.Y_test)))
        row = {"words": split.X.shape[1], "nonzeros": int(split.X.nnz), "system": model.kind, "threads": model.n_jobs}
        rows.append(row | {"train_seconds": train, "predict_seconds": predict, "micro_f1": quality})
        first, n_test = rows[0], split.X_test.shape[0]
        trains = [f"{train:.2f}", f"{train / first['train_seconds']:.2f}"]
        predicts = [f"{n_test / predict:,.0f}", f"{first['predict_seconds'] / predict:.2f}"]
        sizes = [f"{row['words']:,}", f"{row['nonzeros']:,}", model.kind, str(model.n_jobs)]
        show([*sizes, *trains, *predicts, f"{quality:.4f}"])
    return rows


# ---- time a round ---------------------------------------------------------------------------------------------------


def against_size(given: argparse.Namespace) -> Outcome:
    """The time of a round while one thing grows."""
    columns = ("what grows", "documents", "words", "classes", "non-zeros × classes", "looked at", "ms a round", "ns a pair")
    head("Time a round, one thread, 64 rounds; preparing the sums is shared out among the rounds.", *columns)
    rows = [row for name, splits in growing(given).items() for row in along(name, splits, given)]
    names = list(dict.fromkeys(row["grows"] for row in rows))
    series = {name: [(row["pairs"] / 1e6, row["ms"]) for row in rows if row["grows"] == name] for name in names}
    growth = {name: slope(points) for name, points in series.items()}
    for what, size in (("non-zeros × classes", "pairs"), ("pairs looked at", "touched")):
        growth[f"all rows, {what}"] = slope([(row[size], row["ms"]) for row in rows])
    print("\n" + "\n".join(f"- {name}: time a round ∝ size^{k:.2f}" for name, k in growth.items()))
    labels = {f"{name}: exponent {growth[name]:.2f}": points for name, points in series.items()}
    title = "Boosting: milliseconds a round, one thread"
    save(given, "boosting-scaling.svg", draw(labels, title, "non-zeros × classes, in millions", "milliseconds a round"))
    rows.append({"growth": growth})
    is_right = growth["all rows, non-zeros × classes"] <= MOST_GROWTH
    return rows, [] if is_right else ["the time of a round grows faster than non-zeros × classes"]


def growing(given: argparse.Namespace) -> dict[str, list[tuple[Any, Split]]]:
    """Systems and problems, smallest first."""
    steps, n = ((1, 2), 500) if given.quick else ((1, 2, 4, 8), 4000)
    made = {
        "documents": [(AdaBoostMH, directory(100, step * n // 2, 100)) for step in steps],
        "words a document": [(AdaBoostMH, directory(100, n, 25 * step)) for step in steps],
        "classes": [(AdaBoostMH, directory(50 * step, n, 100)) for step in steps],
    }
    corpus = read_reuters(given.data / "reuters21578_90")
    parts = [corpus.some(corpus.X.shape[0] * step // max(steps)) for step in steps]
    return made | {f"Reuters, {system.kind}": [(system, part) for part in parts] for system in SYSTEMS}


def along(name: str, splits: list[tuple[Any, Split]], given: argparse.Namespace) -> list[Figures]:
    """Rows of problems that grow in one way, in turns."""
    n_rounds = 32 if given.quick else 64
    models = [system(split.taxonomy, n_rounds=n_rounds, n_jobs=1) for system, split in splits]
    fits = [partial(model.fit, split.X, split.Y) for model, (_, split) in zip(models, splits, strict=True)]
    measured = interleaved(fits, given.repeat)
    rows = []
    for model, (_, split), (seconds, _) in zip(models, splits, measured, strict=True):
        pairs, touched = work_of(model, split)
        sizes = {"documents": split.X.shape[0], "words": len(np.unique(split.X.indices))}
        sizes |= {"classes": sum(len(c.classes) for c in model.committees_), "pairs": pairs, "touched": touched}
        ms = 1000 * seconds / n_rounds
        rows.append({"grows": name, "system": model.kind, "nonzeros": int(split.X.nnz), **sizes, "ms": ms})
        show([name, *(f"{size:,}" for size in sizes.values()), f"{ms:.2f}", f"{1e6 * ms / touched:.2f}"])
    return rows


def work_of(model: Any, split: Split) -> tuple[int, int]:
    """Non-zeros × classes, summed over committees, and how many of these pairs a round looks at on average.

    A committee has the documents and the children of its node. It looks at every term that occurs, and at all terms of the
    documents that have the pivot.
    """
    pairs, touched, by_node = 0, 0.0, split.Y.tocsc()
    for committee in model.committees_:
        node = committee.node
        X = split.X if node < 0 else split.X[by_node.indices[by_node.indptr[node] : by_node.indptr[node + 1]]]
        around = (X != 0).T.astype(np.int64) @ np.diff(X.indptr)
        pairs += int(X.nnz) * len(committee.classes)
        touched += (np.count_nonzero(around) + float(np.mean(around[committee.pivots]))) * len(committee.classes)
    return pairs, round(touched)


# ---- depth ----------------------------------------------------------------------------------------------------------


def against_depth(given: argparse.Namespace) -> Outcome:
    """Both systems on balanced trees that get deeper."""
    n_rounds, n_documents, deepest = (10, 500, 3) if given.quick else (50, 4000, 7)
    title = f"Balanced trees, {ARITY} children a node: {n_documents:,} documents, {n_rounds} rounds, one thread."
    columns = ("depth", "leaves", "adaboost-mh train s", "treeboost-mh train s", "ratio", "work ratio")
    predicts = ("adaboost-mh docs/s", "treeboost-mh docs/s", "ratio", "adaboost-mh accuracy", "treeboost-mh accuracy")
    head(title, *columns, *predicts)
    rows = [at_depth(depth, n_documents, n_rounds, given) for depth in range(1, deepest + 1)]
    series = {
        "training": [(row["depth"], row["train_ratio"]) for row in rows],
        "classifying": [(row["depth"], row["predict_ratio"]) for row in rows],
    }
    up = "time of adaboost-mh / time of treeboost-mh"
    save(given, "boosting-depth.svg", draw(series, title, "depth of the tree", up, log_x=False, mark=1.0))
    is_right = rows[-1]["train_ratio"] > rows[len(rows) // 2]["train_ratio"]
    return rows, [] if is_right else ["treeboost-mh does not gain with depth"]


def at_depth(depth: int, n_documents: int, n_rounds: int, given: argparse.Namespace) -> Figures:
    """A row."""
    split = balanced_tree(depth, n_documents)
    models = [system(split.taxonomy, n_rounds=n_rounds, n_jobs=1) for system in SYSTEMS]
    turns = given.repeat * (3 if depth < 5 else 1)  # what is soon done is easily disturbed
    train = [s for s, _ in interleaved([partial(model.fit, split.X, split.Y) for model in models], turns)]
    predicted = interleaved([partial(model.predict_sets, split.X_test) for model in models], 3 * given.repeat)
    predict, works = [s for s, _ in predicted], [work_of(model, split)[0] for model in models]
    right = [accuracy(model, split) for model in models]
    ratios = {"train_ratio": train[0] / train[1], "work_ratio": works[0] / works[1], "predict_ratio": predict[0] / predict[1]}
    times, speeds = [f"{s:.3f}" for s in train], [f"{n_documents / s:,.0f}" for s in predict]
    first = [str(depth), f"{ARITY**depth:,}", *times, f"{ratios['train_ratio']:.2f}", f"{ratios['work_ratio']:.1f}"]
    show([*first, *speeds, f"{ratios['predict_ratio']:.2f}", *(f"{share:.3f}" for share in right)])
    return {"depth": depth, "train_seconds": train, "predict_seconds": predict, "accuracy": right, **ratios}


def accuracy(model: Any, split: Split) -> float:
    """The share of test documents whose one label is right, and with it the whole path."""
    difference = model.predict(split.X_test).astype(np.int64) - split.Y_test.astype(np.int64)
    return float(np.mean(abs(difference).sum(axis=1) == 0))


# ---- the command ----------------------------------------------------------------------------------------------------


def save(given: argparse.Namespace, name: str, picture: str) -> None:
    """Keep a picture, if pictures are wanted."""
    if given.images:
        (given.images / name).write_text(picture)


PARTS = {
    "reuters": on_reuters,
    "scaling": against_size,
    "oracle": compare_with_oracle,
    "sklearn": compare_with_peers,
    "depth": against_depth,
}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder above the corpora")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--threads", type=int, default=2, help="beside one")
    parser.add_argument("--repeat", type=int, default=2, help="of which the best counts")
    parser.add_argument("--quick", action="store_true", help="a few rounds and documents, to see that all is right")
    parser.add_argument("--envs", type=Path, default=HERE / ".envs", help="where the peers' environments are kept")
    parser.add_argument("--images", type=Path, help="a folder for the pictures")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    given.only = given.only.split(",")
    strange = [name for name in given.only if name not in PARTS]
    if strange:
        parser.error(f"no part {strange[0]!r}; there are {', '.join(PARTS)}.")
    given.counts = sorted({1, given.threads})
    return given


if __name__ == "__main__":
    main()
