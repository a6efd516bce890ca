"""Numbers by node name, such as costs, penalties and weights: given as a mapping, or in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.arguments import as_path
from ramify.errors import InputError, LabelError, TaxonomyError, suggest
from ramify.formatting import cut
from ramify.taxonomy.files import LONGEST, read_text
from ramify.taxonomy.formats.text import numbered_rows
from ramify.taxonomy.hierarchy import Taxonomy

SEARCHED = 10_000  # names among which one like a mistyped one is looked for
FORM = "give a JSON object, or a table with two columns: a node and its number"


def values_by_node(given: Mapping[str, float], taxonomy: Taxonomy, what: str, default: float) -> NDArray[np.float64]:
    """One number per node, from numbers by name; the nodes that are not named get the default.

    >>> values_by_node({"b": 5}, Taxonomy.flat(["a", "b"]), "costs", default=1.0)
    array([1., 5.])
    """
    values, named = np.full(len(taxonomy), default, dtype=np.float64), dict[int, str]()
    for name, number in given.items():
        node = _find(str(name), taxonomy, what)
        if node in named:
            raise InputError(f"the {what} name one node twice, as {named[node]!r} and {name!r}; leave one out.")
        if isinstance(number, bool) or not isinstance(number, (int, float, np.integer, np.floating)):
            raise InputError(f"the {what} of {name!r} are {number!r}; give a number.")
        values[node], named[node] = number, str(name)
    return values


def _find(name: str, taxonomy: Taxonomy, what: str) -> int:
    if not taxonomy.has_node(name):
        near = suggest(name, [*taxonomy.titles[:SEARCHED], *taxonomy.names[:SEARCHED]])
        found = f"the {what} name {name!r}, which is none of the {len(taxonomy):,} nodes of the taxonomy"
        raise InputError(f"{found}; correct it, or leave it out.{near}")
    try:
        return taxonomy.index(name)
    except LabelError as error:
        raise InputError(f"the {what} are not clear: {error}") from None


def note_on_others(given: Any, taxonomy: Taxonomy, what: str, default: float) -> str | None:
    """What the nodes have that are not named, as a sentence without its full stop; None where there are none.

    >>> note_on_others({"b": 5}, Taxonomy.flat(["a", "b"]), "costs", 1.0)
    'costs: 1 of 2 nodes are named; the others have 1'
    """
    if not isinstance(given, Mapping) or len(given) >= len(taxonomy):
        return None
    return f"{what}: {len(given):,} of {len(taxonomy):,} nodes are named; the others have {default:g}"


def read_node_values(path: str | Path) -> dict[str, float]:
    """Read numbers by node name: a JSON object, or a table of two columns, separated by tabs or commas.

    A first row without a number, such as ``node,cost``, is a header.
    """
    path = as_path(path, "path")
    try:
        return parse_node_values(read_text(path))
    except TaxonomyError as error:
        raise InputError(cut(f"{path}: {error}", LONGEST)) from None


def parse_node_values(text: str) -> dict[str, float]:
    """Parse what :func:`read_node_values` reads.

    >>> parse_node_values("node,cost\\nfruit,2\\nbread,0.5\\n")
    {'fruit': 2.0, 'bread': 0.5}
    """
    pairs = _object_pairs(text) if text.lstrip().startswith("{") else _table_pairs(text)
    values: dict[str, float] = {}
    for where, name, number in pairs:
        if name in values:
            raise TaxonomyError(f"{where}node {name!r} comes a second time; leave one out.")
        values[name] = number
    if not values:
        raise TaxonomyError(f"there is no number; {FORM}.")
    return values


def _object_pairs(text: str) -> list[tuple[str, str, float]]:
    try:
        pairs: Any = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        raise TaxonomyError(f"it is not valid JSON; {FORM}.") from None
    found = []
    for name, number in pairs:
        value = float("inf") if number == "inf" else number
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or (isinstance(value, int) and abs(value) > sys.float_info.max):  # JSON's whole numbers have no end
            raise TaxonomyError(f"node {name!r} has {str(number)[:60]!r}, not a number; {FORM}.")
        found.append(("", name, float(value)))
    return found


def _table_pairs(text: str) -> list[tuple[str, str, float]]:
    found = []
    for k, (line, row) in enumerate(numbered_rows(text, "\t" if "\t" in text.split("\n")[0] else ",")):
        cells = [cell.strip() for cell in row]
        try:
            name, number = cells
            found.append((f"line {line}: ", name, float(number)))
        except ValueError:
            if k == 0 and len(cells) == 2:  # a header
                continue
            raise TaxonomyError(f"line {line} has {' '.join(cells)[:60]!r}; {FORM}.") from None
    return found
