"""Two systems' answers over a taxonomy, put to every test.

Tests look at classes that exclude nothing and imply nothing, so the hierarchy is modified first (Esuli, Fagni & Sebastiani
2008): the classes are the leaves and, for each inner node that is the most specific label of some true document, a leaf of its
own below it, which holds just these documents.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from ramify.metrics.counting import Counts, label_pair, per_node
from ramify.metrics.resampling import BootstrapDifference, Seed, paired_bootstrap
from ramify.metrics.significance import (
    Alternative,
    Share,
    Significance,
    macro_sign_test,
    proportions_test,
    rank_t_test,
    sign_test,
    t_test,
    wilcoxon_test,
)
from ramify.taxonomy import Taxonomy, most_specific

Tested = Significance | BootstrapDifference
_SIMPLE = {"sign": sign_test, "macro_sign": macro_sign_test, "t": t_test, "rank_t": rank_t_test, "wilcoxon": wilcoxon_test}
_SHARES: tuple[Share, ...] = ("precision", "recall", "accuracy")
RESAMPLED: tuple[Literal["micro_f1", "macro_f1"], ...] = ("micro_f1", "macro_f1")


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

    >>> food = Taxonomy.from_paths(["fruit/apple", "fruit/pear", "bread"])
    >>> T = food.encode(["fruit/apple", "fruit/pear", "bread", "fruit"] * 5)
    >>> B = food.encode(["fruit/apple", "fruit/apple", "bread", "fruit"] * 5)
    >>> found = compare_answers(T, T, B, food)
    >>> found["sign"].n, found["macro_sign"].n, round(found["sign"].p_value, 3)
    (10, 2, 0.002)
    """
    label_pair(Y_true, A, taxonomy), label_pair(Y_true, B, taxonomy)
    classes = modified_classes(Y_true, taxonomy)
    T, of_a, of_b = (on_classes(Y, classes, taxonomy) for Y in (Y_true, A, B))
    found = decision_tests(T, of_a, of_b, alternative)
    for metric in RESAMPLED:
        drawn = paired_bootstrap(T, of_a, of_b, metric, n_resamples=n_resamples, seed=seed, alternative=alternative)
        found[f"bootstrap_{metric}"] = drawn
    return found


def decision_tests(T: csr_array, A: csr_array, B: csr_array, alternative: Alternative = "two-sided") -> dict[str, Tested]:
    """The tests that draw nothing, by name (T, A, B: documents × classes)."""
    found: dict[str, Tested] = {name: test(T, A, B, alternative) for name, test in _SIMPLE.items()}
    return found | {share: proportions_test(T, A, B, share, alternative) for share in _SHARES}


def modified_classes(Y_true: Any, taxonomy: Taxonomy) -> Counts:
    """The nodes that are classes of the modified hierarchy: leaves, and inner nodes at which some true document stops."""
    own = per_node(most_specific(Y_true, taxonomy))
    return np.flatnonzero(taxonomy.is_leaf | (own > 0))


def on_classes(Y: Any, classes: Counts, taxonomy: Taxonomy) -> csr_array:
    """The most specific labels among some classes (documents × classes); an answer at any other node is no answer."""
    return csr_array(most_specific(Y, taxonomy)[:, classes])
