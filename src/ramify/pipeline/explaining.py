"""Why a text got its label: exact contributions of its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from ramify.taxonomy import most_specific

if TYPE_CHECKING:
    from ramify.pipeline.classifier import TextClassifier


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a text got its label.

    path: titles from the top to the predicted node. probabilities: one for each node of the path.
    rival: the path of the best class other than the prediction. words: each known word of the text with how much it speaks
    for the prediction and against the rival, strongest first; `prior` is what the sizes of the two classes add. They add up to
    `margin`, the difference of the two scores.
    """

    path: tuple[str, ...]
    probabilities: tuple[float, ...]
    rival: tuple[str, ...]
    words: list[tuple[str, float]]
    prior: float
    margin: float


def explain(classifier: TextClassifier, x: csr_array) -> Explanation:
    """Explain the label of one document, given its features."""
    taxonomy, learner = classifier.taxonomy_, classifier.learner_
    S = learner.scores(x)
    answer = most_specific(classifier.decision_.decide(S, taxonomy), taxonomy).indices
    ranked = np.argsort(-np.nan_to_num(S[0], nan=-np.inf), kind="stable").tolist()
    chosen = int(answer[np.argmax(S[0][answer])]) if answer.size else ranked[0]
    rival = next(node for node in ranked if node != chosen)
    features, for_chosen, prior_chosen = learner.contributions(x, chosen)
    _, for_rival, prior_rival = learner.contributions(x, rival)
    difference, prior = for_chosen - for_rival, prior_chosen - prior_rival
    P = learner.to_probabilities(S)[0]
    return Explanation(
        path=taxonomy.path_of(chosen),
        probabilities=tuple(float(P[node]) for node in taxonomy.nodes_to(chosen)),
        rival=taxonomy.path_of(rival),
        words=_named(classifier.vectorizer_, features, difference),
        prior=prior,
        margin=float(difference.sum() + prior),
    )


def _named(vectorizer: Any, features: Any, weights: Any) -> list[tuple[str, float]]:
    terms = vectorizer.get_feature_names_out()
    words = [(str(terms[feature]), float(weight)) for feature, weight in zip(features, weights, strict=True)]
    return sorted(words, key=lambda word: -abs(word[1]))
