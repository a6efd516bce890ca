"""What a classifier can promise: from documents that were kept back, or from those that cross-fitted learners had not seen.

Kept back, documents take no part in anything that is learnt, so that split conformal prediction holds for them and new ones
alike. Cross-fitted ones were scored by learners of the same kind that knew fewer documents: a good guess, and no proof.
"""

from __future__ import annotations

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
WITHOUT_RISK = "several nodes, or a promise for every branch, go with a risk; give one, such as risk 0.05."
RISKS = (0.2, 0.1, 0.05, 0.02, 0.01)  # of a report


@dataclass(frozen=True, slots=True)
class Guarantee:
    """A promise, the number of documents behind it, and whether nobody had learnt anything from them."""

    promise: ConformalPredictor
    documents: int
    is_proven: bool

    def about(self) -> dict[str, Any]:
        """What there is to say of it, as plain values."""
        return {
            "kind": self.promise.kind,
            "documents": self.documents,
            "is_proven": self.is_proven,
            "least_risk": self.promise.least_risk,
        }


def check_fraction(keep_back: Any) -> float:
    """Refuse what is no share of the documents."""
    if isinstance(keep_back, bool) or not isinstance(keep_back, Real) or not 0 <= float(keep_back) < 1:
        raise InputError(f"keep_back is {keep_back!r}; give a share of the documents from 0 to below 1, such as 0.1.")
    return float(keep_back)


def set_aside(n_documents: int, share: float) -> tuple[Ints, Ints]:
    """Documents to learn from, and those to keep back: any, so that new ones are like them.

    >>> [len(part) for part in set_aside(50, 0.1)]
    [45, 5]
    """
    order = np.random.default_rng(0).permutation(n_documents)
    n_kept = round(share * n_documents)
    if n_kept in (0, n_documents):
        raise InputError(f"keep_back is {share:g}, which keeps {n_kept} of {n_documents} documents back; keep some, not all.")
    return np.sort(order[n_kept:]), np.sort(order[:n_kept])


def set_texts_aside(texts: Any, rows: list[list[str]], keep_back: float) -> tuple[Any, Any, list[list[str]], list[list[str]]]:
    """Texts to learn from and texts to keep back, and the labels of both."""
    share = check_fraction(keep_back)
    if share == 0 or isinstance(texts, str):
        return texts, None, rows, []
    texts = texts if hasattr(texts, "__len__") or hasattr(texts, "shape") else list(texts)
    if count_texts(texts) != len(rows):
        raise InputError(f"there are {count_texts(texts)} texts but labels for {len(rows)}; give one entry a text.")
    learnt, kept = set_aside(len(rows), share)
    return take(texts, learnt), take(texts, kept), [rows[i] for i in learnt], [rows[i] for i in kept]


def take(texts: Any, positions: Ints) -> Any:
    """Some of the texts, in any form that a classifier takes."""
    if isinstance(texts, np.ndarray) or issparse(texts):
        return texts[positions]
    if isinstance(texts, StoredTexts):
        return texts.take(positions)
    listed = list(texts)
    return [listed[place] for place in positions.tolist()]


def count_texts(texts: Any) -> int:
    """How many texts there are, in any form that a classifier takes."""
    return int(texts.shape[0]) if hasattr(texts, "shape") else len(texts)


def guarantee_of(classifier: TextClassifier) -> ConformalPredictor:
    """What a classifier promises; refuses one that cannot, and says what to do."""
    if classifier.learner_.scores_candidates_only:
        raise InputError("a model that looks at few nodes of each text cannot promise anything; train it without shards.")
    if classifier.guarantee_ is None:
        raise InputError(
            "the model knows of no documents that it has not learnt from, so it cannot promise anything; "
            "train it with some kept back, such as keep_back=0.1 (--keep-back 0.1), or give it some by fit_guarantee()."
        )
    return classifier.guarantee_.promise


def branches_refused(classifier: TextClassifier, risk: float) -> str | None:
    """A sentence about the branches that have too few held-out documents for a risk; None where there are none."""
    promise, taxonomy = guarantee_of(classifier), classifier.taxonomy_
    if not isinstance(promise, ConformalPaths):
        return None
    refused = promise.uncovered_branches(risk, taxonomy)
    if not refused:
        return None
    named = ", ".join(repr(taxonomy.show(branch)) for branch in refused[:5]) + (", ..." if len(refused) > 5 else "")
    return f"too few documents were held out for a risk of {risk:g} in {named}; what seems to belong there gets no label."


def guarantee_table(classifier: TextClassifier, P: NDArray[Any], Y_true: Any, Y_pred: Any) -> list[dict[str, Any]]:
    """For some risks what was promised, what came of it on documents with known labels, and how deep answers went for it.

    Y_pred: the answers without a promise. Risks for which held-out documents are too few are left out.
    """
    if classifier.guarantee_ is None:
        return []
    promise, taxonomy = classifier.guarantee_.promise, classifier.taxonomy_
    depth, rows = float(predicted_depth(Y_pred, taxonomy).mean()), []
    for risk in RISKS:
        if promise.least_risk > risk:
            continue
        Y = promise.decide(P, taxonomy, risk)
        right = (
            is_covered(Y_true, Y, taxonomy) if isinstance(promise, ConformalPaths) else 1 - wrong_fraction(Y_true, Y, taxonomy)
        )
        depths = predicted_depth(Y, taxonomy)
        row = {"risk": risk, "guaranteed": 1 - risk, "achieved": float(right.mean()), "depth": float(depths.mean())}
        rows.append(row | {"depth_without_guarantee": depth, "without_label": float((depths == 0).mean())})
    return rows


def guarantee_note(promised: Guarantee) -> str:
    """What a promise rests on, in words."""
    by_text = "of a text's labels that are right, on the average over texts"
    what = by_text if promised.promise.kind == "risk-control" else "of texts whose true path passes through the answer"
    why = "kept back from learning" if promised.is_proven else "scored by models that had not seen them, which is no proof"
    return f"promised is the share {what}; no label is never wrong. It rests on {promised.documents:,} documents {why}"
