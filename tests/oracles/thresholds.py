"""Oracles of the fitted decision rules: every threshold, every number of labels and every factor is tried.

Scores are lists of rows, NaN or -inf where there is none; `truth` is one set of nodes a document.
"""

import math

from oracles.taxonomy import close_upward, most_specific


def truth_of(labels, parents, over):
    """What the scores are about."""
    return [most_specific(parents, nodes) if over == "own" else close_upward(parents, nodes) for nodes in labels]


def has_score(value):
    return not math.isnan(value) and value > -math.inf


def best_cut(scores, is_true, n_true):
    """Threshold and F1 of the best cut of one list; (inf, 0) where none takes a true one."""
    found = [(0.0, 0.0, math.inf, math.inf)]
    for lowest in {score for score in scores if has_score(score)}:
        taken = [i for i, score in enumerate(scores) if has_score(score) and score >= lowest]
        f1 = 2 * sum(is_true[i] for i in taken) / (n_true + len(taken))
        below = [score for score in scores if has_score(score) and score < lowest]
        next_lower = max(below) if below else lowest
        if f1 > 0:
            found.append((f1, lowest - next_lower, lowest, (lowest + next_lower) / 2))
    f1, _, _, threshold = max(found)
    return threshold, f1


def scut(scores, truth, n_nodes, fbr, below_fbr):
    """The threshold of each node."""
    thresholds = []
    for node in range(n_nodes):
        column = [row[node] for row in scores]
        is_true = [node in nodes for nodes in truth]
        threshold, f1 = best_cut(column, is_true, sum(is_true))
        if f1 == 0 or f1 < fbr:
            highest = max((score for score in column if has_score(score)), default=math.inf)
            threshold = highest if below_fbr == "highest" else math.inf
        thresholds.append(threshold)
    return thresholds


def best_nodes(row, k):
    """The k best nodes of a document, of equal ones the first."""
    ranked = sorted((node for node, score in enumerate(row) if has_score(score)), key=lambda node: (-row[node], node))
    return set(ranked[:k])


def micro_f1(truth, chosen):
    hits = sum(len(t & c) for t, c in zip(truth, chosen, strict=True))
    return 2 * hits / (sum(map(len, truth)) + sum(map(len, chosen)))


def rcut(scores, truth, n_nodes):
    """The smallest of the best k."""
    f1 = {k: micro_f1(truth, [best_nodes(row, k) for row in scores]) for k in range(1, n_nodes + 1)}
    return max(f1, key=lambda k: (f1[k], -k))


def threshold_for(column, wanted):
    """The lowest threshold in the middle of two neighbouring scores that takes no more than are wanted."""
    values = sorted({score for score in column if has_score(score)})
    middles = [(a + b) / 2 for a, b in zip([values[0], *values], values, strict=False)] if values else []
    fitting = [t for t in middles if sum(score >= t for score in column if has_score(score)) <= wanted]
    return min(fitting, default=math.inf)


def passing(scores, thresholds):
    """The nodes of each document at or above their thresholds."""
    return [{n for n, s in enumerate(row) if has_score(s) and s >= thresholds[n]} for row in scores]


def pcut(scores, truth, n_nodes, factors, proportions=None):
    """The first of the best factors, and its thresholds."""
    best = None
    for factor in factors:
        thresholds = []
        for node in range(n_nodes):
            count = sum(node in nodes for nodes in truth) if proportions is None else proportions[node] * len(scores)
            thresholds.append(threshold_for([row[node] for row in scores], math.floor(factor * count + 0.5)))
        f1 = micro_f1(truth, passing(scores, thresholds))
        if best is None or f1 > best[0]:
            best = f1, factor, thresholds
    return best[1:]


def highest(row, k):
    """The k highest scores of a document; one with fewer repeats its lowest."""
    found = sorted((score for score in row if has_score(score)), reverse=True)[:k]
    return found + [found[-1]] * (k - len(found))


def document_cuts(scores, truth):
    """The best threshold of each document, inf where it has none."""
    rows = zip(scores, truth, strict=True)
    return [best_cut(row, [node in nodes for node in range(len(row))], len(nodes))[0] for row, nodes in rows]


def decide(chosen, scores, parents, at_least_one=False):
    """The chosen nodes with their ancestors; the best node where nothing is chosen."""
    rows = zip(chosen, scores, strict=True)
    return [close_upward(parents, nodes or (best_nodes(row, 1) if at_least_one else set())) for nodes, row in rows]


def gcut_quality(scores, truth, threshold, at_least_one):
    """Micro F1 plus the fraction of exact matches, where one threshold holds for all nodes."""
    hits = taken = n_true = exact = 0
    for row, true in zip(scores, truth, strict=True):
        predicted = {node for node, score in enumerate(row) if has_score(score) and score >= threshold}
        if at_least_one and not predicted:
            predicted = set(best_nodes(row, 1))
        hits, taken, n_true = hits + len(predicted & set(true)), taken + len(predicted), n_true + len(set(true))
        exact += predicted == set(true)
    return 2 * hits / max(taken + n_true, 1) + exact / len(scores)
