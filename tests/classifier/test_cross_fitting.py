"""Folds from which calibrations are learnt."""

import numpy as np
import pytest

from ramify.classifier.fitting import ENOUGH, FOLDS, few_folds


@pytest.mark.parametrize("n_nodes", [2, 600, 3400, 14_331, 50_000])
@pytest.mark.parametrize(
    "n", [100, 1999, 2000, 2340, 4999, 5000, 9_999, 10_000, 24_999, 25_000, 49_999, 99_999, 100_000, 200_000]
)
def test_folds_are_few_disjoint_and_have_documents_enough(n, n_nodes):
    folds = few_folds(n, n_nodes)
    every = np.concatenate(folds)
    assert 1 <= len(folds) <= FOLDS
    assert len(np.unique(every)) == len(every)
    assert len(every) >= min(n, ENOUGH if n_nodes <= 600 else 1000)


def test_where_documents_are_many_a_tenth_is_held_out_at_a_time():
    assert [len(fold) for fold in few_folds(2 * ENOUGH - 1, 10)] == [4000, 4000, 4000]
    assert [len(fold) for fold in few_folds(2 * ENOUGH, 10)] == [2000] * FOLDS
