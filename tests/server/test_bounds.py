"""What bounds the work of a server: memory that is held as long as it is used, places that slow clients lose, threads."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

import pytest

from ramify.server import bounds
from ramify.server.bounds import CURRENT, PROGRESS, BackgroundTasks, BoundedPool, Call, MemoryBudget, UploadSlots, WaitMeter
from ramify.server.errors import ApiError


async def forever():
    await asyncio.Event().wait()


def a_call(budget=None, gone=forever):
    return Call(budget or MemoryBudget(1_000), gone)


# ---- memory ---------------------------------------------------------------------------------------------------------------


def test_requests_reserve_no_more_memory_than_there_is():
    budget = MemoryBudget(100)
    budget.reserve(60, 0)
    with pytest.raises(ApiError) as caught:
        budget.reserve(41, 0)
    assert (caught.value.status, caught.value.retry_after, budget.used) == (503, 1, 60)
    with pytest.raises(ApiError) as caught:
        budget.reserve(60, 41)
    assert (caught.value.status, caught.value.code, budget.used) == (413, "memory", 60)
    budget.release(60)
    budget.reserve(100, 0)


def test_when_the_answer_is_there_only_its_memory_is_held():
    budget = MemoryBudget(1_000)
    call = a_call(budget)
    call.reserve(800)
    call.reserve_response(300)
    assert budget.used == 300
    call.reserve_response(500)
    assert budget.used == 500
    with pytest.raises(ApiError):
        call.reserve_response(1_001)
    call.end()
    assert budget.used == 0


def test_memory_is_held_until_the_thread_of_a_request_has_ended():
    async def main():
        budget, pool, go_on = MemoryBudget(1_000), BoundedPool(1, 1, "t"), threading.Event()
        call = a_call(budget)
        CURRENT.set(call)
        call.reserve(700)
        with pytest.raises(ApiError) as late:
            await pool.run(0.01, go_on.wait, 10)
        call.reserve_response(10)
        call.end()
        assert (late.value.status, budget.used) == (504, 700)
        go_on.set()
        CURRENT.set(None)
        await pool.run(None, lambda: None)  # comes after the other
        await asyncio.sleep(0)
        assert budget.used == 0
        pool.close()

    asyncio.run(main())


def test_background_work_counts_in_the_memory_and_does_not_pile_up(monkeypatch):
    monkeypatch.setattr(bounds, "MOST_BACKGROUND", 2)

    async def main():
        budget, go_on, seen = MemoryBudget(1_000), asyncio.Event(), []
        tasks = BackgroundTasks(budget)

        async def work():
            seen.append(CURRENT.get())
            await go_on.wait()

        CURRENT.set(a_call(budget))
        with pytest.raises(ApiError):
            tasks.start(work, 251)  # more than a fourth
        tasks.start(work, 100)
        with pytest.raises(ApiError):
            tasks.start(work, 151)
        tasks.start(work, 50)
        assert budget.used == 150
        with pytest.raises(ApiError, match="queued"):
            tasks.start(work, 1)
        go_on.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert (budget.used, seen) == (0, [None, None])
        tasks.start(work, 250)

    asyncio.run(main())


# ---- places for tables ----------------------------------------------------------------------------------------------------


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_few_bytes_now_and_then_do_not_end_the_waiting():
    clock = Clock()
    meter = WaitMeter(clock)
    for _ in range(10):
        meter.begin()
        clock.now += 1
        meter.end(1)
        clock.now += 100  # here the client waits for the server
    assert meter.seconds == 10
    meter.begin()
    clock.now += 2
    assert meter.seconds == 12
    meter.end(PROGRESS)
    assert meter.seconds == 0


def test_a_client_that_has_sent_everything_keeps_nobody_waiting():
    call, clock = a_call(), Clock()
    call.reading = WaitMeter(clock)
    call.reading.begin()
    clock.now += 5
    call.reading.end(1)
    assert call.waited == 5
    call.end_reading()
    assert call.waited == 0


class Waiting:
    """A call whose client has kept the server waiting."""

    def __init__(self, waited):
        self.waited = waited


def holding(slots, ended, name, waited):
    """A task with a slot, like a request: it notes how it ended."""

    async def hold():
        CURRENT.set(Waiting(waited))
        slot = await slots.enter("full")
        try:
            await forever()
        except asyncio.CancelledError:
            refusal = slot.refusal()
            ended.append((name, None if refusal is None else refusal.code))
        finally:
            slots.leave(slot)

    return asyncio.create_task(hold())


def test_a_place_is_taken_until_it_is_given_back():
    async def main():
        slots = UploadSlots(2)
        first, _ = await slots.enter("full"), await slots.enter("full")
        with pytest.raises(ApiError, match="full"):
            await slots.enter("full")
        slots.leave(first)
        await slots.enter("full")

    asyncio.run(main())


def test_a_new_table_takes_the_place_of_the_slowest_client():
    async def main():
        slots, ended = UploadSlots(3), []
        tasks = [holding(slots, ended, name, waited) for name, waited in (("a", 5), ("b", 300), ("c", 1))]
        await asyncio.sleep(0)
        slot = await slots.enter("full")
        assert ended == [("b", "crowded-out")]
        assert tasks[1].done()
        assert not tasks[1].cancelled()
        await slots.enter("full")
        assert ended == [("b", "crowded-out"), ("a", "crowded-out")]
        with pytest.raises(ApiError, match="full"):  # who waits for the server keeps its place
            await slots.enter("full")
        slots.leave(slot)
        await slots.enter("full")
        tasks[2].cancel()
        await tasks[2]
        assert ended[-1] == ("c", None)

    asyncio.run(main())


def test_a_new_table_waits_only_for_a_moment_and_the_place_is_not_lost(monkeypatch):
    monkeypatch.setattr(bounds, "HANDOVER", 0.01)

    async def main():
        slots, go_on = UploadSlots(1), asyncio.Event()

        async def stubborn():
            CURRENT.set(Waiting(300))
            slot = await slots.enter("full")
            while not go_on.is_set():
                try:
                    await go_on.wait()
                except asyncio.CancelledError:
                    assert slot.refusal() is not None
            slots.leave(slot)

        task = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="full"):
            await slots.enter("full")
        go_on.set()
        await task
        await slots.enter("full")

    asyncio.run(main())


# ---- threads --------------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("is_gone", [True, False])
def test_work_that_nobody_waits_for_never_begins(is_gone):
    async def main():
        pool, go_on, begun, left = BoundedPool(1, 2, "t"), threading.Event(), [], asyncio.Event()
        first = asyncio.create_task(pool.run(None, go_on.wait, 10))
        await asyncio.sleep(0)

        async def ask():
            call = a_call(gone=left.wait)
            call.has_all = True
            CURRENT.set(call)
            await pool.run(5 if is_gone else 0.01, begun.append, "second")

        second = asyncio.create_task(ask())
        await asyncio.sleep(0)
        if is_gone:
            left.set()
        with pytest.raises(ApiError) as ended:
            await second
        assert ended.value.status == (499 if is_gone else 504)
        go_on.set()
        await first
        await pool.run(None, lambda: None)
        assert begun == []
        await asyncio.gather(*(pool.run(None, lambda: None) for _ in range(3)))  # its room came back
        pool.close()

    asyncio.run(main())


def test_an_error_of_the_work_is_that_of_the_request():
    async def main():
        pool = BoundedPool(1, 1, "t")
        with pytest.raises(ZeroDivisionError):
            await pool.run(5, lambda: 1 / 0)
        pool.close()

    asyncio.run(main())


@pytest.mark.parametrize("turns", range(6))
def test_a_slot_that_comes_when_the_wait_ends_is_not_lost(monkeypatch, turns):
    monkeypatch.setattr(bounds, "PATIENCE", 0.0)
    monkeypatch.setattr(bounds, "HANDOVER", 0.0)

    async def hold(slots, entered):
        slot = await slots.enter("x")
        entered.set_result(slot)
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

    async def main():
        slots, entered = UploadSlots(1), asyncio.get_running_loop().create_future()
        holder = asyncio.create_task(hold(slots, entered))
        first = await entered
        second = asyncio.create_task(slots.enter("x"))
        for _ in range(turns):
            await asyncio.sleep(0)
        slots.leave(first)
        await asyncio.wait([second])
        holder.cancel()
        if second.exception() is None:
            slots.leave(second.result())
        else:
            assert second.exception().status == 503
        third = await slots.enter("x")
        slots.leave(third)

    asyncio.run(main())
