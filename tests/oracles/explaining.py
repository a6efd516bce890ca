"""The slow twin of explanations: what a step is about, from scores alone."""

import math

from oracles.taxonomy import ancestors, descendants

Parents = list[list[int]]


def way_to(parents: Parents, end: int) -> list[int]:
    """From a root down, along first parents."""
    return [*way_to(parents, parents[end][0]), end] if parents[end] else [end]


def under(parents: Parents, node: int) -> set[int]:
    return {node, *descendants(parents, node)}


def known(scores: list[float], nodes: set[int]) -> list[int]:
    """Nodes with a score, the best first, equal ones in node order."""
    return sorted((node for node in nodes if math.isfinite(scores[node])), key=lambda node: (-scores[node], node))


def among_classes(scores: list[float], parents: Parents, node: int, end: int) -> tuple[float, int | None]:
    """The class at the end, or the best below it, against the best class that parts from the way at a node."""
    speaker = end if math.isfinite(scores[end]) else next(iter(known(scores, under(parents, end))), None)
    way = way_to(parents, end)
    place = way.index(node)
    around = set(range(len(parents))) if place == 0 else under(parents, way[place - 1])
    rivals = known(scores, around - under(parents, node))
    return (0.0, None) if speaker is None or not rivals else (scores[speaker] - scores[rivals[0]], rivals[0])


def among_siblings(scores: list[float], parents: Parents, node: int, end: int) -> tuple[float, int | None]:
    """A node against its likeliest sibling, or staying at the parent: what the children leave of 1."""
    above = parents[node][0] if parents[node] else None
    siblings = {other for other in range(len(parents)) if parents[other] == parents[node]}
    if not math.isfinite(scores[node]):
        return 0.0, None
    ways = {other: scores[other] for other in known(scores, siblings - {node})}
    staying = 1 - sum(math.exp(scores[other]) for other in known(scores, siblings))
    if above is not None and staying > 1e-5:
        ways[above] = math.log(staying)
    if not ways:
        return 0.0, None
    rival = max(ways, key=lambda other: ways[other])
    return scores[node] - ways[rival], rival


def by_itself(scores: list[float], parents: Parents, node: int, end: int) -> tuple[float, int | None]:
    """A node's own answer."""
    return 0.0 if not math.isfinite(scores[node]) else scores[node], None


def related(parents: Parents, node: int) -> set[int]:
    return under(parents, node) | ancestors(parents, node)
