"""What the routes share: places, turns, and an end that waits for no one who waits for it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ramify.server.app import make_app
from ramify.server.errors import ApiError
from ramify.server.services import BoundedPool, Services, UploadSlots
from ramify.server.settings import Settings


def test_a_place_is_taken_until_it_is_given_back():
    places = UploadSlots(2)
    places.enter("full")
    places.enter("full")
    with pytest.raises(ApiError, match="full"):
        places.enter("full")
    places.leave()
    places.enter("full")


def test_work_beyond_the_room_is_refused_and_late_work_is_not_waited_for():
    async def main():
        turns, go_on = BoundedPool(1, 1, "t"), threading.Event()
        first = asyncio.create_task(turns.run(0.05, go_on.wait, 5))
        second = asyncio.create_task(turns.run(5, lambda: "second"))
        await asyncio.sleep(0.02)
        with pytest.raises(ApiError, match="busy"):
            await turns.run(5, lambda: "third")
        with pytest.raises(ApiError) as late:
            await first
        assert late.value.status == 504
        go_on.set()
        assert await second == "second"
        turns.close()

    asyncio.run(main())


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
