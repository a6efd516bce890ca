"""What the routes share: places, turns, and an end that waits for no one who waits for it."""

from __future__ import annotations

import asyncio
import threading

from starlette.testclient import TestClient

from ramify.server.app import make_app
from ramify.server.services import Services
from ramify.server.settings import Limits, Settings


def test_a_server_ends_while_one_of_its_threads_waits_for_its_loop(models):
    services = Services(Settings(models))
    done = threading.Event()

    async def main():
        app, loop = make_app(services), asyncio.get_running_loop()
        lifespan = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        messages: asyncio.Queue[dict[str, str]] = asyncio.Queue()

        async def send(message):
            pass

        running = asyncio.create_task(app(lifespan, messages.get, send))
        await messages.put({"type": "lifespan.startup"})
        begun = threading.Event()

        def work():
            begun.set()
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0.3), loop).result()

        waiting = asyncio.create_task(services.table_pool.run(None, work))
        await asyncio.to_thread(begun.wait)
        await messages.put({"type": "lifespan.shutdown"})
        await running
        await waiting
        done.set()

    threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
    assert done.wait(10), "the loop waits for a thread that waits for the loop"


# ---- memory ---------------------------------------------------------------------------------------------------------------


def serving_with(models, memory_bytes):
    settings = Settings({"m": models["support-nb"]}, limits=Limits(memory_bytes=memory_bytes))
    return TestClient(make_app(Services(settings)), base_url="http://localhost")


def test_a_request_that_needs_more_memory_than_the_server_has_is_refused_and_gives_it_back(models):
    with serving_with(models, 1_000_000) as client:
        services = client.app._services
        large = {"texts": ["dark " * 20_000]}
        assert client.post("/v1/classify", json=large).json()["error"]["code"] == "memory"
        table = "text,label\n" + "the screen is dark,x\n" * 2_000
        answer = client.post("/v1/evaluate", content=table, headers={"content-type": "text/csv"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "memory")
        answer = client.post("/v1/batch", content="text\ndark screen\n", headers={"content-type": "text/csv"})
        assert answer.json()["error"]["code"] == "memory"
        assert services.memory.used == 0
        assert client.post("/v1/classify", json={"texts": ["dark screen"]}).status_code == 200
        assert services.memory.used == 0


def test_while_others_hold_the_memory_a_request_is_told_to_come_again(models):
    with serving_with(models, 1_000_000) as client:
        client.app._services.memory.reserve(999_999, 0)
        answer = client.post("/v1/classify", json={"texts": ["dark screen"]})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
