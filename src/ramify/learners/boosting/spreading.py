"""Committees as blocks of work: each stands alone, and may be boosted on another machine.

One committee is never cut: its rounds build on each other, and every round looks at all its documents. AdaBoost.MH, which has
one committee, therefore runs on one machine whatever there is, and TreeBoost.MH takes at least as long as its largest one.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

import numpy as np

from ramify.errors import ModelError
from ramify.execution import Arrays, Executor, Keeper, Stage, stage
from ramify.learners.boosting.committee import Committee
from ramify.learners.boosting.problems import Documents, TermChoice
from ramify.learners.boosting.stopping import Settings, boost_well
from ramify.learners.boosting.storing import committee_arrays, read_committees


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
    keeper = Keeper(_to_arrays, partial(_from_arrays, n_terms=documents.n_terms, n_nodes=documents.n_nodes))
    made = {}
    with stage("boosting", settings.n_rounds * len(before)) as step:
        ear = Ear(step)
        placed = executor.place(Boosting(documents, settings, choice, ear))
        results = executor.spread(add_rounds, placed, [before[number] for number in order], keeper, stop=ear.stop)
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
