"""Byte streams between an event loop and a thread, in both directions at once.

A client may upload a large table before it reads the first result. Unread results must not stop the server from reading, so
they wait in memory, and beyond a limit in a temporary file.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from threading import Condition, Lock
from typing import IO

from ramify.server.errors import ApiError

HELD = 1 << 22  # bytes in memory before the sender has to wait, or results go to a file
CHUNK_BYTES = 64  # of memory for a chunk beside its content
LONGEST = 1 << 23  # bytes of a line


class ByteInput:
    """Chunks in from an event loop, and out in a thread.

    on_wait: called in that thread before it waits for input, so that finished results go out first.
    """

    def __init__(self, on_wait: Callable[[], None] = lambda: None) -> None:
        self.on_wait = on_wait
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        self._room.set()
        self._chunks: deque[bytes] = deque()
        self._held, self._has_ended = 0, False
        self._failure: Exception | None = None
        self._changed = Condition()

    async def put(self, chunk: bytes) -> None:
        """Add bytes; waits while the buffer is full."""
        await self._room.wait()
        with self._changed:
            self._chunks.append(chunk)
            self._held += len(chunk) + CHUNK_BYTES
            if self._held > HELD:
                self._room.clear()
            self._changed.notify()

    def end(self, failure: Exception | None = None) -> None:
        """End the input; with a failure, the thread raises it instead of reading what is left."""
        with self._changed:
            self._has_ended, self._failure = True, self._failure or failure
            self._changed.notify()

    def chunks(self) -> Iterator[bytes]:
        """The chunks as they come."""
        while (chunk := self._take()) is not None:
            yield chunk

    def _take(self) -> bytes | None:
        """The next bytes; None at the end."""
        if not self._chunks and not self._has_ended:
            self.on_wait()
        with self._changed:
            while not self._chunks and not self._has_ended:
                self._changed.wait()
            if self._failure is not None:
                raise self._failure
            if not self._chunks:
                return None
            chunk = self._chunks.popleft()
            self._held -= len(chunk) + CHUNK_BYTES
            if self._held <= HELD:
                self._loop.call_soon_threadsafe(self._room.set)
            return chunk


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Every line with its end; only the last may lack one."""
    begun = bytearray()  # an incomplete line
    for chunk in chunks:
        pieces = BytesIO(chunk).readlines()
        if begun and pieces and pieces[0].endswith(b"\n"):
            yield bytes(begun + pieces.pop(0))
            begun.clear()
        if pieces and not pieces[-1].endswith(b"\n"):
            begun += pieces.pop()
        if len(begun) > LONGEST:
            raise line_too_long()
        yield from pieces
    if begun:
        yield bytes(begun)


class ByteOutput:
    """Pieces in from a thread, out on an event loop; at most `most` bytes wait in a file."""

    def __init__(self, most: int = 1 << 30) -> None:
        self._most = most
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._lock = Lock()
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._file: IO[bytes] | None = None
        self._read, self._written = 0, 0
        self._has_ended = False
        self.failure: ApiError | None = None

    def put(self, piece: bytes) -> None:
        """Add a piece."""
        if not piece:
            return
        with self._lock:
            if self._written > self._read or self._held > HELD:  # to the file
                if self._file is None:
                    self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the sink
                if self._written + len(piece) > self._most:
                    raise ApiError(413, "unread", "too many results are unread; read them while you send.")
                self._file.seek(self._written)
                self._file.write(piece)
                self._written += len(piece)
            else:
                self._pieces.append(piece)
                self._held += len(piece)
        self._loop.call_soon_threadsafe(self._ready.set)

    def end(self, failure: ApiError | None = None) -> None:
        """End the output, with a failure if it is incomplete; only the first call counts."""
        with self._lock:
            if not self._has_ended:
                self._has_ended, self.failure = True, failure
        self._loop.call_soon_threadsafe(self._ready.set)

    async def take(self) -> bytes | None:
        """The next bytes; None at the end."""
        while True:
            with self._lock:
                found = b""
                if self._pieces:
                    found = b"".join(self._pieces)
                    self._pieces.clear()
                    self._held = 0
                elif self._file is not None and self._read < self._written:
                    self._file.seek(self._read)
                    found = self._file.read(1 << 20)
                    self._read += len(found)
                    if self._read == self._written:  # all of it was read, so the file can be reused
                        self._file.truncate(0)
                        self._read = self._written = 0
                if found or self._has_ended:
                    return found or None
                self._ready.clear()
            await self._ready.wait()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()


def line_too_long() -> ApiError:
    """A line, or a row of several lines, is longer than any text that is allowed."""
    return ApiError(413, "too-long", f"a row has more than {LONGEST:,} bytes; send shorter ones.")
