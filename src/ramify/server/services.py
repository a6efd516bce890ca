"""What the server counts, for Prometheus. The only file that names prometheus_client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from ramify.server.errors import ApiError, busy, too_slow
from ramify.server.keys import Caller, KeyRing
from ramify.server.micro_batching import Gatherer
from ramify.server.model_registry import Served, Shelf
from ramify.server.reviews import ReviewStore
from ramify.server.settings import Settings
from ramify.workflows import PredictOptions

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Measures:
    """Counts of one server; a server in the same process has its own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Counter("ramify_requests", "Requests.", ("route", "method", "status"), registry=registry)
        self._seconds = Histogram(
            "ramify_request_seconds", "Time from request to answer.", ("route",), buckets=SECONDS, registry=registry
        )
        self._documents = Counter("ramify_documents", "Documents classified.", ("model", "route"), registry=registry)
        self._sizes = Histogram("ramify_batch_size", "Texts classified together.", buckets=SIZES, registry=registry)
        self.waiting = Gauge("ramify_waiting_texts", "Texts that wait for their turn.", registry=registry)
        self._reviews = Counter("ramify_reviews", "Documents queued, and decisions.", ("what",), registry=registry)
        self._loaded = Gauge(
            "ramify_model_loaded_seconds", "When a model was read, in Unix time.", ("model",), registry=registry
        )

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def documents(self, model: str, route: str, count: int) -> None:
        """Documents were classified."""
        self._documents.labels(model, route).inc(count)

    def batch(self, size: int) -> None:
        """So many texts were classified together."""
        self._sizes.observe(size)

    def review(self, what: str, count: int = 1) -> None:
        """Documents were queued, or a decision was made."""
        self._reviews.labels(what).inc(count)

    def loaded(self, model: str) -> None:
        """A model was read."""
        self._loaded.labels(model).set_to_current_time()

    def text(self) -> bytes:
        """All counts, as Prometheus reads them."""
        return generate_latest(self._registry)


# --------------------------------------------------------------------------------------------------------------
# What the routes of one server share.


Result = TypeVar("Result")
Given = ParamSpec("Given")

LOCAL = Caller("local", "admin")
HEAVY_WAITING = 64


class Places:
    """Room for a few at once."""

    def __init__(self, count: int) -> None:
        self._free = count

    def enter(self, what: str) -> None:
        """Take a place, or be told that there is none."""
        if not self._free:
            raise busy(what)
        self._free -= 1

    def leave(self) -> None:
        """Give the place back."""
        self._free += 1


class Turns:
    """A few threads for work that takes its time; beyond so many that wait, there is no room."""

    def __init__(self, workers: int, waiting: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
        self._room = workers + waiting

    async def run(
        self, seconds: float | None, work: Callable[Given, Result], *args: Given.args, **options: Given.kwargs
    ) -> Result:
        """What the work gives; it goes on in its thread when it takes too long, but nobody waits for it."""
        if self._room <= 0:
            raise busy("other long work is under way")
        self._room -= 1
        done = asyncio.get_running_loop().run_in_executor(self._pool, lambda: work(*args, **options))
        done.add_done_callback(self._end)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(done)
        except TimeoutError:
            raise too_slow(seconds or 0) from None

    def _end(self, done: asyncio.Future[Any]) -> None:
        self._room += 1
        if not done.cancelled():
            done.exception()  # heard of, also where nobody waits any more

    def close(self) -> None:
        """Take no more work, and wait for what is under way."""
        self._pool.shutdown(wait=True, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running server.

    uploads: places for tables. tables: threads for them. heavy: those for other work that takes its time. desk: the one thread
    that uses the review store.
    """

    settings: Settings
    shelf: Shelf
    gatherer: Gatherer
    uploads: Places
    heavy: Turns
    desk: Turns
    tables: Turns
    measures: Measures
    keys: KeyRing | None
    reviews: ReviewStore | None

    @classmethod
    def start(cls, settings: Settings) -> Services:
        """Load the models, and open what the server needs."""
        settings.check()
        keys = None if settings.keys is None else KeyRing(settings.keys)
        measures = Measures()
        shelf = Shelf(settings.models)
        for served in shelf:
            measures.loaded(served.name)
        gatherer = Gatherer(settings.threads, settings.limits.waiting, measures.batch)
        measures.waiting.set_function(lambda: gatherer.waiting)
        return cls(
            settings=settings,
            shelf=shelf,
            gatherer=gatherer,
            uploads=Places(settings.limits.uploads),
            heavy=Turns(settings.threads, HEAVY_WAITING, "heavy"),
            desk=Turns(1, 10_000, "reviews"),
            tables=Turns(settings.limits.uploads, HEAVY_WAITING, "tables"),
            measures=measures,
            keys=keys,
            reviews=None if settings.reviews is None else ReviewStore(settings.reviews),
        )

    def close(self) -> None:
        """Finish what is under way, and let go of files."""
        self.gatherer.close()
        self.heavy.close()
        self.tables.close()
        self.desk.close()
        if self.reviews is not None:
            self.reviews.close()

    def find_caller(self, authorization: bytes | None) -> Caller:
        """Whoever has a key; everyone where none is needed."""
        if self.keys is None:
            return LOCAL
        kind, _, given = (authorization or b"").decode("latin-1").partition(" ")
        key = given.strip() if kind.lower() == "bearer" else None
        caller = None if key is None else self.keys.find(key)
        if caller is None:
            if key is None:
                raise ApiError(401, "no-key", "a key is needed, and none came; send 'Authorization: Bearer KEY'.")
            raise ApiError(401, "wrong-key", "the key is not known; ask whoever runs the server for one.")
        return caller

    async def on_reviews(self, work: Callable[..., Result], *args: Any, **options: Any) -> Result:
        """What a method of the review store gives."""
        return await self.desk.run(self.settings.limits.seconds, work, *args, **options)

    def require_reviews(self) -> ReviewStore:
        """The review store, where there is one."""
        if self.reviews is None:
            raise ApiError(404, "no-reviews", "this server keeps no reviews; start it with --reviews FILE.")
        return self.reviews

    async def classify(self, served: Served, options: PredictOptions, texts: list[str]) -> list[dict[str, Any]]:
        """Labels and further ones of each text."""
        work = partial(served.answer, options)
        return list(await self.gatherer.ask((served, options), work, served.pace, texts, self.settings.limits.seconds))
