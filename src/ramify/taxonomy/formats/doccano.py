"""The label list of a doccano project: JSON, ``[{"text": "Food > Fruit", "background_color": "#…", …}]``."""

from __future__ import annotations

import json
import re

from ramify.errors import TaxonomyError
from ramify.taxonomy.formats import text as text_formats
from ramify.taxonomy.hierarchy import Taxonomy

START = re.compile(r'\s*\[\s*\{[^{}]*"(background_color|backgroundColor|suffix_key)"\s*:')
COLOURS = ("#1f5fa8", "#a34700", "#2a7a2a", "#a11d21", "#6b4aa0", "#75473b", "#b0338c", "#5a5a5a", "#6d6d00", "#0b7285")


def is_label_list(text: str) -> bool:
    """Whether a text is a label list."""
    return START.match(text) is not None


def parse(text: str) -> Taxonomy:
    """The labels, which may be paths."""
    try:
        labels = [entry["text"] for entry in json.loads(text)]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise TaxonomyError('the label list is not valid; expected a list of objects such as {"text": "Food"}.') from None
    odd = next((label for label in labels if not isinstance(label, str) or not label.strip() or "\n" in label), None)
    if odd is not None:
        raise TaxonomyError(f"a label is {str(odd)[:40]!r}; give each label a name on one line.")
    separator = text_formats.find_separator(labels)
    return Taxonomy.from_paths(labels, separator) if separator else Taxonomy.flat(labels)


def render(taxonomy: Taxonomy) -> str:
    """Write all nodes by name; those of one branch have one colour."""
    tree = taxonomy.tree
    branch = {root: number for number, root in enumerate(tree.roots.tolist())}
    for node, parent in enumerate(tree.parent.tolist()):  # parents come first
        branch.setdefault(node, branch.get(parent, 0))
    rows = [_row(name, COLOURS[branch[node] % len(COLOURS)]) for node, name in enumerate(taxonomy.names)]
    return "[\n" + ",\n".join(rows) + "\n]\n"


def _row(name: str, colour: str) -> str:
    entry = {"text": name, "background_color": colour, "text_color": "#ffffff"}
    return f"  {json.dumps(entry, ensure_ascii=False)}"
