"""Documents under a changed taxonomy: which labels follow from the change, and which documents have none left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import LabelError, suggest
from ramify.taxonomy import Changes, Taxonomy, most_specific

NOWHERE = -1
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Relabelled:
    """Labels in the new taxonomy.

    own: documents × new nodes, most specific labels. changed, split, lost: which documents have labels whose nodes were moved,
    merged or split; which of them are at a node above the parts of one that was split; and which have no label left.
    """

    own: csr_array
    changed: NDArray[np.bool_]
    split: NDArray[np.bool_]
    lost: NDArray[np.bool_]


def relabel(own: csr_array, changes: Changes) -> Relabelled:
    """Labels that follow from a change (own: documents × old nodes)."""
    landing = landing_nodes(changes)
    nodes = landing[own.indices]
    n_docs = own.shape[0]
    rows = np.repeat(np.arange(n_docs), np.diff(own.indptr))
    there = nodes >= 0
    found = csr_array((np.ones(int(there.sum()), dtype=bool), (rows[there], nodes[there])), shape=(n_docs, len(changes.new)))
    new = most_specific(found, changes.new)
    is_split, is_changed = np.zeros(len(landing), dtype=bool), np.zeros(len(landing), dtype=bool)
    is_split[[node for change in changes.of("split") for node in change.old]] = True
    is_changed[_reached_by(changes)] = True
    had, has = np.diff(own.indptr) > 0, np.diff(new.indptr) > 0
    return Relabelled(new, _any_of(is_changed, own, rows), _any_of(is_split, own, rows), had & ~has)


def landing_nodes(changes: Changes) -> Ints:
    """For every old node the deepest new one that certainly holds its documents, -1 where there is none."""
    return np.asarray([_common_node(changes.new, nodes) for nodes in changes.successors], dtype=np.int64)


def _common_node(taxonomy: Taxonomy, nodes: tuple[int, ...]) -> int:
    """The deepest node at or above all of some nodes."""
    if len(nodes) <= 1:
        return nodes[0] if nodes else NOWHERE
    shared = set.intersection(*({node, *taxonomy.ancestors_of(node).tolist()} for node in nodes))
    return max(shared, key=lambda node: (int(taxonomy.depth[node]), -node)) if shared else NOWHERE


def _reached_by(changes: Changes) -> list[int]:
    """Old nodes whose documents have other labels than before, those above them included."""
    tops = [node for change in changes.listed if change.kind not in ("renamed", "added") for node in change.old]
    return sorted({node for top in tops for node in (top, *changes.old.descendants_of(top).tolist())})


def _any_of(chosen: NDArray[np.bool_], own: csr_array, rows: Ints) -> NDArray[np.bool_]:
    found = np.zeros(own.shape[0], dtype=bool)
    found[rows[chosen[own.indices]]] = True
    return found


def translate(rows: list[list[str]], changes: Changes) -> list[list[str]]:
    """Labels of documents by the names of new nodes; labels that only the old taxonomy has go where they land."""
    landing, known = landing_nodes(changes), {}
    for row in rows:
        for label in row:
            if label not in known:
                known[label] = _translated(label, changes, landing)
    return [list(dict.fromkeys(name for label in row if (name := known[label]) is not None)) for row in rows]


def _translated(label: str, changes: Changes, landing: Ints) -> str | None:
    if label in changes.new:
        return changes.new.names[changes.new.index(label)]
    if label not in changes.old:
        near = suggest(label, changes.new.names[:20_000])
        raise LabelError(f"label {label!r} is neither in the new taxonomy nor in the old one; put it right.{near}")
    node = changes.old.index(label)
    if node in changes.questions:
        raise LabelError(f"label {label!r} is of a retired node, and nobody has said where its documents go; use --answers.")
    return None if landing[node] < 0 else changes.new.names[landing[node]]
