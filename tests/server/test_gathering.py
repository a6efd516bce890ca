from __future__ import annotations

import asyncio
import threading
import time

import pytest

from ramify.server.errors import ApiError
from ramify.server.micro_batching import MOST, Gatherer, Pace

SLOW = 1.0  # expected seconds that send every batch to a thread


def run(main):
    return asyncio.run(main())


def upper(texts):
    return [text.upper() for text in texts]


@pytest.mark.parametrize("expected", [0.0, SLOW])
def test_everyone_gets_their_own_answers_in_order(expected):
    async def main():
        gatherer = Gatherer(2, 10_000)
        pace = Pace(expected)
        asks = [gatherer.ask("k", upper, pace, [f"a{i}", f"b{i}"][: 1 + i % 2], 5) for i in range(300)]
        answers = await asyncio.gather(*asks)
        gatherer.close()
        assert [list(answer) for answer in answers] == [upper([f"a{i}", f"b{i}"][: 1 + i % 2]) for i in range(300)]
        assert gatherer.waiting == 0

    run(main)


def test_what_comes_in_one_turn_is_classified_together_but_never_too_many():
    sizes = []

    async def main():
        gatherer = Gatherer(1, 10_000, sizes.append)
        await asyncio.gather(*(gatherer.ask("k", upper, Pace(0.0), ["x"], 5) for _ in range(600)))
        gatherer.close()

    run(main)
    assert sum(sizes) == 600
    assert max(sizes) == MOST
    assert len(sizes) <= 4


def test_different_wishes_are_not_mixed():
    seen = []

    async def main():
        gatherer = Gatherer(1, 100)
        asks = [gatherer.ask(k, lambda texts, k=k: seen.append((k, len(texts))) or texts, Pace(0.0), ["x"], 5) for k in "abab"]
        await asyncio.gather(*asks)
        gatherer.close()

    run(main)
    assert sorted(seen) == [("a", 2), ("b", 2)]


def test_while_workers_are_busy_others_gather_and_one_key_does_not_starve_another():
    release, order = threading.Event(), []

    def slow(texts):
        release.wait(5)
        return texts

    async def main():
        gatherer = Gatherer(1, 10_000)
        first = asyncio.create_task(gatherer.ask("a", slow, Pace(SLOW), ["first"], 5))
        await asyncio.sleep(0.05)
        more = [
            asyncio.create_task(gatherer.ask("a", lambda t: order.append("a") or t, Pace(SLOW), ["x"] * MOST, 5)) for _ in "123"
        ]
        other = asyncio.create_task(gatherer.ask("b", lambda t: order.append("b") or t, Pace(SLOW), ["y"], 5))
        await asyncio.sleep(0.05)
        release.set()
        await asyncio.gather(first, *more, other)
        gatherer.close()

    run(main)
    assert order.index("b") < 2


def test_too_many_waiting_texts_are_refused_and_room_comes_back():
    async def main():
        gatherer = Gatherer(1, 10)
        with pytest.raises(ApiError, match="busy") as refused:
            await asyncio.gather(*(gatherer.ask("k", upper, Pace(SLOW), ["x"] * 6, 5) for _ in range(2)))
        assert refused.value.status == 503
        assert list(await gatherer.ask("k", upper, Pace(SLOW), ["x"], 5)) == ["X"]
        gatherer.close()

    run(main)


def test_an_answer_that_takes_too_long_is_not_waited_for():
    async def main():
        gatherer = Gatherer(1, 10)
        with pytest.raises(ApiError) as refused:
            await gatherer.ask("k", lambda texts: time.sleep(0.3) or texts, Pace(SLOW), ["x"], 0.05)
        assert refused.value.status == 504
        assert list(await gatherer.ask("k", upper, Pace(SLOW), ["x"], 5)) == ["X"]
        gatherer.close()

    run(main)


@pytest.mark.parametrize("expected", [0.0, SLOW])
def test_an_error_reaches_all_who_asked_and_nobody_else(expected):
    def fail(texts):
        raise ValueError("no")

    async def main():
        gatherer = Gatherer(1, 10)
        asks = [gatherer.ask("bad", fail, Pace(expected), ["x"], 5) for _ in range(2)]
        answers = await asyncio.gather(*asks, gatherer.ask("good", upper, Pace(expected), ["x"], 5), return_exceptions=True)
        gatherer.close()
        assert [type(answer) for answer in answers[:2]] == [ValueError, ValueError]
        assert list(answers[2]) == ["X"]

    run(main)


def test_quick_work_stays_on_the_loop_and_long_work_leaves_it():
    threads = []

    async def main():
        gatherer = Gatherer(1, 10)
        for expected, texts in ((0.0, ["x"]), (SLOW, ["x"]), (0.0, ["x" * 50_000])):
            await gatherer.ask("k", lambda t: threads.append(threading.current_thread()) or t, Pace(expected), texts, 5)
        gatherer.close()

    run(main)
    here = threading.main_thread()
    assert [thread is here for thread in threads] == [True, False, False]


def test_a_model_that_turns_out_slow_leaves_the_loop():
    pace = Pace(0.0)
    for _ in range(50):
        pace.note(1, 0.05)
    assert pace.expect(1) > 0.04
    assert pace.expect(320) == pytest.approx(10 * pace.expect(32))
