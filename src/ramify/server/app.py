"""The server as one ASGI application."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from inspect import signature
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ramify.errors import LabelError, RamifyError
from ramify.server.errors import ApiError, defect, gone
from ramify.server.middleware import NEEDS_KEY, RequestMiddleware, refusal
from ramify.server.routes import batch, classify, evaluate, models, operations, reviews, tables, taxonomy
from ramify.server.services import Services

ABOUT = """Classifies text into a taxonomy. Every refusal has the form `{"error": {"code": …, "message": …}}`."""
ROUTERS = (classify, batch, taxonomy, evaluate, tables, reviews, models, operations)  # the busiest first
NO_TELEMETRY: dict[str, Any] = {"telemetry": {"tracing": False, "metrics": False, "logs": False}}  # it has its own


def make_app(services: Services) -> RequestMiddleware:
    """The application for these services; it closes them when it stops."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.openapi()  # kept: the first to ask for it should delay nobody
        yield
        await asyncio.to_thread(services.close)  # close() joins threads that may need this loop

    # no documentation pages: FastAPI's load scripts from other sites
    app = FastAPI(
        title="Ramify",
        version=version("ramify"),
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        exception_handlers=HANDLERS,
        **(NO_TELEMETRY if "telemetry" in signature(FastAPI).parameters else {}),  # only newer FastAPI has it
    )
    app.state.services = services
    for part in ROUTERS:
        app.include_router(part.router)
    if services.keys is not None:
        _describe_keys(app)
    return RequestMiddleware(app, services)


def _describe_keys(app: FastAPI) -> None:
    """Say in the OpenAPI schema which routes need a key; the middleware checks it."""
    described, about = app.openapi(), "A key made with 'ramify keys add'."
    described["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": about}}
    for path, methods in described["paths"].items():
        for operation in methods.values():
            if path.startswith(NEEDS_KEY):
                operation["security"] = [{"key": []}]


async def _handle_ramify_error(request: Request, error: Any) -> Response:
    if not isinstance(error, ApiError):
        status, code = (404, "unknown-label") if isinstance(error, LabelError) else (422, "misfit")
        error = ApiError(status, code, str(error))
    return _refusal(request, error)


async def _handle_validation_error(request: Request, error: Any) -> Response:
    """The first validation error in one sentence, without any text of a document."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _refusal(request, ApiError(400, "no-json", "the body is not valid JSON."))
    place = ".".join(str(part) for part in first["loc"][:6])[:200]
    return _refusal(request, ApiError(422, "misfit", f"{place}: {first['msg'].removeprefix('Value error, ')}."))


async def _handle_http_error(request: Request, error: Any) -> Response:
    if isinstance(error.__cause__, ApiError):  # raised while the body was read
        return _refusal(request, error.__cause__)
    if error.status_code == 404:
        found = ApiError(404, "not-found", "there is nothing at this address; see /openapi.json.")
    elif error.status_code == 405:
        found = ApiError(405, "method", "this address does not take that method; see /openapi.json.")
        # all methods of the path, from the OpenAPI schema: each route has one only
        paths = request.app.openapi()["paths"].items()
        patterns = ((re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(template)), methods) for template, methods in paths)
        at = next((methods for pattern, methods in patterns if re.fullmatch(pattern, request.scope["path"])), ("GET",))
        return _refusal(request, found, {"allow": ", ".join(sorted(method.upper() for method in at))})
    else:
        found = ApiError(error.status_code, "unreadable", "the body cannot be read; send JSON in UTF-8.")
    return _refusal(request, found, dict(error.headers or {}))


async def _handle_disconnect(request: Request, error: Any) -> Response:
    return _refusal(request, gone())


async def _handle_bug(request: Request, error: Any) -> Response:
    return _refusal(request, defect())


HANDLERS: dict[Any, Any] = {RamifyError: _handle_ramify_error, RequestValidationError: _handle_validation_error}
HANDLERS |= {HTTPException: _handle_http_error, ClientDisconnect: _handle_disconnect, Exception: _handle_bug}


def _refusal(request: Request, error: ApiError, headers: dict[str, str] | None = None) -> Response:
    request.state.code = error.code
    return refusal(error, headers)
