"""What the page shows of a set: the paper's tables beside ours, and all rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from experiments.cesabianchi2006.figures import DOCUMENTS, PATHS, REPORTED
from experiments.page import Beside, Block, Chart, Line, Row, Table, Text

BOTH = ("H-SVM", "B-SVM")
PARTS_OF_TABLE_3 = "The parts of an H-loss add up to the whole, as ours do; the paper's add up to more than its Table 1 has."

Folds = Sequence[dict[str, Any]]


def show_set(name: str, why: str, found: dict[str, Any], _: Mapping[str, Any]) -> Iterator[Block]:
    """A set of the paper's; why: what explains the differences."""
    yield Text(_about(name, found["set"]))
    fewer = _fewer(name, found["set"]["documents"])
    yield Beside("Table 1: H-loss, mean over folds", list(_totals(name, found["rules"], fewer + why)), digits=3)
    yield from _each_fold(name, found["rules"])
    rows = [row for rule in BOTH for row in _depths(rule, REPORTED[name][rule].by_depth, found["rules"][rule])]
    yield Beside("Table 3: H-loss by depth", rows, PARTS_OF_TABLE_3, digits=3)
    yield Chart("Where the errors occur", list(_lines(name, found["rules"])), "depth", "H-loss")
    yield from show_rules(found)


def _about(name: str, of_set: dict[str, Any]) -> str:
    documents = f"{of_set['documents']:,} documents, {of_set['classes']} classes"
    paths = f"{of_set['paths']:.3f} paths a document where the paper has {PATHS[name]}"
    return f"{documents}, {paths}, {of_set['nodes']:.2f} nodes a document."


def _fewer(name: str, documents: int) -> str:
    """The first reason of a small run."""
    return "" if documents >= DOCUMENTS[name] else f"{documents:,} documents in place of {DOCUMENTS[name]:,}; "


def _totals(name: str, rules: dict[str, Folds], why: str) -> Iterator[Row]:
    for rule in BOTH:
        yield Row(rule, REPORTED[name][rule].mean, mean(losses(rules[rule])), why)
    paper = REPORTED[name]["H-SVM"].mean - REPORTED[name]["B-SVM"].mean
    yield Row("what B-SVM gains", paper, mean(losses(rules["H-SVM"])) - mean(losses(rules["B-SVM"])), wins(rules))


def wins(rules: dict[str, Folds]) -> str:
    """In how many folds B-SVM is ahead."""
    pairs = list(zip(losses(rules["B-SVM"]), losses(rules["H-SVM"]), strict=True))
    return f"B-SVM is ahead in {sum(b < h for b, h in pairs)} of {len(pairs)} folds"


def _each_fold(name: str, rules: dict[str, Folds]) -> Iterator[Block]:
    """Table 2, of the sets that it has."""
    rows = [
        Row(f"{rule}, chunk {number}", paper, ours)
        for rule in BOTH
        for number, (paper, ours) in enumerate(zip(REPORTED[name][rule].folds, losses(rules[rule]), strict=False), start=1)
    ]
    if rows:
        yield Beside("Table 2: H-loss of each chunk", rows, digits=3)


def _depths(rule: str, paper: Sequence[float], folds: Folds) -> Iterator[Row]:
    for depth, (theirs, ours) in enumerate(zip(paper, depth_means(folds), strict=False)):
        yield Row(f"{rule}, depth {depth}", theirs, ours)


def _lines(name: str, rules: dict[str, Folds]) -> Iterator[Line]:
    """Ours, and the paper's in the same colours."""
    for rule in BOTH:
        yield Line(rule, list(enumerate(depth_means(rules[rule]))))
    for colour, rule in enumerate(BOTH):
        yield Line(f"{rule}, paper", list(enumerate(REPORTED[name][rule].by_depth)), dashed=True, colour=colour)


def show_rules(found: dict[str, Any], title: str = "All rules") -> Iterator[Block]:
    """H-loss ± its standard deviation over the folds, its parts by depth, and how many nodes a document gets."""
    rules = found["rules"]
    n_depths = len(depth_means(rules["H-SVM"]))
    columns = ("", "H-loss", *(f"depth {depth}" for depth in range(n_depths)), "nodes a document")
    rows = [(rule, _spread(folds), *depth_means(folds), mean(fold["nodes"] for fold in folds)) for rule, folds in rules.items()]
    note = f"C = {found['cost']:g}; {found['set']['nodes']:.2f} nodes a document are true."
    yield Table(title, columns, rows, note, digits=3)


def losses(folds: Folds) -> list[float]:
    """H-loss of each fold."""
    return [sum(fold["by_depth"]) for fold in folds]


def depth_means(folds: Folds) -> list[float]:
    """The parts of the H-loss by depth, in the mean over folds."""
    return [mean(parts) for parts in zip(*(fold["by_depth"] for fold in folds), strict=True)]


def _spread(folds: Folds) -> str:
    found = losses(folds)
    return f"{mean(found):.3f} ± {stdev(found):.3f}" if len(found) > 1 else f"{mean(found):.3f}"
