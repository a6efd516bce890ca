"""Requests over several connections from one thread: as fast as answers come, or by the clock."""

from __future__ import annotations

import selectors
import socket
from collections import deque
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

END = b"\r\n\r\n"


@dataclass
class Load:
    """What came of it: seconds for each answer, seconds in all, and answers that were not 200."""

    times: list[float] = field(default_factory=list)
    seconds: float = 0.0
    failures: int = 0

    def figures(self) -> dict[str, float]:
        """Requests a second and milliseconds of the middle and of the slowest hundredth."""
        ms = 1000 * np.asarray(self.times)
        named = {"p50 ms": 50, "p99 ms": 99, "max ms": 100}
        rates = {"requests/s": len(ms) / self.seconds, "failures": self.failures}
        return rates | {name: float(np.percentile(ms, p)) for name, p in named.items()}


class _Connection:
    """One connection with at most one request under way."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.due, self._came = 0.0, b""

    def send(self, request: bytes, due: float) -> None:
        self.due = due
        self.socket.sendall(request)

    def receive(self) -> int | None:
        """Read what is there; the status once an answer is whole."""
        self._came += self.socket.recv(1 << 16)
        head, end, body = self._came.partition(END)
        if not end:
            return None
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return None
        self._came = b""
        return int(head.split(b" ", 2)[1])


def run_at_full_speed(port: int, requests: list[bytes], connections: int, seconds: float, most: int = 1 << 60) -> Load:
    """Send the next request on a connection as soon as its last one is answered."""
    load, began, sent = Load(), perf_counter(), 0
    with selectors.DefaultSelector() as selector:
        for one in (_Connection(port) for _ in range(connections)):
            selector.register(one.socket, selectors.EVENT_READ, one)
            one.send(requests[sent % len(requests)], perf_counter())
            sent += 1
        while perf_counter() - began < seconds and len(load.times) < most:
            for key, _ in selector.select(1.0):
                if _take(load, key.data):
                    key.data.send(requests[sent % len(requests)], perf_counter())
                    sent += 1
        load.seconds = perf_counter() - began
        _close(selector)
    return load


def run_by_the_clock(port: int, requests: list[bytes], connections: int, rate: float, seconds: float) -> Load:
    """Send requests when they are due; a request waits for a free connection, and its time counts from when it was due."""
    load, began, sent = Load(), perf_counter(), 0
    with selectors.DefaultSelector() as selector:
        free = deque(_Connection(port) for _ in range(connections))
        for one in free:
            selector.register(one.socket, selectors.EVENT_READ, one)
        while sent < rate * seconds or len(free) < connections:
            due = began + sent / rate
            while free and due <= perf_counter() and sent < rate * seconds:
                free.popleft().send(requests[sent % len(requests)], due)
                sent += 1
                due = began + sent / rate
            for key, _ in selector.select(max(0.0, min(due - perf_counter(), 0.01)) if free else 0.01):
                if _take(load, key.data):
                    free.append(key.data)
        load.seconds = perf_counter() - began
        _close(selector)
    return load


def _take(load: Load, one: _Connection) -> bool:
    status = one.receive()
    if status is None:
        return False
    load.times.append(perf_counter() - one.due)
    load.failures += status != 200
    return True


def _close(selector: selectors.BaseSelector) -> None:
    for key in list(selector.get_map().values()):
        key.data.socket.close()
