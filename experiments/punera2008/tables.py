"""What was found as tables and charts: means over the folds, in percent; measures with ₁ are of at least one label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import pstdev
from typing import Any

from experiments.page import Beside, Block, Chart, Line, Row, Table, Text
from experiments.punera2008 import published
from experiments.punera2008.measures import Rows, mean_of

Found = Mapping[str, Any]
Others = Mapping[str, Any]
Folds = Sequence[Mapping[str, Any]]

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
WAYS = {
    "guesses": "guesses by share",
    "strict": "strict smoothing",
    "plain": "plain, penalty 0",
    "priors-0.1": "strict, priors × 0.1",
    "priors-0.5": "strict, priors × 0.5",
}
LEARNERS = {
    "svm": "SVMs",
    "nb": "Naive Bayes, posteriors as they are",
    "nb-platt": "Naive Bayes, Platt's sigmoid",
    "nb-isotonic": "Naive Bayes, calibrated by steps",
}
PANELS = {
    "Accuracy and AUC": ("accuracy", "auc", "accuracy_one"),
    "Precision, recall and F": ("precision", "recall", "f", "f_one"),
}
IN_PROPORTION = "In proportion to the value without smoothing or, where classifiers are missing, with guesses."
SLASH = "\u00a0/\u00a0"  # not to be broken at the end of a line
HALF = "50"  # percent of the classifiers missing


# ---- numbers ------------------------------------------------------------------------------------------------------------


def average(folds: Folds, way: str) -> Rows:
    """The rows of a way, each the mean over the folds."""
    return {row: mean_of(fold["rows"][way][row] for fold in folds) for row in folds[0]["rows"][way]}


def gain(after: float, before: float) -> float | None:
    """In percent of the value before.

    >>> gain(0.9, 0.6)
    50.0
    """
    return round(100 * (after / before - 1), 10) if before else None


def change(before: float, after: float) -> str:
    """From one value to another, in percent, and what that is in proportion."""
    gained = gain(after, before)
    in_proportion = "from 0" if gained is None else f"{gained:+.1f} %".replace("-", "−")
    return f"{100 * before:.2f} → {100 * after:.2f} ({in_proportion})"


def told(kind: str, folds: Folds) -> Text:
    """The number of training documents, C of each fold where there was a choice, and the time of a training."""
    first = folds[0]
    costs = [f"{fold['C']:g}" for fold in folds if fold["C"] is not None]
    chosen = f" C, by fold: {', '.join(costs)}." if costs else ""
    seconds = sum(fold["seconds"] for fold in folds) / len(folds)
    n_folds = "one fold" if len(folds) == 1 else f"{len(folds)} folds"
    return Text(
        f"{LEARNERS[kind]}: {n_folds}, {first['learnt']:,} documents to train on, "
        f"{first['words']:,} words, {first['test']:,} documents to test on; {seconds:.1f} s a training.{chosen}"
    )


def deviations(folds: Folds, way: str) -> str:
    """How much the folds differ, at most over the rows of a way."""
    rows = [[fold["rows"][way][row] for fold in folds] for row in folds[0]["rows"][way]]
    most = {name: max(pstdev(row[name] for row in found) for found in rows) for name in SHOWN}
    shown = ", ".join(f"{MEASURES[name]} {100 * value:.2f}" for name, value in most.items())
    return f"Standard deviation over the folds, in percent, at most: {shown}."


# ---- one penalty for all nodes ------------------------------------------------------------------------------------------


def show_svm(found: Found, others: Others) -> Iterator[Block]:
    """The paper's gains beside ours; then everything by penalty and by share of missing classifiers."""
    folds = found["svm"]
    penalty, missing = average(folds, "penalty"), average(folds, "missing")
    yield told("svm", folds)
    yield Beside("Gains of strict smoothing, in percent", [*gain_rows(penalty, missing)], IN_PROPORTION, digits=1)
    yield from penalty_blocks("svm", folds)
    yield reading_table(penalty, missing)
    yield from missing_blocks(missing, deviations(folds, "missing"))


def gain_rows(penalty: Rows, missing: Rows) -> Iterator[Row]:
    """With all classifiers, and with half of them missing."""
    none, strict = penalty["none"], penalty["inf"]
    guesses, smoothed = missing[f"guesses {HALF}"], missing[f"strict {HALF}"]
    level, room = 100 * none["auc"], 100 * (1 / guesses["f"] - 1)
    for measure, paper, why in (
        ("accuracy", published.ACCURACY, published.READ_OTHERWISE),
        ("auc", published.AUC, f"without smoothing it is {level:.1f} % here, which leaves little to gain"),
    ):
        yield Row(f"all classifiers: {MEASURES[measure]}", paper, gain(strict[measure], none[measure]), why)
    for measure, paper, why in (
        ("accuracy", published.ACCURACY_HALF, published.READ_OTHERWISE),
        ("auc", published.AUC_HALF, published.FOR_NOTHING),
        ("f", published.F_HALF, f"guesses reach {100 * guesses['f']:.1f} % here, which leaves room for {room:.0f} % at most"),
    ):
        yield Row(f"half of them missing: {MEASURES[measure]}", paper, gain(smoothed[measure], guesses[measure]), why)


def show_nb(found: Found, others: Others) -> Iterator[Block]:
    """Everything by penalty, for every calibration; charts of the one that the system has."""
    yield Text("Table 2 of the paper was not available as text, and its words give no figures of naive Bayes.")
    for kind, folds in found.items():
        yield told(kind, folds)
        yield from penalty_blocks(kind, folds)


def penalty_blocks(kind: str, folds: Folds) -> Iterator[Block]:
    """Measures by penalty, as charts and as a table."""
    rows = average(folds, "penalty")
    names = [name for name in rows if name != "none"]
    if kind in ("svm", "nb-isotonic"):
        yield from both_charts(rows, names, [penalty_name(name) for name in names], "penalty")
    yield measure_table(f"{LEARNERS[kind]}, in percent", rows, penalty_name, deviations(folds, "penalty"))


def penalty_name(name: str) -> str:
    """As a reader would write it."""
    return {"none": "no smoothing", "inf": "∞"}.get(name, name)


def measure_table(title: str, rows: Rows, name_of: Any, note: str) -> Table:
    """All measures of every row, in percent."""
    cells = [[name_of(name), *(100 * row[measure] for measure in MEASURES)] for name, row in rows.items()]
    return Table(title, ["penalty", *MEASURES.values()], cells, note)


def both_charts(rows: Rows, names: Sequence[str], ticks: Sequence[str], x: str) -> Iterator[Chart]:
    """Accuracy with AUC, and precision with recall and F; dashed without smoothing."""
    for title, measures in PANELS.items():
        lines = [Line(MEASURES[m], [(k, 100 * rows[name][m]) for k, name in enumerate(names)]) for m in measures]
        for number, m in enumerate(measures):
            if not m.endswith("_one"):  # without smoothing, the root is always a label
                lines.append(_level(rows["none"][m], len(names), number))
        yield Chart(title, lines, x, "percent", note="Dashed: no smoothing.", names=ticks)


def _level(value: float, n: int, colour: int) -> Line:
    return Line("", [(0, 100 * value), (n - 1, 100 * value)], dashed=True, colour=colour)


def reading_table(penalty: Rows, missing: Rows) -> Table:
    """What accuracy may mean: without missing classifiers, and with half of them missing."""
    pairs = ((penalty["none"], penalty["inf"]), (missing[f"guesses {HALF}"], missing[f"strict {HALF}"]))
    rows = [[meaning, *(change(a[key], b[key]) for a, b in pairs)] for key, meaning in READINGS.items()]
    columns = ["reading", "all classifiers, no smoothing → strict", "half missing, guesses → strict"]
    note = "The first is taken everywhere else: by the word, and as it comes nearest to the paper's gains on the newsgroups."
    return Table("What accuracy may mean, in percent", columns, rows, note)


# ---- missing classifiers ------------------------------------------------------------------------------------------------


def missing_blocks(rows: Rows, note: str) -> Iterator[Block]:
    """Every way against the share of missing classifiers."""
    shares = list(dict.fromkeys(name.split()[1] for name in rows))
    for measure in SHOWN:
        lines = [_way_line(rows, way, shares, measure) for way in WAYS]
        yield Chart(MEASURES[measure], lines, "classifiers missing, in percent", "percent")
    cells = []
    for share in shares:
        found = [[100 * rows[f"{way} {share}"][measure] for measure in SHOWN] for way in WAYS]
        cells.append([f"{share} %", *(SLASH.join(f"{value:.1f}" for value in values) for values in found)])
    title = "Missing classifiers: accuracy / AUC / F / F₁, in percent"
    yield Table(title, ["missing", *WAYS.values()], cells, note)


def _way_line(rows: Rows, way: str, shares: Sequence[str], measure: str) -> Line:
    points = [(int(share), 100 * rows[f"{way} {share}"][measure]) for share in shares]
    return Line(WAYS[way], points, dashed=way == "guesses")


# ---- documents at inner nodes -------------------------------------------------------------------------------------------


def show_hybrids(found: Found, others: Others) -> Iterator[Block]:
    """The paper's gains beside ours; then everything by multiple of the share, and by one penalty for all nodes."""
    folds = found["svm"]
    rows = average(folds, "hybrids")
    yield told("svm", folds)
    best, none = rows[f"shares {published.BEST_MULTIPLE}"], rows["none"]
    gains = [
        Row(MEASURES[measure], paper, gain(best[measure], none[measure]), published.OUR_HYBRIDS)
        for measure, paper in published.HYBRIDS.items()
    ]
    yield Beside(f"Gains at {published.BEST_MULTIPLE} × share, in percent", gains, IN_PROPORTION, digits=1)
    yield from hybrid_charts(rows)
    yield measure_table(
        "Penalty by share, or the same at every node; in percent", rows, hybrid_name, deviations(folds, "hybrids")
    )


def hybrid_charts(rows: Rows) -> Iterator[Chart]:
    """Measures against the multiple of the share; then accuracy and F beside those of one penalty for all."""
    names = [name for name in rows if name.startswith("shares")]
    ticks = [penalty_name(name.split()[1]) for name in names]
    yield from both_charts(rows, names, ticks, "multiple of the share")
    for measure in ("accuracy", "f"):
        ways = {"penalty by share": names, "the same everywhere": [name.replace("shares", "one") for name in names]}
        lines = [Line(way, [(k, 100 * rows[n][measure]) for k, n in enumerate(its)]) for way, its in ways.items()]
        lines.append(_level(rows["none"][measure], len(names), 2))
        title = f"{MEASURES[measure]}, by share and everywhere the same"
        yield Chart(title, lines, "multiple of the share, or penalty", "percent", note="Dashed: no smoothing.", names=ticks)


def hybrid_name(name: str) -> str:
    """As a reader would write it.

    >>> hybrid_name("shares inf"), hybrid_name("one 0.5")
    ('∞ × share', '0.5 at every node')
    """
    way, _, size = name.partition(" ")
    return {"none": "no smoothing", "shares": "{} × share", "one": "{} at every node"}[way].format(penalty_name(size))
