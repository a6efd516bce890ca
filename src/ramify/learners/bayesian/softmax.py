"""The bound on the softmax's denominator, at the β and ξ of every document at which it is least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ramify.execution import Executor, row_blocks
from ramify.learners.bayesian.documents import Floats, share_out
from ramify.native import settle_documents_in_place

BLOCK = 1 << 18  # bytes of scores that a thread takes at once


class Softmax(NamedTuple):
    """betas, bounds: by document. By document and class: slopes and curvatures, the bound's derivatives by the score less β
    (slopes of a document add up to 1), and twice_lambda, 2 λ(ξ)."""

    betas: Floats
    bounds: Floats
    slopes: Floats
    twice_lambda: Floats
    curvatures: Floats


def settle(scores: Floats, spreads: Floats, betas: Floats, executor: Executor) -> Softmax:
    """The least bound for scores with variances (documents × classes), from some β on.

    ξ² = (z − β)² + v at the best ξ; what remains is convex in β, and Newton's method finds where the slopes add up to 1.
    """
    found = Softmax(betas.copy(), np.empty(len(betas)), *(np.empty(scores.shape) for _ in range(3)))

    def work(part: slice) -> None:
        settle_documents_in_place(scores[part], spreads[part], *(table[part] for table in found))

    share_out(executor, work, row_blocks(len(scores), 8 * scores.shape[1], BLOCK))
    return found
