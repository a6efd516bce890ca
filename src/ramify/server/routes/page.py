"""The web page: static files that come with Ramify."""

from __future__ import annotations

from importlib.resources import files
from typing import Annotated

from fastapi import APIRouter, Path, Response

from ramify.server.dependencies import refusals
from ramify.server.errors import ApiError

router = APIRouter(include_in_schema=False)

KINDS = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8"}
KINDS |= {"js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FILES = {  # every file of the page with its content type; no other file can be sent
    entry.name: (entry.read_bytes(), KINDS[kind])
    for entry in files("ramify.server").joinpath("page").iterdir()
    if entry.is_file() and (kind := entry.name.rpartition(".")[2]) in KINDS
}
FRESH = {"cache-control": "no-cache"}


@router.get("/")
async def index() -> Response:
    """The page itself."""
    return _send("index.html")


@router.get("/page/{name}", responses=refusals(404))
async def part(name: Annotated[str, Path(max_length=80)]) -> Response:
    """A part of the page."""
    return _send(name)


def _send(name: str) -> Response:
    if name not in FILES:
        raise ApiError(404, "not-found", "there is nothing of that name.")
    content, kind = FILES[name]
    return Response(content, headers={**FRESH, "content-type": kind})
