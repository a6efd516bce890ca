"""Ramify's models in MLflow: saved, logged and loaded as their own flavour, and served as a Python function.

An MLflow model holds the same model directory that :meth:`~ramify.TextClassifier.save` writes, so nothing in it is a pickle.
As a Python function it takes a column of texts, and gives the label of each and its probability. Needs ``ramify[mlflow]``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ramify.arguments import as_path, check_kind, describe, entries
from ramify.classifier.loading import load
from ramify.classifier.text_classifier import TextClassifier
from ramify.errors import InputError
from ramify.persistence import refuse_existing
from ramify.workflows.predict_stream import LABEL_SEPARATOR
from ramify.workflows.predicting import predict

FLAVOUR, MODEL = "ramify", "model"
TEXT, LABEL, PROBABILITY = "text", "label", "probability"
EXAMPLE = ("my parcel has not arrived", "the screen of my phone is cracked")
NEEDED = "{name} is not installed; install it with: pip install 'ramify[mlflow]'."


def save_model(
    classifier: TextClassifier,
    path: str | Path,
    mlflow_model: Any = None,
    *,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Sequence[str] | None = None,
    **settings: Any,
) -> None:
    """Save a classifier as an MLflow model; refuses a directory that exists.

    signature, input_example: as in MLflow (default: texts in, labels with probabilities out, and two texts).
    pip_requirements: of the environment it is served in (default: this version of Ramify). settings: for
    ``mlflow.pyfunc.save_model``.
    """
    check_kind(classifier, TextClassifier, "classifier", "a TextClassifier")
    mlflow, pandas = _module("mlflow"), _module("pandas")
    refuse_existing(as_path(path, "path"), overwrite=False) if mlflow_model is None else None
    made = _module("mlflow.models").Model() if mlflow_model is None else mlflow_model
    made.add_flavor(FLAVOUR, ramify_version=version("ramify"), system=classifier.system, data=f"data/{MODEL}")
    settings |= {"signature": signature or new_signature(), "mlflow_model": made}
    settings["input_example"] = pandas.DataFrame({TEXT: list(EXAMPLE)}) if input_example is None else input_example
    settings["pip_requirements"] = list(pip_requirements or [f"ramify=={version('ramify')}", "pandas"])
    with tempfile.TemporaryDirectory() as folder:
        classifier.save(Path(folder) / MODEL)
        mlflow.pyfunc.save_model(str(path), loader_module=__name__, data_path=str(Path(folder) / MODEL), **settings)


def log_model(classifier: TextClassifier, name: str = MODEL, **settings: Any) -> Any:
    """Log a classifier as a model of the current run, and give MLflow's information on it.

    settings: as for :func:`save_model`, and ``registered_model_name`` to register it.
    """
    check_kind(classifier, TextClassifier, "classifier", "a TextClassifier")
    model = _module("mlflow.models").Model
    return model.log(artifact_path=None, name=name, flavor=_module(__name__), classifier=classifier, **settings)


def load_model(model_uri: str | Path) -> TextClassifier:
    """Load a classifier from the URI of an MLflow model, such as ``runs:/<run>/model``, or from its directory."""
    place = Path(_module("mlflow.artifacts").download_artifacts(artifact_uri=str(model_uri)))
    flavours = _module("mlflow.models").Model.load(str(place)).flavors
    if FLAVOUR not in flavours:
        raise InputError(f"{model_uri} is a model of {', '.join(flavours)}, not of ramify; load it with their functions.")
    return load(place / flavours[FLAVOUR]["data"])


def new_signature() -> Any:
    """The signature of every model: a column of texts in; a label and a probability out."""
    types, models = _module("mlflow.types"), _module("mlflow.models")
    kinds, column, schema = types.DataType, types.ColSpec, types.Schema
    outputs = schema([column(kinds.string, LABEL), column(kinds.double, PROBABILITY)])
    return models.ModelSignature(schema([column(kinds.string, TEXT)]), outputs)


class TextFunction:
    """A classifier as MLflow's Python function."""

    def __init__(self, classifier: TextClassifier) -> None:
        self.classifier = classifier

    def predict(self, model_input: Any, params: dict[str, Any] | None = None) -> Any:
        """Labels and probabilities, as a data frame. params: fields of :class:`~ramify.workflows.PredictOptions`.

        A text with multiple labels has them joined by `` | ``, with the lowest of their probabilities; without a label, an
        empty one with the probability 0.
        """
        from ramify.workflows.functions import predict_options

        found = predict(self.classifier, texts_of(model_input), predict_options(params or {}))
        labels = [LABEL_SEPARATOR.join(row) for row in found.labels]
        lowest = [min((p for _, p in each.labels), default=0.0) for each in found.predictions]
        return _module("pandas").DataFrame({LABEL: labels, PROBABILITY: lowest})


def texts_of(given: Any) -> list[Any]:
    """The texts of a data frame with one column, or with one called "text"; or of a list, series or array."""
    if hasattr(given, "columns"):
        names = [str(name) for name in given.columns]
        if TEXT not in names and len(names) != 1:
            raise InputError(f"the columns are {', '.join(names) or 'missing'}; give one column, {TEXT!r}, with the texts.")
        return list(given[TEXT] if TEXT in names else given.iloc[:, 0])
    texts = list(entries(given, "texts"))
    if any(isinstance(text, dict) for text in texts):
        raise InputError(f"a text is {describe(texts[0])}; give texts, or a data frame with the column {TEXT!r}.")
    return texts


def _load_pyfunc(path: str) -> TextFunction:
    """What MLflow calls to load a model as a Python function. path: of the model directory."""
    return TextFunction(load(path))


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(NEEDED.format(name=error.name or name)) from None
