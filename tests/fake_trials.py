"""A clock that stands still, and trials that take as long, and are as good, as a test says."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ramify.data import Corpus
from ramify.decisions import Best
from ramify.parallel import check_deadline, single_stage
from ramify.taxonomy import Taxonomy
from ramify.workflows.folds import make_folds
from ramify.workflows.tuning.candidates import Fixed, relative_cost
from ramify.workflows.tuning.evaluator import Evaluator, TimeBudget
from ramify.workflows.tuning.search import Search
from ramify.workflows.tuning.trials import FoldResult

NAMES = ["a", "b", "c"]
FLAT = Taxonomy.flat(NAMES)


class Clock:
    """Seconds that pass only when something is done."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def work(self, seconds, steps=10):
        """Work that can be broken off now and then."""
        for _ in range(steps):
            self.now += seconds / steps
            check_deadline()


class Trials:
    """Fake trials: seconds by relative cost, and as many right predictions as the skill of a candidate.

    speed: seconds that flat SVMs take for all documents. skill: a function of the candidate, the fraction of right predictions.
    slow: systems that take so many timings longer than anyone would think. began: what was result, and when.
    """

    def __init__(self, clock, speed=1.0, skill=lambda candidate: 0.5, slow=None):
        self.clock, self.speed, self.skill, self.slow, self.began = clock, speed, skill, slow or {}, []

    def __call__(self, candidate, folds, number, fraction, rules):
        self.began.append((str(candidate), number, fraction, self.clock.now))
        size = folds.size(number, fraction) / len(folds.corpus)
        self.clock.work(self.speed * size * relative_cost(candidate) * self.slow.get(candidate.system, 1.0))
        truth = folds.truth(number)
        n_right = round(self.skill(candidate) * truth.shape[0])
        rows = np.arange(truth.shape[0])
        predictions = np.where(rows < n_right, truth.indices, (truth.indices + 1) % len(NAMES))
        given = csr_array((np.ones(len(rows), dtype=bool), (rows, predictions)), shape=truth.shape)
        return FoldResult(dict.fromkeys(range(len(rules)), given), {})

    @property
    def names(self):
        return [name for name, *_ in self.began]


def small_corpus(n=300):
    """Documents of three classes, all different."""
    return Corpus("memory", [f"word{i} text" for i in range(n)], [[NAMES[i % 3]] for i in range(n)])


def new_search(trials, seconds, fixed=None, last=0.0, n=300):
    """A search over fake trials, in which the last training takes `last` seconds."""
    clock, folds = trials.clock, make_folds(small_corpus(n), FLAT, 0, None)
    evaluator = Evaluator(folds, "micro_f1", False, Best(), TimeBudget(seconds, clock.now, clock), trials)
    return Search(evaluator, fixed or Fixed(), lambda trial: last)


def run(search):
    """Let a search run to its end."""
    with single_stage("choosing") as whole:
        search.run(whole)
    return search
