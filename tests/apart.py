"""An executor for tests whose blocks and workers could be on another node: everything goes through bytes, arrays read-only."""

import pickle
from collections import deque

from ramify.parallel import SerialExecutor, WorkerGroup


def sent(value):
    """A value as another process gets it: a copy whose arrays cannot be written to."""
    buffers = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers])


class ApartWorkerGroup(WorkerGroup):
    def call(self, method, *arguments):
        return [sent(sent(method)(worker, *sent(arguments))) for worker in self.workers]


class ApartExecutor(SerialExecutor):
    """Workers and blocks that share no memory; `threads` for each worker."""

    group = ApartWorkerGroup

    def __init__(self, *threads):
        self._threads, self.jobs = threads or (1,), deque()

    @property
    def worker_threads(self):
        return self._threads

    def distribute(self, job, placed, blocks, codec=None, **options):
        self.jobs.append(job.__qualname__)
        return super().distribute(job, sent(placed), blocks, codec, **options)

    def _run(self, job, placed, blocks, stop, threads):
        far_job = sent(job)
        return (sent(far_job(placed, sent(block))) for block in blocks)

    def start_workers(self, make, placed, partitions, needs=None):
        made = super().start_workers(sent(make), sent(placed), [sent(each) for each in partitions], needs)
        group = self.group(made.workers, made.checkpoint, made._run)
        group.executor = self
        return group
