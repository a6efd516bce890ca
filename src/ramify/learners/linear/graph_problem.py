"""What the solver of graphs is told, and what it is certain of after a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from ramify.learners.linear.problem import Costs, Settings
from ramify.learners.linear.rows import Rows
from ramify.learners.linear.structure import Structure

# weights may be stretched: documents that ought to lie on the margin lie around it, and a stretch lifts them over the corner
STRETCHES = (1.0, 1.00003, 1.0001, 1.0003, 1.001, 1.003, 1.01)


@dataclass(frozen=True, slots=True)
class GraphProblem:
    """One problem: documents, the classes' own documents (documents × classes), how units are tied, and costs.

    Column k of `own` belongs to unit structure.class_units[k].
    """

    rows: Rows
    own: csc_array
    structure: Structure
    costs: Costs
    settings: Settings

    @property
    def work(self) -> NDArray[np.float64]:
        """Of every unit: its vector, and the entries of all documents if it is a class."""
        work = np.full(len(self.structure), float(self.rows.n_features))
        work[self.structure.class_units] += len(self.rows.values)
        return work


@dataclass(frozen=True, slots=True)
class Look:
    """Objective and bound of a round, the stretch of weights that the objective is for, and what classes lack."""

    primal: float
    stretch: float
    dual: float
    lack_of_classes: float

    @classmethod
    def at(cls, sizes: Sequence[float], losses: NDArray[np.float64]) -> Look:
        """From sums over all units: ½ W·MW, ½ u·M⁻¹u, Σ U h(α/U) and what classes lack; and Σ U L for every stretch."""
        ties, bound, entropy, lack = sizes
        primals = np.square(STRETCHES) * ties + losses
        best = int(np.argmin(primals))
        return cls(float(primals[best]), STRETCHES[best], entropy - bound, lack)

    @property
    def lack_of_ties(self) -> float:
        """½ r·M⁻¹r, the rest of the distance."""
        return max(0.0, self.primal - self.dual - self.lack_of_classes)
