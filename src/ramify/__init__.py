"""Ramify classifies text into a taxonomy.

>>> import ramify
>>> clf = ramify.TextClassifier(system="nb")
>>> clf = clf.fit(["the screen is dark", "my parcel is late"], ["tv/picture", "orders/delivery"])
>>> clf.predict(["where is my parcel"]).tolist()
['orders/delivery']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ramify import data, decisions, errors, features, learners, metrics
    from ramify.classifier import TextClassifier, load
    from ramify.taxonomy import LabelGraph, Taxonomy, read_taxonomy, write_taxonomy

    __version__: str

__all__ = [
    "LabelGraph",
    "Taxonomy",
    "TextClassifier",
    "__version__",
    "data",
    "decisions",
    "errors",
    "features",
    "learners",
    "load",
    "metrics",
    "read_taxonomy",
    "write_taxonomy",
]

_ROOMS = ("data", "decisions", "errors", "features", "learners", "metrics")
_HOMES = dict.fromkeys(("TextClassifier", "load"), "classifier")
_HOMES |= dict.fromkeys(("LabelGraph", "Taxonomy", "read_taxonomy", "write_taxonomy"), "taxonomy")


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: the command line starts at once, and can be interrupted at once."""
    if name == "__version__":
        return import_module("importlib.metadata").version("ramify")
    if name in _ROOMS:
        return import_module(f"ramify.{name}")
    if name in _HOMES:
        return getattr(import_module(f"ramify.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'ramify' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
