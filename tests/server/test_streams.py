from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.server import streams
from ramify.server.errors import ApiError
from ramify.server.streams import ByteInput, ByteOutput, lines_of


@given(st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"x", b"\n")), max_size=12))
def test_lines_are_those_of_the_whole_however_it_is_cut(chunks):
    async def main():
        source = ByteInput()
        for chunk in chunks:
            if chunk:
                await source.put(chunk)
        source.end()
        return list(lines_of(source.chunks()))

    found = asyncio.run(main())
    whole = b"".join(chunks)
    assert b"".join(found) == whole
    assert [line.count(b"\n") for line in found] == [1] * whole.count(b"\n") + [0] * (bool(whole) and not whole.endswith(b"\n"))


def test_a_reader_sees_lines_as_they_come_and_says_when_it_is_about_to_wait():
    async def main():
        seen = []
        source = ByteInput(on_wait=lambda: seen.append("wait"))

        def read():
            for line in lines_of(source.chunks()):
                seen.append(line)

        await source.put(b"a\nb\nc")
        reader = threading.Thread(target=read)
        reader.start()
        await asyncio.sleep(0.1)
        assert seen == [b"a\n", b"b\n", "wait"]
        await source.put(b"c\n")
        await asyncio.sleep(0.1)
        assert seen[3:] == [b"cc\n", "wait"]
        source.end()
        await asyncio.to_thread(reader.join)

    asyncio.run(main())


def test_a_sender_is_slowed_while_nobody_reads(monkeypatch):
    monkeypatch.setattr(streams, "HELD", 10)

    async def main():
        source = ByteInput()
        await source.put(b"x" * 11)
        blocked = asyncio.create_task(source.put(b"y\n"))
        await asyncio.sleep(0.05)
        assert not blocked.done()
        reader = asyncio.create_task(asyncio.to_thread(lambda: list(lines_of(source.chunks()))))
        await blocked
        source.end()
        assert await reader == [b"x" * 11 + b"y\n"]

    asyncio.run(main())


def test_a_failure_reaches_the_reader():
    async def main():
        source = ByteInput()
        await source.put(b"a\n")
        source.end(ApiError(413, "too-large", "too much"))
        with pytest.raises(ApiError, match="too much"):
            list(lines_of(source.chunks()))

    asyncio.run(main())


def test_a_line_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(streams, "LONGEST", 100)

    async def main():
        source = ByteInput()
        await source.put(b"x" * 101)
        source.end()
        with pytest.raises(ApiError) as refused:
            list(lines_of(source.chunks()))
        assert refused.value.status == 413

    asyncio.run(main())


@pytest.mark.parametrize("held", [5, 1 << 20])
def test_pieces_come_out_in_order_also_when_they_wait_in_a_file(monkeypatch, held):
    monkeypatch.setattr(streams, "HELD", held)
    pieces = [f"{i},".encode() * (1 + i % 7) for i in range(2_000)]

    async def main():
        sink, found = ByteOutput(), []
        writer = threading.Thread(target=lambda: [sink.put(piece) for piece in pieces] and sink.end())
        writer.start()
        await asyncio.sleep(0.05)  # let some of it pile up
        while (piece := await sink.take()) is not None:
            found.append(piece)
            await asyncio.sleep(0)
        writer.join()
        sink.close()
        return b"".join(found)

    assert asyncio.run(main()) == b"".join(pieces)


def test_a_long_line_is_put_together_once_and_not_at_every_piece():
    async def main():
        source = ByteInput()
        piece = b"x" * 10_000
        for _ in range(400):
            await source.put(piece)
        await source.put(b"\nend")
        source.end()
        assert [len(line) for line in lines_of(source.chunks())] == [4_000_001, 3]

    asyncio.run(main())


def test_more_than_is_kept_is_refused(monkeypatch):
    monkeypatch.setattr(streams, "HELD", 10)

    async def main():
        sink = ByteOutput(most=100)
        for _ in range(12):
            sink.put(b"x" * 8)
        with pytest.raises(ApiError, match="read them while you send"):
            sink.put(b"x" * 50)
        sink.close()

    asyncio.run(main())


def test_what_waits_in_the_file_goes_out_before_what_comes_later(monkeypatch):
    monkeypatch.setattr(streams, "HELD", 5)

    async def main():
        sink = ByteOutput()
        sink.put(b"aaaaaa")
        sink.put(b"bb")  # no more room: to the file
        assert await sink.take() == b"aaaaaa"
        sink.put(b"cc")  # room again, but not before bb
        sink.end()
        rest = [await sink.take(), await sink.take()]
        assert b"".join(piece for piece in rest if piece) == b"bbcc"
        sink.close()

    asyncio.run(main())


def test_an_end_says_why():
    async def main():
        sink = ByteOutput()
        sink.put(b"a")
        sink.end(ApiError(422, "table", "no"))
        sink.end()
        assert [await sink.take(), await sink.take()] == [b"a", None]
        assert sink.failure.code == "table"

    asyncio.run(main())


def test_small_chunks_count_with_the_memory_that_they_take(monkeypatch):
    monkeypatch.setattr(streams, "HELD", 10_000)

    async def main():
        source, count = ByteInput(), 0
        while source._room.is_set():
            await source.put(b"ab")
            count += 1
        source.end()
        assert b"".join(lines_of(source.chunks())) == b"ab" * count
        assert source._held == 0
        return count

    assert asyncio.run(main()) < 200
