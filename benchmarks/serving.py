"""A server under load on loopback: ``python benchmarks/serving.py``.

Trains a model with 1,000 leaves on texts made from ``make_web_directory``, starts ``ramify serve`` in a process of its own, and
from another process sends

    sizes      so many texts together, without a server: the gain of micro-batching
    single     short texts, one a request, over so many connections at once as fast as answers come
    half       the same at half of 1,500 requests a second, sent by the clock whether or not answers have come
    batch      tables of short texts as NDJSON and CSV, and of long texts, read while they are sent
    memory     200,000 requests, with a look at the memory of the server on the way

Client and server share the machine's cores. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from load import Load, run_at_full_speed, run_by_the_clock
from measuring import host_facts

import ramify
from ramify.data import make_web_directory
from ramify.workflows import Predictor

TARGET = 1_500  # requests a second
SHORT = 12  # words of a short text
CONNECTIONS = 32
SECONDS = 10
TABLE_ROWS = 100_000

Figures = dict[str, Any]


def main() -> None:
    """Train, serve, load, tell."""
    given = parse()
    short, long, labels, taxonomy = make_texts(given.leaves, given.documents)
    rows: list[Figures] = []
    with tempfile.TemporaryDirectory() as folder:
        for system in given.system:
            model = Path(folder) / system
            ramify.TextClassifier(system, taxonomy, n_jobs=-1).fit(long, labels).save(model)
            given.model = model
            with serving(model, Path(folder)) as (port, server):
                for part in (measure_sizes, measure_singles, measure_half, measure_batches, measure_memory):
                    if part.__name__.removeprefix("measure_") in given.part:
                        for row in part(port, server, short, long, given):
                            rows.append({"system": system, **row})
                            show(rows[-1])
    if given.out:
        about = {"machine": host_facts(), "date": datetime.now(UTC).isoformat(timespec="seconds")}
        given.out.write_text(json.dumps({**about, "rows": rows}, indent=1))


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leaves", type=int, default=1_000)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--system", nargs="+", default=["svm", "hr-svm", "nb"])
    parser.add_argument("--part", nargs="+", default=["sizes", "singles", "half", "batches", "memory"])
    parser.add_argument("--requests", type=int, default=200_000, help="of the look at memory")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def show(row: Figures) -> None:
    """One line of figures."""
    print(
        "  ".join(f"{name} {value:,.1f}" if isinstance(value, float) else f"{name} {value}" for name, value in row.items()),
        flush=True,
    )


def make_texts(n_leaves: int, n_documents: int) -> tuple[list[str], list[str], list[str], Any]:
    """Short and long texts, one label each, and the taxonomy."""
    problem, rng = make_web_directory(n_leaves=n_leaves, n_docs=n_documents, seed=0), np.random.default_rng(0)
    rows = np.split(problem.X.indices, problem.X.indptr[1:-1])
    long = [" ".join(f"w{word}" for word in row) for row in rows]
    short = [" ".join(f"w{word}" for word in rng.permutation(row)[:SHORT]) for row in rows]
    return short, long, [names[0] for names in problem.taxonomy.decode(problem.Y)], problem.taxonomy


@contextmanager
def serving(model: Path, folder: Path, *more: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A server with its port."""
    log = folder / "server.log"
    command = [sys.executable, "-m", "ramify.cli.main", "serve", str(model), "--port", "0", *(more or ("--no-reviews",))]
    with open(log, "wb") as written:
        server = subprocess.Popen([*command, "--log-format", "json"], stderr=written)
    try:
        while not (found := re.search(r"at http://127.0.0.1:(\d+)", log.read_text())):
            if server.poll() is not None:
                raise SystemExit(f"the server did not start: {log.read_text()}")
            time.sleep(0.1)
        yield int(found[1]), server
    finally:
        server.terminate()
        server.wait()


# ---- what is measured -------------------------------------------------------------------------------------------------


def requests_for(texts: list[str]) -> list[bytes]:
    """Whole HTTP requests, one a text."""
    made = []
    for text in texts:
        body = json.dumps({"text": text}).encode()
        made.append(head_for("/v1/classify", "application/json", len(body)) + body)
    return made


def head_for(path: str, kind: str, length: int, more: str = "") -> bytes:
    """The head of a request."""
    lines = f"Host: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}"
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode()


def apart(work: Callable[..., Load], *arguments: Any) -> Load:
    """Do something in another process, so that it does not wait for this one."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def measure_sizes(port: int, server: Any, short: list[str], long: list[str], given: Any) -> Iterator[Figures]:
    """Milliseconds for so many texts at once, in this process: the middle of many."""
    predictor = Predictor(ramify.load(given.model).with_threads(1))
    for size in (1, 8, 32, 256):
        times = []
        for start in range(0, 4_000, max(size, 20)):
            began = time.perf_counter()
            predictor.predict(short[start : start + size])
            times.append(1000 * (time.perf_counter() - began))
        yield {"part": "sizes", "texts": size, "ms": float(np.median(times)), "µs/text": 1000 * float(np.median(times)) / size}


def measure_singles(port: int, server: Any, short: list[str], long: list[str], given: Any) -> Iterator[Figures]:
    """Requests a second, as fast as answers come."""
    for connections in (1, 8, CONNECTIONS):
        found = apart(run_at_full_speed, port, requests_for(short[:2_000]), connections, SECONDS)
        yield {"part": "single", "connections": connections, **found.figures()}


def measure_half(port: int, server: Any, short: list[str], long: list[str], given: Any) -> Iterator[Figures]:
    """Times of answers at half of the target rate, measured from when a request was due."""
    found = apart(run_by_the_clock, port, requests_for(short[:2_000]), CONNECTIONS, TARGET / 2, 2 * SECONDS)
    yield {"part": "half", "connections": CONNECTIONS, **found.figures()}


def measure_batches(port: int, server: Any, short: list[str], long: list[str], given: Any) -> Iterator[Figures]:
    """Documents a second, from the first byte sent to the last byte read."""
    lines = (short * (1 + TABLE_ROWS // len(short)))[:TABLE_ROWS]
    tables = {
        "ndjson, short": ("application/x-ndjson", "".join(json.dumps({"text": text}) + "\n" for text in lines), len(lines)),
        "csv, short": ("text/csv", "text\n" + "".join(f"{text}\n" for text in lines), len(lines)),
        "ndjson, long": ("application/x-ndjson", "".join(json.dumps({"text": text}) + "\n" for text in long), len(long)),
    }
    for name, (kind, body, count) in tables.items():
        best = min((send_table(port, kind, body.encode(), count) for _ in range(3)), default=0.0)
        yield {"part": "batch", "table": name, "documents": count, "seconds": best, "documents/s": count / best}


def measure_memory(port: int, server: Any, short: list[str], long: list[str], given: Any) -> Iterator[Figures]:
    """The server's memory after each tenth of many requests."""
    requests, steps = requests_for(short), 10
    for step in range(steps + 1):
        yield {"part": "memory", "requests": step * given.requests // steps, "MB": resident(server.pid)}
        if step < steps:
            apart(run_at_full_speed, port, requests, CONNECTIONS, 600, given.requests // steps)


def resident(pid: int) -> float:
    """Megabytes of memory that a process has in use."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1e3 if found else 0.0


def send_table(port: int, kind: str, body: bytes, count: int) -> float:
    """Send a table and read its answers at the same time, as curl does; gives the seconds."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head_for("/v1/batch", kind, len(body), "Connection: close\r\n"))
        connection.setblocking(False)
        lines = send_and_receive(connection, memoryview(body), b",\n" if kind == "text/csv" else b"}\n")
    seconds = time.perf_counter() - began
    if lines < count:
        raise SystemExit(f"{lines:,} lines came back for {count:,} documents")
    return seconds


def send_and_receive(connection: socket.socket, body: memoryview, end: bytes) -> int:
    """Write and read until the other side closes; gives the lines that came, by how they end."""
    lines, last = 0, b""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while True:
            events = selector.select()[0][1]
            if events & selectors.EVENT_WRITE:
                body = body[connection.send(body[: 1 << 18]) :]
                if not body:
                    selector.modify(connection, selectors.EVENT_READ)
            if events & selectors.EVENT_READ:
                came = connection.recv(1 << 18)
                if not came:
                    return lines
                lines += (last + came).count(end)
                last = came[-1:]  # an end may come in two pieces


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
