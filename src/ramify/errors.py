"""Every exception that Ramify raises on purpose.

A message says what was found, what is allowed and what to do, in one sentence or two; the edges (command line, server)
print it as it is. Each class is also a :class:`ValueError`, so that scikit-learn and plain Python code treat it as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "DataError",
    "InputError",
    "LabelError",
    "ModelError",
    "RamifyError",
    "TaxonomyError",
    "first_sentence",
    "suggest",
]

SHORT = 3  # letters of a word in which one wrong letter makes a large difference


class RamifyError(ValueError):
    """Something that the user can put right; the message says how."""


class InputError(RamifyError):
    """An argument, option or array is not what is needed."""


class TaxonomyError(RamifyError):
    """A taxonomy is malformed, or not of the kind that is needed."""


class LabelError(RamifyError):
    """A label is not in the taxonomy, or the labels cannot be used for training."""


class DataError(RamifyError):
    """A file of documents cannot be read."""


class ModelError(RamifyError):
    """A model directory cannot be written, or must not be trusted."""


def suggest(word: str, known: Iterable[str]) -> str:
    """End a message with the known words nearest to a mistyped one, if any is near.

    >>> suggest("aple", ["apple", "pear"])
    " Did you mean 'apple'?"
    >>> suggest("SVM", ["svm", "lr"])
    " Did you mean 'svm'?"
    """
    by_folded = {each.casefold(): each for each in known}
    cutoff = 0.75 if len(word) > SHORT else 0.6  # one wrong letter of three is a third of the word
    near = [by_folded[each] for each in get_close_matches(word.casefold(), list(by_folded), n=2, cutoff=cutoff)]
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def first_sentence(error: Exception) -> str:
    """What another library complains about, in one line and without its advice on its own classes.

    >>> first_sentence(ValueError("Input X contains NaN.\\nSome class does not accept it."))
    'Input X contains NaN.'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    advice = next((line for line in lines[1:] if line.startswith("Reshape")), "")
    return f"{lines[0] if lines else type(error).__name__} {advice}".strip()[:300]
