"""The server process: listen, reload models on SIGHUP, finish running requests before stopping."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import uvicorn

from ramify.errors import InputError, RamifyError
from ramify.server.app import make_app
from ramify.server.connections import ConnectionLimiter, protocol_of, watch_deadlines
from ramify.server.middleware import log_event
from ramify.server.model_registry import ServedModel, freeze_garbage
from ramify.server.services import Services

GRACE_SECONDS = 30  # for running requests when the server stops
LAST_SECONDS = 5  # after that, for threads
GC_THRESHOLDS = (20_000, 20, 50)  # allocations before a collection
WATCH_SECONDS = 2.0  # between two looks at the files of the models
BACKLOG = 2048  # connections that wait to be accepted
SOCKET_BYTES = 1 << 18  # that the system keeps of each connection, in both directions; by default it may be megabytes
SWITCH_INTERVAL = 0.001  # seconds between thread switches: requests are short and should not wait long


def run(services: Services, ready: Callable[[str], None]) -> None:
    """Serve until stopped; `ready` gets the address once it can be used."""
    settings = services.settings
    listening: socket.socket | None = None
    try:
        found = socket.getaddrinfo(settings.host.strip("[]"), settings.port, type=socket.SOCK_STREAM)
        family, kind, _, _, address = found[0]
        listening = socket.socket(family, kind)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):  # connections inherit them
            listening.setsockopt(socket.SOL_SOCKET, option, SOCKET_BYTES)
        listening.bind(address)
    except OSError as error:
        if listening is not None:
            listening.close()
        services.close()
        why = "another --port may be free" if error.errno == errno.EADDRINUSE else "give another --host or --port"
        raise InputError(f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}; {why}.") from None
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # requests that are no HTTP are counted and logged below
    # X-Forwarded-For is not believed: anyone could send it
    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "proxy_headers": False}
    limiter = ConnectionLimiter(settings.connection_limits, services.metrics.count_ended)
    services.metrics.connections.set_function(lambda: len(limiter.open))
    limits: dict[str, Any] = {"timeout_keep_alive": 30, "timeout_graceful_shutdown": GRACE_SECONDS}
    limits |= {"http": protocol_of(limiter), "ws": "none", "backlog": BACKLOG}
    config = uvicorn.Config(make_app(services), settings.host, settings.port, lifespan="on", **quiet, **limits)
    sys.setswitchinterval(SWITCH_INTERVAL)
    freeze_garbage()
    gc.set_threshold(*GC_THRESHOLDS)
    _Server(config, services, ready, limiter).run(sockets=[listening])


def end_process_in(seconds: float) -> None:
    """End this process later, if it still runs: a thread that works for a request that was given up cannot be ended."""

    def end() -> None:
        log_event("stopped while threads were at work", logging.WARNING)
        os._exit(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, services: Services, ready: Callable[[str], None], limiter: ConnectionLimiter
    ) -> None:
        super().__init__(config)
        self._services, self._ready, self._limiter = services, ready, limiter
        self._under_way: set[asyncio.Task[None]] = set()
        self._reloads = 0  # signals to reload that were not followed yet

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, AttributeError):  # some systems lack this signal
            loop.add_signal_handler(signal.SIGHUP, self._begin_reload)
        self._begin(watch_deadlines(self._limiter))
        self._begin(self._watch_models())
        assert sockets
        host = self.config.host.strip("[]")
        self._ready(f"http://{f'[{host}]' if ':' in host else host}:{sockets[0].getsockname()[1]}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if under_way := len(self.server_state.tasks):
            log_event("stopping", under_way=under_way, seconds_at_most=GRACE_SECONDS)
        end_process_in(GRACE_SECONDS + LAST_SECONDS)
        for task in self._under_way:
            task.cancel()
        await super().shutdown(sockets)
        if self.force_exit:  # second signal: do not log the requests that it cuts off
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._captured_signals.clear()  # a requested stop is not a failure

    def _begin_reload(self) -> None:
        """Reload, or once more after the reload under way, however many signals came meanwhile."""
        self._reloads += 1
        if self._reloads == 1:
            self._begin(self._reload())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._under_way.add(task)  # the event loop holds no reference to it
        task.add_done_callback(self._under_way.discard)

    async def _watch_models(self) -> None:
        """Log once when the files of a model are others than those that were loaded."""
        told: set[ServedModel] = set()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            changed = await asyncio.to_thread(lambda: {served for served in self._services.registry if served.has_changed})
            for served in changed - told:
                log_event("model files changed, old model stays in use until it is reloaded", model=served.name)
            told = changed

    async def _reload(self) -> None:
        """Reload every model until no new signal has come; one that fails to load stays in use as it was."""
        while self._reloads:
            followed = self._reloads
            for served in list(self._services.registry):
                await self._reload_model(served.name)
            self._reloads = min(1, self._reloads - followed)

    async def _reload_model(self, name: str) -> None:
        try:
            await self._services.reload_pool.run(None, self._services.registry.reload, name)
            self._services.metrics.loaded.labels(name).set_to_current_time()
            log_event("model reloaded", model=name)
        except RamifyError as error:
            log_event("reload failed, old model stays in use", logging.WARNING, model=name, problem=str(error))
        except Exception:  # the next signal must find a server that still reloads
            logging.getLogger("ramify.server").error("defect", exc_info=True)
