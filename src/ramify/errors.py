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

SHORTEST = 3  # letters of a word to which similar ones are searched


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

    First those that differ in case, hyphens, underscores and spaces only; then those one letter apart; then similar ones.

    >>> suggest("aple", ["apple", "pear"]), suggest("HR_SVM", ["hsvm", "hr-svm"]), suggest("svn", ["svm", "lr"])
    (" Did you mean 'apple'?", " Did you mean 'hr-svm'?", " Did you mean 'svm'?")
    """
    bare, names = _bare(word), {name: _bare(name) for name in known if isinstance(name, str)}
    near = [name for name, its in names.items() if its == bare and bare]
    near.sort(key=lambda name: name.casefold().replace("_", "-") != word.casefold().replace("_", "-"))
    if not near and len(bare) >= SHORTEST:
        near = [name for name, its in names.items() if _is_one_edit(bare, its)]
        similar = get_close_matches(bare, set(names.values()), n=2, cutoff=0.75)
        near += [name for each in similar for name, its in names.items() if its == each and name not in near]
    return f" Did you mean {' or '.join(map(repr, near[:2]))}?" if near else ""


def _bare(word: str) -> str:
    """A word without what people vary when they type it."""
    return word.casefold().replace("-", "").replace("_", "").replace(" ", "")


def _is_one_edit(a: str, b: str) -> bool:
    """Whether two words differ by one letter that was added, left out, replaced, or swapped with the next.

    >>> _is_one_edit("svn", "svm"), _is_one_edit("tpo", "top"), _is_one_edit("lr", "nb")
    (True, True, False)
    """
    if abs(len(a) - len(b)) > 1:
        return False
    i = next((k for k, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    is_swapped = a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :]
    return is_swapped or a[i + 1 :] in (b[i + 1 :], b[i:]) or a[i:] == b[i + 1 :]


def first_sentence(error: Exception) -> str:
    """What another library complains about, in one line and without its advice on its own classes.

    >>> first_sentence(ValueError("Input X contains NaN.\\nSome class does not accept it."))
    'Input X contains NaN.'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    advice = next((line for line in lines[1:] if line.startswith("Reshape")), "")
    return f"{lines[0] if lines else type(error).__name__} {advice}".strip()[:300]
