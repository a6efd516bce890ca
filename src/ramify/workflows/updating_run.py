"""From files and options to an updated model: what ``ramify update`` calls."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ramify.classifier import TextClassifier, load
from ramify.classifier.partial_fit import cut_rounds, larger_taxonomy, trainable
from ramify.data import Corpus
from ramify.errors import InputError
from ramify.learners.base import PartialFitLearner
from ramify.persistence import refuse_foreign_target
from ramify.taxonomy import Taxonomy, read_reassignments, read_taxonomy
from ramify.workflows.evaluation import adapt_corpus, check_labels
from ramify.workflows.reading import ReadOptions
from ramify.workflows.updating import OUTDATED, UpdateResult, update


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """What has changed.

    data: more labelled documents. taxonomy: the new taxonomy, or its file. reassignments: a table of old and new nodes.
    rounds: more rounds of boosting (default: as many as in training). select_rounds: train nothing, but keep the number of
    rounds that is best on `data`. n_jobs: threads, as in scikit-learn.
    """

    data: str | Path | Corpus | None = None
    taxonomy: Taxonomy | str | Path | None = None
    reassignments: Path | None = None
    rounds: int | None = None
    select_rounds: bool = False
    read: ReadOptions = field(default_factory=ReadOptions)
    n_jobs: int | None = -1

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.data is None and self.taxonomy is None:
            raise InputError("there is nothing to do; give a taxonomy with --taxonomy, documents with --data, or both.")
        if self.reassignments is not None and self.taxonomy is None:
            raise InputError(
                "--reassignments is for documents of retired nodes; give the taxonomy without them with --taxonomy."
            )
        if self.rounds is not None and self.select_rounds:
            raise InputError("--rounds adds rounds, and --select-rounds adds none; give one of them.")
        if self.data is None and (self.rounds is not None or self.select_rounds):
            raise InputError("--rounds and --select-rounds need documents; give some with --data.")


@dataclass(frozen=True, slots=True)
class PartialFitResult:
    """A classifier that was trained on more documents.

    rounds: of boosting, in all. micro_f1: for each number of rounds that was tried.
    """

    classifier: TextClassifier
    documents: int
    new_classes: list[str]
    new_words: int
    rounds: int | None = None
    micro_f1: dict[int, float] | None = None

    def as_dict(self) -> dict[str, Any]:
        """What was done, as plain values."""
        facts: dict[str, Any] = {"documents": self.documents, "new_classes": self.new_classes, "new_words": self.new_words}
        facts |= {} if self.rounds is None else {"rounds": self.rounds}
        return facts if self.micro_f1 is None else facts | {"micro_f1": self.micro_f1}


def update_model(model: str | Path, options: UpdateOptions, to: str | Path | None = None) -> UpdateResult | PartialFitResult:
    """Update a saved model: retrain what a changed taxonomy affects, or add documents. to: save the new model elsewhere."""
    target = Path(model if to is None else to)
    refuse_foreign_target(target)
    options.check()
    given = options.taxonomy if isinstance(options.taxonomy, Taxonomy | None) else read_taxonomy(options.taxonomy)
    classifier = load(model)
    boosts = options.rounds is not None or options.select_rounds
    if boosts and "n_rounds" not in classifier.learner_.get_params():
        option = "--select-rounds" if options.select_rounds else "--rounds"
        raise InputError(f"{option} is for boosting, and system {classifier.system!r} has no rounds; leave it out.")
    classifier.use_threads(options.n_jobs)
    done: UpdateResult | PartialFitResult
    if options.data is None or _retrains(classifier, given, options.reassignments is not None, boosts):
        done = _update(classifier, given, options)
    else:
        done = _add_documents(classifier, given, options)
    done.classifier.save(target)
    return done


def _retrains(classifier: TextClassifier, taxonomy: Taxonomy | None, has_reassignments: bool, boosts: bool) -> bool:
    """Whether documents are part of a change of the taxonomy, rather than added by ``partial_fit``."""
    has_data = classifier.training_data_ is not None
    if boosts or not isinstance(classifier.learner_, PartialFitLearner):
        return not boosts and (has_data or taxonomy is not None)
    return has_reassignments or (taxonomy is not None and has_data)


def _read(classifier: TextClassifier, options: UpdateOptions, is_label: Any) -> Corpus:
    """Labelled documents, with columns and separators as in those that the model was trained on."""
    assert options.data is not None
    columns = classifier.figures_.get("columns", {})
    separator = options.read.label_separator or columns.get("label_separator")
    reading = replace(options.read, label_separator=separator)
    return adapt_corpus(classifier, reading.read(options.data, is_label, like=columns or None))


def _update(classifier: TextClassifier, given: Taxonomy | None, options: UpdateOptions) -> UpdateResult:
    old, new = classifier.taxonomy_, given or classifier.taxonomy_
    table = None if options.reassignments is None else read_reassignments(options.reassignments, old, new)
    if options.data is None:
        return update(classifier, new, reassignments=table)
    corpus = _read(classifier, options, lambda label: label in new or label in old)
    return update(classifier, new, corpus.documents, corpus.labels, reassignments=table)


def _add_documents(classifier: TextClassifier, given: Taxonomy | None, options: UpdateOptions) -> PartialFitResult:
    trainable(classifier)
    known = given or classifier.taxonomy_
    is_open = classifier.figures_.get("taxonomy_from_labels") and given is None
    corpus = _read(classifier, options, None if is_open else known.__contains__)
    check_labels(corpus, larger_taxonomy(classifier, corpus.labels, given))
    old_classes, old_width = set(_classes(classifier)), classifier.vectorizer_.n_features_out
    micro_f1 = cut_rounds(classifier, corpus.documents, corpus.labels) if options.select_rounds else None
    if not options.select_rounds:
        _partial_fit(classifier, corpus, given, options.rounds)
    classifier.figures_ = {key: value for key, value in classifier.figures_.items() if key not in OUTDATED}
    classifier.report_ = None
    new_classes, new_words = set(_classes(classifier)) - old_classes, classifier.vectorizer_.n_features_out - old_width
    return PartialFitResult(classifier, len(corpus), sorted(new_classes), new_words, classifier.learner_.n_rounds_, micro_f1)


def _partial_fit(classifier: TextClassifier, corpus: Corpus, given: Taxonomy | None, rounds: int | None) -> None:
    is_multi_label = classifier.form_.multi_label or any(len(labels) != 1 for labels in corpus.labels)
    n_rounds = classifier.learner_.get_params().get("n_rounds")
    if rounds is not None:
        classifier.learner_.n_rounds = rounds
    classifier.partial_fit(corpus.documents, corpus.labels, given)
    classifier.form_ = replace(classifier.form_, multi_label=is_multi_label)
    if n_rounds is not None:
        classifier.learner_.n_rounds = n_rounds


def _classes(classifier: TextClassifier) -> list[str]:
    return [classifier.taxonomy_.names[node] for node in classifier.learner_.class_nodes_.tolist()]
