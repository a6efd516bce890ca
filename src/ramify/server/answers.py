"""Answers as the API gives them."""

from __future__ import annotations

from typing import Any

from ramify.datasets.documents import why_not_text
from ramify.server.errors import ApiError
from ramify.server.models import Served
from ramify.server.services import Services
from ramify.server.settings import Limits


def check_texts(texts: list[str], limits: Limits) -> None:
    """Refuse more, or longer texts than are allowed."""
    if len(texts) > limits.texts:
        raise ApiError(413, "too-many", f"there are {len(texts):,} texts; give up to {limits.texts:,}, or use /v1/batch.")
    longest = max(map(len, texts))
    if longest > limits.characters:
        raise ApiError(413, "too-long", f"a text has {longest:,} characters; up to {limits.characters:,} are allowed.")


async def answer_texts(services: Services, served: Served, wish: Any, texts: list[str]) -> list[dict[str, Any]]:
    """One result a text; empty ones get the reason why there is no answer."""
    problems = [why_not_text(text) for text in texts]
    good = [text for text, problem in zip(texts, problems, strict=True) if problem is None]
    found = iter(await services.classify(served, wish, good) if good else [])
    return [next(found) if problem is None else {"labels": [], "others": [], "problem": problem} for problem in problems]
