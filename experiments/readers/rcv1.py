"""RCV1-v2 as Lewis, Yang, Rose & Li published it: vectors, topics and their hierarchy.

``lyrl2004_vectors_train.dat`` and ``lyrl2004_vectors_test_pt0.dat`` to ``…pt3.dat``: ``docid  feature:value …`` a line.
``rcv1-v2.topics.qrels``: ``topic docid 1`` a line. ``rcv1.topics.hier.orig``: ``parent: P child: C child-description: …``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.readers.layout import Layout, Split, find_file, open_text
from ramify.data import Corpus
from ramify.data.svmlight import MAX_FEATURE, MAX_VALUE, stack_pairs
from ramify.errors import DataError
from ramify.parallel import stage
from ramify.taxonomy import Taxonomy, most_specific

TRAIN = "lyrl2004_vectors_train.dat"
TEST = tuple(f"lyrl2004_vectors_test_pt{part}.dat" for part in range(4))
TOPICS, HIERARCHY = "rcv1-v2.topics.qrels", "rcv1.topics.hier.orig"
FILES = (TRAIN, *TEST, TOPICS, HIERARCHY)
EDGE = re.compile(r"parent:\s*(?P<parent>\S+)\s+child:\s*(?P<child>\S+)")
ABOVE_ALL = ("None", "Root")


def find(folder: Path) -> list[Path]:
    """The files that are there, if the vectors to train on are among them."""
    if find_file(folder, TRAIN) is None:
        return []
    return [path for name in FILES if (path := find_file(folder, name)) is not None]


def read(folder: Path) -> Split:
    """Vectors with the most specific topics of each story; stories without a topic are left out."""
    missing = [name for name in FILES if find_file(folder, name) is None]
    if missing:
        raise DataError(f"{folder} lacks {', '.join(missing)}; give all files of RCV1-v2, gzipped or not.")
    train, *test, topics, hierarchy = find(folder)
    taxonomy, topics_of = read_hierarchy(hierarchy), read_topics(topics)
    return _corpus([train], topics_of, taxonomy), _corpus(test, topics_of, taxonomy), taxonomy


def read_hierarchy(path: Path) -> Taxonomy:
    """The topics as a forest, without the root above all."""
    with open_text(path) as file:
        found = [match for line in file if (match := EDGE.search(line))]
    pairs = {match["child"]: None if match["parent"] in ABOVE_ALL else match["parent"] for match in found}
    edges = [(child, parent) for child, parent in pairs.items() if child not in ABOVE_ALL]
    if not edges:
        raise DataError(f"{path} has no line 'parent: … child: …'; give the file of RCV1-v2.")
    return Taxonomy.from_edges(edges)


def read_topics(path: Path) -> dict[str, list[str]]:
    """The topics of every story, by its number."""
    topics_of: dict[str, list[str]] = {}
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            words = line.split()
            if words and len(words) != 3:
                raise DataError(f"{path}, line {number}: not of the form 'topic docid 1'.")
            if words:
                topics_of.setdefault(words[1], []).append(words[0])
    return topics_of


def _corpus(paths: Iterable[Path], topics_of: dict[str, list[str]], taxonomy: Taxonomy) -> Corpus:
    rows: list[NDArray[np.float64]] = []
    labels: list[list[str]] = []
    paths = list(paths)
    for path in paths:
        with open_text(path) as file, stage(f"reading {path.name}") as step:
            for number, line in enumerate(file, start=1):
                step.advance()
                story, _, pairs = line.strip().partition(" ")
                if story in topics_of:
                    rows.append(_vector(path, number, pairs))
                    labels.append([topic for topic in topics_of[story] if topic in taxonomy])
    if not rows:
        raise DataError(f"no story of {paths[0]} has a topic; give vectors and topics of the same release.")
    own = taxonomy.decode(most_specific(taxonomy.encode(labels), taxonomy))
    return Corpus(str(paths[0].parent), stack_pairs(rows), [list(names) for names in own])


def _vector(path: Path, number: int, pairs: str) -> NDArray[np.float64]:
    try:
        vector = np.array(pairs.replace(":", " ").split(), dtype=np.float64).reshape(-1, 2)
    except ValueError:
        raise DataError(f"{path}, line {number}: not of the form 'docid  feature:value …'.") from None
    features, values = vector.T
    # written so that what is no number is refused, too
    if not (((features >= 0) & (features <= MAX_FEATURE)).all() and (np.abs(values) <= MAX_VALUE).all()):
        raise DataError(f"{path}, line {number}: a feature or a value is out of range; give the file as published.")
    return vector


def tree_of_codes(codes: Iterable[str]) -> Taxonomy:
    """The topics below one another as their codes tell: C151 below C15, and that below CCAT.

    >>> tree = tree_of_codes(["CCAT", "C15", "C151", "GCAT", "GSPO"])
    >>> tree.show(tree.index("C151"))
    'CCAT > C15 > C151'
    """
    known = set(codes)
    edges: list[tuple[str, str | None]] = []
    for code in sorted(known):
        above = (code[:n] for n in range(len(code) - 1, 1, -1))
        top = None if code.endswith("CAT") and len(code) == 4 else f"{code[0]}CAT"
        edges.append((code, next((begin for begin in above if begin in known), top)))
    return Taxonomy.from_edges(edges)


LAYOUT = Layout(f"the files {TRAIN}, {TEST[0]} to pt3, {TOPICS} and {HIERARCHY}", find, read)
