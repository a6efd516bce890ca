"""Audits the slow and obvious way."""

from __future__ import annotations

import math
from collections import deque
from itertools import combinations


def steps_between(parents: list[list[int]], a: int, b: int) -> int:
    """Edges between two nodes of a forest whose roots hang on one common node, by walking from one to the other."""
    top = len(parents)
    neighbours: dict[int, set[int]] = {node: set() for node in range(top + 1)}
    for node, above in enumerate(parents):
        for parent in above or [top]:
            neighbours[node].add(parent)
            neighbours[parent].add(node)
    steps, waiting = {a: 0}, deque([a])
    while waiting:
        node = waiting.popleft()
        for other in neighbours[node] - steps.keys():
            steps[other] = steps[node] + 1
            waiting.append(other)
    return steps[b]


def similar_pairs(sets: list[set[int]], similarity: float) -> set[tuple[int, int]]:
    """All pairs of different sets whose Jaccard similarity is large enough, each set standing for its first equal."""
    first = [next(j for j, other in enumerate(sets) if other == mine) for mine in sets]
    rows = [i for i, mine in enumerate(sets) if first[i] == i and mine]
    return {(i, j) for i, j in combinations(rows, 2) if len(sets[i] & sets[j]) >= similarity * len(sets[i] | sets[j]) - 1e-9}


def inseparable(siblings: list[list[int]], labels: list[set[int]], chances: list[list[float]], enough: int, useful: float):
    """Pairs of siblings, how many documents of each are given to the right one, and p-values after Holm, below 0.05.

    labels: closed upward. chances: of every node, a list a document.
    """
    tested = []
    for group in siblings:
        for a, b in combinations(sorted(group), 2):
            mine = [
                [p for given, p in zip(labels, chances, strict=True) if one in given and other not in given]
                for one, other in ((a, b), (b, a))
            ]
            if sum(a in given for given in labels) < enough or sum(b in given for given in labels) < enough:
                continue
            if min(map(len, mine)) < enough:
                tested.append((1.0, a, b, (0, 0)))
                continue
            right = sum(p[a] > p[b] for p in mine[0]), sum(p[b] > p[a] for p in mine[1])
            share = (right[0] / len(mine[0]) + right[1] / len(mine[1])) / 2
            spread = math.sqrt(useful * (1 - useful) * (1 / len(mine[0]) + 1 / len(mine[1]))) / 2
            tested.append(((1 + math.erf((share - useful) / spread / math.sqrt(2))) / 2, a, b, right))
    found, height = {}, 0.0
    for place, (p, a, b, right) in enumerate(sorted(tested)):
        height = max(height, min(1.0, (len(tested) - place) * p))
        if height < 0.05:
            found[a, b] = (right, height)
    return found


def issue_score(
    p: list[float], given: int, others: set[int], below: dict[int, set[int]], noise, usual
) -> tuple[int, float, float]:
    """Of one label: the best other class, how likely the label is, and the score.

    p: of every class. others: further labels of the document. below: the classes at or below each.
    noise(t, g): the probability that label t is replaced by g. usual(s, g): how common label g is where s is predicted.
    """
    left = {t: p[t] for t in range(len(p)) if t not in others}
    total = sum(left.values()) if others else 1.0
    left = {t: value / total for t, value in left.items()}
    p_given = sum(left.pop(t, 0.0) for t in below[given])
    best = max(left, key=lambda t: (left[t], -t))
    replaced = sum(value * noise(t, given) for t, value in left.items())
    return best, p_given, math.log(replaced) - math.log(p_given) - math.log(usual(best, given))


def noise_rates(P: list[list[float]], labels: list[tuple[int, int]], kind: list[list[int]], n_kinds: int, far_off: float):
    """At every distance: the probability to be replaced by one class, and the fraction of labels that are.

    labels: a document and a class each. kind: of two classes, the place of their distance.
    """
    best = [max(range(len(p)), key=lambda t: (p[t], -t)) for p in P]
    rates, fractions = [0.0] * n_kinds, [0.0] * n_kinds
    for k in range(1, n_kinds):
        pairs = [p for row, p_row in enumerate(P) for t, p in enumerate(p_row) if kind[best[row]][t] == k]
        given = [P[row][t] for row, t in labels if kind[best[row]][t] == k]
        bound = far_off * len(given) / max(len(pairs), 1)
        far = [p for p in pairs if p < bound]
        beyond = max(sum(p < bound for p in given) - sum(far), 0.0)
        rates[k] = (beyond + 1) / (len(far) + 1)
        fractions[k] = beyond / max(len(far), 1) * len(pairs) / max(len(labels), 1)
    return rates, fractions


def usual(predicted: list[int], labels: list[int], n_classes: int, smoothing: float, of: int, label: int) -> float:
    """How common a label is among documents predicted as a class, relative to the label of that class."""

    def fraction(which: int) -> float:
        count = sum(t == of and g == which for t, g in zip(predicted, labels, strict=True))
        return (count + smoothing * labels.count(which) / max(1, len(labels))) / (predicted.count(of) + smoothing)

    return fraction(label) / fraction(of)
