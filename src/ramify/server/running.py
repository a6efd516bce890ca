"""A server process: it listens, reads models anew when told to, and stops when everyone has been answered."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from ramify.errors import InputError, RamifyError
from ramify.server.app import make_app
from ramify.server.middleware import tell
from ramify.server.model_registry import set_aside
from ramify.server.services import Services

LAST_WORDS = 30  # seconds for requests under way when the server stops
YOUNG = (20_000, 20, 50)  # new objects before garbage is looked for
TURN = 0.001  # seconds after which a thread lets others go on: answers are short, and nobody should wait long


def run(services: Services, ready: Callable[[str], None]) -> None:
    """Serve until told to stop; `ready` is told the address once it can be used."""
    settings = services.settings
    try:
        listening = _listen(settings.host, settings.port)
    except OSError as error:
        services.close()
        why = "another --port may be free" if error.errno == errno.EADDRINUSE else "give another --host or --port"
        raise InputError(f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}; {why}.") from None
    config = uvicorn.Config(
        make_app(services),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=LAST_WORDS,
        h11_max_incomplete_event_size=1 << 16,
    )
    sys.setswitchinterval(TURN)
    set_aside()
    gc.set_threshold(*YOUNG)
    _Server(config, services, ready).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    family, kind, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, services: Services, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._services, self._ready = services, ready
        self._under_way: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        loop = asyncio.get_running_loop()
        with suppress(NotImplementedError, AttributeError):  # there are systems without this signal
            loop.add_signal_handler(signal.SIGHUP, self._begin_reload)
        assert sockets
        port = sockets[0].getsockname()[1]
        host = self.config.host.strip("[]")
        host = f"[{host}]" if ":" in host else host
        self._ready(f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        under_way = len(self.server_state.tasks)
        if under_way:
            tell("stopping", under_way=under_way, seconds_at_most=LAST_WORDS)
        await super().shutdown(sockets)
        if self.force_exit:  # told twice: what ends in the middle need not complain
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._captured_signals.clear()  # they were asked for, and are no reason to end with a fault

    def _begin_reload(self) -> None:
        task = asyncio.create_task(self._reload())
        self._under_way.add(task)  # kept until it is done, as the event loop does not
        task.add_done_callback(self._under_way.discard)

    async def _reload(self) -> None:
        """Read every model anew; one that cannot be read leaves its old one in use."""
        for served in list(self._services.shelf):
            try:
                await self._services.heavy.run(None, self._services.shelf.reload, served.name)
                self._services.measures.loaded(served.name)
                tell("model read anew", model=served.name)
            except RamifyError as error:
                tell("the old model stays", logging.WARNING, model=served.name, problem=str(error))
