"""The slow twin of term relevance and selection: one class, one term, one document at a time, in forty digits.

rows: the counts of each document, a list of numbers. labels: the classes or nodes of each document, a set of numbers.
Forty digits tell equal relevances from nearly equal ones, so that ties are ties.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, wraps

Rows = list[list[float]]
Labels = list[set[int]]
TIED = Decimal(10) ** -30


def in_forty_digits(function):
    @wraps(function)
    def wrapped(*given):
        with localcontext(prec=40):
            return function(*given)

    return wrapped


@cache
def ln(share: Fraction) -> Decimal:
    return Decimal(share.numerator).ln() - Decimal(share.denominator).ln()


def as_decimal(share: Fraction) -> Decimal:
    return Decimal(share.numerator) / Decimal(share.denominator)


def part(together: Fraction, one: Fraction, other: Fraction) -> Decimal:
    """P(a, b) ln(P(a, b) / (P(a) P(b))), 0 where P(a, b) is 0."""
    if together == 0:
        return Decimal(0)
    return as_decimal(together) * ln(together / (one * other))


# ---- one term, one class --------------------------------------------------------------------------------------------


def table(rows: Rows, labels: Labels, c: int, t: int) -> dict[tuple[bool, bool], int]:
    """Documents by (in the class, has the term)."""
    cells = {(inside, has): 0 for inside in (True, False) for has in (True, False)}
    for row, own in zip(rows, labels, strict=True):
        cells[c in own, row[t] > 0] += 1
    return cells


def information_gain(rows: Rows, labels: Labels, c: int, t: int) -> Decimal:
    cells, n, gain = table(rows, labels, c, t), len(rows), Decimal(0)
    for (inside, has), count in cells.items():
        of_class = Fraction(sum(cells[inside, either] for either in (True, False)), n)
        of_term = Fraction(sum(cells[either, has] for either in (True, False)), n)
        gain += part(Fraction(count, n), of_class, of_term)
    return gain


def chi2(rows: Rows, labels: Labels, c: int, t: int) -> Decimal:
    cells, n = table(rows, labels, c, t), len(rows)
    a, b, c_, d = cells[True, True], cells[False, True], cells[True, False], cells[False, False]
    margins = (a + c_) * (b + d) * (a + b) * (c_ + d)
    return as_decimal(Fraction(n * (a * d - c_ * b) ** 2, margins)) if margins else Decimal(0)


def mutual_information(rows: Rows, labels: Labels, c: int, t: int) -> Decimal:
    """The class's part of the mutual information of class and word event, over pairs of an occurrence and a label."""
    everything, of_class, of_term, both = (Fraction(0) for _ in range(4))
    pairs = [(label, row) for row, own in zip(rows, labels, strict=True) for label in own]
    for label, row in pairs:
        words = sum(map(Fraction, row))
        everything += words
        of_class += words if label == c else 0
        of_term += Fraction(row[t])
        both += Fraction(row[t]) if label == c else 0
    if everything == 0:
        return Decimal(0)
    p_class, p_term, p_both = of_class / everything, of_term / everything, both / everything
    return part(p_both, p_class, p_term) + part(p_class - p_both, p_class, 1 - p_term)


MEASURES: dict[str, Callable[[Rows, Labels, int, int], Decimal]] = {
    "information-gain": information_gain,
    "chi2": chi2,
    "mutual-information": mutual_information,
}


@in_forty_digits
def relevance(rows: Rows, labels: Labels, classes: list[int], n_terms: int, measure: str) -> list[list[Decimal]]:
    """The relevance of every term for each of some classes."""
    return [[MEASURES[measure](rows, labels, c, t).quantize(TIED) for t in range(n_terms)] for c in classes]


# ---- one number a term ----------------------------------------------------------------------------------------------


def fraction(rows: Rows, labels: Labels, c: int, measure: str) -> Fraction:
    """P(c): the class's share of the documents, or of the word occurrences."""
    if measure != "mutual-information":
        return Fraction(sum(c in own for own in labels), len(rows)) if rows else Fraction(0)
    weights = [sum(map(Fraction, row), Fraction(0)) for row in rows]
    everything = sum((weight * len(own) for weight, own in zip(weights, labels, strict=True)), Fraction(0))
    inside = sum((weight for weight, own in zip(weights, labels, strict=True) if c in own), Fraction(0))
    return inside / everything if everything else Fraction(0)


@in_forty_digits
def joined(rows: Rows, labels: Labels, classes: list[int], n_terms: int, measure: str, join: str) -> list[Decimal]:
    by_class = relevance(rows, labels, classes, n_terms, measure)
    shares = [as_decimal(fraction(rows, labels, c, measure)) for c in classes]
    scores = []
    for t in range(n_terms):
        values = [scores_of_class[t] for scores_of_class in by_class]
        if join == "sum":
            scores.append(sum(values, Decimal(0)))
        elif join == "weighted-average":
            scores.append(sum((p * value for p, value in zip(shares, values, strict=True)), Decimal(0)).quantize(TIED))
        else:
            scores.append(max(values, default=Decimal(0)))
    return scores


def best_first(scores: list[Decimal]) -> list[int]:
    """Terms with a score above 0, the highest first, of equal ones the first."""
    return sorted((t for t in range(len(scores)) if scores[t] > 0), key=lambda t: (-scores[t], t))


def round_robin(by_class: list[list[Decimal]]) -> list[int]:
    """Terms in the order in which classes that take turns take them."""
    taken: list[int] = []
    while True:
        before = len(taken)
        for scores in by_class:
            left = [t for t in best_first(scores) if t not in taken]
            taken += left[:1]
        if len(taken) == before:
            return taken


def ranking(rows: Rows, labels: Labels, classes: list[int], n_terms: int, measure: str, join: str) -> list[int]:
    if join == "round-robin":
        return round_robin(relevance(rows, labels, classes, n_terms, measure))
    return best_first(joined(rows, labels, classes, n_terms, measure, join))


def most_frequent(rows: Rows, n_terms: int) -> list[int]:
    return sorted(range(n_terms), key=lambda t: (-sum(row[t] > 0 for row in rows), t))


# ---- a taxonomy -----------------------------------------------------------------------------------------------------


def close(nodes: set[int], parents: list[list[int]]) -> set[int]:
    closed = set(nodes)
    for node in range(len(parents) - 1, -1, -1):  # parents have smaller numbers
        if node in closed:
            closed |= set(parents[node])
    return closed


def lowest(closed: set[int], parents: list[list[int]]) -> set[int]:
    return closed - {p for node in closed for p in parents[node]}


def local_problems(rows: Rows, labels: Labels, parents: list[list[int]]) -> dict[int, tuple[Rows, Labels, list[int]]]:
    """For each inner node, and -1 above several roots: its documents, their classes there, and the non-empty classes.

    A class is a child, or the node itself for documents that go no deeper.
    """
    closed = [close(own, parents) for own in labels]
    roots = [node for node, above in enumerate(parents) if not above]
    places = {-1: roots} if len(roots) > 1 else {}
    for node in range(len(parents)):
        children = [child for child, above in enumerate(parents) if node in above]
        if children:
            places[node] = children
    problems = {}
    for node, children in places.items():
        here = [d for d, own in enumerate(closed) if (node in own if node >= 0 else own)]
        classes_of = []
        for d in here:
            stays = {node} if node >= 0 and node in lowest(closed[d], parents) else set()
            classes_of.append(closed[d] & set(children) | stays)
        classes = [c for c in [*children, node] if any(c in own for own in classes_of)]
        problems[node] = [rows[d] for d in here], classes_of, classes
    return problems


@in_forty_digits
def select(
    rows: Rows, labels: Labels, parents: list[list[int]], n_terms: int, n_features: int, measure: str, join: str, scope: str
) -> tuple[list[int], list[Decimal], dict[int, list[int]]]:
    """The kept terms, the score of every term, and for "glocal" the terms of each inner node."""
    if scope == "flat":
        own = [lowest(close(nodes, parents), parents) for nodes in labels]
        classes = list(range(len(parents)))
        scores = joined(rows, own, classes, n_terms, measure, join)
        kept = ranking(rows, own, classes, n_terms, measure, join) or most_frequent(rows, n_terms)
        return sorted(kept[:n_features]), scores, {}
    scores, lists, sets = [Decimal(0)] * n_terms, [], {}
    for node, (documents, own, classes) in local_problems(rows, labels, parents).items():
        sets[node] = []
        if len(classes) >= 2:
            local = joined(documents, own, classes, n_terms, measure, join)
            scores = [max(pair) for pair in zip(scores, local, strict=True)]
            lists.append(ranking(documents, own, classes, n_terms, measure, join))
            sets[node] = sorted((lists[-1] or most_frequent(documents, n_terms))[:n_features])
    if scope == "glocal":
        kept = sorted(set().union(*sets.values()))
    else:
        sets, kept = {}, split_evenly(lists, scores, n_features)
    return kept or sorted(most_frequent(rows, n_terms)[:n_features]), scores, sets


def split_evenly(lists: list[list[int]], scores: list[Decimal], n_features: int) -> list[int]:
    """The first k terms of every list, for the largest k with which they are not too many."""
    longest = max(map(len, lists), default=0)
    unions = [set().union(*(terms[:k] for terms in lists)) for k in range(longest + 1)]
    fitting = max(k for k in range(longest + 1) if len(unions[k]) <= n_features)
    if fitting == 0 and longest > 0:  # not even one each
        return sorted([t for t in best_first(scores) if t in unions[1]][:n_features])
    return sorted(unions[fitting])
