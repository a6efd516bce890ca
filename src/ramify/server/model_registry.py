"""The models that a server has: by name, each whole, and exchanged for a newer one without losing a request."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.classifier import TextClassifier, load
from ramify.errors import ModelError
from ramify.features import Vectors
from ramify.metrics.evaluation import NODE_FIGURES
from ramify.server.errors import ApiError, unknown_model
from ramify.server.micro_batching import Pace
from ramify.taxonomy import Taxonomy
from ramify.workflows import PredictOptions, Predictor
from ramify.workflows.predictor import Found

DIGITS = 6  # of probabilities
WARM_UP = 3  # answers before the first request
WISHES = 32  # for which what answering needs is kept


@dataclass(frozen=True, eq=False)
class Served:
    """One model in use; a newer one of the same name does not change it."""

    name: str
    path: Path
    classifier: TextClassifier
    loaded_at: str
    pace: Pace = field(default_factory=Pace)
    _answering: OrderedDict[PredictOptions, Predictor] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def load(cls, name: str, path: Path) -> Served:
        """Read a model directory, and make everything ready for the first request."""
        classifier = load(path)
        if isinstance(classifier.vectorizer_, Vectors):
            raise ModelError(f"{path} learnt from vectors, and a server takes texts; train a model on texts.")
        classifier.use_threads(1)  # requests run side by side; each takes one thread
        made = cls(name, path, classifier, datetime.now(UTC).isoformat(timespec="seconds"))
        made._warm_up()
        made.leaves_below, made.quality  # noqa: B018 - so that no request waits for them
        return made

    def _warm_up(self) -> None:
        """Arrange what the first answer needs, and see how long one takes."""
        for _ in range(WARM_UP):
            began = perf_counter()
            self.answer(PredictOptions(), ["ready"])
            self.pace.seconds = perf_counter() - began

    @property
    def taxonomy(self) -> Taxonomy:
        """The model's taxonomy."""
        return self.classifier.taxonomy_

    def answering(self, options: PredictOptions) -> Predictor:
        """What answers a options; that of the last wishes is kept."""
        with self._lock:
            found = self._answering.get(options)
            if found is not None:
                self._answering.move_to_end(options)
                return found
        made = Predictor(self.classifier, options)
        with self._lock:
            self._answering[options] = made
            while len(self._answering) > WISHES:
                self._answering.popitem(last=False)
        return made

    def answer(self, options: PredictOptions, texts: list[str]) -> list[dict[str, Any]]:
        """Labels and further ones of each text, as the API gives them; a few texts at a time."""
        answering = self.answering(options)
        size = answering.batch_size
        made = []
        for start in range(0, len(texts), size):
            for labels, others, p in answering.with_probabilities(texts[start : start + size]):
                made.append({"labels": self.to_labels(labels, p), "others": self.to_labels(others, p), "problem": None})
        return made

    def to_labels(self, found: Found, p: NDArray[np.floating[Any]]) -> list[dict[str, Any]]:
        """Labels with their paths, and the probability of every node on them."""
        return [
            {
                "label": self.label_of(node),
                "path": list(self.taxonomy.path_of(node)),
                "probabilities": [round(float(p[here]), DIGITS) for here in self.taxonomy.nodes_to(node)],
                "probability": round(chance, DIGITS),
            }
            for node, chance in found
        ]

    def check_labels(self, labels: Iterable[str]) -> None:
        """Refuse labels that the taxonomy does not have."""
        for label in labels:
            self.find(label)

    def find(self, label: str) -> int:
        """The node of a label; no similar ones are looked for, since requests should be quick."""
        if label in self.taxonomy:
            return self.taxonomy.index(label)
        why = "means several nodes" if self.taxonomy.bears(label) else f"is not in the taxonomy of {self.name!r}"
        raise ApiError(404, "unknown-label", f"label {label[:200]!r} {why}; /v1/taxonomy/search finds labels.")

    def label_of(self, node: int) -> str:
        """A node as the user writes it."""
        return self.classifier.form_.write(self.taxonomy, [node])[0]

    def about(self) -> dict[str, Any]:
        """What there is to say about the model."""
        classifier, taxonomy, figures = self.classifier, self.taxonomy, self.classifier.figures_
        return {
            "name": self.name,
            "system": classifier.system,
            "rule": classifier.decision_.kind,
            "nodes": len(taxonomy),
            "leaves": int(taxonomy.is_leaf.sum()),
            "levels": taxonomy.n_levels,
            "documents": figures["documents"],
            "features": classifier.vectorizer_.n_features_out,
            "several": classifier.form_.many,
            "is_tree": taxonomy.is_tree,
            "loaded_at": self.loaded_at,
            "has_report": classifier.report_ is not None,
            "evaluation": figures.get("evaluation"),
            "tested_on": figures.get("tested_on"),
            "promise": None if classifier.guarantee_ is None else classifier.guarantee_.about(),
        }

    @cached_property
    def leaves_below(self) -> list[int]:
        """The leaves at or below each node; in a DAG, one that is reached twice counts twice."""
        taxonomy = self.taxonomy
        counts: list[int]
        counts, offsets, parents = (
            part.tolist() for part in (taxonomy.is_leaf.astype(int), taxonomy.parent_offsets, taxonomy.parent_nodes)
        )
        for node in range(len(taxonomy) - 1, -1, -1):  # children come after their parents
            for place in range(offsets[node], offsets[node + 1]):
                counts[parents[place]] += counts[node]
        return counts

    @cached_property
    def quality(self) -> dict[str, dict[str, Any]]:
        """What the training's report says of each node, by name."""
        report = self.classifier.report_
        return {row["name"]: {key: row[key] for key in NODE_FIGURES} for row in (report or {"nodes": []})["nodes"]}

    @cached_property
    def search_lines(self) -> list[str]:
        """The path of every node, folded, for the search."""
        return [
            " ".join((*self.taxonomy.path_of(node), self.taxonomy.names[node])).casefold() for node in range(len(self.taxonomy))
        ]


class Shelf:
    """The models of a server by name; the first one is meant where none is named."""

    def __init__(self, directories: dict[str, Path]) -> None:
        self._served = {name: Served.load(name, path) for name, path in directories.items()}
        self.default = next(iter(directories))

    def __iter__(self) -> Any:
        return iter(self._served.values())

    def __len__(self) -> int:
        return len(self._served)

    def find(self, name: str | None) -> Served:
        """A model by its name."""
        served = self._served.get(self.default if name is None else name)
        if served is None:
            raise unknown_model(str(name), self._served)
        return served

    def reload(self, name: str) -> Served:
        """Read a model anew; requests under way keep the old one, and whatever is wrong with the new one leaves it in place."""
        old = self.find(name)
        made = Served.load(old.name, old.path)
        self._served[old.name] = made
        set_aside()
        return made


def set_aside() -> None:
    """Let Python look for garbage now, and no more among what is left: models stay, and looking would make answers wait."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
