"""From scikit-learn's ``n_jobs`` to an executor."""

from __future__ import annotations

import os

from ramify.errors import InputError
from ramify.execution.contract import Executor
from ramify.execution.serial import SerialExecutor
from ramify.execution.threads import ThreadExecutor


def choose_executor(n_jobs: int | None) -> Executor:
    """Serial for None or 1, threads for more, all cores for -1, as scikit-learn counts them."""
    workers = count_workers(n_jobs)
    return SerialExecutor() if workers == 1 else ThreadExecutor(workers)


def count_workers(n_jobs: int | None) -> int:
    """The number of workers that `n_jobs` means on this machine.

    >>> count_workers(None), count_workers(3)
    (1, 3)
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise InputError("0 threads can do no work (n_jobs is 0); give a number of threads, or -1 for all cores.")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
