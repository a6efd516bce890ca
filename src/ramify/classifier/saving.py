"""A fitted classifier as the plain values and arrays of a model directory."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.errors import InputError
from ramify.persistence import ArrayFile, StoredModel
from ramify.taxonomy.formats import json_nodes

MOST_NODES = 20_000  # of the report that a model keeps

if TYPE_CHECKING:
    from ramify.classifier.text_classifier import TextClassifier


def selector_state(selector: Any) -> dict[str, Any] | None:
    """The parameters of a term selector, without the taxonomy."""
    if selector is None:
        return None
    settings = {name: value for name, value in selector.get_params().items() if name != "taxonomy"}
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}


def shortened(report: dict[str, Any]) -> dict[str, Any]:
    """A report with rows for the largest nodes only, where the taxonomy is large."""
    nodes = report["nodes"]
    if len(nodes) <= MOST_NODES:
        return report
    kept = sorted(nodes, key=lambda row: -row["support"])[:MOST_NODES]
    note = f"{MOST_NODES:,} of {len(nodes):,} nodes are saved with the model, those with the most documents"
    return {**report, "nodes": kept, "notes": [*report["notes"], note]}


def learner_state(classifier: TextClassifier, shards: int | None) -> tuple[dict[str, Any], dict[str, Any], list[ArrayFile]]:
    """Values, arrays and shard files of a learner; its weights are split into so many shards, if given."""
    learner = classifier.learner_
    files = learner.shard_files()
    if shards is None:
        return *learner.state(), files
    refuse_shards(learner, classifier.system)
    if files:
        raise InputError(f"the model is in {len(files)} shards already, and stays so; leave out the number of shards.")
    state: tuple[dict[str, Any], dict[str, Any], list[ArrayFile]] = learner.state_in_shards(shards)
    return state


def refuse_shards(learner: Any, system: str) -> None:
    """Refuse learners whose weights cannot be saved in shards."""
    if not learner.supports_shards:
        raise InputError(f"a model of system {system!r} cannot be saved in shards; svm, lr, hr-svm and hr-lr can.")


def to_stored(classifier: TextClassifier, shards: int | None = None) -> StoredModel:
    """The state of every part, with its name. shards: split the weights into so many files."""
    features, feature_arrays = classifier.vectorizer_.state()
    learner, learner_arrays, files = learner_state(classifier, shards)
    about = {
        "ramify": version("ramify"),
        "system": classifier.system,
        "learner": {"kind": classifier.learner_.kind, **learner},
        "selector": selector_state(classifier.selector),
        "decision": {"kind": classifier.decision_.kind, **classifier.decision_.state()},
        "labels": classifier.form_.state(),
        "figures": classifier.figures_,
    }
    documents = {
        "taxonomy": json_nodes.to_values(classifier.taxonomy_),
        "features": {"kind": classifier.vectorizer_.kind, **features},
    }
    arrays = {f"features.{name}": array for name, array in feature_arrays.items()}
    arrays |= {f"learner.{name}": array for name, array in learner_arrays.items()}
    about["confidence"] = {"calibrate": bool(classifier.calibrate), "keep_back": float(classifier.keep_back)}
    in_shards = bool(files)  # scores few nodes only, so that there is neither calibration nor guarantee
    if classifier.calibration_ is not None and not in_shards:
        about["calibration"] = {"kind": classifier.calibration_.kind}
        arrays |= {f"calibration.{name}": array for name, array in classifier.calibration_.arrays().items()}
    if classifier.guarantee_ is not None and not in_shards:
        guarantee = classifier.guarantee_
        about["guarantee"] = {
            "kind": guarantee.predictor.kind,
            "documents": guarantee.documents,
            "is_proven": guarantee.is_proven,
        }
        arrays |= {f"guarantee.{name}": array for name, array in guarantee.predictor.arrays().items()}
    if classifier.training_data_ is not None:
        arrays |= {f"training_data.{name}": array for name, array in classifier.training_data_.arrays().items()}
    if classifier.sizes_ is not None:
        arrays["figures.sizes"] = classifier.sizes_.astype(np.int64)
    if classifier.report_ is not None:
        documents["report"] = shortened(classifier.report_)
    return StoredModel(about, documents, arrays, files)
