"""Arguments checked by their type hints: functions and option classes of the Python API refuse a wrong type in one sentence.

What a hint says is all that is checked, so that an option added later is checked, too. Ranges, known words, and entries of a
``list`` are left to those who use them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from ramify.arguments import as_path, describe, is_valid_text
from ramify.errors import InputError

BITS = 63  # of a whole number that kernels and generators of random numbers can take
WORDS: dict[Any, str] = {
    bool: "True or False", int: "a whole number", float: "a number", str: "a string", NoneType: "None", Path: "a path",
    dict: "a dictionary", Mapping: "a dictionary", list: "a list", tuple: "a list", Sequence: "a list", Iterable: "a list",
    Callable: "a function",
    np.ndarray: "an array",
}  # fmt: skip
Given = ParamSpec("Given")
Result = TypeVar("Result")


def check_fields(options: Any) -> None:
    """Refuse a value of a wrong type in a field of a dataclass; to be called when it is made."""
    kind: Any = type(options)
    hints = _hints(kind)
    for each in fields(options):
        check_hint(getattr(options, each.name), hints[each.name], each.name)


def checks_types(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Refuse a call with an argument of a wrong type.

    >>> checks_types(check_fields)(1)
    Traceback (most recent call last):
    ...
    TypeError: must be called with a dataclass type or instance
    """
    parameters = inspect.signature(function)

    @wraps(function)
    def checked(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        hints = _hints(function)
        for name, value in parameters.bind(*args, **kwargs).arguments.items():
            check_hint(value, hints.get(name, Any), name)
        return function(*args, **kwargs)

    return checked


def check_hint(value: Any, hint: Any, what: str) -> None:
    """Refuse a value that is not of a type.

    >>> check_hint("1", int | None, "shards")
    Traceback (most recent call last):
    ...
    ramify.errors.InputError: shards is '1'; give a whole number, or None.
    """
    if not _fits(value, hint):
        raise InputError(f"{what} is {describe(value)}; give {_allowed(hint)}.")
    alternatives = _alternatives(hint)
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > BITS:
        raise InputError(f"{what} is {describe(value)}; give a number of at most {BITS} bits.")
    if Path in alternatives and isinstance(value, (str, Path)):
        as_path(value, what)
    elif isinstance(value, str) and not is_valid_text(value):
        raise InputError(f"{what} is {describe(value)}, with a lone surrogate, which is not valid text; give another string.")
    _check_entries(value, alternatives, what)


def _check_entries(value: Any, alternatives: tuple[Any, ...], what: str) -> None:
    for hint in alternatives:
        origin, inner = get_origin(hint), [each for each in get_args(hint) if each is not ...]
        if origin in (Sequence, tuple) and isinstance(value, (list, tuple)):
            for number, entry in enumerate(value, 1):
                check_hint(entry, inner[0], f"entry {number} of {what}")
        elif origin is Mapping and isinstance(value, Mapping):
            for key, entry in value.items():
                check_hint(key, inner[0], f"a key of {what}")
                check_hint(entry, inner[1], f"{what}[{describe(key)}]")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, without its entries."""
    return any(_fits_one(value, choice) for choice in _alternatives(hint))


def _fits_one(value: Any, hint: Any) -> bool:
    origin = get_origin(hint) or hint
    if origin is Literal:
        return any(type(value) is type(choice) for choice in get_args(hint))
    if origin is bool:
        return isinstance(value, (bool, np.bool_))
    if origin in (int, float):
        kind: Any = Integral if origin is int else Real
        return not isinstance(value, bool) and isinstance(value, kind)
    if origin in (Sequence, tuple):
        return isinstance(value, (list, tuple))
    if origin is Callable:
        return callable(value)
    if origin is Iterable and isinstance(value, (str, bytes)):
        return False
    return origin is Any or not isinstance(origin, type) or isinstance(value, origin)


def _allowed(hint: Any) -> str:
    """What to give, for a message."""
    kinds = [choice for choice in _alternatives(hint) if not (choice is str and Path in _alternatives(hint))]
    words = list(dict.fromkeys(word for kind in kinds for word in _words(kind)))
    *others, last = [word for word in words if word != "None"] or words
    listed = f"{', '.join(others)} or {last}" if others else last
    return f"{listed}, or None" if "None" in words and listed != "None" else listed


def _words(kind: Any) -> list[str]:
    origin = get_origin(kind) or kind
    if origin is Literal:
        return [repr(choice) for choice in get_args(kind)]
    name = getattr(origin, "__name__", str(origin))
    return [WORDS.get(origin) or f"{'an' if name[0] in 'AEIO' else 'a'} {name}"]


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """The members of a union, or the one type."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


@cache
def _hints(described: Any) -> dict[str, Any]:
    return get_type_hints(described)
