"""Predictions and explanations in the form of the API, and documents for the review queue."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from typing import Any

from ramify.classifier import explain_nodes
from ramify.data.documents import why_not_text
from ramify.errors import RamifyError
from ramify.server.errors import ApiError
from ramify.server.middleware import log_event
from ramify.server.model_registry import ServedModel
from ramify.server.services import Services
from ramify.server.settings import Limits
from ramify.workflows import PredictOptions


def check_texts(texts: list[str], limits: Limits) -> None:
    """Refuse too many or too long texts."""
    if len(texts) > limits.texts:
        raise ApiError(413, "too-many", f"there are {len(texts):,} texts; give up to {limits.texts:,}, or use /v1/batch.")
    longest = max(map(len, texts))
    if longest > limits.characters:
        raise ApiError(413, "too-long", f"a text has {longest:,} characters; up to {limits.characters:,} are allowed.")


def check_explainable(text: str, limits: Limits) -> None:
    """Refuse a text that would take too long to explain."""
    check_texts([text], limits)
    if len(text) > limits.explain_characters:
        most = f"up to {limits.explain_characters:,} can be explained, longer ones only classified"
        raise ApiError(413, "too-long", f"the text has {len(text):,} characters; {most}.")


async def predict_texts(services: Services, served: ServedModel, options: Any, texts: list[str]) -> list[dict[str, Any]]:
    """One result per text; an empty text gets the reason why it has no prediction."""
    problems = [why_not_text(text) for text in texts]
    good = [text for text, problem in zip(texts, problems, strict=True) if problem is None]
    found = iter(await services.classify(served, options, good) if good else [])
    return [next(found) if problem is None else {"labels": [], "others": [], "problem": problem} for problem in problems]


SHOWN = 5  # labels that a reviewer sees
QUEUE_COST = 16  # bytes of memory for each character of a text that is queued: the text, its vector, and its labels


async def queue_texts(
    services: Services, served: ServedModel, documents: Sequence[tuple[str, str | None]], by: str
) -> tuple[list[int], int]:
    """Classify texts and queue them with their sources; returns their numbers, and how many were queued before."""
    texts = [text for text, _ in documents]
    results = await predict_texts(services, served, PredictOptions(top=SHOWN), texts)
    if problem := next((result["problem"] for result in results if result["problem"]), None):
        raise ApiError(422, "no-text", f"{problem}; give documents that contain words.")
    rows = [
        (text, result["labels"], result["others"], confidence_of(result), source)
        for (text, source), result in zip(documents, results, strict=True)
    ]
    queued, known = await services.on_reviews(services.require_reviews().queue, served.name, rows, by)
    services.metrics.reviews.labels("queued").inc(len(queued) - known)
    return queued, known


async def queue_uncertain(
    services: Services, served: ServedModel, documents: Sequence[tuple[str, str | None]], by: str
) -> None:
    """Queue documents with a low confidence; a failure is counted and logged only, since nobody asked for it."""
    try:
        await services.on_reviews(services.require_reviews().check_room)  # before they are classified once more
        await queue_texts(services, served, documents, by)
    except RamifyError as error:
        _note_not_queued(services, len(documents), str(error))


def queue_in_background(services: Services, served: ServedModel, documents: Sequence[tuple[str, str | None]], by: str) -> None:
    """The same, while the request gets its answer; the texts count in the memory of the server until they are written."""
    size = QUEUE_COST * sum(len(text) for text, _ in documents)
    try:
        services.background.start(partial(queue_uncertain, services, served, documents, by), size)
    except ApiError as error:
        _note_not_queued(services, len(documents), str(error))


def _note_not_queued(services: Services, count: int, problem: str) -> None:
    """Count documents that nobody will review; log it, unless the same was logged a moment ago."""
    services.metrics.reviews.labels("not queued").inc(count)
    if due := services.not_queued.add(count):
        log_event("not queued", logging.WARNING, documents=due, problem=problem)


def confidence_of(result: dict[str, Any]) -> float:
    """The probability of the least likely label; 0 without labels."""
    return min((label["probability"] for label in result["labels"]), default=0.0)


MOST_WORDS = 1_000  # of a step
MOST_SPANS = 20_000


def explain_text(served: ServedModel, text: str, label: str | None, true: list[str] | None) -> dict[str, Any]:
    """Explain the labels of a text."""
    classifier, taxonomy = served.classifier, served.taxonomy
    labels, _, p = next(iter(served.predictor(PredictOptions()).with_probabilities([text])))
    why, terms = classifier.explain(text, label), _Terms(classifier.vectorizer_, text)
    explained: dict[str, Any] = {"label": served.label_of(why.steps[-1].node), "path": why.path, "rival": why.rival}
    explained |= {"margin": why.margin, "prior": why.prior, **terms.listed(why.words, [None] * len(why.words))}
    steps, nodes = [], []
    for step in why.steps:
        facts = asdict(replace(step, words=[], columns=[]))  # long lists of a long text, listed below
        del facts["columns"]
        steps.append(facts | terms.listed(step.words, step.columns))
    for node in explain_nodes(classifier, text, true):
        parents = taxonomy.parents_of(node.node)
        parent = int(parents[0]) if len(parents) else None
        nodes.append(asdict(node) | {"title": taxonomy.titles[node.node], "parent": parent})
    return {
        "model": served.name,
        "system": classifier.system,
        "rule": classifier.decision_.kind,
        "additive": why.additive,
        "labels": served.to_labels(labels, p),
        "explained": explained,
        "steps": steps,
        "nodes": nodes,
        "spans": terms.spans(),
        "terms": terms.names,
    }


class _Terms:
    """The terms of a text, numbered in order of appearance, and their positions."""

    def __init__(self, vectorizer: Any, text: str) -> None:
        self.names: list[str] = []
        self._places: dict[str, int] = {}
        self._by_column: dict[int, str] = {}
        self._located = vectorizer.locate(text) if hasattr(vectorizer, "locate") else []

    def listed(self, words: list[tuple[str, float]], columns: Sequence[int | None]) -> dict[str, Any]:
        """The terms with the largest weights, and the sum of the others."""
        shown = []
        for (term, weight), column in list(zip(words, columns, strict=True))[:MOST_WORDS]:
            if column is not None:
                self._by_column[column] = term
            if term not in self._places:
                self._places[term] = len(self.names)
                self.names.append(term)
            shown.append({"word": self._places[term], "text": term, "weight": weight})
        return {"words": shown, "rest": float(sum(weight for _, weight in words[MOST_WORDS:]))}

    def spans(self) -> list[dict[str, int]]:
        """The positions of the listed terms in the text."""
        found = ((start, end, self._by_column.get(column)) for start, end, column in self._located)
        places = ({"start": start, "end": end, "word": self._places[term]} for start, end, term in found if term is not None)
        return list(islice(places, MOST_SPANS))
