"""The machines of a cluster, what work needs of them, and what goes over the wire."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ramify.errors import InputError
from ramify.execution.contract import Needs

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
