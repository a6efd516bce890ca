"""Bodies in very many small chunks: connections take turns to parse them, and none is lost."""

import asyncio
from contextlib import suppress

import pytest
import uvicorn
from uvicorn.server import ServerState

from ramify.server import connections
from ramify.server.connections import ConnectionLimiter, protocol_of
from ramify.server.settings import ConnectionLimits

HEAD = b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
TINY = b"1\r\na\r\n"
MOST = 1_000  # chunks: more than a turn of one connection, or all turns of one iteration, may take


class Transport(asyncio.Transport):
    """What the server writes, and whether it reads."""

    def __init__(self):
        super().__init__({"peername": ("10.0.0.1", 1), "sockname": ("127.0.0.1", 8080)})
        self.written, self.reads, self.closed = b"", True, False

    def write(self, data):
        self.written += bytes(data)

    def is_reading(self):
        return self.reads

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    abort = close


async def hang(scope, receive, send):
    await asyncio.Event().wait()


def connect(limiter):
    config = uvicorn.Config(hang, lifespan="off", log_config=None)
    config.load()
    made = protocol_of(limiter)(config=config, server_state=ServerState(), app_state={})
    made.connection_made(Transport())
    return made


async def with_connections(count, check, most=1 << 25):
    limiter = ConnectionLimiter(ConnectionLimits())
    limiter.parsing = connections.ParsingQueue(most)
    opened = [connect(limiter) for _ in range(count)]
    try:
        await check(limiter, opened)
    finally:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def parsed(opened):
    return sum(len(each.cycle.body) for each in opened)


def test_many_small_chunks_are_parsed_a_few_in_each_iteration_of_the_event_loop():
    async def check(limiter, opened):
        for each in opened:
            each.data_received(HEAD + TINY * 5_000)
            assert len(each.cycle.body) < MOST
            assert not each.transport.reads
        before, iterations = parsed(opened), 0
        while (now := parsed(opened)) < 50_000:
            await asyncio.sleep(0)
            assert parsed(opened) - now < MOST
            iterations += 1
            assert iterations < 5_000
        assert before < 50_000
        await asyncio.sleep(0)
        assert all(each.transport.reads or each.flow.read_paused for each in opened)
        assert limiter.parsing.unparsed == 0

    asyncio.run(with_connections(10, check))


def test_a_large_first_chunk_hides_no_small_ones():
    async def check(limiter, opened):
        opened[0].data_received(HEAD + b"2000\r\n" + b"a" * 0x2000 + b"\r\n" + TINY * 30_000)
        assert 0x2000 <= len(opened[0].cycle.body) < 0x2000 + MOST

    asyncio.run(with_connections(1, check))


def test_a_body_of_large_chunks_is_parsed_at_once_while_others_take_turns():
    async def check(limiter, opened):
        slow, fast = opened
        slow.data_received(HEAD + TINY * 30_000)
        fast.data_received(HEAD + b"10000\r\n" + b"a" * 0x10000 + b"\r\n0\r\n\r\n")
        assert len(fast.cycle.body) == 0x10000
        assert not fast.cycle.more_body
        assert slow.cycle.more_body

    asyncio.run(with_connections(2, check))


def test_what_comes_meanwhile_keeps_its_order():
    async def check(limiter, opened):
        (one,) = opened
        one.data_received(HEAD + b"1\r\na\r\n" * 2_000)
        one.data_received(b"1\r\nb\r\n" * 2_000)  # what was on its way before reading paused
        for _ in range(100):
            await asyncio.sleep(0)
        assert bytes(one.cycle.body) == b"a" * 2_000 + b"b" * 2_000

    asyncio.run(with_connections(1, check))


def test_a_connection_that_ends_leaves_nothing_behind():
    async def check(limiter, opened):
        for each in opened:
            each.data_received(HEAD + TINY * 5_000)
        assert limiter.parsing.unparsed > 0
        opened[0].abort()
        opened[1].connection_lost(ConnectionResetError())
        assert limiter.parsing.unparsed == 0
        await asyncio.sleep(0)

    asyncio.run(with_connections(2, check))


def test_so_much_may_wait_and_no_more():
    async def check(limiter, opened):
        for each in opened:
            each.data_received(HEAD + TINY * 5_000)
        assert limiter.parsing.unparsed <= 100_000
        refused = [each for each in opened if each.transport.closed]
        assert len(refused) == 7
        assert all(each.transport.written.startswith(b"HTTP/1.1 503") for each in refused)
        assert b"small pieces" in refused[0].transport.written

    asyncio.run(with_connections(10, check, most=100_000))


@pytest.mark.parametrize("files", [160, 1_024, 65_536])
def test_refused_connections_leave_files_for_other_things(monkeypatch, files):
    monkeypatch.setattr(connections, "allow_open_files", lambda: files)
    limiter = ConnectionLimiter(ConnectionLimits())
    assert limiter.most + limiter.most_closing <= max(files - connections.SPARE, 32)
