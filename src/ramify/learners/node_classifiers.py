"""One binary classifier per node, calibrated on held-out margins.

    negatives="parent"   trained on the documents of the node's parent: P(node | parent)
    negatives="all"      trained on all documents: P(node), independent of other nodes

Sources: with "parent", the node SVMs of H-SVM and B-SVM, Cesa-Bianchi, Gentile & Zaniboni 2006, section 4; with "all", the
independent classifiers of Punera & Ghosh 2008, section 3. Documents at or below a node are positive.
Deviations: a node whose training documents are all positive has no classifier, and probability (n + 1) / (n + 2) for every
document; one without any positive document has none either, and is never chosen: its score is -inf, its probability 0. NaN
scores are left to nodes whose classifier is missing (`missing`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, logit
from sklearn.utils.metaestimators import available_if

from ramify.calibration import Calibration, LogPotentials, check_kind
from ramify.errors import InputError, ModelError, suggest
from ramify.features.base import check_fitted
from ramify.learners.base import Contributions, Evidence, Learner, Result, Scores, find_node, top_features
from ramify.learners.linear.incremental import check_figures
from ramify.learners.linear.learner import Gap, read_gap
from ramify.learners.linear.problem import Certificate
from ramify.learners.linear.training import (
    LEAST_COST,
    MOST_COST,
    Setup,
    check_cost,
    check_setup,
    seed_of,
    warn_unless_converged,
)
from ramify.learners.linear.weights import MOST_FEATURES, Weights
from ramify.learners.node_training import Base, LinearBase, NaiveBayesBase, NodeTraining, node_problems
from ramify.learners.path_probabilities import MIN_PROBABILITY, descend_positive, log_end_probabilities, path_products
from ramify.learners.targets import Targets
from ramify.persistence import are_indices, checked_count, checked_number
from ramify.taxonomy import Taxonomy, largest_below

BASES: dict[str, Any] = {"svm": "hinge", "lr": "logistic", "nb": None}
NEGATIVES = ("parent", "all")
_NOT_STORED = {"taxonomy", "n_jobs", "class_weight"}
YES = 1.0  # the score of a node whose training documents are all positive


@dataclass(eq=False, repr=False)
class NodeClassifiers(Learner):
    """One binary classifier per node (systems ``h-svm``, ``b-svm``, ``isotonic-svm``, ``isotonic-nb``).

    base: ``"svm"``, ``"lr"``, ``"nb"``, or a scikit-learn classifier, which is cloned for every node.
    negatives: ``"parent"`` or ``"all"``, the training documents of a node's classifier.
    calibration: ``"sigmoid"``, ``"platt"``, ``"isotonic"``, or None to take scores as log-odds.
    C: of svm and lr, the cost of a unit of loss, or ``"auto"``. alpha: of nb, the count added to every word.
    missing: the fraction of nodes, drawn by `random_state`, that are left without a classifier.

    ``unit_nodes_``: the nodes that have a classifier. ``always_``: the nodes whose training documents are all positive.
    ``held_out_``: with a calibration, training documents, and their scores by classifiers that were not trained on them.

    >>> taxonomy = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> X, labels = [[1, 0, 0], [1, 1, 0], [0, 0, 1]] * 3, ["a/x", "a/y", "b"] * 3
    >>> fitted = NodeClassifiers(taxonomy).fit(X, labels)
    >>> fitted.predict([[1, 1, 0]])
    array(['a/y'], dtype='<U3')
    """

    kind: ClassVar[str] = "node-classifiers"
    uses_main_parents: ClassVar[bool] = True
    taxonomy: Taxonomy | None = None
    _: KW_ONLY
    base: Any = "svm"
    negatives: str = "parent"
    calibration: str | None = "sigmoid"
    C: float | str = 1.0
    alpha: float = 1.0
    class_weight: Any = None
    tol: float = 1e-3
    max_iter: int = 1000
    fit_intercept: bool = True
    missing: float = 0.0
    n_jobs: int | None = None
    random_state: int | None = 0

    # ---- training ---------------------------------------------------------------------------------------------------

    def _fit(self, X: csr_array, targets: Targets, sample_weight: NDArray[np.float64]) -> None:
        setup = self._checked()
        problems = node_problems(targets.own, targets.taxonomy.tree, self.negatives == "parent")
        n = len(problems.nodes)
        left_out = np.random.default_rng(seed_of(self.random_state)).permutation(n)[: round(self.missing * n)]
        self._is_empty = np.zeros(len(targets.taxonomy), dtype=bool)
        self._is_empty[problems.nodes[problems.count(np.ones(X.shape[0]))[0] == 0]] = True
        problems = problems.of_units(np.setdiff1d(np.arange(n), left_out))
        n_positive, n_included = problems.count(np.ones(X.shape[0]))
        always = (n_positive > 0) & (n_positive == n_included)
        units = problems.of_units(np.flatnonzero((n_positive > 0) & ~always))
        if not len(units.nodes):
            raise InputError("no node has documents of both kinds, its own and others; lower missing, or give more documents.")
        training = NodeTraining(self, X, units, targets, sample_weight)
        if self.C == "auto" and setup is not None:
            best, self.C_scores_ = training.select_C(setup)
            setup = replace(setup, C=best)
        reused = training.find_reusable(setup)
        base = training.fit(setup, reused=reused)
        if reused is not None:
            self.reused_ = int(np.sum(reused >= 0)), len(reused)
        self.C_, self.calibration_, held_out = 1.0 if setup is None else setup.C, None, None
        if self.calibration is not None:
            self.calibration_, held_out = training.calibrate_new(setup, reused)
        self.unit_nodes_, self.always_ = units.nodes, problems.nodes[always]
        self.always_counts_ = n_positive[always].astype(np.float64)
        self.held_out_ = None if held_out is None else (held_out[0], self._on_nodes(held_out[1]))
        self._set_base(base)
        if isinstance(base, LinearBase) and setup is not None:
            warn_unless_converged(Certificate(*base.gap), setup)

    @property
    def is_empty_(self) -> NDArray[np.bool_]:
        """Whether each node had no training document at or below it."""
        return self._is_empty

    def _set_base(self, base: Base) -> None:
        self.base_ = base
        if isinstance(base, LinearBase):
            self.gap_ = Gap(*base.gap)
            self.n_iter_ = max(1, self.gap_.rounds)

    def _checked(self) -> Setup | None:
        """Check the parameters; gives the setup of the solver, where the base has one."""
        check_kind(self.calibration)
        if self.negatives not in NEGATIVES:
            raise InputError(
                f"negatives is {self.negatives!r}; give 'parent' or 'all'.{suggest(str(self.negatives), ('parent', 'all'))}"
            )
        if not _is_number(self.missing) or not 0 <= self.missing < 1:
            raise InputError(f"missing is {self.missing!r}; give the fraction of nodes to leave out, from 0 to below 1.")
        if not _is_number(self.alpha) or not 0 < float(self.alpha) < np.inf:
            raise InputError(f"alpha is {self.alpha!r}; give a number above 0, such as 1 or 0.1.")
        if isinstance(self.base, str) and self.base not in BASES:
            names = ", ".join(map(repr, BASES))
            raise InputError(f"base is {self.base!r}; give one of {names}, or a classifier.{suggest(self.base, BASES)}")
        if not isinstance(self.base, str) and not _is_classifier(self.base):
            raise InputError(f"base is {self.base!r}; give 'svm', 'lr', 'nb', or a classifier of scikit-learn's kind.")
        if isinstance(self.base, str) and BASES[self.base] is not None:
            return check_setup(self, BASES[self.base])
        check_cost(self.C)
        if self.class_weight is not None:
            raise InputError("class_weight is for base='svm' and 'lr'; leave it out, or weigh documents by sample_weight.")
        return None

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def map_scores(self, X: Any, work: Callable[[Scores], Result]) -> Iterator[tuple[slice, Result]]:
        """Apply `work` to the scores of one block of rows after the other; documents × nodes is never held whole."""
        check_fitted(self)
        if isinstance(self.base_, LinearBase):
            self.base_.weights.make_ready()
        return super().map_scores(X, work)

    def _score(self, X: csr_array) -> Scores:
        return self._on_nodes(self.base_.score(X))

    def _on_nodes(self, margins: NDArray[Any]) -> Scores:
        S = self._no_scores(len(margins))
        S[:, self.unit_nodes_] = margins
        S[:, self.always_] = YES
        return S

    def classifier_probabilities(self, scores: Scores) -> NDArray[np.float64]:
        """The calibrated probability of every node's own classifier; NaN where there is none, 0 where the node is empty."""
        P = np.full(scores.shape, np.nan)
        margins = scores[:, self.unit_nodes_].astype(np.float64)
        P[:, self.unit_nodes_] = expit(margins) if self.calibration_ is None else self.calibration_.apply(margins)
        P[:, self.always_] = (self.always_counts_ + 1) / (self.always_counts_ + 2)
        return np.where(scores == -np.inf, 0.0, P)

    def label_scores(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """ln P(node and none of its children), children independent given their parent."""
        P, conditional = self.tree_probabilities(scores).astype(np.float64), self.conditionals(scores)
        return np.where(np.isfinite(scores), log_end_probabilities(P, conditional, self.taxonomy_.tree), scores)

    def conditionals(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """P(node | parent)."""
        return self.classifier_probabilities(scores) if self.negatives == "parent" else super().conditionals(scores)

    def memberships(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """P(node) by each node's own classifier: a child's may exceed its parent's."""
        P = self.classifier_probabilities(scores)
        if self.negatives == "parent":  # a node without a classifier on the path leaves the product as it is
            P = path_products(P, self.taxonomy_.tree, missing=1.0)
        return np.where(np.isfinite(scores), P, scores)

    def log_potentials(self, scores: Scores) -> LogPotentials:
        """With the parent's documents, log-odds of every step, and 0 for staying; with all, label scores."""
        if self.negatives != "parent":
            return super().log_potentials(scores)
        odds = logit(self.classifier_probabilities(scores).clip(MIN_PROBABILITY, 1 - MIN_PROBABILITY))
        return LogPotentials(np.zeros(scores.shape), np.where(scores == -np.inf, -np.inf, odds))

    def margins(self, scores: Scores) -> NDArray[np.floating[Any]]:
        """The scores themselves."""
        return scores

    def to_probabilities(self, scores: Scores) -> Scores:
        """With the parent's documents, the product along the path; with all, and in a DAG, the largest at and below a node."""
        P = self.tree_probabilities(scores)
        return P if self.taxonomy_.is_tree else largest_below(P, self.taxonomy_)

    def tree_probabilities(self, scores: Scores) -> Scores:
        """The same over the main-parent tree of a DAG."""
        P, tree = self.classifier_probabilities(scores), self.taxonomy_.tree
        P = path_products(P, tree) if self.negatives == "parent" else largest_below(np.nan_to_num(P, nan=0.0), tree)
        return P.astype(np.float32)

    @available_if(lambda self: self.taxonomy is not None)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Scores:
        """Probabilities over all nodes; only with a taxonomy, since those of plain classes need not sum to 1."""
        return super().predict_proba(X)

    def _best_nodes(self, scores: Scores) -> NDArray[np.int64]:
        """From the best root to the best child, as long as its score is 0 or more."""
        return descend_positive(scores, self.taxonomy_.tree)

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Features of one document, what each adds to the score of a node, and the bias."""
        features, found = x.indices.astype(np.int64), np.flatnonzero(self.unit_nodes_ == node)
        if not len(found):
            return features, np.zeros(len(features)), YES if node in self.always_ else 0.0
        w, bias = self.base_.weights_of(int(found[0]), features)
        return features, x.data.astype(np.float64) * w, bias

    def top_terms(self, node: int | str, n: int = 10, feature_names: Any = None) -> list[tuple[Any, float]]:
        """The features with the largest weights of a node's classifier, largest first, by number or by name."""
        check_fitted(self)
        place = find_node(self.taxonomy_, node)
        found = np.flatnonzero(self.unit_nodes_ == place)
        if not len(found):
            raise InputError(f"node {self.taxonomy_.names[place]!r} has no classifier; ask for another node.")
        return top_features(self.base_.weights_of(int(found[0]), np.arange(self.n_features_in_))[0], n, feature_names)

    def selected_params(self) -> dict[str, Any]:
        """The C that was used."""
        return {"C": self.C_}

    def training_facts(self) -> dict[str, Any]:
        """C, the objective, and how far it can be from the least, of linear classifiers."""
        if not isinstance(self.base_, LinearBase):
            return {}
        return {"C": self.C_, "objective": self.gap_.primal, "duality_gap": float(self.gap_), "rounds": self.gap_.rounds}

    @property
    def is_additive(self) -> bool:
        """Whether the classifiers have weights that add up to their scores."""
        return self.base_.has_weights

    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """The score of the node's own classifier."""
        if node in self.always_:
            return replace(Evidence.none(f"every text passes here, with {YES:g}"), score=YES, prior=YES)
        if not np.isfinite(scores[node]):
            return Evidence.none("no training document was here" if self.is_empty_[node] else "no classifier at this node")
        if not self.is_additive:
            return replace(Evidence.none(""), score=float(scores[node]))
        return Evidence.of(self.contributions(x, node))

    # ---- state ------------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        stored = self.base_.arrays()  # first, since it may refuse
        if not self.keeps_warm_start:
            stored.pop("class_figures", None)
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in _NOT_STORED}
        parameters["random_state"] = seed_of(self.random_state)
        values = {"parameters": parameters, "n_features": int(self.n_features_in_), "chosen_C": float(self.C_)}
        if isinstance(self.base_, LinearBase):
            values["gap"] = list(self.base_.gap)
        arrays = {"unit_nodes": self.unit_nodes_, "always": self.always_, "always_counts": self.always_counts_}
        arrays["is_empty"] = self.is_empty_
        return values, arrays | stored | ({} if self.calibration_ is None else self.calibration_.arrays())

    @classmethod
    def from_state(cls, taxonomy: Taxonomy, values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Make a learner from its state, after checking shapes, types and ranges."""
        parameters = dict(values["parameters"])
        if set(parameters) != set(cls().get_params(deep=False)) - _NOT_STORED or not isinstance(parameters["base"], str):
            raise ModelError("the parameters of the node classifiers are not the ones that they take; train the model again.")
        made = cls(taxonomy, **parameters)
        made._checked()
        seed_of(made.random_state)
        made.taxonomy_, made.form_, made.classes_ = taxonomy, "matrix", np.asarray(taxonomy.names)
        made.n_features_in_ = checked_count(values, "n_features", 1, MOST_FEATURES)
        made.C_ = checked_number(values, "chosen_C", LEAST_COST, MOST_COST)
        made._restore_nodes(arrays)
        n_units = len(made.unit_nodes_)
        if made.base == "nb":
            made._set_base(NaiveBayesBase.from_arrays(arrays, made.n_features_in_, n_units))
        else:
            weights = Weights.from_arrays(arrays, made.n_features_in_)
            if len(weights.class_units) != n_units:
                raise ModelError("the node classifiers do not fit their weights; train the model again.")
            gap = read_gap(*values["gap"])
            figures = check_figures(arrays["class_figures"], n_units) if "class_figures" in arrays else None
            made._set_base(LinearBase(weights, gap, figures))
        kind = made.calibration
        made.calibration_ = None if kind is None else Calibration.from_arrays(kind, arrays, n_units)
        return made

    def _restore_nodes(self, arrays: dict[str, NDArray[Any]]) -> None:
        units, always, counts = (arrays[name] for name in ("unit_nodes", "always", "always_counts"))
        types, n_nodes = [array.dtype.name for array in (units, always, counts)], len(self.taxonomy_)
        if types != ["int64", "int64", "float64"] or counts.shape != always.shape or units.ndim != 1 or always.ndim != 1:
            raise ModelError("the nodes of the classifiers are of another type than is written; train the model again.")
        every = np.concatenate([units, always])
        if len(np.unique(every)) < len(every) or not are_indices(every, n_nodes):
            raise ModelError(f"the classifiers are not at nodes of the taxonomy (0 to {n_nodes - 1}); train the model again.")
        if not len(units) or not np.all((counts >= 0) & np.isfinite(counts)):
            raise ModelError("the counts of the node classifiers are not ones that are written; train the model again.")
        self.unit_nodes_, self.always_, self.always_counts_ = units, always, counts
        # models of earlier versions have no list of empty nodes; unless classifiers are missing, those are the others
        is_other = np.full(n_nodes, self.missing == 0)
        is_other[every] = False
        self._is_empty = arrays.get("is_empty", is_other)
        if self._is_empty.dtype != np.bool_ or self._is_empty.shape != (n_nodes,) or self._is_empty[every].any():
            raise ModelError("the nodes without documents do not fit the classifiers; train the model again.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.base == "nb"
        return tags


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_classifier(base: Any) -> bool:
    scores = hasattr(base, "decision_function") or hasattr(base, "predict_proba")
    return scores and hasattr(base, "fit") and hasattr(base, "get_params")
