"""Blocks and crews on a Ray cluster; the only file that names Ray.

What many need is put into the object store once, and is there once on each machine, shared by all its processes and read-only.
A crew has one member for each machine, with a thread for each of its processors; members are Ray's actors. All calls since the
last checkpoint are remembered here with what was sent along. When a worker or a machine is lost, the member is made anew
somewhere else, gets its last state and does the calls since then again; what comes out is what would have come out without the
loss. Only its own share is done again. A member that ran out of memory is made anew more frugal.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import ray
from ray import exceptions as trouble
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ramify.errors import InputError
from ramify.parallel import cluster as machinery
from ramify.parallel.base import Block, Codec, Needs, Result, Worker
from ramify.parallel.checkpoints import Journal, SavedState
from ramify.parallel.cluster import PATIENCE, Machine, Traffic, WorkerProcess, answers, first_line, size_of
from ramify.parallel.executor import JournalledCrew, SerialExecutor, current_checkpoints
from ramify.parallel.progress import note

ALONE = "127.0.0.2"  # an address that nobody else reaches; Ray takes 127.0.0.1 for one that others do
LARGE = 100_000  # bytes from which arguments go through the object store
MOST_LOSSES = 5  # of one member in one call
MOST_FRUGAL = 2
AHEAD = 2  # blocks under way for every processor
LOST = (
    trouble.RayActorError,
    trouble.ActorUnschedulableError,
    trouble.WorkerCrashedError,
    trouble.NodeDiedError,
    trouble.ObjectLostError,
    trouble.OutOfMemoryError,
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A thing in the object store. Sent elsewhere, alone or as part of something, it arrives as the thing itself."""

    value: Any
    reference: Any = field(compare=False)

    def __reduce__(self) -> Any:
        return ray.get, (self.reference,)


class RayExecutor:
    """Runs spread work and crews on a Ray cluster; functions that share memory run here.

    address: of a running cluster, ``"auto"`` for the one that this machine is part of, or ``"local"`` to start one on this
    machine alone. Use it as a context; at its end it lets go of what it began.
    """

    def __init__(self, address: str = "auto") -> None:
        self.traffic, self.staff = Traffic(), Staff()
        self._began = not ray.is_initialized()
        if self._began:
            with machinery.signals_as_before():
                _connect(address)
        self.machines = _machines()
        if not self.machines:
            self.close()
            raise InputError("the Ray cluster has no machine with a processor to spare; add one, or train without --cluster.")

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        self.close()
        if isinstance(error, trouble.RayError):
            raise InputError(f"the Ray cluster failed: {first_line(error)}; see Ray's logs, and try --resume.") from error

    def close(self) -> None:
        """Let all processes go, and leave the cluster, if this executor joined it."""
        for actor in chain.from_iterable(self.staff.waiting.values()):
            ray.kill(actor)
        self.staff = Staff()
        if self._began and ray.is_initialized():
            ray.shutdown()

    @property
    def worker_threads(self) -> tuple[int, ...]:
        """One member for each machine, with a thread for each of its processors."""
        return tuple(machine.processors for machine in self.machines)

    def map(
        self, function: Callable[[Block], Result], blocks: Iterable[Block], stop: Callable[[], None] | None = None
    ) -> Iterator[Result]:
        """Functions that share memory run in this process."""
        return SerialExecutor().map(function, blocks, stop)

    def place(self, common: Any) -> Placed:
        """Put a thing into the object store; each machine gets it when it first needs it, once."""
        size = size_of(common)
        machinery.refuse_to_place(size, self.machines)
        self.traffic.placed += size * len(self.machines)
        return Placed(common, ray.put(common))

    # ---- blocks -----------------------------------------------------------------------------------------------------

    def distribute(
        self,
        job: Callable[[Any, Block], Result],
        placed: Any,
        blocks: Iterable[Block],
        codec: Codec | None = None,
        *,
        stop: Callable[[], None] | None = None,
        threads: int = 1,
    ) -> Iterator[Result]:
        """The job's results, in the order of the blocks; a block whose worker is lost is done again elsewhere."""
        common = placed if isinstance(placed, Placed) else self.place(placed)

        def run(job: Callable[[Any, Block], Result], some: Iterable[Block]) -> Iterator[Result]:
            return self._run(job, common, some, threads)

        checkpoints = current_checkpoints()
        if codec is None or checkpoints is None:
            return run(job, blocks)
        return checkpoints.results(job, common.value, list(blocks), run, codec)

    def _run(
        self, job: Callable[[Any, Block], Result], placed: Placed, blocks: Iterable[Block], threads: int
    ) -> Iterator[Result]:
        task = ray.remote(_do)
        each = task.options(num_cpus=threads, max_retries=MOST_LOSSES)
        waiting: deque[tuple[Any, Block]] = deque()
        most = AHEAD * max(1, sum(self.worker_threads) // threads)
        try:
            for block in blocks:
                self.traffic.sent += size_of(block)
                waiting.append((each.remote(job, placed.reference, block), block))
                if len(waiting) >= most:
                    yield self._take(task, job, placed, *waiting.popleft())
            while waiting:
                yield self._take(task, job, placed, *waiting.popleft())
        finally:
            for reference, _ in waiting:
                ray.cancel(reference, force=True)

    def _take(self, task: Any, job: Any, placed: Placed, reference: Any, block: Any) -> Any:
        """A result; a block that ran out of memory is tried once more, with a whole machine for itself."""
        try:
            try:
                result = _get(reference)
            except MemoryError:
                note("A block of work ran out of memory; it is tried again with a machine for itself.")
                most = max((machine.processors for machine in _machines()), default=1)
                result = _get(task.options(num_cpus=most).remote(job, placed.reference, block))
        except LOST as error:
            raise InputError(f"a block of work was lost {MOST_LOSSES} times ({first_line(error)}); see Ray's logs.") from None
        self.traffic.given += size_of(result)
        return deepcopy(result)  # the store goes when the cluster is left

    # ---- crews ------------------------------------------------------------------------------------------------------

    def start_workers(
        self, make: Callable[[Any, Any, int], Worker], placed: Any, shares: Sequence[Any], needs: Needs | None = None
    ) -> RayCrew:
        """One member for each share, on a machine each."""
        placed = placed if isinstance(placed, Placed) else self.place(placed)
        if needs is not None:
            machinery.refuse_what_cannot_fit(needs, self.machines)
            note(machinery.in_words(needs))
        checkpoints = current_checkpoints()
        journal = Journal() if checkpoints is None else checkpoints.journal(placed.value, list(shares))
        return RayCrew(self, make, placed, shares, journal)


class RayCrew(JournalledCrew):
    """Members in processes of a cluster."""

    def __init__(self, executor: RayExecutor, make: Any, placed: Placed, shares: Sequence[Any], journal: Journal) -> None:
        super().__init__(journal, len(shares))
        self.traffic, machines = executor.traffic, executor.machines
        states: Sequence[SavedState | None] = journal.states or [None] * len(shares)
        self.posts = [
            Post(executor.staff, make, placed, ray.put(share), machines[k % len(machines)], states[k])
            for k, share in enumerate(shares)
        ]
        self.traffic.sent += sum(size_of(share) for share in shares)
        for post in self.posts:
            post.start([])
        for k in range(len(self.posts)):
            self._await(k)

    def told(self) -> str:
        """What went over the wire."""
        return self.traffic.told()

    def _call(self, what: str, arguments: tuple[Any, ...]) -> list[Any]:
        size = size_of(arguments)
        packed = ray.put(arguments) if size > LARGE else arguments
        self.traffic.calls += 1
        self.traffic.sent += size * len(self.posts)
        for post in self.posts:
            post.ask(what, packed)
        results = [self._await(k) for k in range(len(self.posts))]
        self.traffic.given += sum(size_of(result) for result in results)
        return results

    def _await(self, k: int) -> Any:
        """What a member gives; one that is lost is made anew, as often as that makes sense."""
        post, losses = self.posts[k], 0
        while True:
            try:
                return _get(post.answer)
            except MemoryError as error:
                self._grow_frugal(post, k, error)
            except LOST as error:
                losses += 1
                if losses > MOST_LOSSES:
                    raise InputError(
                        f"worker {k + 1} was lost {losses} times in the same step ({first_line(error)}); see Ray's logs."
                    ) from None
                if _is_about_memory(error):
                    self._grow_frugal(post, k, error)
                else:
                    self.traffic.lost += 1
                    note(f"WorkerProcess {k + 1} at {post.machine.address} was lost; its share is taken up again.")
                    self._move(post)

    def _grow_frugal(self, post: Post, k: int, error: Exception) -> None:
        self.traffic.lost += 1
        if post.frugality >= MOST_FRUGAL:
            raise InputError(
                f"worker {k + 1} at {post.machine.address} ran out of memory ({first_line(error)}); "
                "use more or larger machines, fewer features, or mode=fast."
            ) from None
        post.frugality += 1
        note(
            f"WorkerProcess {k + 1} at {post.machine.address} ran out of memory; it goes on with one thread and smaller pieces."
        )
        self._move(post)

    def _move(self, post: Post) -> None:
        """Start a member again where the fewest members are."""
        ray.kill(post.actor)
        machines = _machines()
        if not machines:
            raise InputError("all machines of the cluster are gone; start them, and take up the work with --resume.")
        count = {machine.name: 0 for machine in machines}
        for other in self.posts:
            if other is not post and other.machine.name in count:
                count[other.machine.name] += 1
        post.machine = min(machines, key=lambda machine: (count[machine.name], -machine.memory))
        post.start(post.calls)

    def _save(self, paths: list[Path]) -> list[SavedState]:
        for post, path in zip(self.posts, paths, strict=True):
            post.ask("", (str(path),))
        kept = [self._await(k) for k in range(len(paths))]
        for post, state in zip(self.posts, kept, strict=True):
            post.forget(state)
        return kept

    def dismiss(self, is_done: bool) -> None:
        """Let the members go; their processes wait for others, or end where work is broken off."""
        for post in self.posts:
            post.leave() if is_done else ray.kill(post.actor)
        self.posts = []

    def fetch(self, what: str, *arguments: Any) -> Iterator[Any]:
        """What members give at the end, out of the store: that goes when the cluster is left."""
        for k, result in enumerate(self._call(what, arguments)):
            self.posts[k].answer = None
            yield deepcopy(result) if self.n_members == 1 else result


class Staff:
    """Processes that have a member or wait for one: starting them takes seconds, and many crews may follow each other."""

    def __init__(self) -> None:
        self.waiting: dict[str, list[Any]] = {}

    def hire(self, machine: Machine) -> Any:
        """A process on a machine, one that waits if there is one."""
        if self.waiting.get(machine.name):
            return self.waiting[machine.name].pop()
        where = NodeAffinitySchedulingStrategy(machine.name, soft=False)
        return ray.remote(WorkerProcess).options(num_cpus=0, scheduling_strategy=where, max_restarts=0).remote()

    def release(self, machine: Machine, actor: Any) -> None:
        """Have a process give up its member, and wait; one that is in the middle of something is ended."""
        try:
            ray.get(actor.let_go.remote(), timeout=PATIENCE)
            self.waiting.setdefault(machine.name, []).append(actor)
        except (*LOST, trouble.GetTimeoutError):
            ray.kill(actor)


@dataclass(slots=True)
class Post:
    """A member's place: what it is made of, where it is, its last state, and all calls since."""

    staff: Staff
    make: Any
    placed: Placed
    share: Any
    machine: Machine
    state: SavedState | None
    frugality: int = 0
    calls: list[tuple[str, Any]] = field(default_factory=list)
    actor: Any = None
    answer: Any = None

    def start(self, calls: list[tuple[str, Any]]) -> None:
        """Make the member, give it its last state, and have it do calls again; the answer is that of the last."""
        self.actor = self.staff.hire(self.machine)
        made_of = self.make, self.placed.reference, self.share, self.frugality, self.state
        names, arguments = [what for what, _ in calls], [given for _, given in calls]
        self.answer = self.actor.take_on.remote(*made_of, names, *arguments)

    def ask(self, what: str, arguments: Any) -> None:
        """Send a call."""
        self.calls.append((what, arguments))
        self.answer = self.actor.work.remote(what, arguments)

    def forget(self, state: SavedState) -> None:
        """Calls are remembered from this state on."""
        self.state, self.calls = state, []

    def leave(self) -> None:
        """Let the member go; its process waits for another."""
        self.staff.release(self.machine, self.actor)


def _do(job: Any, common: Any, block: Any) -> Any:
    return job(common, block)


def _connect(address: str) -> None:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_IGNORE_UNHANDLED_ERRORS": "1"}
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address == "local":
            ray.init(include_dashboard=False, _node_ip_address=ALONE if sys.platform == "linux" else None, **quiet)
        else:
            machinery.knock(address)
            ray.init(address=address, **quiet)
    except InputError:
        raise
    except (ConnectionError, ValueError, RuntimeError, OSError, trouble.RayError) as error:
        raise InputError(_why_not(address, error)) from None


def _why_not(address: str, error: Exception) -> str:
    """Why a cluster could not be joined, and what to do about it."""
    if address not in ("auto", "local") and answers(*machinery.parted(address)):
        return (
            f"somebody listens at {address!r}, but Ray cannot join ({first_line(error)}); if the cluster asks for a token, "
            "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH, and see that it runs the same version of Ray."
        )
    where = "there is no Ray cluster on this machine" if address == "auto" else f"no Ray cluster answers at {address!r}"
    return f"{where} ({first_line(error)}); start one with 'ray start --head', give its address, or give 'local'."


def _machines() -> list[Machine]:
    """Machines that answer and have a processor, the one with the driver first, in a fixed order."""
    found = []
    for node in ray.nodes():
        offered = node["Resources"]
        there = node["Alive"] and offered.get("CPU", 0) >= 1
        if there and answers(node["NodeManagerAddress"], int(node["NodeManagerPort"])):
            sizes = int(offered.get("memory", 0)), int(offered.get("object_store_memory", 0))
            found.append(Machine(node["NodeID"], node["NodeManagerAddress"], int(offered["CPU"]), *sizes))
    here = ray.get_runtime_context().get_node_id()
    return sorted(found, key=lambda machine: (machine.name != here, machine.address, machine.name))


def _get(reference: Any) -> Any:
    """A result, or the error that was raised in its place, as it is."""
    try:
        return ray.get(reference)
    except trouble.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, Exception) else RuntimeError(str(error)) from None


def _is_about_memory(error: Exception) -> bool:
    return isinstance(error, trouble.OutOfMemoryError) or "NODE_OUT_OF_MEMORY" in str(error)
