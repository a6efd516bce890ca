"""A labelling configuration of Label Studio: XML with a ``<Taxonomy>`` tag, and a ``<Choice>`` for each node.

A choice is named by its title, or by its alias, which Label Studio writes into annotations. Of a DAG, each node is
written once, below its main parent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from ramify.errors import TaxonomyError, first_sentence
from ramify.taxonomy.formats.nested import taxonomy_of
from ramify.taxonomy.hierarchy import ARROW, Taxonomy

START = re.compile(r"\s*(<\?xml[^>]*\?>\s*)?(<!--.*?-->\s*)*<(View|Taxonomy|Choices)\b", re.DOTALL)
DECLARATIONS = ("<!DOCTYPE", "<!ENTITY")
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HEAD = '<View>\n  <Text name="text" value="$text"/>\n  <Taxonomy name="taxonomy" toName="text" showFullPath="true">\n'
TAIL = "  </Taxonomy>\n</View>\n"


def is_configuration(text: str) -> bool:
    """Whether a text is a labelling configuration."""
    return START.match(text) is not None


def parse(text: str) -> Taxonomy:
    """The choices of the only Taxonomy tag, or of the only Choices tag."""
    if any(mark in text for mark in DECLARATIONS):
        raise TaxonomyError("the labelling configuration declares a document type or entities; remove them.")
    found = _ChoiceTags()
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = found.start, found.end
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError) as error:
        raise TaxonomyError(f"the labelling configuration is not valid XML: {first_sentence(error)[:160]}.") from None
    if found.n_tags > 1:
        raise TaxonomyError(f"the labelling configuration has {found.n_tags} tags with choices; keep one Taxonomy or Choices.")
    if not found.titles:
        raise TaxonomyError('the labelling configuration has no choice; expected <Taxonomy> with <Choice value="…"/>.')
    return taxonomy_of(found.parents, found.titles)


class _ChoiceTags:
    """Collects choices while a configuration is parsed. n_tags: that hold choices."""

    def __init__(self) -> None:
        self.parents: list[int] = []
        self.titles: list[str] = []
        self.n_tags = 0
        self._open: list[int] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """A tag that opens."""
        self.n_tags += tag in ("Taxonomy", "Choices")
        if tag != "Choice":
            return
        title = (attributes.get("alias") or attributes.get("value") or "").strip()
        if not title:
            raise TaxonomyError(f"choice {len(self.titles) + 1} has no value; give it one.")
        self.parents.append(self._open[-1] if self._open else -1)
        self._open.append(len(self.titles))
        self.titles.append(title)

    def end(self, tag: str) -> None:
        """A tag that closes."""
        if tag == "Choice":
            self._open.pop()


def render(taxonomy: Taxonomy) -> str:
    """Write a configuration to classify texts: the column ``text``, and one Taxonomy tag."""
    return HEAD + "".join(_choice_lines(taxonomy)) + TAIL


def _choice_lines(taxonomy: Taxonomy) -> Iterator[str]:
    tree = taxonomy.tree
    waiting: list[tuple[int, int]] = [(node, 2) for node in reversed(_checked(taxonomy, tree.roots.tolist()))]
    while waiting:
        node, depth = waiting.pop()
        margin = "  " * min(depth, 20)
        if node < 0:
            yield f"{margin}</Choice>\n"
            continue
        children = _checked(taxonomy, tree.children_of(node).tolist())
        yield f"{margin}<Choice value={_quoted(taxonomy, node, tree.parent[node] >= 0 or bool(children))}"
        yield ">\n" if children else "/>\n"
        if children:
            waiting.append((-1, depth))
            waiting += [(child, depth + 1) for child in reversed(children)]


def _checked(taxonomy: Taxonomy, siblings: list[int]) -> list[int]:
    """Siblings, after a check that their titles differ: annotations hold nothing else."""
    titles = [taxonomy.titles[node] for node in siblings]
    if len(set(titles)) < len(titles):
        twice = next(title for title in titles if titles.count(title) > 1)
        raise TaxonomyError(f"two nodes below one parent have the title {twice!r}; give them different titles.")
    return siblings


def _quoted(taxonomy: Taxonomy, node: int, is_in_path: bool) -> str:
    """The title of a node as an attribute, if the path with it can be read back from annotations."""
    title = taxonomy.titles[node]
    if NOT_XML.search(title):
        raise TaxonomyError(f"the title {title!r} holds a control character, which XML does not allow; rename the node.")
    if is_in_path and ARROW in f" {title} ":
        raise TaxonomyError(f"the title {title!r} holds {ARROW!r}, which separates the parts of paths; rename the node.")
    return quoteattr(title)
