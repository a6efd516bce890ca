"""Refuses taxonomies that would take far more memory than the file they come from: no real one is like that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from ramify.errors import TaxonomyError

if TYPE_CHECKING:
    from ramify.taxonomy.hierarchy import Taxonomy

LONGEST_NAME = 1 << 16  # characters
LONGEST_PATH = 1 << 16  # characters of all titles from a root to a node, and of what separates them
LONGEST_SEPARATOR = 100
MOST_CHARACTERS, USUAL_RATIO = 1 << 26, 64  # of names in an array, where all take as much as the longest; longest to average
MOST_ABOVE, USUAL_ABOVE = 1 << 24, 64  # pairs of a node and a node above it; nodes above one
BLOCK = 1 << 9  # nodes whose ancestors are counted together


def refuse_disproportion(taxonomy: Taxonomy) -> None:
    """Refuse very long names and paths, and more pairs of a node and an ancestor than a file of its size would have."""
    _refuse_long_names(taxonomy.names, "name")
    _refuse_long_names(taxonomy.titles, "title")
    if len(taxonomy.separator) > LONGEST_SEPARATOR:
        raise TaxonomyError(f"the separator has {len(taxonomy.separator):,} characters; at most {LONGEST_SEPARATOR} may be.")
    most = max(MOST_ABOVE, USUAL_ABOVE * len(taxonomy))
    # on a tree, the depth is the number of ancestors; on a DAG, there may be many more
    if int(taxonomy.depth.sum(dtype=np.int64)) > most:
        found = f"the taxonomy has {taxonomy.n_levels:,} levels, too many for {len(taxonomy):,} nodes"
        raise TaxonomyError(f"{found}; check the parents of its nodes.")
    if not taxonomy.is_tree and _n_above_at_most(taxonomy) > most and _n_above(taxonomy, most) > most:
        found = f"the taxonomy has more than {most:,} pairs of a node and an ancestor, too many for {len(taxonomy):,} nodes"
        raise TaxonomyError(f"{found}; check the nodes with several parents.")
    _refuse_long_paths(taxonomy)


def _refuse_long_names(names: Sequence[str], what: str) -> None:
    lengths = np.fromiter(map(len, names), dtype=np.int64, count=len(names))
    longest = int(lengths.max(initial=0))
    is_out_of_proportion = len(names) * longest > max(MOST_CHARACTERS, USUAL_RATIO * int(lengths.sum()))
    if longest > LONGEST_NAME or is_out_of_proportion:
        shown = names[int(lengths.argmax())][:40]
        raise TaxonomyError(f"the {what} {shown + '…'!r} has {longest:,} characters; shorten it.")


def _refuse_long_paths(taxonomy: Taxonomy) -> None:
    lengths = [len(title) for title in taxonomy.titles]
    for node, parent in enumerate(taxonomy.tree.parent.tolist()):  # parents come first, so the length above is final
        if parent >= 0:
            lengths[node] += lengths[parent] + len(taxonomy.separator)
    if max(lengths, default=0) > LONGEST_PATH:
        node = lengths.index(max(lengths))
        found = f"the path to the node {taxonomy.names[node][:40] + '…'!r} has {lengths[node]:,} characters"
        raise TaxonomyError(f"{found}; shorten the titles, or check the parents.")


def _n_above_at_most(taxonomy: Taxonomy) -> float:
    """A bound on the pairs of a node and a node above it: an ancestor counts once for every way to it."""
    ways = np.zeros(len(taxonomy))
    offsets = taxonomy.parent_offsets.tolist()
    for node in range(len(taxonomy)):  # parents come first, so their numbers are final
        above = taxonomy.parent_nodes[offsets[node] : offsets[node + 1]]
        ways[node] = len(above) + ways[above].sum()
    return float(ways.sum())


def _n_above(taxonomy: Taxonomy, most: int) -> int:
    """The pairs of a node and a node above it, block by block, until there are more than `most`."""
    shape = (len(taxonomy), len(taxonomy))
    ones = np.ones(len(taxonomy.parent_nodes), dtype=bool)
    parents, count = csr_array((ones, taxonomy.parent_nodes, taxonomy.parent_offsets), shape=shape), 0
    for start in range(0, len(taxonomy), BLOCK):
        level = above = parents[start : start + BLOCK]
        while level.nnz and count + above.nnz <= most:  # one level up at a time; what is known already leads nowhere new
            level = csr_array((level @ parents) > above)
            above = csr_array(above + level)
        count += above.nnz
        if count > most:
            break
    return count
