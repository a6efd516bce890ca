"""Top-down naive Bayes (pachinko): at every node one classifier among its children, with selected words if wanted.

    ln P(child | parent, document) = ln P(child | parent) + Σ_w x_w ln θ_child,w − ln Σ_siblings (the same)

θ as in flat naive Bayes (Laplace smoothing with α), from the documents at and below the child, over the words selected at the
parent. Documents labelled with the node itself are one more child. A document goes to the likeliest child until it stays.
Source: the Pachinko machine of Koller & Sahami 1997, as described in McCallum et al. 1998, sections 1 and 5.
Deviations: a multinomial model of words, as in McCallum et al., in place of Bernoulli variables with dependencies; words are
selected by mutual information in place of their method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.errors import InputError, ModelError
from ramify.features import TermSelector
from ramify.learners.base import Contributions
from ramify.learners.naive_bayes.multinomial import LaplaceScorer, check_alpha
from ramify.learners.naive_bayes.word_counts import Floats, WordCountLearner, is_count
from ramify.learners.targets import Targets
from ramify.learners.top_down_base import TopDownLearner, find_branches, only_children
from ramify.persistence import are_indices, are_offsets, is_increasing
from ramify.taxonomy import ancestor_matrix


@dataclass(eq=False, repr=False, kw_only=True)
class PachinkoNaiveBayes(TopDownLearner, WordCountLearner):
    """Naive Bayes among the children of every node (system ``pachinko-nb``).

    alpha: the count added to every word of every child, above 0.
    fit_prior: learn how likely each child is from the data; otherwise siblings are equally likely.
    n_words: how many words each node uses, the most informative ones for its children; None for all.
    measure, join: how these are selected; see :class:`TermSelector`.

    Scores are ln P(node | parent). Fitted attributes are those of :class:`WordCountLearner` and :class:`TopDownLearner`, and
    ``sets_``: for every node with more than one branch (-1 above the roots) the words that it uses, None for all.

    >>> from ramify import Taxonomy
    >>> taxonomy = Taxonomy.from_paths(["pet/cat", "pet/dog", "car"])
    >>> fitted = PachinkoNaiveBayes(taxonomy).fit([[2, 0, 0], [1, 2, 0], [0, 0, 3]], ["pet/cat", "pet/dog", "car"])
    >>> fitted.predict([[1, 1, 0]]).tolist()
    ['pet/dog']
    """

    kind: ClassVar[str] = "pachinko-naive-bayes"
    alpha: float = 1.0
    n_words: int | None = None
    measure: str = "mutual-information"
    join: str = "sum"

    def _check_parameters(self) -> None:
        check_alpha(self.alpha)
        if self.n_words is not None and not is_count(self.n_words):
            raise InputError(f"n_words is {self.n_words!r}; give a whole number of 1 or more, or none for all words.")
        TermSelector(measure=self.measure, join=self.join).check_settings()

    def _fit(self, X: csr_array, targets: Targets, sample_weight: Floats) -> None:
        self.sets_: dict[int, NDArray[np.int64]] | None = None
        if self.n_words is not None:
            self._check_all(X)
            settings: dict[str, Any] = {"measure": self.measure, "join": self.join, "scope": "glocal"}
            selector = TermSelector(self.n_words, **settings, taxonomy=targets.taxonomy.tree)
            self.sets_ = selector.fit(X[sample_weight > 0], targets.own[sample_weight > 0]).sets_
        super()._fit(X, targets, sample_weight)

    def _partial_fit(self, X: csr_array, targets: Targets, sample_weight: Floats, is_first: bool) -> None:
        if self.n_words is not None:
            raise InputError(f"partial_fit needs all words, and n_words is {self.n_words}; leave it out.")
        self.sets_ = None
        super()._partial_fit(X, targets, sample_weight, is_first)

    def _prepare(self) -> None:
        taxonomy, classes = self.taxonomy_.tree, self.class_nodes_
        above = csr_array(ancestor_matrix(taxonomy)[classes])
        alive, has_own = np.zeros(len(taxonomy), dtype=bool), np.zeros(len(taxonomy), dtype=bool)
        alive[above.indices], has_own[classes] = True, True
        nodes, parents = find_branches(taxonomy, alive, has_own).T
        self._set_branches(nodes, parents, only_children(alive, nodes, parents))
        stays = csr_array(nodes[None, :] == classes[:, None]).multiply(nodes == parents)
        members = csr_array(above[:, nodes].multiply(nodes != parents) + stays).astype(np.float64)
        weight = self.class_weight_ @ members if self.fit_prior else np.ones(len(nodes))
        log_prior = np.log(np.maximum(weight, np.finfo(np.float64).tiny))
        counts = csr_array(self.counts_ @ members)
        n_words: Any = self.counts_.shape[0]
        self._used: csr_array | None = None  # words × branches: one where the parent of a branch uses a word
        if self.sets_ is not None:
            sets = [self.sets_.get(parent, np.zeros(0, dtype=np.int64)) for parent in parents.tolist()]
            ends = np.concatenate([[0], np.cumsum([len(words) for words in sets])])
            words = np.concatenate([*sets, []]).astype(np.int64)
            self._used = csr_array(csr_array((np.ones(len(words)), words, ends), shape=(len(sets), n_words)).T)
            counts = csr_array(counts.multiply(self._used))
            n_words = np.maximum(1, np.asarray(self._used.sum(axis=0)))
        counts.sort_indices()
        self._scorer = LaplaceScorer.from_counts(counts, self.alpha, log_prior, n_words)

    def _margins(self, X: csr_array) -> NDArray[np.float64]:
        lengths = None if self._used is None else (X.astype(np.float64) @ self._used).toarray()
        return self._scorer.score(X, lengths)

    def _branch_contributions(self, x: csr_array, branch: int) -> Contributions:
        counts = x.data.astype(np.float64)
        if self._used is not None:
            counts = counts * self._used[x.indices][:, [branch]].toarray().ravel()
        added = counts * self._scorer.log_theta(x.indices, branch)
        return x.indices.astype(np.int64), added, float(self._scorer.log_prior[branch])

    def _probabilities_of(self, node: int, everywhere: Floats) -> tuple[Floats, Floats]:
        found = np.flatnonzero((self.branch_nodes_ == node) & (self.branch_parents_ != node))
        if not len(found):
            name = self.taxonomy_.names[node]
            raise InputError(f"node {name!r} has no classifier: it has no documents, or is the only way on; ask for another.")
        branch = int(found[0])
        if self._used is None:
            return self._scorer.thetas(branch, everywhere)
        among = self._used[:, [branch]].toarray().ravel()
        theta, expected = self._scorer.thetas(branch, everywhere * among / max((everywhere * among).sum(), 1e-300))
        return theta * among, expected

    # ---- state ------------------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays from which :meth:`from_state` makes the same learner."""
        values, arrays = super().state()
        if self.sets_ is None:
            return values, arrays
        sets = [self.sets_[node] for node in sorted(self.sets_)]
        offsets = np.concatenate([[0], np.cumsum([len(words) for words in sets])]).astype(np.int64)
        words = np.concatenate([*sets, np.zeros(0, dtype=np.int64)])
        return values, {**arrays, "set_nodes": np.asarray(sorted(self.sets_)), "set_offsets": offsets, "set_words": words}

    def _restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.sets_ = None
        if self.n_words is None:
            return
        nodes, offsets, words = (arrays[name] for name in ("set_nodes", "set_offsets", "set_words"))
        fits = all(array.dtype == np.int64 and array.ndim == 1 for array in (nodes, offsets, words))
        if not fits or not are_offsets(offsets, len(nodes), len(words)) or not is_increasing(nodes, strictly=True):
            raise ModelError("the words of nodes have shapes that do not fit together; train the model again.")
        if not are_indices(nodes, len(self.taxonomy_), first=-1):
            raise ModelError("words are selected at something that is no node of the taxonomy; train the model again.")
        if not are_indices(words, self.n_features_in_):
            raise ModelError(f"a node uses a word outside 0 to {self.n_features_in_ - 1}; train the model again.")
        self.sets_ = {int(node): words[a:b] for node, a, b in zip(nodes, offsets[:-1], offsets[1:], strict=True)}
        if not all(is_increasing(listed, strictly=True) for listed in self.sets_.values()):
            raise ModelError("a node uses a word twice; train the model again.")
