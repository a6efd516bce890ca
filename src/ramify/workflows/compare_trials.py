"""How much memory a piece of work needs at its height.

What is measured is the resident set of the whole process, so arrays of the C++ core count as those of Python do: its height
during the work, less what was resident just before. Freed memory that the allocator kept is given back first, or the next
piece of work would seem to need none. Linux resets and tells the height; where that is forbidden the resident set is looked at
every few milliseconds. Other platforms tell nothing that could be used.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.errors import RamifyError
from ramify.parallel import checkpointing, reporting_to, running_on
from ramify.taxonomy import Taxonomy
from ramify.workflows.evaluation import adapt_corpus
from ramify.workflows.training import train_classifier

STATUS, STATM, CLEAR = Path("/proc/self/status"), Path("/proc/self/statm"), Path("/proc/self/clear_refs")
RESET_HEIGHT = "5"  # what Linux takes for: begin anew with the height of the resident set
EVERY = 0.005  # seconds between two looks
MEGABYTE = 1_000_000


@dataclass(slots=True)
class Height:
    """Megabytes above what was resident before; None until the work is done, and where nothing can be measured."""

    megabytes: float | None = None


@contextmanager
def watching_memory() -> Iterator[Height]:
    """Measure the memory that the work of this block needs at its height.

    >>> with watching_memory() as height:
    ...     work = bytearray(50_000_000)
    >>> height.megabytes is None or height.megabytes > 40
    True
    """
    height = Height()
    _give_back()
    if _reset_height():
        before = _from_status("VmRSS")
        yield height
        height.megabytes = _above(before, _from_status("VmHWM"))
    elif _resident() is not None:
        with _looking() as seen:
            yield height
        height.megabytes = _above(*seen)
    else:
        yield height


def _above(before: int | None, highest: int | None) -> float | None:
    return None if before is None or highest is None else max(0, highest - before) / MEGABYTE


def _give_back() -> None:
    """Free what nobody needs any more, and have the allocator return it."""
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # not every allocator can
        ctypes.CDLL(None).malloc_trim(0)


def _reset_height() -> bool:
    try:
        CLEAR.write_text(RESET_HEIGHT)
        return _from_status("VmHWM") is not None
    except OSError:
        return False


def _from_status(field: str) -> int | None:
    try:
        found = re.search(rf"^{field}:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else 1024 * int(found[1])


def _resident() -> int | None:
    try:
        return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


@contextmanager
def _looking() -> Iterator[list[int]]:
    """The resident set before the block, and the highest that was seen until its end."""
    before = _resident() or 0
    seen, done = [before, before], threading.Event()

    def look() -> None:
        while not done.wait(EVERY):
            seen[1] = max(seen[1], _resident() or 0)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()
        seen[1] = max(seen[1], _resident() or 0)


# --------------------------------------------------------------------------------------------------------------
# Rounds of learning and testing, and one system in one of them: what it answers, how long it takes, and what it needs.


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
    with running_on(None), checkpointing(None), reporting_to(None):
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
    answers = fitted.predict_matrix(adapt_corpus(fitted, tested).documents)
    return answers, None if learn is None else learnt - started, time.perf_counter() - learnt


def _learnt(classifier: TextClassifier, learn: Corpus, taxonomy: Taxonomy) -> TextClassifier:
    # the taxonomy of all documents, also of those that are not learnt from; labels do not depend on a calibration
    return train_classifier(
        clone(classifier).set_params(taxonomy=taxonomy, calibrate=False, keep_back=0.0), learn, holdout=0
    ).classifier


def _with_threads(classifier: TextClassifier, threads: int | None) -> Any:
    if classifier.__sklearn_is_fitted__():
        return classifier.with_threads(threads)
    return clone(classifier).set_params(n_jobs=threads)
