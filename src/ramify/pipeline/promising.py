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

from ramify.decisions import Promise
from ramify.errors import InputError

if TYPE_CHECKING:
    from ramify.pipeline.classifier import TextClassifier

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Promised:
    """A promise, the number of documents behind it, and whether nobody had learnt anything from them."""

    promise: Promise
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


def check_share(keep_back: Any) -> float:
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
    return np.sort(order[n_kept:]), np.sort(order[:n_kept])


def take(texts: Any, positions: Ints) -> Any:
    """Some of the texts, in any form that a classifier takes."""
    if hasattr(texts, "take") and not hasattr(texts, "shape"):
        return texts.take(positions)
    return texts[positions] if hasattr(texts, "shape") else [texts[place] for place in positions.tolist()]


def promise_of(classifier: TextClassifier) -> Promise:
    """What a classifier promises; refuses one that cannot, and says what to do."""
    if getattr(classifier.learner_, "looks_at_few", False):
        raise InputError("a model that looks at few nodes of each text cannot promise anything; train it without shards.")
    if classifier.promised_ is None:
        raise InputError(
            "the model knows of no documents that it has not learnt from, so it cannot promise anything; "
            "train it with some kept back, such as keep_back=0.1 (--keep-back 0.1)."
        )
    return classifier.promised_.promise
