"""What every solver of linear models is told: documents, classes, how they are tied, and what a unit of loss costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from ramify.learners.linear.forest import Forest
from ramify.learners.linear.rows import Rows

LOSSES = {"hinge": 0, "squared_hinge": 1, "logistic": 2}


@dataclass(frozen=True, slots=True)
class Settings:
    """How to solve: the loss, the relative duality gap to reach, rounds at most, and the seed of all orders.

    fast: be content with the nearest negatives; what all other pairs cost is then estimated on a sample of the classes.
    """

    loss: str = "hinge"
    tolerance: float = 1e-3
    max_iter: int = 1000
    seed: int = 0
    fast: bool = False


@dataclass(frozen=True, slots=True)
class Costs:
    """What a unit of loss costs: by class for its own documents and for others, times a weight by document."""

    positive: NDArray[np.float32]
    negative: NDArray[np.float32]
    documents: NDArray[np.float32]

    def of(self, classes: slice) -> Costs:
        """Those of some classes."""
        return Costs(self.positive[classes], self.negative[classes], self.documents)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The objective of the weights, a bound that no weights go below, and their distance relative to the objective."""

    primal: float
    dual: float
    rounds: int

    @property
    def gap(self) -> float:
        """(primal − dual) / primal."""
        return max(0.0, self.primal - self.dual) / max(self.primal, 1e-300)


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: documents, the classes' own documents (documents × classes), how classes are tied, and costs.

    held: weights of the first unit, which stands above all others, where it is to stay as it is.
    """

    rows: Rows
    own: csc_array
    forest: Forest
    costs: Costs
    settings: Settings
    held: NDArray[np.float32] | None = None

    @property
    def loss(self) -> int:
        """The number by which kernels know the loss."""
        return LOSSES[self.settings.loss]

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return int(self.own.shape[1])

    @property
    def classes(self) -> NDArray[np.int32]:
        """All classes."""
        return np.arange(self.n_classes, dtype=np.int32)

    def part(self, first: int, last: int) -> tuple[Problem, NDArray[np.int32]]:
        """The same with some neighbouring classes and the units above them only, and which units these are."""
        if (first, last) == (0, self.n_classes):
            return self, np.arange(len(self.forest), dtype=np.int32)
        forest, units = self.forest.part(first, last)
        some = slice(first, last)
        own = csc_array(self.own[:, some])
        return Problem(self.rows, own, forest, self.costs.of(some), self.settings, self.held), units
