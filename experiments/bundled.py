"""The bundled requests to an electronics shop, which take the place of a corpus that is not at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

from experiments.page import Beside, Block, Text
from experiments.study import Part
from ramify.data import load_electronics
from ramify.taxonomy import Taxonomy

WHAT_IT_IS = (
    "Not the paper's corpus: {} short requests to an electronics shop that come with Ramify, in {} classes at the leaves of a "
    "tree with three levels. The protocol is the paper's; its figures, where they stand beside ours, are of other documents."
)
Show = Callable[[Any, Any], Iterable[Block]]


def requests_at_leaves() -> tuple[list[str], list[str], Taxonomy]:
    """The requests with one label that is a leaf, their labels, and the taxonomy.

    >>> texts, names, tree = requests_at_leaves()
    >>> len(texts), len(set(names)), len(tree.roots)
    (3071, 57, 6)
    """
    shop = load_electronics()
    tree = shop.taxonomy
    pairs = (pair for part in (shop.train, shop.test) for pair in zip(part.documents, part.labels, strict=True))
    alone = ((text, tree.index(labels[0])) for text, labels in pairs if len(labels) == 1)
    found = [(text, tree.names[node]) for text, node in alone if tree.is_leaf[node]]
    return [text for text, _ in found], [name for _, name in found], tree


def stand_in(part: Part, run: Callable[..., Any], show: Show) -> Part:
    """The same part on the requests, for where the part's own corpus is not at hand."""
    about = f"{part.about}, on bundled requests"
    return Part(f"bundled-{part.name}", about, run, partial(_say_what_it_is, show), in_place_of=(part.name,))


def _say_what_it_is(show: Show, found: Any, others: Any) -> Iterator[Block]:
    yield _what_it_is()
    yield from (_of_other_documents(block) if isinstance(block, Beside) else block for block in show(found, others))


@cache
def _what_it_is() -> Text:
    texts, names, _ = requests_at_leaves()
    return Text(WHAT_IT_IS.format(f"{len(texts):,}", len(set(names))))


def _of_other_documents(block: Beside) -> Beside:
    """Whatever else may be the reason, the documents are."""
    return replace(block, rows=[replace(row, why="other documents") for row in block.rows])
