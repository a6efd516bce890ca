"""How much of the experiment is done, with which documents: the newsgroups, or the bundled requests in their place.

Every trial puts the documents in a random order of which any beginning has about the same share of every class. Training sets
are beginnings of it, so that smaller ones are parts of larger ones; the test set, whatever the training set, is all that comes
after the largest. The vocabulary is that of the whole corpus ("all", as in the paper) or of the training documents ("seen").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from experiments.mccallum1998.corpora import CHILDREN, Counted, Ints, Names, count_requests, count_usenet
from experiments.study import Run


@dataclass(frozen=True, slots=True)
class Protocol:
    """What is varied.

    sizes: of training sets. few_and_many: those whose weights are shown. shown: the classes whose weights are shown.
    words, words_from: how many words are chosen, and sizes of the training sets for that.
    """

    trials: int
    sizes: tuple[int, ...]
    few_and_many: tuple[int, int]
    shown: tuple[str, ...]
    words: tuple[int, ...]
    words_from: tuple[int, ...]


SIZES = (59, 117, 235, 469, 937, 1874, 3749, 7497)  # halved again and again, as 7,497 and 235 of the paper are
SHOWN = (*CHILDREN["politics"], *CHILDREN["religion"])
WORDS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
NEWSGROUPS = {
    "full": Protocol(10, SIZES, (235, 7497), SHOWN, WORDS, (235, 1500, 7497)),
    "quick": Protocol(2, SIZES, (235, 7497), SHOWN, WORDS, (235, 7497)),
    "tiny": Protocol(2, (30, 60), (30, 60), SHOWN[:2], (10, 30), (60,)),
}
REQUEST_SIZES = (125, 250, 500, 1000, 2000)
REQUESTS_SHOWN = tuple(
    f"Orders & delivery > Delivery > {name}"
    for name in ("Late or lost parcel", "Marked delivered, not received", "Change address or date", "Damaged in transit")
)
REQUESTS = {
    "full": Protocol(10, REQUEST_SIZES, (250, 2000), REQUESTS_SHOWN, WORDS[:6], (250, 2000)),
    "quick": Protocol(5, REQUEST_SIZES, (250, 2000), REQUESTS_SHOWN, WORDS[:6], (250, 2000)),
    "tiny": Protocol(1, (250, 500), (250, 500), REQUESTS_SHOWN[:2], (10, 100), (500,)),
}

Source = Callable[[Run], tuple[Counted, Protocol]]


def newsgroups(run: Run) -> tuple[Counted, Protocol]:
    """The posts, and what to do with them."""
    return count_usenet(run.corpus("20newsgroups")), run.choose(**NEWSGROUPS)


def requests(run: Run) -> tuple[Counted, Protocol]:
    """The bundled requests, and what to do with them."""
    return count_requests(), run.choose(**REQUESTS)


@dataclass(frozen=True, slots=True)
class Trial:
    """One order of the documents: a pool to draw training sets from, in order, and documents to test on."""

    number: int
    documents: Counted
    pool: Ints
    test: Ints

    @classmethod
    def draw(cls, documents: Counted, size: int, seed: int, number: int) -> Trial:
        """A trial whose largest training set has some size."""
        order = documents.draw_order(seed, number)
        return cls(number, documents, order[:size], np.sort(order[size:]))

    def training_set(self, size: int) -> tuple[csr_array, Names]:
        """Word counts and classes of a training set."""
        chosen = self.pool[:size]
        return self.documents.X[chosen], self.documents.names[chosen]

    def test_on(self) -> tuple[csr_array, Names]:
        """Word counts and classes of the test set."""
        return self.documents.X[self.test], self.documents.names[self.test]


def each_trial(run: Run, documents: Counted, size: int, trials: int, measure: Callable[[Trial], Any], key: str = "") -> Any:
    """What each trial gives, saved as soon as it is there; then all of it, a list over trials in the place of every value."""

    def step(number: int) -> Any:
        return measure(Trial.draw(documents, size, run.seed, number))

    return gather([run.keep(f"{key}trial {number + 1}", partial(step, number)) for number in range(trials)])


def gather(trials: Sequence[Any]) -> Any:
    """Dictionaries of the same form as one, with lists over them.

    >>> gather([{"nb": {"59": 0.25}}, {"nb": {"59": 0.5}}])
    {'nb': {'59': [0.25, 0.5]}}
    """
    if isinstance(trials[0], dict):
        return {key: gather([trial[key] for trial in trials]) for key in trials[0]}
    return list(trials)
