"""Two systems' answers over a taxonomy, put to every test, on the classes of the modified hierarchy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ramify.metrics.counting import Floats, label_pair
from ramify.metrics.resampling import (
    BootstrapDifference,
    Seed,
    check_documents,
    check_resamples,
    judge_differences,
    resample_sums,
)
from ramify.metrics.significance import (
    Alternative,
    Share,
    Significance,
    check_alternative,
    macro_sign_test,
    proportions_test,
    rank_t_test,
    sign_test,
    t_test,
    wilcoxon_test,
)
from ramify.metrics.sums import LOSSES, MEASURES, from_sums, measure_rows, modified_classes, on_classes
from ramify.taxonomy import Taxonomy

Tested = Significance | BootstrapDifference
_SIMPLE = {"sign": sign_test, "macro_sign": macro_sign_test, "t": t_test, "rank_t": rank_t_test, "wilcoxon": wilcoxon_test}
_SHARES: tuple[Share, ...] = ("precision", "recall", "accuracy")


def compare_answers(
    Y_true: Any,
    A: Any,
    B: Any,
    taxonomy: Taxonomy,
    *,
    alternative: Alternative = "two-sided",
    n_resamples: int = 1000,
    seed: Seed = 0,
) -> dict[str, Tested]:
    """All tests of two systems on the same documents, by name (Y_true, A, B: documents × nodes).

    Differences are above zero where A did better, also in H-loss.

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread"])
    >>> T = food.encode(["fruit/apple", "fruit/pear", "bread", "fruit"] * 5)
    >>> B = food.encode(["fruit/apple", "fruit/apple", "bread", "fruit"] * 5)
    >>> found = compare_answers(T, T, B, food)
    >>> found["sign"].n, found["macro_sign"].n, round(found["sign"].p_value, 3)
    (10, 2, 0.002)
    """
    label_pair(Y_true, A, taxonomy), label_pair(Y_true, B, taxonomy)
    check_alternative(alternative)
    check_resamples(n_resamples)
    classes = modified_classes(Y_true, taxonomy)
    T, of_a, of_b = (on_classes(Y, classes, taxonomy) for Y in (Y_true, A, B))
    check_documents(T.shape[0])
    drawn_a, drawn_b = (draw_measures(measure_rows(Y_true, Y, taxonomy, classes), n_resamples, seed) for Y in (A, B))
    return decision_tests(T, of_a, of_b, alternative) | bootstraps(drawn_a - drawn_b, T.shape[0], alternative)


def decision_tests(T: csr_array, A: csr_array, B: csr_array, alternative: Alternative = "two-sided") -> dict[str, Tested]:
    """The tests that draw nothing, by name (T, A, B: documents × classes)."""
    found: dict[str, Tested] = {name: test(T, A, B, alternative) for name, test in _SIMPLE.items()}
    return found | {share: proportions_test(T, A, B, share, alternative) for share in _SHARES}


def draw_measures(rows: csr_array, n_resamples: int, seed: Seed) -> Floats:
    """Every measure on all documents, and then on each resample of them (1 + resamples × measures); losses with a minus.

    rows: of :func:`~ramify.metrics.sums.measure_rows`.
    """
    observed = from_sums(np.asarray(rows.sum(axis=0)).ravel())
    signs = np.array([-1.0 if name in LOSSES else 1.0 for name in MEASURES])
    values: Floats = signs * np.vstack([observed, resample_sums(rows, from_sums, n_resamples, seed)])
    return values


def bootstraps(differences: Floats, n_docs: int, alternative: Alternative = "two-sided") -> dict[str, Tested]:
    """The paired bootstrap of each measure (differences of :func:`draw_measures`: observed first, then on resamples)."""
    judged = (judge_differences(float(of[0]), of[1:], n_docs, alternative) for of in differences.T)
    return {f"bootstrap_{measure}": found for measure, found in zip(MEASURES, judged, strict=True)}
