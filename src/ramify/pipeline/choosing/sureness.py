"""How sure a choice is: whether it would be the same on other documents of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ramify.metrics.counting import Floats
from ramify.metrics.paired import draw_measures
from ramify.metrics.resampling import interval
from ramify.metrics.sums import MEASURES, measure_rows
from ramify.pipeline.choosing.ground import Ground
from ramify.pipeline.choosing.looks import Look, pooled_truth

RESAMPLES, FEWEST_RESAMPLES = 1000, 200
MANY = 2_000  # documents; with more of them fewer resamples are drawn


@dataclass(frozen=True, slots=True)
class Sureness:
    """What resamples of the documents say of the winner.

    first: the share of resamples in which no finalist is ahead of it. error: the standard error of its score.
    ahead: by how much it is ahead of the next; low, high: between which values that lies in 95 of 100 resamples.
    documents: how many were tested. Without another finalist, first is 1 and there is nothing to be ahead of.
    """

    first: float
    error: float
    ahead: float | None
    low: float | None
    high: float | None
    documents: int


def how_sure(finalists: Sequence[Look], ground: Ground, by: str, seed: int = 0) -> Sureness:
    """What resampling the documents that all finalists were tested on says of the first of them."""
    truth = pooled_truth(ground, finalists[0].folds)
    n_docs = truth.shape[0]
    n_resamples = int(np.clip(RESAMPLES * MANY / n_docs, FEWEST_RESAMPLES, RESAMPLES))
    rows = [measure_rows(truth, look.answers, ground.taxonomy, ground.classes) for look in finalists]
    drawn = np.stack([draw_measures(some, n_resamples, seed)[:, MEASURES.index(by)] for some in rows])
    first = share_first(drawn[:, 1:])
    if len(drawn) == 1:
        return Sureness(first, float(drawn[0, 1:].std()), None, None, None, n_docs)
    apart = drawn[0] - drawn[1]
    return Sureness(first, float(drawn[0, 1:].std()), float(apart[0]), *interval(apart[1:]), n_docs)


def share_first(drawn: Floats) -> float:
    """In which share of the resamples the first row is ahead of all others; ties are shared out.

    >>> share_first(np.array([[0.5, 0.6, 0.6, 0.7], [0.4, 0.7, 0.6, 0.1]]))
    0.625
    """
    is_best = drawn == drawn.max(axis=0)
    return float((is_best[0] / is_best.sum(axis=0)).mean())
