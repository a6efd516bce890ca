"""The trials of a comparison: one system on one train/test split, with its predictions, time and peak memory.

Memory is the peak of the resident set of the process during the trial, above what was resident before, so that arrays of
the C++ core count as those of Python do. Freed memory that the allocator holds is returned first, or the next trial would
seem to need none. Linux resets and reports the peak; where that is forbidden, the resident set is sampled every few
milliseconds. Other platforms report nothing.
"""

from __future__ import annotations

import ctypes
import gc
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.errors import RamifyError
from ramify.parallel import checkpointing, reporting_to, running_on
from ramify.taxonomy import Taxonomy
from ramify.workflows.reading import adapt_corpus
from ramify.workflows.training import train_classifier

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # resets the peak of the resident set
INTERVAL = 0.005  # seconds between two samples
MEGABYTE = 1_000_000


@dataclass(slots=True)
class PeakMemory:
    """Megabytes above what was resident before; None until the work is done, and where it cannot be measured."""

    megabytes: float | None = None


@contextmanager
def measure_memory() -> Iterator[PeakMemory]:
    """Measure the peak memory of the block.

    >>> with measure_memory() as peak:
    ...     work = bytearray(50_000_000)
    >>> peak.megabytes is None or peak.megabytes > 40
    True
    """
    peak = PeakMemory()
    gc.collect()
    with suppress(AttributeError, OSError, TypeError):  # not every allocator can return freed memory
        ctypes.CDLL(None).malloc_trim(0)
    is_reset, start = _reset_peak(), _resident()
    if is_reset or start is None:
        yield peak
        highest = _from_status("VmHWM")
    else:
        with _sampling(start) as samples:
            yield peak
        highest = max(samples)
    peak.megabytes = None if start is None or highest is None else max(0, highest - start) / MEGABYTE


def _reset_peak() -> bool:
    try:
        CLEAR.write_text(RESET_PEAK)
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
    return _from_status("VmRSS")


@contextmanager
def _sampling(start: int) -> Iterator[list[int]]:
    """The resident set before the block, and samples until its end."""
    samples, done = [start], threading.Event()

    def sample() -> None:
        while not done.wait(INTERVAL):
            samples[1:] = [max(*samples, _resident() or 0)]

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()
        samples.append(_resident() or 0)


# ---- trials -------------------------------------------------------------------------------------------------------------

WARM_UP = 200  # documents that are used before anything is measured
NO_MEMORY = "there is not enough memory for it; use fewer documents or terms."

Split = tuple[Corpus | None, Corpus]  # training documents, none for a trained model, and test documents
Trial = tuple[str, TextClassifier, int]  # the name of a system, its classifier, and the number of the split


@dataclass(frozen=True, slots=True)
class Splits:
    """Train/test splits.

    corpus: training documents or, where there is no test corpus, test documents. test: test documents.
    folds: positions of the documents of each fold; each is predicted by a model that was trained on the others.
    """

    corpus: Corpus
    test: Corpus | None = None
    folds: tuple[NDArray[np.int64], ...] = ()

    def __len__(self) -> int:
        return len(self.folds) or 1

    def __iter__(self) -> Iterator[Split]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, k: int) -> Split:
        if not self.folds:
            return (None, self.corpus) if self.test is None else (self.corpus, self.test)
        rest = np.setdiff1d(np.arange(len(self.corpus)), self.folds[k])
        return self.corpus.take(rest), self.corpus.take(self.folds[k])


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Predictions on one split, seconds (of training: None for a trained model) and megabytes, or only the reason for none."""

    predictions: csr_array | None = None
    training: float | None = None
    prediction: float = 0.0
    memory: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TrialContext:
    """What all trials have in common. first: a classifier to warm up with. threads: of a remote trial."""

    splits: Splits | Sequence[Split]
    taxonomy: Taxonomy
    first: TextClassifier
    threads: int = 1


def run_trial(context: TrialContext, trial: Trial) -> TrialResult:
    """Train and test a system on one split, or give the reason why it cannot be used."""
    _, classifier, number = trial
    return measure_trial(classifier, *context.splits[number], context.taxonomy)


def run_remote_trial(context: TrialContext, trial: Trial) -> TrialResult:
    """The same on another node of a cluster, with all its threads, warmed up first."""
    with running_on(None), checkpointing(None), reporting_to(None):
        warm_up(context)
        name, given, number = trial
        is_fitted, threads = given.__sklearn_is_fitted__(), context.threads
        threaded = given.with_threads(threads) if is_fitted else clone(given).set_params(n_jobs=threads)
        return run_trial(context, (name, threaded, number))


def warm_up(context: TrialContext) -> None:
    """Load what libraries load on first use, or the first system would pay for all in time and memory."""
    training, test = context.splits[0]
    few = None if training is None else training.take(range(min(WARM_UP, len(training))))
    measure_trial(context.first, few, test.take(range(min(WARM_UP, len(test)))), context.taxonomy)


def measure_trial(classifier: TextClassifier, training: Corpus | None, test: Corpus, taxonomy: Taxonomy) -> TrialResult:
    """Train a system, if there are training documents, and predict; measure time and memory."""
    try:
        with measure_memory() as peak:
            started = time.perf_counter()
            fitted = classifier
            if training is not None:
                # the taxonomy of all documents, also of the test documents; labels do not depend on a calibration
                fresh = clone(classifier).set_params(taxonomy=taxonomy, calibrate=False, keep_back=0.0)
                fitted = train_classifier(fresh, training, holdout=0).classifier
            trained = time.perf_counter()
            predictions = fitted.predict_matrix(adapt_corpus(fitted, test).documents)
            ended = time.perf_counter()
    except (RamifyError, MemoryError) as error:
        return TrialResult(reason=NO_MEMORY if isinstance(error, MemoryError) else str(error))
    return TrialResult(predictions, None if training is None else trained - started, ended - trained, peak.megabytes)
