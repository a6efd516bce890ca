"""Health, metrics and session; the web page, whose static files come with Ramify."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Path, Response

from ramify.server.dependencies import Parts, Reader, refusals
from ramify.server.errors import ApiError
from ramify.server.schemas import Health, Session
from ramify.server.services import CONTENT_TYPE

router = APIRouter(tags=["operations"])


@router.get("/healthz", responses={403: refusals()[403]})
async def healthz(services: Parts) -> Health:
    """Whether the server is running; needs no key."""
    return Health(status="ok", models=len(services.registry))


@router.get(
    "/metrics",
    response_class=Response,
    responses={**refusals(), 200: {"content": {CONTENT_TYPE.replace("; charset=utf-8", ""): {"schema": {"type": "string"}}}}},
)
async def metrics(services: Parts, caller: Reader) -> Response:
    """Metrics for Prometheus."""
    return Response(services.metrics.text(), headers={"content-type": CONTENT_TYPE})


@router.get("/v1/session", responses=refusals())
async def session(services: Parts, caller: Reader) -> Session:
    """The caller, and what the server offers."""
    settings = services.settings
    return Session(
        name=caller.name,
        role=caller.role,  # type: ignore[arg-type]
        needs_key=settings.keys is not None,
        version=version("ramify"),
        reviews=settings.reviews is not None,
        review_below=settings.review_below,
        models=[served.name for served in services.registry],
        limits=settings.limits,  # type: ignore[arg-type]
    )


KINDS = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8"}
KINDS |= {"js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FILES = {  # every file of the page with its content type; no other file can be sent
    entry.name: (entry.read_bytes(), KINDS[kind])
    for entry in files("ramify.server").joinpath("page").iterdir()
    if entry.is_file() and (kind := entry.name.rpartition(".")[2]) in KINDS
}


@router.get("/", include_in_schema=False)
async def index() -> Response:
    """The page itself."""
    return await page("index.html")


@router.get("/page/{name}", include_in_schema=False)
async def page(name: Annotated[str, Path(max_length=80)]) -> Response:
    """A part of the page."""
    if name not in FILES:
        raise ApiError(404, "not-found", "there is nothing of that name.")
    content, kind = FILES[name]
    return Response(content, headers={"cache-control": "no-cache", "content-type": kind})
