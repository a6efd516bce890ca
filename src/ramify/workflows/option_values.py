"""What options hold as text: a name with parameters, lengths of n-grams, and lists of stop words."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ramify.errors import InputError, suggest
from ramify.features.text_analysis import STOP_LISTS
from ramify.persistence.paths import read_at_most

DEEPEST = 20  # lists and objects in one another, in the value of a parameter
MAX_BYTES = 1 << 28  # of a file of stop words


def parse_system(given: str) -> tuple[str, dict[str, Any]]:
    """The name of a system, and the parameters after a colon.

    >>> parse_system("nb:alpha=0.1,fit_prior=false")
    ('nb', {'alpha': 0.1, 'fit_prior': False})
    """
    name, pairs = split_params(given)
    return name, parse_params(pairs, f"a parameter of --system {name}")


def split_params(given: str) -> tuple[str, list[str]]:
    """The name of a system or a rule, and the parameters after a colon.

    >>> split_params("isotonic:penalty=[1,2],threshold=0.4")
    ('isotonic', ['penalty=[1,2]', 'threshold=0.4'])
    """
    name, colon, params = given.partition(":")
    # a comma separates parameters where a name and an equals sign follow, and otherwise belongs to a value
    return name.strip(), re.split(r",(?=\s*\w+\s*=)", params) if colon else []


def parse_params(pairs: Sequence[str], option: str = "--param") -> dict[str, Any]:
    """``alpha=0.1`` and the like; values are JSON or plain words.

    >>> parse_params(["alpha=0.1", "mode=fast"])
    {'alpha': 0.1, 'mode': 'fast'}
    """
    params: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{option} is {pair!r}; give a name and a value, such as alpha=0.1.")
        try:
            found = json.loads(value)
            if _is_deeper(found, DEEPEST):
                raise RecursionError
        except RecursionError:
            raise InputError(f"{option} {name.strip()} has too many brackets in one another; give at most {DEEPEST}.") from None
        except ValueError:
            found = value
        params[name.strip()] = found
    return params


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are in one another on more than so many levels."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(inner) and (levels == 0 or any(_is_deeper(each, levels - 1) for each in inner))


def parse_characters(given: str) -> tuple[tuple[int, int] | None, float]:
    """The shortest and longest n-grams of characters, None for "none", and their weight beside words.

    >>> parse_characters("3-4"), parse_characters("5:0.5"), parse_characters("none")
    (((3, 4), 1.0), ((5, 5), 0.5), (None, 1.0))
    """
    if given == "none":
        return None, 1.0
    found = re.fullmatch(r"([1-9]\d?)(?:-([1-9]\d?))?(?::(\d{1,3}(?:\.\d{1,9})?))?", given)
    lengths, weight = ((int(found[1]), int(found[2] or found[1])), float(found[3] or 1)) if found else ((1, 0), 1.0)
    if lengths[0] > lengths[1] or weight == 0:
        allowed = "the lengths of n-grams such as 3-4, with a weight beside words if need be, such as 3-4:0.5, or none"
        raise InputError(f"--characters is {given!r}; give {allowed}.")
    return lengths, weight


def read_stop_words(given: str | Path | None) -> str | list[str] | None:
    """The name of a stop list, or the words of a file."""
    if given is None or given in STOP_LISTS:
        return given
    try:
        text = read_at_most(Path(given), MAX_BYTES).decode()
        return [line.strip() for line in text.splitlines() if line.strip()]
    except (OSError, ValueError):
        names = " or ".join(repr(name) for name in STOP_LISTS)
        raise InputError(
            f"--stop-words is {given!r}; give {names}, or a text file with one word per line.{suggest(str(given), STOP_LISTS)}"
        ) from None
