"""SVMs along paths and naive Bayes with shrinkage on the same features, their scores added (system ``ensemble``).

    score of label n = score of path-svm + ω ln P(n | x) of shrinkage-nb

The two err on different documents: an SVM separates a class from its neighbours, naive Bayes knows what its documents contain.
ω is selected on out-of-fold scores of both, where 0 leaves path-svm alone. Those of path-svm come from its training; naive
Bayes is trained again without the documents of each fold.
Deviation: naive Bayes takes the weights of words and n-grams (tf-idf) in place of counts; rows of unit length keep long texts
from outvoting the SVM.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError, ModelError
from ramify.features.base import check_fitted
from ramify.learners.base import Contributions, MulticlassLearner, Scores, State, find_node, top_features
from ramify.learners.linear.cross_fit import as_new, best_unless_close, count_best, order_by_content
from ramify.learners.linear.path_svm import PathSVM
from ramify.learners.linear.training import is_number
from ramify.learners.naive_bayes.shrinkage import ShrinkageNaiveBayes
from ramify.learners.naive_bayes.word_counts import Floats
from ramify.learners.targets import Targets
from ramify.parallel import stage
from ramify.persistence import checked_number
from ramify.taxonomy import Taxonomy

WEIGHTS = (0.0, 0.025, 0.05, 0.1, 0.2)  # values of ω that are tried
MOST_WEIGHT = 1e20  # with more, scores would be infinite
FIRST_WEIGHT = 0.05  # where there is nothing to select by
MANY, FOLDS = 8000, (4, 2)  # documents; folds of naive Bayes for fewer and for more of them


@dataclass(eq=False, repr=False)
class Ensemble(MulticlassLearner):
    """SVMs along paths and naive Bayes with shrinkage, their scores added.

    C, ancestors, tol: of :class:`PathSVM`.
    bayes_weight: ω, the weight of the log probabilities of naive Bayes, or ``"auto"`` to select it by cross-validation. Naive
    Bayes takes no features below 0; ``"auto"`` leaves it out there.

    ``svm_``, ``bayes_``: the two learners; ``bayes_weight_``: ω that was used. With 0, ``bayes_`` is None.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> fitted = Ensemble(taxonomy).fit([[1, 0, 0], [1, 1, 0], [0, 0, 1]], ["a/x", "a/y", "b"])
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "ensemble"
    taxonomy: Taxonomy | None = None
    _: KW_ONLY
    C: float | str = "auto"
    ancestors: float | str = "auto"
    bayes_weight: float | str = "auto"
    tol: float = 1e-3
    n_jobs: int | None = None

    # ---- training ---------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        is_weight = is_number(self.bayes_weight) and 0 <= float(self.bayes_weight) <= MOST_WEIGHT
        if self.bayes_weight != "auto" and not is_weight:
            allowed = f"give a number from 0 to {MOST_WEIGHT:g}, or 'auto' to select it"
            raise InputError(f"bayes_weight is {self.bayes_weight!r}; {allowed}.")

    def _fit(self, X: csr_array, targets: Targets, sample_weight: Floats) -> None:
        self._check_parameters()
        taxonomy, has_bayes = targets.taxonomy, self.bayes_weight != "auto" or not X.data.size or X.data.min() >= 0
        weight = 0.0 if not has_bayes else FIRST_WEIGHT if self.bayes_weight == "auto" else float(self.bayes_weight)
        bayes = ShrinkageNaiveBayes(taxonomy, n_jobs=self.n_jobs).fit(X, targets.own, sample_weight) if weight else None
        selects = self.bayes_weight == "auto" and bayes is not None
        svm = PathSVM(taxonomy, C=self.C, ancestors=self.ancestors, tol=self.tol, n_jobs=self.n_jobs)
        svm.keeps_held_out, svm.block_ends = selects or self.keeps_held_out, self.block_ends
        svm.fit(X, targets.own, sample_weight)
        self.held_out_ = svm.held_out_
        if bayes is not None and svm.held_out_ is not None:
            documents, scores = svm.held_out_
            added = self._out_of_fold(X, targets.own, sample_weight, taxonomy, documents)
            if selects:
                weight = select_weight(scores, added, csr_array(targets.own[documents]), svm.class_nodes_)
            self.held_out_ = documents, _added(scores, added, weight)
        svm.held_out_, svm.keeps_held_out = None, False
        self._set_parts(svm, bayes if weight else None, weight)

    def _out_of_fold(
        self, X: csr_array, own: csr_array, sample_weight: Floats, taxonomy: Taxonomy, documents: NDArray[np.int64]
    ) -> Scores:
        """Scores of held-out documents by naive Bayes that was trained without those of their fold; NaN where it knows none."""
        n_folds = FOLDS[int(X.shape[0] > MANY)]
        fold_of = np.empty(len(documents), dtype=np.uint8)
        fold_of[order_by_content(csr_array(X[documents]))] = np.arange(len(documents)) % n_folds
        rows = as_new(X, documents, fold_of, self.block_ends or [X.shape[1]])
        S = np.full((len(documents), len(taxonomy)), np.nan, dtype=np.float32)
        with stage("naive Bayes on folds", n_folds) as step:
            for fold in range(n_folds):
                held_out = np.flatnonzero(fold_of == fold)
                others = np.setdiff1d(np.arange(X.shape[0]), documents[held_out])
                if len(np.unique(own[others].indices)) > 1:
                    bayes = ShrinkageNaiveBayes(taxonomy, n_jobs=self.n_jobs)
                    S[held_out] = bayes.fit(X[others], own[others], sample_weight[others]).scores(rows[held_out])
                step.advance()
        return S

    def _set_parts(self, svm: PathSVM, bayes: ShrinkageNaiveBayes | None, weight: float) -> None:
        self.svm_, self.bayes_, self.bayes_weight_ = svm, bayes, weight
        self.taxonomy_, self.class_nodes_, self._nodes_above = svm.taxonomy_, svm.class_nodes_, svm._nodes_above
        if bayes is not None:
            everywhere = np.asarray(bayes.counts_.sum(axis=1), dtype=np.float64)
            self._log_everywhere = np.log((everywhere + 1e-9) / (everywhere.sum() + 1e-9 * len(everywhere)))

    def selected_params(self) -> dict[str, Any]:
        """C, the weight of ancestors, and that of naive Bayes."""
        return {**self.svm_.selected_params(), "bayes_weight": self.bayes_weight_}

    def training_facts(self) -> dict[str, Any]:
        """C, both weights, and the duality gap of the SVMs."""
        return {**self.svm_.training_facts(), "bayes_weight": self.bayes_weight_}

    # ---- predicting -------------------------------------------------------------------------------------------------

    def _score(self, X: csr_array) -> Scores:
        S = self.svm_._score(X)
        return S if self.bayes_ is None else _added(S, self.bayes_._score(X), self.bayes_weight_)

    def to_probabilities(self, scores: Any) -> Any:
        """Sigmoids of the scores, not calibrated, as of :class:`PathSVM`."""
        return self.svm_.to_probabilities(scores)

    # ---- explaining ---------------------------------------------------------------------------------------------------

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of a document, what each adds to the score of a class, and the rest.

        To naive Bayes, a feature adds as much as it is more frequent in the class than in all documents.
        """
        features, added, bias = self.svm_.contributions(x, node)
        if self.bayes_ is None:
            return features, added, bias
        of_class = self.bayes_.contributions(x, node)[1]
        lead = of_class - x.data.astype(np.float64) * self._log_everywhere[x.indices]
        rest = float(self.bayes_._score(x)[0, node]) - lead.sum()
        return features, added + self.bayes_weight_ * lead, bias + self.bayes_weight_ * rest

    def top_terms(self, node: int | str, n: int = 10, feature_names: Any = None) -> list[tuple[Any, float]]:
        """The features that add most to the score of a class, by unit, largest first, by number or by name."""
        check_fitted(self)
        every = np.arange(self.n_features_in_)
        ones = csr_array((np.ones(len(every), np.float32), every, [0, len(every)]), shape=(1, len(every)))
        self.svm_._class_of(index := find_node(self.taxonomy_, node))  # refuses a node without a class
        return top_features(self.contributions(ones, index)[1], n, feature_names)

    # ---- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        values, arrays = self.svm_.state()
        about: dict[str, Any] = {"parameters": self._model_params(), "bayes_weight": self.bayes_weight_, "svm": values}
        arrays = {f"svm_{name}": array for name, array in arrays.items()}
        if self.bayes_ is not None:
            about["bayes"], of_bayes = self.bayes_.state()
            arrays |= {f"bayes_{name}": array for name, array in of_bayes.items()}
        return about, arrays

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a learner from its state; both parts check theirs."""
        made, weight = cls(taxonomy, **values["parameters"]), checked_number(values, "bayes_weight", 0, MOST_WEIGHT)
        made._check_parameters()
        svm, bayes = PathSVM.from_state(taxonomy, values["svm"], _part(arrays, "svm_")), None
        if weight:
            bayes = ShrinkageNaiveBayes.from_state(taxonomy, values["bayes"], _part(arrays, "bayes_"))
        is_same = bayes is None or (
            bayes.n_features_in_ == svm.n_features_in_ and np.array_equal(bayes.class_nodes_, np.sort(svm.class_nodes_))
        )
        if not is_same:
            raise ModelError("the two learners of the ensemble do not fit together; train the model again.")
        made.n_features_in_, made.form_, made.classes_ = svm.n_features_in_, "matrix", np.asarray(taxonomy.names)
        made._set_parts(svm, bayes, weight)
        return made


def select_weight(svm: Scores, bayes: Scores, own: csr_array, class_nodes: NDArray[np.int64]) -> float:
    """The ω with the best held-out predictions, by the mean of micro and macro F1; the first if no other is clearly better.

    svm, bayes: out-of-fold scores, documents × nodes. own: documents × nodes, their most specific labels.
    """
    own = csr_array(own[:, class_nodes])
    counts = {weight: count_best(_added(svm, bayes, weight)[:, class_nodes], own) for weight in WEIGHTS}
    return best_unless_close(counts, FIRST_WEIGHT)[0]


def _added(svm: Scores, bayes: Scores, weight: float) -> Scores:
    """Both scores; a class that naive Bayes of a fold has not seen keeps that of the SVM less the most that others lose."""
    if weight == 0:
        return svm
    lowest = np.nanmin(np.where(np.isfinite(bayes), bayes, np.nan), axis=1, keepdims=True, initial=0.0)
    return np.asarray(svm + np.float32(weight) * np.where(np.isfinite(bayes), bayes, lowest), dtype=np.float32)


def _part(arrays: dict[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
