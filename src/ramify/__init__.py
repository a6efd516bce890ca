"""Ramify classifies text into a taxonomy.

>>> import ramify
>>> clf = ramify.TextClassifier(system="nb")
>>> clf = clf.fit(["the screen is dark", "my parcel is late"], ["tv/picture", "orders/delivery"])
>>> clf.predict(["where is my parcel"]).tolist()
['orders/delivery']
"""

from importlib.metadata import version

from ramify import datasets, decisions, errors, features, learners, metrics
from ramify.pipeline import TextClassifier, load
from ramify.taxonomy import LabelGraph, Taxonomy, read_taxonomy, write_taxonomy

__version__ = version("ramify")

__all__ = [
    "LabelGraph",
    "Taxonomy",
    "TextClassifier",
    "__version__",
    "datasets",
    "decisions",
    "errors",
    "features",
    "learners",
    "load",
    "metrics",
    "read_taxonomy",
    "write_taxonomy",
]
