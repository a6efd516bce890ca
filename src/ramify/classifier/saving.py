"""The state of a classifier as the plain values and arrays of a model directory."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.errors import InputError
from ramify.persistence import ArrayFile, StoredModel

if TYPE_CHECKING:
    from ramify.classifier.text_classifier import TextClassifier

MOST_REPORTED = 20_000  # nodes of the report that a model keeps


def refuse_shards(learner: Any, system: str) -> None:
    """Refuse learners whose weights cannot be saved in shards."""
    if not learner.supports_shards:
        raise InputError(f"a model of system {system!r} cannot be saved in shards; svm, lr, hr-svm and hr-lr can.")


def to_stored(classifier: TextClassifier, shards: int | None = None) -> StoredModel:
    """The state of every part as the plain values and arrays of a model directory. shards: number of weight files."""
    learner, report = classifier.learner_, classifier.report_
    files: list[ArrayFile] = learner.shard_files()
    if shards is None:
        learner_values, learner_arrays = learner.state()
    else:
        refuse_shards(learner, classifier.system)
        if files:
            raise InputError(f"the model is in {len(files)} shards already, and stays so; leave out the number of shards.")
        learner_values, learner_arrays, files = learner.state_in_shards(shards)
    features, feature_arrays = classifier.vectorizer_.state()
    selector = {} if classifier.selector is None else classifier.selector.get_params()
    selector = {k: v.item() if isinstance(v, np.generic) else v for k, v in selector.items() if k != "taxonomy"}
    about: dict[str, Any] = {
        "ramify": version("ramify"),
        "system": classifier.system,
        "learner": {"kind": learner.kind, **learner_values},
        "selector": selector or None,
        "decision": {"kind": classifier.decision_.kind, **classifier.decision_.state()},
        "labels": classifier.form_.state(),
        "figures": classifier.figures_,
        "confidence": {"calibrate": bool(classifier.calibrate), "keep_back": float(classifier.keep_back)},
    }
    if classifier.classes != "nodes":
        about["classes"] = classifier.classes
    documents: dict[str, Any] = {"taxonomy": classifier.taxonomy_.state()}
    documents["features"] = {"kind": classifier.vectorizer_.kind, **features}
    arrays = {"features": feature_arrays, "learner": learner_arrays}
    if not files:  # a model in shards scores candidates only, and has neither calibration nor guarantee
        if classifier.calibration_ is not None:
            about["calibration"] = {"kind": classifier.calibration_.kind}
            arrays["calibration"] = classifier.calibration_.arrays()
        if (guarantee := classifier.guarantee_) is not None:
            about["guarantee"] = {name: value for name, value in guarantee.about().items() if name != "least_risk"}
            arrays["guarantee"] = guarantee.predictor.arrays()
    if classifier.training_data_ is not None:
        arrays["training_data"] = classifier.training_data_.arrays()
    if classifier.sizes_ is not None:
        arrays["figures"] = {"sizes": classifier.sizes_.astype(np.int64)}
    if report is not None:
        nodes = report["nodes"]
        if len(nodes) > MOST_REPORTED:
            largest = sorted(nodes, key=lambda row: -row["support"])[:MOST_REPORTED]
            note = f"{MOST_REPORTED:,} of {len(nodes):,} nodes are saved with the model, those with the most documents"
            report = {**report, "nodes": largest, "notes": [*report["notes"], note]}
        documents["report"] = report
    named = {f"{part}.{name}": array for part, found in arrays.items() for name, array in found.items()}
    return StoredModel(about, documents, named, files)
