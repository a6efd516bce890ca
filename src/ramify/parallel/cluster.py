"""The machines of a cluster, what work needs of them, and what goes over the wire."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from ramify.errors import InputError
from ramify.parallel.base import Needs
from ramify.parallel.checkpoints import SavedState, restore_saved, save_state

if TYPE_CHECKING:
    from ramify.parallel.ray import RayExecutor


PATIENCE = 5.0  # seconds to wait for an address


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of a cluster: what Ray calls it, where it is, and what it offers (bytes)."""

    name: str
    address: str
    processors: int
    memory: int
    store: int


@dataclass(slots=True)
class Traffic:
    """What went over the wire: bytes placed on all machines, sent to members and given by them; and workers lost."""

    placed: int = 0
    sent: int = 0
    given: int = 0
    calls: int = 0
    lost: int = 0

    @property
    def moved(self) -> int:
        """Bytes in all."""
        return self.placed + self.sent + self.given

    def told(self) -> str:
        """In words."""
        lost = f", {self.lost} worker{'s' if self.lost > 1 else ''} lost" if self.lost else ""
        return f"{self.moved / 1e6:,.0f} MB moved{lost}"


def refuse_what_cannot_fit(needs: Needs, machines: Sequence[Machine]) -> None:
    """Refuse work that is going to need more memory than a machine has; members go to machines in turn."""
    refuse_to_place(needs.shared, machines[: len(needs.each)])
    for k, machine in enumerate(machines[: len(needs.each)]):
        held = sum(needs.each[k :: len(machines)])
        if held > machine.memory:
            raise InputError(
                f"the work needs about {_giga(held)} on {machine.address}, which has {_giga(machine.memory)} for it; "
                "use more or larger machines, fewer features, or mode=fast."
            )


def refuse_to_place(size: int, machines: Sequence[Machine]) -> None:
    """Refuse what is too large for the object store of a machine."""
    for machine in machines:
        if size > machine.store:
            raise InputError(
                f"the documents need {_giga(size)} in the object store of every machine, and {machine.address} has "
                f"{_giga(machine.store)}; start Ray with a larger --object-store-memory, or keep fewer features."
            )


def in_words(needs: Needs) -> str:
    """What work is going to need.

    >>> in_words(Needs(2 * 10**9, (10**9, 3 * 10**9), 200.0))
    '2 members: about 3.0 GB of memory each and 2.0 GB on every machine for what they share; about 3 minutes.'
    """
    minutes = max(1, round(needs.seconds / 60))
    time = (
        f"about {minutes:,} minute{'s' if minutes > 1 else ''}" if needs.seconds < 5400 else f"about {minutes / 60:.0f} hours"
    )
    size = f"about {_giga(max(needs.each))} of memory each and {_giga(needs.shared)} on every machine for what they share"
    return f"{len(needs.each)} member{'s' if len(needs.each) > 1 else ''}: {size}; {time}."


def _giga(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def parted(address: str) -> tuple[str, int]:
    """Host and port of an address.

    >>> parted("10.0.0.5:6379")
    ('10.0.0.5', 6379)
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536 or "/" in host:
        raise InputError(f"--cluster is {address!r}; give host:port, such as 10.0.0.5:6379, or 'auto', or 'local'.")
    return host.strip("[]"), int(port)


def knock(address: str) -> None:
    """See at once whether somebody is there; Ray itself would try for minutes."""
    if address != "auto":
        socket.create_connection(parted(address), timeout=PATIENCE).close()


def answers(host: str, port: int) -> bool:
    """Whether somebody is there; it takes Ray a while to notice that a machine is gone."""
    try:
        socket.create_connection((host, port), timeout=PATIENCE).close()
    except (OSError, UnicodeError):  # a name that cannot be one
        return False
    return True


@contextmanager
def signals_as_before() -> Iterator[None]:
    """Have signals answered as before; Ray takes the place of whoever did when it is joined."""
    is_main = threading.current_thread() is threading.main_thread()
    before = {each: signal.getsignal(each) or signal.SIG_DFL for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items() if is_main else ():
            signal.signal(each, handler)


def first_line(error: Exception) -> str:
    """The beginning of a message that may have many lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:160] if lines else type(error).__name__


# --------------------------------------------------------------------------------------------------------------
# How many bytes a value has, as far as it consists of arrays and texts.


def size_of(value: Any) -> int:
    """Bytes of the arrays and texts in a value, and a few for everything else, such as what was placed before.

    >>> import numpy as np
    >>> size_of({"a": np.zeros(10), "b": [np.zeros(5, dtype=np.float32), 1]})
    110
    """
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, (str, bytes)):
        return len(value)
    if issparse(value):
        return sum(int(getattr(value, part).nbytes) for part in ("data", "indices", "indptr") if hasattr(value, part))
    if is_dataclass(value) and not isinstance(value, type) and not hasattr(value, "reference"):
        return sum(size_of(getattr(value, field.name)) for field in fields(value) if field.compare)
    if isinstance(value, Mapping):
        return sum(size_of(key) + size_of(each) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return sum(size_of(each) for each in value)
    return 8


# --------------------------------------------------------------------------------------------------------------
# Large pages for arrays in shared memory.
#
# Kernels read documents here and there, and with small pages spend part of their time on looking up where these are. Arrays
# of a
# process get large pages when they are made; what comes out of an object store does not, unless the system is asked for it.


LARGE_PAGE = 1 << 21
COLLAPSE = 25  # linux/mman.h: make large pages of small ones, now, also of shared memory; since Linux 6.1


def use_large_pages(value: Any) -> None:
    """Have the system gather the pages of all large arrays in a value; where it cannot, small pages serve, too."""
    if sys.platform != "linux":
        return
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for array in arrays_in(value):
        first = -(-array.ctypes.data // LARGE_PAGE) * LARGE_PAGE
        last = (array.ctypes.data + array.nbytes) // LARGE_PAGE * LARGE_PAGE
        if last > first and array.flags.c_contiguous and advise(first, last - first, COLLAPSE):
            return  # it cannot, or has none to spare


def arrays_in(value: Any) -> Iterator[NDArray[Any]]:
    """All arrays that a value consists of.

    >>> [array.tolist() for array in arrays_in({"a": np.arange(2), "b": [np.ones(1), 3]})]
    [[0, 1], [1.0]]
    """
    if isinstance(value, np.ndarray):
        yield value
    elif issparse(value):
        yield from (getattr(value, part) for part in ("data", "indices", "indptr") if hasattr(value, part))
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from arrays_in(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from arrays_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from arrays_in(each)


# --------------------------------------------------------------------------------------------------------------
# A process of a cluster that has a member of a crew.


class WorkerProcess:
    """Has a member, and does what it is asked."""

    def __init__(self) -> None:
        self.member: Any = None

    def take_on(
        self, make: Any, common: Any, share: Any, frugality: int, state: SavedState | None, calls: list[str], *arguments: Any
    ) -> Any:
        """Make the member, as it was; gives what the last of the calls gives."""
        use_large_pages(common)
        self.member = make(common, share, frugality)
        if state is not None:
            restore_saved(state, self.member.restore)
        answer = None
        for what, given in zip(calls, arguments, strict=True):
            answer = self.work(what, given)
        return answer

    def work(self, what: str, arguments: tuple[Any, ...]) -> Any:
        """Do what the member is asked; without a name, write its state."""
        if what:
            return getattr(self.member, what)(*arguments)
        return save_state(Path(arguments[0]), self.member.state())

    def let_go(self) -> None:
        """Give up the member."""
        self.member = None

    def process(self) -> int:
        """The number of the process."""
        return os.getpid()

    def height(self) -> int:
        """The most bytes that the process has held so far; what machines share is not counted twice by the system."""
        import resource  # not everywhere

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# --------------------------------------------------------------------------------------------------------------
# A cluster by its address, where the library for it is installed.


def open_cluster(address: str = "auto") -> RayExecutor:
    """Join a Ray cluster: ``"auto"`` for the one that this machine is part of, ``"local"`` for one on this machine alone.

    Use what it gives as a context, and :func:`~ramify.parallel.running_on` to say what runs there.
    """
    try:
        from ramify.parallel.ray import RayExecutor
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise InputError("work on a cluster needs Ray; install it with: pip install 'ramify[ray]'") from None
    return RayExecutor(address)
