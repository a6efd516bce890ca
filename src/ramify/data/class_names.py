"""Names of classes that a dataset of Hugging Face stores as numbers; ``datasets`` itself is not imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ramify.errors import DataError, suggest

NO_CLASS = -1  # how test sets without labels are published


def refuse_splits(dataset: Any) -> None:
    """Refuse several datasets in one object, such as a ``DatasetDict``: training on all would leave none to test on."""
    if isinstance(dataset, Mapping) and dataset and all(hasattr(part, "features") for part in dataset.values()):
        names = [str(name) for name in dataset]
        shown = ", ".join(map(repr, names[:10])) + (f" and {len(names) - 10:,} more" if len(names) > 10 else "")
        raise DataError(f"this is not one dataset but the splits {shown}; give one of them, such as dataset[{names[0]!r}].")


def class_names_of(dataset: Any, column: str) -> list[str] | None:
    """The names of the classes in a column, if its feature is a ``ClassLabel`` or a list of them; None for other columns."""
    refuse_splits(dataset)
    features = getattr(dataset, "features", None)
    if not isinstance(features, Mapping):
        return None
    if column not in features:
        known = ", ".join(map(repr, list(features)[:20]))
        raise DataError(f"the dataset has no column {column!r}; its columns are {known}.{suggest(column, features)}")
    feature = features[column]
    if isinstance(feature, list) and len(feature) == 1:  # one way to declare a list of classes
        feature = feature[0]
    names = getattr(getattr(feature, "feature", feature), "names", None)
    is_named = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
    return list(names) if is_named and names is not None else None


def name_classes(value: Any, names: list[str]) -> str | list[str] | None:
    """The name of a class given by its number, or of each of a list; None and -1 mean no label.

    >>> name_classes(1, ["tea", "tv"]), name_classes([1, 0], ["tea", "tv"]), name_classes(-1, ["tea", "tv"])
    ('tv', ['tv', 'tea'], None)
    """
    if isinstance(value, (list, tuple)):
        return [name for each in value if isinstance(name := name_classes(each, names), str)]
    if value is None or value == NO_CLASS:
        return None
    try:
        number = int(value)
        if number == value and 0 <= number < len(names) and not isinstance(value, (bool, str)):
            return names[number]
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError(f"class {str(value)[:40]!r} is not a number from 0 to {len(names) - 1}; correct the labels.")
