"""Answers as rows of a table: the cells that came, and behind them what was predicted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ramify.pipeline.streaming import Answer

SEVERAL = " | "


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """What the rows of answers look like.

    columns: those of the input. top: how many labels were asked for.

    >>> AnswerTable(["text"], top=1).cells(Answer(1, {"text": "no picture"}, [("tv", 0.9)], []))
    ['no picture', 'tv', '0.9000', '']
    """

    columns: Sequence[str]
    top: int = 1

    @property
    def head(self) -> list[str]:
        """The names of all columns."""
        pairs = [f"{name}_{k}" for k in range(2, self.top + 1) for name in ("predicted", "probability")]
        return [*self.columns, *free_names(("predicted", "probability", *pairs, "problem"), self.columns)]

    def cells(self, answer: Answer) -> list[Any]:
        """The row of an answer."""
        came = [_cell(answer.row.get(column)) for column in self.columns]
        labels = SEVERAL.join([label for label, _ in answer.labels])
        chances = SEVERAL.join([f"{p:.4f}" for _, p in answer.labels])
        others = [cell for label, p in answer.others for cell in (label, f"{p:.4f}")]
        missing = [""] * (2 * (self.top - 1) - len(others))
        return [*came, labels, chances, *others, *missing, answer.problem or ""]


def free_names(names: Iterable[str], taken: Sequence[str]) -> list[str]:
    """Names for our columns that the input does not use already.

    >>> free_names(["predicted", "problem"], ["text", "problem"])
    ['predicted', 'ramify_problem']
    """
    return [_free(name, taken) for name in names]


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"ramify_{name}"
    return name


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
