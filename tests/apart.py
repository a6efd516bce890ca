"""An executor for tests whose blocks and members could be on another machine: everything goes through bytes, arrays read-only."""

import pickle
from collections import deque

from ramify.parallel import SerialExecutor
from ramify.parallel.executor import LocalWorkerGroup


def sent(value):
    """A value as another process gets it: a copy whose arrays cannot be written to."""
    buffers = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])


class ApartWorkerGroup(LocalWorkerGroup):
    def _call(self, what, arguments):
        return [sent(getattr(member, what)(*sent(arguments))) for member in self.members]


class ApartExecutor(SerialExecutor):
    """Members and blocks that share nothing; `teams` threads for each member."""

    def __init__(self, *teams):
        self._teams, self.jobs = teams or (1,), deque()

    @property
    def worker_threads(self):
        return self._teams

    def distribute(self, job, placed, blocks, codec=None, **options):
        self.jobs.append(job.__qualname__)
        return super().distribute(job, sent(placed), blocks, codec, **options)

    def _run(self, job, placed, blocks, stop, threads):
        far_job = sent(job)
        return (sent(far_job(placed, sent(block))) for block in blocks)

    def start_workers(self, make, placed, shares, needs=None):
        made = super().start_workers(sent(make), sent(placed), [sent(share) for share in shares], needs)
        return ApartWorkerGroup(made.members, made.journal, made._run)
