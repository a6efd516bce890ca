"""What a server is told when it starts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from ramify.errors import InputError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may ask for.

    texts: in one request. characters: of one text. body_bytes: of a request in JSON. upload_bytes: of a table.
    seconds: for an answer. upload_seconds: for the evaluation of a table, and between two pieces of a stream.
    waiting: texts that may wait for their turn before the server says that it is busy.
    uploads: tables that are taken at once.
    """

    texts: int = 1_000
    characters: int = 1_000_000
    body_bytes: int = 1 << 23
    upload_bytes: int = 1 << 30
    seconds: float = 30.0
    upload_seconds: float = 300.0
    waiting: int = 20_000
    uploads: int = 4


@dataclass(frozen=True, slots=True)
class Settings:
    """A server's models, where it listens, and what it allows.

    models: directories by name; the first is the default. keys: the file of keys; None where nobody needs one.
    hosts: names, beside those of this machine, under which the server may be called; with keys, any where none is given.
    reviews: the file of the review queue; None for no reviews. review_below: answers less sure than this are queued.
    log_text: whether logs may hold the beginning of documents.
    """

    models: dict[str, Path]
    host: str = "127.0.0.1"
    port: int = 8080
    keys: Path | None = None
    is_open: bool = False
    hosts: tuple[str, ...] = ()
    reviews: Path | None = None
    review_below: float | None = None
    threads: int = 2
    log_text: bool = False
    limits: Limits = field(default_factory=Limits)

    def check(self) -> None:
        """Refuse what would let strangers in, or nobody."""
        if not is_loopback(self.host) and self.keys is None and not self.is_open:
            raise InputError(
                f"{self.host} can be reached from other machines, and no key is asked for; give --keys FILE "
                "(made with 'ramify keys add'), or --open to let everyone in."
            )
        if self.review_below is not None and self.reviews is None:
            raise InputError("answers are queued for review, but there is no place for reviews; give --reviews FILE.")

    @property
    def allowed_hosts(self) -> tuple[str, ...] | None:
        """Names that the server answers to; None for any."""
        if self.hosts:
            return (*self._own_names, *(host.lower() for host in self.hosts))
        return self._own_names if self.keys is None and is_loopback(self.host) else None

    @property
    def _own_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*LOOPBACK_NAMES, self.host.strip("[]").lower())))


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def name_models(given: Sequence[str]) -> dict[str, Path]:
    """Model directories by name: that of the directory, or the one in NAME=DIRECTORY.

    >>> name_models(["out/tickets", "old=out/2025"])
    {'tickets': PosixPath('out/tickets'), 'old': PosixPath('out/2025')}
    """
    named: dict[str, Path] = {}
    for argument in given:
        name, equals, directory = argument.partition("=")
        if not equals or not NAME.fullmatch(name):
            name, directory = Path(argument).absolute().name, argument
        if not directory:
            raise InputError(f"no directory stands behind {argument!r}; give NAME=DIRECTORY.")
        if not NAME.fullmatch(name):
            allowed = "letters, digits, '.', '_' and '-'"
            raise InputError(f"{name!r} cannot be the name of a model; give NAME=DIRECTORY, with a name of {allowed}.")
        if name in named:
            raise InputError(f"two models would be named {name!r}; give another name to one of them, as NAME=DIRECTORY.")
        named[name] = Path(directory)
    return named
