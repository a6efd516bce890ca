"""Reloading models: one at a time, without a trace of the old ones, however often somebody asks for it."""

import asyncio
import gc
import threading
import weakref
from types import SimpleNamespace

import pytest
import uvicorn

from ramify.server import model_registry, running
from ramify.server.errors import ApiError
from ramify.server.model_registry import ModelRegistry, ServedModel, freeze_garbage
from ramify.server.predictions import explain_text
from ramify.server.services import MAX_RELOADS, Services
from ramify.server.settings import Settings
from ramify.workflows import PredictOptions


@pytest.fixture
def no_collection():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_a_replaced_model_is_freed_at_once_whatever_it_was_used_for(models, monkeypatch):
    monkeypatch.setattr(model_registry, "freeze_garbage", lambda: None)
    registry = ModelRegistry({"m": models["support"]})
    served = registry.find("m")
    served.predict(PredictOptions(top=3, within=("furniture",) if "furniture" in served.taxonomy else ()), ["a chair"])
    served.with_rule("best", {}).predict(PredictOptions(), ["a chair"])
    explain_text(served, "the screen stays dark", None, None)
    assert served.search_lines
    old = weakref.ref(served.classifier)
    del served
    registry.reload("m")
    assert old() is None


def test_a_reload_scans_only_what_is_new():
    freeze_garbage()
    frozen = gc.get_freeze_count()
    freeze_garbage()
    assert gc.get_freeze_count() >= frozen / 2
    scanned = []
    gc.callbacks.append(lambda phase, info: scanned.append(len(gc.get_objects())) if phase == "start" else None)
    try:
        freeze_garbage()
    finally:
        gc.callbacks.pop()
    assert max(scanned) < frozen / 2


def test_reloads_run_one_at_a_time_and_few_may_wait(models, monkeypatch):
    under_way, most, may_end, real = [], [], threading.Event(), ServedModel.load

    def load(name, path):
        under_way.append(name)
        most.append(len(under_way))
        may_end.wait(60)
        under_way.pop()
        return real(name, path)

    async def main():
        services = Services(Settings({"m": models["support-nb"]}))
        monkeypatch.setattr(ServedModel, "load", load)
        run = services.reload_pool.run
        asked = [asyncio.create_task(run(None, services.registry.reload, "m")) for _ in range(MAX_RELOADS + 3)]
        await asyncio.sleep(0)
        may_end.set()
        found = await asyncio.gather(*asked, return_exceptions=True)
        services.close()
        return found

    found = asyncio.run(main())
    assert max(most) == 1
    refused = [each for each in found if isinstance(each, ApiError)]
    assert [each.status for each in refused] == [503] * 2


@pytest.mark.parametrize("failure", [None, OSError("a bug")], ids=["well", "with a bug"])
def test_a_flood_of_signals_reloads_once_more_and_the_next_signal_again(failure):
    reloaded = []

    async def reload(seconds, work, name):
        reloaded.append(name)
        await asyncio.sleep(0)
        if failure is not None:
            raise failure

    class Registry(list):
        reload = None

    registry = Registry([SimpleNamespace(name="a"), SimpleNamespace(name="b")])
    metrics = SimpleNamespace(loaded=SimpleNamespace(labels=lambda name: SimpleNamespace(set_to_current_time=lambda: None)))
    services = SimpleNamespace(registry=registry, reload_pool=SimpleNamespace(run=reload), metrics=metrics)

    async def main():
        server = running._Server(uvicorn.Config(lambda: None, log_config=None), services, print, None)
        for _ in range(2):
            server._begin_reload()
            await asyncio.sleep(0)
            for _ in range(100):
                server._begin_reload()
            while server._under_way:
                await asyncio.sleep(0)

    asyncio.run(main())
    assert reloaded == ["a", "b"] * 4
