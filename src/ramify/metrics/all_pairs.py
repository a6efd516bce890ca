"""Many systems' answers over a taxonomy, every pair put to every test.

The p-values are those of :func:`~ramify.metrics.compare_answers` for each pair. A pair of systems needs nothing of a resample
but what each of the two measures on it, so each system is resampled once, not once for every other.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from ramify.execution import stage
from ramify.metrics.counting import Floats, both, label_pair
from ramify.metrics.paired import RESAMPLED, Tested, decision_tests, modified_classes, on_classes
from ramify.metrics.resampling import Seed, check_resamples, judge_differences, macro, micro, resample_sums
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
    drawn = {}
    with stage("resampling systems", len(said)) as step:
        for name, Y in said.items():
            drawn[name] = _resampled(T, Y, n_resamples, seed)
            step.advance()
    found: Tests = {}
    pairs = list(combinations(said, 2))
    with stage("testing pairs", len(pairs)) as step:
        for a, b in pairs:
            found[a, b] = decision_tests(T, said[a], said[b]) | _bootstraps(drawn[a] - drawn[b], T.shape[0])
            step.advance()
    return found


def _resampled(T: csr_array, Y: csr_array, n_resamples: int, seed: Seed) -> Floats:
    """What a system measures on all documents, and then on each resample (1 + resamples × measures, as RESAMPLED)."""
    rows = csr_array(hstack([T, both(T, Y), Y], format="csr", dtype=np.float64))
    n_classes = T.shape[1]

    def measure(sums: Floats) -> tuple[float, float]:
        of_class = sums.reshape(3, n_classes)
        counts = of_class[1], of_class[0], of_class[2]
        return micro(*counts), macro(*counts)

    observed = measure(np.asarray(rows.sum(axis=0)).ravel())
    return np.vstack([observed, resample_sums(rows, measure, n_resamples, seed)])


def _bootstraps(differences: Floats, n_docs: int) -> dict[str, Tested]:
    """The paired bootstrap of each measure (differences: observed first, then those on resamples)."""
    judged = (judge_differences(float(of[0]), of[1:], n_docs, "two-sided") for of in differences.T)
    return {f"bootstrap_{metric}": found for metric, found in zip(RESAMPLED, judged, strict=True)}
