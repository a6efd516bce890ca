"""The 20 newsgroups of Punera & Ghosh, Enhanced Hierarchical Classification via Isotonic Smoothing (2008).

Taxonomy I: a tree of 31 nodes, all posts at its 20 leaves (:func:`newsgroups_taxonomy`, :func:`read_newsgroups`).
Taxonomy II: the same tree, with about 1000 documents of its own at every inner node (:func:`add_hybrids`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ramify.data.corpus import Corpus
from ramify.data.documents import read_corpus
from ramify.errors import DataError, InputError, suggest
from ramify.taxonomy import Taxonomy

CHILDREN = {
    "newsgroups": ("comp.*", "rec.*", "sci.*", "society", "misc.forsale"),
    "comp.*": ("comp.sys.*", "software"),
    "comp.sys.*": ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
    "software": ("comp.graphics", "comp.os.ms-windows.misc", "comp.windows.x"),
    "rec.*": ("vehicles", "rec.sport.*"),
    "vehicles": ("rec.autos", "rec.motorcycles"),
    "rec.sport.*": ("rec.sport.baseball", "rec.sport.hockey"),
    "sci.*": ("sci.crypt", "sci.electronics", "sci.med", "sci.space"),
    "society": ("talk.politics.*", "religion"),
    "talk.politics.*": ("talk.politics.guns", "talk.politics.mideast", "talk.politics.misc"),
    "religion": ("alt.atheism", "soc.religion.christian", "talk.religion.misc"),
}
ROOT = "newsgroups"
PARTS = ("train", "test")
Ints = NDArray[np.int64]
EMPTY_LINE = re.compile(r"\r?\n\r?\n")


def newsgroups_taxonomy() -> Taxonomy:
    """The 20 newsgroups as leaves of one tree of 31 nodes, grouped by what they are about.

    The paper draws its tree in a figure, which was not available as text. Its words give the number of nodes, ``comp.*`` above
    every computer class, and software apart from hardware; for the rest, the tree is ours.

    >>> tree = newsgroups_taxonomy()
    >>> len(tree), int(tree.is_leaf.sum())
    (31, 20)
    >>> tree.show(tree.index("comp.graphics"))
    'newsgroups > comp.* > software > comp.graphics'
    """
    edges = [(child, parent) for parent, children in CHILDREN.items() for child in children]
    return Taxonomy.from_edges([(ROOT, None), *edges])


def read_newsgroups(folder: str | Path) -> Corpus:
    """Read the posts of the corpus, those in ``train.*`` and then those in ``test.*``, each labelled with its newsgroup.

    The files are tables as :func:`read_corpus` takes them, JSON lines for example. Of the headers only From and Subject
    stay, as in the release of 18,828 posts that the paper uses; the release in two parts by date has 18,846.
    """
    return join_posts(str(folder), [read_corpus(_find_part(Path(folder), part)) for part in PARTS])


def join_posts(source: str, parts: Sequence[Corpus]) -> Corpus:
    """The posts of all parts, one after another; every post must bear the name of one newsgroup."""
    for part in parts:
        _refuse_other_labels(part)
    return Corpus(
        source=source,
        documents=[strip_headers(text) for part in parts for text in part.documents],
        labels=[labels for part in parts for labels in part.labels],
        bad_rows=[row for part in parts for row in part.bad_rows],
        found=parts[0].found,
    )


def _find_part(folder: Path, part: str) -> Path:
    files = sorted(folder.glob(f"{part}.*"))
    if len(files) != 1:
        found = f"{len(files)} files" if files else "no file"
        raise DataError(f"{folder} holds {found} named {part}.*; give a folder with one file train.* and one file test.*.")
    return files[0]


def _refuse_other_labels(part: Corpus) -> None:
    taxonomy = newsgroups_taxonomy()
    leaves = {name for name, is_leaf in zip(taxonomy.names, taxonomy.is_leaf, strict=True) if is_leaf}
    for position, labels in enumerate(part.labels):
        if len(labels) != 1 or labels[0] not in leaves:
            known = suggest(labels[0], sorted(leaves)) if len(labels) == 1 else ""
            place = part.location_of(position)
            raise DataError(f"{place}: the labels are {labels}; give the name of one of the 20 newsgroups.{known}")


def strip_headers(text: str, keep: Iterable[str] = ("From", "Subject")) -> str:
    """Leave out a post's headers but for some; they end at the first line with nothing in it.

    A text without such a line, or with none of the kept headers above it, stays as it is.

    >>> print(strip_headers("From: ann@example.org\\nLines: 1\\nSubject: tyres\\n\\nWhich ones?"))
    From: ann@example.org
    Subject: tyres
    <BLANKLINE>
    Which ones?
    """
    end = EMPTY_LINE.search(text)
    kept = list(_body_lines(text[: end.start()], {name.lower() for name in keep})) if end else []
    return "\n".join(kept) + text[end.start() :] if end and kept else text


def _body_lines(head: str, keep: set[str]) -> Iterator[str]:
    """Lines of the kept headers; a line that begins with a space goes on with the header above it."""
    is_kept = False
    for line in head.split("\n"):
        if not line[:1].isspace():
            is_kept = line.partition(":")[0].lower() in keep and ":" in line
        if is_kept:
            yield line.rstrip("\r")


def add_hybrids(
    texts: Sequence[str], labels: Sequence[str], taxonomy: Taxonomy, per_node: int = 1000, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Make documents for inner nodes, each combined from documents below some of the node's children: Taxonomy II.

    texts, labels: the documents and the one label of each; they come back first, followed by the hybrids.
    per_node: hybrids of each inner node.

    A hybrid takes from k documents, each from below another child, a stretch of one k-th of the words; so it is as long as they
    are on average, with about as many distinct words. k is drawn from 2 up to the number of children that have documents.

    >>> tree = Taxonomy.from_paths(["food/apple", "food/bread"])
    >>> texts, labels = add_hybrids(["sweet red", "rye rye"], ["food/apple", "food/bread"], tree, per_node=1)
    >>> labels[2:], len(texts[2].split())
    (['food'], 2)
    """
    if len(texts) != len(labels):
        raise InputError(f"there are {len(texts)} texts and {len(labels)} labels; give each text one label.")
    if per_node < 0:
        raise InputError(f"per_node is {per_node}; give the number of hybrids of each inner node, 0 or more.")
    rng = np.random.default_rng(seed)
    nodes = np.asarray([taxonomy.index(label) for label in labels], dtype=np.int64)
    inner = np.flatnonzero(~taxonomy.is_leaf).tolist() if per_node else []
    pools = {node: _documents_below(node, nodes, taxonomy) for node in inner}
    hybrids = [_combine(texts, pools[node], rng) for node in inner for _ in range(per_node)]
    names = [taxonomy.names[node] for node in inner for _ in range(per_node)]
    return [*texts, *hybrids], [*labels, *names]


def _documents_below(node: int, nodes: Ints, taxonomy: Taxonomy) -> list[Ints]:
    """For each child that has any, the documents of the child and of all below it."""
    subtrees = [np.append(taxonomy.descendants_of(child), child) for child in taxonomy.children_of(node).tolist()]
    pools = [found for subtree in subtrees if len(found := np.flatnonzero(np.isin(nodes, subtree)))]
    if not pools:
        name = taxonomy.names[node]
        raise InputError(f"no document is labelled below {name!r}; give some to combine, or a taxonomy without that node.")
    return pools


def _combine(texts: Sequence[str], pools: list[Ints], rng: np.random.Generator) -> str:
    """One hybrid: a stretch of a document from each of some pools."""
    k = int(rng.integers(min(2, len(pools)), len(pools) + 1))
    chosen = [pools[pool] for pool in rng.choice(len(pools), k, replace=False)]
    return "\n".join(_line_range(texts[rng.choice(pool)].split(), k, rng) for pool in chosen)


def _line_range(words: list[str], k: int, rng: np.random.Generator) -> str:
    """One k-th of a document's words, as they follow one another."""
    size = max(1, round(len(words) / k))
    start = int(rng.integers(max(1, len(words) - size + 1)))
    return " ".join(words[start : start + size])
