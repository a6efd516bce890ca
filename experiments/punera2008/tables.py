"""Averaged measures as Markdown, in percent; those with ₁ are of at least one label."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import pstdev
from typing import Any

Rows = dict[str, dict[str, float]]

MEASURES = {
    "accuracy": "accuracy",
    "auc": "AUC",
    "precision": "precision",
    "recall": "recall",
    "f": "F",
    "unlabelled": "no label",
    "accuracy_one": "accuracy₁",
    "precision_one": "precision₁",
    "recall_one": "recall₁",
    "f_one": "F₁",
}
SHOWN = ("accuracy", "auc", "f", "f_one")
READINGS = {
    "accuracy": "labels at all nodes are exactly the true ones",
    "leaves": "labels at the leaves are exactly the true ones",
    "found": "the own leaf is among the labels",
    "each": "a document and a leaf, yes or no",
    "best": "the own leaf has the highest score of the leaves",
}


def print_all(results: dict[str, Any], average: dict[str, dict[str, Rows]]) -> None:
    """A table for each part and learner there is."""
    for name, parts in average.items():
        for part, rows in parts.items():
            print(f"\n**{part}: Taxonomy {name}** ({told(results[name])})\n")
            print(f"{TABLES[part](rows)}\n\n{spread(results[name], part)}")
            if part != "hybrids":
                print(f"\nReadings of accuracy\n\n{READING_TABLES[part](rows)}")


def told(folds: dict[str, Any]) -> str:
    """How much was learnt from, C of each fold where there was a choice, and the time of a training."""
    found = list(folds.values())
    learnt = f"{len(found)} folds, {found[0]['learnt']:,} documents to learn from, {found[0]['words']:,} words"
    costs = [f"{fold['C']:g}" for fold in found if fold["C"] is not None]
    seconds = sum(fold["seconds"] for fold in found) / len(found)
    chosen = [f"C by fold {', '.join(costs)}"] if costs else []
    return "; ".join([learnt, *chosen, f"{seconds:.1f} s a training"])


def spread(folds: dict[str, Any], part: str) -> str:
    """How much the folds differ, at most over the rows of a part."""
    rows = [[fold[part][row] for fold in folds.values()] for row in next(iter(folds.values()))[part]]
    most = {name: max(pstdev(row[name] for row in found) for found in rows) for name in MEASURES}
    return f"Standard deviation over the folds, at most: {', '.join(f'{MEASURES[name]} {most[name]:.4f}' for name in most)}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)])


def change(value: float, base: float) -> str:
    """In percent of the base."""
    return f"{100 * (value / base - 1):+.1f} %" if base else "from 0"


def penalty_table(rows: Rows) -> str:
    """All measures by penalty."""
    return table(["penalty", *MEASURES.values()], [[penalty_name(name), *figures(row)] for name, row in rows.items()])


def penalty_name(name: str) -> str:
    """As a reader would write it."""
    return {"none": "no smoothing", "inf": "∞"}.get(name, name)


def figures(row: dict[str, float]) -> list[str]:
    """In percent."""
    return [f"{100 * row[name]:.2f}" for name in MEASURES]


def missing_table(rows: Rows) -> str:
    """Accuracy, AUC, F and F₁ of every way by share; then the gain of strict smoothing over guesses."""
    ways = list(dict.fromkeys(name.split()[0] for name in rows))
    lines, gains = [], []
    for share in dict.fromkeys(name.split()[1] for name in rows):
        found = {way: [rows[f"{way} {share}"][measure] for measure in SHOWN] for way in ways}
        lines.append([f"{share} %", *(" / ".join(f"{100 * value:.1f}" for value in found[way]) for way in ways)])
        gains.append([f"{share} %", *map(change, found["strict"], found["guesses"])])
    gained = table(["strict over guesses", *map(MEASURES.__getitem__, SHOWN)], gains)
    return f"{table(['missing', *ways], lines)}\n\n{gained}"


def hybrid_table(rows: Rows) -> str:
    """All measures by scale, penalties by shares and one for all."""
    return table(["penalty", *MEASURES.values()], [[hybrid_name(name), *figures(row)] for name, row in rows.items()])


def hybrid_name(name: str) -> str:
    """As a reader would write it."""
    way, _, size = name.partition(" ")
    return {"none": "no smoothing", "shares": "{} × share", "one": "{} at every node"}[way].format(penalty_name(size))


def reading_table(pairs: Sequence[tuple[str, str, str]]) -> Callable[[Rows], str]:
    """Every reading of accuracy for some pairs of rows."""

    def made(rows: Rows) -> str:
        lines = []
        for reading, meaning in READINGS.items():
            cells = [meaning]
            for _, before, after in pairs:
                a, b = rows[before][reading], rows[after][reading]
                cells.append(f"{100 * a:.2f} → {100 * b:.2f} ({change(b, a)})")
            lines.append(cells)
        return table(["reading", *(title for title, _, _ in pairs)], lines)

    return made


TABLES: dict[str, Callable[[Rows], str]] = {"penalty": penalty_table, "missing": missing_table, "hybrids": hybrid_table}
READING_TABLES = {
    "penalty": reading_table([("no smoothing → ∞", "none", "inf")]),
    "missing": reading_table([(f"{k} % missing, guesses → strict", f"guesses {k}", f"strict {k}") for k in (0, 50)]),
}
