"""What the server counts, for Prometheus. The only file that names prometheus_client."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

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
