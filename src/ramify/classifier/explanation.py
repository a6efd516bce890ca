"""Why a text gets its label: what its words add at each node of the path, and what the decision rule did there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.classifier.fitting import decide_by, values_for
from ramify.classifier.inputs import one_document, refuse_other_kind
from ramify.errors import LabelError
from ramify.features.base import BaseVectorizer
from ramify.learners.base import Evidence
from ramify.metrics.hierarchical import first_errors
from ramify.results import Result
from ramify.taxonomy import Taxonomy, expand_to_ancestors, most_specific

if TYPE_CHECKING:
    from ramify.classifier.text_classifier import TextClassifier

SHOWN = 8  # nodes with the highest values that are explained
CLEAR = 0.01  # excess of a node's probability over its parent's that counts as a contradiction

Words = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class Step:
    """One step on the path from the root to a node.

    probability: of the node, as `predict_proba` gives it. is_taken: whether it is among the labels.
    rival: titles of the path to the best rival at this step; None for a binary classifier, and where there is no choice.
    score: the lead over the rival, or over 0. words: each known word of the text with what it adds to the score, top words
    first. columns: of these words in the feature matrix. prior: what does not depend on the text; words and prior add up to
    the score. reason: of the decision rule at this node.
    """

    node: int
    name: str
    title: str
    probability: float
    is_taken: bool
    rival: tuple[str, ...] | None
    score: float
    words: Words
    columns: list[int]
    prior: float
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Result):
    """Why a text gets its label, or does not get another one.

    path: titles from the root to the explained node. probabilities: one for each node of the path.
    rival: the path of the best other class. words: each known word of the text with its weight for the node and against the
    rival, top words first; `prior` is what the sizes of the two classes add. They add up to `margin`, the difference of the
    two scores. steps: one for each node of the path, from the root. additive: whether words and prior add up exactly;
    classifiers without weights have no words.
    """

    path: tuple[str, ...]
    probabilities: tuple[float, ...]
    rival: tuple[str, ...]
    words: Words
    prior: float
    margin: float
    steps: tuple[Step, ...]
    additive: bool


@dataclass(frozen=True, slots=True)
class NodeExplanation:
    """Why one text got, or did not get, one node; numbers that do not exist are None.

    score: of the learner. value: the score as the rule takes it. refined: by a rule that refines values.
    is_taken: whether the node is among the labels. contradicts: whether it is more probable than its parent.
    is_true: whether it is a true label, where these are known. is_first_error: whether it is on the contour of the H-loss.
    probability: as in `predict_proba`. reason: of the decision rule.
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
    is_first_error: bool = False
    probability: float = 0.0
    reason: str = ""


class Case:
    """One text, and its features, scores, values and labels."""

    def __init__(self, classifier: TextClassifier, text: Any) -> None:
        self.text, self.vectorizer, self.learner = text, classifier.vectorizer_, classifier.learner_
        self.taxonomy, self.rule = classifier.taxonomy_, classifier.decision_
        documents = one_document(text)
        refuse_other_kind(documents, self.vectorizer)
        self.x: csr_array = self.vectorizer.transform(documents)
        self.x.sort_indices()
        self.scores: NDArray[np.float32] = self.learner.scores(self.x)
        self.values = values_for(self.rule, self.learner, self.scores)
        self.labels, self.refined = decide_by(self.rule, self.values, self.taxonomy)
        self.taken = set(self.labels.indices.tolist())
        # as in `predict_proba`, one per node; and the score of each node as a label, -inf where it is none
        self.probabilities = np.asarray(classifier.probabilities_of(self.scores, self.refined)[0], dtype=np.float32)
        self.fits = np.asarray(np.nan_to_num(self.learner.label_scores(self.scores)[0], nan=-np.inf, neginf=-np.inf))

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of the features of the text."""
        return names_of_features(self.vectorizer, self.x, self.text)

    def words(self, evidence: Evidence) -> tuple[Words, list[int]]:
        """Words with their weights, top words first, and their columns."""
        order = np.argsort(-np.abs(evidence.added), kind="stable")
        columns = evidence.features[order].tolist()
        return [(self.names[c], w) for c, w in zip(columns, evidence.added[order].tolist(), strict=True)], columns

    def overall(self, node: int) -> Evidence:
        """The evidence for a node as a label, against the best node that is neither above nor below it, or the best other."""
        row, learner = self.scores[0], self.learner
        explaining = learner.explaining_node(row, node)
        fits = self.fits.copy()
        fits[[node, *([] if explaining is None else [explaining])]] = np.nan
        apart = fits.copy()
        apart[self.taxonomy.ancestors_of(node)] = apart[self.taxonomy.descendants_of(node)] = np.nan
        rival = int(np.nanargmax(apart if np.fmax.reduce(apart, initial=-np.inf) > -np.inf else fits))
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        if explaining is None:
            return Evidence(0.0, *nothing, 0.0, rival)
        if not learner.is_additive:
            return Evidence(float(np.nan_to_num(row[explaining] - row[rival])), *nothing, 0.0, rival)
        return Evidence.against(rival, learner.contributions(self.x, explaining), learner.contributions(self.x, rival))

    def step(self, node: int, end: int, reason: str) -> Step:
        """One step on the path to a node."""
        evidence: Evidence = self.learner.evidence(self.x, self.scores[0], node, end)
        words, columns = self.words(evidence)
        return Step(
            node=node,
            name=self.taxonomy.names[node],
            title=self.taxonomy.titles[node],
            probability=float(self.probabilities[node]),
            is_taken=node in self.taken,
            rival=None if evidence.rival is None else self.taxonomy.path_of(evidence.rival),
            score=evidence.score,
            words=words,
            columns=columns,
            prior=evidence.prior,
            reason="; ".join(filter(None, (evidence.remark, reason))),
        )


def names_of_features(vectorizer: Any, x: csr_array, text: Any) -> dict[int, str]:
    """The names of the features of a text, by column."""
    columns = x.indices.astype(np.int64)
    if isinstance(vectorizer, BaseVectorizer):
        found = vectorizer.term_names(text, columns)
    else:
        found = np.asarray(vectorizer.get_feature_names_out())[columns].tolist()
    return dict(zip(columns.tolist(), map(str, found), strict=True))


def explain(classifier: TextClassifier, text: Any, label: Any = None) -> Explanation:
    """Explain the label of one text, or another label."""
    taxonomy = classifier.taxonomy_
    if label is not None and not isinstance(label, (str, int, np.integer)):
        raise LabelError(f"label {label!r} cannot be explained; labels are names or paths, as strings.")
    wanted = None if label is None else taxonomy.index(str(label))
    case = Case(classifier, text)
    if wanted is None:  # the most probable of the labels; without any, the node with the best score
        own = most_specific(case.labels, taxonomy).indices
        wanted = int(own[np.argmax(case.probabilities[own])] if len(own) else np.argmax(case.fits))
    overall, way = case.overall(wanted), taxonomy.nodes_to(wanted)
    reasons = case.rule.reasons(case.values, taxonomy, way)
    return Explanation(
        path=taxonomy.path_of(wanted),
        probabilities=tuple(float(case.probabilities[step]) for step in way),
        rival=() if overall.rival is None else taxonomy.path_of(overall.rival),
        words=case.words(overall)[0],
        prior=overall.prior,
        margin=overall.score,
        steps=tuple(case.step(step, wanted, reason) for step, reason in zip(way, reasons, strict=True)),
        additive=case.learner.is_additive,
    )


def explain_nodes(classifier: TextClassifier, text: Any, truth: list[str] | None = None) -> list[NodeExplanation]:
    """Explain predicted, true and contradictory nodes, those with the highest values, and all ancestors, depth first."""
    case, taxonomy = Case(classifier, text), classifier.taxonomy_
    T = None if truth is None else taxonomy.encode([[taxonomy.names[taxonomy.index(label)] for label in truth]])
    true = None if T is None else set(T.indices.tolist())
    closed = expand_to_ancestors(case.labels, taxonomy)
    contour = set() if T is None else set(first_errors(T, closed, taxonomy).indices.tolist())
    known = taxonomy.tree if case.learner.uses_main_parents else taxonomy  # where the learner compares a node with its parents
    against = _contradictions(case.learner.memberships(case.scores)[0], known)
    highest = np.argsort(-np.nan_to_num(case.values[0], nan=-np.inf, neginf=-np.inf), kind="stable")[:SHOWN].tolist()
    shown = _depth_first({*case.taken, *(true or ()), *against, *highest}, taxonomy)
    return [
        NodeExplanation(
            node=node,
            name=taxonomy.names[node],
            depth=int(taxonomy.depth[node]),
            score=_number(case.scores[0, node]),
            value=_number(case.values[0, node]),
            refined=None if case.refined is None else _number(case.refined[0, node]),
            is_taken=node in case.taken,
            contradicts=node in against,
            is_true=None if true is None else node in true,
            is_first_error=node in contour,
            probability=float(case.probabilities[node]),
            reason=reason,
        )
        for node, reason in zip(shown, case.rule.reasons(case.values, taxonomy, shown), strict=True)
    ]


def _contradictions(memberships: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> set[int]:
    """Nodes that are clearly more probable than one of their parents."""
    child = np.repeat(np.arange(len(taxonomy)), np.diff(taxonomy.parent_offsets))
    return set(child[memberships[child] > memberships[taxonomy.parent_nodes] + CLEAR].tolist())


def _depth_first(nodes: set[int], taxonomy: Taxonomy) -> list[int]:
    """Nodes and their ancestors in depth-first order."""
    below: dict[int, list[int]] = {}
    is_shown = np.zeros((1, len(taxonomy)), dtype=bool)
    is_shown[0, list(nodes)] = True
    for node in expand_to_ancestors(is_shown, taxonomy).indices.tolist():  # in node order, as children are
        for parent in taxonomy.parents_of(node).tolist() or [-1]:
            below.setdefault(parent, []).append(node)
    found: dict[int, None] = {}
    waiting = below.get(-1, [])[::-1]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += below.get(node, [])[::-1]
    return list(found)


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
