"""The services of a running server, and its Prometheus metrics. The only file that imports prometheus_client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from ramify.server.errors import ApiError, busy, too_slow
from ramify.server.keys import Caller, KeyRing
from ramify.server.micro_batching import MicroBatcher
from ramify.server.model_registry import ModelRegistry, ServedModel
from ramify.server.reviews import ReviewStore
from ramify.server.settings import Settings
from ramify.workflows import PredictOptions

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ServerMetrics:
    """Prometheus metrics of one server; each server in a process has its own registry."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter("ramify_requests", "Requests.", ("route", "method", "status"), registry=registry)
        about = "Time from request to answer."
        self.seconds = Histogram("ramify_request_seconds", about, ("route",), buckets=SECONDS, registry=registry)
        self.documents = Counter("ramify_documents", "Documents classified.", ("model", "route"), registry=registry)
        self.sizes = Histogram("ramify_batch_size", "Texts classified together.", buckets=SIZES, registry=registry)
        self.waiting = Gauge("ramify_waiting_texts", "Texts that wait for their turn.", registry=registry)
        self.reviews = Counter("ramify_reviews", "Documents queued, and decisions.", ("what",), registry=registry)
        self.connections = Gauge("ramify_connections", "Open connections.", registry=registry)
        about = "Connections that the server refused or ended, by reason."
        self.ended = Counter("ramify_connections_ended", about, ("reason",), registry=registry)
        self.memory = Gauge("ramify_reserved_bytes", "Memory reserved for requests under way.", registry=registry)
        about = "When a model was read, in Unix time."
        self.loaded = Gauge("ramify_model_loaded_seconds", about, ("model",), registry=registry)

    def count_ended(self, reason: str) -> None:
        """Count a connection that was refused or ended."""
        self.ended.labels(reason).inc()

    def text(self) -> bytes:
        """All counts, as Prometheus reads them."""
        return generate_latest(self._registry)


Result = TypeVar("Result")
Given = ParamSpec("Given")

LOCAL = Caller("local", "admin")
MAX_WAITING = 64


class UploadSlots:
    """A fixed number of uploads, or of other work, at a time."""

    def __init__(self, count: int) -> None:
        self._free = count

    def enter(self, what: str) -> None:
        """Take a slot, or raise if all are in use."""
        if not self._free:
            raise busy(what)
        self._free -= 1

    def leave(self) -> None:
        """Free the slot."""
        self._free += 1


class MemoryBudget:
    """The memory that all requests together may take; each reserves what it is expected to take before it takes it."""

    def __init__(self, most: int) -> None:
        self.most, self.used = most, 0

    def reserve(self, count: int, held: int) -> None:
        """Add to what a request has reserved; 413 if it needs more than there is, 503 if others need it now."""
        if held + count > self.most:
            needed = f"needs about {(held + count) / 1e6:,.0f} MB of memory, and the server has {self.most / 1e6:,.0f} MB"
            raise ApiError(413, "memory", f"the request {needed}; send it in parts.")
        if self.used + count > self.most:
            raise busy("other requests need its memory")
        self.used += count

    def release(self, count: int) -> None:
        """Give back what a request has reserved."""
        self.used -= count


class BoundedPool(UploadSlots):
    """A thread pool with a bounded queue; a full queue raises 503."""

    def __init__(self, workers: int, waiting: int, name: str) -> None:
        super().__init__(workers + waiting)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)

    async def run(
        self, seconds: float | None, work: Callable[Given, Result], *args: Given.args, **options: Given.kwargs
    ) -> Result:
        """Run `work` in the pool; after `seconds` stop waiting for it, but let its thread finish."""
        self.enter("other long work is under way")

        def end(done: asyncio.Future[Any]) -> None:
            self.leave()
            if not done.cancelled():
                done.exception()  # retrieved, so that asyncio does not warn

        done = asyncio.get_running_loop().run_in_executor(self._pool, lambda: work(*args, **options))
        done.add_done_callback(end)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(done)
        except TimeoutError:
            raise too_slow(seconds or 0) from None

    def close(self) -> None:
        """Take no more work, and wait for what is under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class Services:
    """The parts of a running server."""

    def __init__(self, settings: Settings) -> None:
        settings.check()
        self.settings = settings
        self.keys = None if settings.keys is None else KeyRing(settings.keys)
        self.metrics, self.registry = ServerMetrics(), ModelRegistry(settings.models)
        for served in self.registry:
            self.metrics.loaded.labels(served.name).set_to_current_time()
        self.batcher = MicroBatcher(settings.threads, settings.limits.waiting, self.metrics.sizes.observe)
        self.metrics.waiting.set_function(lambda: self.batcher.waiting)
        self.memory = MemoryBudget(settings.limits.memory_bytes)
        self.metrics.memory.set_function(lambda: self.memory.used)
        self.uploads = UploadSlots(settings.limits.uploads)  # for tables
        self.table_pool = BoundedPool(settings.limits.uploads, MAX_WAITING, "tables")
        self.slow_pool = BoundedPool(settings.threads, MAX_WAITING, "slow_pool")  # for other long work
        self.review_pool = BoundedPool(1, 10_000, "reviews")  # the one thread that uses the review store
        self.reviews = None if settings.reviews is None else ReviewStore(settings.reviews)

    def close(self) -> None:
        """Finish running work and close files."""
        for part in (self.batcher, self.slow_pool, self.table_pool, self.review_pool, self.reviews):
            if part is not None:
                part.close()

    def find_caller(self, authorization: bytes | None) -> Caller:
        """The owner of the key; the local caller if the server needs none."""
        if self.keys is None:
            return LOCAL
        kind, _, given = (authorization or b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer":
            raise ApiError(401, "no-key", "this server needs a key; send 'Authorization: Bearer KEY'.")
        caller = self.keys.find(given.strip())
        if caller is None:
            raise ApiError(401, "wrong-key", "the key is not valid; ask the operator of the server for one.")
        return caller

    async def on_reviews(self, work: Callable[..., Result], *args: Any, **options: Any) -> Result:
        """Run a method of the review store in its thread."""
        return await self.review_pool.run(self.settings.limits.seconds, work, *args, **options)

    def require_reviews(self) -> ReviewStore:
        """The review store; 404 if the server has none."""
        if self.reviews is None:
            raise ApiError(404, "no-reviews", "this server keeps no reviews; start it with --reviews FILE.")
        return self.reviews

    async def classify(self, served: ServedModel, options: PredictOptions, texts: list[str]) -> list[dict[str, Any]]:
        """The labels of each text and the next likely ones."""
        work = partial(served.predict, options)
        return list(await self.batcher.ask((served, options), work, served.batch_time, texts, self.settings.limits.seconds))
