"""Hand-made comparisons, for those that put them into words, tables and pages."""

from __future__ import annotations

from itertools import combinations

from ramify.metrics import BootstrapDifference, MetricEstimate, Significance
from ramify.workflows.comparison import LABELS, TESTS, Comparison, Pair, SystemResult


def system(name, value=0.5, seconds=1.5, speed=1234.0, memory=20.0, **values):
    """A system with one value for every measure, but for those that are named."""
    measures = {each: _measured(values.get(each, value)) for each in LABELS}
    return SystemResult(name, measures, seconds, speed, memory)


def pair(a, b, p_value=0.01, difference=-0.1, **p_values):
    """Two systems with one p-value for every test, but for those that are named; b is ahead."""
    tests = {name: Significance(1.0, p_value, 5, difference) for name in TESTS if not name.startswith("bootstrap")}
    drawn = BootstrapDifference(difference, -0.2, 0.2, p_value, 5, 20)
    tests |= {name: drawn for name in TESTS if name.startswith("bootstrap")}
    return Pair(a, b, tests, dict.fromkeys(TESTS, p_value) | p_values)


def comparison(systems, pairs=(), documents=1000, folds=1, correction="holm", n_resamples=20_000, **more):
    """A comparison; pairs that are not given cannot be told apart."""
    told = {frozenset((each.a, each.b)): each for each in pairs}
    names = combinations([each.name for each in systems], 2)
    every = [told.get(frozenset(both)) or pair(*both, p_value=1.0, difference=0.0) for both in names]
    return Comparison(documents, folds, 7, 0, list(systems), every, correction, n_resamples, 0, **more)


def alike(names, p_value=0.01, difference=-0.1, **settings):
    """A comparison in which every system is the same, and every pair has the same p-value."""
    pairs = [pair(a, b, p_value, difference) for a, b in combinations(names, 2)]
    return comparison([system(name) for name in names], pairs, **{"documents": 100, "n_resamples": 20, **settings})


def _measured(value):
    return MetricEstimate(value, value - 0.1, value + 0.1, [value])
