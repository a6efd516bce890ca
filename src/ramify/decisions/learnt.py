"""The common part of rules, given or learnt: how they are stored, compared and checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ramify.errors import InputError, ModelError
from ramify.taxonomy import Taxonomy

LARGEST = float(np.finfo(np.float64).max)
Floats = NDArray[np.float64]
Numbers = Sequence[float] | Floats
Over = Literal["own", "nodes"]


class Rule(ABC):
    """A frozen dataclass of settings. Two rules are equal when they have the same kind and state."""

    __slots__ = ()
    kind: ClassVar[str]
    takes: ClassVar[str]

    @abstractmethod
    def reasons(self, values: Any, taxonomy: Taxonomy, nodes: Sequence[int]) -> list[str]:
        """What it did at some nodes with the values of one document, and why: a short sentence each, without its end."""

    @abstractmethod
    def problem(self) -> str | None:
        """What is wrong with the values of this rule, as a sentence without its end; None if nothing is."""

    def state(self) -> dict[str, Any]:
        """Plain values from which the same rule can be made; an infinite threshold is None, which JSON can hold."""
        return {field.name: _to_plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_state(cls, values: dict[str, Any]) -> Self:
        """Make a rule from its state."""
        rule = cls(**{name: _from_plain(name, value) for name, value in values.items()})
        if problem := rule.problem():
            raise ModelError(f"{problem}; train the model again.")
        return rule

    def refuse_problems(self) -> None:
        """Refuse settings that this kind of rule does not take."""
        if problem := self.problem():
            raise InputError(f"{problem}.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and self.kind == other.kind and self.state() == other.state()

    __hash__ = None  # type: ignore[assignment]


class LearntRule(Rule):
    """A rule whose fields are settings, and what was learnt; the latter is None until then."""

    __slots__ = ()

    @property
    def is_learnt(self) -> bool:
        """Whether there is something to decide with."""
        return all(getattr(self, name) is not None for name in self._learnt_names())

    def forget(self) -> Self:
        """The same settings, with nothing learnt."""
        return replace(self, **dict.fromkeys(self._learnt_names()))  # type: ignore[type-var]

    def _learnt_names(self) -> list[str]:
        return [field.name for field in fields(self) if field.default is None]  # type: ignore[arg-type]

    def refuse_unlearnt(self, learnt: object) -> None:
        """Refuse to decide before there is anything to decide with."""
        if learnt is None:
            name = type(self).__name__
            raise InputError(f"this {name} has learnt nothing yet; use what {name}().learn(scores, Y, taxonomy) gives.")
        self.refuse_problems()


def about_over(over: object) -> str | None:
    """What is wrong with `over`."""
    fits = isinstance(over, str) and over in ("own", "nodes")
    return None if fits else f"over is {over!r}, not 'own' or 'nodes'"


def about_flag(name: str, value: object) -> str | None:
    """What is wrong with a yes or no."""
    return None if isinstance(value, (bool, np.bool_)) else f"{name} is {value!r}, not true or false"


def about_number(name: str, value: Any, least: float, most: float) -> str | None:
    """What is wrong with a number."""
    fits = _is_number(value) and least <= _as_float(value) <= most
    return None if fits else f"{name} is {value!r}, not {_a_number(least, most)}"


def about_count(name: str, value: Any) -> str | None:
    """What is wrong with a number of things, of which there must be one at least."""
    fits = _is_number(value) and value >= 1 and isinstance(value, (int, np.integer))
    return None if fits else f"{name} is {value!r}, not a whole number of at least 1"


def about_numbers(name: str, values: Any, least: float, most: float) -> str | None:
    """What is wrong with a list of numbers."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return f"{name} are not numbers"
    if array.ndim != 1:
        return f"{name} are not one list of numbers"
    outside = array[~((array >= least) & (array <= most))]
    return f"{outside[0]} is among {name}, and is not {_a_number(least, most)}" if outside.size else None


def _a_number(least: float, most: float) -> str:
    if least <= -LARGEST:
        return "a finite number"
    return f"a number from {least:g} upwards" if most >= LARGEST else f"a number from {least:g} to {most:g}"


def _as_float(value: Any) -> float:
    """A number as a float; one beyond all floats is infinite."""
    try:
        return float(value)
    except OverflowError:
        return np.inf


def frozen(array: Floats) -> Floats:
    """The same array, which nobody can write to any more."""
    array.setflags(write=False)
    return array


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _to_plain(value: Any) -> Any:
    if isinstance(value, (list, tuple, np.ndarray)):
        return [None if number == np.inf else number for number in np.asarray(value, dtype=np.float64).tolist()]
    return value.item() if isinstance(value, np.generic) else value


def _from_plain(name: str, value: Any) -> Any:
    if not isinstance(value, list):
        return value
    # bool is a kind of int, and JSON's whole numbers have no end
    if not all(number is None or (type(number) in (int, float) and abs(number) <= LARGEST) for number in value):
        raise ModelError(f"{name} are not all numbers; train the model again.")
    array = np.array([np.inf if number is None else number for number in value], dtype=np.float64)
    array.setflags(write=False)
    return array
