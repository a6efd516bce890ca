"""What a decision rule is: scores in, consistent label sets out, each row for itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.taxonomy import Taxonomy


class DecisionRule(Protocol):
    """Turns scores into labels; it has no memory of the rows it has seen.

    takes: what it wants to know of every node: how well it fits as a label, "scores"; "memberships", P(node); "conditionals",
    P(node | parent); or "margins", above 0 for yes.

    With ``takes_few = True`` beside these, scores may come as a sparse matrix, in which nodes that are absent have none.
    """

    kind: ClassVar[str]
    takes: ClassVar[str]

    def decide(self, values: Any, taxonomy: Taxonomy) -> csr_array:
        """Labels of documents × nodes of values: boolean CSR, closed upward."""

    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """What it did at some nodes with the values of one document, and why: a short sentence each, without its end."""

    def problem(self) -> str | None:
        """What is wrong with its settings, as a sentence without its end; None if nothing is."""

    def state(self) -> dict[str, Any]:
        """Plain values from which the same rule can be made."""


@runtime_checkable
class RefiningRule(DecisionRule, Protocol):
    """A rule that makes better probabilities on its way to labels."""

    def refine(self, values: Any, taxonomy: Taxonomy) -> NDArray[np.floating[Any]]:
        """What it makes of documents × nodes of values; a parent's is never below a child's."""

    def cut(self, refined: NDArray[np.floating[Any]], values: Any, taxonomy: Taxonomy) -> csr_array:
        """Labels of what it made of the values."""


@runtime_checkable
class LearnableRule(DecisionRule, Protocol):
    """A rule that is learnt from scores of documents that its learner has not seen; until then it refuses to decide."""

    @property
    def is_learnt(self) -> bool:
        """Whether there is something to decide with."""

    def forget(self) -> Self:
        """The same settings, with nothing learnt."""

    def learn(self, values: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """A new rule of the same kind, learnt from held-out values and true labels, both documents × nodes."""
