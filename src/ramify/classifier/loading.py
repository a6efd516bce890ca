"""Load a classifier from a model directory.

Only the parts listed here can be made from a file, and each checks its values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ramify import learners
from ramify.calibration import CALIBRATIONS
from ramify.classifier.class_columns import check_classes
from ramify.classifier.fitting import RULES, TrainingData, refuse_misfit
from ramify.classifier.guarantees import Guarantee
from ramify.classifier.text_classifier import TextClassifier
from ramify.decisions import CONFORMAL_KINDS, FittableRule
from ramify.errors import ModelError, RamifyError, suggest
from ramify.features import FeatureUnion, TermSelector, Transformer, Vectorizer, Vectors
from ramify.formatting import cut
from ramify.metrics import Report
from ramify.persistence import StoredModel, read_model
from ramify.systems import SYSTEMS
from ramify.taxonomy import LabelFormat, Taxonomy

LONGEST = 900  # characters of a message, which may quote what a file holds
VECTORIZERS: dict[str, Any] = {part.kind: part for part in (Vectorizer, FeatureUnion, Vectors, Transformer)}
_NAIVE_BAYES = (learners.MultinomialNaiveBayes, learners.ShrinkageNaiveBayes, learners.PachinkoNaiveBayes)
_LINEAR = (learners.OneVsRestSVM, learners.OneVsRestLogistic, learners.RecursiveSVM, learners.RecursiveLogistic)
_STRUCTURED = (learners.TopDownSVM, learners.HierarchicalSVM, learners.OrthogonalTransfer, learners.BayesianLogistic)
_OTHERS = (learners.PathSVM, learners.Ensemble, learners.NodeClassifiers, learners.AdaBoostMH, learners.TreeBoostMH)
_FOREIGN = (learners.ScikitLearner,)
LEARNERS: dict[str, Any] = {part.kind: part for part in (*_NAIVE_BAYES, *_LINEAR, *_STRUCTURED, *_OTHERS, *_FOREIGN)}


def load(path: str | Path, *, private: bool = False) -> TextClassifier:
    """Load a model directory; nothing in it is run, and what does not fit raises a :class:`~ramify.errors.ModelError`.

    private: read all weights into memory, so that the model stays as it is even if its files are overwritten. Otherwise they
    are mapped: the system loads what is used, and processes share it.
    """
    try:
        stored = read_model(path, private)
    except ModelError as error:
        raise ModelError(cut(str(error), LONGEST)) from None
    try:
        return from_stored(stored)
    except RamifyError as error:
        raise ModelError(cut(f"{path}: {error}", LONGEST)) from None
    except MemoryError:
        raise ModelError(f"{path} needs more memory than there is; load it where there is more.") from None
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        advice = "train the model again, or restore it from a copy"
        raise ModelError(f"{path} holds parts that do not fit together ({cut(str(error), LONGEST // 4)}); {advice}.") from None


def from_stored(stored: StoredModel) -> TextClassifier:
    """Make a classifier from the parts of a model directory."""
    about, features = stored.metadata, dict(stored.documents["features"])
    learner, decision = dict(about["learner"]), dict(about["decision"])
    if about["system"] not in SYSTEMS:
        hint = suggest(str(about["system"]), SYSTEMS)
        raise ModelError(f"system {about['system']!r} is unknown; the systems are {', '.join(SYSTEMS)}.{hint}")
    made = TextClassifier(about["system"])
    made.taxonomy_ = made.taxonomy = Taxonomy.from_state(stored.documents["taxonomy"])
    made.vectorizer_ = _part(VECTORIZERS, features).from_state(features, _arrays_of(stored, "features"))
    kind = _part(LEARNERS, learner)
    shards = {"shards": stored.shards} if stored.shards else {}
    if shards and not kind.supports_shards:
        raise ModelError("the model has shards, and its learner takes none; train the model again.")
    made.learner_ = kind.from_state(made.taxonomy_, learner, _arrays_of(stored, "learner"), **shards)
    made.decision_ = _part(RULES, decision).from_state(decision)
    refuse_misfit(made.decision_, made.taxonomy_)
    if about.get("calibration") is not None:
        kind = _part(CALIBRATIONS, dict(about["calibration"]))
        made.calibration_ = kind.from_arrays(_arrays_of(stored, "calibration"), made.taxonomy_)
    made.calibrate, made.keep_back = about["confidence"]["calibrate"], about["confidence"]["keep_back"]
    if not isinstance(made.calibrate, bool) or not isinstance(made.keep_back, float) or not 0 <= made.keep_back < 1:
        raise ModelError("the manifest does not say whether probabilities are calibrated; train the model again.")
    made.guarantee_ = _guarantee(stored, made.taxonomy_)
    made.form_ = LabelFormat.from_state(about["labels"], made.taxonomy_)
    made.figures_ = _checked_figures(about)
    made.classes = about.get("classes", "nodes")
    check_classes(made.classes)
    made.sizes_ = sizes = stored.arrays.get("figures.sizes")
    if sizes is not None and (sizes.dtype != np.int64 or sizes.shape != (len(made.taxonomy_),) or np.any(sizes < 0)):
        raise ModelError("the numbers of documents do not fit the taxonomy; train the model again.")
    try:
        report = stored.documents.get("report")
        made.report_ = None if report is None else Report.from_dict(report).as_dict()
    except (TypeError, KeyError, ValueError, AttributeError):
        raise ModelError("the report is not one that Ramify writes; train the model again.") from None
    training_data = _arrays_of(stored, "training_data")
    made.keep_training_data = made.learner_.keeps_warm_start = bool(training_data)
    if training_data:
        made.training_data_ = TrainingData.from_arrays(training_data, made.vectorizer_.n_features_out, len(made.taxonomy_))
        if made.learner_.n_warm_start_documents > len(made.training_data_):
            raise ModelError("the dual variables belong to documents that the model does not have; train the model again.")
    # parameters as well as parts, so that a clone trains the same
    rule = made.decision_
    made.features, made.decision = clone(made.vectorizer_), rule.unfitted() if isinstance(rule, FittableRule) else rule
    made.learner = clone(made.learner_).set_params(taxonomy=None)
    if (settings := about.get("selector")) is not None:
        made.selector = TermSelector(**settings)
        clone(made.selector).set_params(taxonomy=Taxonomy.flat(["any"])).check_settings()
    if made.vectorizer_.n_features_out != made.learner_.n_features_in_:
        raise ModelError("features and weights do not fit together; train the model again.")
    return made


def _guarantee(stored: StoredModel, taxonomy: Taxonomy) -> Guarantee | None:
    about = stored.metadata.get("guarantee")
    if about is None:
        return None
    values = dict(about)
    kind, documents, is_proven = _part(CONFORMAL_KINDS, values), values["documents"], values["is_proven"]
    if not isinstance(is_proven, bool) or isinstance(documents, bool) or not isinstance(documents, int) or documents < 0:
        raise ModelError("the guarantee of the model is not what Ramify writes; train the model again.")
    return Guarantee(kind.from_arrays(_arrays_of(stored, "guarantee"), taxonomy), documents, is_proven)


def _checked_figures(about: dict[str, Any]) -> dict[str, Any]:
    figures = about["figures"]
    if not isinstance(figures, dict) or not isinstance(figures.get("evaluation", {}), dict):
        raise ModelError("the training figures are not ones that Ramify writes; train the model again.")
    if not isinstance(figures.get("documents"), int):
        raise ModelError("the number of training documents is missing; train the model again.")
    numbers = [*figures.get("evaluation", {}).values(), figures.get("tested_on", 0)]
    if not all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        raise ModelError("the figures of the test are not all numbers; train the model again.")
    columns = figures.get("columns", {})
    labels, texts = columns.get("label", []), columns.get("text", "")
    texts = [texts] if isinstance(texts, str) else texts  # one column, or several
    others = columns.get("columns", [])
    are_lists = all(isinstance(each, list) for each in (texts, labels, others))
    names = [*texts, *labels, *others, about["ramify"]] if are_lists else [None]
    if not all(isinstance(name, str) for name in names):
        raise ModelError("the manifest is not one that Ramify writes; train the model again.")
    return figures


def _part(known: dict[str, Any], values: dict[str, Any]) -> Any:
    kind = values.pop("kind", None)
    if kind not in known:
        has = f"this Ramify does not have; it has {', '.join(known)}"
        raise ModelError(f"the model names a part {kind!r} that {has}. Train the model again.")
    return known[kind]


def _arrays_of(stored: StoredModel, part: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(f"{part}."): array for name, array in stored.arrays.items() if name.startswith(f"{part}.")}
