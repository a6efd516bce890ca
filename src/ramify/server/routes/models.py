"""List, describe and reload models."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path

from ramify.errors import RamifyError
from ramify.server.dependencies import Admin, Parts, Reader, refusals
from ramify.server.errors import ApiError
from ramify.server.model_registry import ModelRegistry, ServedModel
from ramify.server.schemas import Model, Models, StoredReport

router = APIRouter(prefix="/v1/models", tags=["models"])

ModelName = Annotated[str, Path(max_length=64, description="The model's name.")]


@router.get("", responses=refusals())
async def list_models(services: Parts, caller: Reader) -> Models:
    """All models; the default comes first."""
    # in a thread, since it looks at files, which may be on a disk that does not answer
    return Models(models=[await asyncio.to_thread(_to_schema, services.registry, served) for served in services.registry])


@router.get("/{model}", responses=refusals(404))
async def get_model(services: Parts, caller: Reader, model: ModelName) -> Model:
    """One model."""
    return await asyncio.to_thread(_to_schema, services.registry, services.registry.find(model))


@router.get("/{model}/report", responses=refusals(404))
async def get_report(services: Parts, caller: Reader, model: ModelName) -> StoredReport:
    """The report of the model's training."""
    served = services.registry.find(model)
    if served.classifier.report_ is None:
        raise ApiError(404, "no-report", "the model was not tested when it was trained; send a table to /v1/evaluate.")
    return StoredReport(model=served.name, report=served.classifier.report_)


@router.post("/{model}/reload", responses=refusals(404, 409))
async def reload_model(services: Parts, caller: Admin, model: ModelName) -> Model:
    """Load the model again from its directory; running requests use the old one."""
    services.registry.find(model)
    try:
        served = await services.reload_pool.run(services.settings.limits.upload_seconds, services.registry.reload, model)
    except ApiError:
        raise
    except RamifyError as error:
        raise ApiError(409, "bad-model", f"the old model stays in use: {error}") from None
    services.metrics.loaded.labels(served.name).set_to_current_time()
    return await asyncio.to_thread(_to_schema, services.registry, served)


def _to_schema(registry: ModelRegistry, served: ServedModel) -> Model:
    classifier, taxonomy, figures = served.classifier, served.taxonomy, served.classifier.figures_
    guarantee = None if classifier.guarantee_ is None else classifier.guarantee_.about()
    return Model(
        name=served.name,
        system=classifier.system,
        rule=classifier.decision_.kind,
        nodes=len(taxonomy),
        leaves=int(taxonomy.is_leaf.sum()),
        levels=taxonomy.n_levels,
        documents=figures["documents"],
        features=classifier.vectorizer_.n_features_out,
        is_multi_label=classifier.form_.multi_label,
        is_tree=taxonomy.is_tree,
        is_default=served.name == registry.default,
        loaded_at=served.loaded_at,
        has_changed=served.has_changed,
        has_report=classifier.report_ is not None,
        evaluation=figures.get("evaluation"),
        tested_on=figures.get("tested_on"),
        guarantee=guarantee,  # type: ignore[arg-type]
    )
