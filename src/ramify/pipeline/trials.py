"""Rounds of learning and testing, and one system in one of them: what it answers, how long it takes, and what it needs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from ramify.datasets import Corpus
from ramify.errors import RamifyError
from ramify.execution import kept_in, reporting_to, running_on
from ramify.pipeline.classifier import TextClassifier
from ramify.pipeline.memory import watching_memory
from ramify.pipeline.training import fitting, train
from ramify.taxonomy import Taxonomy

WARMING = 200  # documents that are learnt from and answered before anything is measured
NO_MEMORY = "there is not enough memory for it; use fewer documents or terms."

Round = tuple[Corpus | None, Corpus]  # documents to learn from, none for a trained model, and documents to test on


@dataclass(frozen=True, slots=True)
class Rounds:
    """What is learnt from and tested on, one round a test set.

    corpus: what is learnt from, or, where there is no test corpus, what is tested on. test: what is tested on then.
    parts: positions of the documents of each fold; each is tested by what learnt from the others.
    """

    corpus: Corpus
    test: Corpus | None = None
    parts: tuple[NDArray[np.int64], ...] = ()

    def __len__(self) -> int:
        return len(self.parts) or 1

    def __iter__(self) -> Iterator[Round]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> Round:
        if not self.parts:
            return (None, self.corpus) if self.test is None else (self.corpus, self.test)
        rest = np.setdiff1d(np.arange(len(self.corpus)), self.parts[k])
        return self.corpus.take(rest), self.corpus.take(self.parts[k])


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of a system in one round, the seconds that it took, None where nothing was learnt, and its megabytes.

    reason: why it cannot take the data; there is nothing else then.
    """

    answers: csr_array | None = None
    training: float | None = None
    answering: float = 0.0
    memory: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Arena:
    """What all trials share. first: a classifier that warms machines up, so that none pays for others."""

    rounds: Rounds | Sequence[Round]
    taxonomy: Taxonomy
    first: TextClassifier


@dataclass(frozen=True, slots=True)
class Trial:
    """One system in one round. threads: how many it works with, None for those of the classifier."""

    name: str
    classifier: TextClassifier
    number: int
    threads: int | None = None


def try_out(arena: Arena, trial: Trial) -> Answered:
    """Let a system learn and answer in one round, or say why it cannot."""
    learn, tested = arena.rounds[trial.number]
    return try_answer(trial.classifier, learn, tested, arena.taxonomy)


def try_out_elsewhere(arena: Arena, trial: Trial) -> Answered:
    """The same on a machine of its own, with all its threads, warmed up first."""
    with running_on(None), kept_in(None), reporting_to(None):
        warm_up(arena)
        return try_out(arena, Trial(trial.name, _with_threads(trial.classifier, trial.threads), trial.number))


def warm_up(arena: Arena) -> None:
    """Let libraries load what they load when first used, or the first system would pay for all in time and memory."""
    learn, tested = arena.rounds[0]
    few = None if learn is None else learn.take(range(min(WARMING, len(learn))))
    try_answer(arena.first, few, tested.take(range(min(WARMING, len(tested)))), arena.taxonomy)


def try_answer(classifier: TextClassifier, learn: Corpus | None, tested: Corpus, taxonomy: Taxonomy) -> Answered:
    """Let a system answer, and measure the time and memory that it needs; or say why it cannot."""
    try:
        with watching_memory() as height:
            answers, training, answering = _answer(classifier, learn, tested, taxonomy)
    except RamifyError as error:
        return Answered(reason=str(error))
    except MemoryError:
        return Answered(reason=NO_MEMORY)
    return Answered(answers, training, answering, height.megabytes)


def _answer(
    classifier: TextClassifier, learn: Corpus | None, tested: Corpus, taxonomy: Taxonomy
) -> tuple[csr_array, float | None, float]:
    """Train, unless nothing is to be learnt from, and answer; both are timed."""
    started = time.perf_counter()
    fitted = classifier if learn is None else _learnt(classifier, learn, taxonomy)
    learnt = time.perf_counter()
    answers = fitted.predict_matrix(fitting(fitted, tested).documents)
    return answers, None if learn is None else learnt - started, time.perf_counter() - learnt


def _learnt(classifier: TextClassifier, learn: Corpus, taxonomy: Taxonomy) -> TextClassifier:
    # the taxonomy of all documents, also of those that are not learnt from; labels do not depend on a calibration
    return train(clone(classifier).set_params(taxonomy=taxonomy, calibrate=False, keep_back=0.0), learn, share=0).classifier


def _with_threads(classifier: TextClassifier, threads: int | None) -> Any:
    if classifier.__sklearn_is_fitted__():
        return classifier.with_threads(threads)
    return clone(classifier).set_params(n_jobs=threads)
