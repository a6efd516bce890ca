"""The settings of a server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from ramify.errors import InputError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request.

    texts: per request. characters: per text. body_bytes: of a JSON request. upload_bytes: of a table. seconds: for a
    prediction. upload_seconds: to evaluate a table, and between two pieces of a stream. waiting: texts in the queue before
    the server answers 503. uploads: tables at a time. memory_bytes: that all requests together may take, as estimated.
    explain_characters: of a text to explain, which takes far longer. values: in a JSON request, or ten per text if that is
    more. open_reviews, review_bytes: documents that wait for a decision, and size of the review file, before no more is queued.
    """

    texts: int = 1_000
    characters: int = 1_000_000
    body_bytes: int = 1 << 23
    upload_bytes: int = 1 << 30
    seconds: float = 30.0
    upload_seconds: float = 300.0
    waiting: int = 20_000
    uploads: int = 4
    memory_bytes: int = 2_048_000_000
    explain_characters: int = 100_000
    values: int = 20_000
    open_reviews: int = 100_000
    review_bytes: int = 2_000_000_000

    @property
    def body_values(self) -> int:
        """Values in a JSON request."""
        return max(self.values, 10 * self.texts)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections.

    connections: at a time; fewer if the process may open fewer files. by_address: from one address. head_bytes: of the request
    line and all headers. headers: how many. url_bytes: of the address. head_seconds: to send these. body_seconds: to send JSON,
    and one second more for every `bytes_a_second`. rest_seconds: to send what nobody reads. idle_seconds: between requests.
    unread_seconds: to read an answer that waits. wrong_key_seconds: before a wrong key is answered. wrong_keys: of one address
    that wait for this; others get 429.
    """

    connections: int = 2_000
    by_address: int = 1_000
    head_bytes: int = 1 << 16
    headers: int = 100
    url_bytes: int = 1 << 15
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    bytes_a_second: int = 1 << 14
    rest_seconds: float = 5.0
    idle_seconds: float = 30.0
    unread_seconds: float = 60.0
    wrong_key_seconds: float = 0.5
    wrong_keys: int = 8


@dataclass(frozen=True, slots=True)
class Settings:
    """Models, address, access and limits of a server.

    models: directories by name; the first is the default. keys: the key file; None for a server without keys. hosts: host names
    that the server accepts besides its own; with keys and none given, any. reviews: the file of the review queue; None for no
    reviews. review_below: predictions with a lower confidence are queued. log_text: log the beginning of documents.
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
    connection_limits: ConnectionLimits = field(default_factory=ConnectionLimits)

    def check(self) -> None:
        """Refuse settings that would leave the server open by accident."""
        if not is_loopback(self.host) and self.keys is None and not self.is_open:
            way = "give --keys FILE (made with 'ramify keys add'), or --open to allow everyone"
            raise InputError(f"other computers can reach {self.host}, and no key is required; {way}.")
        if self.review_below is not None and self.reviews is None:
            raise InputError("--review-below needs the review queue; leave out --no-reviews.")

    @property
    def allowed_hosts(self) -> tuple[str, ...] | None:
        """Host names that the server accepts; None for any."""
        if not self.hosts and (self.keys is not None or not is_loopback(self.host)):
            return None
        own = dict.fromkeys((*LOOPBACK_NAMES, self.host.strip("[]").lower()))
        return (*own, *(host.lower() for host in self.hosts))


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach an address.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, False, True)
    """
    with suppress(ValueError):
        return ip_address(host.strip("[]")).is_loopback
    return host == "localhost"


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
            raise InputError(f"{argument!r} names no directory; give NAME=DIRECTORY.")
        if not NAME.fullmatch(name):
            allowed = "letters, digits, '.', '_' and '-'"
            raise InputError(f"{name!r} cannot be the name of a model; give NAME=DIRECTORY, with a name of {allowed}.")
        if name in named:
            raise InputError(f"two models would be named {name!r}; give another name to one of them, as NAME=DIRECTORY.")
        named[name] = Path(directory)
    return named
