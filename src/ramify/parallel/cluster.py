"""The nodes of a cluster: what they offer, what work needs of them, what is sent over the network, and the worker processes."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramify.errors import InputError
from ramify.parallel.checkpoints import SavedState, restore_saved, save_state
from ramify.parallel.executor import Needs, Worker
from ramify.parallel.values import arrays_in

if TYPE_CHECKING:
    from ramify.parallel.ray import RayExecutor

TIMEOUT = 5.0  # seconds to wait for an address
LARGE_PAGE = 1 << 21
COLLAPSE = 25  # linux/mman.h: turn small pages into large ones now, also of shared memory; since Linux 6.1


def open_cluster(address: str = "auto") -> RayExecutor:
    """Join a Ray cluster: ``"auto"`` for the one that this node is part of, ``"local"`` for one on this node alone.

    Use the result as a context, and :func:`~ramify.parallel.running_on` for the work that runs there.
    """
    try:
        from ramify.parallel.ray import RayExecutor
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise InputError("work on a cluster needs Ray; install it with: pip install 'ramify[ray]'") from None
    return RayExecutor(address)


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a cluster: its identifier, its address, and what it offers (memory and object store in bytes)."""

    name: str
    address: str
    processors: int
    memory: int
    store: int


@dataclass(slots=True)
class Traffic:
    """Bytes placed on all nodes, sent to workers and received from them; calls; and workers lost."""

    placed: int = 0
    sent: int = 0
    received: int = 0
    calls: int = 0
    lost: int = 0

    def __str__(self) -> str:
        lost = f", {self.lost} worker{'s' if self.lost > 1 else ''} lost" if self.lost else ""
        return f"{(self.placed + self.sent + self.received) / 1e6:,.0f} MB sent{lost}"


def refuse_what_cannot_fit(needs: Needs, nodes: Sequence[Node]) -> None:
    """Refuse work that needs more memory than a node has; workers go to the nodes in turn."""
    refuse_to_place(needs.shared, nodes[: len(needs.each)])
    for k, node in enumerate(nodes[: len(needs.each)]):
        size = sum(needs.each[k :: len(nodes)])
        if size > node.memory:
            found = f"the work needs about {_giga(size)} on {node.address}, which has {_giga(node.memory)} for it"
            raise InputError(f"{found}; use more or larger nodes, fewer features, or mode=fast.")


def refuse_to_place(size: int, nodes: Sequence[Node]) -> None:
    """Refuse what is too large for the object store of a node."""
    for node in nodes:
        if size > node.store:
            has = f"{node.address} has {_giga(node.store)}"
            found = f"the documents need {_giga(size)} in the object store of every node, and {has}"
            raise InputError(f"{found}; start Ray with a larger --object-store-memory, or use fewer features.")


def describe_needs(needs: Needs) -> str:
    """A sentence about what work will need.

    >>> describe_needs(Needs(2 * 10**9, (10**9, 3 * 10**9), 200.0))
    '2 workers: about 3.0 GB of memory each and 2.0 GB on every node for shared data; about 3 minutes.'
    """
    minutes, n = max(1, round(needs.seconds / 60)), len(needs.each)
    duration = f"{minutes:,} minute{'s' if minutes > 1 else ''}" if needs.seconds < 5400 else f"{minutes / 60:.0f} hours"
    size = f"about {_giga(max(needs.each))} of memory each and {_giga(needs.shared)} on every node for shared data"
    return f"{n} worker{'s' if n > 1 else ''}: {size}; about {duration}."


def _giga(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def split_address(address: str) -> tuple[str, int]:
    """Host and port of an address.

    >>> split_address("10.0.0.5:6379")
    ('10.0.0.5', 6379)
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536 or "/" in host:
        raise InputError(f"--cluster is {address!r}; give host:port, such as 10.0.0.5:6379, or 'auto', or 'local'.")
    return host.strip("[]"), int(port)


def is_listening(host: str, port: int) -> bool:
    """Whether a process listens at an address; Ray itself would try for minutes."""
    try:
        socket.create_connection((host, port), timeout=TIMEOUT).close()
    except (OSError, UnicodeError):  # UnicodeError: an invalid host name
        return False
    return True


@contextmanager
def keep_signal_handlers() -> Iterator[None]:
    """Restore the signal handlers at the end; Ray replaces them when it is joined."""
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {each: signal.getsignal(each) or signal.SIG_DFL for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in handlers.items() if is_main else ():
            signal.signal(each, handler)


def first_line(error: Exception) -> str:
    """The beginning of a message that may have many lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:160] if lines else type(error).__name__


class WorkerProcess:
    """A process of a cluster that runs one worker."""

    def __init__(self) -> None:
        self.worker: Worker | None = None

    def start(
        self, make: Callable[[Any, Any, int], Worker], common: Any, partition: Any, saving: int, state: SavedState | None
    ) -> None:
        """Create the worker, with a saved state if there is one."""
        use_large_pages(common)
        self.worker = make(common, partition, saving)
        if state is not None:
            restore_saved(state, self.worker.restore)

    def call(self, method: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Call a method of the worker."""
        return method(self.worker, *arguments)

    def save(self, path: Path) -> SavedState:
        """Write the worker's state."""
        assert self.worker is not None
        return save_state(path, self.worker.state())

    def stop(self) -> None:
        """Drop the worker."""
        self.worker = None

    def process(self) -> int:
        """The process identifier."""
        return os.getpid()

    def peak_memory(self) -> int:
        """The most bytes that the process has used so far; the system does not count shared memory twice."""
        import resource  # not on every system

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def use_large_pages(value: Any) -> None:
    """Ask the system for large pages for all large arrays in a value; if it cannot, small pages work, too.

    Kernels read documents in random order, and with small pages spend part of their time on address translation. Arrays from
    an object store have small pages unless the system is asked.
    """
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for array in arrays_in(value):
        first = -(-array.ctypes.data // LARGE_PAGE) * LARGE_PAGE
        last = (array.ctypes.data + array.nbytes) // LARGE_PAGE * LARGE_PAGE
        if last > first and array.flags.c_contiguous and advise(first, last - first, COLLAPSE):
            return  # it cannot, or has none left
