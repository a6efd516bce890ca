"""Honest requests while slow clients hold connections: ``python benchmarks/slow_clients.py``.

Serves a model with 1,000 leaves, and opens 1,000 connections, held by one kind of slow client or by all kinds together:

    silent     sends nothing
    head       sends a request's head, one byte per second
    body       sends a request's body, one byte per second
    unread     sends a table to be classified, and reads no answer
    idle       has got one answer, and sends no further request
    dribble    reads an answer, 100 bytes per second

A connection that the server ends is opened again after about half a second. Meanwhile an honest client sends requests with one
short text by the clock, and times them from when they were due. Slow clients come from the honest client's address, or from 50
others. Server and clients share the machine's cores. Needs Linux, where every address of 127.0.0.0/8 is this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import random
from typing import Any

import numpy as np
from load import Load
from serving import head_for, make_texts, requests_for, resident, serving, show

import ramify

KINDS = ("silent", "head", "body", "unread", "idle", "dribble")
UNREAD_SECONDS = 70.0  # until a client that reads nothing gives up
WINDOW = 5.0  # seconds of one look at the times of answers
REOPEN = 0.5  # seconds until a client whose connection was ended comes again, about
HEAD = b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4000\r\nX-More: "
TABLE = b'{"text": "w1 w2 w3"}\n' * 10_000
LARGE = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
ALIVE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

Figures = dict[str, Any]


def main() -> None:
    """Serve, attack, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=1_000, help="slow ones")
    parser.add_argument("--kind", nargs="+", default=["none", *KINDS, "all"])
    parser.add_argument("--rate", type=float, default=200, help="honest requests per second")
    parser.add_argument("--seconds", type=float, default=30, help="per kind")
    parser.add_argument("--system", default="svm")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    short, long, labels, taxonomy = make_texts(1_000, 20_000)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        ramify.TextClassifier(given.system, taxonomy, n_jobs=-1).fit(long, labels).save(model)
        with serving(model, Path(folder)) as (port, server):
            requests = requests_for(short[:2_000])
            ask_by_the_clock(port, requests, given.rate, 2.0)  # warm-up
            for kind in given.kind:
                for n_addresses in (1, 50) if kind != "none" else (0,):
                    rows.append({"kind": kind, "addresses": n_addresses, **attacked(port, requests, kind, n_addresses, given)})
                    rows[-1]["server MB"] = resident(server.pid)
                    show(rows[-1])
    if given.out:
        given.out.write_text(json.dumps(rows, indent=1))


def attacked(port: int, requests: list[bytes], kind: str, n_addresses: int, given: Any) -> Figures:
    """Times of honest answers while an attack goes on: of all, and of the slowest window."""
    if kind == "none":
        return judged(run_honest(port, requests, given))
    ready = multiprocessing.get_context("spawn").Event()
    chosen = KINDS if kind == "all" else (kind,)
    arguments = (port, chosen, given.connections, n_addresses, ready)
    attacker = multiprocessing.get_context("spawn").Process(target=attack, args=arguments, daemon=True)
    attacker.start()
    ready.wait()
    try:
        return judged(run_honest(port, requests, given))
    finally:
        attacker.kill()
        attacker.join()
        time.sleep(1.0)


def run_honest(port: int, requests: list[bytes], given: Any) -> list[Load]:
    """One window after the other, all from one process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        n_windows = max(1, round(given.seconds / WINDOW))
        return [pool.apply(ask_by_the_clock, (port, requests, given.rate, WINDOW)) for _ in range(n_windows)]


def ask_by_the_clock(port: int, requests: list[bytes], rate: float, seconds: float) -> Load:
    """Send each request when it is due, on a connection of its own; its time counts from when it was due."""

    async def ask(request: bytes, due: float) -> None:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            status = (await reader.readuntil(b"\r\n")).split(b" ")[1]
            await reader.readuntil(b'"problem":null}]}')
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            status = b""
        load.times.append(time.perf_counter() - due)
        load.failures += status != b"200"

    async def ask_all() -> None:
        began, tasks = time.perf_counter(), []
        for k in range(round(rate * seconds)):
            due = began + k / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(ask(requests[k % len(requests)], due)))
        await asyncio.gather(*tasks)

    load = Load(seconds=seconds)
    asyncio.run(ask_all())
    return load


def judged(windows: list[Load]) -> Figures:
    """What became of honest requests."""
    times = 1000 * np.concatenate([window.times for window in windows])
    slowest = max(float(np.percentile(window.times, 99)) for window in windows) * 1000
    found = {"requests": len(times), "failures": sum(window.failures for window in windows), "p50 ms": float(np.median(times))}
    return found | {"p99 ms": float(np.percentile(times, 99)), "worst window's p99 ms": slowest, "max ms": float(times.max())}


# ---- slow clients, in a process of their own ------------------------------------------------------------------------------


def attack(port: int, kinds: tuple[str, ...], n_connections: int, n_addresses: int, ready: Any) -> None:
    """Hold so many connections until the process is killed."""
    asyncio.run(_attack(port, kinds, n_connections, n_addresses, ready))


async def _attack(port: int, kinds: tuple[str, ...], n_connections: int, n_addresses: int, ready: Any) -> None:
    addresses = [f"127.0.0.{1 if n_addresses == 1 else 2 + k % n_addresses}" for k in range(n_connections)]
    clients = [asyncio.create_task(hold(port, kinds[k % len(kinds)], addresses[k])) for k in range(n_connections)]
    await asyncio.sleep(2.0)
    ready.set()
    await asyncio.gather(*clients)


async def hold(port: int, kind: str, address: str) -> None:
    """One slow client; it comes again whenever the server ends its connection."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0), limit=1 << 12)
            try:
                await ACTS[kind](reader, writer)
            finally:
                writer.close()
        await asyncio.sleep(REOPEN * (0.5 + random()))


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Wait for the end."""
    await reader.read()


async def send_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, begin: bytes = HEAD) -> None:
    """One byte per second, until the server ends the connection."""
    writer.write(begin)
    while not reader.at_eof():
        writer.write(b"x")
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1 << 12), 1.0)


async def send_body_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The head at once, the body one byte per second."""
    await send_slowly(reader, writer, HEAD + b'\r\n\r\n{"text": "')


async def read_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Have a table classified, and read none of the rows, which are more than the system takes from the server."""
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(head_for("/v1/batch", "application/x-ndjson", len(TABLE)) + TABLE)
    await asyncio.sleep(UNREAD_SECONDS)


async def stay_idle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request, then nothing."""
    writer.write(ALIVE)
    await reader.read()


async def read_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A large answer, 100 bytes per second."""
    writer.write(LARGE)
    while await reader.read(100):
        await asyncio.sleep(1.0)


ACTS = dict(zip(KINDS, (say_nothing, send_slowly, send_body_slowly, read_nothing, stay_idle, read_slowly), strict=True))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
