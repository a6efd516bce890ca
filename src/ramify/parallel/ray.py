"""Jobs and worker groups on a Ray cluster; the only file that names Ray.

Values that many workers need go into the object store once; each node holds them once, read-only, for all its processes. A
worker group has one worker per node, with a thread for each of its processors; workers are Ray actors. When a worker or a
node is lost, the worker is started on another node, and the group goes back to the last saved round. A worker that ran out
of memory is started again with one thread and smaller blocks.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Concatenate

import ray
from ray import exceptions as failures
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ramify.errors import InputError
from ramify.parallel import cluster, values
from ramify.parallel.checkpoints import RoundCheckpoint, SavedState
from ramify.parallel.cluster import Node, Traffic, WorkerProcess, first_line, is_listening
from ramify.parallel.executor import Arguments, Executor, Make, Needs, Result, Stop, W, WorkerGroup, WorkerLostError
from ramify.parallel.progress import note
from ramify.parallel.values import size_of

LOCAL_ADDRESS = "127.0.0.2"  # one that nobody else reaches; Ray takes 127.0.0.1 for one that others do
LARGE = 100_000  # bytes from which arguments go through the object store
MOST_LOSSES = 5  # of one worker in one round
MOST_SAVING = 2
AHEAD = 2  # submitted blocks for every processor
LOST = (
    failures.RayActorError, failures.ActorUnschedulableError, failures.WorkerCrashedError, failures.NodeDiedError,
    failures.ObjectLostError, failures.OutOfMemoryError,
)  # fmt: skip


class Placed(values.Placed):
    """A value in the object store. Sent to another process, alone or as a part of something, it arrives as the value."""

    def __reduce__(self) -> Any:
        return ray.get, (self.reference,)


class RayExecutor(Executor):
    """Runs distributed jobs and worker groups on a Ray cluster. Use it as a context.

    address: of a running cluster, ``"auto"`` for the one that this node is part of, or ``"local"`` to start one on this node.
    """

    def __init__(self, address: str = "auto") -> None:
        self.traffic = Traffic()
        self.idle: dict[str, list[Any]] = {}  # by node: processes without a worker, since starting one takes seconds
        self._joined = not ray.is_initialized()
        if self._joined:
            with cluster.keep_signal_handlers():
                _connect(address)
        self.nodes = _nodes()
        if not self.nodes:
            self.close()
            raise InputError("the Ray cluster has no node with a free processor; add one, or train without --cluster.")

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        self.close()
        if isinstance(error, failures.RayError):
            raise InputError(f"the Ray cluster failed: {first_line(error)}; see Ray's logs, and try --resume.") from error

    def close(self) -> None:
        """End all processes, and leave the cluster if this executor joined it."""
        for actor in chain.from_iterable(self.idle.values()):
            ray.kill(actor)
        self.idle = {}
        if self._joined and ray.is_initialized():
            ray.shutdown()

    @property
    def worker_threads(self) -> tuple[int, ...]:
        """One worker for each node, with a thread for each of its processors."""
        return tuple(node.processors for node in self.nodes)

    def place(self, common: Any) -> Placed:
        """Put a value into the object store, unless it is there; each node fetches it once."""
        if isinstance(common, Placed):
            return common
        size = size_of(common)
        cluster.refuse_to_place(size, self.nodes)
        self.traffic.placed += size * len(self.nodes)
        return Placed(common, ray.put(common))

    def _run(
        self, job: Callable[[Any, Any], Result], placed: Any, blocks: Iterable[Any], stop: Stop, threads: int
    ) -> Iterator[Result]:
        """The job's results, in the order of the blocks; a block whose process is lost runs again on another."""
        task = ray.remote(_run_job)
        submitted: deque[tuple[Any, Any]] = deque()
        most = AHEAD * max(1, sum(self.worker_threads) // threads)
        try:
            for block in blocks:
                self.traffic.sent += size_of(block)
                running = task.options(num_cpus=threads, max_retries=MOST_LOSSES).remote(job, placed.reference, block)
                submitted.append((running, block))
                if len(submitted) >= most:
                    yield self._result_of(task, job, placed, *submitted.popleft())
            while submitted:
                yield self._result_of(task, job, placed, *submitted.popleft())
        finally:
            for running, _ in submitted:
                ray.cancel(running, force=True)

    def _result_of(self, task: Any, job: Any, placed: Placed, running: Any, block: Any) -> Any:
        """A result; a block that ran out of memory runs once more, with a whole node for itself."""
        try:
            try:
                result = _get(running)
            except MemoryError:
                note("A block of work ran out of memory; it runs again with a node for itself.")
                most = max((node.processors for node in _nodes()), default=1)
                result = _get(task.options(num_cpus=most).remote(job, placed.reference, block))
        except LOST as error:
            raise InputError(f"a block of work was lost {MOST_LOSSES} times ({first_line(error)}); see Ray's logs.") from None
        self.traffic.received += size_of(result)
        return deepcopy(result)  # the object store ends with the cluster

    def start_workers(
        self, make: Make[W], placed: Any, partitions: Sequence[Any], needs: Needs | None = None
    ) -> WorkerGroup[W]:
        """One worker for each partition, on the nodes in turn."""
        placed = self.place(placed)
        if needs is not None:
            cluster.refuse_what_cannot_fit(needs, self.nodes)
            note(cluster.describe_needs(needs))
        return RayWorkerGroup(self, make, placed, partitions, self._open_checkpoint(placed, partitions))


@dataclass(slots=True)
class RemoteWorker:
    """A worker of a group: its partition (in the object store), node and process, and the result of its last call."""

    number: int
    partition: Any
    node: Node
    saving: int = 0
    losses: int = 0
    actor: Any = None
    result: Any = None


class RayWorkerGroup(WorkerGroup[W]):
    """Workers in processes of a cluster."""

    def __init__(
        self, executor: RayExecutor, make: Any, placed: Placed, partitions: Sequence[Any], checkpoint: RoundCheckpoint
    ) -> None:
        super().__init__((), checkpoint, executor.map)
        self.executor, self.make, self.placed, nodes = executor, make, placed, executor.nodes
        self.workers = [RemoteWorker(k, ray.put(partition), nodes[k % len(nodes)]) for k, partition in enumerate(partitions)]
        executor.traffic.sent += sum(size_of(partition) for partition in partitions)
        self.restart()

    def restart(self) -> None:
        """Start all workers from the last saved round; again, as long as workers are lost on the way."""
        while True:
            for worker in self.workers:
                idle = self.executor.idle.get(worker.node.name)
                if worker.actor is None:
                    worker.actor = idle.pop() if idle else _start_process(worker.node)
                state = self.checkpoint.states[worker.number] if self.checkpoint.states else None
                arguments = self.make, self.placed.reference, worker.partition, worker.saving, state
                worker.result = worker.actor.start.remote(*arguments)
            try:
                self._results()
                return
            except WorkerLostError:
                continue

    def call(
        self, method: Callable[Concatenate[W, Arguments], Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> list[Result]:
        """Call a method of every worker at once."""
        assert not kwargs
        size, traffic = size_of(args), self.executor.traffic
        packed = ray.put(args) if size > LARGE else args
        traffic.calls += 1
        traffic.sent += size * len(self.workers)
        for worker in self.workers:
            self._submit(worker, method, packed)
        results = self._results()
        traffic.received += sum(size_of(result) for result in results)
        # the object store ends with the cluster; results of several workers are copied when they are combined
        return deepcopy(results) if len(results) == 1 else results

    def _submit(self, worker: RemoteWorker, method: Callable[..., Any], arguments: Any) -> None:
        worker.result = worker.actor.call.remote(method, arguments)

    def _save_states(self, paths: list[Path]) -> list[SavedState]:
        for worker, path in zip(self.workers, paths, strict=True):
            worker.result, worker.losses = worker.actor.save.remote(path), 0
        return self._results()

    def _results(self) -> list[Any]:
        """The results of the last calls; a worker that was lost is moved to another node, and the group must restart."""
        results = []
        for worker in self.workers:
            try:
                results.append(_get(worker.result))
            except (MemoryError, *LOST) as error:
                self._replace(worker, error)
            worker.result = None
        if len(results) < len(self.workers):
            raise WorkerLostError
        return results

    def _replace(self, worker: RemoteWorker, error: Exception) -> None:
        """End the process of a lost worker, and choose the node with the fewest workers for its next one."""
        name, worker.losses = f"worker {worker.number + 1}", worker.losses + 1
        self.executor.traffic.lost += 1
        if isinstance(error, (MemoryError, failures.OutOfMemoryError)) or "NODE_OUT_OF_MEMORY" in str(error):
            if worker.saving >= MOST_SAVING:
                found = f"{name} at {worker.node.address} ran out of memory ({first_line(error)})"
                raise InputError(f"{found}; use more or larger nodes, fewer features, or mode=fast.") from None
            worker.saving += 1
            note(f"W{name[1:]} at {worker.node.address} ran out of memory; it continues with one thread and smaller blocks.")
        elif worker.losses > MOST_LOSSES:
            found = f"{name} was lost {worker.losses} times in the same round ({first_line(error)})"
            raise InputError(f"{found}; see Ray's logs.") from None
        else:
            note(f"W{name[1:]} at {worker.node.address} was lost; the last saved round is repeated.")
        ray.kill(worker.actor)
        worker.actor, nodes = None, _nodes()
        if not nodes:
            raise InputError("all nodes of the cluster are gone; start them, and continue with --resume.")
        count = Counter(other.node.name for other in self.workers if other is not worker)
        worker.node = min(nodes, key=lambda node: (count[node.name], -node.memory))

    def stop(self, is_done: bool) -> None:
        """Drop the workers; their processes stay idle for other groups, or end if the work is not done."""
        for worker in self.workers:
            if is_done:
                with suppress(*LOST, failures.GetTimeoutError):
                    ray.get(worker.actor.stop.remote(), timeout=cluster.TIMEOUT)
                    self.executor.idle.setdefault(worker.node.name, []).append(worker.actor)
                    continue
            if worker.actor is not None:
                ray.kill(worker.actor)
        self.workers = []

    def traffic(self) -> str:
        """How much was sent over the network."""
        return str(self.executor.traffic)


def _start_process(node: Node) -> Any:
    strategy = NodeAffinitySchedulingStrategy(node.name, soft=False)
    return ray.remote(WorkerProcess).options(num_cpus=0, scheduling_strategy=strategy, max_restarts=0).remote()


def _run_job(job: Any, common: Any, block: Any) -> Any:
    return job(common, block)


def _connect(address: str) -> None:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address == "local":
            ray.init(include_dashboard=False, _node_ip_address=LOCAL_ADDRESS if sys.platform == "linux" else None, **quiet)
            return
        if address != "auto" and not is_listening(*cluster.split_address(address)):
            raise ConnectionError("nothing listens there")
        ray.init(address=address, **quiet)
    except InputError:
        raise
    except (ConnectionError, ValueError, RuntimeError, OSError, failures.RayError) as error:
        if address not in ("auto", "local") and is_listening(*cluster.split_address(address)):
            raise InputError(
                f"a process listens at {address!r}, but Ray cannot join ({first_line(error)}); if the cluster needs a token, "
                "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH, "
                "and check that it runs the same version of Ray."
            ) from None
        where = "there is no Ray cluster on this node" if address == "auto" else f"no Ray cluster answers at {address!r}"
        what = "start one with 'ray start --head', give its address, or give 'local'."
        raise InputError(f"{where} ({first_line(error)}); {what}") from None


def _nodes() -> list[Node]:
    """Nodes that answer and have a processor, the driver's node first, in a fixed order."""
    found = []
    for node in ray.nodes():
        offered = node["Resources"]
        is_usable = node["Alive"] and offered.get("CPU", 0) >= 1
        if is_usable and is_listening(node["NodeManagerAddress"], int(node["NodeManagerPort"])):
            sizes = int(offered.get("memory", 0)), int(offered.get("object_store_memory", 0))
            found.append(Node(node["NodeID"], node["NodeManagerAddress"], int(offered["CPU"]), *sizes))
    local = ray.get_runtime_context().get_node_id()
    return sorted(found, key=lambda node: (node.name != local, node.address, node.name))


def _get(reference: Any) -> Any:
    """A result, or the error that was raised in its place, as it is."""
    try:
        return ray.get(reference)
    except failures.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, Exception) else RuntimeError(str(error)) from None
