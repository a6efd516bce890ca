"""The model registry: models by name, replaced by newer versions without losing a request."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.classifier import TextClassifier, load, make_rule
from ramify.errors import ModelError, RamifyError, suggest
from ramify.features import Vectors
from ramify.metrics.evaluation import NODE_FIGURES
from ramify.persistence import DirectoryStamp, directory_stamp
from ramify.server.errors import ApiError
from ramify.server.micro_batching import FIRST_PART, BatchTime
from ramify.taxonomy import Taxonomy
from ramify.workflows import PredictOptions, Predictor
from ramify.workflows.predictor import Found

SEARCH_WORD = re.compile(r"\w{3,}")

DIGITS = 6  # of probabilities
WARM_UP = 3  # predictions before the first request
CACHED_PREDICTORS = 32  # predictors cached per model, one for each PredictOptions
CACHED_RULES = 8  # models cached with another rule than their own


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded model; reloading creates a new one and leaves this one as it is."""

    name: str
    path: Path
    classifier: TextClassifier
    loaded_at: str
    stamp: DirectoryStamp
    batch_time: BatchTime = field(default_factory=partial(BatchTime, part=FIRST_PART))

    @classmethod
    def load(cls, name: str, path: Path) -> ServedModel:
        """Load a model directory and warm it up; its weights are copied, so that nothing changes them."""
        stamp = directory_stamp(path)  # before it is read: a change meanwhile is noticed
        classifier = load(path, private=True)
        if isinstance(classifier.vectorizer_, Vectors):
            raise ModelError(f"{path} was trained on vectors, but a server classifies texts; train a model on texts.")
        classifier.use_threads(1)  # requests run in parallel, one thread each
        made = cls(name, path, classifier, datetime.now(UTC).isoformat(timespec="seconds"), stamp)
        for _ in range(WARM_UP):  # fills caches and measures how long a prediction takes
            began = perf_counter()
            made.predict(PredictOptions(), ["ready"])
            made.batch_time.seconds = perf_counter() - began
        made.leaves_below, made.quality  # noqa: B018 - cached now, so that no request waits
        return made

    def with_rule(self, name: str, params: dict[str, Any]) -> ServedModel:
        """The same model with another decision rule, from a small cache; refuses rules that must be fitted first."""
        if "levels" in params:
            raise ApiError(422, "rule", "'levels' is not a parameter of a rule on a server, where it is chosen; leave it out.")
        try:
            return self._redecided(name, json.dumps(params, sort_keys=True))
        except ApiError:
            raise
        except RamifyError as error:
            raise ApiError(422, "rule", str(error)) from None
        except RecursionError:
            raise ApiError(422, "rule", "the parameters of the rule are nested too deeply.") from None

    @cached_property
    def _redecided(self) -> Callable[[str, str], ServedModel]:
        plain = replace(self)  # the cache must not refer to its owner: no model outlives its replacement in a cycle

        def make(name: str, params: str) -> ServedModel:
            decided = plain.classifier.redecided(make_rule(name, json.loads(params)))
            return replace(plain, classifier=decided, batch_time=BatchTime(part=FIRST_PART))

        return lru_cache(CACHED_RULES)(make)

    @property
    def has_changed(self) -> bool:
        """Whether the files in the directory are others than those that were loaded."""
        return directory_stamp(self.path) != self.stamp

    @property
    def taxonomy(self) -> Taxonomy:
        """The model's taxonomy."""
        return self.classifier.taxonomy_

    @cached_property
    def predictor(self) -> Callable[[PredictOptions], Predictor]:
        """The predictor for given options, from a small cache."""
        return lru_cache(CACHED_PREDICTORS)(partial(Predictor, self.classifier))

    def predict(self, options: PredictOptions, texts: list[str]) -> list[dict[str, Any]]:
        """The labels of each text and the next likely ones, in the form of the API."""
        predictor = self.predictor(options)
        size, to_labels = predictor.batch_size, self.to_labels
        return [
            {"labels": to_labels(labels, p), "others": to_labels(others, p), "problem": None}
            for start in range(0, len(texts), size)
            for labels, others, p in predictor.with_probabilities(texts[start : start + size])
        ]

    def to_labels(self, found: Found, p: NDArray[np.floating[Any]]) -> list[dict[str, Any]]:
        """Labels with their paths, and the probability of every node on them."""
        return [
            {
                "label": self.label_of(node),
                "path": list(self.taxonomy.path_of(node)),
                "probabilities": [round(float(p[above]), DIGITS) for above in self.taxonomy.nodes_to(node)],
                "probability": round(chance, DIGITS),
            }
            for node, chance in found
        ]

    def check_labels(self, labels: Iterable[str]) -> None:
        """Refuse labels that are not in the taxonomy."""
        for label in labels:
            self.find(label)

    def find(self, label: str) -> int:
        """The node of a label. No suggestions for a typo: requests should be quick."""
        if label in self.taxonomy:
            return self.taxonomy.index(label)
        is_ambiguous = self.taxonomy.has_node(label)
        why = "is the name of more than one node" if is_ambiguous else f"is not in the taxonomy of {self.name!r}"
        raise ApiError(404, "unknown-label", f"label {label[:200]!r} {why}; /v1/taxonomy/search finds labels.")

    def label_of(self, node: int) -> str:
        """The label of a node, in the form of the training labels."""
        return self.classifier.form_.write(self.taxonomy, [node])[0]

    @cached_property
    def leaves_below(self) -> list[int]:
        """The leaves at or below each node; in a DAG, a leaf with two paths counts twice."""
        offsets, parents = self.taxonomy.parent_offsets.tolist(), self.taxonomy.parent_nodes.tolist()
        counts: list[int] = self.taxonomy.is_leaf.astype(int).tolist()
        for node in range(len(counts) - 1, -1, -1):  # children come after their parents
            for parent in parents[offsets[node] : offsets[node + 1]]:
                counts[parent] += counts[node]
        return counts

    @cached_property
    def quality(self) -> dict[str, dict[str, Any]]:
        """The figures of each node in the training report, by name."""
        report = self.classifier.report_
        return {row["name"]: {key: row[key] for key in NODE_FIGURES} for row in (report or {"nodes": []})["nodes"]}

    @cached_property
    def search_lines(self) -> list[str]:
        """The case-folded path of every node, for the search."""
        names, path_of = self.taxonomy.names, self.taxonomy.path_of
        return [" ".join((*path_of(node), names[node])).casefold() for node in range(len(names))]

    @cached_property
    def search_words(self) -> dict[tuple[str, int], list[str]]:
        """The words of all paths, by first letter and length."""
        found: dict[tuple[str, int], list[str]] = {}
        for word in sorted({word for line in self.search_lines for word in SEARCH_WORD.findall(line)}):
            found.setdefault((word[0], len(word)), []).append(word)
        return found


class ModelRegistry:
    """The models of a server by name; the first is the default."""

    def __init__(self, directories: dict[str, Path]) -> None:
        self._served = {name: ServedModel.load(name, path) for name, path in directories.items()}
        self.default = next(iter(directories))

    def __iter__(self) -> Any:
        return iter(self._served.values())

    def __len__(self) -> int:
        return len(self._served)

    def find(self, name: str | None) -> ServedModel:
        """A model by its name."""
        served = self._served.get(self.default if name is None else name)
        if served is None:
            given, known = str(name)[:80], list(self._served)
            hint = suggest(given, known)
            raise ApiError(404, "unknown-model", f"no model is named {given!r}; there are {', '.join(known)}.{hint}")
        return served

    def reload(self, name: str) -> ServedModel:
        """Load a model again, one at a time. Running requests keep the old one; if loading fails, it stays in use."""
        old = self.find(name)
        made = ServedModel.load(old.name, old.path)
        self._served[old.name] = made
        freeze_garbage()
        return made


def freeze_garbage() -> None:
    """Collect new garbage and freeze the rest: models and libraries stay, and scanning them would delay requests."""
    gc.collect()
    gc.freeze()
