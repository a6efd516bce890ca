"""How long training takes on more machines than there are here: ``python benchmarks/scaling_model.py results.json …``.

Reads what ``benchmarks/cluster.py --out`` and ``benchmarks/huge.py --out`` measured, and fits the seconds of a core for four
kinds of work: a feature of a pair in a pass, or in a round over a tree; a feature of a document and a class when all pairs are
screened; and the same when near classes are looked up. What travels is counted, not fitted: a tree of the wanted size is cut
for so many machines as training cuts it, and a unit that several machines pass costs one vector from and one to each of them,
as full as vectors were in the rows on clusters. Then

    seconds = work × rate / cores × unevenness + rounds × (calls × latency + bytes / bandwidth) + documents / bandwidth

with the bandwidth of the driver, who sends all documents to every other machine once. Unevenness is what the rows on clusters
took beyond those on threads. Told are all assumptions, and a table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls
from timing import head, show

from ramify import Taxonomy
from ramify.data.synthetic import grow_tree
from ramify.learners.linear.dual_solver import CANDIDATES
from ramify.learners.linear.partition import PASSES, ROUNDS, SCREENINGS, common_depths, cut
from ramify.learners.linear.taxonomy_ties import Forest, tie_along_paths

CALLS = 3  # to the workers in a round: a pass, the changes, and sometimes the duality gap
VALUE = 8  # bytes of a feature and its value in a sparse vector
KINDS = ("OneVsRestSVM:mode=fast", "OneVsRestSVM", "RecursiveSVM")


@dataclass(frozen=True, slots=True)
class Sizes:
    """A problem without its content. entries: features of a document."""

    classes: int
    documents: int
    features: int
    entries: float

    @classmethod
    def of(cls, told: dict[str, Any]) -> Sizes:
        """As ``benchmarks/cluster.py`` tells them."""
        return cls(told["classes"], told["train"], told["features"], told["nonzeros"] / told["train"])


def main() -> None:
    """Fit, and predict."""
    given = parse()
    measured = [json.loads(path.read_text()) for path in given.results]
    rates = fit(measured)
    density, unevenness = fit_cluster(measured)
    check(measured, rates)
    assume(rates, density, unevenness, given)
    predict(Sizes(given.classes, given.documents, given.features, given.entries), rates, density, unevenness, given)


def parse() -> argparse.Namespace:
    """The options; sizes are those of the large Wikipedia data set of Gopal & Yang 2013, but for the words of a document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--classes", type=int, default=325_056)
    parser.add_argument("--documents", type=int, default=2_365_436)
    parser.add_argument("--features", type=int, default=1_617_899)
    parser.add_argument("--entries", type=float, default=85.0, help="words of a document")
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 8, 16, 32, 64])
    parser.add_argument("--cores", type=int, default=16, help="of a machine")
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="bytes a second, of the driver")
    parser.add_argument("--latency", type=float, default=0.005, help="seconds of a call to all members")
    return parser.parse_args()


def work_of(kind: str, sizes: Sizes) -> np.ndarray:
    """Features of pairs in passes, in rounds over a tree, and features of documents times classes, screened and looked up."""
    pairs = sizes.documents * (1 + CANDIDATES) * sizes.entries
    all_pairs = sizes.classes * sizes.documents * sizes.entries
    screened = 0 if "fast" in kind else SCREENINGS * all_pairs
    is_tree = "Recursive" in kind
    return np.asarray([0 if is_tree else PASSES * pairs, ROUNDS * pairs if is_tree else 0, screened, all_pairs])


def rows_of(measured: list[dict[str, Any]]) -> Iterator[tuple[Sizes, dict[str, Any]]]:
    """All rows, each with the sizes of its problem."""
    for told in measured:
        yield from ((Sizes.of(told["sizes"]), row) for row in told["rows"] if row["row"] in KINDS)


def processors(row: dict[str, Any]) -> list[int]:
    """Of every machine: ``2 threads`` or ``nodes of 1 + 1``."""
    return [int(word) for word in row["where"].split() if word.isdigit()]


def fit(measured: list[dict[str, Any]]) -> np.ndarray:
    """Seconds of a core for a unit of each kind of work, so that rows are as near as can be, relative to their time."""
    lines = [work_of(row["row"], sizes) / (row["seconds"] * sum(processors(row))) for sizes, row in rows_of(measured)]
    scale = np.maximum(np.abs(lines).max(axis=0), 1e-300)
    return nnls(np.asarray(lines) / scale, np.ones(len(lines)))[0] / scale


def fit_cluster(measured: list[dict[str, Any]]) -> tuple[float, float]:
    """How full travelling vectors are, and by how much members wait for each other, from rows on clusters.

    One member alone is sent the same pairs and gives the same weights as several; what several move beyond that are vectors.
    """
    densities, uneven, here, alone = [], [], {}, {}
    for sizes, row in rows_of(measured):
        key, n_machines, moved = (row["row"], sizes), len(processors(row)), row.get("sent_per_round", 0) * row["rounds"]
        if "start" not in row:
            here[key] = row["seconds"]
        elif n_machines == 1:
            alone[key] = moved
        if "start" in row and key in here:
            uneven.append(row["seconds"] / here[key])
        if n_machines > 1 and "Recursive" in row["row"] and key in alone:
            full = 2 * VALUE * sizes.features * passings(make_forest(sizes.classes), n_machines)
            densities.append((moved - alone[key]) / row["rounds"] / full)
    return float(np.median(densities or [1.0])), float(max(1.0, np.median(uneven or [1.0])))


def make_forest(n_classes: int) -> Forest:
    """A tree as ``make_web_directory`` grows it."""
    parent = grow_tree(n_classes, np.random.default_rng(0))
    names = [(f"n{v}", None if p < 0 else f"n{p}") for v, p in enumerate(parent.tolist())]
    taxonomy = Taxonomy.from_edges(names)
    return tie_along_paths(taxonomy, np.flatnonzero(taxonomy.is_leaf))


def passings(forest: Forest, n_machines: int) -> int:
    """How often a machine passes a unit that another passes, too."""
    n = len(forest.above_offsets) - 1
    ends = cut(np.ones(n), np.ones(n_machines), common_depths(forest), np.arange(n + 1))
    count = np.zeros(len(forest), dtype=np.int64)
    for first, last in zip([0, *ends[:-1]], ends, strict=True):
        count[np.unique(forest.above[forest.above_offsets[first] : forest.above_offsets[last]])] += 1
    return int(count[count > 1].sum())


def check(measured: list[dict[str, Any]], rates: np.ndarray) -> None:
    """Tell what the model says of the rows that it was fitted to."""
    head("The rows that were measured", "classes", "row", "where", "seconds", "by the model")
    for sizes, row in rows_of(measured):
        seconds = float(work_of(row["row"], sizes) @ rates) / sum(processors(row))
        show([f"{sizes.classes:,}", f"`{row['row']}`", row["where"], f"{row['seconds']:.1f}", f"{seconds:.1f}"])


def assume(rates: np.ndarray, density: float, unevenness: float, given: argparse.Namespace) -> None:
    """Tell what the table rests on."""
    print(f"\nfitted: {rates[0]:.1e} s a feature of a pair in a pass, {rates[1]:.1e} in a round; {rates[2]:.1e} a feature of a")
    print(f"document and a class when screened, {rates[3]:.1e} when looked up;")
    print(f"vectors that travel are {density:.0%} full; members wait for each other and for what is sent: × {unevenness:.2f};")
    at_the_driver = f"{given.bandwidth / 1e9:.2f} GB/s at the driver, {given.latency * 1e3:.0f} ms a"
    print(f"assumed: {given.cores} cores a machine, {at_the_driver}")
    print(f"call, {PASSES} passes, {ROUNDS} rounds, {SCREENINGS} screenings, {given.entries:.0f} different words a document")


def predict(sizes: Sizes, rates: np.ndarray, density: float, unevenness: float, given: argparse.Namespace) -> None:
    """The table."""
    forest = make_forest(sizes.classes)
    columns = "row", "machines", "minutes", "documents sent GB", "shared units", "MB a round"
    head(f"{sizes.classes:,} classes, {sizes.documents:,} documents", *columns)
    for kind in KINDS:
        for machines in given.machines:
            shared = passings(forest, machines) if "Recursive" in kind and machines > 1 else 0
            travel = 2 * density * VALUE * sizes.features * shared
            seconds = unevenness * float(work_of(kind, sizes) @ rates) / (machines * given.cores)
            placed = VALUE * sizes.documents * sizes.entries * (machines - 1)
            seconds += placed / given.bandwidth + ROUNDS * (CALLS * given.latency + travel / given.bandwidth)
            told = f"{seconds / 60:,.1f}", f"{placed / 1e9:,.0f}", str(shared), f"{travel / 1e6:,.0f}"
            show([f"`{kind}`", str(machines), *told])


if __name__ == "__main__":
    main()
