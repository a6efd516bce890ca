"""How node classifiers are trained: who is asked what, at which cost, and on which documents they are calibrated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, vstack

from ramify.calibration import Calibration, fit_calibration
from ramify.execution import row_blocks, stage
from ramify.learners.before import same_columns
from ramify.learners.contract import Scores
from ramify.learners.linear.choosing import FOLDS, choose_cost, deal_folds
from ramify.learners.linear.taking_over import is_alike
from ramify.learners.linear.training import MOST_COST, Setup, seed_of
from ramify.learners.node_bases import Base, EstimatorBase, LinearBase, NaiveBayesBase, Questions
from ramify.learners.targets import Targets
from ramify.taxonomy import Taxonomy, expand_to_ancestors

if TYPE_CHECKING:
    from ramify.learners.nodes import NodeClassifiers

MAX_SCORES = 1 << 27  # held-out documents × nodes; beyond it some of the documents must do for calibration


@dataclass(frozen=True, slots=True)
class Task:
    """Questions about documents, for a learner that says how they are to be learnt."""

    learner: NodeClassifiers
    X: csr_array
    units: Questions
    targets: Targets
    weight: NDArray[np.float64]

    def fit(self, setup: Setup | None, documents: Any = None, units: Any = None, taken: Any = None) -> Base:
        """Classifiers for all units, or for some of them from some of the documents.

        taken: for every unit the one of an earlier learner that is taken over, -1 where there is none.
        """
        learner, X, questions, weight = self.learner, self.X, self.units, self.weight
        if documents is not None:
            X, questions, weight = X[documents], questions.of_documents(documents).of_units(units), weight[documents]
        if setup is not None:
            before = None if taken is None or learner._before is None else learner._before.learner.base_
            return LinearBase.fit(X, questions, self.targets.taxonomy, setup, weight, taken, before)
        if isinstance(learner.base, str):
            return NaiveBayesBase.fit(X, questions, float(learner.alpha), weight)
        return EstimatorBase.fit(X, questions, learner.base, weight)

    def cross_score(self, setup: Setup | None, learnt: Any, held_out: Any) -> Iterator[tuple[slice, Scores]]:
        """Scores of documents by classifiers that learnt from others, documents × units; NaN where these could not learn."""
        n_yes, n_asked = self.units.of_documents(learnt).count(np.ones(len(learnt)))
        can = np.flatnonzero((n_yes > 0) & (n_yes < n_asked))
        base = self.fit(setup, learnt, can) if len(can) else None
        for rows in row_blocks(len(held_out), 32 * len(self.units.nodes)):
            S = np.full((rows.stop - rows.start, len(self.units.nodes)), np.nan, dtype=np.float32)
            if base is not None:
                S[:, can] = base.score(self.X[held_out[rows]])
            yield rows, S

    def find_same(self, setup: Setup | None) -> NDArray[np.int64] | None:
        """For every unit one of an earlier learner that was asked about the same documents; None where none counts."""
        learner, before = self.learner, self.learner._before
        if before is None or setup is None or not is_alike(learner, before, setup.C):
            return None
        other = before.learner
        same = other.calibration == learner.calibration and other.negatives == learner.negatives and other.base == learner.base
        if not same or not isinstance(other.base_, LinearBase) or other.base_.figures is None:
            return None
        asked = ask_nodes(before.own, other.taxonomy_, learner.negatives == "parent")
        were = asked.of_units(np.argsort(asked.nodes)[other.unit_nodes_])
        if were.asked is None or self.units.asked is None:
            is_whole = were.asked is None and self.units.asked is None and before.has_same_documents
            return same_columns([before.now(were.positive)], [self.units.positive]) if is_whole else None
        parts = [before.now(csc_array(part)) for part in (were.positive, were.asked)]
        return same_columns(parts, [csc_array(self.units.positive), csc_array(self.units.asked)])

    def choose_cost(self, setup: Setup) -> tuple[float, dict[float, float]]:
        """A held-out document gets the nodes, of those that it is asked about, whose score is not below 0."""
        asked = None if self.units.asked is None else csr_array(self.units.asked)

        def attempt(learnt: Any, held_out: Any, setup: Setup, _: Any) -> tuple[csr_array, Any]:
            given = []
            for rows, S in self.cross_score(setup, learnt, held_out):
                yes = csr_array(np.nan_to_num(S, nan=-1.0) >= 0)
                given.append(yes if asked is None else csr_array(yes.multiply(asked[held_out[rows]])))
            return csr_array(vstack(given, format="csr")), None

        return choose_cost(csr_array(self.units.positive), setup, attempt)

    def calibrate_others(
        self, setup: Setup | None, taken: NDArray[np.int64] | None
    ) -> tuple[Calibration, tuple[NDArray[np.int64], Scores] | None]:
        """The same as :meth:`calibrate`, with the curves of units that are taken over; held-out scores are then not known."""
        if taken is None or self.learner._before is None:
            return self.calibrate(setup)
        fresh, known = np.flatnonzero(taken < 0), self.learner._before.learner.calibration_
        place = taken.copy()
        place[fresh] = len(known) + np.arange(len(fresh))
        if not len(fresh):
            return known.of(place), None
        return known.followed_by(replace(self, units=self.units.of_units(fresh)).calibrate(setup)[0]).of(place), None

    def calibrate(self, setup: Setup | None) -> tuple[Calibration, tuple[NDArray[np.int64], Scores]]:
        """Curves for all units, and the held-out documents and scores that they were learnt from."""
        parts, kept, n_docs = [], [], self.X.shape[0]
        most = max(FOLDS, MAX_SCORES // max(1, len(self.targets.taxonomy)))
        with stage("calibrating", FOLDS) as step:
            for learnt, held_out in fold_documents(self.targets.own, seed_of(self.learner.random_state), most):
                # with fewer documents a higher cost, so that weights and loss stand as they do with all of them
                alike = None if setup is None else replace(setup, C=min(MOST_COST, setup.C * n_docs / len(learnt)))
                parts += [S for _, S in self.cross_score(alike, learnt, held_out)]
                kept.append(held_out)
                step.advance()
        documents, margins = np.concatenate(kept), np.concatenate(parts)
        about = self.units.of_documents(documents)
        answered = margins if about.asked is None else np.where(about.asked.toarray(), margins, np.float32(np.nan))
        curves = fit_calibration(str(self.learner.calibration), answered, about.positive.toarray(), self.weight[documents])
        return curves, (documents, margins)


def ask_nodes(own: csr_array, taxonomy: Taxonomy, among_parents: bool) -> Questions:
    """One question a node; those asked among the same documents stand together."""
    closed = csc_array(expand_to_ancestors(own, taxonomy))
    if not among_parents or taxonomy.n_levels == 1:
        nodes = np.arange(len(taxonomy), dtype=np.int64)
        return Questions(closed, None, nodes, np.zeros(len(nodes), dtype=np.int64))
    nodes = np.argsort(taxonomy.parent, kind="stable").astype(np.int64)
    parents = taxonomy.parent[nodes].astype(np.int64)
    n_docs = closed.shape[0]
    # one more column, for the roots: everyone is asked
    offsets = np.append(closed.indptr, closed.nnz + n_docs)
    documents = np.concatenate([closed.indices, np.arange(n_docs)])
    ones = np.ones(len(documents), dtype=bool)
    with_everyone = csc_array((ones, documents, offsets), shape=(n_docs, len(taxonomy) + 1))
    asked = with_everyone[:, np.where(parents < 0, len(taxonomy), parents)]
    return Questions(closed[:, nodes], csc_array(asked), nodes, parents)


def fold_documents(own: csr_array, seed: int, most: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Documents to learn from and documents held out, at most so many in all; those of a class are spread over the folds."""
    n_docs, rng = own.shape[0], np.random.default_rng(seed)
    fold = deal_folds(own, rng)
    fold[rng.permutation(n_docs)[most:]] = -1
    for k in range(FOLDS):
        held_out = np.flatnonzero(fold == k)
        if 0 < len(held_out) < n_docs:
            yield np.flatnonzero(fold != k), held_out
