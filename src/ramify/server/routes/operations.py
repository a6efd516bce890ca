"""Health, metrics and session."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Response

from ramify.server.dependencies import Parts, Reader, refusals
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
    settings, limits = services.settings, services.settings.limits
    allowed: dict[str, Any] = {name: getattr(limits, name) for name in ("texts", "characters", "body_bytes", "upload_bytes")}
    return Session(
        name=caller.name,
        role=caller.role,  # type: ignore[arg-type]
        needs_key=settings.keys is not None,
        version=version("ramify"),
        reviews=settings.reviews is not None,
        review_below=settings.review_below,
        models=[served.name for served in services.registry],
        limits={**allowed, "seconds": limits.seconds},  # type: ignore[arg-type]
    )
