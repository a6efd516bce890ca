"""A server under mixed traffic for an hour: ``python benchmarks/soak.py --image docs/images/soak.svg``.

Serves a model with 1,000 leaves and a review queue, and sends from another process, by the clock:

    per second   50 short texts, a connection each; one explanation; one document queued, and one decision about it; two
                 requests that are refused; two that break off in the head, in the body or before the answer
    per minute   12 tables of 2,000 rows, 6 of which break off; 2 evaluations of 500 rows; an export of the reviews; a new model
                 in the directory, and a reload
    always       50 slow clients of every kind of slow_clients.py

Every 15 seconds it notes memory, file descriptors and threads of the server, and the times of the short texts. It ends with
status 1 if a request failed that should not have, or if memory or descriptors grew: the mean of the last quarter of the time is
more than 5 % above the mean of the second.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import numpy as np
from boosting_plots import draw
from serving import head_for, make_texts, requests_for, resident, serving
from slow_clients import KINDS, attack

import ramify

RATE = 50  # short texts per second
LOOK = 15.0  # seconds
GROWTH = 1.05
PATIENCE = 60.0  # seconds for any answer


def main() -> int:
    """Serve, load, look, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--system", default="svm")
    parser.add_argument("--image", type=Path, help="SVG file to draw")
    parser.add_argument("--out", type=Path, help="JSON file for all looks")
    given = parser.parse_args()
    short, long, labels, taxonomy = make_texts(1_000, 20_000)
    with tempfile.TemporaryDirectory() as folder:
        model, other = Path(folder) / "model", Path(folder) / "other"
        classifier = ramify.TextClassifier(given.system, taxonomy, n_jobs=-1).fit(long, labels)
        for path in (model, other):
            classifier.save(path)
        with serving(model, Path(folder), "--reviews", str(Path(folder) / "reviews.db")) as (port, server):
            spawn = multiprocessing.get_context("spawn")
            slow = spawn.Process(target=attack, args=(port, KINDS, 50, 10, ready := spawn.Event()), daemon=True)
            slow.start()
            ready.wait()
            traffic = Traffic(port, short, labels, model, other)
            looks = asyncio.run(traffic.run(server.pid, 60 * given.minutes))
            slow.kill()
        print(f"answers: {dict(traffic.counts)}")
    if given.out:
        given.out.write_text(json.dumps(looks))
    if given.image:
        given.image.write_text(picture(looks, given.minutes))
    return judge(looks, traffic.counts)


class Traffic:
    """All that is sent, and what became of it."""

    def __init__(self, port: int, texts: list[str], labels: list[str], model: Path, other: Path) -> None:
        self.port, self.texts, self.model, self.other = port, texts, model, other
        self.short = requests_for(texts[:2_000])
        self.counts, self.times = Counter[str](), list[float]()
        self.table = b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts[:2_000])
        rows = [{"text": text, "label": label} for text, label in zip(texts[:500], labels, strict=False)]
        self.labelled = b"".join(json.dumps(row).encode() + b"\n" for row in rows)

    async def run(self, pid: int, seconds: float) -> list[dict[str, float]]:
        """Send everything by the clock, and look now and then."""
        plan: list[tuple[float, Callable[[int], Coroutine[Any, Any, None]]]] = [
            (1 / RATE, self.classify), (1, self.explain), (1, self.review), (0.5, self.refused), (0.5, self.break_off),
            (10, self.send_table), (10, self.break_off_table), (30, self.evaluate), (60, self.export), (60, self.reload),
        ]  # fmt: skip
        began = time.perf_counter()
        senders = [asyncio.create_task(self.repeat(*each, began + seconds)) for each in plan]
        looks: list[dict[str, float]] = []
        while time.perf_counter() < began + seconds:
            await asyncio.sleep(min(LOOK, max(0.1, began + seconds - time.perf_counter())))
            times, self.times = 1000 * np.asarray(self.times or [0.0]), []
            facts = {"minute": (time.perf_counter() - began) / 60, "MB": resident(pid), "threads": n_of(pid, "task")}
            facts |= {"descriptors": n_of(pid, "fd"), "p50 ms": float(np.median(times))}
            facts["p99 ms"] = float(np.percentile(times, 99))
            looks.append(facts)
            if len(looks) % 4 == 0:
                print("  ".join(f"{name} {value:,.1f}" for name, value in facts.items()), dict(self.counts), flush=True)
        await asyncio.gather(*senders)
        return looks

    async def repeat(self, every: float, act: Callable[[int], Coroutine[Any, Any, None]], until: float) -> None:
        """Begin something every so many seconds, whether or not the last one has ended; nothing unforeseen is passed over."""
        began, number, tasks = time.perf_counter(), 0, set[asyncio.Task[None]]()

        async def attempt(number: int) -> None:
            try:
                async with asyncio.timeout(PATIENCE):
                    await act(number)
            except Exception as error:
                self.counts[f"failed: {act.__name__}, {type(error).__name__}: {str(error)[:80]}"] += 1

        while (due := began + number * every) < until:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            task = asyncio.create_task(attempt(number))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            number += 1
        await asyncio.gather(*tasks)

    async def ask(self, request: bytes, expected: int = 200) -> bytes:
        """Send one request on a connection of its own, and read all of the answer; try again while the server is busy."""
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                writer.write(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
                answer = await reader.read(-1)
            finally:
                writer.close()
            head, _, body = answer.partition(b"\r\n\r\n")
            status = int(answer.split(b" ", 2)[1])
            self.counts[f"{status}"] += 1
            if status != 503 or b"retry-after: 1" not in head.lower():
                break
            await asyncio.sleep(1.0)
        if status != expected:
            raise RuntimeError(f"status {status} instead of {expected}: {body[:200]!r}")
        return body

    async def post(self, path: str, values: Any, expected: int = 200) -> Any:
        """Send JSON, and read JSON."""
        body = json.dumps(values).encode()
        return json.loads(await self.ask(head_for(path, "application/json", len(body)) + body, expected))

    async def classify(self, number: int) -> None:
        """One short text."""
        began = time.perf_counter()
        await self.ask(self.short[number % len(self.short)])
        self.times.append(time.perf_counter() - began)

    async def explain(self, number: int) -> None:
        """Why a text got its labels."""
        await self.post("/v1/explain", {"text": self.texts[number % len(self.texts)]})

    async def review(self, number: int) -> None:
        """Queue a document, and decide about it."""
        text = f"{self.texts[number % len(self.texts)]} number{number}"
        queued = await self.post("/v1/reviews", {"documents": [{"text": text}]}, 201)
        await self.post(f"/v1/reviews/{queued['queued'][0]}/decisions", {"action": "accept"}, 201)

    async def refused(self, number: int) -> None:
        """A request that is refused."""
        kind = number % 4
        if kind == 0:
            await self.post("/v1/classify", {"texts": 7}, 422)
        elif kind == 1:
            await self.post("/v1/nothing", {}, 404)
        elif kind == 2:
            await self.post("/v1/classify", {"texts": ["x"] * 2000}, 413)
        else:
            await self.ask(b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403)

    async def break_off(self, number: int) -> None:
        """Send a part of a request, or all of it, and leave."""
        whole = self.short[number % len(self.short)]
        await self.send_and_leave((whole[:40], whole[:-5], whole)[number % 3])

    async def send_and_leave(self, data: bytes, wait: float = 0.0) -> None:
        """Send something, and end the connection at once."""
        _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        await asyncio.sleep(wait)
        writer.transport.abort()
        self.counts["broken off"] += 1

    async def send_table(self, number: int) -> None:
        """Have a table classified."""
        rows = await self.ask(head_for("/v1/batch", "application/x-ndjson", len(self.table)) + self.table)
        if rows.count(b"}\n") != 2_000:
            raise RuntimeError(f"{rows.count(chr(10).encode())} rows came back")

    async def break_off_table(self, number: int) -> None:
        """Have a table classified, and leave in the middle."""
        whole = head_for("/v1/batch", "application/x-ndjson", len(self.table)) + self.table
        await self.send_and_leave(whole if number % 2 else whole[:100_000], 0.05)

    async def evaluate(self, number: int) -> None:
        """Evaluate a table."""
        await self.ask(head_for("/v1/evaluate", "application/x-ndjson", len(self.labelled)) + self.labelled)

    async def export(self, number: int) -> None:
        """Export all reviews."""
        await self.ask(b"GET /v1/reviews/export?format=jsonl HTTP/1.1\r\nHost: localhost\r\n\r\n")

    async def reload(self, number: int) -> None:
        """Put another model in place, and reload."""
        beside = self.model.with_name("beside")
        shutil.copytree(self.other, beside)
        old = self.model.with_name("old")
        self.model.rename(old)
        beside.rename(self.model)
        shutil.rmtree(old)
        await self.post(f"/v1/models/{self.model.name}/reload", {})


def n_of(pid: int, what: str) -> float:
    """How many file descriptors or threads a process has."""
    return float(len(os.listdir(f"/proc/{pid}/{what}")))


def picture(looks: list[dict[str, float]], minutes: float) -> str:
    """Memory, descriptors and latency over time."""
    names = {"MB": "memory, MB", "descriptors": "file descriptors", "threads": "threads"}
    names |= {"p50 ms": "median of short texts, ms", "p99 ms": "99th percentile, ms"}
    series = {title: [(look["minute"], look[name]) for look in looks] for name, title in names.items()}
    return draw(series, f"A server under mixed traffic for {minutes:g} minutes", "minutes", "", log_x=False)


def judge(looks: list[dict[str, float]], counts: Counter[str]) -> int:
    """Say what grew and what failed; 1 if anything did."""
    bad = [f"{n:,} × {name}" for name, n in counts.items() if name.startswith("failed")]
    quarter = len(looks) // 4
    for name in ("MB", "descriptors", "threads"):
        values = [look[name] for look in looks]
        before, after = float(np.mean(values[quarter : 2 * quarter])), float(np.mean(values[-quarter:]))
        print(f"{name}: {before:,.1f} in the second quarter, {after:,.1f} in the last, at most {max(values):,.1f}")
        bad += [f"{name} grew from {before:,.1f} to {after:,.1f}"] if after > GROWTH * before else []
    for name in ("p50 ms", "p99 ms"):
        values = [look[name] for look in looks]
        print(f"{name}: {np.median(values):,.1f} in the middle look, {max(values):,.1f} in the worst")
    print("\n".join(bad) or "nothing failed, nothing grew")
    return int(bool(bad))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
