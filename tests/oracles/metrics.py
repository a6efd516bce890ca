"""Oracle of the metrics: every number computed from its definition in docs/metrics.md.

Truth and prediction are one set of nodes a document, closed upward here before anything is counted. Scores and
probabilities are one list a document with one number a node, NaN where there is none.
"""

import math

from oracles.taxonomy import (
    ancestors,
    close_upward,
    depth,
    descendants,
    is_leaf,
    most_specific,
    siblings,
)

Parents = list[list[int]]
Labels = list[set[int]]
Scores = list[list[float]]
Row = dict[str, float]


def close_all(labels: Labels, parents: Parents) -> Labels:
    """The upward closure of every document's labels."""
    return [close_upward(parents, nodes) for nodes in labels]


def most_specific_all(labels: Labels, parents: Parents) -> Labels:
    """The most specific labels of every document."""
    return [most_specific(parents, nodes) for nodes in labels]


def mean(values: list[float], nothing: float) -> float:
    """The mean, or `nothing` when there are no values."""
    return sum(values) / len(values) if values else nothing


def ratios(support: int, predicted: int, correct: int) -> tuple[float, float, float]:
    """Precision, recall and F1 from counts: all 1 when both sides are empty, all 0 when only one is."""
    if support == 0 and predicted == 0:
        return 1.0, 1.0, 1.0
    if support == 0 or predicted == 0:
        return 0.0, 0.0, 0.0
    return correct / predicted, correct / support, 2 * correct / (support + predicted)


def counts(true: Labels, predicted: Labels, nodes: set[int]) -> tuple[int, int, int]:
    """The true, the predicted and the correct document-node pairs among `nodes`, the sets taken as they are."""
    support = sum(len(t & nodes) for t in true)
    guessed = sum(len(p & nodes) for p in predicted)
    correct = sum(len(t & p & nodes) for t, p in zip(true, predicted, strict=True))
    return support, guessed, correct


def roots(parents: Parents) -> list[int]:
    """The nodes without parents."""
    return [node for node in range(len(parents)) if not parents[node]]


def levels(parents: Parents) -> list[set[int]]:
    """The nodes of every depth, roots first."""
    depths = [depth(parents, node) for node in range(len(parents))]
    return [{node for node in range(len(parents)) if depths[node] == d} for d in range(max(depths, default=-1) + 1)]


def compared(true: Labels, predicted: Labels, parents: Parents, over: str) -> tuple[Labels, Labels, set[int]]:
    """What `over` compares: the sets of the truth, those of the prediction, and the nodes to look at."""
    if over == "own":
        own_true, own_predicted = most_specific_all(true, parents), most_specific_all(predicted, parents)
        return own_true, own_predicted, {node for nodes in own_true + own_predicted for node in nodes}
    everything = set(range(len(parents)))
    chosen = {"leaves": {node for node in everything if is_leaf(parents, node)}, "nodes": everything}[over]
    return close_all(true, parents), close_all(predicted, parents), chosen


# Flat


def accuracy(true: Labels, predicted: Labels, parents: Parents) -> float:
    """The fraction of documents whose closed sets are equal."""
    pairs = zip(close_all(true, parents), close_all(predicted, parents), strict=True)
    return mean([float(t == p) for t, p in pairs], nothing=1.0)


def micro_f1(true: Labels, predicted: Labels, parents: Parents, over: str = "leaves") -> float:
    """F1 of the counts summed over documents and chosen nodes."""
    return ratios(*counts(*compared(true, predicted, parents, over)))[2]


def mean_f1(true: Labels, predicted: Labels, nodes: set[int], empty: float | str) -> float:
    """The mean of the F1 of each of `nodes`, the sets taken as they are; unused nodes count `empty` or are skipped."""
    values: list[float] = []
    for node in sorted(nodes):
        support, guessed, correct = counts(true, predicted, {node})
        if support > 0 or guessed > 0:
            values.append(ratios(support, guessed, correct)[2])
        elif empty != "skip":
            values.append(float(empty))
    return mean(values, nothing=1.0)


def macro_f1(true: Labels, predicted: Labels, parents: Parents, over: str = "leaves", empty: float | str = 1.0) -> float:
    """The mean over the chosen nodes of each node's F1."""
    return mean_f1(*compared(true, predicted, parents, over), empty)


def precision_recall_f1(true: Labels, predicted: Labels, parents: Parents) -> dict[str, list[float]]:
    """Precision, recall, F1, support, predicted and correct of every node, in node order."""
    names = ["precision", "recall", "f1", "support", "predicted", "correct"]
    table: dict[str, list[float]] = {name: [] for name in names}
    closed_true, closed_predicted = close_all(true, parents), close_all(predicted, parents)
    for node in range(len(parents)):
        tally = counts(closed_true, closed_predicted, {node})
        for name, value in zip(names, [*ratios(*tally), *tally], strict=True):
            table[name].append(value)
    return table


# Hierarchical


def hierarchical_ratios(true: Labels, predicted: Labels, parents: Parents) -> tuple[float, float, float]:
    """Precision, recall and F1 of the sizes of the closed sets, summed over all documents."""
    return ratios(*counts(close_all(true, parents), close_all(predicted, parents), set(range(len(parents)))))


def hierarchical_precision(true: Labels, predicted: Labels, parents: Parents) -> float:
    """The common nodes over the predicted nodes."""
    return hierarchical_ratios(true, predicted, parents)[0]


def hierarchical_recall(true: Labels, predicted: Labels, parents: Parents) -> float:
    """The common nodes over the true nodes."""
    return hierarchical_ratios(true, predicted, parents)[1]


def hierarchical_f1(true: Labels, predicted: Labels, parents: Parents) -> float:
    """The harmonic mean of hierarchical precision and recall."""
    return hierarchical_ratios(true, predicted, parents)[2]


def node_costs(parents: Parents, costs: str | list[float] | None) -> list[float]:
    """The cost of every node: 1, one over the number of its siblings (itself included), or as given."""
    if costs is None:
        return [1.0 for _ in parents]
    if costs == "siblings":
        return [1 / len(siblings(parents, node)) for node in range(len(parents))]
    return [float(cost) for cost in costs]


def h_loss_by_node(true: Labels, predicted: Labels, parents: Parents, costs: str | list[float] | None = None) -> list[float]:
    """For every node, its cost times the fraction of documents where it is wrong and all its ancestors are right."""
    wrong = [t ^ p for t, p in zip(close_all(true, parents), close_all(predicted, parents), strict=True)]
    losses: list[float] = []
    for node, cost in enumerate(node_costs(parents, costs)):
        above = ancestors(parents, node)
        losses.append(mean([cost if node in w and not (above & w) else 0.0 for w in wrong], nothing=0.0))
    return losses


def h_loss_by_depth(true: Labels, predicted: Labels, parents: Parents, costs: str | list[float] | None = None) -> list[float]:
    """The losses of the nodes added up depth by depth."""
    by_node = h_loss_by_node(true, predicted, parents, costs)
    return [sum(by_node[node] for node in sorted(level)) for level in levels(parents)]


def h_loss(true: Labels, predicted: Labels, parents: Parents, costs: str | list[float] | None = None) -> float:
    """The mean over documents of the summed costs of the wrong nodes whose ancestors are all right."""
    return float(sum(h_loss_by_node(true, predicted, parents, costs)))


def tree_distance(true: Labels, predicted: Labels, parents: Parents) -> list[int]:
    """For each document, the number of nodes in one closed set and not in the other."""
    return [len(t ^ p) for t, p in zip(close_all(true, parents), close_all(predicted, parents), strict=True)]


# By document and by rank


def document_ratios(true: Labels, predicted: Labels, parents: Parents) -> list[tuple[float, float, float]]:
    """Precision, recall and F1 of each document over its own closed sets."""
    return [hierarchical_ratios([t], [p], parents) for t, p in zip(true, predicted, strict=True)]


def document_precision(true: Labels, predicted: Labels, parents: Parents) -> float:
    """The mean over documents of each document's precision."""
    return mean([row[0] for row in document_ratios(true, predicted, parents)], nothing=1.0)


def document_recall(true: Labels, predicted: Labels, parents: Parents) -> float:
    """The mean over documents of each document's recall."""
    return mean([row[1] for row in document_ratios(true, predicted, parents)], nothing=1.0)


def document_f1(true: Labels, predicted: Labels, parents: Parents) -> float:
    """The mean over documents of each document's F1."""
    return mean([row[2] for row in document_ratios(true, predicted, parents)], nothing=1.0)


def document_auc(true: Labels, scores: Scores, parents: Parents) -> list[float]:
    """For each document, the fraction of (true, other) pairs of scored nodes in the right order, ties one half."""
    result: list[float] = []
    for t, row in zip(close_all(true, parents), scores, strict=True):
        inside = [score for node, score in enumerate(row) if node in t and not math.isnan(score)]
        outside = [score for node, score in enumerate(row) if node not in t and not math.isnan(score)]
        wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in inside for b in outside]
        result.append(mean(wins, nothing=math.nan))
    return result


def precision_at_k(true: Labels, scores: Scores, parents: Parents, k: int) -> float:
    """The mean over documents of the true nodes among the k best scored ones, always out of k."""
    fractions: list[float] = []
    for t, row in zip(close_all(true, parents), scores, strict=True):
        ranked = sorted((-score, node) for node, score in enumerate(row) if not math.isnan(score))
        best = {node for _, node in ranked[:k]}
        fractions.append(len(t & best) / k)
    return mean(fractions, nothing=1.0)


# Tables


def summary(true: Labels, predicted: Labels, parents: Parents, nodes: set[int]) -> Row:
    """One row of a table: sizes, micro ratios over the pairs of `nodes`, and macro F1 over those that occur."""
    closed_true, closed_predicted = close_all(true, parents), close_all(predicted, parents)
    tally = counts(closed_true, closed_predicted, nodes)
    precision, recall, f1 = ratios(*tally)
    macro = mean_f1(closed_true, closed_predicted, nodes, "skip")
    return {
        "nodes": len(nodes),
        "support": tally[0],
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "macro_f1": macro,
    }


def by_level(true: Labels, predicted: Labels, parents: Parents) -> list[Row]:
    """One row for every depth."""
    return [{"depth": d, **summary(true, predicted, parents, level)} for d, level in enumerate(levels(parents))]


def by_subtree(true: Labels, predicted: Labels, parents: Parents) -> list[Row]:
    """One row for every root with everything below it; a node below two roots counts under both."""
    rows: list[Row] = []
    for root in roots(parents):
        rows.append({"root": root, **summary(true, predicted, parents, {root} | descendants(parents, root))})
    return rows


def are_siblings(parents: Parents, a: int, b: int) -> bool:
    """Whether two nodes have at least one parent in common; two roots do."""
    return bool(set(parents[a]) & set(parents[b])) or (not parents[a] and not parents[b])


def sibling_confusion(true: Labels, predicted: Labels, parents: Parents) -> list[tuple[int, int, int]]:
    """The pairs (a, b) sharing a parent with how often a was missed while b was wrongly given, if ever."""
    pairs = list(zip(close_all(true, parents), close_all(predicted, parents), strict=True))
    table: list[tuple[int, int, int]] = []
    for a in range(len(parents)):
        for b in range(len(parents)):
            count = sum(a in t - p and b in p - t for t, p in pairs)
            if a != b and are_siblings(parents, a, b) and count > 0:
                table.append((a, b, count))
    return sorted(table, key=lambda row: (-row[2], row[0], row[1]))


def bin_of(probability: float, bins: int) -> int:
    """The number of inner edges i / bins that are not above the probability."""
    return sum(i / bins <= probability for i in range(1, bins))


def reliability(true: Labels, probabilities: Scores, parents: Parents, bins: int = 10) -> list[list[tuple[int, float, float]]]:
    """For each depth and bin: the number of pairs, their mean probability and the fraction of them that is true."""
    table: list[list[tuple[int, float, float]]] = []
    closed = close_all(true, parents)
    for level in levels(parents):
        cells: list[list[tuple[float, float]]] = [[] for _ in range(bins)]
        for t, row in zip(closed, probabilities, strict=True):
            for node in sorted(level):
                if not math.isnan(row[node]):
                    cells[bin_of(row[node], bins)].append((row[node], float(node in t)))
        table.append([(len(c), mean([p for p, _ in c], math.nan), mean([hit for _, hit in c], math.nan)) for c in cells])
    return table


def expected_calibration_error(true: Labels, probabilities: Scores, parents: Parents, bins: int = 10) -> float:
    """The mean over pairs of the distance between mean probability and fraction true in the pair's depth and bin."""
    distances: list[float] = []
    for level in reliability(true, probabilities, parents, bins):
        for count, probability, fraction in level:
            distances += [abs(probability - fraction)] * count
    return mean(distances, nothing=0.0)


def prediction_calibration_error(
    true: Labels, predicted: Labels, probabilities: Scores, parents: Parents, bins: int = 10
) -> float:
    """Over the most specific predicted labels, the mean distance between the two frequencies of their bin."""
    filled: dict[int, list[tuple[float, bool]]] = {}
    for d, nodes in enumerate(most_specific_all(predicted, parents)):
        for node in nodes:
            p = probabilities[d][node]
            filled.setdefault(bin_of(p, bins), []).append((p, node in close_upward(parents, true[d])))
    total = sum(len(pairs) for pairs in filled.values())
    distance = 0.0
    for pairs in filled.values():
        mean = sum(p for p, _ in pairs) / len(pairs)
        seen = sum(is_true for _, is_true in pairs) / len(pairs)
        distance += len(pairs) * abs(mean - seen)
    return distance / total if total else 0.0
