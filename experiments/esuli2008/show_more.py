"""What the parts on variants, trees and clinical reports show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean, stdev

from experiments.esuli2008.cells import FLAT, WAYS, Rows, beside, last, rounds_of
from experiments.page import Beside, Block, Chart, Line, Row, Table

OTHERS = {
    "complete linkage": "treeboost-mh, complete linkage",
    "average linkage": "treeboost-mh, average linkage",
    "presence of words": "treeboost-mh, groups from the presence of words",
    "2 groups": "treeboost-mh, 2 learnt groups",
    "12 groups": "treeboost-mh, 12 learnt groups",
    "30 groups": "treeboost-mh, 30 learnt groups",
    "stumps": f"{FLAT}, as many stumps as the learnt tree has",
    "adaboost, numbers": f"{FLAT}, with numbers",
    "learnt, numbers": "treeboost-mh, with numbers",
}
PAPER_REPORTS = {
    "documents": ("documents", 978),
    "leaves": ("leaves", 45),
    "inner": ("inner nodes", 34),
    "mean size": ("documents a leaf, mean", 27.1),
    "largest size": ("the same, most", 266),
    "terms": ("terms", 1294),
}
WHY_REPORTS = {"inner": "ours are the chapters and categories of the codes", "terms": "bags of words as published by others"}


def show_variants(found: Rows, _: Rows) -> Iterator[Block]:
    """Micro / macro F1 of all variants after the last round, and the seconds of one training."""
    rows = []
    for variant, by_way in found.items():
        cells = [cell for way in by_way.values() for cell in (pair(last(way)), float(way["seconds"]))]
        rows.append((variant, *cells))
    columns = ("variant", FLAT, "seconds", "treeboost-mh", "seconds")
    note = "Micro / macro F1 in percent after the last round, all terms. The paper took R for having been best before."
    yield Table("Votes that are real numbers, abstain, or are discrete", columns, rows, note)


def show_trees(found: Rows, others: Rows) -> Iterator[Block]:
    """Micro / macro F1 of every tree; shuffled ones as mean and standard deviation."""
    drawn = [rows for name, rows in found.items() if name.startswith("shuffled")]
    base = {WAYS[way]: rows for way, rows in others.get("reuters", {}).get("rounds", {}).get("all", {}).items()}
    tried = base | {OTHERS[name]: rows for name, rows in found.items() if name in OTHERS}
    rounds = rounds_of(drawn[0])
    rows = [(name, *(pair(by_rounds[s]) for s in rounds)) for name, by_rounds in tried.items()]
    means = [" / ".join(mean_and_spread([one[s][key] for one in drawn]) for key in ("micro", "macro")) for s in rounds]
    rows.append((f"treeboost-mh, {len(drawn)} trees with categories shuffled", *means))
    note = "Shuffled trees have groups as large as the learnt ones, filled at random: mean ± standard deviation."
    yield Table("Micro / macro F1 in percent after S rounds", ("", *(f"{int(s):,}" for s in rounds)), rows, note)


def mean_and_spread(values: Sequence[float]) -> str:
    """Mean and standard deviation in percent."""
    return f"{100 * mean(values):.1f} ± {100 * stdev(values):.1f}"


def pair(row: Rows) -> str:
    """Micro / macro."""
    return f"{100 * row['micro']:.2f} / {100 * row['macro']:.2f}"


def show_medical(found: Rows, _: Rows) -> Iterator[Block]:
    """Micro and macro F1 by the number of rounds."""
    facts = [Row(words, paper, found[key], WHY_REPORTS.get(key, "")) for key, (words, paper) in PAPER_REPORTS.items()]
    note = f"Answers are those of {found['folds']}-fold cross-validation; the paper left out one document at a time."
    yield Beside("The corpus", facts, note, digits=1)
    names = {"adaboost": FLAT, "learnt": "treeboost-mh"}
    for key in ("micro", "macro"):
        lines = [
            Line(name, [(int(s), 100 * row[key]) for s, row in found[way].items()], dashed=way == "adaboost")
            for way, name in names.items()
        ]
        yield Chart(f"{key} F1", lines, "rounds S", f"{key} F1 (%)", log_x=True)
    rows = []
    for s, flat in found["adaboost"].items():
        cells = [beside(flat[key], [found["learnt"][s][key]]) for key in ("micro", "macro")]
        rows.append((f"{int(s):,}", *cells[0], *cells[1]))
    columns = ("S", *(f"{key} F1: {name}" for key in ("micro", "macro") for name in names.values()))
    yield Table("F1 in percent", columns, rows, "The paper's text gives no figures to set beside these.")
