"""Recursive regularization on DAGs beside flat classifiers: ``python benchmarks/dags.py --data DIR``.

Problems: job titles over their tree, with a second parent for one node, and for a fifth of all nodes; an ontology made on the
spot, whose documents have words of all ancestors of their node; genes over the gene ontology, with few dense features. Each is
trained by `svm` and `hr-svm`, with --logistic by `lr` and `hr-lr`, too. Ratios are of CPU seconds, since others may use the
computer; rows of a problem take turns, and the best of some rounds counts. --edges adds the paper's form of a DAG.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from datasets import read_split
from measuring import host_facts
from scipy.sparse import csr_array

from ramify.learners import OneVsRestLogistic, OneVsRestSVM, RecursiveLogistic, RecursiveSVM
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific, read_taxonomy

COLUMNS = ("problem", "nodes", "ancestors", "row", "CPU s", "wall s", "× flat", "gap", "rounds", "micro F1")
ONTOLOGY = {"n_nodes": 1_400, "n_documents": 12_000, "n_words": 30_000}
TERMS = 60  # words drawn for a document of the ontology, half of them from everyone's


@dataclass(frozen=True, slots=True)
class Problem:
    """Documents × features and documents × nodes, the first to train on, every fourth to test on."""

    name: str
    X: csr_array
    Y: csr_array
    taxonomy: Taxonomy


def main() -> None:
    """Measure every problem with every row."""
    given = parse()
    measured: list[dict[str, Any]] = []
    show(COLUMNS)
    show(["---"] * len(COLUMNS))
    for problem in problems(given):
        measured += measure(problem, given)
    if given.out:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        given.out.write_text(json.dumps({"machine": host_facts(), "date": date, "rows": measured}, indent=1))


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with esco_titles and cellcycle_go")
    parser.add_argument("--only", default="", help="problems whose names contain this")
    parser.add_argument("--logistic", action="store_true", help="lr and hr-lr, too")
    parser.add_argument("--loss", default="hinge", help="loss of svm and hr-svm")
    parser.add_argument("--edges", action="store_true", help='hr-svm with ties="edges", too')
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


# ---- problems -----------------------------------------------------------------------------------------------------------


def problems(given: argparse.Namespace) -> Iterator[Problem]:
    """Those that were asked for, as far as their data are there."""
    if given.data and (given.data / "esco_titles").is_dir():
        split = read_split(given.data / "esco_titles")
        taxonomy, rng = split.taxonomy, np.random.default_rng(0)
        inner = np.flatnonzero(np.diff(taxonomy.parent_offsets) > 0)
        for name, n in (("titles, tree", 0), ("titles, one more edge", 1), ("titles, a fifth more edges", len(taxonomy) // 5)):
            dag = add_parents(taxonomy, rng.choice(inner, size=n, replace=False), rng)
            if given.only in name:
                nodes = np.array([dag.index(taxonomy.names[node]) for node in split.y_train])
                yield Problem(name, split.X_train, label_matrix(nodes, dag), dag)
    if given.only in "ontology":
        yield make_ontology(**ONTOLOGY)
    if given.data and given.only in "genes" and (given.data / "cellcycle_go").is_dir():
        yield read_genes(given.data / "cellcycle_go")


def add_parents(taxonomy: Taxonomy, nodes: Any, rng: np.random.Generator) -> Taxonomy:
    """The same with one more parent for some nodes: any other node that is neither above nor below."""
    edges = [(name, None) for name in (taxonomy.names[root] for root in taxonomy.roots)]
    edges += [(name, taxonomy.names[p]) for v, name in enumerate(taxonomy.names) for p in taxonomy.parents_of(v)]
    made = taxonomy
    for node in nodes.tolist():
        index = made.index(taxonomy.names[node])
        taken = {index, *made.ancestors_of(index).tolist(), *made.descendants_of(index).tolist()}
        others = [v for v in range(len(made)) if v not in taken and len(made.children_of(v))]
        if others:
            edges.append((taxonomy.names[node], made.names[int(rng.choice(others))]))
            made = Taxonomy.from_edges(edges)
    return made


def make_ontology(n_nodes: int, n_documents: int, n_words: int, seed: int = 0) -> Problem:
    """A DAG like an ontology: a third of the nodes have two parents, and a document has words of all nodes above its own."""
    rng = np.random.default_rng(seed)
    edges: list[tuple[str, str | None]] = [("t0", None)]
    for node in range(1, n_nodes):
        n_parents = min(node, 1 + (rng.random() < 1 / 3))
        chosen = set(rng.choice(node, size=n_parents, replace=False).tolist())
        edges += [(f"t{node}", f"t{parent}") for parent in sorted(chosen)]
    taxonomy = Taxonomy.from_edges(edges)
    words = [rng.integers(0, n_words, size=30) for _ in range(n_nodes)]
    common = 1 / np.arange(1, n_words + 1)
    labels = rng.permutation(np.arange(n_documents) % n_nodes)
    rows = []
    for node in labels.tolist():
        above = [node, node, *taxonomy.ancestors_of(node).tolist()]
        own = [rng.choice(words[above[int(rng.integers(len(above)))]]) for _ in range(TERMS // 2)]
        rows.append(np.concatenate([own, rng.choice(n_words, size=TERMS // 2, p=common / common.sum())]))
    counts = csr_array(
        (np.ones(n_documents * TERMS, dtype=np.float32), np.concatenate(rows), np.arange(n_documents + 1) * TERMS),
        shape=(n_documents, n_words),
    )
    counts.sum_duplicates()
    counts.data = 1 + np.log(counts.data)
    frequency = np.bincount(counts.indices, minlength=n_words)
    counts.data *= np.log(n_documents / np.maximum(1, frequency))[counts.indices].astype(np.float32)
    norms = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1))).ravel()
    counts.data /= np.repeat(norms, np.diff(counts.indptr)).astype(np.float32)
    return Problem("ontology", counts, label_matrix(labels, taxonomy), taxonomy)


def read_genes(folder: Path) -> Problem:
    """Genes with their terms, standardized; missing values are means."""
    taxonomy, labels = read_taxonomy(folder / "taxonomy.tsv"), []
    rows: list[dict[int, float]] = []
    with gzip.open(folder / "train.svm.gz", "rt") as lines:
        for line in lines:
            terms, *pairs = line.split()
            labels.append(terms.split(","))
            rows.append({int(feature): float(value) for feature, value in (pair.split(":") for pair in pairs)})
    X = np.array([[row.get(f, 0.0) for f in range(1, 1 + max(map(max, rows)))] for row in rows])
    X -= np.nanmean(X, axis=0)
    X = np.nan_to_num(X / np.maximum(np.nanstd(X, axis=0), 1e-6)).astype(np.float32)
    return Problem("genes", csr_array(X), expand_to_ancestors(taxonomy.encode(labels), taxonomy), taxonomy)


def label_matrix(nodes: Any, taxonomy: Taxonomy) -> csr_array:
    """Documents × nodes, one label each."""
    n, ones = len(nodes), np.ones(len(nodes), dtype=bool)
    return expand_to_ancestors(csr_array((ones, (np.arange(n), nodes)), shape=(n, len(taxonomy))), taxonomy)


# ---- measuring ----------------------------------------------------------------------------------------------------------


def measure(problem: Problem, given: argparse.Namespace) -> list[dict[str, Any]]:
    """The figures of all rows; flat classifiers first."""
    rows: list[tuple[str, Any, dict[str, Any]]] = []
    rows += [("svm", OneVsRestSVM, {"loss": given.loss}), ("hr-svm", RecursiveSVM, {"loss": given.loss})]
    if given.edges and not problem.taxonomy.is_tree:
        rows.append(("hr-svm, edges", RecursiveSVM, {"loss": given.loss, "ties": "edges"}))
    if given.logistic:
        rows += [("lr", OneVsRestLogistic, {}), ("hr-lr", RecursiveLogistic, {})]
    tested = np.arange(problem.X.shape[0]) % 4 == 3
    found: dict[str, dict[str, Any]] = {}
    for _ in range(given.rounds):
        for name, learner, parameters in rows:
            made = train(learner(problem.taxonomy, n_jobs=given.threads, **parameters), problem, tested)
            if name not in found or made["cpu"] < found[name]["cpu"]:
                found[name] = {"problem": problem.name, "nodes": len(problem.taxonomy), "row": name} | made
    for name, figures in found.items():
        figures["times_flat"] = figures["cpu"] / found["lr" if "lr" in name else "svm"]["cpu"]
        figures["ancestors"] = mean_ancestors(problem)
        show([
            problem.name, figures["nodes"], f"{figures['ancestors']:.1f}", name, f"{figures['cpu']:.1f}",
            f"{figures['wall']:.1f}", f"{figures['times_flat']:.2f}", f"{figures['gap']:.1e}", figures["rounds"],
            f"{figures['micro']:.3f}",
        ])  # fmt: skip
    return list(found.values())


def train(learner: Any, problem: Problem, tested: Any) -> dict[str, Any]:
    """One row, once; quality of the best-scoring class over all nodes above it."""
    X, Y = problem.X[~tested], problem.Y[~tested]
    wall, cpu = perf_counter(), process_time()
    learner.fit(X, Y)
    cpu, wall = process_time() - cpu, perf_counter() - wall
    best = learner.top_k(problem.X[tested], 1)[0][:, 0]
    right = problem.Y[tested].multiply(label_matrix(best, problem.taxonomy)).sum()
    micro = 2 * right / (problem.Y[tested].sum() + label_matrix(best, problem.taxonomy).sum())
    gap = learner.gap_
    return {"cpu": cpu, "wall": wall, "gap": float(gap), "rounds": gap.rounds, "objective": gap.primal, "micro": float(micro)}


def mean_ancestors(problem: Problem) -> float:
    """How many nodes are above a label, on average."""
    labels = np.unique(most_specific(problem.Y, problem.taxonomy).indices)
    return float(np.mean([len(problem.taxonomy.ancestors_of(node)) for node in labels]))


def show(cells: Any) -> None:
    """One line of the table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
