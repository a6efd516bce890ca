from __future__ import annotations

import asyncio
import threading
import time

import pytest

from ramify.server.errors import ApiError
from ramify.server.micro_batching import MOST, PART, PART_CHARACTERS, PART_SECONDS, BatchTime, MicroBatcher

SLOW = 1.0  # expected seconds that send every batch to a thread


def run(main):
    return asyncio.run(main())


def upper(texts):
    return [text.upper() for text in texts]


@pytest.mark.parametrize("expected", [0.0, SLOW])
def test_everyone_gets_their_own_answers_in_order(expected):
    async def main():
        batcher = MicroBatcher(2, 10_000)
        batch_time = BatchTime(expected)
        asks = [batcher.ask("k", upper, batch_time, [f"a{i}", f"b{i}"][: 1 + i % 2], 5) for i in range(300)]
        answers = await asyncio.gather(*asks)
        batcher.close()
        assert [list(answer) for answer in answers] == [upper([f"a{i}", f"b{i}"][: 1 + i % 2]) for i in range(300)]
        assert batcher.waiting == 0

    run(main)


def test_what_comes_in_one_turn_is_classified_together_but_never_too_many():
    sizes = []

    async def main():
        batcher = MicroBatcher(1, 10_000, sizes.append)
        await asyncio.gather(*(batcher.ask("k", upper, BatchTime(0.0), ["x"], 5) for _ in range(600)))
        batcher.close()

    run(main)
    assert sum(sizes) == 600
    assert max(sizes) == MOST
    assert len(sizes) <= 4


def test_different_options_are_not_mixed():
    seen = []

    async def main():
        batcher = MicroBatcher(1, 100)
        asks = [
            batcher.ask(k, lambda texts, k=k: seen.append((k, len(texts))) or texts, BatchTime(0.0), ["x"], 5) for k in "abab"
        ]
        await asyncio.gather(*asks)
        batcher.close()

    run(main)
    assert sorted(seen) == [("a", 2), ("b", 2)]


def test_while_workers_are_busy_others_gather_and_one_key_does_not_starve_another():
    release, order = threading.Event(), []

    def slow(texts):
        release.wait(5)
        return texts

    async def main():
        batcher = MicroBatcher(1, 10_000)
        first = asyncio.create_task(batcher.ask("a", slow, BatchTime(SLOW), ["first"], 5))
        await asyncio.sleep(0.05)
        more = [
            asyncio.create_task(batcher.ask("a", lambda t: order.append("a") or t, BatchTime(SLOW), ["x"] * MOST, 5))
            for _ in "123"
        ]
        other = asyncio.create_task(batcher.ask("b", lambda t: order.append("b") or t, BatchTime(SLOW), ["y"], 5))
        await asyncio.sleep(0.05)
        release.set()
        await asyncio.gather(first, *more, other)
        batcher.close()

    run(main)
    assert order.index("b") < 2


def test_too_many_waiting_texts_are_refused_and_room_comes_back():
    async def main():
        batcher = MicroBatcher(1, 10)
        with pytest.raises(ApiError, match="busy") as refused:
            await asyncio.gather(*(batcher.ask("k", upper, BatchTime(SLOW), ["x"] * 6, 5) for _ in range(2)))
        assert refused.value.status == 503
        assert list(await batcher.ask("k", upper, BatchTime(SLOW), ["x"], 5)) == ["X"]
        batcher.close()

    run(main)


def test_an_answer_that_takes_too_long_is_not_waited_for():
    async def main():
        batcher = MicroBatcher(1, 10)
        with pytest.raises(ApiError) as refused:
            await batcher.ask("k", lambda texts: time.sleep(0.3) or texts, BatchTime(SLOW), ["x"], 0.05)
        assert refused.value.status == 504
        assert list(await batcher.ask("k", upper, BatchTime(SLOW), ["x"], 5)) == ["X"]
        batcher.close()

    run(main)


@pytest.mark.parametrize("expected", [0.0, SLOW])
def test_an_error_reaches_all_who_asked_and_nobody_else(expected):
    def fail(texts):
        raise ValueError("no")

    async def main():
        batcher = MicroBatcher(1, 10)
        asks = [batcher.ask("bad", fail, BatchTime(expected), ["x"], 5) for _ in range(2)]
        answers = await asyncio.gather(*asks, batcher.ask("good", upper, BatchTime(expected), ["x"], 5), return_exceptions=True)
        batcher.close()
        assert [type(answer) for answer in answers[:2]] == [ValueError, ValueError]
        assert list(answers[2]) == ["X"]

    run(main)


def test_quick_work_stays_on_the_loop_and_long_work_leaves_it():
    threads = []

    async def main():
        batcher = MicroBatcher(1, 10)
        for expected, texts in ((0.0, ["x"]), (SLOW, ["x"]), (0.0, ["x" * 50_000])):
            await batcher.ask("k", lambda t: threads.append(threading.current_thread()) or t, BatchTime(expected), texts, 5)
        batcher.close()

    run(main)
    here = threading.main_thread()
    assert [thread is here for thread in threads] == [True, False, False]


def test_a_model_that_turns_out_slow_leaves_the_loop():
    batch_time = BatchTime(0.0)
    for _ in range(50):
        batch_time.note(1, 0.05)
    assert batch_time.expect(1) > 0.04
    assert batch_time.expect(320) == pytest.approx(10 * batch_time.expect(32))


# ---- long requests are classified in parts ----------------------------------------------------------------------------


def batches_for(asks, workers=1):
    """The sizes of all batches with the first text of each, in order, while one worker has been busy with something else."""
    release, order = threading.Event(), []

    def work(texts):
        order.append((texts[0][:5], len(texts)))
        return upper(texts)

    async def main():
        batcher, slow = MicroBatcher(workers, 100_000), BatchTime(SLOW)
        first = asyncio.create_task(batcher.ask("block", lambda texts: release.wait(10) and texts, slow, ["x"], 60))
        await asyncio.sleep(0.01)
        tasks = []
        for key, texts in asks:
            tasks.append(asyncio.create_task(batcher.ask(key, work, slow, texts, 60)))
            await asyncio.sleep(0)
        release.set()
        answers = await asyncio.gather(*tasks)
        await first
        assert [list(answer) for answer in answers] == [upper(texts) for _, texts in asks]
        assert batcher.waiting == 0
        batcher.close()

    run(main)
    return order


def test_a_short_request_waits_for_one_part_of_a_long_one():
    long = [("a", [f"long{i}"] * 1_000) for i in range(5)]
    order = batches_for([*long, ("a", ["short"])])
    assert ("short", 1) in order[:2]
    assert max(size for _, size in order) <= PART


def test_a_short_request_waits_no_longer_if_the_long_ones_have_other_options():
    long = [(f"k{i}", [f"long{i}"] * 1_000) for i in range(20)]
    order = batches_for([*long, ("a", ["short"])])
    assert ("short", 1) in order[:2]


def test_long_requests_take_turns():
    order = batches_for([("a", ["long0"] * 1_000), ("a", ["long1"] * 1_000), ("b", ["long2"] * 1_000)])
    assert {text for text, _ in order[:4]} == {"long0", "long1", "long2"}


def test_short_requests_do_not_starve_long_ones():
    order = batches_for([("a", ["long0"] * 300), *[("a", [f"s{i:04}"] * 16) for i in range(100)]])
    assert [text for text, _ in order[:6]].count("long0") == 3


def test_parts_are_bounded_by_characters():
    text = "y" * (PART_CHARACTERS // 2)
    order = batches_for([("a", [text] * 5), ("a", ["z" * (2 * PART_CHARACTERS)] * 2)])
    assert sorted(size for _, size in order) == [1, 1, 1, 2, 2]


def test_parts_of_one_request_run_at_the_same_time():
    both = threading.Barrier(2, timeout=30)

    async def main():
        batcher = MicroBatcher(2, 10_000)
        found = await batcher.ask(
            "k", lambda texts: both.wait() is not None and upper(texts), BatchTime(SLOW), ["x"] * 2 * PART, 60
        )
        assert list(found) == ["X"] * 2 * PART
        batcher.close()

    run(main)


def test_what_nobody_waits_for_is_not_classified_further():
    release, sizes = threading.Event(), []

    def work(texts):
        release.wait(10)
        sizes.append(len(texts))
        return texts

    async def main():
        batcher = MicroBatcher(1, 10_000)
        with pytest.raises(ApiError):
            await batcher.ask("k", work, BatchTime(SLOW), ["x"] * 10 * PART, 0.01)
        release.set()
        await batcher.ask("k", work, BatchTime(SLOW), ["y"], 60)
        assert (sizes, batcher.waiting) == ([PART, 1], 0)
        batcher.close()

    run(main)


def test_parts_are_smaller_for_models_that_take_longer():
    batch_time = BatchTime()
    batch_time.note(PART, 8 * PART_SECONDS)
    assert batch_time.part == PART // 8
    batch_time.note(1, 100 * PART_SECONDS)
    assert batch_time.part == 1
    for _ in range(20):
        batch_time.note(batch_time.part, PART_SECONDS / 4)
    assert batch_time.part == PART


def test_long_requests_of_slow_models_are_taken_in_small_parts():
    sizes = []

    async def main():
        batcher, batch_time = MicroBatcher(1, 10_000, sizes.append), BatchTime(SLOW)
        batch_time.part = 10
        batch_time.note = lambda size, seconds: None
        await batcher.ask("k", upper, batch_time, ["x"] * 1_000, 60)
        await asyncio.gather(*(batcher.ask("k", upper, batch_time, ["x"], 60) for _ in range(100)))
        batcher.close()

    run(main)
    assert sizes == [10] * 100 + [20] * 5
