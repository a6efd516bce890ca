"""Limits of connections: how many, from where, how large a request's head is, and how long a client may take to send it.

uvicorn has no limit on headers and no timeout for a request that is half sent. Here every connection has a phase with a
deadline, which one timer checks. When all places are taken, a new connection takes that of the one that has kept the server
waiting for longest; if all of them wait for the server, the new one gets 503. So slow clients cannot keep out others.

A connection has one request at a time. Whatever a client sends before it has the answer (pipelining) is dropped, and the
connection ends after the answer. Otherwise a thousand connections could order work for minutes at once, and read nothing of it.
Headers after a body (trailers) are ignored, and a request that asks for another protocol may have no body, because the parser
would take that for the next request.

A body may come in chunks of one byte, each of which takes as long to parse as a large one. So connections with many chunks take
turns: a fixed number of chunks is parsed in each iteration of the event loop, however many connections send them.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from itertools import islice
from time import monotonic
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ramify.server.errors import ApiError
from ramify.server.middleware import log_event, refusal
from ramify.server.settings import ConnectionLimits

STREAMS = (b"/v1/batch", b"/v1/evaluate")  # their routes have time limits of their own
SPARE = 128  # file descriptors that are not for connections
TICK = 0.5  # seconds between two looks at the deadlines
MOST_ENDED = 20  # connections that one look ends
PAUSE = 0.02  # seconds until the next look if there are more
LOG_INTERVAL = 5.0  # seconds between two log lines on the same reason
BUFFER = 1 << 16  # bytes of an answer that wait in the process before writing pauses
FRAMING = 16  # bytes that a client may send around every byte of a body: sizes of chunks
SMALL_SLICE, SLICE = 1 << 9, 1 << 12  # bytes that are parsed at a time: after a slice of many chunks, and of few
FEW_CHUNKS, TURN_CHUNKS = 4, 128  # of a slice; of a turn of one connection
LOOP_CHUNKS = 512  # of all turns in one iteration of the event loop
MOST_UNPARSED = 1 << 25  # bytes of all connections that wait for their turns
VERSIONS = ("1.0", "1.1")  # of HTTP
BODIES = (b"content-length", b"transfer-encoding")  # headers of a request with a body

# what a connection waits for
HEAD, BODY, ANSWER, REST, IDLE, CLOSING = "head", "body", "answer", "rest", "idle", "closing"
CAN_GO = (IDLE, REST, HEAD, BODY)  # phases in which the server waits for the client


class ConnectionLimiter:
    """All connections of a server. on_refusal: called with the reason of each refusal."""

    def __init__(self, limits: ConnectionLimits, on_refusal: Callable[[str], None] = lambda reason: None) -> None:
        self.limits, self._on_refusal = limits, on_refusal
        room = max(32, allow_open_files() - SPARE)
        self.most = min(limits.connections, room * 3 // 4)
        self.most_closing = min(self.most, room - self.most)
        self.parsing = ParsingQueue()
        self.open: dict[Connection, None] = {}
        self.closing: dict[Connection, None] = {}  # refused, until their clients have read why
        self._by_address: Counter[str] = Counter()
        self._unlogged: Counter[str] = Counter()
        self._logged_at: dict[str, float] = {}

    def admit(self, connection: Connection) -> bool:
        """Take a connection in, in place of another if need be; False if there is no room."""
        address, near = connection.address, None
        if self._by_address[address] >= self.limits.by_address:
            near = address
        if (near is not None or len(self.open) >= self.most) and not self._make_room(near):
            return False
        self.open[connection] = None
        self._by_address[address] += 1
        return True

    def forget(self, connection: Connection) -> None:
        """A connection has ended."""
        self.closing.pop(connection, None)
        self.parsing.forget(connection)
        self._leave(connection)

    def refused(self, connection: Connection) -> bool:
        """A connection gives its place back, and ends as soon as its client has read why; False if too many do so."""
        self._leave(connection)
        if len(self.closing) >= self.most_closing:
            return False
        self.closing[connection] = None
        return True

    def _leave(self, connection: Connection) -> None:
        if connection in self.open:
            del self.open[connection]
            self._by_address[connection.address] -= 1
            if not self._by_address[connection.address]:
                del self._by_address[connection.address]

    def _make_room(self, address: str | None) -> bool:
        """End the connection that has kept the server waiting for longest, of one address or of all."""
        waiting = [each for each in self.open if each.phase in CAN_GO and address in (None, each.address)]
        if not waiting:
            return False
        longest = min(waiting, key=lambda each: each.waiting_since)
        self.note("crowded out", longest.address)
        longest.abort()
        return True

    def check_deadlines(self) -> bool:
        """End connections that have taken too long, a few at a time; whether there may be more.

        A thousand that began together are late together; to end all of them at once would keep the others waiting.
        """
        now = monotonic()
        late = (each for each in list(self.open) if now > each.deadline(self.limits))
        ended = list(islice(late, MOST_ENDED))
        for connection in ended:
            connection.end_late()
        unread = [each for each in self.closing if now > each.since + self.limits.rest_seconds][:MOST_ENDED]
        for connection in unread:
            connection.abort()
        return MOST_ENDED in (len(ended), len(unread))

    def note(self, reason: str, address: str) -> None:
        """Count a refusal; log it, unless the same was logged a moment ago."""
        self._on_refusal(reason)
        self._unlogged[reason] += 1
        now = monotonic()
        if now - self._logged_at.get(reason, -LOG_INTERVAL) >= LOG_INTERVAL:
            times, self._logged_at[reason] = self._unlogged.pop(reason), now
            log_event("connection ended", logging.WARNING, reason=reason, client=address, times=times, open=len(self.open))


class ParsingQueue:
    """What connections have sent in many small chunks, which they take turns to parse. most: bytes that may wait."""

    def __init__(self, most: int = MOST_UNPARSED) -> None:
        self._most, self.unparsed = most, 0
        self._waiting: dict[Connection, bytes] = {}  # in the order of their turns
        self._is_called = False

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._waiting

    def add(self, connection: Connection, data: bytes) -> bool:
        """More bytes of a connection wait; False if there is no room for them."""
        if self.unparsed + len(data) > self._most:
            return False
        self.unparsed += len(data)
        self._waiting[connection] = self._waiting.get(connection, b"") + data
        if not self._is_called:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self.take)
        return True

    def forget(self, connection: Connection) -> None:
        """Nothing of a connection waits any more."""
        self.unparsed -= len(self._waiting.pop(connection, b""))

    def take(self) -> None:
        """The turns of this iteration of the event loop; all others come before the next."""
        self._is_called, left = False, LOOP_CHUNKS
        while self._waiting and left > 0:
            connection, data = next(iter(self._waiting.items()))
            self.forget(connection)
            rest, n_chunks = connection.parse(data)
            left -= 1 + n_chunks
            if not rest:
                connection.go_on_reading()
            else:
                self.add(connection, rest)
        if self._waiting and not self._is_called:
            self._is_called = True
            asyncio.get_running_loop().call_soon(self.take)


class Connection(HttpToolsProtocol):
    """One connection with limits; `limiter` is that of its server."""

    limiter: ConnectionLimiter
    transport: Any
    cycle: Any
    address = ""
    phase = HEAD
    is_stream = False
    _unread_since: float | None = None
    _unread_seconds = 0.0  # that the answers have waited so far, more than a client with the least rate would let them wait

    # ---- what a connection waits for ------------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Take the connection in, or refuse it."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._head_bytes, self._body_bytes, self._sent_bytes, self._n_trailers = 0, 0, 0, 0
        self._has_all, self._reads_on, self._n_chunks = False, True, 0
        self._enter(HEAD)
        if not self.limiter.admit(self):
            self._refuse(ApiError(503, "busy", "the server has too many connections; try again in a moment.", 1))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.limiter.forget(self)
        self._disconnect()
        super().connection_lost(exc)

    def _enter(self, phase: str) -> None:
        self.phase, self.since = phase, monotonic()

    @property
    def waiting_since(self) -> float:
        """Since when the server waits for the client; later for every piece of a body that came at a good rate."""
        return self.since + (self._body_bytes / self.limiter.limits.bytes_a_second if self.phase == BODY else 0.0)

    def deadline(self, limits: ConnectionLimits) -> float:
        """Until when the client must have done its part."""
        if self._unread_since is not None:
            return self._unread_since + limits.unread_seconds - self._unread_seconds
        seconds = {HEAD: limits.head_seconds, REST: limits.rest_seconds, IDLE: limits.idle_seconds}
        if self.phase == BODY and not self.is_stream:
            return self.waiting_since + limits.body_seconds
        return self.since + seconds.get(self.phase, float("inf"))

    def end_late(self) -> None:
        """End the connection because its client took too long."""
        if self.phase in (HEAD, BODY) and self._unread_since is None and (self._head_bytes or self.phase == BODY):
            self._refuse(ApiError(408, "too-slow", "the request took too long to arrive."))
        else:
            if self.phase != IDLE:
                self.limiter.note("no data" if self._unread_since is None else "answer unread", self.address)
            self.abort()

    def abort(self) -> None:
        """End the connection at once."""
        self.limiter.forget(self)
        self._disconnect()
        self.transport.abort()

    def _disconnect(self) -> None:
        """Tell the application that the client is gone; nothing that it still writes is sent."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _refuse(self, error: ApiError) -> None:
        """Answer with an error, and end the connection; nothing more is read."""
        self._reads_on = False
        self.limiter.note(error.code, self.address)
        has_begun = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        is_read = self._unread_since is None and not self.transport.get_write_buffer_size()
        self._disconnect()
        if has_begun or not is_read or not self.limiter.refused(self):
            self.abort()
            return
        self._enter(CLOSING)
        response = refusal(error, {"connection": "close"})
        head = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}".encode()]
        head += [name + b": " + value for name, value in response.raw_headers]
        self.transport.write(b"\r\n".join(head) + b"\r\n\r\n" + bytes(response.body))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(ApiError(400, "http", "the request is not valid HTTP/1.1."))

    # ---- reading ----------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse what came; if it has many small chunks, the rest of it waits for a turn."""
        if self.phase == ANSWER:
            self._end_after_response()
        parsing = self.limiter.parsing
        rest = data if self in parsing else self.parse(data)[0]
        if not rest:
            return
        if parsing.add(self, rest):
            self.transport.pause_reading()
        else:
            self._refuse(ApiError(503, "busy", "too many requests come in small pieces; send larger ones, or try again.", 1))

    def parse(self, data: bytes) -> tuple[bytes, int]:
        """Parse until a turn has all its chunks, in slices no larger than what is left for a head; the rest, and the chunks."""
        before, start, size = self._n_chunks, 0, SMALL_SLICE
        while start < len(data) and self._reads_on and self._n_chunks - before < TURN_CHUNKS:
            so_far = self._n_chunks
            start += self._parse_slice(data[start : start + size])
            size = SLICE if self._n_chunks - so_far <= FEW_CHUNKS else SMALL_SLICE
        return data[start:] if self._reads_on else b"", self._n_chunks - before

    def _parse_slice(self, data: bytes) -> int:
        """Parse some bytes of a head or a body, unless they are too many; returns how many."""
        limits = self.limiter.limits
        if self.phase not in (HEAD, IDLE):
            super().data_received(data)
            self._sent_bytes += len(data)
            if self._reads_on and self._sent_bytes > limits.head_bytes + FRAMING * self._body_bytes:
                self._refuse(ApiError(431, "head", "there is too much between the pieces of the body."))
            return len(data)
        room = limits.head_bytes - self._head_bytes
        if room <= 0:
            self._refuse(ApiError(431, "head", f"the headers have more than {limits.head_bytes:,} bytes."))
        else:
            self._head_bytes += len(data[:room])
            super().data_received(data[:room])
        return min(len(data), max(0, room))

    def go_on_reading(self) -> None:
        """Nothing waits for a turn any more."""
        if not self.transport.is_closing() and not self.flow.read_paused and not self.transport.is_reading():
            self.transport.resume_reading()

    def _end_after_response(self) -> None:
        """Read no further request on this connection."""
        self._reads_on, self.cycle.keep_alive = False, False

    def on_message_begin(self) -> None:
        """A request begins."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_after_response()
            return
        self._head_bytes, self._body_bytes, self._sent_bytes, self._n_trailers = max(1, self._head_bytes), 0, 0, 0
        self._has_all = False
        self._enter(HEAD)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A piece of the address."""
        if self._reads_on:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One more header, or a trailer, which nobody reads."""
        if self.phase == BODY:
            self._n_trailers += 1
            if self._reads_on and self._n_trailers > self.limiter.limits.headers:
                self._refuse(ApiError(431, "head", f"there are more than {self.limiter.limits.headers} headers."))
        elif self._reads_on and len(self.headers) <= self.limiter.limits.headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is complete: refuse it, or start the request."""
        if not self._reads_on:
            return
        if len(self.url) > self.limiter.limits.url_bytes:
            self._refuse(ApiError(414, "url", f"the address has more than {self.limiter.limits.url_bytes:,} bytes."))
        elif len(self.headers) > self.limiter.limits.headers:
            self._refuse(ApiError(431, "head", f"there are more than {self.limiter.limits.headers} headers."))
        elif self.parser.get_http_version() not in VERSIONS:
            self._refuse(ApiError(505, "version", "the server speaks HTTP/1.1; send that version."))
        elif self.parser.should_upgrade() and any(name in BODIES for name, _ in self.headers):
            self._refuse(ApiError(400, "upgrade", "the server speaks HTTP/1.1 only; leave out the header Upgrade."))
        else:
            self.is_stream = self.url.partition(b"?")[0] in STREAMS
            self._enter(BODY)
            super().on_headers_complete()
            if self.parser.should_upgrade():
                self._end_after_response()
                self.cycle.more_body, self._has_all = False, True
                self._enter(ANSWER)

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._n_chunks += 1
        if self._reads_on:
            self._body_bytes += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        if self._reads_on:
            self._has_all, self._head_bytes = True, 0
            self._enter(ANSWER if self.cycle is not None and not self.cycle.response_complete else IDLE)
            super().on_message_complete()

    # ---- writing ----------------------------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """The answer is complete; another request may follow, or the rest of a body that nobody reads."""
        self._enter(IDLE if self._has_all else REST)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client reads more slowly than the server writes."""
        self._unread_since = monotonic()
        super().pause_writing()

    def resume_writing(self) -> None:
        """The client has read what waited."""
        if self._unread_since is not None:
            waited = monotonic() - self._unread_since - BUFFER / self.limiter.limits.bytes_a_second
            self._unread_seconds, self._unread_since = max(0.0, self._unread_seconds + waited), None
        super().resume_writing()


def protocol_of(limiter: ConnectionLimiter) -> type[Connection]:
    """The protocol of the connections of a server."""
    return type("LimitedConnection", (Connection,), {"limiter": limiter})


async def watch_deadlines(limiter: ConnectionLimiter) -> None:
    """Check all deadlines, again and again."""
    while True:
        await asyncio.sleep(PAUSE if limiter.check_deadlines() else TICK)


def allow_open_files() -> int:
    """Let the process open as many files as the system allows it, and say how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
