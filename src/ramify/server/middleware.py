"""Middleware of every request: access checks, size limits, security headers, metrics and logs.

Logs have one line per event, as JSON or as plain text; document text is logged only with --log-text.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ramify.server.bounds import CURRENT, Call, MemoryBudget
from ramify.server.errors import ApiError, defect, too_large
from ramify.server.services import Services
from ramify.server.settings import ConnectionLimits

SHOWN = 200  # characters of a document in a log line

log = logging.getLogger("ramify.server")


class LogLines(logging.Formatter):
    """One line per event: a JSON object, or plain text for a terminal."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """The time, what happened, and the fields."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = vars(record).get("fields", {})
        failure = self.formatException(record.exc_info) if record.exc_info else None
        if self._as_json:
            values = {"time": at, "level": record.levelname.lower(), "event": record.getMessage(), **fields}
            return json.dumps(values | ({"exception": failure} if failure else {}), ensure_ascii=True, default=str)
        shown = " ".join(f"{name}={_plain(value)}" for name, value in fields.items())
        line = f"{at[11:19]} {record.getMessage()} {shown}".rstrip()
        return f"{line}\n{failure}" if failure else line


def log_event(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with its fields; those that are None are left out."""
    if log.isEnabledFor(level):
        log.log(level, event, extra={"fields": {name: value for name, value in fields.items() if value is not None}})


def log_to_stderr(as_json: bool, level: str = "info") -> None:
    """Send the logs of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines(as_json))
    for name in ("ramify", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel("WARNING")


def _plain(value: Any) -> str:
    """A value on one line; what could move the cursor is escaped."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text.strip('"') if isinstance(value, str) and " " not in value else text


NEEDS_KEY = ("/v1/", "/metrics")  # paths that need a key, if the server has keys
ONCE = {b"host", b"authorization", b"content-type", b"content-length", b"origin"}  # headers; a second one could mislead a proxy
SAFE = ("GET", "HEAD", "OPTIONS")
METHODS = (*SAFE, "POST", "PUT", "PATCH", "DELETE")
UPLOADS = ("/v1/batch", "/v1/evaluate", "/v1/tables/csv")
JSON_COST = 16  # bytes of memory for each byte of a JSON request: the texts, their vectors, and the answer
COSTS = {"/v1/batch": 0, "/v1/evaluate": 0, "/v1/tables/csv": 3}  # their routes reserve what else they need
PIECE = 1 << 16  # bytes of an answer that are sent at a time; a smaller answer needs no reservation
BODY_COPIES = 2  # of a request that are held while its answer is sent: bytes and texts
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", POLICY.encode()),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class WrongKeys:
    """Answers wrong keys late, a few at a time from each address, so that guessing and flooding are slow."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._waiting: Counter[str] = Counter()

    async def delay(self, address: str, error: ApiError) -> ApiError:
        """Wait, and give the error to send; more than a few at a time get another one at once, and their connection ends."""
        if self._waiting[address] >= self._limits.wrong_keys:
            return ApiError(429, "wrong-keys", "too many wrong keys came from your address; try again in a moment.", 1)
        self._waiting[address] += 1
        try:
            await asyncio.sleep(self._limits.wrong_key_seconds)
        finally:
            self._waiting[address] -= 1
            if not self._waiting[address]:
                del self._waiting[address]
        return error


class RequestMiddleware:
    """ASGI middleware around the application; plain ASGI, so nothing is buffered."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app, self._services = app, services
        self._hosts, self._wrong_keys = services.settings.allowed_hosts, WrongKeys(services.settings.connection_limits)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, pass it on or refuse it; count and log it either way."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limits = self._services.settings.limits
        limit = limits.upload_bytes if scope["path"] in UPLOADS else limits.body_bytes
        logged = _RequestLog(receive, send, limit, self._services.memory, COSTS.get(scope["path"], JSON_COST))
        logged.call.has_all = scope["method"] in SAFE  # their bodies are not read
        try:
            self._check(scope, limit)
            CURRENT.set(logged.call)
            scope["state"]["reserve"] = logged.call.reserve
            await self._app(scope, logged.receive, logged.send)
        except ApiError as error:
            if error.code == "wrong-key":
                error = await self._wrong_keys.delay(_address(scope), error)
            logged.code = error.code
            if not logged.has_begun:
                await send_refusal(logged.send, error)
        except ClientDisconnect:
            logged.code = "gone"
        except Exception:
            refused = logged.refused  # raised by send; the application cannot know what to do then
            if refused is None:
                log.error("defect", exc_info=True, extra={"fields": {"path": str(scope.get("path"))[:200]}})
            else:
                logged.code = refused.code
            if not logged.has_begun:
                await send_refusal(logged.send, refused or defect())
        finally:
            logged.call.end()
            self._note(scope, logged)

    def _check(self, scope: Scope, limit: int) -> None:
        """Refuse a request before its body is read; record the caller of an allowed one."""
        headers = dict(scope["headers"])
        names = [name for name, _ in scope["headers"] if name in ONCE]
        if len(names) != len(set(names)):
            raise ApiError(400, "headers", "a header is there twice that may be there once only.")
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if self._hosts is not None and name not in self._hosts:
            raise ApiError(403, "foreign-host", "the server does not answer to that name; start it with --host-name NAME.")
        # CSRF: a page of another site must not send requests in the name of its visitor
        origin, place = headers.get(b"origin"), None
        with suppress(ValueError):
            place = urlsplit((origin or b"").decode("latin-1")).netloc.lower()
        if origin is not None and scope["method"] not in SAFE and place != host:
            raise ApiError(403, "foreign-origin", "the request comes from the page of another site.")
        length = headers.get(b"content-length", b"")
        if length.isdigit() and (len(length) > 20 or int(length) > limit):
            raise too_large(limit)
        state = scope.setdefault("state", {})
        if scope["path"].startswith(NEEDS_KEY):
            caller = self._services.find_caller(headers.get(b"authorization"))
            state["who"], state["caller"] = caller, caller.name

    def _note(self, scope: Scope, logged: _RequestLog) -> None:
        seconds = perf_counter() - logged.began
        route = getattr(scope.get("route"), "path", None) or "(none)"
        method = scope["method"] if scope["method"] in METHODS else "other"
        metrics = self._services.metrics
        metrics.requests.labels(route, method, str(logged.status)).inc()
        metrics.seconds.labels(route).observe(seconds)
        state = scope.get("state", {})
        fields = {"method": method, "route": route, "path": scope["path"][:200] if route == "(none)" else None}
        fields |= {"status": logged.status, "code": state.get("code") or logged.code, "ms": round(1000 * seconds, 2)}
        fields |= {"caller": state.get("caller"), "client": _address(scope)}
        fields |= {"documents": state.get("documents"), "text": state.get("text")}
        log_event("request", logging.INFO if logged.status < 500 else logging.WARNING, **fields)


class _RequestLog:
    """The status, size and duration of one request; what it receives and sends is counted in its call."""

    def __init__(self, receive: Receive, send: Send, limit: int, memory: MemoryBudget, cost: int) -> None:
        self._receive, self._send, self._limit, self._cost = receive, send, limit, cost
        self._came, self._is_large = 0, False
        self.call = Call(memory, self._wait_until_gone)
        self.began, self.status = perf_counter(), 499  # 499: the client closed the connection before a response
        self.code: str | None = None
        self.refused: ApiError | None = None
        self.has_begun = False

    async def receive(self) -> Message:
        call = self.call
        if call.has_all:
            return await self._receive()
        call.reading.begin()
        message = await self._receive()
        size = len(message.get("body", b""))
        call.reading.end(size)
        if message["type"] == "http.request":
            if not message.get("more_body", False):
                call.end_reading()
            self._came += size
            if self._came > self._limit:
                raise too_large(self._limit)
            call.reserve(self._cost * size)
        return message

    async def _wait_until_gone(self) -> None:
        """Only once the whole body has arrived: nobody else receives then, except to wait for the same."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._reserve_response(message)
            self.has_begun, self.status = True, message["status"]
            message["headers"] = [*message.get("headers", ()), *HEADERS]
            await self._send(message)
            return
        body = message.get("body", b"")
        if not self._is_large or len(body) <= PIECE:  # a stream is sent as it comes
            await self._send_piece(message)
            return
        # in pieces: while the client does not read, the request lasts, and so does its reservation
        for start in range(0, len(body), PIECE):
            more = start + PIECE < len(body) or message.get("more_body", False)
            await self._send_piece({**message, "body": bytes(body[start : start + PIECE]), "more_body": more})

    async def _send_piece(self, message: Message) -> None:
        self.call.sending.begin()
        try:
            await self._send(message)
        finally:
            self.call.sending.end(len(message.get("body", b"")))

    def _reserve_response(self, start: Message) -> None:
        """Before a large answer of known length: reserve what it takes until it has been read."""
        length = next((int(value) for name, value in start.get("headers", ()) if name == b"content-length"), 0)
        self._is_large = length > PIECE
        if self._is_large:
            try:
                self.call.reserve_response(length + BODY_COPIES * self._came)
            except ApiError as error:
                self.refused = error
                raise


def _address(scope: Scope) -> str:
    return (scope.get("client") or ("",))[0]


def refusal(error: ApiError, headers: dict[str, str] | None = None) -> Response:
    """An error as a response."""
    headers = {**(headers or {}), "content-type": "application/json"}
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    if error.status == 429:
        headers["connection"] = "close"
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    body = {"error": {"code": error.code, "message": str(error)}}
    return Response(json.dumps(body, ensure_ascii=True), error.status, headers)


async def send_refusal(send: Send, error: ApiError) -> None:
    """Send an error response."""
    response = refusal(error)
    await send({"type": "http.response.start", "status": error.status, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body})
