"""A taxonomy drawn for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.tree import Tree

from ramify.taxonomy.hierarchy import Taxonomy


def draw(taxonomy: Taxonomy, counts: Sequence[int] | None = None, levels: int = 3, width: int = 8) -> Tree:
    """A tree of the first levels, with at most `width` children a node, and how much is left out.

    counts: documents of each node, shown beside it.
    """
    top = Tree(_describe(taxonomy), guide_style="dim")
    _hang(top, taxonomy, [int(root) for root in taxonomy.roots], counts, levels, max(width, 20))
    return top


def _hang(branch: Tree, taxonomy: Taxonomy, nodes: list[int], counts: Sequence[int] | None, levels: int, width: int) -> None:
    if nodes and levels == 0:
        branch.add(f"[dim]… {len(nodes)} below[/dim]")
        return
    for node in nodes[:width]:
        count = f" [cyan]{counts[node]:,}[/cyan]" if counts is not None else ""
        twig = branch.add(escape(taxonomy.titles[node]) + count)
        _hang(twig, taxonomy, taxonomy.children_of(node).tolist(), counts, levels - 1, min(width, 8))
    if len(nodes) > width:
        branch.add(f"[dim]… and {len(nodes) - width:,} more[/dim]")


def _describe(taxonomy: Taxonomy) -> str:
    kind = "tree" if taxonomy.is_tree else "DAG"
    n_leaves = int(taxonomy.is_leaf.sum())
    return f"[bold]{kind} of {len(taxonomy):,} nodes, {n_leaves:,} leaves, {taxonomy.n_levels} levels[/bold]"
