"""Guarantees on the error rate of predictions: split conformal prediction on documents that were kept back.

Documents that are kept back take no part in training, so that the guarantee is proven for new documents from the same source.
Without any, it is estimated by cross-validation: on scores by learners that were trained on fewer documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ramify.decisions import ConformalPredictor
from ramify.decisions.conformal import ConformalPaths
from ramify.errors import InputError

if TYPE_CHECKING:
    from ramify.classifier.text_classifier import TextClassifier

WITHOUT_RISK = "multiple nodes, or a guarantee for every branch, need a risk; give one, such as risk 0.05."


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A conformal predictor, and the number of documents that it was fitted on.

    is_proven: whether these documents were kept back from training.
    """

    predictor: ConformalPredictor
    documents: int
    is_proven: bool

    def about(self) -> dict[str, Any]:
        """The facts, as plain values."""
        facts = {"kind": self.predictor.kind, "documents": self.documents, "is_proven": self.is_proven}
        return facts | {"least_risk": self.predictor.least_risk}


def predictor_of(classifier: TextClassifier) -> ConformalPredictor:
    """The conformal predictor of a classifier; refuses a classifier without one."""
    if classifier.learner_.scores_candidates_only:
        raise InputError("a model in shards scores few nodes per text and has no guarantee; train it without shards.")
    if classifier.guarantee_ is None:
        found = "the model has no guarantee, since it has no documents that were not used in training"
        advice = "train it with some kept back, such as keep_back=0.1 (--keep-back 0.1), or call fit_guarantee() with new ones"
        raise InputError(f"{found}; {advice}.")
    return classifier.guarantee_.predictor


def branches_without_guarantee(classifier: TextClassifier, risk: float) -> str | None:
    """A sentence on the branches that have too few held-out documents for a risk; None without any."""
    predictor, taxonomy = predictor_of(classifier), classifier.taxonomy_
    if not isinstance(predictor, ConformalPaths):
        return None
    refused = predictor.uncovered_branches(risk, taxonomy)
    if not refused:
        return None
    named = ", ".join(repr(taxonomy.show(branch)) for branch in refused[:5]) + (", ..." if len(refused) > 5 else "")
    return f"too few documents were held out for a risk of {risk:g} in {named}; documents of these branches get no label."
