"""Connections of clients that send too much, too slowly or nothing: they end, and others are served meanwhile."""

import http.client
import json
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from ramify.server import connections
from ramify.server.connections import Connection, ConnectionLimiter
from ramify.server.keys import add_key
from ramify.server.settings import ConnectionLimits

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("limited_server.py")
ASKED = json.dumps({"texts": ["the screen stays dark"]})
JSON = {"Content-Type": "application/json"}
HALF = b"POST /v1/classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"
WAIT = 60  # seconds until a test gives up: no measurement


class Server:
    def __init__(self, url, process, log):
        self.place, self.process, self.log = (urlsplit(url).hostname, urlsplit(url).port), process, log

    def connect(self, *sent):
        made = socket.create_connection(self.place, timeout=WAIT)
        for piece in sent:
            made.sendall(piece)
        return made

    def ask(self, key=None):
        connection = http.client.HTTPConnection(*self.place, timeout=WAIT)
        connection.request("POST", "/v1/classify", ASKED, JSON | ({} if key is None else {"Authorization": f"Bearer {key}"}))
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    def events(self, reason):
        rows = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [row for row in rows if row["event"] == "connection ended" and row["reason"] == reason]


@contextmanager
def serving(model, folder, limits, keys=None):
    log = folder / "log"
    command = [sys.executable, str(SCRIPT), str(model), json.dumps(limits), *([] if keys is None else [str(keys)])]
    with open(log, "w") as written:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=written, text=True)
    try:
        yield Server(process.stdout.readline().strip(), process, log)
    finally:
        process.terminate()
        process.wait(WAIT)
        process.stdout.close()


@pytest.fixture(scope="module")
def server(models, tmp_path_factory):
    limits = {"head_seconds": 1, "body_seconds": 1, "rest_seconds": 1, "idle_seconds": 1, "unread_seconds": 1}
    with serving(models["support"], tmp_path_factory.mktemp("server"), limits) as made:
        yield made


def received_from(connection):
    """All that the server sends until it ends the connection; what the client still sent may be cut off."""
    found = b""
    try:
        while piece := connection.recv(1 << 16):
            found += piece
    except ConnectionResetError:
        pass
    connection.close()
    return found


def refusal_of(connection):
    head, _, body = received_from(connection).partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    return int(head.split()[1]), json.loads(body)["error"]["code"]


def send_while_open(connection, piece, times):
    """How many pieces the server takes before it ends the connection."""
    for sent in range(times):
        try:
            connection.sendall(piece)
        except (ConnectionResetError, BrokenPipeError):
            return sent
    return times


def test_endless_headers_are_refused_before_they_take_memory(server):
    connection = server.connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
    piece = b"X-Long: " + b"a" * (1 << 20) + b"\r\n"
    assert send_while_open(connection, piece, 100) < 100
    connection.close()
    connection = server.connect(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"a" * (1 << 16))
    assert refusal_of(connection) == (431, "head")
    assert server.ask() == 200


def test_a_head_within_the_limit_and_a_large_body_are_taken(server):
    text = json.dumps({"texts": ["dark " * 60_000]})
    connection = http.client.HTTPConnection(*server.place, timeout=WAIT)
    for _ in range(2):  # the second request has a limit of its own
        connection.request("POST", "/v1/classify", text, JSON | {"X-Long": "a" * 40_000})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
    connection.close()


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 100 + b"\r\n", (431, "head")),
        (b"GET /healthz?" + b"a" * (1 << 15) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", (414, "url")),
        (b"GET /healthz\r\n\r\n", (505, "version")),
        (b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n", (505, "version")),
        (b"\x16\x03\x01 no HTTP\r\n\r\n", (400, "http")),
        (HALF + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n", (400, "upgrade")),
    ],
    ids=["too many headers", "a long address", "no version", "another version", "TLS", "an upgrade with a body"],
)
def test_heads_beyond_a_limit_are_refused(server, sent, refusal):
    assert refusal_of(server.connect(sent)) == refusal


@pytest.mark.parametrize("name", ["Host", "Authorization", "Content-Type", "Origin"])
def test_a_header_that_may_be_there_once_is_refused_the_second_time(server, name):
    head = f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{name}: localhost\r\n"
    found = received_from(server.connect(f"{head}{name}: other\r\n\r\n".encode()))
    assert found.startswith(b"HTTP/1.1 400")
    assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["code"] == "headers"


@pytest.mark.parametrize(
    "sent", [b"GET / HT", HALF, HALF + b"\r\n", HALF + b"\r\n" + b'{"texts"'], ids=["line", "head", "no body", "half a body"]
)
def test_a_request_that_does_not_arrive_ends(server, sent):
    assert refusal_of(server.connect(sent)) == (408, "too-slow")


@pytest.mark.parametrize(
    "sent", [b"", b"\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"], ids=["nothing", "line", "idle"]
)
def test_a_connection_that_sends_no_request_ends(server, sent):
    found = received_from(server.connect(sent))
    assert found.startswith(b"HTTP/1.1 200") if len(sent) > 2 else b" 200 " not in found


def test_a_byte_now_and_then_does_not_keep_a_connection(server):
    connection = server.connect()
    connection.settimeout(0.2)
    sent = 0
    while sent < 300:  # a minute, if nobody ends it
        try:
            connection.sendall(HALF[sent : sent + 1])
            sent += 1
            if not connection.recv(1):
                break
        except TimeoutError:
            continue
        except (ConnectionResetError, BrokenPipeError):
            break
        break
    assert sent < 300
    connection.close()


CHUNKED = HALF.replace(b"Content-Length: 50", b"Transfer-Encoding: chunked")
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_connection_has_one_request_at_a_time(server):
    found = received_from(server.connect(HEALTH * 5))
    assert found.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in found


def test_a_request_for_another_protocol_is_answered_and_the_last(server):
    upgrade = HEALTH.removesuffix(b"\r\n") + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    found = received_from(server.connect(upgrade, HEALTH))
    assert found.count(b"HTTP/1.1 200") == 1
    assert b"connection: close" in found


def test_headers_after_a_body_are_no_headers(models, tmp_path):
    key = add_key(tmp_path / "keys.json", "ann", "read").encode()
    body = b"%x\r\n%b\r\n0\r\n" % (len(ASKED), ASKED.encode())
    with serving(models["support"], tmp_path, {"wrong_key_seconds": 0}, tmp_path / "keys.json") as server:
        allowed = CHUNKED + b"Connection: close\r\nAuthorization: Bearer " + key + b"\r\n\r\n" + body + b"\r\n"
        assert received_from(server.connect(allowed)).startswith(b"HTTP/1.1 200")
        without = CHUNKED + b"Connection: close\r\n\r\n" + body + b"Authorization: Bearer " + key + b"\r\n\r\n"
        assert received_from(server.connect(without)).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    "more",
    [
        b"0\r\n" + b"X: y\r\n" * 200,
        b"0\r\nX: " + b"a" * (1 << 20),
        b"1;" + b"a" * (1 << 20),
        b"1\r\n{\r\n0\r\n" + b"X: y\r\n" * 200,
    ],
    ids=["trailers", "a long trailer", "a long extension", "trailers of a body"],
)
def test_what_surrounds_a_body_is_limited(server, more):
    connection = server.connect(CHUNKED + b"\r\n")
    send_while_open(connection, more, 1)
    assert refusal_of(connection) == (431, "head")


def test_addresses_that_clients_give_themselves_are_not_believed(server):
    for number in range(3):
        received_from(
            server.connect(HEALTH.removesuffix(b"\r\n") + b"X-Forwarded-For: 6.6.6.%d\r\nConnection: close\r\n\r\n" % number)
        )
    assert "6.6.6." not in server.log.read_text()


def test_a_refused_client_that_reads_nothing_keeps_no_connection(server):
    folder = Path(f"/proc/{server.process.pid}/fd")
    before = len(list(folder.iterdir()))
    clients = [socket.socket() for _ in range(16)]
    for client in clients:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(WAIT)
        client.connect(server.place)
    for count in range(len(clients)):  # each leaves one more answer unread than the one before
        for client in clients[count:]:
            with suppress(ConnectionError):
                client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        sleep(0.1)
    for client in clients:
        with suppress(ConnectionError):
            client.sendall(b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n")
    until = monotonic() + WAIT
    while len(list(folder.iterdir())) > before and monotonic() < until:
        sleep(0.1)
    assert len(list(folder.iterdir())) <= before
    for client in clients:
        client.close()


def test_a_body_that_nobody_reads_is_not_waited_for(server):
    head = HALF.replace(b"Host: localhost", b"Host: foreign.example").replace(b": 50", b": 5000000")
    connection = server.connect(head, b"\r\n")
    assert received_from(connection).startswith(b"HTTP/1.1 403")


def test_an_answer_that_is_not_read_is_dropped(server):
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(WAIT)
    connection.connect(server.place)
    one = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert send_while_open(connection, one * 20, 100_000) < 100_000
    connection.close()
    assert server.ask() == 200


def test_slow_clients_lose_their_places_to_others(models, tmp_path):
    limits = {"connections": 20, "head_seconds": 600, "body_seconds": 600}
    with serving(models["support"], tmp_path, limits) as server:
        slow = [server.connect(HALF) for _ in range(60)]
        assert [server.ask() for _ in range(20)] == [200] * 20
        assert server.process.poll() is None
        assert server.events("crowded out")
        for each in slow:
            each.close()


def test_one_address_cannot_take_all_places(models, tmp_path):
    with serving(models["support"], tmp_path, {"by_address": 5, "head_seconds": 600}) as server:
        slow = [server.connect(HALF) for _ in range(20)]
        assert server.ask() == 200
        assert server.events("crowded out")
        for each in slow:
            each.close()


class OpenConnection(SimpleNamespace):
    """A connection as its limiter sees it."""

    waiting_since = Connection.waiting_since

    def deadline(self, limits):
        return Connection.deadline(self, limits)

    def abort(self):
        self.limiter.forget(self)

    end_late = abort
    __hash__ = object.__hash__


def opened(limiter, phase, since, body_bytes=0):
    made = OpenConnection(limiter=limiter, phase=phase, since=since, address="a", is_stream=False)
    made._body_bytes, made._unread_since = body_bytes, None
    assert limiter.admit(made)
    return made


def test_the_client_that_was_waited_for_longest_loses_its_place_whatever_it_has_sent():
    limiter = ConnectionLimiter(ConnectionLimits(connections=4, by_address=4, bytes_a_second=1_000))
    opened(limiter, "body", since=10.0, body_bytes=1_000)
    fast = opened(limiter, "body", since=5.0, body_bytes=900_000)
    opened(limiter, "idle", since=12.0)
    new = opened(limiter, "head", since=20.0)
    more = [opened(limiter, "head", since=21.0) for _ in range(2)]
    assert set(limiter.open) == {fast, new, *more}


def test_connections_that_are_late_together_end_a_few_at_a_time():
    limiter = ConnectionLimiter(ConnectionLimits())
    for _ in range(2 * connections.MOST_ENDED + 1):
        opened(limiter, "head", since=-1e9)
    on_time = opened(limiter, "head", since=monotonic())
    assert [limiter.check_deadlines() for _ in range(3)] == [True, True, False]
    assert list(limiter.open) == [on_time]


def test_wrong_keys_wait_and_right_ones_do_not(models, tmp_path):
    key = add_key(tmp_path / "keys.json", "ann", "read")
    with serving(models["support"], tmp_path, {"wrong_key_seconds": 600, "wrong_keys": 3}, tmp_path / "keys.json") as server:
        head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n"
        late = [server.connect(head) for _ in range(3)]
        while (status := server.ask("wrong")) == 401:  # until all three wait
            pass
        assert status == 429
        assert server.ask(key) == 200
        for each in late:
            each.settimeout(0.01)
            with pytest.raises(TimeoutError):
                each.recv(1)
            each.close()
        server.process.kill()  # it would wait for those that wait


def test_a_client_that_disconnects_is_no_defect(server):
    for _ in range(5):
        server.connect(HALF, b"\r\n", b'{"texts"').close()
    assert server.ask() == 200
    rows = [json.loads(line) for line in server.log.read_text().splitlines()]
    assert not [row for row in rows if row["event"] == "defect" or row["level"] == "error" or row.get("status", 0) >= 500]


@pytest.mark.parametrize(("rate", "is_kept"), [(1_000, False), (40_000, True)])
def test_a_client_that_reads_a_little_now_and_then_keeps_an_answer_only_at_a_rate(monkeypatch, rate, is_kept):
    now = 0.0
    monkeypatch.setattr(connections, "monotonic", lambda: now)
    connection = Connection.__new__(Connection)
    connection.limiter = SimpleNamespace(limits=ConnectionLimits())
    connection.flow = SimpleNamespace(pause_writing=lambda: None, resume_writing=lambda: None)
    for _ in range(100):
        connection.pause_writing()
        now += connections.BUFFER / 2 / rate
        if now > connection.deadline(ConnectionLimits()):
            break
        connection.resume_writing()
    assert (connection._unread_since is None) == is_kept
