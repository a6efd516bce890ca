"""Explanations as the API gives them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from ramify.pipeline import NodeView, Wish, look
from ramify.server.models import Served

MOST_WORDS = 1_000  # of a step
MOST_SPANS = 20_000


def explain_text(served: Served, text: str, label: str | None, true: list[str] | None) -> dict[str, Any]:
    """Why a text gets its labels."""
    classifier = served.classifier
    labels, _, p = next(iter(served.answering(Wish()).with_probabilities([text])))
    why, views = classifier.explain(text, label), look(classifier, text, true)
    terms = _Terms(classifier.vectorizer_, text)
    return {
        "model": served.name,
        "system": classifier.system,
        "rule": classifier.decision_.kind,
        "additive": why.additive,
        "labels": served.to_labels(labels, p),
        "explained": {
            "label": served.label_of(why.steps[-1].node),
            "path": list(why.path),
            "rival": list(why.rival),
            "margin": why.margin,
            "prior": why.prior,
            **terms.listed(why.words, [None] * len(why.words)),
        },
        "steps": [_step(step, terms) for step in why.steps],
        "nodes": [_node(served, view) for view in views],
        "spans": terms.spans,
        "terms": terms.names,
    }


def _step(step: Any, terms: _Terms) -> dict[str, Any]:
    kept = ("node", "name", "title", "probability", "is_taken", "score", "prior", "reason")
    return {
        **{name: getattr(step, name) for name in kept},
        "rival": None if step.rival is None else list(step.rival),
        **terms.listed(step.words, step.columns),
    }


def _node(served: Served, view: NodeView) -> dict[str, Any]:
    kept = ("node", "name", "depth", "probability", "score", "value", "refined", "is_taken", "contradicts", "is_true")
    parents = served.taxonomy.parents_of(view.node)
    return {
        **{name: getattr(view, name) for name in kept},
        "title": served.taxonomy.titles[view.node],
        "parent": int(parents[0]) if len(parents) else None,
        "is_first_mistake": view.is_first_mistake,
        "reason": view.reason,
    }


class _Terms:
    """The terms of a text, numbered as they turn up, and the places where they stand."""

    def __init__(self, vectorizer: Any, text: str) -> None:
        self.names: list[str] = []
        self._places: dict[str, int] = {}
        self._by_column: dict[int, str] = {}
        self._located = vectorizer.locate(text) if hasattr(vectorizer, "locate") else []

    def listed(self, words: list[tuple[str, float]], columns: Sequence[int | None]) -> dict[str, Any]:
        """The strongest terms with what each adds, and what the rest adds."""
        shown = list(zip(words, columns, strict=True))[:MOST_WORDS]
        rest = sum(weight for _, weight in words[MOST_WORDS:])
        return {"words": [self._word(term, weight, column) for (term, weight), column in shown], "rest": float(rest)}

    def _word(self, term: str, weight: float, column: int | None) -> dict[str, Any]:
        if column is not None:
            self._by_column[column] = term
        return {"word": self._place(term), "text": term, "weight": weight}

    @property
    def spans(self) -> list[dict[str, int]]:
        """Where the terms that have been named stand in the text."""
        found = ((start, end, self._by_column.get(column)) for start, end, column in self._located)
        places = ({"start": start, "end": end, "word": self._places[term]} for start, end, term in found if term is not None)
        return list(islice(places, MOST_SPANS))

    def _place(self, term: str) -> int:
        if term not in self._places:
            self._places[term] = len(self.names)
            self.names.append(term)
        return self._places[term]
