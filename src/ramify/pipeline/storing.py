"""A fitted classifier as the plain values and arrays of a model directory."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.persistence import StoredModel
from ramify.taxonomy.formats import json_nodes

MOST_NODES = 20_000  # of the report that a model keeps

if TYPE_CHECKING:
    from ramify.pipeline.classifier import TextClassifier


def selector_state(selector: Any) -> dict[str, Any] | None:
    """The settings of what chose words, without the taxonomy."""
    if selector is None:
        return None
    settings = {name: value for name, value in selector.get_params().items() if name != "taxonomy"}
    return {name: value.item() if hasattr(value, "item") else value for name, value in settings.items()}


def shortened(report: dict[str, Any]) -> dict[str, Any]:
    """A report with a line for the largest nodes only, where the taxonomy is large."""
    nodes = report["nodes"]
    if len(nodes) <= MOST_NODES:
        return report
    kept = sorted(nodes, key=lambda row: -row["support"])[:MOST_NODES]
    note = f"{MOST_NODES:,} of {len(nodes):,} nodes are kept with the model, those with the most documents"
    return {**report, "nodes": kept, "notes": [*report["notes"], note]}


def to_stored(classifier: TextClassifier) -> StoredModel:
    """Each part tells its state; the parts' names go with them."""
    features, feature_arrays = classifier.vectorizer_.state()
    learner, learner_arrays = classifier.learner_.state()
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
    if classifier.sizes_ is not None:
        arrays["figures.sizes"] = classifier.sizes_.astype(np.int64)
    if classifier.report_ is not None:
        documents["report"] = shortened(classifier.report_)
    return StoredModel(about, documents, arrays)
