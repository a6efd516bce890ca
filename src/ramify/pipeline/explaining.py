"""Why a text got its label: exact contributions of its words, and what the decision rule saw and did at each node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.metrics.h_loss import first_mistakes
from ramify.pipeline.rules import decide_by, values_for
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

if TYPE_CHECKING:
    from ramify.pipeline.classifier import TextClassifier

SHOWN = 8  # nodes with the highest values that are worth a look
CLEAR = 0.01  # so much above its parent's, a node's membership is a contradiction that matters


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


@dataclass(frozen=True, slots=True)
class NodeView:
    """What happened to one text at one node; numbers are None where there are none.

    score: of the learner. value: what the rule was told. refined: what the rule made of it, where it does that.
    is_taken: whether the node is among the labels. contradicts: its membership is told to be likelier than its parent's.
    is_true: whether it is a true label, where these are known. is_first_mistake: whether it is on the contour of the H-loss.
    """

    node: int
    name: str
    depth: int
    score: float | None
    value: float | None
    refined: float | None
    is_taken: bool
    contradicts: bool
    is_true: bool | None = None
    is_first_mistake: bool = False


def explain(classifier: TextClassifier, x: csr_array) -> Explanation:
    """Explain the label of one document, given its features."""
    taxonomy, learner = classifier.taxonomy_, classifier.learner_
    S = learner.scores(x)
    Y, P = classifier.decide_both(S)
    answer = most_specific(Y, taxonomy).indices
    ranked = np.argsort(-np.nan_to_num(S[0], nan=-np.inf), kind="stable").tolist()
    chosen = int(answer[np.argmax(P[0][answer])]) if answer.size else ranked[0]
    rival = _rival_of(chosen, ranked, taxonomy)
    features, for_chosen, prior_chosen = learner.contributions(x, chosen)
    _, for_rival, prior_rival = learner.contributions(x, rival)
    difference, prior = for_chosen - for_rival, prior_chosen - prior_rival
    return Explanation(
        path=taxonomy.path_of(chosen),
        probabilities=tuple(float(P[0, node]) for node in taxonomy.nodes_to(chosen)),
        rival=taxonomy.path_of(rival),
        words=_named(classifier.vectorizer_, features, difference),
        prior=prior,
        margin=float(difference.sum() + prior),
    )


def _rival_of(chosen: int, ranked: list[int], taxonomy: Taxonomy) -> int:
    """The best node that is neither above nor below the chosen one; where there is none, the best other."""
    related = {chosen, *taxonomy.ancestors_of(chosen).tolist(), *taxonomy.descendants_of(chosen).tolist()}
    return next((node for node in ranked if node not in related), next(node for node in ranked if node != chosen))


def look(classifier: TextClassifier, text: Any, truth: list[str] | None = None) -> list[NodeView]:
    """What the rule saw and did at the nodes that matter for one text: taken, true, contradictory and highest ones.

    Nodes come in the order of a walk from the top down, all ancestors included.
    """
    taxonomy, learner, rule = classifier.taxonomy_, classifier.learner_, classifier.decision_
    S = learner.scores(classifier.vectorizer_.transform([text]))
    values = values_for(rule, learner, S)
    Y, refined = decide_by(rule, values, taxonomy)
    taken = set(Y.indices.tolist())
    T = None if truth is None else taxonomy.encode([[taxonomy.names[taxonomy.index(label)] for label in truth]])
    true = None if T is None else set(T.indices.tolist())
    contour = set() if T is None else set(first_mistakes(T, expand_to_ancestors(Y, taxonomy), taxonomy).indices.tolist())
    against = _contradictions(learner.memberships(S)[0], taxonomy)
    highest = np.argsort(-np.nan_to_num(values[0], nan=-np.inf), kind="stable")[:SHOWN].tolist()
    shown = _with_ancestors({*taken, *(true or ()), *against, *highest}, taxonomy)
    return [
        NodeView(
            node=node,
            name=taxonomy.names[node],
            depth=int(taxonomy.depth[node]),
            score=_number(S[0, node]),
            value=_number(values[0, node]),
            refined=None if refined is None else _number(refined[0, node]),
            is_taken=node in taken,
            contradicts=node in against,
            is_true=None if true is None else node in true,
            is_first_mistake=node in contour,
        )
        for node in _walk(taxonomy)
        if node in shown
    ]


def _contradictions(memberships: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> set[int]:
    """Nodes that are clearly likelier than a parent of theirs."""
    return {
        node
        for node in range(len(taxonomy))
        if any(memberships[node] > memberships[parent] + CLEAR for parent in taxonomy.parents_of(node))
    }


def _with_ancestors(nodes: set[int], taxonomy: Taxonomy) -> set[int]:
    return {*nodes, *(above for node in nodes for above in taxonomy.ancestors_of(node).tolist())}


def _walk(taxonomy: Taxonomy) -> list[int]:
    """Every node once, each followed by what is below it."""
    found: dict[int, None] = {}
    waiting = taxonomy.roots.tolist()[::-1]
    while waiting:
        node = int(waiting.pop())
        if node not in found:
            found[node] = None
            waiting += taxonomy.children_of(node).tolist()[::-1]
    return list(found)


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def _named(vectorizer: Any, features: Any, weights: Any) -> list[tuple[str, float]]:
    terms = vectorizer.get_feature_names_out()
    words = [(str(terms[feature]), float(weight)) for feature, weight in zip(features, weights, strict=True)]
    return sorted(words, key=lambda word: -abs(word[1]))
