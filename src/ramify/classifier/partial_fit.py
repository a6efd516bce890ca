"""Train a classifier further: more counts for naive Bayes, more rounds for boosting."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ramify.arguments import sized_entries
from ramify.classifier.fitting import count_texts
from ramify.classifier.inputs import read_documents, refuse_other_kind
from ramify.decisions import FittableRule
from ramify.errors import InputError
from ramify.features.base import BaseVectorizer
from ramify.learners.base import PartialFitLearner
from ramify.taxonomy import Taxonomy, as_taxonomy, most_specific, read_labels, taxonomy_of_labels

if TYPE_CHECKING:
    from ramify.classifier.text_classifier import TextClassifier


def partial_fit(classifier: TextClassifier, texts: Any, labels: Any, given: Any) -> None:
    """Train a classifier on more texts; after an error it is unchanged."""
    learner, vectorizer = copy(trainable(classifier)), copy(classifier.vectorizer_)
    texts = sized_entries(read_documents(texts), "texts")
    refuse_other_kind(texts, vectorizer)
    read = read_labels(labels, classifier.taxonomy_ if given is None else as_taxonomy(given), known=False)
    rows, many, integers = read.rows, read.form.multi_label, read.form.integers
    if not any(rows):
        raise InputError("there is no labelled document to train on; give some.")
    taxonomy = larger_taxonomy(classifier, rows, given)
    if isinstance(classifier.decision_, FittableRule) and taxonomy is not classifier.taxonomy_:
        rule = classifier.decision_.kind
        raise InputError(f"rule {rule!r} was fitted for the current nodes; train from scratch to add some.")
    Y = taxonomy.encode(rows)
    if count_texts(texts) != Y.shape[0]:
        raise InputError(f"there are {count_texts(texts)} texts but labels for {Y.shape[0]}; give one entry per text.")
    columns = vectorizer.add_terms(texts) if isinstance(vectorizer, BaseVectorizer) and vectorizer.can_add_terms else None
    if columns is not None:
        learner.widen(columns, vectorizer.n_features_out)
    X = vectorizer.transform(texts)
    learner.partial_fit(X, Y, taxonomy=taxonomy)
    nodes = np.asarray([taxonomy.index(name) for name in classifier.taxonomy_.names], dtype=np.int64)
    if classifier.training_data_ is not None:
        classifier.training_data_ = classifier.training_data_.followed_by(X, most_specific(Y, taxonomy), columns, nodes)
    if classifier.sizes_ is not None:
        sizes = np.bincount(Y.indices, minlength=len(taxonomy))
        np.add.at(sizes, nodes, classifier.sizes_)
        classifier.sizes_ = sizes
    form = classifier.form_
    classifier.form_ = replace(form, multi_label=form.multi_label or many, integers=form.integers and integers)
    classifier.guarantee_ = classifier.report_ = None  # they are about the old model; so is the calibration
    if taxonomy is not classifier.taxonomy_ or learner.n_rounds_ is not None:  # unless only counts have grown
        classifier.calibration_ = None
    classifier.taxonomy_ = taxonomy
    classifier.taxonomy = taxonomy if classifier.taxonomy is not None else None
    classifier.vectorizer_, classifier.learner_ = vectorizer, learner
    documents = int(classifier.figures_["documents"]) + Y.shape[0]
    classifier.figures_ = {**classifier.figures_, "documents": documents, "features": vectorizer.n_features_out}


def cut_rounds(classifier: TextClassifier, texts: Any, labels: Any) -> dict[int, float]:
    """Keep the number of boosting rounds that is best on some texts; returns micro F1 for each number tried."""
    Y = classifier.taxonomy_.encode(read_labels(labels, classifier.taxonomy_).rows)
    best, quality = classifier.learner_.choose_rounds(classifier.vectorizer_.transform(texts), Y)
    classifier.learner_ = classifier.learner_.at_round(best)
    classifier.guarantee_ = classifier.calibration_ = None
    return dict(quality)


def trainable(classifier: TextClassifier) -> PartialFitLearner:
    """The learner of a classifier; refuses learners that train on all documents at once."""
    if not isinstance(classifier.learner_, PartialFitLearner):
        others = "nb, shrinkage-nb, pachinko-nb, adaboost-mh and treeboost-mh can be trained further"
        kept = "and so can a model that was trained with --keep-training-data"
        raise InputError(f"system {classifier.system!r} trains on all documents at once; {others}, {kept}.")
    return classifier.learner_


def larger_taxonomy(classifier: TextClassifier, rows: list[list[str]], given: Any) -> Taxonomy:
    """The taxonomy to train with: a given one, or the current one, extended by new label paths."""
    known = classifier.taxonomy_
    if given is not None:
        return as_taxonomy(given).with_main_parents_of(known)
    if not classifier.figures_.get("taxonomy_from_labels") or all(label in known for row in rows for label in row):
        return known
    separator = known.separator if known.n_levels > 1 else classifier.separator
    return taxonomy_of_labels([list(known.names), *rows], separator)
