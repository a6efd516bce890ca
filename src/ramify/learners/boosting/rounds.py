"""AdaBoost.MH: rounds of boosting over the classes of one set of documents.

    D_1(i, c) = 1 / (documents × classes)
    Φ_s       = the stump, on the presence of one term, with the least Z_s = Σ_i,c D_s(i, c) exp(−y_ic Φ_s(i, c))
    D_s+1     = D_s(i, c) exp(−y_ic Φ_s(i, c)) / Z_s

W⁺ and W⁻ of a class c and an x (the term is there, or not) are the sums of D over the documents with that x that have
the class, and that do not. Variants, after Schapire & Singer 2000:

    R    votes ½ ln((W⁺ + ε) / (W⁻ + ε));                                  Z = 2 Σ_c Σ_x √(W⁺ W⁻)
    RA   the same where the term is, 0 where it is not;                    Z = weight without the term + 2 Σ_c √(W⁺ W⁻)
    D    ±α, α = ½ ln((1 + r + ε) / (1 − r + ε)), r = Σ_c Σ_x |W⁺ − W⁻|;   Z = √(1 − r²)

Source: Esuli, Fagni & Sebastiani 2008, section 2; ε = 1 / (documents × classes).
Deviations: of terms whose Z is within a billionth of the least, the first is taken, so that results do not depend on
rounding; for the same reason discrete votes are negative unless W⁺ exceeds W⁻ by a billionth; and a sample weight counts as so
many copies of a document, in ε as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from ramify.errors import ModelError
from ramify.learners.boosting.committee import ABOVE_ROOTS, Committee, Floats, Ints, committee_arrays, read_committees
from ramify.learners.boosting.problems import Documents, Problem, TermSelection
from ramify.learners.warm_start import WarmStart
from ramify.metrics.flat import f1
from ramify.native import BoostRounds, boost_in_place
from ramify.parallel import Arrays, Codec, Executor, Stage, check_deadline, stage

VARIANTS = ("R", "RA", "D")
CHUNK = 64  # rounds of one kernel call, after which all sums are computed afresh,
MOST_PAIRS = 600_000_000  # or fewer, so that a call scans no more pairs of terms and classes
FEWEST_DOCUMENTS = 20  # with fewer of them none is held out

Question = tuple[int, Ints]  # a node, and the classes to separate there


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of boosting: see :class:`~ramify.learners.AdaBoostMH`. selection: of the terms of each committee."""

    variant: str
    n_rounds: int
    early_stopping: bool
    validation_fraction: float
    patience: int
    seed: int
    selection: TermSelection | None = None


def boost(problem: Problem, variant: str, n_rounds: int) -> Iterator[Committee]:
    """The committee after every chunk of rounds; the last one has all that are wanted."""
    columns, matrices = problem.compact()
    committee, m = Committee.empty(problem.node, problem.classes), len(problem.classes)
    D = _initial_weights(problem)
    epsilon = 1.0 / (problem.weights.sum() * m)
    chunk = min(CHUNK, max(1, MOST_PAIRS // max(1, len(columns) * m)))
    while committee.n_rounds < n_rounds:
        check_deadline()
        n = min(chunk, n_rounds - committee.n_rounds)
        pivots, votes, z, normalizers = np.zeros(n, dtype=np.int32), np.zeros((2, n, m)), np.zeros(n), np.zeros(n)
        n_made = boost_in_place(*matrices, variant, epsilon, D, BoostRounds(pivots, *votes, z, normalizers))
        terms = columns[pivots] if len(columns) else pivots.astype(np.int64)
        committee = committee.extended(committee.with_rounds(terms, *votes, z, normalizers).first(n_made))
        yield committee
        if n_made < n:  # nothing is left to learn
            return


def _initial_weights(problem: Problem) -> Floats:
    """D over documents × classes, which sums to one: D_1, or what earlier rounds left."""
    D: Floats = np.zeros((len(problem.weights), len(problem.classes))) if problem.votes is None else problem.votes.copy()
    rows = np.repeat(np.arange(len(D)), np.diff(problem.labels.offsets))
    D[rows, problem.labels.items] *= -1
    D -= D.max()
    np.exp(D, out=D)
    D *= problem.weights[:, None]
    D /= D.sum()
    return D


# ---- early stopping -------------------------------------------------------------------------------------------------------


def boost_until_best(problem: Problem, settings: Settings, after_chunk: Callable[[int], bool]) -> Committee:
    """Boost for all rounds, or as long as held-out documents profit; `after_chunk` gets the new rounds, False ends boosting."""
    held_out, rest = _split(problem, settings) if settings.early_stopping else (None, problem)
    monitor = None if held_out is None else EarlyStopping(held_out)
    committee = Committee.empty(problem.node, problem.classes)
    for longer in boost(rest, settings.variant, settings.n_rounds):
        goes_on = after_chunk(longer.n_rounds - committee.n_rounds)
        if monitor is not None:
            goes_on = monitor.update(longer, committee.n_rounds) < settings.patience and goes_on
        committee = longer
        if not goes_on:
            break
    return committee if monitor is None else committee.first(monitor.best_round)


def _split(problem: Problem, settings: Settings) -> tuple[Problem | None, Problem]:
    """Random documents to hold out, and the others; none where they are few, or one part would have none of the classes."""
    n = len(problem.weights)
    if n < FEWEST_DOCUMENTS:
        return None, problem
    order = np.random.default_rng((settings.seed, problem.node + 1)).permutation(n).astype(np.int32)
    count = min(n - 1, max(1, round(settings.validation_fraction * n)))
    held_out, others = problem.of(np.sort(order[:count])), problem.of(np.sort(order[count:]))
    has_classes = len(held_out.labels.items) and len(others.labels.items)
    return (held_out, others) if has_classes else (None, problem)


class EarlyStopping:
    """Tracks the quality on held-out documents, round by round."""

    def __init__(self, held_out: Problem) -> None:
        self.documents, self.true = held_out.terms.transposed(), held_out.labels.to_matrix().toarray() > 0
        self.sums: Floats = np.zeros(self.true.shape) if held_out.votes is None else held_out.votes.copy()
        # where there were no rounds yet, the first is better than none
        self.best_round, self.best = 0, (-1.0, 0.0) if held_out.votes is None else self._quality()

    def update(self, committee: Committee, since: int) -> int:
        """Add the rounds after `since`; gives how many rounds ago the best one was."""
        for s in range(since, committee.n_rounds):
            first, last = self.documents.offsets[committee.pivots[s] : committee.pivots[s] + 2]
            self.sums += committee.absent[s]
            self.sums[self.documents.items[first:last]] += committee.present[s] - committee.absent[s]
            quality = self._quality()
            if quality > self.best:
                self.best_round, self.best = s + 1, quality
        return committee.n_rounds - self.best_round

    def _quality(self) -> tuple[float, float]:
        """Micro F1 and, where that is equal, the negative exponential loss."""
        predicted = self.sums > 0
        loss = np.exp(np.where(self.true, -self.sums, self.sums)).sum()
        return float(f1((predicted & self.true).sum(), self.true.sum(), predicted.sum())), -float(loss)


# ---- warm start -----------------------------------------------------------------------------------------------------------


def reusable_committees(
    warm_start: WarmStart, were: csr_array, are: csr_array, asked: list[Question]
) -> list[Committee | None]:
    """For every question an earlier committee with the same documents and classes, None where there is none.

    were, are: earlier and current documents × nodes, which tell nodes with the same documents.
    """
    then, now = warm_start.renumber(csc_array(were)), csc_array(are)
    known = {}
    for committee in warm_start.learner.committees_:
        at, *keys = _keys(then, committee.node, committee.classes, b"all")
        if all(keys):
            known[at, frozenset(keys)] = committee, keys
    found: list[Committee | None] = []
    for node, classes in asked:
        at, *keys = _keys(now, node, classes, b"all" if warm_start.has_same_documents else b"others")
        same, theirs = known.get((at, frozenset(keys)), (None, keys))
        if same is not None and len(set(keys)) == len(keys) == len(theirs):
            order = [theirs.index(key) for key in keys]
            absent, present = (np.ascontiguousarray(votes[:, order]) for votes in (same.absent, same.present))
            found.append(replace(same, node=node, classes=classes, absent=absent, present=present))
        else:
            found.append(None)
    return found


def _keys(document_nodes: csc_array, node: int, classes: Ints, everyone: bytes) -> list[bytes]:
    """The documents of a node, and of each of its classes."""
    indices, offsets = document_nodes.indices, document_nodes.indptr
    nodes = [node, *classes.tolist()]
    return [everyone if n == ABOVE_ROOTS else indices[offsets[n] : offsets[n + 1]].astype(np.int32).tobytes() for n in nodes]


# ---- parallel boosting: committees are independent blocks of work; the rounds of one build on each other ------------------


class Progress:
    """Reports rounds as they are made in this process, and stops them; a copy in another process does neither.

    stopped: set to end boosting after the current chunk. reported: by node, how many rounds its committee has reported.
    """

    def __init__(self, step: Stage | None = None) -> None:
        self._step, self.stopped, self.reported = step, Event(), Counter[int]()

    def report(self, node: int, rounds: int) -> bool:
        """Count some new rounds; gives whether to go on."""
        self.reported[node] += rounds
        if self._step is not None:
            self._step.advance(rounds)
        return not self.stopped.is_set()

    def __reduce__(self) -> tuple[Any, ...]:
        return Progress, ()


@dataclass(frozen=True, slots=True)
class Boosting:
    """What all committees share."""

    documents: Documents
    settings: Settings
    progress: Progress = field(compare=False)


def boost_all(executor: Executor, documents: Documents, settings: Settings, before: list[Committee]) -> list[Committee]:
    """Add rounds to committees in parallel, those with the most work first; gives them in their order.

    Progress advances by round where they are boosted in this process, by committee otherwise.
    """
    work = [documents.work(committee.node, len(committee.classes)) for committee in before]
    order = sorted(range(len(before)), key=lambda number: -work[number])
    codec = Codec(committee_arrays, partial(_read_committee, n_terms=documents.n_terms, n_nodes=documents.n_nodes))
    made, blocks = {}, [before[number] for number in order]
    with stage("boosting", settings.n_rounds * len(before)) as step:
        progress = Progress(step)
        placed = executor.place(Boosting(documents, settings, progress))
        results = executor.distribute(add_rounds, placed, blocks, codec, stop=progress.stopped.set)
        for number, asked, committee in zip(order, blocks, results, strict=True):
            if committee.node != asked.node or not np.array_equal(committee.classes, asked.classes):  # of a damaged checkpoint
                raise ModelError("the checkpoint holds a committee for other classes; train without --resume to begin anew.")
            made[number] = committee
            step.advance(max(0, committee.n_rounds - asked.n_rounds - progress.reported[committee.node]))
    return [made[number] for number in range(len(before))]


def add_rounds(boosting: Boosting, so_far: Committee) -> Committee:
    """A committee with more rounds, trained on the documents of its node; unchanged where there are none."""
    if not len(boosting.documents.at(so_far.node)):
        return so_far
    problem, selection = boosting.documents.problem(so_far), boosting.settings.selection
    selected = problem if selection is None else selection.apply(problem)
    more = boost_until_best(selected, boosting.settings, partial(boosting.progress.report, so_far.node))
    if boosting.progress.stopped.is_set():
        raise CancelledError  # rounds may be missing
    return so_far.extended(more)


def _read_committee(arrays: Arrays, n_terms: int, n_nodes: int) -> Committee:
    (committee,) = read_committees(arrays, n_terms, n_nodes)
    return committee
