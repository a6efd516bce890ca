"""Documents under a changed taxonomy: which labels follow from the change, and which documents have none left."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.base import clone

from ramify.classifier.fitting import TrainingData, calibrate_learner, unfitted_copy
from ramify.classifier.rules import fit_rule, refuse_misfit
from ramify.classifier.text_classifier import TextClassifier
from ramify.decisions import FittableRule
from ramify.errors import InputError, LabelError, suggest
from ramify.learners.warm_start import WarmStart
from ramify.parallel import stage
from ramify.systems import find_system
from ramify.taxonomy import Taxonomy, TaxonomyDiff, diff_taxonomies, expand_to_ancestors, most_specific
from ramify.taxonomy.diff import Reassignments, refuse_unassigned

NOWHERE = -1
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Relabelled:
    """Labels in the new taxonomy.

    own: documents × new nodes, most specific labels. changed, split, lost: which documents have labels whose nodes were moved,
    merged or split; which of them are at a node above the parts of one that was split; and which have no label left.
    """

    own: csr_array
    changed: NDArray[np.bool_]
    split: NDArray[np.bool_]
    lost: NDArray[np.bool_]


def relabel(own: csr_array, changes: TaxonomyDiff) -> Relabelled:
    """Labels that follow from a change (own: documents × old nodes)."""
    landing = landing_nodes(changes)
    nodes = landing[own.indices]
    n_docs = own.shape[0]
    rows = np.repeat(np.arange(n_docs), np.diff(own.indptr))
    there = nodes >= 0
    found = csr_array((np.ones(int(there.sum()), dtype=bool), (rows[there], nodes[there])), shape=(n_docs, len(changes.new)))
    new = most_specific(found, changes.new)
    is_split, is_changed = np.zeros(len(landing), dtype=bool), np.zeros(len(landing), dtype=bool)
    is_split[[node for change in changes.of("split") for node in change.old]] = True
    is_changed[_reached_by(changes)] = True
    had, has = np.diff(own.indptr) > 0, np.diff(new.indptr) > 0
    return Relabelled(new, _any_of(is_changed, own, rows), _any_of(is_split, own, rows), had & ~has)


def landing_nodes(changes: TaxonomyDiff) -> Ints:
    """For every old node the deepest new one that certainly holds its documents, -1 where there is none."""
    return np.asarray([_common_node(changes.new, nodes) for nodes in changes.successors], dtype=np.int64)


def _common_node(taxonomy: Taxonomy, nodes: tuple[int, ...]) -> int:
    """The deepest node at or above all of some nodes."""
    if len(nodes) <= 1:
        return nodes[0] if nodes else NOWHERE
    shared = set.intersection(*({node, *taxonomy.ancestors_of(node).tolist()} for node in nodes))
    return max(shared, key=lambda node: (int(taxonomy.depth[node]), -node)) if shared else NOWHERE


def _reached_by(changes: TaxonomyDiff) -> list[int]:
    """Old nodes whose documents have other labels than before, those above them included."""
    tops = [node for change in changes.changes if change.kind not in ("renamed", "added") for node in change.old]
    return sorted({node for top in tops for node in (top, *changes.old.descendants_of(top).tolist())})


def _any_of(chosen: NDArray[np.bool_], own: csr_array, rows: Ints) -> NDArray[np.bool_]:
    found = np.zeros(own.shape[0], dtype=bool)
    found[rows[chosen[own.indices]]] = True
    return found


def translate(rows: list[list[str]], changes: TaxonomyDiff) -> list[list[str]]:
    """Labels of documents by the names of new nodes; labels that only the old taxonomy has go where they land."""
    landing, known = landing_nodes(changes), {}
    for row in rows:
        for label in row:
            if label not in known:
                known[label] = _translated(label, changes, landing)
    return [list(dict.fromkeys(name for label in row if (name := known[label]) is not None)) for row in rows]


def _translated(label: str, changes: TaxonomyDiff, landing: Ints) -> str | None:
    if label in changes.new:
        return changes.new.names[changes.new.index(label)]
    if label not in changes.old:
        near = suggest(label, changes.new.names[:20_000])
        raise LabelError(f"label {label!r} is neither in the new taxonomy nor in the old one; put it right.{near}")
    node = changes.old.index(label)
    if node in changes.unassigned:
        raise LabelError(
            f"label {label!r} is of a retired node, and nobody has said where its documents go; use --reassignments."
        )
    return None if landing[node] < 0 else changes.new.names[landing[node]]


# --------------------------------------------------------------------------------------------------------------
# A classifier that follows a change of its taxonomy: documents are relabelled, and what the change reaches is learnt anew.


HOW = (
    "'ramify taxonomy diff OLD NEW --out reassignments.tsv' writes a table of them; fill it in, and give it as --reassignments."
)
OUTDATED = ("evaluation", "tested_on", "held_out")


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """A classifier for the new taxonomy, and what was done.

    documents: how many it learnt from. relabelled: documents with labels whose nodes were moved, merged, split or retired.
    at_split: those of them that are at a node above the parts of one that was split. left_out: documents that have no label
    left. added, replaced: documents that came with the change, and documents whose labels these have put right.
    reused: classifiers that were reused, of how many; None where the learner does not report it. warm_started: whether training
    started from the old solution. is_trained: whether anything was trained. started_from_parent: leaves that have no documents
    and start with their parent's classifier.
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


def update(
    classifier: TextClassifier,
    taxonomy: Taxonomy | None = None,
    texts: Any = None,
    labels: list[list[str]] | None = None,
    *,
    reassignments: Reassignments | None = None,
) -> UpdateResult:
    """A classifier for a changed taxonomy; the one given stays as it is.

    taxonomy: the new one; the same as before when not given. texts, labels: more documents, labelled by nodes of the new
    taxonomy or the old one; a document that was learnt from already gets the new labels. A classifier that has kept no
    documents needs all of them here. reassignments: where documents of old nodes go; see
    :func:`~ramify.taxonomy.read_reassignments`.

    >>> texts, labels = ["red apple", "ripe pear", "black tea"], ["food/apple", "food/pear", "drink/tea"]
    >>> before = TextClassifier("svm", keep_training_data=True).fit(texts, labels)
    >>> after = update(before, Taxonomy.from_paths(["food/fruit/apple", "food/fruit/pear", "drink/tea"]))
    >>> after.classifier.predict(["an apple"]).tolist(), after.relabelled
    (['food/fruit/apple'], 2)
    """
    changes = diff_taxonomies(classifier.taxonomy_, taxonomy or classifier.taxonomy_, reassignments)
    if changes.is_renaming and texts is None:
        return _renamed(classifier, changes)
    if classifier.training_data_ is None and texts is None:
        raise InputError(
            "the model has kept no documents, and more than titles has changed; give all of its training documents (--data), "
            "or train it with --keep-training-data."
        )
    _refuse_unfit(classifier, changes)
    return _relearnt(classifier, changes, texts, labels)


# ---- renaming -----------------------------------------------------------------------------------------------------------


def _renamed(classifier: TextClassifier, changes: TaxonomyDiff) -> UpdateResult:
    """Other titles and names; everything that was learnt stays, to the last bit."""
    old, new = changes.old, changes.new
    order = [nodes[0] for nodes in changes.successors]
    # nodes stay in their order, so that nothing that was learnt has to move
    names, titles = (tuple(each[node] for node in order) for each in (new.names, new.titles))
    taxonomy = Taxonomy(names, old.parent_offsets, old.parent_nodes, titles, new.separator)
    made = _copied(classifier, taxonomy)
    made.learner_ = copy(classifier.learner_)
    made.learner_.taxonomy_ = made.learner_.taxonomy = taxonomy
    made.learner_.classes_ = np.asarray(taxonomy.names)
    documents = int(classifier.figures_["documents"])
    return UpdateResult(made, replace(changes, new=taxonomy), documents, is_trained=False)


def _copied(classifier: TextClassifier, taxonomy: Taxonomy) -> TextClassifier:
    """A copy over another taxonomy, with everything that does not depend on it."""
    made = copy(classifier)
    made.__dict__.pop("_used_features", None)
    made.taxonomy = made.taxonomy_ = taxonomy
    made.classes_ = np.asarray(taxonomy.names)
    are_integers = classifier.form_.integers and all(name.lstrip("-").isdigit() for name in taxonomy.names)
    made.form_ = replace(classifier.form_, integers=are_integers)
    made.report_ = None
    made.figures_ = {**classifier.figures_, "taxonomy_from_labels": False}
    return made


# ---- learning -------------------------------------------------------------------------------------------------------------


def _relearnt(classifier: TextClassifier, changes: TaxonomyDiff, texts: Any, labels: list[list[str]] | None) -> UpdateResult:
    with stage("relabelling documents"):
        kept, told, documents = _kept_documents(classifier, changes)
        documents, more = _with_more(classifier, changes, kept, documents, texts, labels)
    if not len(more.own.indices):
        raise InputError("no document has a label in the new taxonomy; give some, or other reassignments.")
    learner = unfitted_copy(classifier.learner_).set_params(taxonomy=changes.new, n_jobs=classifier.learner_.n_jobs)
    learner.keeps_warm_start = classifier.keep_training_data
    leaves = _empty_leaves(classifier, changes, more.own)
    Y = expand_to_ancestors(more.own, changes.new)
    if classifier.training_data_ is None:
        learner.fit(more.X, Y)
    else:
        before = WarmStart(classifier.learner_, classifier.training_data_.own, documents, len(more), leaves)
        learner.refit_from(more.X, Y, before)
    made = _finished(classifier, changes, learner, more, Y)
    begun = np.intersect1d(leaves, learner.class_nodes_)
    n_kept, taken = int(np.sum(documents >= 0)), learner.reused_
    told |= {"documents": len(more), "added": len(more) - n_kept, "replaced": len(kept) - n_kept}
    done = UpdateResult(made, changes, **told)
    names = tuple(changes.new.names[node] for node in begun.tolist())
    is_trained = taken is None or taken[0] < taken[1]
    return replace(done, reused=taken, warm_started=learner.warm_started_, is_trained=is_trained, started_from_parent=names)


def _kept_documents(classifier: TextClassifier, changes: TaxonomyDiff) -> tuple[TrainingData, dict[str, Any], Ints]:
    """Kept documents with their new labels, figures on them, and the number that each document of before has among them."""
    before = classifier.training_data_
    if before is None:
        nothing = csr_array((0, classifier.vectorizer_.n_features_out), dtype=np.float32)
        return TrainingData(nothing, csr_array((0, len(changes.new)), dtype=bool)), {}, np.zeros(0, dtype=np.int64)
    has_documents = np.bincount(before.own.indices, minlength=len(changes.old)) > 0
    refuse_unassigned(changes, [node for node in changes.unassigned if has_documents[node]], HOW)
    found = relabel(before.own, changes)
    stays = ~found.lost
    figures: dict[str, Any] = {"relabelled": int(found.changed.sum()), "at_split": int((found.split & stays).sum())}
    figures["left_out"] = int(found.lost.sum())
    numbers = np.where(stays, np.cumsum(stays) - 1, -1)
    return TrainingData(csr_array(before.X[stays]), csr_array(found.own[stays])), figures, numbers.astype(np.int64)


def _with_more(
    classifier: TextClassifier, changes: TaxonomyDiff, kept: TrainingData, documents: Ints, texts: Any, labels: Any
) -> tuple[Ints, TrainingData]:
    """More documents behind those that were kept, of which the same ones are left out; and where the kept ones are then."""
    if texts is None:
        return documents, kept
    X = classifier.vectorizer_.transform(texts)
    own = most_specific(changes.new.encode(translate(labels, changes)), changes.new)
    X, own = csr_array(X[np.diff(own.indptr) > 0]), csr_array(own[np.diff(own.indptr) > 0])
    again = set(_row_keys(X)) - {b""}
    stays = np.asarray([key not in again for key in _row_keys(kept.X)], dtype=bool)
    numbers = np.where(stays, np.cumsum(stays) - 1, -1)
    there = documents >= 0
    documents = documents.copy()
    documents[there] = numbers[documents[there]]
    both = [(kept.X[stays], X), (kept.own[stays], own)]
    return documents, TrainingData(*(csr_array(vstack(parts, format="csr")) for parts in both))


def _row_keys(X: csr_array) -> list[bytes]:
    """What tells documents apart for a learner: their features and values."""
    ends, features, values = X.indptr.tolist(), X.indices.astype(np.int32), X.data
    return [features[a:b].tobytes() + values[a:b].tobytes() for a, b in pairwise(ends)]


def _finished(
    classifier: TextClassifier, changes: TaxonomyDiff, learner: Any, documents: TrainingData, Y: csr_array
) -> TextClassifier:
    """A classifier with the new learner, and with rule and calibration learnt anew, where they are learnt."""
    made, X = _copied(classifier, changes.new), documents.X
    decision = classifier.decision_
    if isinstance(decision, FittableRule) and decision.is_fitted:
        decision = fit_rule(decision.unfitted(), learner, X, Y)
    refuse_misfit(decision, changes.new)
    made.calibration_ = made.guarantee_ = None
    if classifier.calibration_ is not None:  # documents that were kept back before are not here
        made.calibration_, made.guarantee_ = calibrate_learner(learner, X, Y)
    learner.held_out_ = None  # no longer needed
    made.learner_, made.decision_ = learner, decision
    made.learner = clone(learner).set_params(taxonomy=None)
    made.training_data_ = documents if classifier.keep_training_data else None
    made.sizes_ = np.bincount(Y.indices, minlength=len(changes.new))
    made.figures_ = {key: value for key, value in made.figures_.items() if key not in OUTDATED}
    made.figures_ |= {"documents": len(documents), "features": int(X.shape[1])}
    made.form_ = replace(made.form_, multi_label=made.form_.multi_label or bool(np.any(np.diff(documents.own.indptr) != 1)))
    return made


def _empty_leaves(classifier: TextClassifier, changes: TaxonomyDiff, own: csr_array) -> Ints:
    """Leaves without documents that are new, or had none before either and yet were known to the learner."""
    landing = landing_nodes(changes)
    is_new = np.ones(len(changes.new), dtype=bool)
    is_new[landing[landing >= 0]] = False
    known = classifier.learner_.class_nodes_
    is_new[landing[known][landing[known] >= 0]] = True
    is_new[own.indices] = False
    return np.flatnonzero(is_new & changes.new.is_leaf).astype(np.int64)


def _refuse_unfit(classifier: TextClassifier, changes: TaxonomyDiff) -> None:
    if find_system(classifier.system).needs_tree:
        changes.new.require_tree(f"system {classifier.system!r}")
    if classifier.learner_.scores_candidates_only:
        raise InputError("a model in shards cannot follow a change of its taxonomy, beside new titles; train it anew.")
