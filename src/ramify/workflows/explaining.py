"""Explain the labels of one text: the nodes with their numbers, and the words for and against them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ramify.arguments import check_kind
from ramify.classifier.explanation import Explanation, NodeExplanation, explain_nodes
from ramify.classifier.text_classifier import TextClassifier
from ramify.data.documents import why_not_text
from ramify.errors import InputError
from ramify.results import Result
from ramify.workflows.reading import refuse_texts


@dataclass(frozen=True, slots=True, repr=False)
class ExplainResult(Result):
    """Why a text gets its labels.

    nodes: predicted, true and rival nodes with their ancestors, depth first; titles: of each. rule: kind of the decision rule,
    and what it takes: "scores", "margins", "memberships" or "conditionals". why: the explained node, step by step. has_label:
    whether any label was predicted, or one was asked for. truth: the true labels, if they were given.
    """

    text: str
    rule: str
    takes: str
    nodes: tuple[NodeExplanation, ...]
    titles: tuple[str, ...]
    why: Explanation
    has_label: bool
    truth: tuple[str, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON-ready values."""
        return {"rule": self.rule, "nodes": [asdict(node) for node in self.nodes], "why": asdict(self.why)}


def explain(
    classifier: TextClassifier, text: str, label: str | None = None, truth: Sequence[str] | None = None
) -> ExplainResult:
    """Explain the labels of a text, or why it does not get another label. truth: the true labels, to mark the errors.

    >>> clf = TextClassifier("nb").fit(["sweet red apple", "rye bread crust"], ["food/fruit", "food/bread"])
    >>> explain(clf, "a red apple").why.path
    ('food', 'fruit')
    """
    check_kind(text, str, "text", "one text, as a string")
    refuse_texts(classifier, "the given text")
    if reason := why_not_text(text):
        raise InputError(f"{reason}; give some words to classify.")
    nodes = explain_nodes(classifier, text, None if truth is None else list(truth))
    why, taxonomy, rule = classifier.explain(text, label), classifier.taxonomy_, classifier.decision_
    has_label = label is not None or any(node.is_taken for node in nodes)
    titles = tuple(taxonomy.titles[node.node] for node in nodes)
    true = None if truth is None else tuple(truth)
    return ExplainResult(text, rule.kind, rule.takes, tuple(nodes), titles, why, has_label, true)
