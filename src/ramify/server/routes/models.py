"""The models that the server has."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from ramify.errors import RamifyError
from ramify.server.dependencies import Admin, Parts, Reader, refusals
from ramify.server.errors import ApiError
from ramify.server.model_registry import Served, Shelf
from ramify.server.schemas import Model, Models, StoredReport

router = APIRouter(prefix="/v1/models", tags=["models"])

ModelName = Annotated[str, Path(max_length=64, description="The model's name.")]


@router.get("", responses=refusals())
async def list_models(services: Parts, caller: Reader) -> Models:
    """All models; the default comes first."""
    return Models(models=[_told(services.shelf, served) for served in services.shelf])


@router.get("/{model}", responses=refusals(404))
async def get_model(services: Parts, caller: Reader, model: ModelName) -> Model:
    """One model."""
    return _told(services.shelf, services.shelf.find(model))


@router.get("/{model}/report", responses=refusals(404))
async def get_report(services: Parts, caller: Reader, model: ModelName) -> StoredReport:
    """How the model did when it was trained."""
    served = services.shelf.find(model)
    if served.classifier.report_ is None:
        raise ApiError(404, "no-report", "the model was not tested when it was trained; send a table to /v1/evaluate.")
    return StoredReport(model=served.name, report=served.classifier.report_)


@router.post("/{model}/reload", responses=refusals(404, 409))
async def reload_model(services: Parts, caller: Admin, model: ModelName) -> Model:
    """Read the model anew from its directory; requests under way are answered by the old one."""
    services.shelf.find(model)
    try:
        served = await services.heavy.run(services.settings.limits.upload_seconds, services.shelf.reload, model)
    except ApiError:
        raise
    except RamifyError as error:
        raise ApiError(409, "bad-model", f"the old model stays in use: {error}") from None
    services.measures.loaded(served.name)
    return _told(services.shelf, served)


def _told(shelf: Shelf, served: Served) -> Model:
    return Model(**served.about(), is_default=served.name == shelf.default)
