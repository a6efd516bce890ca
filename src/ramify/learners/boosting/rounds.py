"""AdaBoost.MH: rounds of boosting over the classes of one set of documents.

    D_1(i, c) = 1 / (documents × classes)
    Φ_s       = the stump, on the presence of one term, with the least Z_s = Σ_i,c D_s(i, c) exp(−y_ic Φ_s(i, c))
    D_s+1     = D_s(i, c) exp(−y_ic Φ_s(i, c)) / Z_s

W⁺ and W⁻ of a class c and an x (the term is there, or not) are the weights of the documents with that x that have the class,
and that do not. Variants, after Schapire & Singer 2000:

    R    votes ½ ln((W⁺ + ε) / (W⁻ + ε));                                  Z = 2 Σ_c Σ_x √(W⁺ W⁻)
    RA   the same where the term is, 0 where it is not;                    Z = weight without the term + 2 Σ_c √(W⁺ W⁻)
    D    ±α, α = ½ ln((1 + r + ε) / (1 − r + ε)), r = Σ_c Σ_x |W⁺ − W⁻|;   Z = √(1 − r²)

Source: Esuli, Fagni & Sebastiani 2008, section 2; ε = 1 / (documents × classes).
Deviations: of terms whose Z is within a billionth of the least, the first is taken, so that rounding decides nothing; for the
same reason discrete votes say no where W⁺ is not larger than W⁻ by a billionth; and weights of documents count as repetitions
would, in ε as well.
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
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify.errors import ModelError
from ramify.learners.boosting.committee import Committee, Floats, Ints, committee_arrays, read_committees
from ramify.learners.boosting.problems import ABOVE_ROOTS, Documents, Problem, TermChoice
from ramify.learners.warm_start import WarmStart
from ramify.metrics.flat import f1
from ramify.native import boost_in_place
from ramify.parallel import Arrays, Codec, Executor, Stage, check_deadline, stage

VARIANTS = ("R", "RA", "D")
SPELL = 64  # rounds between two looks at the clock, after which all sums are made anew,
LONG = 600_000_000  # or fewer, so that no more pairs of terms and classes are looked at in between


def boost(problem: Problem, variant: str, n_rounds: int) -> Iterator[Committee]:
    """Committees of more and more rounds, a few rounds at a time, the last of which has all that are wanted."""
    columns, matrices = problem.compact()
    problem.refuse_huge(len(columns))
    done = Committee.empty(problem.node, problem.classes)
    D = _weights_after(problem)
    epsilon = 1.0 / (problem.weights.sum() * len(problem.classes))
    spell = min(SPELL, max(1, LONG // max(1, len(columns) * len(problem.classes))))
    while done.n_rounds < n_rounds:
        check_deadline()
        n = min(spell, n_rounds - done.n_rounds)
        more = _spell(problem, matrices, VARIANTS.index(variant), epsilon, n, D, columns)
        done = done.extended(more)
        yield done
        if more.n_rounds < n:  # nothing is left to learn
            return


def _weights_after(problem: Problem) -> Floats:
    """D over documents × classes, adding up to one: as it is at first, or after earlier rounds."""
    D: Floats = np.zeros(problem.shape) if problem.votes is None else problem.votes.copy()
    rows = np.repeat(np.arange(len(D)), np.diff(problem.labels.offsets))
    D[rows, problem.labels.items] *= -1
    D -= D.max()
    np.exp(D, out=D)
    D *= problem.weights[:, None]
    D /= D.sum()
    return D


def _spell(
    problem: Problem, matrices: list[NDArray[Any]], variant: int, epsilon: float, n: int, D: Floats, columns: Ints
) -> Committee:
    m = len(problem.classes)
    pivots = np.zeros(n, dtype=np.int32)
    absent, present, z, normalizers = np.zeros((n, m)), np.zeros((n, m)), np.zeros(n), np.zeros(n)
    made = boost_in_place(*matrices, variant, epsilon, n, D, pivots, absent, present, z, normalizers)
    found = columns[pivots] if len(columns) else pivots.astype(np.int64)
    return Committee(problem.node, problem.classes, found, absent, present, z, normalizers).first(made)


# --------------------------------------------------------------------------------------------------------------
# How many rounds: as many as wanted, or as many as serve documents that were held out.


FEWEST_DOCUMENTS = 20  # with fewer of them none is held out


@dataclass(frozen=True, slots=True)
class Settings:
    """What boosting is told: see :class:`~ramify.learners.AdaBoostMH`."""

    variant: str
    n_rounds: int
    early_stopping: bool
    validation_fraction: float
    patience: int
    seed: int


def boost_well(problem: Problem, settings: Settings, after: Callable[[int], bool]) -> Committee:
    """The rounds that boosting comes to; `after` hears of every few of them, and ends it by saying no."""
    held_out, learnt = _split(problem, settings) if settings.early_stopping else (None, problem)
    watched, problem = (None, problem) if held_out is None else (Watch(held_out), learnt)
    made = Committee.empty(problem.node, problem.classes)
    for committee in boost(problem, settings.variant, settings.n_rounds):
        goes_on = after(committee.n_rounds - made.n_rounds)
        if watched is not None:
            goes_on = watched.look(committee, made.n_rounds) < settings.patience and goes_on
        made = committee
        if not goes_on:
            break
    return made if watched is None else made.first(watched.best_round)


def _split(problem: Problem, settings: Settings) -> tuple[Problem | None, Problem]:
    """Documents to hold out, drawn by the seed, and the others; none where they are few, or would have none of the classes."""
    n = problem.shape[0]
    if n < FEWEST_DOCUMENTS:
        return None, problem
    order = np.random.default_rng((settings.seed, problem.node + 1)).permutation(n).astype(np.int32)
    count = min(n - 1, max(1, round(settings.validation_fraction * n)))
    held_out, others = problem.of(np.sort(order[:count])), problem.of(np.sort(order[count:]))
    has_classes = len(held_out.labels.items) and len(others.labels.items)
    return (held_out, others) if has_classes else (None, problem)


class Watch:
    """Follows how well held-out documents are served, round by round."""

    def __init__(self, held_out: Problem) -> None:
        self.documents, self.true = held_out.terms.turned(held_out.n_terms), held_out.is_true()
        self.sums: Floats = np.zeros(self.true.shape) if held_out.votes is None else held_out.votes.copy()
        # where there were no rounds yet, the first is better than none
        self.best_round, self.best = 0, (-1.0, 0.0) if held_out.votes is None else self._quality()

    def look(self, committee: Committee, since: int) -> int:
        """Take in the rounds that came since; gives how many rounds ago the best one was."""
        for s in range(since, committee.n_rounds):
            first, last = self.documents.offsets[committee.pivots[s] : committee.pivots[s] + 2]
            self.sums += committee.absent[s]
            self.sums[self.documents.items[first:last]] += committee.present[s] - committee.absent[s]
            quality = self._quality()
            if quality > self.best:
                self.best_round, self.best = s + 1, quality
        return committee.n_rounds - self.best_round

    def _quality(self) -> tuple[float, float]:
        """Micro F1 and, where that is equal, how small the loss is that boosting lowers."""
        given = self.sums > 0
        loss = np.exp(np.where(self.true, -self.sums, self.sums)).sum()
        return float(f1((given & self.true).sum(), self.true.sum(), given.sum())), -float(loss)


# --------------------------------------------------------------------------------------------------------------
# Committees that another learner has made already, of the same documents and classes.


Question = tuple[int, Ints]  # a node, and the classes that are asked about there


def known_committees(before: WarmStart, were: csr_array, are: csr_array, asked: list[Question]) -> list[Committee | None]:
    """For every question a committee that was made of the same documents and classes, None where there is none.

    were, are: documents of before and of now × nodes, by which it is told whose documents they are.
    """
    then, now = before.now(csc_array(were)), csc_array(are)
    everyone = b"all" if before.has_same_documents else b"others"
    known = {}
    for committee in before.learner.committees_:
        keys = _keys(then, committee.classes)
        if all(keys):
            known[_node_key(then, committee.node, b"all"), frozenset(keys)] = committee, keys
    found: list[Committee | None] = []
    for node, classes in asked:
        keys = _keys(now, classes)
        same = known.get((_node_key(now, node, everyone), frozenset(keys)))
        is_clear = same is not None and len(set(keys)) == len(keys) == len(same[1])
        found.append(_placed(same[0], [same[1].index(key) for key in keys], node, classes) if same and is_clear else None)
    return found


def _placed(committee: Committee, order: list[int], node: int, classes: Ints) -> Committee:
    """A committee with its classes in another order, at another node."""
    absent, present = np.ascontiguousarray(committee.absent[:, order]), np.ascontiguousarray(committee.present[:, order])
    return replace(committee, node=node, classes=classes, absent=absent, present=present)


def _node_key(members: csc_array, node: int, everyone: bytes) -> bytes:
    return everyone if node == ABOVE_ROOTS else _keys(members, np.asarray([node]))[0]


def _keys(members: csc_array, nodes: Ints) -> list[bytes]:
    return [members.indices[members.indptr[n] : members.indptr[n + 1]].astype(np.int32).tobytes() for n in nodes.tolist()]


# --------------------------------------------------------------------------------------------------------------
# Committees as blocks of work: each stands alone, and may be boosted on another machine.
#
# One committee is never cut: its rounds build on each other, and every round looks at all its documents. AdaBoost.MH, which has
# one committee, therefore runs on one machine whatever there is, and TreeBoost.MH takes at least as long as its largest one.


class Ear:
    """Hears, in this process, of rounds as they are made, and ends them once nobody wants them.

    A copy that was sent elsewhere hears nothing. heard: how many rounds the committee of each node was heard to make.
    """

    def __init__(self, step: Stage | None = None) -> None:
        self._step, self._stopped, self.heard = step, Event(), Counter[int]()

    def hear(self, node: int, rounds: int) -> bool:
        """Take in that some rounds were made; gives whether to go on."""
        self.heard[node] += rounds
        if self._step is not None:
            self._step.advance(rounds)
        return not self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """Whether nobody wants more rounds."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Let rounds end soon."""
        self._stopped.set()

    def __reduce__(self) -> tuple[Any, ...]:
        return Ear, ()


@dataclass(frozen=True, slots=True)
class Boosting:
    """What all committees are boosted with. choice: of the terms that each looks at, None for all."""

    documents: Documents
    settings: Settings
    choice: TermChoice | None
    ear: Ear = field(compare=False)


def boost_all(
    executor: Executor, documents: Documents, settings: Settings, choice: TermChoice | None, before: list[Committee]
) -> list[Committee]:
    """Add rounds to committees, those with the most work first; they come back in their order.

    Progress is told round by round where they are boosted in this process, committee by committee otherwise.
    """
    work = [documents.work(committee.node, len(committee.classes)) for committee in before]
    order = sorted(range(len(before)), key=lambda number: -work[number])
    codec = Codec(_to_arrays, partial(_from_arrays, n_terms=documents.n_terms, n_nodes=documents.n_nodes))
    made = {}
    with stage("boosting", settings.n_rounds * len(before)) as step:
        ear = Ear(step)
        placed = executor.place(Boosting(documents, settings, choice, ear))
        results = executor.distribute(add_rounds, placed, [before[number] for number in order], codec, stop=ear.stop)
        for number, committee in zip(order, results, strict=True):
            _refuse_other(committee, before[number])
            made[number] = committee
            step.advance(max(0, committee.n_rounds - before[number].n_rounds - ear.heard[committee.node]))
    return [made[number] for number in range(len(before))]


def add_rounds(boosting: Boosting, so_far: Committee) -> Committee:
    """A committee with more rounds, from the documents of its node; as it was, where there are none."""
    if not len(boosting.documents.at(so_far.node)):
        return so_far
    problem = boosting.documents.problem(so_far)
    chosen = problem if boosting.choice is None else boosting.choice.apply(problem)
    more = boost_well(chosen, boosting.settings, partial(boosting.ear.hear, so_far.node))
    if boosting.ear.is_stopped:
        raise CancelledError  # rounds may be missing, and nobody must take these for all
    return so_far.extended(more)


def _to_arrays(committee: Committee) -> Arrays:
    return committee_arrays([committee])


def _from_arrays(arrays: Arrays, n_terms: int, n_nodes: int) -> Committee:
    (committee,) = read_committees(arrays, n_terms, n_nodes)
    return committee


def _refuse_other(committee: Committee, before: Committee) -> None:
    """Refuse a committee that does not go on where it was, as a damaged checkpoint may hold."""
    if committee.node != before.node or not np.array_equal(committee.classes, before.classes):
        raise ModelError("the checkpoint holds a committee for other classes; train without --resume to begin anew.")
