"""What callers of the Python API give: a wrong type ends in one sentence here, not deep inside.

Called where an argument becomes Ramify's own form, and nowhere behind it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sized
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.errors import InputError, RamifyError
from ramify.formatting import cut

SHOWN = 60  # characters of a value in a message
REAL = "biuf"  # kinds of dtype: bool, integer, unsigned, float


def describe(value: Any) -> str:
    """What was found, for a message: a plain value as it is, anything else by its type.

    >>> describe(None), describe("a"), describe([1, 2]), describe(dict)
    ('None', "'a'", 'a list of length 2', 'the class dict')
    """
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        return cut(repr(value), SHOWN)
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    name = type(value).__name__
    length = f" of length {len(value)}" if isinstance(value, (list, tuple, set, dict)) else ""
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}{length}"


def check_kind(value: Any, kind: type | tuple[type, ...], what: str, allowed: str) -> None:
    """Refuse a value of another type. allowed: what to give, for the message."""
    if not isinstance(value, kind):
        raise InputError(f"{what} is {describe(value)}; give {allowed}.")


def check_flag(value: Any, what: str) -> None:
    """Refuse what is not a yes or no."""
    check_kind(value, (bool, np.bool_), what, "True or False")


def check_count(value: Any, what: str, least: int = 1) -> None:
    """Refuse what is not a whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{what} is {describe(value)}; give a whole number of at least {least}.")


def check_text(value: Any, what: str) -> None:
    """Refuse what is neither None nor a text that can be written as UTF-8."""
    if value is not None:
        check_kind(value, str, what, "a string, or None")
        if not is_valid_text(value):
            raise InputError(f"{what} is {describe(value)}, a lone surrogate, which is not valid text; give another string.")


def is_valid_text(text: str) -> bool:
    r"""Whether a text can be written as UTF-8: it has no lone surrogate.

    >>> is_valid_text("größer"), is_valid_text("\ud800")
    (True, False)
    """
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def as_path(given: Any, what: str) -> Path:
    """The path of a file or directory."""
    try:
        path = Path(given)
        is_name = b"\0" not in os.fsencode(path)
    except TypeError:
        raise InputError(f"{what} is {describe(given)}; give a path, as a string or a pathlib.Path.") from None
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise InputError(f"{what} is {describe(str(path))}, which no file can be called; give another path.")
    return path


def entries(given: Any, what: str, error: type[RamifyError] = InputError) -> Iterable[Any]:
    """What holds any number of values, as it is; refuses one string, and what cannot be iterated over."""
    if isinstance(given, (str, bytes)):
        raise error(f"a list of {what} is needed, not one string; put it in brackets.")
    try:
        iter(given)  # also refuses an array without dimensions
    except TypeError:
        raise error(f"a list of {what} is needed, not {describe(given)}.") from None
    return given  # type: ignore[no-any-return]


def sized_entries(given: Any, what: str) -> Any:
    """The same with a known length; an iterator becomes a list."""
    checked = entries(given, what)
    return checked if isinstance(checked, Sized) else list(checked)


def pairs(given: Any, what: str, form: str, error: type[RamifyError] = InputError) -> Iterator[tuple[Any, Any]]:
    """Pairs of values. form: of a pair, for the message.

    >>> list(pairs([("a", "b"), "cd"], "edges", "(child, parent)"))
    Traceback (most recent call last):
    ...
    ramify.errors.InputError: entry 2 of the edges is 'cd'; give each as a pair, (child, parent).
    """
    for number, entry in enumerate(entries(given, what, error), 1):
        try:
            values = [] if isinstance(entry, (str, bytes)) else list(entry)
        except TypeError:
            values = []
        if len(values) != 2:
            raise error(f"entry {number} of the {what} is {describe(entry)}; give each as a pair, {form}.")
        yield values[0], values[1]


def as_numbers(given: Any, what: str, advice: str, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """An array of real numbers, not copied; objects become float64. advice: what to give. shape: that it must have."""
    try:
        array = np.asarray(given)
    except ValueError:
        raise InputError(f"the {what} are rows of different lengths; {advice}.") from None
    if array.dtype.kind == "O" and given is not None:
        with suppress(TypeError, ValueError, OverflowError):
            array = array.astype(np.float64)
    if array.dtype.kind not in REAL:
        found = "complex numbers, not real ones" if array.dtype.kind == "c" else "not numbers"
        raise InputError(f"the {what} are {found}; {advice}.")
    if shape is not None and array.shape != shape:
        raise InputError(f"the {what} have shape {array.shape}, not {shape}; {advice}.")
    return array


# ---- columns and data frames ------------------------------------------------------------------------------------------
# Those of pandas, polars and pyarrow are known by what they can do, so that none of these packages is imported.


def frame_columns(given: Any) -> list[Any] | None:
    """The names of the columns of a data frame or a table; None for anything else."""
    if len(getattr(given, "shape", ())) != 2 or not hasattr(given, "columns"):
        return None
    names = getattr(given, "column_names", None)  # of pyarrow, whose columns are arrays
    return list(given.columns if names is None else names)


def as_list(given: Any) -> Any:
    """A column of a data frame as a list; anything else as it is.

    >>> import polars
    >>> as_list(polars.Series(["a", None])), as_list("a")
    (['a', None], 'a')
    """
    for name in ("to_pylist", "to_list"):  # of pyarrow; of pandas and polars
        if callable(method := getattr(given, name, None)):
            return method()
    if not hasattr(given, "__iter__") and hasattr(given, "__array__") and np.asarray(given).ndim:
        return np.asarray(given)
    return given


def is_column(given: Any) -> bool:
    """Whether something is a column of a data frame."""
    return any(callable(getattr(given, name, None)) for name in ("to_pylist", "to_list"))


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one in a column: None, NaN, NaT or NA."""
    if value is None:
        return True
    if isinstance(value, (str, bytes, list, tuple, np.ndarray)):
        return False
    return type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, (float, np.floating)) and value != value)
