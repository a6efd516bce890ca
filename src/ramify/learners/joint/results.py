"""From costs by class to costs by document, and from an ascent to weights as linear learners keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.learners.joint.problem import Floats
from ramify.learners.linear.rows import Rows
from ramify.learners.linear.solver import Costs
from ramify.learners.linear.weights import Weights


def cost_of_documents(costs: Costs, labels: NDArray[np.int32]) -> Floats:
    """What a unit of loss costs for every document: that of its class, times its own weight."""
    return costs.positive[labels].astype(np.float64) * costs.documents


def weights_of(W: Floats, rows: Rows, parent: NDArray[np.int32], class_units: NDArray[Any]) -> Weights:
    """Weights (features of the rows × units) in the features as they came."""
    features = csr_array(W[rows.place].T.astype(np.float32))
    bias = W[0].copy() if rows.has_bias else np.zeros(W.shape[1])
    return Weights(features, bias, parent, class_units.astype(np.int64))
