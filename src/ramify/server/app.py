"""The server as one ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ramify.errors import LabelError, RamifyError
from ramify.server.errors import ApiError
from ramify.server.guard import Guard, error_body, error_headers
from ramify.server.routes import batch, classify, evaluate, models, operations, page, reviews, taxonomy
from ramify.server.services import Services

ABOUT = """Classifies text into a taxonomy. Every refusal has the form `{"error": {"code": …, "message": …}}`."""
ROUTERS = (operations, models, classify, batch, taxonomy, evaluate, reviews, page)


def make_app(services: Services) -> Guard:
    """The application for some models and settings; it lets go of them when it stops."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        services.close()

    # no pages of documentation: those of FastAPI load scripts from elsewhere
    app = FastAPI(
        title="Ramify", version=version("ramify"), description=ABOUT, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    app.state.services = services
    for part in ROUTERS:
        app.include_router(part.router)
    app.add_exception_handler(RamifyError, _tell_ours)
    app.add_exception_handler(RequestValidationError, _tell_misfit)
    app.add_exception_handler(HTTPException, _tell_http)
    app.add_exception_handler(Exception, _tell_defect)
    return Guard(app, services)


async def _tell_ours(request: Request, error: Any) -> Response:
    if isinstance(error, ApiError):
        return _refusal(request, error)
    return _refusal(request, ApiError(422, "unknown-label" if isinstance(error, LabelError) else "misfit", str(error)))


async def _tell_misfit(request: Request, error: Any) -> Response:
    """The first thing that does not fit, in one sentence, without the words of a document."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _refusal(request, ApiError(400, "no-json", "the body is not valid JSON."))
    place = ".".join(str(part) for part in first["loc"][:6])[:200]
    return _refusal(request, ApiError(422, "misfit", f"{place}: {first['msg'].removeprefix('Value error, ')}."))


async def _tell_http(request: Request, error: Any) -> Response:
    if isinstance(error.__cause__, ApiError):  # raised while the body was read
        return _refusal(request, error.__cause__)
    if error.status_code == 404:
        told = ApiError(404, "not-found", "there is nothing at this address; see /openapi.json.")
    elif error.status_code == 405:
        told = ApiError(405, "method", "this address does not take that method; see /openapi.json.")
    else:
        told = ApiError(error.status_code, "unreadable", "the body cannot be read; send JSON in UTF-8.")
    return _refusal(request, told, dict(error.headers or {}))


async def _tell_defect(request: Request, error: Any) -> Response:
    return _refusal(request, ApiError(500, "defect", "something went wrong inside the server; its log says more."))


def _refusal(request: Request, error: ApiError, headers: dict[str, str] | None = None) -> Response:
    request.state.code = error.code
    return Response(error_body(error.code, str(error)), error.status, {**(headers or {}), **error_headers(error)})
