"""Evaluate a classifier on labelled documents: a report, and its worst errors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.classifier.guarantees import Guarantee
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.data.corpus import text_of
from ramify.decisions.conformal import ConformalPaths
from ramify.errors import DataError, LabelError, suggest
from ramify.features.base import check_fitted
from ramify.metrics import Report, make_report, tree_distance
from ramify.metrics.calibration import is_covered, predicted_depth, wrong_fraction
from ramify.metrics.evaluation import check_hierarchy, fits_dense
from ramify.metrics.hierarchical import Costs, node_costs
from ramify.parallel import stage
from ramify.taxonomy import Taxonomy, most_specific
from ramify.type_hints import checks_types
from ramify.workflows.reading import adapt_corpus

RISKS = (0.2, 0.1, 0.05, 0.02, 0.01)  # of the guarantees in a report
TOO_LARGE = "documents × nodes is too large for ranking and calibration; evaluate on fewer documents to see them"


@dataclass(frozen=True, slots=True)
class PredictionError:
    """A document with a wrong prediction. line: in the file. true, predicted: nodes. distance: edges of the tree between."""

    line: int
    document: Any
    true: list[int]
    predicted: list[int]
    probabilities: list[float]
    distance: float


@checks_types
def evaluate(classifier: TextClassifier, corpus: Corpus, hierarchy: str = "original", costs: Costs = None) -> Report:
    """Compare a classifier's predictions with the labels of a corpus.

    hierarchy: "modified" adds F1 on the modified hierarchy, in which inner nodes have leaves for their own documents.
    costs: adds the H-loss with these costs: one number per node, or numbers by node name (others: 1).
    """
    return evaluate_with_errors(classifier, corpus, hierarchy, most_errors=0, costs=costs)[0]


@checks_types
def evaluate_with_errors(
    classifier: TextClassifier, corpus: Corpus, hierarchy: str = "original", most_errors: int = 20, costs: Costs = None
) -> tuple[Report, list[PredictionError]]:
    """The same as :func:`evaluate`, with the worst errors."""
    check_fitted(classifier)
    check_hierarchy(hierarchy)
    taxonomy = classifier.taxonomy_
    node_costs(taxonomy, costs)  # refuses costs that do not fit, before anything is computed
    if len(corpus) == 0:
        raise DataError(f"{corpus.source} has no labelled documents to evaluate on.")
    corpus = adapt_corpus(classifier, corpus)
    check_labels(corpus, taxonomy)
    Y_true = taxonomy.encode(corpus.labels)
    with stage("evaluating"):
        if not fits_dense(len(corpus), taxonomy):
            Y_pred = classifier.predict_matrix(corpus.documents)
            report = replace(make_report(Y_true, Y_pred, taxonomy, hierarchy=hierarchy, costs=costs), notes=[TOO_LARGE])
            return report, worst_errors(corpus, taxonomy, Y_true, Y_pred, None, most_errors)
        Y_pred, P = classifier.decide_with_probabilities(corpus.documents)
        is_calibrated = classifier.calibration_ is not None
        uncalibrated = classifier.uncalibrated().decide_with_probabilities(corpus.documents)[1] if is_calibrated else None
        report = make_report(Y_true, Y_pred, taxonomy, P, hierarchy, uncalibrated, costs)
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
            line = corpus.lines[row] if corpus.lines else row + 1
            document = None if corpus.has_vectors else text_of(corpus.documents[row])
            found.append(PredictionError(line, document, truth, nodes, probabilities, float(distance[row])))
    return found


def check_labels(corpus: Corpus, taxonomy: Taxonomy) -> None:
    """Refuse labels that the taxonomy does not have; the message has their number and the place of the first."""
    unknown = {label: None for label in dict.fromkeys(chain.from_iterable(corpus.labels)) if label not in taxonomy}
    if not unknown:
        return
    where = [i for i, labels in enumerate(corpus.labels) if not unknown.keys().isdisjoint(labels)]
    first = next(iter(unknown))
    more = f", and {len(unknown) - 1:,} more labels are unknown" if len(unknown) > 1 else ""
    of = f"{len(where):,} of {len(corpus):,} documents"
    problem = f"label {first!r} is not in the taxonomy of {len(taxonomy):,} nodes{more} ({of})"
    advice = f"add the nodes, or correct the labels.{suggest(first, (*taxonomy.names[:20_000], *taxonomy.titles[:20_000]))}"
    raise LabelError(f"{corpus.location_of(where[0])}: {problem}; {advice}")


def guarantee_table(classifier: TextClassifier, P: NDArray[Any], Y_true: Any, Y_pred: Any) -> list[dict[str, Any]]:
    """For each risk with enough held-out documents: what is guaranteed, and what was achieved. Y_pred: without a risk."""
    if classifier.guarantee_ is None:
        return []
    predictor, taxonomy = classifier.guarantee_.predictor, classifier.taxonomy_
    depth, rows, covers = float(predicted_depth(Y_pred, taxonomy).mean()), [], isinstance(predictor, ConformalPaths)
    for risk in (risk for risk in RISKS if risk >= predictor.least_risk):
        Y = predictor.decide(P, taxonomy, risk)
        correct = is_covered(Y_true, Y, taxonomy) if covers else 1 - wrong_fraction(Y_true, Y, taxonomy)
        depths = predicted_depth(Y, taxonomy)
        row = {"risk": risk, "guaranteed": 1 - risk, "achieved": float(correct.mean()), "depth": float(depths.mean())}
        rows.append(row | {"depth_without_guarantee": depth, "without_label": float((depths == 0).mean())})
    return rows


def guarantee_note(guarantee: Guarantee) -> str:
    """What a guarantee means, and what it is based on."""
    labels = "labels that are correct, averaged over texts"
    what = labels if guarantee.predictor.kind == "risk-control" else "texts whose true path passes through the prediction"
    number = f"{guarantee.documents:,} documents"
    estimated = f"Estimated by cross-validation on {number}; not a proven guarantee. Use --keep-back 0.1 for one"
    based_on = f"Fitted on {number} that were kept back from training" if guarantee.is_proven else estimated
    return f"guaranteed is the fraction of {what}; an empty prediction counts as correct. {based_on}"
