"""The services of a running server, and its Prometheus metrics. The only file that imports prometheus_client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from ramify.server.bounds import BackgroundTasks, BoundedPool, MemoryBudget, UploadSlots
from ramify.server.errors import ApiError
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


class RareLog:
    """Counts what may happen very often, so that it is logged once in a while."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock, self._count = clock, 0
        self._logged_at = float("-inf")

    def add(self, count: int) -> int:
        """How many to log now; 0 if some were logged a moment ago."""
        self._count += count
        if self._clock() - self._logged_at < LOG_INTERVAL:
            return 0
        due, self._count, self._logged_at = self._count, 0, self._clock()
        return due


Result = TypeVar("Result")

LOG_INTERVAL = 5.0  # seconds between two log lines on the same event
LOCAL = Caller("local", "admin")
MAX_WAITING = 64
MAX_RELOADS = 8


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
        self.explain_pool = BoundedPool(max(1, settings.threads // 2), MAX_WAITING, "explain")  # the longest has its own
        self.reload_pool = BoundedPool(1, MAX_RELOADS, "reload")  # one at a time: the last one reads the newest files
        self.review_pool = BoundedPool(1, 10_000, "reviews")  # the one thread that uses the review store
        room = settings.limits.open_reviews, settings.limits.review_bytes
        self.reviews = None if settings.reviews is None else ReviewStore(settings.reviews, *room)
        self.summing = asyncio.Lock()  # one summary of all reviews at a time
        self.background, self.not_queued = BackgroundTasks(self.memory), RareLog()

    def close(self) -> None:
        """Finish running work and close files."""
        pools = (self.slow_pool, self.reload_pool, self.explain_pool, self.table_pool, self.review_pool)
        for part in (self.batcher, *pools, self.reviews):
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
