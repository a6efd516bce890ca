"""The named systems: each is one row that joins features, a learner and a decision rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ramify.decisions import Best, DecisionRule
from ramify.errors import InputError, suggest
from ramify.features import Vectorizer
from ramify.learners import Learner, MultinomialNaiveBayes


@dataclass(frozen=True, slots=True)
class System:
    """One way to classify text into a taxonomy.

    vectorizer, learner, decision: make a new, unfitted part each.
    needs_tree: whether a DAG is refused. several_labels: whether an answer may hold more than one label.
    """

    name: str
    summary: str
    source: str
    vectorizer: Callable[[], Any]
    learner: Callable[[], Learner]
    decision: Callable[[], DecisionRule]
    needs_tree: bool = False
    several_labels: bool = False


_ROWS = (
    System(
        name="nb",
        summary="multinomial naive Bayes with Laplace smoothing, best labelled node",
        source="McCallum et al. 1998",
        vectorizer=lambda: Vectorizer(weighting="counts"),
        learner=MultinomialNaiveBayes,
        decision=Best,
    ),
)

SYSTEMS: dict[str, System] = {row.name: row for row in _ROWS}


def find_system(name: str) -> System:
    """The row of a system.

    >>> find_system("nb").source
    'McCallum et al. 1998'
    """
    if name not in SYSTEMS:
        raise InputError(f"system {name!r} is unknown; the systems are {', '.join(SYSTEMS)}.{suggest(str(name), SYSTEMS)}")
    return SYSTEMS[name]
