"""Boosting beside scikit-learn's AdaBoost and XGBoost's trees of one split, on the same arrays and as many rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from boosting_problems import Split, read_newsgroups, read_reuters
from environments import HERE, InstallError, python_for
from environments import Row as Environment
from numpy.typing import NDArray
from scipy.sparse import csr_array, save_npz
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from timing import Figures, head, interleaved, show, timed

from ramify.learners import AdaBoostMH, TreeBoostMH

XGBOOST = Environment("xgboost", "xgboost_stumps", ("xgboost==3.2.0", "scipy==1.17.1", "numpy==2.4.6"), alone=True)
BINARY = ("earn", "acq", "grain")
COLUMNS = ("row", "threads", "rounds", "train s", "× first", "predict docs/s", "× first")

Judge = Callable[[Any], float]


@dataclass(frozen=True, slots=True)
class Way:
    """One row: how it trains, and how it predicts with what it has learnt; both tell the seconds too."""

    name: str
    threads: int
    train: Callable[[], tuple[float, Any]]
    predict: Callable[[Any], tuple[float, Any]]
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"train": [], "predict": []})
    predicted: list[Any] = field(default_factory=list)

    def turn(self) -> None:
        """Train once, and predict three times."""
        seconds, model = self.train()
        self.seconds["train"].append(seconds)
        for _ in range(3):
            seconds, found = self.predict(model)
            self.seconds["predict"].append(seconds)
        self.predicted[:] = [found]


def in_process(name: str, threads: int, train: Callable[[], Any], predict: Callable[[Any], Any]) -> Way:
    """A way in this process."""
    return Way(name, threads, lambda: timed(train), lambda model: timed(lambda: predict(model)))


def compare_with_peers(given: Namespace) -> tuple[list[Figures], list[str]]:
    """All tables."""
    given.python = find_xgboost(given)
    n_rounds = 10 if given.quick else 100
    news, reuters = read_newsgroups(given.data / "20news_bydate"), read_reuters(given.data / "reuters21578_90")
    if given.quick:
        news, reuters = news.some(1000), reuters.some(1000)
    rows = one_class_each(news, n_rounds, given)
    rows += two_classes(reuters, n_rounds, given)
    return rows + many_classes(reuters.selected(2000), n_rounds, given), []


# ---- 20 newsgroups --------------------------------------------------------------------------------------------------


def one_class_each(split: Split, n_rounds: int, given: Namespace) -> list[Figures]:
    """Documents of one class: the best class counts."""
    y, expected = split.classes()
    by_term = split.X.tocsc()  # as scikit-learn's trees like it; it predicts by document
    mine = partial(AdaBoostMH, split.taxonomy, n_rounds=n_rounds)
    ways = [
        in_process("adaboost-mh", n, lambda n=n: mine(n_jobs=n).fit(split.X, split.Y), best_of(split)) for n in given.counts
    ]
    for name, tree in (("a stump a round", {"max_depth": 1}), ("8 leaves a round", {"max_leaf_nodes": 8})):
        theirs = AdaBoostClassifier(DecisionTreeClassifier(**tree), n_estimators=n_rounds, random_state=0)
        train = partial(theirs.fit, by_term, y)
        ways.append(in_process(f"scikit-learn AdaBoost, {name}", 1, train, lambda model: model.predict(split.X_test)))
    with ExitStack() as until_the_end:
        classes, numbers = np.unique(y, return_inverse=True)
        ways += xgboost_ways(split, numbers, lambda P: classes[P.argmax(axis=1)], n_rounds, given, until_the_end)
        title = f"20 newsgroups: {describe(split, len(np.unique(y)))}."
        return measure(title, ways, "accuracy", lambda found: float(np.mean(found == expected)), n_rounds, split, given)


def best_of(split: Split) -> Callable[[Any], NDArray[np.int64]]:
    """The leaf with the highest score."""
    leaves = np.flatnonzero(split.taxonomy.is_leaf)

    def predict(model: Any) -> NDArray[np.int64]:
        return leaves[np.argmax(model.scores(split.X_test)[:, leaves], axis=1)]

    return predict


# ---- Reuters-21578, all categories ----------------------------------------------------------------------------------


def many_classes(split: Split, n_rounds: int, given: Namespace) -> list[Figures]:
    """Documents of several classes: those with a yes count."""
    leaves = np.flatnonzero(split.taxonomy.is_leaf)
    expected = split.Y_test[:, leaves].toarray().astype(bool)
    ways = []
    for learner in (AdaBoostMH, TreeBoostMH):
        for n in given.counts:
            model = learner(split.taxonomy, n_rounds=n_rounds, n_jobs=n)
            train, predict = partial(model.fit, split.X, split.Y), lambda m: m.predict_sets(split.X_test)[:, leaves].toarray()
            ways.append(in_process(model.kind, n, train, predict))
    with ExitStack() as until_the_end:
        labels = split.Y[:, leaves].toarray().astype(np.float32)
        ways += xgboost_ways(split, labels, lambda P: P > 0.5, n_rounds, given, until_the_end)
        title = f"Reuters-21578: {describe(split, len(leaves))}, some documents with several."
        return measure(title, ways, "micro F1", lambda found: micro_f1(found, expected), n_rounds, split, given)


def micro_f1(found: NDArray[np.bool_], expected: NDArray[np.bool_]) -> float:
    """Of documents × classes."""
    return float(2 * np.sum(found & expected) / (found.sum() + expected.sum()))


def measure(
    title: str, ways: Sequence[Way], quality: str, judge: Judge, n_rounds: int, split: Split, given: Namespace
) -> list[Figures]:
    """A table: all ways in turn."""
    head(title, *COLUMNS, quality)
    for _ in range(given.repeat):
        for way in ways:
            way.turn()
    rows: list[Figures] = []
    for way in ways:
        times = {f"{name}_seconds": min(way.seconds[name]) for name in ("train", "predict")}
        row = {"table": title, "row": way.name, "threads": way.threads, "rounds": n_rounds, **times}
        rows.append(row | {quality: judge(way.predicted[0]), "documents": split.X_test.shape[0]})
        show(cells_of(rows[-1], rows[0], quality))
    return rows


def cells_of(row: Figures, first: Figures, quality: str) -> list[str]:
    """A row as it is shown."""
    train, predict = (row[f"{name}_seconds"] / first[f"{name}_seconds"] for name in ("train", "predict"))
    times = [f"{row['train_seconds']:.2f}", f"{train:.2f}", f"{row['documents'] / row['predict_seconds']:,.0f}"]
    return [row["row"], str(row["threads"]), str(row["rounds"]), *times, f"{1 / predict:.2f}", f"{row[quality]:.4f}"]


def describe(split: Split, n_classes: int) -> str:
    """The size of a problem in words."""
    sizes = f"{split.X.shape[0]:,} documents, {split.X.shape[1]:,} words, {split.X.nnz:,} non-zeros"
    return f"{sizes}, {n_classes} classes"


# ---- two classes ----------------------------------------------------------------------------------------------------


def two_classes(split: Split, n_rounds: int, given: Namespace) -> list[Figures]:
    """A category against the rest: discrete votes, and scikit-learn's stumps."""
    title = f"Reuters-21578, one category against the rest: {n_rounds} rounds of discrete votes, one thread."
    columns = ("ms a round", "scikit-learn ms a round", "ratio", "first pivots alike", "their votes differ by")
    head(title, "category", *columns, "accuracy", "scikit-learn accuracy")
    rows = [one_against_rest(split, name, n_rounds, given) for name in BINARY]
    all_at_once = AdaBoostMH(split.taxonomy, n_rounds=n_rounds, variant="D")
    ((seconds, fitted),) = interleaved([lambda: all_at_once.fit(split.X, split.Y)], given.repeat)
    n_classes, ms = len(fitted.class_nodes_), 1000 * seconds / n_rounds
    theirs = n_classes * float(np.mean([row["sklearn_seconds"] for row in rows])) * 1000 / n_rounds
    about = f"scikit-learn, one category after the other, about {theirs:,.0f}"
    print(f"\nAll {n_classes} categories at once: {ms:.1f} ms a round; {about}, ×{theirs / ms:,.0f}.")
    return [*rows, {"table": title, "category": "all", "seconds": seconds, "sklearn_seconds": theirs * n_rounds / 1000}]


def one_against_rest(split: Split, name: str, n_rounds: int, given: Namespace) -> Figures:
    """A row."""
    y, expected = (Y[:, [split.taxonomy.index(name)]].toarray().ravel().astype(int) for Y in (split.Y, split.Y_test))
    mine, by_term = AdaBoostMH(n_rounds=n_rounds, variant="D"), split.X.tocsc()
    theirs = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1, random_state=0), n_estimators=n_rounds, random_state=0)
    (seconds, _), (sklearn_seconds, _) = interleaved(
        [lambda: mine.fit(split.X, y), lambda: theirs.fit(by_term, y)], given.repeat
    )
    alike, apart = compare_rounds(mine.committees_[0], theirs)
    right = [float(np.mean(model.predict(split.X_test) == expected)) for model in (mine, theirs)]
    times = [f"{1000 * s / n_rounds:.2f}" for s in (seconds, sklearn_seconds)]
    show([name, *times, f"×{sklearn_seconds / seconds:.1f}", str(alike), f"{apart:.1g}", *(f"{share:.4f}" for share in right)])
    figures = {"seconds": seconds, "sklearn_seconds": sklearn_seconds, "alike": alike, "apart": apart, "accuracy": right}
    return {"category": name, "rounds": n_rounds, **figures}


def compare_rounds(committee: Any, theirs: Any) -> tuple[int, float]:
    """How many rounds from the first on ask for the same term, and how far their votes are apart; theirs count double."""
    pivots = [int(tree.tree_.feature[0]) for tree in theirs.estimators_]
    same = committee.pivots[: len(pivots)] == np.asarray(pivots)
    alike = len(same) if same.all() else int(np.argmin(same))
    strengths = np.abs(committee.present[:alike, 0])
    return alike, float(np.max(np.abs(strengths - theirs.estimator_weights_[:alike] / 2), initial=0.0))


# ---- XGBoost --------------------------------------------------------------------------------------------------------


def find_xgboost(given: Namespace) -> Path | None:
    """The interpreter of its environment, where it can be installed."""
    try:
        return python_for(XGBOOST, given.envs)
    except InstallError as error:
        print(f"xgboost {error}", file=sys.stderr)
        return None


def xgboost_ways(
    split: Split, labels: NDArray[Any], decide: Callable[[Any], Any], n_rounds: int, given: Namespace, until_the_end: ExitStack
) -> list[Way]:
    """A row for each number of threads. decide: makes labels of chances, which is not counted."""
    if given.python is None:
        return []
    folder = Path(until_the_end.enter_context(tempfile.TemporaryDirectory()))
    for part, X in (("train", split.X), ("test", split.X_test)):
        save_npz(folder / f"{part}.npz", csr_array(X))
    np.save(folder / "labels.npy", labels)
    started = [until_the_end.enter_context(Subprocess(given.python, folder, n, n_rounds, decide)) for n in given.counts]
    return [Way("XGBoost, a stump a class and round", peer.threads, peer.train, peer.predict) for peer in started]


class Subprocess:
    """XGBoost in an environment and a process of its own, which waits between its turns."""

    def __init__(self, python: Path, folder: Path, threads: int, n_rounds: int, decide: Callable[[Any], Any]) -> None:
        self.folder, self.threads, self.decide = folder, threads, decide
        self.command = [str(python), "-m", "peers.xgboost_stumps", str(folder), f"--threads={threads}", f"--rounds={n_rounds}"]

    def __enter__(self) -> Subprocess:
        patient = {**os.environ, "OMP_WAIT_POLICY": "passive"}  # threads that spin stall each other on a busy machine
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(self.command, cwd=HERE, env=patient, **pipes)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def train(self) -> tuple[float, None]:
        """Learn anew."""
        return self._ask("train"), None

    def predict(self, _: None) -> tuple[float, Any]:
        """Classify all test documents."""
        return self._ask("predict"), self.decide(np.load(self.folder / "predicted.npy"))

    def _ask(self, step: str) -> float:
        print(step, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"XGBoost ended with status {self.process.wait()}; what it said stands above.")
        return float(json.loads(answer)["seconds"])
