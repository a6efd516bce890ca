"""Text in, label paths out: features, learner and decision rule over one taxonomy, as one scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from ramify.decisions import DecisionRule
from ramify.errors import InputError
from ramify.execution import row_blocks
from ramify.metrics import accuracy
from ramify.persistence import write_model
from ramify.pipeline.storing import to_stored
from ramify.systems import System, find_system
from ramify.taxonomy import Taxonomy, find_form, listed_labels, most_specific, taxonomy_of_labels


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a text got its label.

    path: titles from the top to the predicted node. probabilities: one for each node of the path.
    rival: the path of the second-best class. words: each word of the text with how much it speaks for the prediction
    and against the rival, strongest first; `prior` is what the classes' sizes add. They add up to `margin`, the
    difference of the two scores.
    """

    path: tuple[str, ...]
    probabilities: tuple[float, ...]
    rival: tuple[str, ...]
    words: list[tuple[str, float]]
    prior: float
    margin: float


class TextClassifier(ClassifierMixin, BaseEstimator):
    """Classify texts into a taxonomy.

    system: the name of a row of ``ramify systems``; it chooses every part that is not given.
    taxonomy: optional when labels are paths, or a flat list of classes.
    vectorizer, learner, decision: parts to use instead of the system's.
    separator: what joins the parts of a label path; found from the labels when not given.
    n_jobs: threads, as in scikit-learn.

    >>> clf = TextClassifier(system="nb")
    >>> clf.fit(["sweet red apple", "rye bread crust"], ["food/fruit", "food/bread"]).predict(["a red apple"])
    array(['food/fruit'], dtype='<U10')
    """

    def __init__(
        self,
        system: str = "nb",
        taxonomy: Taxonomy | None = None,
        *,
        vectorizer: Any = None,
        learner: Any = None,
        decision: Any = None,
        separator: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.system = system
        self.taxonomy = taxonomy
        self.vectorizer = vectorizer
        self.learner = learner
        self.decision = decision
        self.separator = separator
        self.n_jobs = n_jobs

    # ---- learning ---------------------------------------------------------------------------------------------------

    def fit(self, texts: Sequence[str], labels: Sequence[Any]) -> Self:
        """Learn from texts and, for each, one label or a list of them: names, or paths."""
        if labels is None:
            raise InputError("fitting requires y to be passed, but the target y is None.")
        system = find_system(self.system)
        rows, many = listed_labels(labels)
        taxonomy = taxonomy_of_labels(rows, self.separator) if self.taxonomy is None else self.taxonomy
        if system.needs_tree:
            taxonomy.require_tree(f"system {system.name!r}")
        Y = taxonomy.encode(rows)
        self.vectorizer_ = system.vectorizer() if self.vectorizer is None else clone(self.vectorizer)
        X = self.vectorizer_.fit_transform(texts)
        if X.shape[0] != Y.shape[0]:
            raise InputError(f"there are {X.shape[0]} texts but labels for {Y.shape[0]}; give one entry a text.")
        self.taxonomy_, self.form_ = taxonomy, find_form(rows, many, taxonomy)
        self.learner_ = self._new_learner(system, taxonomy).fit(X, Y)
        self.decision_ = self._new_decision(system)
        self.classes_ = np.asarray(taxonomy.names)
        self.figures_: dict[str, Any] = {"documents": int(X.shape[0]), "features": int(X.shape[1])}
        return self

    # ---- classifying ------------------------------------------------------------------------------------------------

    def predict(self, texts: Sequence[str]) -> Any:
        """The most specific labels of each text, in the form in which labels were given."""
        own = most_specific(self.predict_matrix(texts), self.taxonomy_)
        rows = [own.indices[a:b].tolist() for a, b in zip(own.indptr[:-1], own.indptr[1:], strict=True)]
        return self.form_.gather([self.form_.write(self.taxonomy_, row) for row in rows])

    def predict_matrix(self, texts: Sequence[str]) -> csr_array:
        """The labels of each text over all nodes: boolean CSR, closed upward."""
        X = self._features(texts)
        decided = [self.decision_.decide(self.learner_.scores(X[rows]), self.taxonomy_) for rows in self._blocks(X)]
        return _stacked(decided, len(self.taxonomy_))

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Probabilities of each text over all nodes, in taxonomy order; a parent's is never below a child's."""
        probabilities: NDArray[np.float32] = self.learner_.predict_proba(self._features(texts))
        return probabilities

    def decide_with_probabilities(self, texts: Sequence[str]) -> tuple[csr_array, NDArray[np.float32]]:
        """Labels and probabilities over all nodes, with one reading of the texts."""
        X = self._features(texts)
        return self.decision_.decide(self.learner_.scores(X), self.taxonomy_), self.learner_.predict_proba(X)

    def score(self, texts: Sequence[str], labels: Sequence[Any]) -> float:
        """The share of texts whose label set is exactly right."""
        check_is_fitted(self, "taxonomy_")
        return accuracy(self.taxonomy_.encode(listed_labels(labels)[0]), self.predict_matrix(texts), self.taxonomy_)

    def explain(self, text: str) -> Explanation:
        """The words that decided between the best and the second-best class of a text."""
        x = self._features([text])
        S, P = self.learner_.scores(x)[0], self.learner_.predict_proba(x)[0]
        best, rival = (int(node) for node in np.argsort(-np.nan_to_num(S, nan=-np.inf), kind="stable")[:2])
        features, for_best, prior_best = self.learner_.contributions(x, best)
        _, for_rival, prior_rival = self.learner_.contributions(x, rival)
        terms, difference = self.vectorizer_.get_feature_names_out(), for_best - for_rival
        words = sorted(
            ((str(terms[f]), float(d)) for f, d in zip(features, difference, strict=True)), key=lambda w: -abs(w[1])
        )
        path = [*self.taxonomy_.ancestors_of(best).tolist(), best]
        return Explanation(
            path=tuple(self.taxonomy_.titles[node] for node in path),
            probabilities=tuple(float(P[node]) for node in path),
            rival=self.taxonomy_.path_of(rival),
            words=words,
            prior=prior_best - prior_rival,
            margin=float(difference.sum() + prior_best - prior_rival),
        )

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write a model directory; an older model at the same place is replaced in one step."""
        check_is_fitted(self, "taxonomy_")
        write_model(path, to_stored(self))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "taxonomy_")

    def _new_learner(self, system: System, taxonomy: Taxonomy) -> Any:
        learner = system.learner() if self.learner is None else clone(self.learner)
        return learner.set_params(taxonomy=taxonomy, n_jobs=self.n_jobs)

    def _new_decision(self, system: System) -> DecisionRule:
        decision: DecisionRule = system.decision() if self.decision is None else self.decision
        return decision

    def _features(self, texts: Sequence[str]) -> csr_array:
        check_is_fitted(self, "taxonomy_")
        return self.vectorizer_.transform(texts)

    def _blocks(self, X: csr_array) -> Iterator[slice]:
        return iter(row_blocks(X.shape[0], 8 * len(self.taxonomy_)))


def _stacked(blocks: list[csr_array], n_nodes: int) -> csr_array:
    return csr_array(vstack(blocks, format="csr")) if blocks else csr_array((0, n_nodes), dtype=bool)
