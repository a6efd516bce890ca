"""Does deciding from the bottom up help? H-SVM, B-SVM and variants on the synthetic sets of Cesa-Bianchi et al. 2006.

    python experiments/cesabianchi2006/synthetic.py [--n-docs 40000] [--folds 4] [--cost 1] [--out results.json]

The protocol of section 5: documents in four ordered chunks; training on three that follow each other, the first after the
fourth, and testing on the one left; H-loss with all costs 1. All rules about the same classifiers share one training. A row
that the results hold already is not run again. The paper does not state the cost C of the SVMs; it is 1 here, or as given.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify import Taxonomy
from ramify.datasets import make_cesa_bianchi
from ramify.decisions import minimize_h_loss, top_down
from ramify.learners import NodeClassifiers
from ramify.metrics import h_loss_by_depth
from ramify.metrics.h_loss import node_costs
from ramify.taxonomy import expand_to_ancestors, most_specific

CHUNKS = 4
SETS = ("synth1", "synth2")
PAPER_PATHS = {"synth1": 2.656, "synth2": 1.277}
PAPER = {  # Table 1, with standard deviations, and Table 3
    ("synth1", "H-SVM"): (1.454, 0.007, (0.432, 0.572, 0.757)),
    ("synth1", "B-SVM"): (1.269, 0.008, (0.445, 0.519, 0.678)),
    ("synth2", "H-SVM"): (0.350, 0.007, (0.123, 0.184, 0.187)),
    ("synth2", "B-SVM"): (0.322, 0.003, (0.121, 0.166, 0.183)),
}

Floats = NDArray[np.floating[Any]]
Decide = Callable[[Floats, Floats, Taxonomy], csr_array]


# ---- the rules ------------------------------------------------------------------------------------------------------


def walk_down(S: Floats, P: Floats, taxonomy: Taxonomy) -> csr_array:
    """H-SVM: by the sign of the margins, from the top down."""
    return top_down(S, taxonomy)


def least_h_loss(costs: Any = "siblings", switch_depth: int = 0) -> Decide:
    """B-SVM: the set with the least expected H-loss; the hybrid walks down above the switch depth."""
    return lambda S, P, taxonomy: minimize_h_loss(P, taxonomy, costs, switch_depth)


def no_labels(S: Floats, P: Floats, taxonomy: Taxonomy) -> csr_array:
    """Nothing for anyone; its H-loss is the number of roots that a document has."""
    return csr_array(P.shape, dtype=bool)


def as_printed(S: Floats, P: Floats, taxonomy: Taxonomy) -> csr_array:
    """B-SVM with the recursion of section 3.1 and the messages of Figure 2, word for word.

    p: P(node | parent), c: costs, y: what is taken, H: documents × nodes, the message that a node sends to its parent.
    """
    p, c = np.nan_to_num(P, nan=0.0), node_costs(taxonomy, "siblings")
    H, y = np.zeros(p.shape), np.zeros(p.shape, dtype=bool)
    # parents come first, so a backward sweep sees children first
    for i in range(len(taxonomy) - 1, -1, -1):
        below = H[:, taxonomy.children_of(i)].sum(axis=1)
        y[:, i] = p[:, i] * (2 - below / c[i]) >= 1  # (1)
        H[:, i] = c[i] * np.where(y[:, i], 1 - p[:, i], p[:, i]) + below
    for i in np.flatnonzero(taxonomy.parent >= 0):
        y[:, i] &= y[:, taxonomy.parent[i]]
    return csr_array(y)


SVM, LR = ("svm", "sigmoid"), ("lr", "sigmoid")
RULES: dict[str, tuple[tuple[str, str | None], Decide]] = {
    "no labels": (SVM, no_labels),
    "H-SVM": (SVM, walk_down),
    "B-SVM": (SVM, least_h_loss()),
    "B-SVM, recursion as printed": (SVM, as_printed),
    "B-SVM, costs uniform": (SVM, least_h_loss(None)),
    "hybrid, top-down at depth 0": (SVM, least_h_loss(switch_depth=1)),
    "hybrid, top-down at depths 0 and 1": (SVM, least_h_loss(switch_depth=2)),
    "B-SVM, Platt with offset": (("svm", "platt"), least_h_loss()),
    "B-SVM, isotonic calibration": (("svm", "isotonic"), least_h_loss()),
    "H-LR": (LR, walk_down),
    "B-LR": (LR, least_h_loss()),
    "B-LR, Platt with offset": (("lr", "platt"), least_h_loss()),
    "B-LR, no calibration": (("lr", None), least_h_loss()),
}
LEARNERS = list(dict.fromkeys(learner for learner, _ in RULES.values()))


# ---- running them ---------------------------------------------------------------------------------------------------


def main() -> None:
    """Train every learner on every fold of every set, tell of each, and print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--n-docs", type=int, default=40_000)
    options.add_argument("--seed", type=int, default=0, help="of the documents")
    options.add_argument("--folds", type=int, default=CHUNKS, choices=range(1, CHUNKS + 1), help="how many of the four to run")
    options.add_argument("--cost", type=cost, default=1.0, help="C: a number, or auto")
    options.add_argument("--threads", type=int, default=-1)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    results = json.loads(given.out.read_text()) if given.out and given.out.exists() else {}
    asked = {name: run_set(name, given, results) for name in SETS}
    print("", paths_told(asked), totals(asked), *(depths(name, found) for name, found in asked.items()), sep="\n\n")


def cost(text: str) -> float | str:
    """C, as the command line has it."""
    return text if text == "auto" else float(text)


def run_set(name: str, given: argparse.Namespace, results: dict[str, Any]) -> dict[str, Any]:
    """What is asked for of one set; what is not known yet is run, told and kept."""
    known = results.setdefault(f"{name}, {given.n_docs} documents, seed {given.seed}", {})
    rows = known.setdefault(f"C={given.cost}", {})
    problem = None
    for fold in range(given.folds):
        for learner in LEARNERS:
            key = key_of(fold, learner)
            if key not in rows:
                problem = problem or make_cesa_bianchi(name, n_docs=given.n_docs, seed=given.seed)
                known["of_set"] = count(problem)
                rows[key] = run(learner, problem, fold, given)
                if given.out:
                    given.out.write_text(json.dumps(results, indent=1))
            print(line(name, key, rows[key]), flush=True)
    wanted = [rows[key_of(fold, learner)] for fold in range(given.folds) for learner in LEARNERS]
    return {"of_set": known["of_set"], "rules": {rule: gather(wanted, rule) for rule in RULES}}


def key_of(fold: int, learner: tuple[str, str | None]) -> str:
    """The name of a training."""
    return f"fold {fold + 1} {learner[0]} {learner[1]}"


def count(problem: Any) -> dict[str, float]:
    """Paths and nodes a document; a path is counted by its most specific node."""
    counted = {"paths": most_specific(problem.Y, problem.taxonomy), "nodes": expand_to_ancestors(problem.Y, problem.taxonomy)}
    return {what: Y.nnz / Y.shape[0] for what, Y in counted.items()}


def run(learner: tuple[str, str | None], problem: Any, fold: int, given: argparse.Namespace) -> dict[str, Any]:
    """Train one learner on one fold, and decide by all rules that use it."""
    base, calibration = learner
    train, test = split(given.n_docs, fold)
    start = time.perf_counter()
    fitted = NodeClassifiers(problem.taxonomy, base=base, calibration=calibration, C=given.cost, n_jobs=given.threads)
    fitted.fit(problem.X[train], problem.Y[train])
    seconds = time.perf_counter() - start
    S = fitted.scores(problem.X[test])
    P, truth = fitted.conditionals(S), csr_array(problem.Y[test])
    rules = {
        rule: judge(truth, decide(S, P, problem.taxonomy), problem.taxonomy)
        for rule, (its_learner, decide) in RULES.items()
        if its_learner == learner
    }
    return {"C": fitted.C_, "seconds": seconds, "rules": rules}


def split(n_docs: int, fold: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Three chunks in a row, in the circle of four, and the one left."""
    chunks = np.array_split(np.arange(n_docs), CHUNKS)
    *train, test = (chunks[(fold + k) % CHUNKS] for k in range(CHUNKS))
    return np.concatenate(train), test


def judge(truth: csr_array, answer: csr_array, taxonomy: Taxonomy) -> dict[str, Any]:
    """H-loss by depth, and how many nodes a document gets."""
    return {"by_depth": h_loss_by_depth(truth, answer, taxonomy).tolist(), "nodes": answer.nnz / answer.shape[0]}


def line(name: str, key: str, row: dict[str, Any]) -> str:
    """One training, with the H-loss of each of its rules."""
    losses = "  ".join(f"{rule} {sum(found['by_depth']):.4f}" for rule, found in row["rules"].items())
    return f"{name} {key:24} C={row['C']:<5g} {row['seconds']:7.1f} s  {losses}"


def gather(rows: list[dict[str, Any]], rule: str) -> list[dict[str, Any]]:
    """What is known of a rule, fold by fold."""
    return [row["rules"][rule] for row in rows if rule in row["rules"]]


# ---- tables ---------------------------------------------------------------------------------------------------------


def paths_told(asked: dict[str, Any]) -> str:
    """How many paths a document has."""
    said = (f"{name} {found['of_set']['paths']:.3f} (paper {PAPER_PATHS[name]})" for name, found in asked.items())
    return f"Paths a document: {', '.join(said)}"


def totals(asked: dict[str, Any]) -> str:
    """Table 1: the mean H-loss over folds ± its standard deviation."""
    rows = []
    for rule in RULES:
        rows.append([rule])
        for name, found in asked.items():
            rows[-1] += total_cells(found["rules"][rule], PAPER.get((name, rule)))
    return as_markdown(["H-loss", *(title for name in asked for title in (name, "paper", "difference"))], rows)


def total_cells(folds: list[dict[str, Any]], paper: tuple[float, float, Any] | None) -> list[str]:
    """Ours, the paper's, and the difference."""
    loss = np.array([sum(found["by_depth"]) for found in folds])
    spread = f" ± {loss.std(ddof=1):.3f}" if len(loss) > 1 else ""
    beside = ["", ""] if paper is None else [f"{paper[0]:.3f} ± {paper[1]:.3f}", f"{loss.mean() - paper[0]:+.3f}"]
    return [f"{loss.mean():.3f}{spread}", *beside]


def depths(name: str, found: dict[str, Any]) -> str:
    """Table 3: the parts of the H-loss by depth, the mean over folds; and how many nodes a document gets."""
    n_depths = len(PAPER[name, "H-SVM"][2])
    titles = [title for depth in range(n_depths) for title in (f"depth {depth}", "paper", "difference")]
    rows = []
    for rule, folds in found["rules"].items():
        paper = PAPER[name, rule][2] if (name, rule) in PAPER else (None,) * n_depths
        rows.append([rule, f"{np.mean([fold['nodes'] for fold in folds]):.2f}"])
        for ours, theirs in zip(np.mean([fold["by_depth"] for fold in folds], axis=0), paper, strict=True):
            rows[-1] += [f"{ours:.3f}", *(["", ""] if theirs is None else [f"{theirs:.3f}", f"{ours - theirs:+.3f}"])]
    return as_markdown([name, f"nodes ({found['of_set']['nodes']:.2f} true)", *titles], rows)


def as_markdown(titles: list[str], rows: list[list[str]]) -> str:
    """A table."""
    head, *lines = (f"| {' | '.join(cells)} |" for cells in (titles, *rows))
    return "\n".join([head, "|---" * len(titles) + "|", *lines])


if __name__ == "__main__":
    main()
