"""Updates after a change of the taxonomy, compared with training: ``benchmarks/updating.py --systems hr-svm,svm``.

Subtrees are moved one by one, from a single leaf to a large part of the tree, close by and far away. ``update`` adapts the old
model, and another one is trained from scratch on the same documents, interleaved in one run. The result has the objective and
the duality gap of both, their accuracy on test documents, and the ratio of their times by the fraction of classes that the
change affects: classes at or below a node with another parent or with other classes below it. Last, all nodes get new titles.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from boosting_plots import draw
from environments import HERE
from measuring import host_facts
from timing import head, interleaved, show, timed

from ramify import Taxonomy, TextClassifier
from ramify.data import make_web_directory
from ramify.features import Vectors
from ramify.workflows.updating import UpdateResult, update

SHARES = (0.001, 0.01, 0.03, 0.1, 0.3)
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """Documents to train on and others to test on, and the labels of both."""

    X: Any
    labels: list[str]
    X_test: Any
    labels_test: list[str]
    taxonomy: Taxonomy

    def train(self, system: str, taxonomy: Taxonomy, threads: int) -> TextClassifier:
        """A classifier from nothing, which can follow changes later."""
        made = TextClassifier(system, taxonomy, features=Vectors(), calibrate=False, keep_training_data=True, n_jobs=threads)
        return made.fit(self.X, self.labels)

    def accuracy(self, classifier: TextClassifier) -> float:
        """The share of test documents that are answered rightly."""
        return float(np.mean(classifier.predict(self.X_test) == np.asarray(self.labels_test)))


def main() -> None:
    """Measure every system, keep the figures, draw them."""
    given = parse()
    task = make_task(given.leaves, given.documents, given.seed)
    results = {system: measure(task, system, given) for system in given.systems.split(",")}
    about = {"machine": host_facts(), "threads": given.threads, "leaves": given.leaves, "documents": given.documents}
    given.out.with_suffix(".json").write_text(json.dumps({**about, "results": results}, indent=1))
    series = {system: sorted((row["reached"], row["ratio"]) for row in found["moves"]) for system, found in results.items()}
    title = f"Updating a model, relative to training from scratch: {given.leaves:,} classes, {given.documents:,} documents"
    up = "time of the update / time of a training"
    given.out.with_suffix(".svg").write_text(draw(series, title, "fraction of classes affected", up, log_x=True, mark=1.0))


def make_task(n_leaves: int, n_docs: int, seed: int) -> Task:
    """A directory; one document in ten is kept for testing, but none that is the last of its class."""
    problem = make_web_directory(n_leaves=n_leaves, n_docs=n_docs, seed=seed)
    labels = np.asarray([row[0] for row in problem.taxonomy.decode(problem.Y)])
    first = np.unique(labels, return_index=True)[1]
    others = np.random.default_rng(seed).permutation(np.setdiff1d(np.arange(n_docs), first))
    test, learnt = np.sort(others[: n_docs // 10]), np.sort(np.concatenate([first, others[n_docs // 10 :]]))
    parts = problem.X[learnt], labels[learnt].tolist(), problem.X[test], labels[test].tolist()
    return Task(*parts, problem.taxonomy)


def measure(task: Task, system: str, given: argparse.Namespace) -> Figures:
    """A table of one system."""
    before = task.train(system, task.taxonomy, given.threads)
    columns = ("classes moved", "reached", "update s", "training s", "ratio", "objectives", "gaps", "accuracies", "trained")
    head(system, *columns)
    moves = []
    for share, is_near in ((share, is_near) for is_near in (True, False) for share in SHARES):
        new, moved, reached = move_subtree(task.taxonomy, share, is_near, given.seed)
        moves.append(compare(task, before, system, new, given) | {"moved": moved, "reached": reached})
        show(line(moves[-1]))
    titles = {name: f"{name} by another name" for name in task.taxonomy.names}
    renamed = Taxonomy.from_edges(edges_of(task.taxonomy).items(), titles=titles)
    seconds, done = timed(lambda: update(before, renamed))
    show(["all renamed", "0", f"{seconds:.3f}", *[""] * 5, "everything" if done.is_trained else "nothing"])
    return {"moves": moves, "renaming": {"seconds": seconds, "is_trained": done.is_trained}}


def compare(task: Task, before: TextClassifier, system: str, new: Taxonomy, given: argparse.Namespace) -> Figures:
    """Update and training, in turn."""
    ways = (lambda: update(before, new), lambda: task.train(system, new, given.threads))
    (fast, done), (slow, anew) = interleaved(ways, given.repeat)
    assert isinstance(done, UpdateResult)
    assert isinstance(anew, TextClassifier)
    both = {"update": done.classifier, "training": anew}
    figures: Figures = {"seconds": {"update": fast, "training": slow}, "ratio": fast / slow}
    figures["trained"] = done.reused and [done.reused[1] - done.reused[0], done.reused[1]]
    figures["accuracy"] = {name: task.accuracy(each) for name, each in both.items()}
    if hasattr(anew.learner_, "gap_"):
        figures["objective"] = {name: each.learner_.gap_.primal for name, each in both.items()}
        figures["gap"] = {name: float(each.learner_.gap_) for name, each in both.items()}
        figures["rounds"] = {name: each.learner_.gap_.rounds for name, each in both.items()}
    return figures


def line(figures: Figures) -> list[str]:
    """One line of the table."""
    seconds, trained = figures["seconds"], figures["trained"]
    shown = [f"{figures['moved']:.1%}", f"{figures['reached']:.1%}", *(f"{each:.2f}" for each in seconds.values())]
    shown.append(f"{figures['ratio']:.2f}")
    shown.append(", ".join(f"{each:.1f}" for each in figures.get("objective", {}).values()))
    shown.append(", ".join(f"{each:.1e}" for each in figures.get("gap", {}).values()))
    shown.append(", ".join(f"{each:.4f}" for each in figures["accuracy"].values()))
    rounds = figures.get("rounds", {})
    return [
        *shown,
        f"{trained[0]:,} of {trained[1]:,}" if trained else f"{rounds.get('update')} of {rounds.get('training')} rounds",
    ]


def edges_of(taxonomy: Taxonomy) -> dict[str, str | None]:
    """The parent of every node, by names."""
    return {taxonomy.names[node]: None if p < 0 else taxonomy.names[p] for node, p in enumerate(taxonomy.parent.tolist())}


def leaves_below(taxonomy: Taxonomy) -> list[frozenset[str]]:
    """Of every node the names of the leaves at or below it."""
    found: list[set[str]] = [set() for _ in taxonomy.names]
    for node in range(len(taxonomy) - 1, -1, -1):  # parents come first
        if taxonomy.is_leaf[node]:
            found[node].add(taxonomy.names[node])
        if taxonomy.parent[node] >= 0:
            found[int(taxonomy.parent[node])] |= found[node]
    return [frozenset(each) for each in found]


def move_subtree(taxonomy: Taxonomy, share: float, is_near: bool, seed: int) -> tuple[Taxonomy, float, float]:
    """The taxonomy with about such a share of its leaves elsewhere; the share moved, and the share reached.

    is_near: to the parent of its parent, rather than to any inner node.
    """
    below, parent = leaves_below(taxonomy), taxonomy.parent
    n_leaves = int(taxonomy.is_leaf.sum())
    candidates = np.flatnonzero(taxonomy.depth > 1)
    off = [(abs(len(below[node]) - share * n_leaves), -taxonomy.depth[node]) for node in candidates]  # of equals the deepest
    node = int(candidates[off.index(min(off))])
    inside = {node, int(parent[node]), *taxonomy.descendants_of(node).tolist()}
    targets = [k for k in np.flatnonzero(~taxonomy.is_leaf).tolist() if k not in inside and taxonomy.depth[k] > 0]
    target = int(parent[parent[node]]) if is_near else int(np.random.default_rng(seed).choice(targets))
    new = Taxonomy.from_edges((edges_of(taxonomy) | {taxonomy.names[node]: taxonomy.names[target]}).items())
    return new, len(below[node]) / n_leaves, count_changed(taxonomy, new) / n_leaves


def count_changed(old: Taxonomy, new: Taxonomy) -> int:
    """Leaves at or below a node that has other leaves below it than before, or another parent."""
    before, after = dict(zip(old.names, leaves_below(old), strict=True)), leaves_below(new)
    parents, reached = (edges_of(old), edges_of(new)), set[str]()
    for node, name in enumerate(new.names):
        if before[name] != after[node] or parents[0][name] != parents[1][name]:
            reached |= after[node]
    return len(reached)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", default="hr-svm,svm,td-svm")
    parser.add_argument("--leaves", type=int, default=1_000)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1, help="turns, of which the shortest time counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE / "updating", help="where the .json and .svg go")
    return parser.parse_args()


if __name__ == "__main__":
    main()
