"""Ever smaller sets of nodes and what may be guarantee of them, one document and one step at a time."""

from __future__ import annotations

from fractions import Fraction

FAINT = 0.01  # no threshold is lower


def children_of(parents, node):
    return [child for child, above in enumerate(parents) if node in above]


def depth_of(parents, node):
    return 0 if not parents[node] else 1 + max(depth_of(parents, above) for above in parents[node])


def sets_of(p, parents, size):
    """The nodes of each step, most probable first; an impossible node is as if it were not there."""
    n_levels = 1 + max(depth_of(parents, node) for node in range(len(p)))
    here, steps = [], []
    for level in range(n_levels):
        on_level = [node for node in range(len(p)) if depth_of(parents, node) == level]
        below = [node for node in on_level if p[node] > 0 and (not parents[node] or parents[node][0] in here)]
        leaves = [node for node in here if not any(p[child] > 0 for child in children_of(parents, node))]
        here = sorted(below + leaves, key=lambda node: -p[node])[:size]
        steps.append(here)
    return steps + [here[:kept] for kept in range(size - 1, 0, -1)]


def masses_of(p, steps):
    """The probability of each set; it never rises."""
    masses, least = [], 1.0
    for nodes in steps:
        least = min(least, sum(p[node] for node in nodes))
        masses.append(least)
    return masses


def nonconformity_of(p, true, parents, size):
    """The mass of the first set without a true node, -1 if there is none. true: closed upward."""
    steps = sets_of(p, parents, size)
    for nodes, mass in zip(steps, masses_of(p, steps), strict=True):
        if not any(node in true for node in nodes):
            return mass
    return -1.0


def set_above(p, parents, size, threshold):
    """The nodes of the last set with a mass above a threshold."""
    steps = sets_of(p, parents, size)
    kept = [nodes for nodes, mass in zip(steps, masses_of(p, steps), strict=True) if mass > threshold]
    return kept[-1] if kept else []


def threshold_of(losses, risk):
    """The smallest loss that is reached or stayed below by enough held-out documents; None where there are too few."""
    enough = (len(losses) + 1) * (1 - Fraction(str(risk)))
    return next((loss for loss in sorted(losses) if sum(other <= loss for other in losses) >= enough), None)


def labels_at(p, parents, threshold):
    """The most specific nodes at least so probable."""
    taken = [node for node in range(len(p)) if p[node] >= threshold and p[node] > 0]
    return [node for node in taken if not any(child in taken for child in children_of(parents, node))]


def wrong_fraction(p, true, parents, threshold):
    """The worst fraction of wrong labels of any threshold from 1 down to this one."""
    worst = Fraction(0)
    for other in {*p, threshold}:
        given = labels_at(p, parents, other) if other >= threshold else []
        if given:
            worst = max(worst, Fraction(sum(node not in true for node in given), len(given)))
    return worst


def risk_threshold(documents, parents, risk):
    """The lowest threshold among the probabilities at which enough is known; infinite where none is."""
    risk, n = Fraction(str(risk)), len(documents)
    kept = [float("inf")]
    for threshold in {chance for p, _ in documents for chance in p if chance >= FAINT}:
        total = sum(wrong_fraction(p, true, parents, threshold) for p, true in documents)
        if (total + 1) / (n + 1) <= risk:
            kept.append(threshold)
    return min(kept)
