"""Many systems' answers over a taxonomy, every pair put to every test.

The p-values are those of :func:`~ramify.metrics.compare_answers` for each pair. A pair of systems needs nothing of a resample
but what each of the two measures on it, so each system is resampled once, not once for every other.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from ramify.execution import stage
from ramify.metrics.counting import label_pair
from ramify.metrics.paired import Tested, bootstraps, decision_tests, draw_measures
from ramify.metrics.resampling import Seed, check_documents, check_resamples
from ramify.metrics.sums import measure_rows, modified_classes, on_classes
from ramify.taxonomy import Taxonomy

Tests = dict[tuple[str, str], dict[str, Tested]]


def compare_all_answers(
    Y_true: Any, answers: Mapping[str, Any], taxonomy: Taxonomy, *, n_resamples: int = 1000, seed: Seed = 0
) -> Tests:
    """All tests of every pair of systems on the same documents, two-sided (Y_true and answers: documents × nodes).

    >>> food = Taxonomy.from_paths(["apple", "pear"])
    >>> T, P = food.encode(["apple", "pear"] * 10), food.encode(["apple"] * 20)
    >>> found = compare_all_answers(T, {"knows": T, "guesses": P, "also": T}, food, n_resamples=50)
    >>> list(found), found["knows", "guesses"]["sign"].difference
    ([('knows', 'guesses'), ('knows', 'also'), ('guesses', 'also')], 1.0)
    """
    check_resamples(n_resamples)
    classes = modified_classes(Y_true, taxonomy)
    T = on_classes(label_pair(Y_true, Y_true, taxonomy)[0], classes, taxonomy)
    said = {name: on_classes(label_pair(Y_true, Y, taxonomy)[1], classes, taxonomy) for name, Y in answers.items()}
    check_documents(T.shape[0])
    drawn = {}
    with stage("resampling systems", len(said)) as step:
        for name, Y in answers.items():
            drawn[name] = draw_measures(measure_rows(Y_true, Y, taxonomy, classes), n_resamples, seed)
            step.advance()
    found: Tests = {}
    pairs = list(combinations(said, 2))
    with stage("testing pairs", len(pairs)) as step:
        for a, b in pairs:
            found[a, b] = decision_tests(T, said[a], said[b]) | bootstraps(drawn[a] - drawn[b], T.shape[0])
            step.advance()
    return found
