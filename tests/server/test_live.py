"""A server as people run it: started, streamed to, stopped, killed."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest
from server.conftest import serving

from ramify import load
from ramify.server.reviews import ReviewStore

pytestmark = pytest.mark.slow

PARCEL = "my parcel was due on monday and the tracking has not moved since"


def call(url, path, body=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json", **(headers or {})})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


class Stream:
    """A table that is sent piece by piece while answers are read."""

    def __init__(self, url, query="", kind="application/x-ndjson"):
        place = urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port), timeout=20)
        head = (
            f"POST /v1/batch{query} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        self.socket.sendall(head.encode())
        self._rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end(self):
        self.socket.sendall(b"0\r\n\r\n")

    def read_until(self, mark):
        while mark not in self._rest:
            came = self.socket.recv(1 << 16)
            assert came, f"the server closed the connection after {self._rest!r}"
            self._rest += came
        found, _, self._rest = self._rest.partition(mark)
        return found + mark


def test_answers_come_while_the_table_is_still_being_sent(live):
    with Stream(live.url) as stream:
        for number in range(1, 6):
            stream.send(json.dumps({"text": PARCEL, "id": f"row {number}"}).encode() + b"\n")
            assert f'"id": "row {number}"'.encode() in stream.read_until(b"}]}\n")
        stream.end()
        stream.read_until(b"0\r\n\r\n")


def test_lines_that_are_no_rows_hold_no_answer_back(live):
    with Stream(live.url) as stream:
        stream.send(b'{"text": "parcel", "id": 1}\n\n\r\n')
        assert b'"id": 1' in stream.read_until(b"}]}\n")
        stream.send(b'{"text": "parcel", "id": 2}\n{"te')
        assert b'"id": 2' in stream.read_until(b"}]}\n")
        stream.send(b'xt": "parcel", "id": 3}\n')
        assert b'"id": 3' in stream.read_until(b"}]}\n")
        stream.end()
    with Stream(live.url, kind="text/csv") as stream:
        stream.send(b'id,text\n7,parcel\n8,"an open\n')
        assert b"7,parcel," in stream.read_until(b"7,") + stream.read_until(b",\n")


def test_tables_beyond_the_places_are_refused_and_the_others_answered(live):
    streams = [Stream(live.url) for _ in range(10)]
    for stream in streams:
        stream.send(b'{"text": "parcel"}\n')
    heads = [stream.read_until(b"\r\n\r\n") for stream in streams]
    assert sorted(head[9:12] for head in heads) == [b"200"] * 4 + [b"503"] * 6
    for stream in streams:
        stream.socket.close()
    for _ in range(100):  # places come back when clients have gone
        with Stream(live.url) as stream:
            stream.send(b'{"text": "parcel"}\n')
            if b" 200 " in stream.read_until(b"\r\n\r\n"):
                return
        time.sleep(0.05)
    raise AssertionError("no place came back")


def test_a_csv_table_streams_too_and_its_rows_may_be_cut_anywhere(live):
    with Stream(live.url, kind="text/csv") as stream:
        for piece in (b"id,te", b'xt\n7,"a parcel,', b" a line\n", b'and more"', b"\n"):
            stream.send(piece)
        assert b'7,"a parcel, a line\nand more",' in stream.read_until(b"7,") + stream.read_until(b",\n")
        stream.end()


def test_a_client_that_reads_nothing_until_it_has_sent_everything_is_not_locked_out(live):
    rows = (json.dumps({"text": PARCEL, "filler": "x" * 300}) + "\n").encode() * 40_000  # answers fill every buffer on the way
    with Stream(live.url, "?echo=true") as stream:
        for start in range(0, len(rows), 1 << 20):
            stream.send(rows[start : start + (1 << 20)])
        stream.end()
        answer = stream.read_until(b"\r\n0\r\n\r\n")
        assert answer.count(b'"line": ') == 40_000


def test_lines_are_answered_in_order(live):
    body = "".join(json.dumps({"text": f"parcel {i}"}) + "\n" for i in range(5_000)).encode()
    request = urllib.request.Request(live.url + "/v1/batch", body, {"content-type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert [json.loads(line)["line"] for line in answer] == list(range(1, 5_001))


@pytest.mark.parametrize(
    ("kind", "body", "status", "said"),
    [
        ("application/x-ndjson", b"", 422, "body is empty"),
        ("application/x-ndjson", b"text,label\nparcel,x\n", 422, "not JSON"),
        ("text/csv", b"", 422, "empty"),
        ("text/csv", b"a,a\n1,2\n", 422, "no column looks like text"),
        ("text/csv", b"\xff\xfea\x00", 422, "no column looks like text"),
        ("text/csv", b"\xff\xfea\x00\n", 422, "not utf-16"),
        ("text/csv", b"\xff,b\n1,2\n", 422, "UTF-8"),
        ("application/json", b"[]", 415, "content type"),
    ],
)
def test_tables_that_cannot_be_read_are_refused_before_anything_is_sent(live, kind, body, status, said):
    request = urllib.request.Request(live.url + "/v1/batch", body, {"content-type": kind})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    assert refused.value.code == status
    assert said in json.loads(refused.value.read())["error"]["message"]


def test_bad_rows_are_told_in_their_place_and_the_others_are_answered(live):
    rows = [
        b'{"text": "parcel"}',
        b"{broken",
        b'{"text": "\xff"}',
        b'{"text": 5}',
        b'{"other": 1}',
        b"[1]",
        b'"picture"',
        b"\xef\xbb\xbf",
    ]
    request = urllib.request.Request(live.url + "/v1/batch", b"\n".join(rows), {"content-type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        answers = [json.loads(line) for line in answer]
    assert [("problem" in row) for row in answers] == [False, True, True, True, True, True, False, True]
    request = urllib.request.Request(
        live.url + "/v1/batch", b'text,b\nparcel,1\nonly one\n"x"y,2\n\xff,3\n', {"content-type": "text/csv"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    assert len(lines) == 5
    assert all(line.endswith(",") == (place < 1) for place, line in enumerate(lines[1:]))


def test_a_quote_that_is_never_closed_ends_the_stream_so_that_it_shows(live):
    body = b"text\n" + b"parcel\n" * 3_000 + b'"never closed\n'
    request = urllib.request.Request(
        live.url + "/v1/batch", body, {"content-type": "text/csv", "accept": "application/x-ndjson"}
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        last = json.loads(answer.read().splitlines()[-1])
    assert "never closed" in last["error"]["message"]
    with pytest.raises(http.client.IncompleteRead):
        urllib.request.urlopen(
            urllib.request.Request(live.url + "/v1/batch", body, {"content-type": "text/csv"}), timeout=20
        ).read()


def test_a_client_that_goes_away_leaves_the_server_as_it_was(live):
    for _ in range(6):
        stream = Stream(live.url)
        stream.send(b'{"text": "parcel"}\n')
        stream.read_until(b"}]}\n")
        stream.socket.close()
    for _ in range(100):
        try:
            if call(live.url, "/v1/classify", {"text": PARCEL})["results"]:
                Stream(live.url).socket.close()
                return
        except urllib.error.HTTPError:
            time.sleep(0.05)


def test_every_line_of_the_log_is_json_and_holds_no_document(live):
    call(live.url, "/v1/classify", {"text": "an unmistakable zebra crossing"})
    lines = [line for line in live.log.read_text().splitlines() if not line.startswith("Serving")]
    assert all("time" in json.loads(line) for line in lines)
    assert "zebra" not in live.log.read_text()


def test_what_is_under_way_is_answered_before_a_server_stops(models, tmp_path):
    with serving(tmp_path, f"m={models['support']}") as running, Stream(running.url) as stream:
        stream.send(b'{"text": "parcel", "id": "first"}\n')
        stream.read_until(b"}]}\n")
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        stream.send(b'{"text": "parcel", "id": "second"}\n')
        assert b"second" in stream.read_until(b"}]}\n")
        stream.end()
        stream.read_until(b"0\r\n\r\n")
        assert running.process.wait(timeout=20) == 0


def test_a_server_that_is_told_twice_stops_at_once_and_says_so_to_streams(models, tmp_path):
    with serving(tmp_path, f"m={models['support']}") as running, Stream(running.url) as stream:
        stream.send(b'{"text": "parcel"}\n')
        stream.read_until(b"}]}\n")
        for _ in range(2):
            running.process.send_signal(signal.SIGINT)
            time.sleep(0.4)
        assert running.process.wait(timeout=10) == 0
        assert b'"code": "stopped"' in stream.read_until(b"}}\n")
    assert "Traceback" not in running.log.read_text()


def test_a_server_that_queues_what_streams_in_stops_all_the_same(models, tmp_path):
    with serving(tmp_path, f"m={models['support']}") as running, Stream(running.url, "?queue_below=1") as stream:
        stream.send(b'{"text": "a parcel"}\n' * 2_000)
        stream.read_until(b"}]}\n")
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        stream.socket.close()
        assert running.process.wait(timeout=25) == 0


def test_models_are_swapped_without_a_failed_request(models, tmp_path):
    place = tmp_path / "model"
    load(models["support"]).save(place)
    with serving(tmp_path, f"m={place}") as running:
        seen, failures, is_over = set(), [], threading.Event()

        def ask():
            while not is_over.is_set():
                try:
                    labels = call(running.url, "/v1/classify", {"text": PARCEL, "top": 2})["results"][0]
                    seen.add(json.dumps(labels))
                except Exception as error:
                    failures.append(error)

        askers = [threading.Thread(target=ask) for _ in range(3)]
        for asker in askers:
            asker.start()
        for k in range(4):
            load(models["support-nb" if k % 2 == 0 else "support"]).save(place)
            if k < 2:
                call(running.url, "/v1/models/m/reload", {})
            else:
                running.process.send_signal(signal.SIGHUP)
            time.sleep(0.4)
        is_over.set()
        for asker in askers:
            asker.join()
    assert failures == []
    assert len(seen) == 2  # answers of the one model or of the other, and of nothing between


def test_no_acknowledged_review_is_lost_when_the_server_is_killed(models, tmp_path):
    acknowledged: list[tuple[int, str]] = []
    reviews = tmp_path / "reviews.db"
    for attempt in range(3):
        with serving(tmp_path, f"m={models['support-nb']}", reviews=reviews) as running:
            is_over = threading.Event()

            def review(person, url=running.url, over=is_over, attempt=attempt):
                count = 0
                while not over.is_set():
                    count += 1
                    text = f"parcel {attempt} {person} {count}"
                    try:
                        (number,) = call(url, "/v1/reviews", {"documents": [{"text": text}]})["queued"]
                        call(url, f"/v1/reviews/{number}/decisions", {"action": "reject", "reviewer": person})
                    except (OSError, http.client.HTTPException):
                        return
                    acknowledged.append((number, text))

            people = [threading.Thread(target=review, args=(name,)) for name in ("ann", "ben", "cem")]
            for person in people:
                person.start()
            time.sleep(0.7)
            running.kill()
            is_over.set()
            for person in people:
                person.join()
    store = ReviewStore(reviews)
    assert len(acknowledged) > 30
    for number, text in acknowledged:
        review = store.get(number)
        assert review is not None
        assert (review.text, [d.action for d in review.decisions]) == (text, ["reject"])
    store.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{model}", "--host", "0.0.0.0"], "--keys"),
        (["nowhere"], "no such directory"),
        (["{model}", "--keys", "nowhere.json"], "ramify keys add"),
        (["{model}", "--review-below", "0.5", "--no-reviews"], "leave out --no-reviews"),
        (["{model}", "x={model}", "x={model}"], "two models"),
        (["{model}", "--log-format", "xml"], "plain or json"),
        (["{model}", "--port", "{taken}", "--no-reviews"], "cannot listen"),
        (["{model}", "--reviews", "/nowhere/r.db"], "cannot store reviews"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_one_sentence(models, tmp_path, arguments, said):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        filled = [a.format(model=models["support-nb"], taken=taken.getsockname()[1]) for a in arguments]
        command = [sys.executable, "-m", "ramify.cli.main", "serve", *filled, "--log-level", "error"]
        made = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert made.returncode == 2
    assert said in made.stderr
    assert "Traceback" not in made.stderr
