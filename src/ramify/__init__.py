"""Ramify classifies text into a taxonomy.

>>> import ramify
>>> clf = ramify.TextClassifier(system="nb")
>>> clf = clf.fit(["the screen is dark", "my parcel is late"], ["tv/picture", "orders/delivery"])
>>> clf.predict(["where is my parcel"]).tolist()
['orders/delivery']
"""

from typing import TYPE_CHECKING, Any

from ramify.lazy import lazy_names

if TYPE_CHECKING:
    from ramify import data, decisions, errors, features, learners, metrics, mlflow
    from ramify.classifier import TextClassifier, load
    from ramify.taxonomy import LabelGraph, Taxonomy, read_taxonomy, write_taxonomy
    from ramify.workflows import FeatureOptions, PredictOptions, ReadOptions, TrainOptions, TuneOptions
    from ramify.workflows.functions import audit, compare, evaluate, explain, predict, train, tune, update

    __version__: str

__all__ = [
    "FeatureOptions",
    "LabelGraph",
    "PredictOptions",
    "ReadOptions",
    "Taxonomy",
    "TextClassifier",
    "TrainOptions",
    "TuneOptions",
    "__version__",
    "audit",
    "compare",
    "data",
    "decisions",
    "errors",
    "evaluate",
    "explain",
    "features",
    "learners",
    "load",
    "metrics",
    "mlflow",
    "predict",
    "read_taxonomy",
    "train",
    "tune",
    "update",
    "write_taxonomy",
]

_lazy, __dir__ = lazy_names("ramify")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("ramify")
    return _lazy(name)
