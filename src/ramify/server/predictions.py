"""Answers as the API gives them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice
from typing import Any

from ramify.classifier import NodeExplanation, explain_nodes
from ramify.data.documents import why_not_text
from ramify.errors import RamifyError
from ramify.server.errors import ApiError
from ramify.server.middleware import tell
from ramify.server.model_registry import Served
from ramify.server.services import Services
from ramify.server.settings import Limits
from ramify.workflows import PredictOptions


def check_texts(texts: list[str], limits: Limits) -> None:
    """Refuse more, or longer texts than are allowed."""
    if len(texts) > limits.texts:
        raise ApiError(413, "too-many", f"there are {len(texts):,} texts; give up to {limits.texts:,}, or use /v1/batch.")
    longest = max(map(len, texts))
    if longest > limits.characters:
        raise ApiError(413, "too-long", f"a text has {longest:,} characters; up to {limits.characters:,} are allowed.")


async def answer_texts(services: Services, served: Served, options: Any, texts: list[str]) -> list[dict[str, Any]]:
    """One result a text; empty ones get the reason why there is no answer."""
    problems = [why_not_text(text) for text in texts]
    good = [text for text, problem in zip(texts, problems, strict=True) if problem is None]
    found = iter(await services.classify(served, options, good) if good else [])
    return [next(found) if problem is None else {"labels": [], "others": [], "problem": problem} for problem in problems]


# --------------------------------------------------------------------------------------------------------------
# Documents for the review queue, with what a model says of them.


SHOWN = 5  # labels that a reviewer sees


async def queue_texts(
    services: Services, served: Served, documents: Sequence[tuple[str, str | None]], by: str
) -> tuple[list[int], int]:
    """Classify texts, each with its source, and queue them; gives their numbers, and how many were known."""
    texts = [text for text, _ in documents]
    results = await answer_texts(services, served, PredictOptions(top=SHOWN), texts)
    if problem := next((result["problem"] for result in results if result["problem"]), None):
        raise ApiError(422, "no-text", f"{problem}; give documents with words in them.")
    rows = [
        (text, result["labels"], result["others"], confidence_of(result), source)
        for (text, source), result in zip(documents, results, strict=True)
    ]
    queued, known = await services.on_reviews(services.require_reviews().queue, served.name, rows, by)
    services.measures.review("queued", len(queued) - known)
    return queued, known


async def queue_unsure(services: Services, served: Served, texts: list[str], results: list[dict[str, Any]], by: str) -> None:
    """Queue the documents whose answers are less sure than the server wants them."""
    least = services.settings.review_below or 0.0
    answered = ((text, result) for text, result in zip(texts, results, strict=True) if result["problem"] is None)
    unsure = [(text, None) for text, result in answered if confidence_of(result) < least]
    if not unsure:
        return
    try:
        await queue_texts(services, served, unsure, by)
    except RamifyError as error:
        tell("not queued", logging.WARNING, documents=len(unsure), problem=str(error))


def confidence_of(result: dict[str, Any]) -> float:
    """The probability of the least sure label; 0 where there is none."""
    return min((label["probability"] for label in result["labels"]), default=0.0)


# --------------------------------------------------------------------------------------------------------------
# Explanations as the API gives them.


MOST_WORDS = 1_000  # of a step
MOST_SPANS = 20_000


def explain_text(served: Served, text: str, label: str | None, true: list[str] | None) -> dict[str, Any]:
    """Why a text gets its labels."""
    classifier = served.classifier
    labels, _, p = next(iter(served.answering(PredictOptions()).with_probabilities([text])))
    why, views = classifier.explain(text, label), explain_nodes(classifier, text, true)
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


def _node(served: Served, view: NodeExplanation) -> dict[str, Any]:
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
