"""Update a model: follow a changed taxonomy, or add documents. Only what changed is trained again."""

from __future__ import annotations

from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.base import clone

from ramify.classifier.fitting import TrainingData, calibrate_learner, fit_rule, refuse_misfit, unfitted_copy
from ramify.classifier.loading import load
from ramify.classifier.partial_fit import cut_rounds, larger_taxonomy, trainable
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.decisions import FittableRule
from ramify.errors import InputError, LabelError, suggest
from ramify.features.base import check_fitted
from ramify.learners.base import PartialFitLearner
from ramify.learners.warm_start import WarmStart
from ramify.parallel import stage
from ramify.persistence import exclusive_writer, is_model, model_fingerprint
from ramify.persistence.paths import resolved
from ramify.results import Result
from ramify.taxonomy import (
    Taxonomy,
    diff_taxonomies,
    expand_to_ancestors,
    most_specific,
    normalize_labels,
    read_reassignments,
    read_taxonomy,
)
from ramify.taxonomy.diff import Reassignments, TaxonomyDiff, refuse_unassigned
from ramify.type_hints import check_fields, checks_types
from ramify.workflows.evaluation import check_labels
from ramify.workflows.reading import ReadOptions, adapt_corpus
from ramify.workflows.training import refuse_target

HOW = "'ramify taxonomy diff OLD NEW --out reassignments.tsv' writes a table of them"
HOW += "; fill it in, and give it as --reassignments."
LOCK_SECONDS = 3600.0  # to wait for another update of the same model
OUTDATED = ("evaluation", "tested_on", "held_out")
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, repr=False)
class UpdateResult(Result):
    """A classifier for the new taxonomy, and what was done.

    documents: number that it was trained on. relabelled: documents with labels whose nodes were moved, merged, split or
    retired. at_split: those of them at a node above the parts of a split one. left_out: documents without a label in the new
    taxonomy. added, replaced: new documents, and documents that got new labels from them. reused: classifiers that were reused,
    of how many; None where the learner does not report it. warm_started: whether training started from the old solution.
    started_from_parent: leaves that have no documents and start with their parent's classifier.
    """

    classifier: TextClassifier
    changes: TaxonomyDiff
    documents: int
    relabelled: int = 0
    at_split: int = 0
    left_out: int = 0
    added: int = 0
    replaced: int = 0
    reused: tuple[int, int] | None = None
    warm_started: bool = False
    is_trained: bool = True
    started_from_parent: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """What was done, as plain values."""
        counts = {"documents": self.documents, "relabelled": self.relabelled, "at_split": self.at_split}
        counts |= {"left_out": self.left_out, "added": self.added, "replaced": self.replaced}
        how = {"warm_started": self.warm_started, "is_trained": self.is_trained, "reused": self.reused and list(self.reused)}
        return {"changes": self.changes.as_dict(), **counts, **how, "started_from_parent": list(self.started_from_parent)}


@checks_types
def update(
    classifier: TextClassifier,
    taxonomy: Taxonomy | None = None,
    texts: Any = None,
    labels: Any = None,
    *,
    reassignments: Reassignments | None = None,
) -> UpdateResult:
    """A classifier for a changed taxonomy; the given one is not changed.

    taxonomy: the new one (default: the current one). texts, labels: more documents, with labels from the new taxonomy or the
    old one; a document that is in the training data already gets the new labels. A classifier without training data needs all
    documents here. reassignments: where documents of old nodes go; see :func:`~ramify.taxonomy.read_reassignments`.

    >>> texts, labels = ["red apple", "ripe pear", "black tea"], ["food/apple", "food/pear", "drink/tea"]
    >>> before = TextClassifier("svm", keep_training_data=True).fit(texts, labels)
    >>> after = update(before, Taxonomy.from_paths(["food/fruit/apple", "food/fruit/pear", "drink/tea"]))
    >>> after.classifier.predict(["an apple"]).tolist(), after.relabelled
    (['food/fruit/apple'], 2)
    """
    check_fitted(classifier)
    changes = diff_taxonomies(classifier.taxonomy_, taxonomy or classifier.taxonomy_, reassignments)
    if changes.is_renaming and texts is None:
        return _rename(classifier, changes)
    if classifier.training_data_ is None and texts is None:
        needed = "give all of its training documents (--data), or train it with --keep-training-data"
        raise InputError(f"the model has no training data, and more than titles has changed; {needed}.")
    if classifier.learner_.scores_candidates_only:
        raise InputError("a model in shards cannot follow a change of its taxonomy, except new titles; train it again.")
    return _retrain(classifier, changes, texts, labels)


# ---- labels under a changed taxonomy ------------------------------------------------------------------------------------


def landing_nodes(changes: TaxonomyDiff) -> Ints:
    """For every old node the deepest new node that certainly holds its documents, -1 where there is none."""
    taxonomy = changes.new

    def common_node(nodes: tuple[int, ...]) -> int:
        if len(nodes) <= 1:
            return nodes[0] if nodes else -1
        common = set.intersection(*({node, *taxonomy.ancestors_of(node).tolist()} for node in nodes))
        return max(common, key=lambda node: (int(taxonomy.depth[node]), -node)) if common else -1

    return np.asarray([common_node(nodes) for nodes in changes.successors], dtype=np.int64)


def translate(rows: list[list[str]], changes: TaxonomyDiff) -> list[list[str]]:
    """Labels of documents as names of new nodes; labels of the old taxonomy alone become those of their landing nodes."""
    landing, known = landing_nodes(changes), dict[str, str | None]()
    for label in dict.fromkeys(label for row in rows for label in row):
        if label in changes.new:
            known[label] = changes.new.names[changes.new.index(label)]
            continue
        if label not in changes.old:
            similar = suggest(label, (*changes.new.names[:20_000], *changes.new.titles[:20_000]))
            raise LabelError(f"label {label!r} is neither in the new taxonomy nor in the old one; put it right.{similar}")
        node = changes.old.index(label)
        if node in changes.unassigned:
            retired = "of a retired node whose documents are not assigned to another"
            raise LabelError(f"label {label!r} is {retired}; use --reassignments.")
        known[label] = None if landing[node] < 0 else changes.new.names[landing[node]]
    return [list(dict.fromkeys(name for label in row if (name := known[label]) is not None)) for row in rows]


# ---- following a changed taxonomy ---------------------------------------------------------------------------------------


def _rename(classifier: TextClassifier, changes: TaxonomyDiff) -> UpdateResult:
    """New titles and names; weights and everything else stay the same to the last bit."""
    old, new = changes.old, changes.new
    order = [nodes[0] for nodes in changes.successors]
    # nodes keep their order, so that no array has to be renumbered
    names, titles = (tuple(each[node] for node in order) for each in (new.names, new.titles))
    taxonomy = Taxonomy(names, old.parent_offsets, old.parent_nodes, titles, new.separator, old.main_parents)
    made = _copy_over(classifier, taxonomy)
    made.learner_ = copy(classifier.learner_)
    made.learner_.taxonomy_ = made.learner_.taxonomy = taxonomy
    made.learner_.classes_ = np.asarray(taxonomy.names)
    documents = int(classifier.figures_["documents"])
    return UpdateResult(made, replace(changes, new=taxonomy), documents, is_trained=False)


def _copy_over(classifier: TextClassifier, taxonomy: Taxonomy) -> TextClassifier:
    """A copy over another taxonomy, with everything that does not depend on it."""
    made = copy(classifier)
    made.__dict__.pop("_used_features", None)
    made.taxonomy = made.taxonomy_ = taxonomy
    are_integers = classifier.form_.integers and all(name.lstrip("-").isdigit() for name in taxonomy.names)
    made.form_ = replace(classifier.form_, integers=are_integers)
    if not all(taxonomy.has_node(name) for name in made.form_.columns):
        made.form_ = replace(made.form_, shape="labels", columns=())
    made.report_ = None
    made.figures_ = {**classifier.figures_, "taxonomy_from_labels": False}
    return made


def _retrain(classifier: TextClassifier, changes: TaxonomyDiff, texts: Any, labels: Any) -> UpdateResult:
    """Relabel the training data, add documents, and train what changed."""
    with stage("relabelling documents"):
        stored, counts, numbers = _relabelled_data(classifier, changes)
        n_stored = len(stored)
        data, numbers = (stored, numbers) if texts is None else _add(classifier, changes, stored, numbers, texts, labels)
    if not len(data.own.indices):
        raise InputError("no document has a label in the new taxonomy; give some, or other reassignments.")
    X, Y = data.X, expand_to_ancestors(data.own, changes.new)
    changes = replace(changes, new=changes.new.with_main_parents(np.bincount(Y.indices, minlength=len(changes.new))))
    learner = unfitted_copy(classifier.learner_).set_params(taxonomy=changes.new, n_jobs=classifier.learner_.n_jobs)
    learner.keeps_warm_start = classifier.keep_training_data
    # leaves without documents that are new, or that had none before and yet have a classifier
    landing, known = landing_nodes(changes), classifier.learner_.class_nodes_
    is_new = np.ones(len(changes.new), dtype=bool)
    is_new[landing[landing >= 0]] = False
    is_new[landing[known][landing[known] >= 0]] = True
    is_new[data.own.indices] = False
    leaves = np.flatnonzero(is_new & changes.new.is_leaf).astype(np.int64)
    if classifier.training_data_ is None:
        learner.fit(X, Y)
    else:
        learner.refit_from(X, Y, WarmStart(classifier.learner_, classifier.training_data_.own, numbers, len(data), leaves))
    made = _with_learner(classifier, changes.new, learner, data, Y)
    names = tuple(changes.new.names[node] for node in np.intersect1d(leaves, learner.class_nodes_).tolist())
    n_left, reused = int(np.sum(numbers >= 0)), learner.reused_
    counts |= {"documents": len(data), "added": len(data) - n_left, "replaced": n_stored - n_left}
    is_trained = reused is None or reused[0] < reused[1]
    how: dict[str, Any] = {"warm_started": learner.warm_started_, "is_trained": is_trained, "started_from_parent": names}
    return UpdateResult(made, changes, reused=reused, **counts, **how)


def _relabelled_data(classifier: TextClassifier, changes: TaxonomyDiff) -> tuple[TrainingData, dict[str, Any], Ints]:
    """Training data with new labels, counts for the result, and the new number of each old document, or -1."""
    old = classifier.training_data_
    if old is None:
        nothing = csr_array((0, classifier.vectorizer_.n_features_out), dtype=np.float32)
        return TrainingData(nothing, csr_array((0, len(changes.new)), dtype=bool)), {}, np.zeros(0, dtype=np.int64)
    has_documents = np.bincount(old.own.indices, minlength=len(changes.old)) > 0
    refuse_unassigned(changes, [node for node in changes.unassigned if has_documents[node]], HOW)
    n_docs, rows = old.own.shape[0], np.repeat(np.arange(old.own.shape[0]), np.diff(old.own.indptr))
    nodes = landing_nodes(changes)[old.own.indices]
    exists = nodes >= 0
    places = rows[exists], nodes[exists]
    found = csr_array((np.ones(int(exists.sum()), dtype=bool), places), shape=(n_docs, len(changes.new)))
    own = most_specific(found, changes.new)

    def has_any(nodes: list[int]) -> Bools:
        has = np.zeros(n_docs, dtype=bool)
        has[rows[np.isin(old.own.indices, nodes)]] = True
        return has

    changed = [node for change in changes.changes if change.kind not in ("renamed", "added") for node in change.old]
    changed = [node for top in changed for node in (top, *changes.old.descendants_of(top).tolist())]
    split = has_any([node for change in changes.of("split") for node in change.old])
    stays = (np.diff(old.own.indptr) == 0) | (np.diff(own.indptr) > 0)
    counts = {"relabelled": int(has_any(changed).sum()), "at_split": int((split & stays).sum())}
    counts["left_out"] = int((~stays).sum())
    return TrainingData(csr_array(old.X[stays]), csr_array(own[stays])), counts, _renumber(stays)


def _add(
    classifier: TextClassifier, changes: TaxonomyDiff, stored: TrainingData, numbers: Ints, texts: Any, labels: Any
) -> tuple[TrainingData, Ints]:
    """Training data followed by more documents, which replace equal ones, and the new number of each old document, or -1."""
    X = classifier.vectorizer_.transform(texts)
    own = most_specific(changes.new.encode(translate(normalize_labels(labels)[0], changes)), changes.new)
    if own.shape[0] != X.shape[0]:
        raise InputError(f"there are {X.shape[0]} documents but labels for {own.shape[0]}; give one entry per document.")
    has_label = np.diff(own.indptr) > 0
    X, own = csr_array(X[has_label]), csr_array(own[has_label])

    def row_keys(X: csr_array) -> list[bytes]:  # documents with equal features are equal to a learner
        ends, features, values = X.indptr.tolist(), X.indices.astype(np.int32), X.data
        return [features[a:b].tobytes() + values[a:b].tobytes() for a, b in pairwise(ends)]

    replaced = set(row_keys(X)) - {b""}
    stays = np.asarray([key not in replaced for key in row_keys(stored.X)], dtype=bool)
    numbers = np.where(numbers >= 0, np.append(_renumber(stays), -1)[numbers], -1)
    both = [(stored.X[stays], X), (stored.own[stays], own)]
    return TrainingData(*(csr_array(vstack(parts, format="csr")) for parts in both)), numbers


def _renumber(stays: Bools) -> Ints:
    return np.where(stays, np.cumsum(stays) - 1, -1).astype(np.int64)


def _with_learner(
    classifier: TextClassifier, taxonomy: Taxonomy, learner: Any, data: TrainingData, Y: csr_array
) -> TextClassifier:
    """A classifier with a new learner; its rule and calibration are fitted again where they were fitted."""
    made, X = _copy_over(classifier, taxonomy), data.X
    decision = classifier.decision_
    if isinstance(decision, FittableRule) and decision.is_fitted:
        decision = fit_rule(decision.unfitted(), learner, X, Y)
    refuse_misfit(decision, taxonomy)
    made.calibration_ = made.guarantee_ = None
    if classifier.calibration_ is not None:  # documents that were kept back are not in the training data
        made.calibration_, made.guarantee_ = calibrate_learner(learner, X, Y)
    learner.held_out_ = None  # no longer needed
    made.learner_, made.decision_ = learner, decision
    made.learner = clone(learner).set_params(taxonomy=None)
    made.training_data_ = data if classifier.keep_training_data else None
    made.sizes_ = np.bincount(Y.indices, minlength=len(taxonomy))
    made.figures_ = {key: value for key, value in made.figures_.items() if key not in OUTDATED}
    made.figures_ |= {"documents": len(data), "features": int(X.shape[1])}
    made.form_ = replace(made.form_, multi_label=made.form_.multi_label or bool(np.any(np.diff(data.own.indptr) != 1)))
    return made


# ---- from files and options to an updated model: what ``ramify update`` calls --------------------------------------------


@dataclass(frozen=True, slots=True)
class UpdateOptions:
    """What has changed.

    data: more labelled documents. taxonomy: the new taxonomy, or its file. reassignments: a table of old and new nodes.
    rounds: more rounds of boosting (default: as many as in training). select_rounds: train nothing, but keep the number of
    rounds that is best on `data`. n_jobs: threads, as in scikit-learn. taxonomy_language: of the titles in a SKOS file.
    """

    data: str | Path | Corpus | None = None
    taxonomy: Taxonomy | str | Path | None = None
    reassignments: str | Path | None = None
    rounds: int | None = None
    select_rounds: bool = False
    read: ReadOptions = field(default_factory=ReadOptions)
    n_jobs: int | None = -1
    taxonomy_language: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def check(self) -> None:
        """Refuse options that do not go together."""
        if self.data is None and self.taxonomy is None:
            raise InputError("there is nothing to do; give a taxonomy with --taxonomy, documents with --data, or both.")
        if self.reassignments is not None and self.taxonomy is None:
            retired = "--reassignments is for documents of retired nodes"
            raise InputError(f"{retired}; give the taxonomy without them with --taxonomy.")
        if self.rounds is not None and self.select_rounds:
            raise InputError("--rounds adds rounds, and --select-rounds adds none; give one of them.")
        if self.data is None and (self.rounds is not None or self.select_rounds):
            raise InputError("--rounds and --select-rounds need documents; give some with --data.")


@dataclass(frozen=True, slots=True, repr=False)
class PartialFitResult(Result):
    """A classifier trained on more documents. rounds: of boosting, in all. micro_f1: for each number of rounds tried."""

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


@checks_types
def update_model(model: str | Path, options: UpdateOptions, to: str | Path | None = None) -> UpdateResult | PartialFitResult:
    """Update a saved model: retrain what a changed taxonomy affects, or add documents. to: save the new model elsewhere.

    Two updates of one model take turns, and the second begins with what the first has saved.
    """
    target = Path(model if to is None else to)
    refuse_target(target)
    options.check()
    with ExitStack() as held:
        with stage("waiting for another update of the model", 1):
            held.enter_context(exclusive_writer(resolved(target), seconds=LOCK_SECONDS))
        before = model_fingerprint(model)
        done = _updated(model, options)
        if is_model(target) and to is None and model_fingerprint(target) != before:
            raise InputError(f"{target} was replaced while it was updated, and the new model is kept; update it again.")
        done.classifier.save(target)
    return done


def _updated(model: str | Path, options: UpdateOptions) -> UpdateResult | PartialFitResult:
    """The model with a changed taxonomy or more documents, not yet saved."""
    given = options.taxonomy
    if not isinstance(given, Taxonomy | None):
        given = read_taxonomy(given, language=options.taxonomy_language)
    classifier = load(model)
    boosts = options.rounds is not None or options.select_rounds
    if boosts and "n_rounds" not in classifier.learner_.get_params():
        option = "--select-rounds" if options.select_rounds else "--rounds"
        raise InputError(f"{option} is for boosting, and system {classifier.system!r} has no rounds; leave it out.")
    classifier.use_threads(options.n_jobs)
    # documents are added by partial_fit, unless they belong to a change of the taxonomy
    has_data = classifier.training_data_ is not None
    if boosts or not isinstance(classifier.learner_, PartialFitLearner):
        retrains = not boosts and (has_data or given is not None)
    else:
        retrains = options.reassignments is not None or (given is not None and has_data)
    done: UpdateResult | PartialFitResult
    if options.data is not None and not retrains:
        done = _add_documents(classifier, given, options)
    else:
        old, new = classifier.taxonomy_, given or classifier.taxonomy_
        table = None if options.reassignments is None else read_reassignments(options.reassignments, old, new)
        texts = labels = None
        if options.data is not None:
            corpus = _read(classifier, options, lambda label: label in new or label in old)
            texts, labels = corpus.documents, corpus.labels
        done = update(classifier, new, texts, labels, reassignments=table)
    return done


def _read(classifier: TextClassifier, options: UpdateOptions, is_label: Any) -> Corpus:
    """Labelled documents, with columns and separators as in those that the model was trained on."""
    assert options.data is not None
    columns = classifier.figures_.get("columns", {})
    reading = replace(options.read, label_separator=options.read.label_separator or columns.get("label_separator"))
    return adapt_corpus(classifier, reading.read(options.data, is_label, like=columns or None))


def _add_documents(classifier: TextClassifier, given: Taxonomy | None, options: UpdateOptions) -> PartialFitResult:
    """Train further by partial_fit, or choose the number of boosting rounds."""
    trainable(classifier)
    known = given or classifier.taxonomy_
    is_open = classifier.figures_.get("taxonomy_from_labels") and given is None
    corpus = _read(classifier, options, None if is_open else known.__contains__)
    check_labels(corpus, larger_taxonomy(classifier, corpus.labels, given))

    def class_names() -> set[str]:
        return {classifier.taxonomy_.names[node] for node in classifier.learner_.class_nodes_.tolist()}

    old_classes, old_width = class_names(), classifier.vectorizer_.n_features_out
    micro_f1 = None
    if options.select_rounds:
        micro_f1 = cut_rounds(classifier, corpus.documents, corpus.labels)
    else:
        is_multi_label = classifier.form_.multi_label or any(len(labels) != 1 for labels in corpus.labels)
        n_rounds = classifier.learner_.get_params().get("n_rounds")
        if options.rounds is not None:
            classifier.learner_.n_rounds = options.rounds
        classifier.partial_fit(corpus.documents, corpus.labels, given)
        classifier.form_ = replace(classifier.form_, multi_label=is_multi_label)
        if n_rounds is not None:
            classifier.learner_.n_rounds = n_rounds
    classifier.figures_ = {key: value for key, value in classifier.figures_.items() if key not in OUTDATED}
    classifier.report_ = None
    new_classes, new_words = class_names() - old_classes, classifier.vectorizer_.n_features_out - old_width
    return PartialFitResult(classifier, len(corpus), sorted(new_classes), new_words, classifier.learner_.n_rounds_, micro_f1)
