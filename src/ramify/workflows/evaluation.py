"""Evaluate a classifier on labelled documents: a report, and its worst errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.classifier.guarantees import guarantee_note, guarantee_table
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.errors import DataError, InputError, LabelError, suggest
from ramify.features import Vectors
from ramify.metrics import Report, make_report, tree_distance
from ramify.metrics.evaluation import check_hierarchy, fits_dense
from ramify.parallel import stage
from ramify.taxonomy import Taxonomy, most_specific

TOO_LARGE = "documents × nodes is too large for ranking and calibration; evaluate on fewer documents to see them"


@dataclass(frozen=True, slots=True)
class PredictionError:
    """A document with a wrong prediction.

    line: its place in the file. true, predicted: nodes. probabilities: of the predicted nodes, where known.
    distance: edges of the tree between prediction and truth.
    """

    line: int
    document: Any
    true: list[int]
    predicted: list[int]
    probabilities: list[float]
    distance: float


def evaluate(classifier: TextClassifier, corpus: Corpus, hierarchy: str = "original") -> Report:
    """Compare a classifier's predictions with the labels of a corpus.

    hierarchy: "modified" adds F1 on the modified hierarchy, in which inner nodes have leaves for their own documents.
    """
    return evaluate_with_errors(classifier, corpus, hierarchy, most_errors=0)[0]


def evaluate_with_errors(
    classifier: TextClassifier, corpus: Corpus, hierarchy: str = "original", most_errors: int = 20
) -> tuple[Report, list[PredictionError]]:
    """The same as :func:`evaluate`, with the worst errors."""
    check_hierarchy(hierarchy)
    taxonomy = classifier.taxonomy_
    if len(corpus) == 0:
        raise DataError(f"{corpus.source} has no labelled documents to evaluate on.")
    corpus = adapt_corpus(classifier, corpus)
    check_labels(corpus, taxonomy)
    Y_true = taxonomy.encode(corpus.labels)
    with stage("evaluating"):
        if not fits_dense(len(corpus), taxonomy):
            Y_pred = classifier.predict_matrix(corpus.documents)
            report = replace(make_report(Y_true, Y_pred, taxonomy, hierarchy=hierarchy), notes=[TOO_LARGE])
            return report, worst_errors(corpus, taxonomy, Y_true, Y_pred, None, most_errors)
        Y_pred, P = classifier.decide_with_probabilities(corpus.documents)
        is_calibrated = classifier.calibration_ is not None
        uncalibrated = classifier.uncalibrated().decide_with_probabilities(corpus.documents)[1] if is_calibrated else None
        report = make_report(Y_true, Y_pred, taxonomy, P, hierarchy, uncalibrated)
        if classifier.guarantee_ is not None:
            table = guarantee_table(classifier, P, Y_true, Y_pred)
            report = replace(report, guarantees=table, notes=[*report.notes, guarantee_note(classifier.guarantee_)])
        return report, worst_errors(corpus, taxonomy, Y_true, Y_pred, P, most_errors)


def worst_errors(
    corpus: Corpus, taxonomy: Taxonomy, Y_true: csr_array, Y_pred: csr_array, P: NDArray[np.float32] | None, most: int
) -> list[PredictionError]:
    """Wrong predictions, farthest from the truth first; of equally far ones the most probable first."""
    if most < 1:
        return []
    distance = tree_distance(Y_true, Y_pred, taxonomy)
    true, predicted = most_specific(Y_true, taxonomy), most_specific(Y_pred, taxonomy)
    confidence = np.zeros(len(distance))
    if P is not None:
        rows = np.repeat(np.arange(len(distance)), np.diff(predicted.indptr))
        np.maximum.at(confidence, rows, P[rows, predicted.indices])
    found = []
    for row in np.lexsort((-confidence, -distance))[:most].tolist():
        if distance[row] > 0:
            nodes = predicted.indices[predicted.indptr[row] : predicted.indptr[row + 1]].tolist()
            truth = true.indices[true.indptr[row] : true.indptr[row + 1]].tolist()
            probabilities = [] if P is None else [float(P[row, node]) for node in nodes]
            line, document = (
                corpus.lines[row] if corpus.lines else row + 1,
                None if corpus.has_vectors else corpus.documents[row],
            )
            found.append(PredictionError(line, document, truth, nodes, probabilities, float(distance[row])))
    return found


def check_labels(corpus: Corpus, taxonomy: Taxonomy) -> None:
    """Refuse labels that the taxonomy does not have; the message has their number and the place of the first."""
    distinct = dict.fromkeys(chain.from_iterable(corpus.labels))
    unknown = {label: None for label in distinct if label not in taxonomy}
    if not unknown:
        return
    where = [i for i, labels in enumerate(corpus.labels) if not unknown.keys().isdisjoint(labels)]
    first = next(iter(unknown))
    more = f", and {len(unknown) - 1:,} more labels are unknown" if len(unknown) > 1 else ""
    raise LabelError(
        f"{corpus.location_of(where[0])}: label {first!r} is not in the taxonomy of {len(taxonomy):,} nodes{more} "
        f"({len(where):,} of {len(corpus):,} documents); add the nodes, or correct the labels."
        f"{suggest(first, taxonomy.names[:20_000])}"
    )


def adapt_corpus(classifier: TextClassifier, corpus: Corpus) -> Corpus:
    """A corpus in the form that the classifier reads; refuses vectors for a model of texts, and texts for one of vectors."""
    if not corpus.has_vectors:
        refuse_texts(classifier, corpus.source)
        return corpus
    if not isinstance(classifier.vectorizer_, Vectors):
        raise InputError(f"the model was trained on texts, but {corpus.source} holds vectors; give texts.")
    return corpus.with_width(classifier.vectorizer_.n_features_in_)


def refuse_texts(classifier: TextClassifier, source: str) -> None:
    """Refuse texts for a model of vectors."""
    if isinstance(classifier.vectorizer_, Vectors):
        raise InputError(f"the model was trained on vectors, but {source} holds texts; give vectors, as svmlight.")
