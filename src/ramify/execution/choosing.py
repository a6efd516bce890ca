"""From scikit-learn's ``n_jobs`` to an executor."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ramify.errors import InputError
from ramify.execution.checkpoints import Checkpoints
from ramify.execution.contract import Executor
from ramify.execution.serial import SerialExecutor
from ramify.execution.surroundings import current_checkpoints, current_executor
from ramify.execution.threads import ThreadExecutor


def choose_executor(n_jobs: int | None) -> Executor:
    """Serial for None or 1, threads for more, all cores for -1, as scikit-learn counts them.

    Where :func:`~ramify.execution.running_on` has said so, crews and spread work run on what was said there.
    """
    workers = count_workers(n_jobs)
    here = SerialExecutor() if workers == 1 else ThreadExecutor(workers)
    there, checkpoints = current_executor() or here, current_checkpoints()
    if there is here and checkpoints is None:
        return here
    return HereAndThere(here, there, checkpoints)


@dataclass(frozen=True, slots=True)
class HereAndThere:
    """An executor that maps in this process, and sends crews and spread work elsewhere, perhaps, where it may be kept."""

    here: Executor
    there: Executor
    checkpoints: Checkpoints | None = None

    @property
    def teams(self) -> tuple[int, ...]:
        """Those elsewhere, or those with which work began that is taken up again; whoever asks first settles them."""
        return self.there.teams if self.checkpoints is None else self.checkpoints.agreed_teams(self.there.teams)

    @property
    def map(self) -> Any:
        """Functions that share memory run here."""
        return self.here.map

    @property
    def place(self) -> Any:
        """Things are placed elsewhere."""
        return self.there.place

    @property
    def spread(self) -> Any:
        """Work that stands alone runs elsewhere."""
        return self.there.spread

    @property
    def gather(self) -> Any:
        """Crews work elsewhere."""
        return self.there.gather


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
