"""What the parts on rounds show: the corpus, F1, the paper's claims, pivots, times, additions and tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from experiments.cells import change, p_value
from experiments.esuli2008.cells import FLAT, TERMS, TREES, WAYS, Rows, beside, last, rounds_of
from experiments.esuli2008.measuring import SIZES
from experiments.page import Beside, Block, Chart, Line, Row, Table, Text

CORPUS = {
    "train": "training documents",
    "test": "test documents",
    "categories": "categories",
    "leaves": "of these leaves",
    "inner": "of these inner nodes",
    "labels a document": "categories a training document, mean",
    "most labels": "the same, most",
    "mean size": "training documents a category, mean",
    "least size": "the same, least",
    "largest size": "the same, most",
    "terms": "terms",
    "pooled terms": "different terms among the best 60 of every category",
}
PAPER_REUTERS = {
    "train": 7770,
    "test": 3299,
    "categories": 90,
    "labels a document": 1.23,
    "most labels": 15,
    "mean size": 106.5,
    "least size": 1,
    "largest size": 2877,
    "terms": 18177,
    "pooled terms": 2012,
}
PAPER_RCV1 = {"train": 23149, "test": 781265, "categories": 101, "leaves": 80, "inner": 21, "terms": 55051}
WHY_REUTERS = {
    "test": "the paper counts the whole test part of the split, ours those with one of the categories",
    "terms": "another list of stop words",
    "pooled terms": "not known",
}
WHY_RCV1 = {"terms": "the published vectors are used, with terms of their own", "test": "a quick run takes the first stories"}
PAPER_CLAIMS = {  # percent by which TreeBoost.MH changes what AdaBoost.MH has, on Reuters-21578 with all terms
    ("micro", min): ("micro F1, least gain (%)", 2.3),
    ("micro", max): ("micro F1, most gain (%)", 17.2),
    ("macro", min): ("macro F1, least gain (%)", 22.0),
    ("macro", max): ("macro F1, most gain (%)", 197.4),
    ("train", max): ("training time, at least (%)", -50.4),
    ("classify", min): ("classification time, from (%)", -67.4),
    ("classify", max): ("classification time, to (%)", 16.8),
}
PAPER_PIVOTS = {"reuters": 766, "rcv1": 950}
PAPER_ROUNDS = "1000"
PAPER_SURE = 17  # of the tests on RCV1 below
SURE_TESTS = ("sign", "macro_sign", "t", "rank_t", "precision", "recall")
TESTS = {
    "sign": "s",
    "macro_sign": "S",
    "t": "T",
    "rank_t": "T′",
    "precision": "p, precision",
    "recall": "p, recall",
    "bootstrap_micro_f1": "bootstrap, micro F1",
    "bootstrap_macro_f1": "bootstrap, macro F1",
}
TIMES = {"train": "training", "classify": "classification"}
TEXTS = {"texts": "classification"}
SUMS = {"sums": "over all pivots", "present_sums": "over pivots that documents have"}


def show_reuters(found: Rows, _: Rows) -> Iterator[Block]:
    """All there is on Reuters-21578, beside the paper."""
    yield corpus_beside(found["corpus"], PAPER_REUTERS, WHY_REUTERS)
    yield from groups_tables(found["corpus"])
    yield claims_beside(found["rounds"]["all"])
    yield pivots_beside(found, "reuters")
    yield from show_rounds(found)


def show_rcv1(found: Rows, _: Rows) -> Iterator[Block]:
    """All there is on RCV1-v2, beside the paper."""
    yield corpus_beside(found["corpus"], PAPER_RCV1, WHY_RCV1)
    yield pivots_beside(found, "rcv1")
    yield sure_beside(found)
    yield from show_rounds(found)


def show_standing_in(found: Rows, _: Rows) -> Iterator[Block]:
    """The same protocol on another corpus; the paper has no figures for it."""
    corpus = found["corpus"]
    yield Text("The corpus comes with Ramify and is not the paper's; its figures cannot be those of the paper.")
    yield Table("The corpus", ("", "ours"), [(words, corpus[key]) for key, words in CORPUS.items() if key in corpus])
    yield claims_beside(found["rounds"]["all"], "another corpus")
    yield from show_rounds(found)


def show_rounds(found: Rows) -> Iterator[Block]:
    """F1, times, additions and tests."""
    rounds = found["rounds"]
    for key in ("micro", "macro"):
        yield Chart(f"{key} F1, all terms", f1_lines(rounds["all"], key), "rounds S", f"{key} F1 (%)", log_x=True)
    for terms in rounds:
        yield by_rounds(f"F1 in percent, {TERMS[terms]}", rounds, terms, {"micro": "micro F1", "macro": "macro F1"})
    yield from dummies_table(rounds["all"])
    yield sizes_table(rounds["all"])
    note = "Test documents together, on one thread; in brackets the change in proportion."
    yield by_rounds("Seconds, all terms", rounds, "all", TIMES, 1, 4, note)
    if "texts" in last(rounds["all"]["adaboost"]):
        yield by_rounds("Seconds from texts, all terms", rounds, "all", TEXTS, 1, 4, note)
    note = "The paper counts additions over all pivots; a document has few of them."
    yield by_rounds("Millions of additions, all terms", rounds, "all", SUMS, 1e-6, 2, note)
    yield words_table(rounds)
    yield tests_table(found["tests"])


def corpus_beside(corpus: Rows, paper: Rows, why: Rows) -> Beside:
    """Numbers that tell whether it is the same corpus."""
    rows = [Row(CORPUS[key], theirs, corpus[key], _why(key, theirs, corpus, why)) for key, theirs in paper.items()]
    return Beside("The corpus", rows)


def _why(key: str, theirs: float, corpus: Rows, why: Rows) -> str:
    return str(why.get(key, "")) if abs(theirs - corpus[key]) > 0.005 else ""


def groups_tables(corpus: Rows) -> Iterator[Table]:
    """What is in the groups of both trees."""
    learnt = [(n, documents, *map(", ".join, words)) for n, documents, *words in corpus["learnt groups"]]
    columns = ("learnt group: categories", "documents", "largest categories", "telling stems")
    yield Table("Groups learned on the training documents", columns, learnt)
    official = [(name, n, documents, ", ".join(names)) for name, n, documents, names in corpus["official groups"]]
    yield Table("Groups of the corpus", ("", "categories", "documents", "largest categories"), official)


def trees_of(by_way: Rows) -> list[str]:
    """The trees that were tried."""
    return [way for way in by_way if way != "adaboost"]


def claims_beside(found: Rows, why: str = "") -> Beside:
    """How much TreeBoost.MH changes, over all numbers of rounds, and why that is not what the paper has."""
    rows = []
    for (key, pick), (words, paper) in PAPER_CLAIMS.items():
        for tree in trees_of(found):
            changes = [change(found[tree][s][key], flat[key]) for s, flat in found["adaboost"].items() if flat[key]]
            rows.append(Row(f"{words}, {TREES[tree]}", paper, pick(changes, default=None), why or _claim_why(tree, key)))
    note = f"After {', '.join(found['adaboost'])} rounds. The paper's table was not readable; its text gives the ranges."
    return Beside("What TreeBoost.MH changes, all terms", rows, note, digits=1)


def _claim_why(tree: str, key: str) -> str:
    if key == "classify":
        return "here only the pivots that a document has are added up"
    if key == "train":
        return "here a round touches the documents of its pivot only"
    return "the paper does not list its groups" if tree == "learnt" else "groups of the corpus, which the paper had not"


def pivots_beside(found: Rows, corpus: str) -> Beside:
    """Different pivots of AdaBoost.MH, where as many rounds were learnt as in the paper."""
    row = found["rounds"]["all"]["adaboost"].get(PAPER_ROUNDS)
    why = "" if row else "a quick run has fewer rounds"
    ours = row["pivots"] if row else None
    return Beside("Different pivots", [Row(f"{FLAT}, 1,000 rounds, all terms", PAPER_PIVOTS[corpus], ours, why)], digits=0)


def sure_beside(found: Rows) -> Beside:
    """How many tests hold that TreeBoost.MH is better."""
    tested = [row["tests"][name] for row in found["tests"] if row["b"][0] == "adaboost" for name in SURE_TESTS]
    sure = sum(p is not None and p <= 0.01 and difference > 0 for p, difference in tested)
    words = f"tests of {len(tested)} that hold at 0.01"
    return Beside("Is TreeBoost.MH better than AdaBoost.MH?", [Row(words, PAPER_SURE, sure)], digits=0)


def f1_lines(found: Rows, key: str) -> list[Line]:
    """One line a learner."""
    return [
        Line(WAYS[way], [(int(s), 100 * rows[s][key]) for s in rounds_of(rows)], dashed=way == "adaboost")
        for way, rows in found.items()
    ]


def by_rounds(
    title: str, rounds: Rows, terms: str, keys: dict[str, str], scale: float = 100, digits: int = 2, note: str = ""
) -> Table:
    """Some values of all trees beside those of AdaBoost.MH; glocal terms beside those chosen for all nodes."""
    found, flat = rounds[terms], rival(rounds, terms)
    trees = trees_of(found)
    head = [f"{words}: {WAYS[way]}" for words in keys.values() for way in ("adaboost", *trees)]
    rows = []
    for s, old in flat.items():
        cells = [beside(old[key], [found[tree][s][key] for tree in trees], scale, digits) for key in keys]
        rows.append([f"{int(s):,}", *(cell for part in cells for cell in part)])
    return Table(title, ("S", *head), rows, note)


def rival(rounds: Rows, terms: str) -> Any:
    """What TreeBoost.MH is compared with."""
    return rounds["global" if terms == "glocal" else terms]["adaboost"]


def dummies_table(found: Rows) -> Iterator[Table]:
    """Tables 3 and 4 of the paper: F1 over leaves and over dummies apart, where there are dummies."""
    after = {way: last(rows) for way, rows in found.items()}
    if all("dummies" in row for row in after.values()):
        rows = [
            (WAYS[way], *(100 * value for part in ("leaves", "dummies") for value in row[part])) for way, row in after.items()
        ]
        columns = ("", "leaves: micro F1", "macro F1", "dummies: micro F1", "macro F1")
        yield Table("Leaves, and dummies for documents at inner nodes, after the last round", columns, rows)


def sizes_table(found: Rows) -> Table:
    """Macro F1 of categories with few and with many training documents, after the last round; precision and recall."""
    flat, trees = last(found["adaboost"]), [last(found[tree]) for tree in trees_of(found)]
    rows: list[Sequence[str]] = []
    for k, (low, high) in enumerate(SIZES):
        if n := flat["n_by_size"][k]:
            name = f"macro F1, {n} categories with {f'{low} to {high}' if high else f'{low} or more'}"
            rows.append([name, *beside(flat["by_size"][k], [row["by_size"][k] for row in trees])])
    rows += [[f"micro {key}", *beside(flat[key], [row[key] for row in trees])] for key in ("precision", "recall")]
    return Table("By training documents, after the last round", ("", *(WAYS[way] for way in found)), rows)


def words_table(rounds: Rows) -> Table:
    """Times and different pivots among all stumps, after the last round."""
    rows = []
    for terms, by_way in rounds.items():
        for way, by_round in by_way.items():
            row, flat = last(by_round), last(rival(rounds, terms))
            times = [beside(flat[key], [row[key]], 1, 3)[way != "adaboost"] for key in ("train", "classify")]
            rows.append((TERMS[terms], WAYS[way], *times, row["stumps"], row["pivots"]))
    columns = ("", "", "training, seconds", "classification", "stumps", "different pivots")
    return Table("After the last round", columns, rows)


def tests_table(tests: Sequence[Rows]) -> Table:
    """p-values; in brackets where B did better."""
    rows = []
    for row in tests:
        both = [f"{WAYS[way]}, {TERMS[terms]}" for way, terms in (row["a"], row["b"])]
        rows.append((*both, *(p_value(*row["tests"][name]) for name in TESTS)))
    note = "Two-sided p-values; in brackets where B has the better figure. The bootstrap is ours."
    return Table("Tests after the last round", ("A", "B", *TESTS.values()), rows, note)
