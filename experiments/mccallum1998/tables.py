"""Results as Markdown: means over the trials, and how far they spread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import Any

ESTIMATES = ("child", "parent", "root", "uniform")
PAPER_WEIGHTS = {
    "235": {
        "talk.politics.guns": (0.368, 0.092, 0.017, 0.522),
        "talk.politics.mideast": (0.256, 0.132, 0.001, 0.611),
        "talk.politics.misc": (0.197, 0.213, 0.026, 0.564),
        "alt.atheism": (0.235, 0.158, 0.022, 0.585),
        "soc.religion.christian": (0.181, 0.189, 0.052, 0.578),
        "talk.religion.misc": (0.104, 0.255, 0.028, 0.613),
    },
    "7497": {
        "talk.politics.guns": (0.801, 0.089, 0.048, 0.061),
        "talk.politics.mideast": (0.859, 0.061, 0.010, 0.071),
        "talk.politics.misc": (0.762, 0.126, 0.043, 0.068),
        "alt.atheism": (0.766, 0.174, 0.043, 0.018),
        "soc.religion.christian": (0.837, 0.098, 0.041, 0.024),
        "talk.religion.misc": (0.663, 0.226, 0.049, 0.062),
    },
}
PAPER_BRANCHES = {"1": "70.0", "2": "74.3", "3": "75.2", "None": "75.8"}
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


def standard_error(values: Sequence[float]) -> float:
    """Of a mean of independent values."""
    return stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)])


def percent(values: Sequence[float]) -> str:
    """Mean and standard error."""
    return f"{100 * mean(values):.2f} ± {100 * standard_error(values):.2f}"


def print_all(results: dict[str, Any]) -> None:
    """A table for each part there is."""
    print(f"\n{results.get('corpus')}")
    for part, make in TABLES.items():
        if part in results:
            print(f"\n**{part}**\n\n{make(results[part])}")


def weights_table(found: dict[str, Any]) -> str:
    """The paper's weights beside ours, a table for each vocabulary."""
    head = ["documents", "class", *ESTIMATES, "words in no other document"]
    return "\n\n".join(f"vocabulary: {name}\n\n{table(head, weight_rows(sizes))}" for name, sizes in found.items())


def weight_rows(sizes: dict[str, Any]) -> list[list[str]]:
    """Paper / ours, mean and standard deviation."""
    rows = []
    for size, classes in sizes.items():
        for name, lists in classes.items():
            columns = list(zip(*lists["weights"], strict=True))
            ours = [f"{mean(values):.3f} ± {stdev(values) if len(values) > 1 else 0:.3f}" for values in columns]
            cells = [f"{theirs:.3f} / {mine}" for theirs, mine in zip(PAPER_WEIGHTS[size][name], ours, strict=True)]
            rows.append([f"{int(size):,}", f"`{name}`", *cells, f"{mean(lists['unseen']):.3f}"])
    return rows


def sizes_table(found: dict[str, Any]) -> str:
    """Accuracies, what shrinkage gains over the others in the same trials, and how often the topic is right."""
    ways = {way: title for way, title in WAYS.items() if way in found}
    right, gained, topics = [], [], []
    for size, flat in found["nb"].items():
        ours, others = found["shrinkage"][size]["accuracy"], [found[way][size]["accuracy"] for way in RIVALS]
        saved = (mean(ours) - mean(flat["accuracy"])) / (1 - mean(flat["accuracy"]))
        right.append([f"{int(size):,}", *(percent(found[way][size]["accuracy"]) for way in ways)])
        gained.append([f"{int(size):,}", *(gain(ours, other) for other in others), f"{100 * saved:.1f} %"])
        topics.append([f"{int(size):,}", *(percent(found[way][size]["topic"]) for way in ways)])
    head = ["documents", *ways.values()]
    less = table(["documents", *(f"over {WAYS[way]}" for way in RIVALS), "errors saved over flat, Laplace"], gained)
    return f"{table(head, right)}\n\nWhat shrinkage gains\n\n{less}\n\nThe topic is right\n\n{table(head, topics)}"


def gain(ours: Sequence[float], other: Sequence[float]) -> str:
    """Mean and standard error of differences in the same trials."""
    differences = [a - b for a, b in zip(ours, other, strict=True)]
    return f"{100 * mean(differences):+.2f} ± {100 * standard_error(differences):.2f}"


def words_table(found: dict[str, Any]) -> str:
    """Accuracies by words asked for, and how many words were kept; a table for each size of the training set."""
    parts = []
    for size, ways in found.items():
        rows = []
        for asked in next(iter(ways.values())):
            kept = [f"{mean(ways[f'nb {scope}'][asked]['kept']):,.0f}" for scope in ("flat", "hierarchical")]
            rows.append([asked, *(percent(lists[asked]["accuracy"]) for lists in ways.values()), " / ".join(kept)])
        parts.append(f"{size} documents\n\n{table(['words', *ways, 'kept, flat / hierarchical'], rows)}")
    return "\n\n".join(parts)


def branches_table(found: dict[str, Any]) -> str:
    """Accuracy and work for every corpus."""
    rows, told = [], []
    for corpus, ways in found.items():
        told.append(f"{corpus}: {ways['corpus']}, {ways['train']} learnt from")
        for branches, paper in PAPER_BRANCHES.items():
            way = ways[branches]
            seconds = f"{mean(way['seconds']):.4f} ± {standard_error(way['seconds']):.4f}"
            shown = "all classes" if branches == "None" else branches
            rows.append([corpus, shown, paper, percent(way["accuracy"]), f"{mean(way['compared']):.1f}", seconds])
    head = ["corpus", "branches", "paper, Industry Sector", "accuracy", "nodes compared", "seconds a thousand"]
    return "\n".join(told) + "\n\n" + table(head, rows)


TABLES = {"weights": weights_table, "sizes": sizes_table, "words": words_table, "branches": branches_table}
