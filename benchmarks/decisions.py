"""Throughput of the decision functions, each beside its slow oracle: ``python benchmarks/decisions.py --threads 2``.

Ends with status 1 where a function and its oracle differ: costs by more than 1e-9 of the least, label sets by a node.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, inf
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from measuring import host_facts
from numpy.typing import NDArray
from scipy.sparse import csr_array
from slow_decisions import (
    TOLERANCE,
    Family,
    check_oracles,
    children_of,
    cost_of,
    grid_of,
    has_scores,
    is_coarse,
    least_cost,
    least_risk,
    nearest_of,
    sibling_costs,
)

from ramify.decisions import isotonic_smooth, minimize_h_loss
from ramify.taxonomy import Taxonomy

Scores = NDArray[np.float32]
Row = dict[str, Any]
PENALTIES = (0.0, 1.0, 5.0, inf)
SEED = 0
RUNS = 3
FEWEST = 8  # documents of the first estimate
COLUMNS = ("what", "nodes", "penalty", "scores", "documents/s", "goal", "kernel vs oracle", "largest difference")


def main() -> None:
    """Check the oracles, then measure and compare row by row."""
    given = parse()
    off = check_oracles(np.random.default_rng(SEED))
    if not off <= TOLERANCE:
        raise SystemExit(f"the oracles differ from the least of all answers by {off:g}; no row was measured.")
    show(COLUMNS)
    show(["---"] * len(COLUMNS))
    rows = []
    for problem in problems():
        for kind, make_scores in KINDS.items():
            rows.append(measure(problem, kind, make_scores, given))
            show(cells_of(rows[-1]))
    if given.out:
        given.out.write_text(json.dumps(about(given) | {"oracles_off": off, "rows": rows}, indent=1))
    conclude(rows)


# ---- problems -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Smoothing:
    """Isotonic smoothing of one tree, every score with weight 1."""

    taxonomy: Taxonomy
    children: Family
    goal: int
    penalty: float
    levels: int | None = None

    @property
    def what(self) -> str:
        """The function and its setting."""
        return f"`isotonic_smooth`, {self.levels} levels" if self.levels else "`isotonic_smooth`"

    def decide(self, S: Scores, threads: int) -> Scores:
        """The smoothed scores."""
        return isotonic_smooth(S, self.taxonomy, self.penalty, levels=self.levels, n_jobs=threads)

    def ask_oracle(self, x: Scores) -> float:
        """The least cost, of the rounded scores where there are levels."""
        return self.least_cost(self._rounded(x))

    def difference(self, x: Scores, y: Scores, least: float) -> float:
        """By which part of the least cost the kernel's differs; infinite where its values are not those to choose from."""
        if not self.levels or is_coarse(x, self.levels):
            return abs(self.cost(x, y) - least) / (least or 1.0)
        # single precision cannot tell the values of the grid exactly, so each is read as the nearest one
        on_grid = nearest_of(grid_of(x.astype(float), self.levels), y.astype(float))
        if not np.array_equal(on_grid.astype(y.dtype), y):
            return inf
        return abs(self.cost(self._rounded(x), on_grid) - least) / (least or 1.0)

    def fraction_of_bound(self, x: Scores, y: Scores) -> float:
        """By how much levels raised the cost above the least without them, relative to the bound that is documented."""
        counted = x[has_scores(x, np.ones(len(x)))].astype(float)
        bound = len(counted) * np.ptp(counted) / ((self.levels or inf) - 1)
        # a parent equals its largest child on the grid, and so in single precision
        return (self.cost(x, y) - self.least_cost(x)) / bound

    def least_cost(self, x: NDArray[Any]) -> float:
        """The oracle's answer."""
        return least_cost(x.astype(float), self.children, *self._per_node())

    def cost(self, x: NDArray[Any], y: NDArray[Any]) -> float:
        """What smoothed scores cost."""
        return cost_of(x.astype(float), y.astype(float), self.children, *self._per_node())

    def row_of(self, smoothed: Scores, d: int) -> Scores:
        """The answer for one document."""
        return smoothed[d]

    def _rounded(self, x: Scores) -> NDArray[Any]:
        exact = x.astype(float)
        return nearest_of(grid_of(exact, self.levels), exact) if self.levels and not is_coarse(exact, self.levels) else exact

    def _per_node(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n = len(self.taxonomy)
        return np.ones(n), np.full(n, self.penalty)


@dataclass(frozen=True, slots=True, eq=False)
class LeastHLoss:
    """The least expected H-loss, with costs by the number of siblings."""

    taxonomy: Taxonomy
    parents: Family
    costs: list[float]
    goal: int
    penalty: None = None
    levels: None = None
    what: str = "`minimize_h_loss`"

    def decide(self, P: Scores, threads: int) -> csr_array:
        """The label sets."""
        return minimize_h_loss(P, self.taxonomy, costs="siblings", n_jobs=threads)

    def ask_oracle(self, p: Scores) -> set[int]:
        """The oracle's label set."""
        return least_risk(p, self.parents, self.costs)

    def difference(self, p: Scores, found: set[int], expected: set[int]) -> float:
        """The number of nodes that are in one set only."""
        return float(len(found ^ expected))

    def row_of(self, labels: csr_array, d: int) -> set[int]:
        """The answer for one document."""
        return set(labels.indices[labels.indptr[d] : labels.indptr[d + 1]].tolist())


Problem = Smoothing | LeastHLoss


def problems() -> Iterator[Problem]:
    """Every function at every size and penalty."""
    for n_nodes, n_children, goal, levels in ((31, 2, 300_000, None), (2_000, 3, 200, None), (15_000, 3, 200, 256)):
        parents = complete_forest(n_nodes, n_children)
        taxonomy, children = taxonomy_of(parents), children_of(parents)
        for penalty in PENALTIES:
            yield Smoothing(taxonomy, children, goal, penalty, levels)
    parents = complete_forest(39, 3, n_roots=3)
    yield LeastHLoss(taxonomy_of(parents), parents, sibling_costs(parents), goal=1_000_000)


def complete_forest(n_nodes: int, n_children: int, n_roots: int = 1) -> Family:
    """Parents of nodes level by level; each node gets its children before the next one does."""
    return [[(node - n_roots) // n_children] if node >= n_roots else [] for node in range(n_nodes)]


def taxonomy_of(parents: Family) -> Taxonomy:
    """Nodes keep their numbers, which are their names."""
    return Taxonomy.from_edges((str(node), str(*above) if above else None) for node, above in enumerate(parents))


def uniform(shape: tuple[int, int]) -> Scores:
    """Scores between 0 and 1."""
    return np.random.default_rng(SEED).random(shape, dtype=np.float32)


def with_ties_and_gaps(shape: tuple[int, int]) -> Scores:
    """The same with two decimals, and every tenth missing."""
    is_missing = np.random.default_rng(SEED + 1).random(shape, dtype=np.float32) < 0.1
    return np.where(is_missing, np.float32(np.nan), np.round(uniform(shape), 2))


KINDS = {"uniform": uniform, "ties, 10 % NaN": with_ties_and_gaps}


# ---- measuring ------------------------------------------------------------------------------------------------------


def measure(problem: Problem, kind: str, make_scores: Callable[[tuple[int, int]], Scores], given: argparse.Namespace) -> Row:
    """One row: the speed, and the oracle's answers for some of the documents that were timed."""
    S = make_scores((documents_for(problem, make_scores, given), len(problem.taxonomy)))
    problem.decide(S, given.threads)  # to warm up
    timed = [time(lambda: problem.decide(S, given.threads)) for _ in range(RUNS)]
    per_second = len(S) / min(seconds for seconds, _ in timed)
    row = {
        "what": problem.what,
        "nodes": len(problem.taxonomy),
        "penalty": None if problem.penalty is None else f"{problem.penalty:g}",
        "levels": problem.levels,
        "scores": kind,
        "documents": len(S),
        "documents_per_second": per_second,
        "goal": problem.goal,
    }
    return row | compare(problem, S, timed[-1][1], per_second, given)


def documents_for(problem: Problem, make_scores: Callable[[tuple[int, int]], Scores], given: argparse.Namespace) -> int:
    """As many documents as one run needs to take long enough."""
    n_documents = FEWEST
    while True:
        S = make_scores((n_documents, len(problem.taxonomy)))
        # the better of two: a hiccup must not pass for a slow function
        seconds = min(time(lambda S=S: problem.decide(S, given.threads))[0] for _ in range(2))
        if seconds > given.seconds / 4:
            return max(FEWEST, ceil(n_documents * given.seconds / seconds))
        n_documents *= 4


def compare(problem: Problem, S: Scores, decided: Any, per_second: float, given: argparse.Namespace) -> Row:
    """Ask the oracle about documents here and there until its time is over."""
    differences, oracle_seconds = [], 0.0
    order = np.random.default_rng(SEED).permutation(len(S))
    for d in order:
        seconds, expected = time(lambda d=d: problem.ask_oracle(S[d]))
        differences.append(problem.difference(S[d], problem.row_of(decided, d), expected))
        oracle_seconds += seconds
        if oracle_seconds > given.oracle_seconds:
            break
    row: Row = {
        "oracle_documents": len(differences),
        "oracle_documents_per_second": len(differences) / oracle_seconds,
        "times_faster": per_second * oracle_seconds / len(differences),
        "largest_difference": max(differences),
    }
    if isinstance(problem, Smoothing) and problem.levels and not given.quick:
        row["fraction_of_bound"] = problem.fraction_of_bound(S[order[0]], decided[order[0]])
    return row


def time(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came of them."""
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


# ---- reporting ------------------------------------------------------------------------------------------------------


def show(cells: Iterable[str]) -> None:
    """One line of the table, at once."""
    print(f"| {' | '.join(cells)} |", flush=True)


def cells_of(row: Row) -> list[str]:
    """A row as it is shown."""
    return [
        row["what"],
        f"{row['nodes']:,}",
        row["penalty"] or "",
        row["scores"],
        f"{row['documents_per_second']:,.0f}",
        f"≥ {row['goal']:,}",
        f"×{row['times_faster']:,.0f}",
        f"{row['largest_difference']:.1g} ({row['oracle_documents']:,} compared)",
    ]


def about(given: argparse.Namespace) -> Row:
    """What the figures depend on."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"machine": host_facts(), "date": date, "threads": given.threads, "seconds": given.seconds}


def conclude(rows: list[Row]) -> None:
    """Say how near the bound of levels was, and end with status 1 if anything is wrong."""
    shares = [row["fraction_of_bound"] for row in rows if "fraction_of_bound" in row]
    if shares:
        print(f"\nRounding to levels took at most {max(shares):.2g} of the documented bound.")
    wrong = [row for row in rows if not (row["largest_difference"] <= TOLERANCE and row.get("fraction_of_bound", 0.0) <= 1)]
    for row in wrong:
        print(f"differs from its oracle: {' | '.join(cells_of(row))}", file=sys.stderr)
    if wrong:
        raise SystemExit(1)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="what one run takes at least, about; 0.6 when not given")
    parser.add_argument("--oracle-seconds", type=float, help="how long the oracle works on one row; 1.5 when not given")
    parser.add_argument("--quick", action="store_true", help="a few documents, to see that all is right")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    given.seconds = given.seconds or (0.02 if given.quick else 0.6)
    given.oracle_seconds = given.oracle_seconds or (0.05 if given.quick else 1.5)
    return given


if __name__ == "__main__":
    main()
