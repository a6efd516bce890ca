"""Results as Markdown, beside what the paper says; ``python tables.py results.json`` prints them again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

Rows = dict[str, Any]

TERMS = {"all": "all words", "global": "2,012 global", "glocal": "2,012 glocal"}
TREES = {"learnt": "four learnt groups", "official": "official groups"}
WAYS = {"adaboost": "`adaboost-mh`", **{tree: f"`treeboost-mh`, {name}" for tree, name in TREES.items()}}
PAPER_CORPUS = {
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
CORPUS = {
    "train": "training documents",
    "test": "test documents",
    "categories": "categories",
    "labels a document": "categories a training document, mean",
    "most labels": "the same, most",
    "mean size": "training documents a category, mean",
    "least size": "the same, least",
    "largest size": "the same, most",
    "terms": "terms",
    "pooled terms": "different terms among the best 60 of every category",
}
CLAIMS = {
    "micro": "micro F1",
    "macro": "macro F1",
    "train": "training time",
    "classify": "classification time",
    "sums": "additions, over all pivots",
    "present_sums": "additions, over pivots that documents have",
}
PAPER_CLAIMS = {
    "micro": "+2.3 % to +17.2 %",
    "macro": "+22.0 % to +197.4 %",
    "train": "−50.4 %",
    "classify": "+16.8 % once, else −5.5 % to −67.4 %",
    "sums": "",
    "present_sums": "",
}
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
NAMES = {"micro": "micro F1", "macro": "macro F1", "train": "training", "classify": "classification", "texts": "from texts"}
NAMES |= {"sums": "over all pivots", "present_sums": "over pivots that documents have"}
OTHERS = {
    "complete linkage": "`treeboost-mh`, complete linkage",
    "average linkage": "`treeboost-mh`, average linkage",
    "presence of words": "`treeboost-mh`, groups from the presence of words",
    "2 groups": "`treeboost-mh`, 2 learnt groups",
    "12 groups": "`treeboost-mh`, 12 learnt groups",
    "30 groups": "`treeboost-mh`, 30 learnt groups",
    "stumps": "`adaboost-mh`, 5 × S rounds",
    "adaboost, numbers": "`adaboost-mh`, with numbers",
    "learnt, numbers": "`treeboost-mh`, with numbers",
}
SIZES = ("1 to 9", "10 to 99", "100 or more")


# ---- cells --------------------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)])


def change(new: float, old: float) -> float:
    """In percent of the old value."""
    return 100 * (new / old - 1) if old else (0.0 if new == old else float("inf"))


def signed(value: float, unit: str = " %", digits: int = 1) -> str:
    """With a sign, as typeset."""
    return f"{value:+,.{digits}f}{unit}".replace("-", "−").replace("inf", "∞")


def number(value: float) -> str:
    """A count, or a mean to two digits."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def beside(old: float, new: Iterable[float], scale: float, digits: int) -> list[str]:
    """A value, and others with how much more they are."""
    return [f"{scale * old:.{digits}f}", *(f"{scale * value:.{digits}f} ({signed(change(value, old))})" for value in new)]


def last(rows: Rows) -> Rows:
    """What there is after the last round."""
    row: Rows = list(rows.values())[-1]
    return row


def rival(found: Rows, terms: str) -> Rows:
    """AdaBoost.MH with the words that come nearest."""
    rows: Rows = found["global" if terms == "glocal" else terms]["adaboost"]
    return rows


# ---- tables -------------------------------------------------------------------------------------------------------------


def corpus_tables(results: Rows) -> str:
    """Numbers of the corpus, and both trees."""
    found, rows = results["corpus"], []
    for key, words in CORPUS.items():
        theirs, ours = PAPER_CORPUS[key], found[key]
        off = signed(ours - theirs, "", 0 if isinstance(ours, int) else 2) if abs(ours - theirs) >= 0.01 else "0"
        rows.append([words, number(theirs), number(ours), off])
    parts = [table(["", "paper", "ours", "difference"], rows)]
    learnt = [[str(n), f"{documents:,}", *map(", ".join, words)] for n, documents, *words in found["learnt groups"]]
    parts.append(table(["learnt group: categories", "documents", "largest categories", "telling stems"], learnt))
    official = [[name, str(n), f"{documents:,}", ", ".join(names)] for name, n, documents, names in found["official groups"]]
    parts.append(table(["official group", "categories", "documents", "largest categories"], official))
    return "\n\n".join(parts)


def rounds_tables(results: Rows) -> str:
    """Effectiveness by terms, the paper's claims, times, pivots, and F1 by size."""
    found = results["rounds"]
    parts = {TERMS[terms]: by_rounds(found[terms], rival(found, terms), ("micro", "macro"), 100, 2) for terms in found}
    parts["claims"] = claims_table(found)
    flat = found["all"]["adaboost"]
    parts["seconds to train and to classify the matrix"] = by_rounds(found["all"], flat, ("train", "classify"), 1, 4)
    parts["seconds to classify texts"] = by_rounds(found["all"], flat, ("texts",), 1, 4)
    parts["millions of additions"] = by_rounds(found["all"], flat, ("sums", "present_sums"), 1e-6, 2)
    parts["after the last round"] = words_table(found)
    parts["by training documents"] = sizes_table(found["all"])
    return "\n\n".join(f"{name}\n\n{shown}" for name, shown in parts.items())


def by_rounds(found: Rows, flat: Rows, keys: Sequence[str], scale: float, digits: int) -> str:
    """Some values of both trees beside those of AdaBoost.MH."""
    head = [f"{NAMES[key]}: {way}" if k == 0 else way for key in keys for k, way in enumerate(WAYS.values())]
    rows = []
    for s, old in flat.items():
        cells = [beside(old[key], [found[tree][s][key] for tree in TREES], scale, digits) for key in keys]
        rows.append([f"{int(s):,}", *(cell for part in cells for cell in part)])
    return table(["S", *head], rows)


def claims_table(found: Rows) -> str:
    """How much TreeBoost.MH changes, from the least to the most over all numbers of rounds."""
    rows = []
    for key, paper in PAPER_CLAIMS.items():
        for tree, shown in TREES.items():
            cells = [spread([change(found[t][tree][s][key], flat[key]) for s, flat in rival(found, t).items()]) for t in found]
            rows.append([CLAIMS[key], paper, shown, *cells])
    return table(["", "paper, all words", "ours", *(TERMS[terms] for terms in found)], rows)


def spread(values: Sequence[float]) -> str:
    """From the least to the most."""
    return f"{signed(min(values))} to {signed(max(values))}"


def words_table(found: Rows) -> str:
    """Times and different pivots among all stumps, after the last round."""
    rows = []
    for terms, by_way in found.items():
        for way, by_round in by_way.items():
            row, flat = last(by_round), last(rival(found, terms))
            times = [beside(flat[key], [row[key]], 1, 3)[way != "adaboost"] for key in ("train", "classify")]
            paper = "766" if (terms, way) == ("all", "adaboost") else ""
            rows.append([TERMS[terms], WAYS[way], *times, f"{row['stumps']:,}", paper, f"{row['pivots']:,}"])
    return table(["words", "", "training", "classification", "stumps", "paper: different pivots", "ours"], rows)


def sizes_table(found: Rows) -> str:
    """Macro F1 of categories with few and with many training documents, after the last round; precision and recall."""
    flat, trees = last(found["adaboost"]), [last(found[tree]) for tree in TREES]
    rows = []
    for k, words in enumerate(SIZES):
        name = f"macro F1, {flat['n_by_size'][k]} categories with {words}"
        rows.append([name, *beside(flat["by_size"][k], [row["by_size"][k] for row in trees], 100, 2)])
    for key in ("precision", "recall"):
        rows.append([f"micro {key}", *beside(flat[key], [row[key] for row in trees], 100, 2)])
    return table(["", *WAYS.values()], rows)


def tests_table(results: Rows) -> str:
    """p-values; in brackets where B did better."""
    rows = []
    for names, tested in results["tests"].items():
        both = [part.split() for part in names.split(" > ")]
        ways = [f"{WAYS[way]}, {TERMS[terms]}" for way, terms in both]
        rows.append([*ways, *(p_value(*tested[name]) for name in TESTS)])
    return table(["A", "B", *TESTS.values()], rows)


def p_value(p: float, difference: float) -> str:
    """Three digits, in brackets where B did better."""
    shown = "< 0.001" if p < 0.001 else f"{p:.3f}"
    return f"({shown})" if difference < 0 else shown


def variants_table(results: Rows) -> str:
    """Micro / macro F1 of all variants after the last round, and the seconds of one training."""
    rows = []
    for variant, by_way in results["variants"].items():
        cells = [cell for way in by_way.values() for cell in (pair(last(way)), f"{way['seconds']:.1f}")]
        rows.append([variant, *cells])
    return table(["variant", "`adaboost-mh`", "seconds", "`treeboost-mh`", "seconds"], rows)


def trees_table(results: Rows) -> str:
    """Micro / macro F1 of every tree; shuffled ones as mean and standard deviation."""
    found: Rows = {name: rows for name, rows in results["trees"].items() if not name.startswith("shuffled")}
    drawn = [rows for name, rows in results["trees"].items() if name.startswith("shuffled")]
    rounds = [s for s in drawn[0] if s != "seconds"]
    base: Rows = {WAYS[way]: rows for way, rows in results.get("rounds", {}).get("all", {}).items()}
    rows = [[OTHERS.get(name, name), *(pair(rows[s]) for s in rounds)] for name, rows in (base | found).items()]
    means = [" / ".join(mean_and_spread([one[s][key] for one in drawn]) for key in ("micro", "macro")) for s in rounds]
    rows.append([f"`treeboost-mh`, {len(drawn)} trees with categories shuffled", *means])
    return table(["", *(f"{int(s):,}" for s in rounds)], rows)


def mean_and_spread(values: Sequence[float]) -> str:
    """Mean and standard deviation in percent."""
    return f"{100 * mean(values):.1f} ± {100 * stdev(values):.1f}"


def pair(row: Rows) -> str:
    """Micro / macro."""
    return f"{100 * row['micro']:.2f} / {100 * row['macro']:.2f}"


def medical_table(results: Rows) -> str:
    """Micro and macro F1 by the number of rounds."""
    found = results["medical"]
    told = f"{found['documents']} documents, {found['leaves']} leaves, {found['nodes']} nodes, {found['folds']} folds"
    rows = []
    for s, flat in found["adaboost"].items():
        cells = [beside(flat[key], [found["learnt"][s][key]], 100, 2) for key in ("micro", "macro")]
        rows.append([f"{int(s):,}", *cells[0], *cells[1]])
    head = ["S", "micro F1: `adaboost-mh`", "`treeboost-mh`", "macro F1: `adaboost-mh`", "`treeboost-mh`"]
    return f"{told}\n\n{table(head, rows)}"


TABLES: dict[str, Callable[[Rows], str]] = {
    "corpus": corpus_tables,
    "rounds": rounds_tables,
    "tests": tests_table,
    "variants": variants_table,
    "trees": trees_table,
    "medical": medical_table,
}


def print_all(results: Rows) -> None:
    """The tables of every part there is."""
    for part, make in TABLES.items():
        if part in results:
            print(f"\n**{part}**\n\n{make(results)}")


if __name__ == "__main__":
    print_all(json.loads(Path(sys.argv[1]).read_text()))
