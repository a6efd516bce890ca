"""What was found as tables and charts: means over the trials, and how far they spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import mean, stdev
from typing import Any

from experiments.mccallum1998 import published
from experiments.page import Beside, Block, Chart, Line, Row, Table, Text

Found = Mapping[str, Any]
Others = Mapping[str, Any]

WAYS = {
    "nb": "flat, Laplace",
    "shrinkage": "shrinkage",
    "nb-sharper": "flat, α = 0.01",
    "shrinkage-flat": "shrinkage without topics",
    "shrinkage-held-out": "shrinkage, held-out weights",
    "nb-seen": "flat, words seen",
    "shrinkage-seen": "shrinkage, words seen",
}
RIVALS = ("nb", "nb-sharper", "shrinkage-flat", "shrinkage-held-out")
DASHED = ("nb-sharper", "shrinkage-flat", "shrinkage-held-out", "nb-seen", "shrinkage-seen")
SIZE_CHARTS = {  # title, measure, what is drawn
    "Flat and shrinkage": ("accuracy", ("nb", "shrinkage")),
    "Where the gain comes from": ("accuracy", ("nb", "shrinkage", "nb-sharper", "shrinkage-flat", "shrinkage-held-out")),
    "Only words of the training documents": ("accuracy", ("nb", "shrinkage", "nb-seen", "shrinkage-seen")),
    "The topic is right": ("topic", ("nb", "shrinkage", "nb-sharper", "shrinkage-flat")),
}
SELECTIONS = {
    "nb flat": "flat, for all classes",
    "shrinkage flat": "shrinkage, for all classes",
    "nb hierarchical": "flat, by inner node",
    "shrinkage hierarchical": "shrinkage, by inner node",
}
PLUS_MINUS = "\u00a0±\u00a0"  # not to be broken at the end of a line
MIDDLE = 300  # words and more, where choosing them at inner nodes may help


# ---- numbers ------------------------------------------------------------------------------------------------------------


def spread(values: Sequence[float]) -> float:
    """The standard deviation; 0 of a single value."""
    return float(stdev(values)) if len(values) > 1 else 0.0


def standard_error(values: Sequence[float]) -> float:
    """Of a mean of independent values."""
    return spread(values) / sqrt(len(values))


def percent(values: Sequence[float]) -> str:
    """Mean and standard error.

    >>> percent([0.5, 0.75]) == f"62.50{PLUS_MINUS}12.50"
    True
    """
    return f"{100 * mean(values):.2f}" + (f"{PLUS_MINUS}{100 * standard_error(values):.2f}" if len(values) > 1 else "")


def differences(ours: Sequence[float], others: Sequence[float]) -> list[float]:
    """Trial by trial."""
    return [a - b for a, b in zip(ours, others, strict=True)]


def gain(ours: Sequence[float], others: Sequence[float]) -> str:
    """Mean and standard error of differences in the same trials, in points."""
    shown = percent(differences(ours, others))
    return shown.replace("-", "−") if shown.startswith("-") else f"+{shown}"


def saved(ours: float, other: float) -> float:
    """The share of errors that are gone, in percent."""
    return 100 * (ours - other) / (1 - other) if other < 1 else 0.0


def line(name: str, places: Sequence[float], trials: Sequence[Sequence[float]], dashed: bool = False) -> Line:
    """Means with standard errors, in percent."""
    points = [(place, 100 * mean(values)) for place, values in zip(places, trials, strict=True)]
    return Line(name, points, [100 * standard_error(values) for values in trials], dashed)


# ---- sizes --------------------------------------------------------------------------------------------------------------


def show_sizes(found: Found, _: Others) -> Iterator[Block]:
    """What the paper says in words, accuracies, what shrinkage gains over the others in the same trials, topics."""
    yield claims_about_sizes(found)
    yield from size_charts(found)
    yield size_table("Right class, in percent", found, "accuracy")
    yield gains_table(found)
    yield size_table("Right topic, whatever the class, in percent", found, "topic")


def claims_about_sizes(found: Found) -> Beside:
    """How often shrinkage is better, how often it varies less, and how many errors it saves."""
    pairs = [(flat["accuracy"], found["shrinkage"][size]["accuracy"]) for size, flat in found["nb"].items()]
    better = 100.0 * mean(mean(ours) > mean(flat) for flat, ours in pairs)
    steadier = 100.0 * mean(spread(ours) < spread(flat) for flat, ours in pairs)
    rows = [
        Row(
            "sizes at which shrinkage is better than flat, in percent",
            100.0,
            better,
            published.LONG_POST if better < 100 else "",
        ),
        Row(
            "sizes at which its trials differ less, in percent", 100.0, steadier, published.LONG_POST if steadier < 100 else ""
        ),
        Row("errors saved at best, in percent", published.ERRORS_SAVED, _most_saved(pairs), published.OTHER_CORPUS),
    ]
    note = "Figure 3 of the paper is a picture, and its words give no accuracies."
    return Beside("What the paper says of training documents", rows, note, digits=1)


def _most_saved(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    return max(saved(mean(ours), mean(flat)) for flat, ours in pairs)


def size_charts(found: Found) -> Iterator[Chart]:
    """Accuracy against training documents: the paper's two, what tells where the gain comes from, topics."""
    sizes = [int(size) for size in found["nb"]]
    for title, (measure, ways) in SIZE_CHARTS.items():
        lines = [line(WAYS[w], sizes, [lists[measure] for lists in found[w].values()], w in DASHED) for w in ways]
        yield Chart(title, lines, "training documents", "right, %", log_x=True)


def size_table(title: str, found: Found, measure: str) -> Table:
    """Every learner by training documents."""
    rows: list[list[str | int]] = [[int(size), *(percent(found[way][size][measure]) for way in found)] for size in found["nb"]]
    return Table(title, ["training documents", *(WAYS[way] for way in found)], rows)


def gains_table(found: Found) -> Table:
    """What shrinkage gains over its rivals in the same trials."""
    rows: list[list[str | int]] = []
    for size, flat in found["nb"].items():
        ours = found["shrinkage"][size]["accuracy"]
        gained = [gain(ours, found[way][size]["accuracy"]) for way in RIVALS]
        rows.append([int(size), *gained, f"{saved(mean(ours), mean(flat['accuracy'])):z.1f} %".replace("-", "−")])
    columns = ["training documents", *(f"over {WAYS[way]}" for way in RIVALS), "errors saved over flat, Laplace"]
    return Table("What shrinkage gains, in points", columns, rows)


# ---- words --------------------------------------------------------------------------------------------------------------


def show_words(found: Found, _: Others) -> Iterator[Block]:
    """What the paper says in words; accuracies by words, for each size of the training set."""
    yield claims_about_words(found)
    yield from word_charts(found)
    for size, ways in found.items():
        yield word_table(f"{int(size):,} training documents: right class, in percent", ways)


def claims_about_words(found: Found) -> Beside:
    """Of the largest training set: what choosing words at inner nodes gains, and what shrinkage saves with all words."""
    size = list(found)[-1]
    right = {way: {asked: mean(v["accuracy"]) for asked, v in lists.items()} for way, lists in found[size].items()}
    middle = [asked for asked in right["nb flat"] if asked != "all" and int(asked) >= MIDDLE] or ["all"]
    gained = 100 * max(right["nb hierarchical"][asked] - right["nb flat"][asked] for asked in middle)
    errors = saved(right["shrinkage flat"]["all"], max(right["nb flat"].values()))
    rows = [
        Row("points that flat gains by words of inner nodes", published.CHOSEN_AT_NODES, gained, published.OTHER_CORPUS),
        Row("errors that shrinkage with all words saves, %", published.ERRORS_SAVED, errors, published.OTHER_CORPUS),
    ]
    note = (
        f"Ours with {int(size):,} training documents; the first at best from {MIDDLE} words on, the second over flat at best."
    )
    return Beside("What the paper says of words", rows, note, digits=1)


def word_charts(found: Found) -> Iterator[Chart]:
    """Accuracy against words, a chart for each size of the training set; then what shrinkage gains in the same trials."""
    gains = []
    for size, ways in found.items():
        kept = [mean(lists["kept"]) for lists in ways["nb flat"].values()]
        values = {way: [lists["accuracy"] for lists in ways[way].values()] for way in SELECTIONS}
        lines = [line(shown, kept, values[way], "hierarchical" in way) for way, shown in SELECTIONS.items()]
        yield Chart(f"{int(size):,} training documents", lines, "words kept", "right, %", log_x=True)
        less = [differences(*pair) for pair in zip(values["shrinkage flat"], values["nb flat"], strict=True)]
        gains.append(line(f"{int(size):,} documents", kept, less))
    yield Chart("Shrinkage less flat, words for all classes", gains, "words kept", "points", log_x=True)


def word_table(title: str, ways: Found) -> Table:
    """Every learner and selection by words asked for, and how many words were kept."""
    rows = []
    for asked in ways["nb flat"]:
        kept = [f"{mean(ways[f'nb {scope}'][asked]['kept']):,.0f}" for scope in ("flat", "hierarchical")]
        shown = asked if asked == "all" else f"{int(asked):,}"
        rows.append([shown, *(percent(ways[way][asked]["accuracy"]) for way in SELECTIONS), " / ".join(kept)])
    return Table(title, ["words", *SELECTIONS.values(), "words kept, all classes / inner node"], rows)


# ---- branches -----------------------------------------------------------------------------------------------------------


def show_branches(why: str, found: Found, _: Others) -> Iterator[Block]:
    """What is lost with few branches beside what the paper loses; accuracy and work."""
    ways, told = found["branches"], found["corpus"]
    corpus = f"{told['documents']:,} documents, {told['classes']:,} classes, {told['depth']} levels"
    yield Text(f"The corpus: {corpus}; {found['train']:,} documents are for training, the others for testing.")
    yield Beside("Points of accuracy lost by following the best branches only", [*branch_rows(ways, why)], digits=1)
    rows = []
    for branches, way in ways.items():
        right, thousand = percent(way["accuracy"]), f"{mean(way['seconds']):.4f}"
        rows.append([branch_name(branches), right, f"{mean(way['compared']):.1f}", thousand])
    columns = ["branches", "right, in percent", "nodes compared", "seconds a thousand documents"]
    note = (
        "Nodes compared are those whose probability is computed for a document; seconds are of one thread, the best of three."
    )
    yield Table("Accuracy and work", columns, rows, note)


def branch_rows(ways: Found, why: str) -> Iterator[Row]:
    """Loss with one, two and three branches; the paper's is of another corpus."""
    for branches, paper in published.BRANCHES.items():
        if branches != "None":
            lost = 100 * mean(differences(ways["None"]["accuracy"], ways[branches]["accuracy"]))
            yield Row(branch_name(branches), published.BRANCHES["None"] - paper, lost, why)


def branch_name(branches: str) -> str:
    """As a reader would say it."""
    return {"None": "all classes", "1": "1 branch"}.get(branches, f"{branches} branches")
