"""The machines of a cluster, what work needs of them, and what goes over the wire."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from ramify.errors import InputError
from ramify.execution.contract import Needs

PATIENCE = 5.0  # seconds to wait for an address


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of a cluster: what Ray calls it, where it is, and what it offers (bytes)."""

    name: str
    address: str
    port: int
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
    """Refuse work that is going to need more memory than a machine has."""
    for machine, each in zip(machines, needs.each, strict=False):
        if needs.shared > machine.store:
            raise InputError(
                f"the documents need {_giga(needs.shared)} in the object store of every machine, and {machine.address} has "
                f"{_giga(machine.store)}; start Ray with a larger --object-store-memory, or keep fewer features."
            )
        if each > machine.memory:
            raise InputError(
                f"the work needs about {_giga(each)} on {machine.address}, which has {_giga(machine.memory)} for it; "
                "use more or larger machines, fewer features, or mode=fast."
            )


def _giga(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def parted(address: str) -> tuple[str, int]:
    """Host and port of an address.

    >>> parted("10.0.0.5:6379")
    ('10.0.0.5', 6379)
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or "/" in host:
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
    except OSError:
        return False
    return True
