"""Naive Bayes whose word probabilities are shrunk towards those of the nodes above a class.

    θ̌_c(w) = Σ_i λ_c^i θ^i(w),     θ^0 from the documents of class c, θ^1, θ^2, … from those of the nodes above it, last 1/V

Each estimate excludes the counts of the one before it, so that every word of the training documents counts once on a path.
With `tie_weights="never"`, the λ of a class maximize the likelihood of its own documents under estimates that exclude the
document (EM from equal weights), until no weights increase it by more than `tol` nats per word. The likelihood is concave, so
its gradient g (the mean of θ^i(w)/θ̌(w) over words) bounds the possible increase: max_i g_i − 1. EM converges slowly near the
end; Newton's method, projected to weights of 0 and more, then takes over.
Source: McCallum et al. 1998, section 3.
Deviations: by default, the weights of a class are shrunk towards those of similar classes (`tied_weights.py`). Documents may
have multiple labels and labels at inner nodes; a document then counts once for every label, and leaving it out excludes it
everywhere. An inner node with documents of its own has a class below it. Where there are multiple roots, all documents are one
more estimate above them. The weight of 1/V is at least 1e-9, so that no word is impossible.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ramify.errors import InputError, ModelError, suggest
from ramify.learners.base import Contributions, Evidence, Scores
from ramify.learners.naive_bayes import word_counts
from ramify.learners.naive_bayes.mixture_weights import EM_WORDS, Labelled, MixtureProblem, Units, fit_weights
from ramify.learners.naive_bayes.tied_weights import TiedProblem, fit_tied_weights, weigh_units
from ramify.learners.naive_bayes.word_counts import Floats, WordCountLearner, is_count, is_positive
from ramify.learners.path_probabilities import log_softmax
from ramify.learners.targets import Targets
from ramify.native import MixtureLimits, WordCounts, rows_of, score_mixtures_in_place

LEAST_UNIFORM = 1e-9
PRUNED = -1e30  # ln of the probability of a class in a pruned branch
MOST_STEPS = 10**9
ESTIMATES = ("leave-one-out", "held-out")
TIES = ("auto", "always", "never")


@dataclass(eq=False, repr=False, kw_only=True)
class ShrinkageNaiveBayes(WordCountLearner):
    """Naive Bayes with shrinkage to the nodes above a class (system ``shrinkage-nb``).

    weights: how mixture weights are estimated: "leave-one-out" excludes each document from the estimates in turn; "held-out"
    takes estimates from some documents and weights from the others.
    tie_weights: "never" estimates the weights of a class from its own documents, as in the paper; of a class with one document,
    the own estimate then has no weight. "always" gives the same weights to classes of the same depth and size (number of
    documents). "auto" starts each class from those weights, and its documents move them, the more of them there are.
    held_out: the fraction of each class's documents that "held-out" uses for weights; too small classes leave one out.
    fit_prior: learn class priors from the data; otherwise all classes are equally likely.
    tol: EM ends when no weights increase the likelihood by more than this, in nats per word. max_iter: the most steps.
    newton: after some EM steps (ten; more for a small class), take Newton steps, which converge much faster.
    branches: classify top-down, keeping the best so many branches at every node (pruned classification), in place of comparing
    all classes; it must be set before training, and can be changed later.
    random_state: selects the held-out documents.

    ``weights_``: see :meth:`mixture_weights`. ``n_iter_``: the most steps of any class.
    ``held_out_documents_``: the documents that were held out.

    >>> from ramify import Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["pet/cat", "pet/dog", "car"])
    >>> X = [[3, 1, 0, 0], [2, 1, 1, 0], [1, 3, 0, 0], [1, 2, 1, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
    >>> y = ["pet/cat", "pet/cat", "pet/dog", "pet/dog", "car", "car"]
    >>> fitted = ShrinkageNaiveBayes(taxonomy).fit(X, y)
    >>> fitted.predict([[2, 0, 1, 0]]).tolist()
    ['pet/cat']
    >>> [(name, round(weight, 2)) for name, weight in fitted.mixture_weights("pet/cat")]
    [('pet/cat', 0.42), ('pet', 0.21), ('all documents', 0.15), ('uniform', 0.22)]
    """

    kind: ClassVar[str] = "shrinkage-naive-bayes"
    uses_main_parents: ClassVar[bool] = True
    weights: str = "leave-one-out"
    tie_weights: str = "auto"
    held_out: float = 0.3
    tol: float = 1e-10
    max_iter: int = 1000
    newton: bool = True
    branches: int | None = None
    random_state: Any = None

    def _check_parameters(self) -> None:
        if self.weights not in ESTIMATES:
            hint = suggest(str(self.weights), ("leave-one-out", "held-out"))
            raise InputError(f"weights is {self.weights!r}; give 'leave-one-out' or 'held-out'.{hint}")
        if self.tie_weights not in TIES:
            hint = suggest(str(self.tie_weights), ("auto", "always", "never"))
            raise InputError(f"tie_weights is {self.tie_weights!r}; give 'auto', 'always' or 'never'.{hint}")
        if not is_positive(self.held_out) or self.held_out >= 1:
            raise InputError(f"held_out is {self.held_out!r}; give a share of the documents, between 0 and 1.")
        if self.tol != 0 and not is_positive(self.tol):
            raise InputError(f"tol is {self.tol!r}; give a number of 0 or more, such as 1e-6.")
        if self.max_iter != 0 and not (is_count(self.max_iter) and self.max_iter <= MOST_STEPS):
            raise InputError(f"max_iter is {self.max_iter!r}; give a whole number from 0 to {MOST_STEPS:,}.")
        try:
            check_random_state(self.random_state)
        except ValueError:
            raise InputError(f"random_state is {self.random_state!r}; give a whole number of 0 or more, or none.") from None
        if not isinstance(self.newton, (bool, np.bool_)):
            raise InputError(f"newton is {self.newton!r}; give true or false.")
        _check_branches(self.branches)

    # ---- training ---------------------------------------------------------------------------------------------------

    def _fit(self, X: csr_array, targets: Targets, sample_weight: Floats) -> None:
        self._check_all(X)
        self.__dict__.pop("weights_", None)
        self.held_out_documents_ = np.zeros(0, dtype=np.int64)
        nodes, counts, weight = word_counts.count_words(X, targets.own, sample_weight)
        if self.weights == "held-out":
            rest, self.held_out_documents_ = self._set_aside(csc_array(targets.own))
            counts = word_counts.words_of(X[rest], csr_array(targets.own[rest][:, nodes] * sample_weight[rest, None]))
        self._set_counts(nodes, counts, weight, targets.taxonomy)
        self._learn_weights(X, targets.own, sample_weight, np.zeros(self.units_.n_weights))

    def _partial_fit(self, X: csr_array, targets: Targets, sample_weight: Floats, is_first: bool) -> None:
        if self.weights != "leave-one-out":
            raise InputError(f"partial_fit needs weights='leave-one-out', and weights is {self.weights!r}.")
        expected = {}
        if not is_first:
            word_counts.translate_nodes(self.class_nodes_, self.taxonomy_, targets.taxonomy)  # refuses before anything changes
            expected = self._expected()
        self.__dict__.pop("weights_", None)
        self.held_out_documents_ = np.zeros(0, dtype=np.int64)
        super()._partial_fit(X, targets, sample_weight, is_first)
        earlier = np.zeros(self.units_.n_weights)
        units, names = self.units_, self.taxonomy_.names
        for unit in range(len(units)):
            if (parts := expected.get(units.key_of(unit, names))) is not None:
                earlier[units.weights_at(unit)] = [parts.get(key, 0.0) for key in units.keys_along(unit, names)]
        self._learn_weights(X, targets.own, sample_weight, earlier)

    def _expected(self) -> dict[Any, dict[Any, float]]:
        """How much each unit ascribes to each part of its mixture so far: words, or documents where weights are tied."""
        units, names, found = self.units_, self.taxonomy_.names, {}
        sizes = self._totals if self.tie_weights == "never" else self.class_weight_ @ units.above
        for unit in range(len(units)):
            parts = self.weights_[units.weights_at(unit)] * sizes[unit]
            found[units.key_of(unit, names)] = dict(zip(units.keys_along(unit, names), parts.tolist(), strict=True))
        return found

    def _set_aside(self, own: csc_array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The documents for estimates and those for weights: some of each class, none where it has only one."""
        n_documents = own.shape[0]
        priority, aside = check_random_state(self.random_state).permutation(n_documents), np.zeros(n_documents, dtype=bool)
        for node in np.flatnonzero(np.diff(own.indptr)):
            documents = own.indices[own.indptr[node] : own.indptr[node + 1]]
            n_aside = min(max(1, round(self.held_out * len(documents))), len(documents) - 1)
            aside[documents[np.argsort(priority[documents])[:n_aside]]] = True
        for node in np.flatnonzero(np.diff(own.indptr)):  # a document of multiple classes may be the last of one
            documents = own.indices[own.indptr[node] : own.indptr[node + 1]]
            if aside[documents].all():
                aside[documents[np.argmax(priority[documents])]] = False
        return np.flatnonzero(~aside), np.flatnonzero(aside)

    def _learn_weights(self, X: csr_array, own: csr_array, sample_weight: Floats, expected: Floats) -> None:
        members = csr_array(own[:, self.class_nodes_].astype(np.float64) @ self.units_.above)
        members.sort_indices()
        aside = self.held_out_documents_
        rest = np.setdiff1d(np.arange(X.shape[0]), aside) if len(aside) else slice(None)
        held_out, counted = (Labelled(X[some], sample_weight[some], csr_array(members[some])) for some in (aside, rest))
        fit = self._fit_own if self.tie_weights == "never" else self._fit_tied
        weights, steps = fit(held_out, counted, expected)
        self.n_iter_ = min(int(self.max_iter), max([1, *steps]))
        self._warn_unless_converged(sum(step > self.max_iter for step in steps), len(steps))
        self._set_weights(weights)

    def _limits(self, leave_one_out: bool) -> MixtureLimits:
        is_tied, em_words = self.tie_weights != "never", EM_WORDS if self.newton else np.inf
        return MixtureLimits(leave_one_out, is_tied, float(self.tol), int(self.max_iter), em_words)

    def _wanted(self) -> NDArray[np.bool_]:
        """The units that need weights: classes, and all where branches are pruned."""
        return np.ones(len(self.units_), dtype=bool) if self.branches is not None else ~self.units_.is_inner

    def _fit_own(self, held_out: Labelled, counted: Labelled, expected: Floats) -> tuple[Floats, list[int]]:
        """Weights of each unit from its own documents: those held out, and where there are none, all in turn."""
        units, weights, steps = self.units_, np.zeros(self.units_.n_weights), list[int]()
        is_held_out = np.diff(csc_array(held_out.members).indptr) > 0
        for labelled, chosen, leave_one_out in ((held_out, is_held_out, False), (counted, ~is_held_out, True)):
            some = np.flatnonzero(self._wanted() & chosen).astype(np.int32)
            places, limits = units.weights_of(some), self._limits(leave_one_out)
            known = self._word_counts, units.all_paths, labelled
            problem = MixtureProblem.of(*known, list(some[:, None]), limits, expected[places])
            weights[places], taken = fit_weights(problem, self.n_jobs)
            steps += taken
        return weights, steps

    def _fit_tied(self, held_out: Labelled, counted: Labelled, expected: Floats) -> tuple[Floats, list[int]]:
        """Weights of units that are tied, from documents held out if there are such, otherwise from all in turn."""
        is_held_out = held_out.X.shape[0] > 0
        labelled, size = (held_out, weigh_units(counted)[0]) if is_held_out else (counted, None)
        known, limits = (self.units_, self._word_counts, self._totals), self._limits(not is_held_out)
        problem = TiedProblem.of(*known, labelled, limits, size, expected, self._wanted())
        weights, steps = fit_tied_weights(problem, self.tie_weights == "auto", self.n_jobs)
        weights[self.units_.weight_ends[0][self._totals == 0]] = 0  # a unit without words has no estimate of its own
        return weights, steps

    def _warn_unless_converged(self, n_unfinished: int, n_fits: int) -> None:
        if n_unfinished and self.tol > 0:
            warnings.warn(
                f"{n_unfinished:,} of {n_fits:,} fits of mixture weights reached max_iter={self.max_iter} before "
                f"tol={self.tol:g}; raise max_iter{'' if self.newton else ', set newton=true'}, or accept it by raising tol.",
                ConvergenceWarning, stacklevel=5,
            )  # fmt: skip

    def _set_weights(self, weights: Floats) -> None:
        """Store normalized weights, with at least LEAST_UNIFORM for the uniform estimate, and the factors for scoring."""
        units = self.units_
        starts, uniform = units.weight_ends
        sums = np.add.reduceat(weights, starts)
        self._has_all = bool((sums > 0).all())
        weights[uniform] = np.where(sums > 0, np.maximum(weights[uniform], LEAST_UNIFORM), 0)
        sums = np.add.reduceat(weights, starts)
        weights /= np.repeat(np.where(sums > 0, sums, 1), uniform - starts + 1)
        data = units.added_words(self._totals)
        data[data == 0] = np.inf  # an estimate without data has no part
        self.weights_ = weights
        self._factors = weights / np.insert(data, units.path_offsets[1:], float(self.counts_.shape[0]))

    def _prepare(self) -> None:
        self.units_ = Units.of(self.taxonomy_.tree, self.class_nodes_)
        self._unit_counts = csr_array(self.counts_ @ self.units_.above)
        self._unit_counts.sort_indices()
        totals = np.bincount(self._unit_counts.indices, self._unit_counts.data, minlength=len(self.units_))
        self._totals = totals.astype(np.float64)  # bincount gives integers where there are no words at all
        self._word_counts = WordCounts(rows_of(self._unit_counts), self._totals)
        priors = np.exp(self.log_prior_) @ self.units_.above
        self._unit_priors = np.log(np.maximum(priors, np.finfo(np.float64).tiny))
        if "weights_" in vars(self):
            weights, (starts, _) = self.weights_, self.units_.weight_ends  # those of a model file may not fit
            fits = weights.shape == (self.units_.n_weights,) and np.isfinite(weights).all() and (weights >= 0).all()
            if not fits or not np.allclose(np.add.reduceat(weights, starts)[self.units_.class_units], 1):
                raise ModelError("the mixture weights of naive Bayes do not fit its classes; train the model again.")
            self._set_weights(weights.copy())

    # ---- scoring ----------------------------------------------------------------------------------------------------

    def _score(self, X: csr_array) -> Scores:
        if self.branches is None:
            joint = self._score_units(X, self.units_.class_units, self.log_prior_)
        else:
            joint = self._score_pruned(X)[0][:, self.units_.class_units]
        S = self._no_scores(X.shape[0])
        S[:, self.class_nodes_] = np.maximum(log_softmax(joint), PRUNED)
        return S

    def _score_units(self, X: csr_array, units: NDArray[np.int32], priors: Floats) -> Floats:
        """ln P(unit) + ln P(words | unit), documents × units."""
        joint = np.empty((X.shape[0], len(units)))
        known = self._word_counts, self.units_.all_paths.pattern, self._factors
        score_mixtures_in_place(*known, units, priors, rows_of(X), joint)
        return joint

    def _score_pruned(self, X: csr_array) -> tuple[Floats, NDArray[np.int64]]:
        """Scores of the classes at the ends of each document's best branches, and the number of units it was compared with."""
        _check_branches(self.branches)
        units, most = self.units_, int(self.branches or 1)
        if not self._has_all:
            raise InputError("pruned classification needs weights of inner nodes; set branches before training.")
        scores, n_compared = np.full((X.shape[0], len(units)), 2 * PRUNED), np.zeros(X.shape[0], dtype=np.int64)
        offsets, children = units.children
        waiting = [(0, np.arange(X.shape[0]))]
        while waiting:
            unit, documents = waiting.pop()
            below = children[offsets[unit] : offsets[unit + 1]]
            found = self._score_units(X[documents], below, self._unit_priors[below])
            n_compared[documents] += len(below)
            best = np.argsort(-found, axis=1, kind="stable")[:, :most]
            for k, child in enumerate(below.tolist()):
                is_kept = (best == k).any(axis=1)
                if units.is_inner[child]:
                    waiting += [(child, documents[is_kept])] if is_kept.any() else []
                else:
                    scores[documents[is_kept], child] = found[is_kept, k]
        return scores, n_compared

    def count_comparisons(self, X: Any) -> NDArray[np.int64]:
        """The number of nodes that each document is compared with: all classes, or those along its best branches."""
        X = self._validate(X, reset=False)
        return np.full(X.shape[0], len(self.class_nodes_)) if self.branches is None else self._score_pruned(X)[1]

    def mixture_weights(self, node: str | int) -> list[tuple[str, float]]:
        """The mixture weights of a class: of its own estimate, those of the nodes above it, and the uniform one."""
        unit = self._unit_of(node)
        names = [self._name_of(int(step)) for step in self.units_.path_of(unit)]
        return list(zip([*names, "uniform"], self.weights_[self.units_.weights_at(unit)].tolist(), strict=True))

    def training_facts(self) -> dict[str, Any]:
        """How much classes rely on their own documents, on the nodes above, and on the uniform estimate, on average."""
        weights = [[weight for _, weight in self.mixture_weights(int(node))] for node in self.class_nodes_]
        own, uniform = (float(np.mean([path[k] for path in weights])) for k in (0, -1))
        return {"weight_of_own_documents": own, "weight_of_nodes_above": 1 - own - uniform, "weight_of_uniform": uniform}

    def estimates_for(self, node: str | int) -> Floats:
        """The mixed probabilities of all words in a class."""
        return self._estimates(self._unit_of(node), self._unit_counts)

    def _estimates(self, unit: int, unit_counts: csr_array) -> Floats:
        """The mixed probabilities of some words, from their counts by unit."""
        at, steps = self.units_.weights_at(unit), self.units_.path_of(unit)
        counts = np.diff(unit_counts[:, steps].toarray(), prepend=0.0, axis=1)
        return np.asarray(counts @ self._factors[at][:-1] + self._factors[at][-1])

    def _probabilities_of(self, node: int, everywhere: Floats) -> tuple[Floats, Floats]:
        uniform = self.mixture_weights(node)[-1][1]
        return self.estimates_for(node), (1 - uniform) * everywhere + uniform / len(everywhere)

    def _unit_of(self, node: str | int) -> int:
        index = self.taxonomy_.index(node) if isinstance(node, str) else int(node)
        return int(self.units_.class_units[self._class_of(index)])

    def _name_of(self, unit: int) -> str:
        units, node, above = self.units_, self.units_.node[unit], self.units_.parent[unit]
        if node < 0:
            return "all documents"
        is_own = not units.is_inner[unit] and above >= 0 and units.node[above] == node
        return f"{self.taxonomy_.names[node]} (own documents)" if is_own else self.taxonomy_.names[node]

    def contributions(self, x: csr_array, node: int) -> Contributions:
        """Words of one document, what each adds to the unnormalized score of a class, and what the prior adds."""
        added = x.data.astype(np.float64) * np.log(self._estimates(self._unit_of(node), self._unit_counts[x.indices]))
        return x.indices.astype(np.int64), added, float(self.log_prior_[self._class_of(node)])

    def evidence(self, x: csr_array, scores: NDArray[Any], node: int, end: int) -> Evidence:
        """As of all multiclass learners, with a remark where the class is in a pruned branch."""
        found = super().evidence(x, scores, node, end)
        chosen = self.explaining_node(scores, end)
        is_pruned = chosen is not None and scores[chosen] <= PRUNED / 2
        return replace(found, remark="its branch was pruned, so it was not compared") if is_pruned else found

    # ---- state ------------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        values, arrays = super().state()
        if not isinstance(values["parameters"]["random_state"], (int, type(None))):
            values["parameters"]["random_state"] = None
        return values, {**arrays, "mixture_weights": self.weights_}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        if arrays["mixture_weights"].dtype != np.float64:
            raise ModelError("the mixture weights of naive Bayes are of another type than it writes; train the model again.")
        self.weights_ = arrays["mixture_weights"]


def _check_branches(branches: Any) -> None:
    if branches is not None and not is_count(branches):
        raise InputError(f"branches is {branches!r}; give a whole number of 1 or more, or none to compare all classes.")
