"""A classifier that follows a change of its taxonomy: documents are relabelled, and what the change reaches is learnt anew."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.base import clone

from ramify.decisions import LearnableRule
from ramify.errors import InputError
from ramify.execution import stage
from ramify.learners.before import Before
from ramify.pipeline.calibrating import learn_calibration
from ramify.pipeline.classifier import TextClassifier
from ramify.pipeline.cross_fitting import alike
from ramify.pipeline.kept import KeptDocuments
from ramify.pipeline.relabelling import landing_nodes, relabel, translate
from ramify.pipeline.rules import learn_rule, refuse_misfit
from ramify.pipeline.several import have_one_each
from ramify.systems import find_system
from ramify.taxonomy import Changes, Taxonomy, compare_taxonomies, expand_to_ancestors, most_specific
from ramify.taxonomy.changes import Answers, refuse_questions

HOW = "'ramify taxonomy diff OLD NEW --out questions.tsv' writes these questions; fill them in, and give the file as --answers."
OUTDATED = ("evaluation", "tested_on", "held_out")
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Updated:
    """A classifier for the new taxonomy, and what was done.

    documents: how many it learnt from. relabelled: documents with labels whose nodes were moved, merged, split or retired.
    at_split: those of them that are at a node above the parts of one that was split. left_out: documents that have no label
    left. added, replaced: documents that came with the change, and documents whose labels these have put right.
    taken_over: classifiers that are as they were, of how many; None where the learner cannot tell. gone_on: whether training
    went on from where it was. is_trained: whether anything was trained at all. begun: leaves that begin as their parents.
    """

    classifier: TextClassifier
    changes: Changes
    documents: int
    relabelled: int = 0
    at_split: int = 0
    left_out: int = 0
    added: int = 0
    replaced: int = 0
    taken_over: tuple[int, int] | None = None
    gone_on: bool = False
    is_trained: bool = True
    begun: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """What was done, as plain values."""
        names = ("documents", "relabelled", "at_split", "left_out", "added", "replaced", "gone_on", "is_trained")
        figures = {name: getattr(self, name) for name in names}
        taken = None if self.taken_over is None else list(self.taken_over)
        return {"changes": self.changes.as_dict(), **figures, "taken_over": taken, "begun": list(self.begun)}


def follows_changes(classifier: TextClassifier, taxonomy: Taxonomy | None, has_answers: bool, is_boosting: bool) -> bool:
    """Whether documents go with a change of the taxonomy, rather than to what a classifier counts or boosts already.

    Learners that can go on by themselves do so, unless they have kept documents and the taxonomy is a new one.
    """
    if is_boosting or not hasattr(classifier.learner_, "partial_fit"):
        return not is_boosting and (classifier.documents_ is not None or taxonomy is not None)
    return has_answers or (taxonomy is not None and classifier.documents_ is not None)


def update(
    classifier: TextClassifier,
    taxonomy: Taxonomy | None = None,
    texts: Any = None,
    labels: list[list[str]] | None = None,
    *,
    answers: Answers | None = None,
) -> Updated:
    """A classifier for a changed taxonomy; the one given stays as it is.

    taxonomy: the new one; the same as before when not given. texts, labels: more documents, labelled by nodes of the new
    taxonomy or the old one; a document that was learnt from already gets the new labels. A classifier that has kept no
    documents needs all of them here. answers: where documents of old nodes go; see :func:`~ramify.taxonomy.read_answers`.

    >>> texts, labels = ["red apple", "ripe pear", "black tea"], ["food/apple", "food/pear", "drink/tea"]
    >>> before = TextClassifier("svm", keep_documents=True).fit(texts, labels)
    >>> after = update(before, Taxonomy.from_paths(["food/fruit/apple", "food/fruit/pear", "drink/tea"]))
    >>> after.classifier.predict(["an apple"]).tolist(), after.relabelled
    (['food/fruit/apple'], 2)
    """
    changes = compare_taxonomies(classifier.taxonomy_, taxonomy or classifier.taxonomy_, answers)
    if changes.is_renaming and texts is None:
        return _renamed(classifier, changes)
    if classifier.documents_ is None and texts is None:
        raise InputError(
            "the model has kept no documents, and more than titles has changed; give all of its training documents (--data), "
            "or train it with --keep-documents."
        )
    _refuse_unfit(classifier, changes)
    return _relearnt(classifier, changes, texts, labels)


# ---- renaming -----------------------------------------------------------------------------------------------------------


def _renamed(classifier: TextClassifier, changes: Changes) -> Updated:
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
    return Updated(made, replace(changes, new=taxonomy), documents, taken_over=None, is_trained=False)


def _copied(classifier: TextClassifier, taxonomy: Taxonomy) -> TextClassifier:
    """A copy over another taxonomy, with everything that does not depend on it."""
    made = copy(classifier)
    made.__dict__.pop("_narrow", None)
    made.taxonomy = made.taxonomy_ = taxonomy
    made.classes_ = np.asarray(taxonomy.names)
    are_integers = classifier.form_.integers and all(name.lstrip("-").isdigit() for name in taxonomy.names)
    made.form_ = replace(classifier.form_, integers=are_integers)
    made.report_ = None
    made.figures_ = {**classifier.figures_, "taxonomy_from_labels": False}
    return made


# ---- learning -------------------------------------------------------------------------------------------------------------


def _relearnt(classifier: TextClassifier, changes: Changes, texts: Any, labels: list[list[str]] | None) -> Updated:
    with stage("relabelling documents"):
        kept, told, documents = _kept_documents(classifier, changes)
        documents, more = _with_more(classifier, changes, kept, documents, texts, labels)
    if not len(more.own.indices):
        raise InputError("no document has a label in the new taxonomy; give some, or other answers.")
    learner = alike(classifier.learner_).set_params(taxonomy=changes.new, n_jobs=classifier.learner_.n_jobs)
    learner.is_to_go_on = classifier.keep_documents
    leaves = _empty_leaves(classifier, changes, more.own)
    Y = expand_to_ancestors(more.own, changes.new)
    if classifier.documents_ is None:
        learner.fit(more.X, Y)
    else:
        before = Before(classifier.learner_, classifier.documents_.own, documents, len(more), leaves)
        learner.relearn(more.X, Y, before)
    made = _finished(classifier, changes, learner, more, Y)
    begun = np.intersect1d(leaves, getattr(learner, "class_nodes_", leaves[:0]))
    n_kept, taken = int(np.sum(documents >= 0)), learner.taken_over_
    told |= {"documents": len(more), "added": len(more) - n_kept, "replaced": len(kept) - n_kept}
    done = Updated(made, changes, **told)
    names = tuple(changes.new.names[node] for node in begun.tolist())
    is_trained = taken is None or taken[0] < taken[1]
    return replace(done, taken_over=taken, gone_on=learner.has_gone_on_, is_trained=is_trained, begun=names)


def _kept_documents(classifier: TextClassifier, changes: Changes) -> tuple[KeptDocuments, dict[str, Any], Ints]:
    """Kept documents with their new labels, figures on them, and the number that each document of before has among them."""
    before = classifier.documents_
    if before is None:
        nothing = csr_array((0, classifier.vectorizer_.n_features_out), dtype=np.float32)
        return KeptDocuments(nothing, csr_array((0, len(changes.new)), dtype=bool)), {}, np.zeros(0, dtype=np.int64)
    has_documents = np.bincount(before.own.indices, minlength=len(changes.old)) > 0
    refuse_questions(changes, [node for node in changes.questions if has_documents[node]], HOW)
    found = relabel(before.own, changes)
    stays = ~found.lost
    figures: dict[str, Any] = {"relabelled": int(found.changed.sum()), "at_split": int((found.split & stays).sum())}
    figures["left_out"] = int(found.lost.sum())
    numbers = np.where(stays, np.cumsum(stays) - 1, -1)
    return KeptDocuments(csr_array(before.X[stays]), csr_array(found.own[stays])), figures, numbers.astype(np.int64)


def _with_more(
    classifier: TextClassifier, changes: Changes, kept: KeptDocuments, documents: Ints, texts: Any, labels: Any
) -> tuple[Ints, KeptDocuments]:
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
    return documents, KeptDocuments(*(csr_array(vstack(parts, format="csr")) for parts in both))


def _row_keys(X: csr_array) -> list[bytes]:
    """What tells documents apart for a learner: their features and values."""
    ends, features, values = X.indptr.tolist(), X.indices.astype(np.int32), X.data
    return [features[a:b].tobytes() + values[a:b].tobytes() for a, b in pairwise(ends)]


def _finished(
    classifier: TextClassifier, changes: Changes, learner: Any, documents: KeptDocuments, Y: csr_array
) -> TextClassifier:
    """A classifier with the new learner, and with rule and calibration learnt anew, where they are learnt."""
    made, X = _copied(classifier, changes.new), documents.X
    decision = classifier.decision_
    if isinstance(decision, LearnableRule) and decision.is_learnt:
        decision = learn_rule(decision.forget(), learner, X, Y)
    refuse_misfit(decision, changes.new)
    made.calibration_ = made.promised_ = None
    if classifier.calibration_ is not None:  # documents that were kept back before are not here
        made.calibration_, made.promised_ = learn_calibration(learner, X, Y, have_one_each(Y, changes.new))
    learner.held_out_ = None  # it has served
    made.learner_, made.decision_ = learner, decision
    made.learner = clone(learner).set_params(taxonomy=None)
    made.documents_ = documents if classifier.keep_documents else None
    made.sizes_ = np.bincount(Y.indices, minlength=len(changes.new))
    made.figures_ = {key: value for key, value in made.figures_.items() if key not in OUTDATED}
    made.figures_ |= {"documents": len(documents), "features": int(X.shape[1])}
    made.form_ = replace(made.form_, many=made.form_.many or bool(np.any(np.diff(documents.own.indptr) != 1)))
    return made


def _empty_leaves(classifier: TextClassifier, changes: Changes, own: csr_array) -> Ints:
    """Leaves without documents that are new, or had none before either and yet were known to the learner."""
    landing = landing_nodes(changes)
    is_new = np.ones(len(changes.new), dtype=bool)
    is_new[landing[landing >= 0]] = False
    known = getattr(classifier.learner_, "class_nodes_", np.zeros(0, dtype=np.int64))
    is_new[landing[known][landing[known] >= 0]] = True
    is_new[own.indices] = False
    return np.flatnonzero(is_new & changes.new.is_leaf).astype(np.int64)


def _refuse_unfit(classifier: TextClassifier, changes: Changes) -> None:
    if find_system(classifier.system).needs_tree:
        changes.new.require_tree(f"system {classifier.system!r}")
    if getattr(classifier.learner_, "looks_at_few", False):
        raise InputError("a model in shards cannot follow a change of its taxonomy, beside new titles; train it anew.")
