"""How many bytes a value has, as far as it consists of arrays and texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse


def size_of(value: Any) -> int:
    """Bytes of the arrays and texts in a value, and a few for everything else, such as what was placed before.

    >>> import numpy as np
    >>> size_of({"a": np.zeros(10), "b": [np.zeros(5, dtype=np.float32), 1]})
    110
    """
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, (str, bytes)):
        return len(value)
    if issparse(value):
        return sum(int(getattr(value, part).nbytes) for part in ("data", "indices", "indptr") if hasattr(value, part))
    if is_dataclass(value) and not isinstance(value, type) and not hasattr(value, "reference"):
        return sum(size_of(getattr(value, field.name)) for field in fields(value) if field.compare)
    if isinstance(value, Mapping):
        return sum(size_of(key) + size_of(each) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return sum(size_of(each) for each in value)
    return 8
