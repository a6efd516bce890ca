"""What a decision rule is: scores in, consistent label sets out, each row for itself."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from scipy.sparse import csr_array

from ramify.taxonomy import Taxonomy


class DecisionRule(Protocol):
    """Turns scores into labels; it has no memory of the rows it has seen."""

    kind: ClassVar[str]

    def decide(self, scores: Any, taxonomy: Taxonomy) -> csr_array:
        """Labels of documents × nodes of scores: boolean CSR, closed upward."""

    def state(self) -> dict[str, Any]:
        """Plain values from which the same rule can be made."""


@runtime_checkable
class LearnableRule(DecisionRule, Protocol):
    """A rule that is learnt from scores of documents that its learner has not seen; until then it refuses to decide."""

    @property
    def is_learnt(self) -> bool:
        """Whether there is something to decide with."""

    def forget(self) -> Self:
        """The same settings, with nothing learnt."""

    def learn(self, scores: Any, Y: Any, taxonomy: Taxonomy) -> Self:
        """A new rule of the same kind, learnt from held-out scores and true labels, both documents × nodes."""
