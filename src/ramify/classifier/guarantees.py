"""Guarantees on the error rate of predictions: split conformal prediction on documents that were kept back.

Documents that are kept back take no part in training, so that the guarantee is proven for new documents from the same source.
Without any, it is estimated by cross-validation: on scores by learners that were trained on fewer documents.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ramify.data.corpus import StoredTexts
from ramify.decisions import ConformalPredictor
from ramify.decisions.conformal import ConformalPaths
from ramify.errors import InputError
from ramify.metrics.calibration import is_covered, predicted_depth, wrong_fraction

if TYPE_CHECKING:
    from ramify.classifier.text_classifier import TextClassifier

Ints = NDArray[np.int64]
WITHOUT_RISK = "multiple nodes, or a guarantee for every branch, need a risk; give one, such as risk 0.05."
RISKS = (0.2, 0.1, 0.05, 0.02, 0.01)  # of a report


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


def check_fraction(keep_back: Any) -> float:
    """Refuse what is not a fraction of the documents."""
    if isinstance(keep_back, bool) or not isinstance(keep_back, Real) or not 0 <= float(keep_back) < 1:
        raise InputError(f"keep_back is {keep_back!r}; give a fraction of the documents from 0 to below 1, such as 0.1.")
    return float(keep_back)


def split_rows(n_documents: int, keep_back: float) -> tuple[Ints, Ints]:
    """Random documents to train on, and documents to keep back.

    >>> [len(part) for part in split_rows(50, 0.1)]
    [45, 5]
    """
    order = np.random.default_rng(0).permutation(n_documents)
    n_kept = round(keep_back * n_documents)
    if n_kept in (0, n_documents):
        raise InputError(
            f"keep_back is {keep_back:g}, which keeps {n_kept} of {n_documents} documents back; keep some, not all."
        )
    return np.sort(order[n_kept:]), np.sort(order[:n_kept])


def split_texts(texts: Any, rows: list[list[str]], keep_back: float) -> tuple[Any, Any, list[list[str]], list[list[str]]]:
    """Texts to train on and texts to keep back, and the labels of both."""
    fraction = check_fraction(keep_back)
    if fraction == 0 or isinstance(texts, str):
        return texts, None, rows, []
    texts = as_sized(texts)
    if count_texts(texts) != len(rows):
        raise InputError(f"there are {count_texts(texts)} texts but labels for {len(rows)}; give one entry per text.")
    train, kept = split_rows(len(rows), fraction)
    return take(texts, train), take(texts, kept), [rows[i] for i in train], [rows[i] for i in kept]


def as_sized(texts: Any) -> Any:
    """Texts whose number is known; an iterator becomes a list."""
    return texts if issparse(texts) or (isinstance(texts, Sized) and not isinstance(texts, str)) else list(texts)


def take(texts: Any, positions: Ints) -> Any:
    """Some of the texts, in any form that a classifier reads."""
    if isinstance(texts, np.ndarray) or issparse(texts):
        return texts[positions]
    if isinstance(texts, StoredTexts):
        return texts.take(positions)
    listed = list(texts)
    return [listed[place] for place in positions.tolist()]


def count_texts(texts: Any) -> int:
    """The number of texts, in any form that a classifier reads."""
    return int(texts.shape[0]) if issparse(texts) or isinstance(texts, np.ndarray) else len(texts)


def predictor_of(classifier: TextClassifier) -> ConformalPredictor:
    """The conformal predictor of a classifier; refuses a classifier without one."""
    if classifier.learner_.scores_candidates_only:
        raise InputError("a model in shards scores few nodes per text and has no guarantee; train it without shards.")
    if classifier.guarantee_ is None:
        raise InputError(
            "the model has no guarantee, since it has no documents that were not used in training; train it with some kept "
            "back, such as keep_back=0.1 (--keep-back 0.1), or call fit_guarantee() with new ones."
        )
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


def guarantee_table(classifier: TextClassifier, P: NDArray[Any], Y_true: Any, Y_pred: Any) -> list[dict[str, Any]]:
    """For some risks: what is guaranteed, what was achieved on documents with known labels, and the depth of predictions.

    Y_pred: predictions without a risk. Risks for which there are too few held-out documents are left out.
    """
    if classifier.guarantee_ is None:
        return []
    predictor, taxonomy = classifier.guarantee_.predictor, classifier.taxonomy_
    depth, rows = float(predicted_depth(Y_pred, taxonomy).mean()), []
    for risk in RISKS:
        if predictor.least_risk > risk:
            continue
        Y = predictor.decide(P, taxonomy, risk)
        covers = isinstance(predictor, ConformalPaths)
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
