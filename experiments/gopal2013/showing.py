"""What the parts show: Table 3, Table 4 and the tests, beside the paper's where it has the corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.cells import p_value
from experiments.gopal2013.paper import DATA_SETS, FACTS, LEVELS, MACRO_F1, MICRO_F1, MINUTES, SYSTEMS, figure
from experiments.page import Beside, Block, Row, Table

Rows = Mapping[str, Any]

FACT_WORDS = {
    "train": "training documents",
    "test": "test documents",
    "nodes": "nodes",
    "classes": "classes (leaves)",
    "features": "features",
}
WHY = {
    ("CLEF", "train"): "a quick run draws some",
    ("CLEF", "nodes"): "the published tree, counted without a root",
    ("CLEF", "features"): "those of the published files",
    ("RCV1", "train"): "a quick run draws some",
    ("RCV1", "test"): "the published split has 781,265, of which a quick run draws some",
    ("RCV1", "nodes"): "topics with training documents, and a leaf for each inner one",
    ("RCV1", "features"): "those of the published vectors",
}
FEWER = "trained on fewer documents"
OTHERWISE = {
    "CLEF": "other features; costs chosen on other folds",
    "RCV1": "other features and test documents; thresholds predicted in another way",
}
TESTS = {
    "sign": "s (micro)",
    "wilcoxon": "Wilcoxon (macro)",
    "macro_sign": "S (macro)",
    "bootstrap_micro_f1": "bootstrap, micro F1",
    "bootstrap_macro_f1": "bootstrap, macro F1",
}
OTHER_PRIOR = "other features; the prior on precisions is set in another way"
BESIDE_HR = (("hr-svm", "svm"), ("hr-lr", "lr"))
NOT_THERE = "Ramify has no such system"


def show_corpus(data_set: str | None, found: Rows, _: Rows, is_it: bool = True) -> Iterator[Block]:
    """All there is on one corpus, in each of its forms, beside a data set of the paper: the corpus itself, or another."""
    for form, part in found.items():
        title = "" if len(found) == 1 else f", {form}"
        yield facts(data_set if is_it else None, part["corpus"], title)
        if data_set is None:
            yield quality_table(part, title)
        else:
            yield from quality_beside(data_set, part, title, is_it)
        yield times_table(data_set if is_it else None, part, title)
        yield from tests_tables(data_set if is_it else None, part["tests"], title)


def facts(data_set: str | None, corpus: Rows, title: str) -> Block:
    """Numbers of a corpus, beside the paper's where it has it."""
    if data_set is None:
        return Table(f"The corpus{title}", ("", "ours"), [(words, corpus[key]) for key, words in FACT_WORDS.items()])
    return Beside(f"The corpus{title}", facts_rows(data_set, corpus), digits=0)


def quality_beside(data_set: str, part: Rows, title: str, is_it: bool) -> Iterator[Beside]:
    """Table 3: macro and micro F1 of every system."""

    def other(system: str) -> str:
        return why_other(data_set, part, system) if is_it else "another corpus"

    for name, table, key in (("Macro", MACRO_F1, "macro"), ("Micro", MICRO_F1, "micro")):
        ours = {s: part["systems"].get(s, {}).get(key) for s in SYSTEMS}
        rows = [Row(s, figure(table, data_set, s), ours[s], why_missing(part, s) or other(s)) for s in SYSTEMS]
        where = "" if is_it else f", the paper's on {data_set}"
        yield Beside(f"{name} F1 in percent (Table 3){where}{title}", rows)


def facts_rows(data_set: str, corpus: Rows) -> list[Row]:
    """Numbers that tell whether it is the same data."""
    facts = FACTS[data_set]
    return [
        Row(words, facts[key], corpus[key], WHY.get((data_set, key), "") if facts[key] != corpus[key] else "")
        for key, words in FACT_WORDS.items()
    ]


def why_missing(part: Rows, system: str) -> str:
    """Why a system has no figure."""
    return NOT_THERE if system in part["not there"] else str(part["systems"].get(system, {}).get("refused", ""))


def why_other(data_set: str, part: Rows, system: str) -> str:
    """Why a figure is not the paper's."""
    if part["corpus"]["train"] < FACTS[data_set]["train"]:
        return FEWER
    return OTHER_PRIOR if system == "hblr" else OTHERWISE[data_set]


def quality_table(part: Rows, title: str) -> Table:
    """Macro and micro F1 of every system."""
    keys = ("macro", "micro", "right")
    rows = [(s, *(part["systems"].get(s, {}).get(key) for key in keys), why_missing(part, s)) for s in SYSTEMS]
    note = "Right: the answer is one of the document's labels. The paper does not have this corpus."
    return Table(f"Quality in percent{title}", ("", "macro F1", "micro F1", "right", "why not"), rows, note)


def times_table(data_set: str | None, part: Rows, title: str) -> Table:
    """Seconds, memory and what was chosen."""
    head = ["", "seconds, C chosen and training", "training alone", "megabytes", "C", "gap"]
    rows = []
    for name, row in part["systems"].items():
        given = (row.get(key) for key in ("seconds_in_all", "seconds", "megabytes"))
        rows.append((name, *given, _short(row.get("C")), _rounded(row.get("gap"))))
    if data_set is not None:
        head.insert(1, "paper: minutes on 32 cores")
        rows = [(name, figure(MINUTES, data_set, name), *cells) for name, *cells in rows]
    note = (
        "Gap: how far from the optimum the one training stopped, relative to it. Megabytes: of the one training, at its height."
    )
    return Table(f"Training (Table 4){title}" if data_set else f"Training{title}", head, rows, note)


def _short(value: float | None) -> str | None:
    return None if value is None else f"{value:.2g}"


def _rounded(gap: float | None) -> str | None:
    if gap is None:
        return None
    return f"{gap:.4f}" if gap >= 0.0001 else "< 0.0001"


def tests_tables(data_set: str | None, tests: Sequence[Rows], title: str) -> Iterator[Table]:
    """p-values of the paper's pairs beside the level that it reports; then all other pairs."""
    if not tests:
        return
    columns = [name for name in TESTS if name in tests[0]]
    heads = [TESTS[name] for name in columns]
    ours, others = [], []
    for row in tests:
        a, b = _in_order(row["a"], row["b"])
        side = 1 if a == row["a"] else -1
        cells = [p_value(p, side * (difference or 0)) for p, difference in (row[name] for name in columns)]
        if (a, b) in BESIDE_HR:
            ours.append((a, b, *_levels(data_set, a, b), *cells))
        else:
            others.append((a, b, *cells))
    paper = ("paper: sign test, micro", "Wilcoxon, macro") if data_set else ()
    note = "Two-sided p-values; in brackets where B has the better figure."
    yield Table(f"Does recursion help?{title}", ("A", "B", *paper, *heads), ours, note)
    if others:
        yield Table(f"Other pairs{title}", ("A", "B", *heads), others, note)


def _in_order(a: str, b: str) -> tuple[str, str]:
    return (b, a) if (b, a) in BESIDE_HR else (a, b)


def _levels(data_set: str | None, a: str, b: str) -> tuple[str, ...]:
    if data_set is None:
        return ()
    macro, micro = LEVELS[data_set, a, b]
    return f"< {micro}", f"< {macro}"


def show_others(_: Any, __: Rows) -> Iterator[Block]:
    """The paper's figures on data that cannot be had."""
    missing = [data_set for data_set in DATA_SETS if data_set not in FACTS]
    tables = {"Macro F1 in percent (Table 3)": MACRO_F1, "Micro F1 in percent (Table 3)": MICRO_F1}
    for title, table in (tables | {"Training, minutes (Table 4)": MINUTES}).items():
        yield Table(f"{title}: the paper's alone", ("", *SYSTEMS), [(name, *table[name]) for name in missing])
