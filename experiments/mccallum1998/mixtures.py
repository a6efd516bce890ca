"""The corpus and the mixture weights beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from experiments.mccallum1998 import published
from experiments.mccallum1998.tables import PLUS_MINUS, WAYS, Found, Others, percent, spread
from experiments.page import Beside, Block, Row, Table, Text

ESTIMATES = {
    4: ("child", "parent", "root", "uniform"),
    5: ("child", "parent", "grandparent", "root", "uniform"),
}
COUNTINGS = {
    "words": "letters and digits, no headers",
    "letters": "letters alone, no headers",
    "subjects": "letters and digits, with subjects",
}
NOTABLE = 0.1  # a difference between weights that wants a reason
VOCABULARY = "all words of the corpus; with those seen only, it is nearer: see below"


# ---- the corpus ---------------------------------------------------------------------------------------------------------


def show_corpus(found: Found, _: Others) -> Iterator[Block]:
    """How large it is, and what other ways to count words do to it and to accuracies."""
    told = found["words"]["corpus"]
    rows = [Row(what, paper, told[what], published.CORPUS_WHY[what]) for what, paper in published.CORPUS.items()]
    yield Beside("The 15 newsgroups", rows, digits=0)
    sizes = [[COUNTINGS[way], *(part["corpus"][what] for what in published.CORPUS)] for way, part in found.items()]
    yield Table("Ways to count words", ["words are of", *published.CORPUS], sizes)
    yield counting_table(found)


def counting_table(found: Found) -> Table:
    """Accuracies by way to count words, learner and training documents."""
    first = next(iter(found.values()))["accuracy"]
    pairs = [(learner, size) for learner, sizes in first.items() for size in sizes]
    rows = [
        [COUNTINGS[way], *(percent(part["accuracy"][learner][size]["accuracy"]) for learner, size in pairs)]
        for way, part in found.items()
    ]
    columns = ["words are of", *(f"{WAYS[learner]}, {int(size):,} documents" for learner, size in pairs)]
    return Table("What it does to accuracy, in percent", columns, rows)


# ---- weights ------------------------------------------------------------------------------------------------------------


def show_weights(found: Found, _: Others) -> Iterator[Block]:
    """Table 1 of the paper beside ours; then ours with the words of the training documents as the vocabulary."""
    few = next(iter(found["all"]))
    for size, classes in found["all"].items():
        title = f"Table 1: weights fitted on {int(size):,} documents, all words"
        yield Beside(title, [*weight_rows(size, classes, few)], deviations(classes), digits=3)
    far = {vocabulary: distance(few, sizes[few]) for vocabulary, sizes in found.items()}
    if None not in far.values():
        yield Text(
            f"From {int(few):,} documents, weights are {far['all']:.3f} from the paper's on average with all words, and "
            f"{far['seen']:.3f} with the words of these documents alone. The paper does not say which it took."
        )
    yield weight_table(f"weights fitted on {int(few):,} documents, words seen only", found["seen"][few])


def weight_rows(size: str, classes: Found, few: str) -> Iterator[Row]:
    """Every estimate of every class."""
    for name, lists in classes.items():
        columns = list(zip(*lists["weights"], strict=True))
        papers = published.WEIGHTS.get(size, {}).get(name, (None,) * len(columns))
        for estimate, paper, values in zip(ESTIMATES[len(columns)], papers, columns, strict=True):
            yield Row(f"{name}: {estimate}", paper, mean(values), _why(paper, values, estimate, size == few))


def _why(paper: float | None, values: Sequence[float], estimate: str, is_few: bool) -> str:
    if paper is None or abs(mean(values) - paper) < NOTABLE:
        return ""
    if is_few and estimate in ("root", "uniform"):
        return VOCABULARY
    return f"training sets differ: standard deviation {spread(values):.3f} over the trials"


def deviations(classes: Found) -> str:
    """How far the trials spread."""
    found = [spread(values) for lists in classes.values() for values in zip(*lists["weights"], strict=True)]
    return f"Means of {_trials(classes)} trials; standard deviations over them are {min(found):.3f} to {max(found):.3f}."


def _trials(classes: Found) -> int:
    return len(next(iter(classes.values()))["weights"])


def distance(size: str, classes: Found) -> float | None:
    """How far weights are from the paper's, on average."""
    rows = weight_rows(size, classes, size)
    gaps = [abs(row.paper - row.ours) for row in rows if row.paper is not None and row.ours is not None]
    return mean(gaps) if gaps else None


def show_bundled_weights(found: Found, _: Others) -> Iterator[Block]:
    """The same of the bundled requests, which the paper has no figures of."""
    for size, classes in found["all"].items():
        yield weight_table(f"weights fitted on {int(size):,} documents, all words", classes)


def weight_table(title: str, classes: Found) -> Table:
    """Mean and standard deviation of every weight, and the share of words that no other training document has."""
    rows = [[name, *map(_with_spread, zip(*lists["weights"], strict=True)), _with_spread(lists["unseen"])]
            for name, lists in classes.items()]  # fmt: skip
    note = "The uniform estimate alone knows the words that no other training document has; its weight cannot be lower."
    return Table(title, ["class", *ESTIMATES[len(rows[0]) - 2], "words in no other document"], rows, note)


def _with_spread(values: Any) -> str:
    return f"{mean(values):.3f}{PLUS_MINUS}{spread(values):.3f}"
