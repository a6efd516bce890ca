"""All 20 newsgroups in the layout of their publication, with made-up posts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from experiments.newsgroups import newsgroups_taxonomy

SIDES = {"train": 4, "test": 2}  # posts of every group


def write_all_newsgroups(folder: Path) -> Path:
    """Some posts of every group, of words that are its own, its topic's, and everybody's."""
    rng, tree = np.random.default_rng(0), newsgroups_taxonomy()
    for node in np.flatnonzero(tree.is_leaf):
        words = [in_letters(f"{above}x{k}") for above in tree.nodes_to(int(node)) for k in range(12)]
        for side, count in SIDES.items():
            place = folder / f"20news-bydate-{side}" / tree.names[node]
            place.mkdir(parents=True)
            for number in range(count):
                said = " ".join(rng.choice(words, 60))
                (place / str(number)).write_text(f"From: ann@example.org\nSubject: {said[:20]}\nLines: 1\n\n{said}\n")
    return folder


def in_letters(word: str) -> str:
    return word.translate(str.maketrans("0123456789", "bcdfghjkmn"))


def write_tree(folder: Path) -> Path:
    """A corpus of six classes in our own layout; one document has two labels."""
    folder.mkdir(parents=True)
    edges = [("a", "ROOT"), ("b", "ROOT"), *((f"{top}{k}", top) for top in "ab" for k in range(3))]
    (folder / "taxonomy.tsv").write_text("".join(f"{child}\t{parent}\n" for child, parent in edges))
    rows = [(f"said{name} of{name[0]} common", [name]) for name, parent in edges if parent != "ROOT" for _ in range(4)]
    rows.append(("both", ["a0", "b1"]))
    for part in ("train", "test"):
        lines = (json.dumps({"id": str(k), "text": text, "labels": labels}) for k, (text, labels) in enumerate(rows))
        (folder / f"{part}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder
