"""The slow twin of grouping categories: dense vectors, and every merge found by looking at all pairs of groups again."""

import math

Vector = list[float]
Group = list[int]


def unit(vector: Vector) -> Vector:
    """The vector with length 1; one without length stays as it is."""
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector] if length else vector


def centroids(X: list[Vector], Y: list[list[bool]], n_categories: int) -> list[Vector]:
    """The direction of the sum of the unit vectors of each category's documents."""
    found = []
    for category in range(n_categories):
        members = [unit(x) for x, labels in zip(X, Y, strict=True) if labels[category]]
        found.append(unit([sum(column) for column in zip(*members, strict=True)]))
    return found


def cosine_distance(a: Vector, b: Vector) -> float:
    return 1 - sum(x * y for x, y in zip(a, b, strict=True))


def average(a: Group, b: Group, vectors: list[Vector]) -> float:
    """The mean distance of a member of one group to a member of the other."""
    return sum(cosine_distance(vectors[i], vectors[j]) for i in a for j in b) / (len(a) * len(b))


def complete(a: Group, b: Group, vectors: list[Vector]) -> float:
    return max(cosine_distance(vectors[i], vectors[j]) for i in a for j in b)


def single(a: Group, b: Group, vectors: list[Vector]) -> float:
    return min(cosine_distance(vectors[i], vectors[j]) for i in a for j in b)


def ward(a: Group, b: Group, vectors: list[Vector]) -> float:
    """By how much the squared distances to the means of the groups grow when the two become one."""
    return spread(a + b, vectors) - spread(a, vectors) - spread(b, vectors)


def spread(group: Group, vectors: list[Vector]) -> float:
    middle = [sum(column) / len(group) for column in zip(*(vectors[i] for i in group), strict=True)]
    return sum((x - m) ** 2 for i in group for x, m in zip(vectors[i], middle, strict=True))


LINKAGES = {"average": average, "complete": complete, "single": single, "ward": ward}


def partition(vectors: list[Vector], n_groups: int, linkage: str) -> set[frozenset[int]]:
    """The groups that are left when the two nearest have been joined often enough."""
    groups: list[Group] = [[i] for i in range(len(vectors))]
    while len(groups) > n_groups:
        pairs = [(a, b) for a in range(len(groups)) for b in range(a)]
        a, b = min(pairs, key=lambda pair: LINKAGES[linkage](groups[pair[0]], groups[pair[1]], vectors))
        groups[b] += groups.pop(a)
    return {frozenset(group) for group in groups}
