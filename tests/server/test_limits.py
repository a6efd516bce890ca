"""What a request may take: values in JSON, cells of tables, memory for answers, places for uploads, and room in the queue."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from ramify.data import load_electronics
from ramify.server import batches, bounds, dependencies, middleware, streams
from ramify.server.app import make_app
from ramify.server.json_bounds import has_more_values, is_deeper
from ramify.server.model_registry import ServedModel
from ramify.server.reviews import store as review_store
from ramify.server.routes import classify as classify_route
from ramify.server.routes import evaluate
from ramify.server.routes import reviews as review_routes
from ramify.server.services import Services
from ramify.server.settings import Limits, Settings

NDJSON, CSV, JSON = ({"content-type": kind} for kind in ("application/x-ndjson", "text/csv", "application/json"))
CSV_IN = {**CSV, "accept": "application/x-ndjson"}  # whose head is not sent before the first row
PARCEL = "my parcel was due on monday and the tracking has not moved since"


def start(settings):
    return TestClient(make_app(Services(settings)), base_url="http://localhost")


@pytest.fixture(scope="module")
def settings(models):
    return Settings({"m": models["support-nb"]})


@pytest.fixture(scope="module")
def client(settings, tmp_path_factory):
    with start(replace(settings, reviews=tmp_path_factory.mktemp("reviews") / "r.db")) as made:
        yield made


def code_of(response):
    return response.status_code, response.json()["error"]["code"]


# ---- values in JSON -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b'{"text": "a"}', 1),
        (b'{"text": "[{,,,"}', 1),
        (rb'{"text": "\"[{,,,\\"}', 1),
        (rb'{"text": "\\\"[{,,,"}', 1),
        (b'{"a": [1, 2], "b": {"c": [[]]}}', 7),
        (b'["a", "b", "c"]', 3),
    ],
)
def test_values_are_counted_outside_of_strings(body, count):
    assert not has_more_values(body, count)
    assert has_more_values(body, count - 1)


def test_nesting_is_measured_in_levels():
    assert not is_deeper({"a": [{"b": 1}]}, 3)
    assert is_deeper({"a": [{"b": []}]}, 3)


@pytest.mark.parametrize("path", ["/v1/classify", "/v1/explain", "/v1/reviews", "/v1/reviews/1/decisions"])
def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(client, path, monkeypatch):
    monkeypatch.setattr(dependencies, "_validated", None)
    many = ",".join(f'"k{i}": 0' for i in range(20_001))
    assert code_of(client.post(path, content=f'{{"text": "a", {many}}}', headers=JSON)) == (413, "too-many-values")
    nested = "[" + ",".join(["{}"] * 20_001) + "]"
    assert code_of(client.post(path, content=nested, headers=JSON)) == (413, "too-many-values")


def test_texts_that_hold_code_are_no_values(client):
    texts = ['{"a": [1, 2, {"b": "c"}]},' * 20] * 1_000
    assert client.post("/v1/classify", json={"texts": texts}).status_code == 200
    documents = [{"text": text, "source": "s"} for text in texts[:500]]
    assert client.post("/v1/reviews", json={"documents": documents}).status_code == 201


def test_costs_of_thousands_of_nodes_are_not_too_many_values(client):
    costs = {f"node {i}": 1 for i in range(9_000)}
    body = {"text": "a", "rule": "minimize-h-loss", "rule_params": {"costs": costs}}
    assert code_of(client.post("/v1/classify", json=body)) == (422, "rule")


def test_json_in_utf_16_is_refused_since_its_values_cannot_be_counted(client):
    for path, body in (("/v1/classify", {"text": "a"}), ("/v1/reviews", {"documents": [{"text": "a"}]})):
        for encoding in ("utf-16", "utf-16-le", "utf-32"):
            content = json.dumps(body).encode(encoding)
            assert code_of(client.post(path, content=content, headers=JSON)) == (400, "no-json")


def test_only_large_bodies_are_validated_in_a_thread(client, monkeypatch):
    threads, real = [], dependencies._validated
    monkeypatch.setattr(dependencies, "_validated", lambda *args: threads.append(threading.get_ident()) or real(*args))
    loop = client.portal.call(lambda: threading.get_ident())
    client.post("/v1/classify", json={"text": "a"})
    client.post("/v1/classify", json={"text": "a" * dependencies.LARGE})
    assert code_of(client.post("/v1/classify", json={"txet": "a" * dependencies.LARGE})) == (422, "misfit")
    assert [thread == loop for thread in threads] == [True, False, False]


def test_parameters_that_are_nested_deeply_are_refused(client):
    deep = '{"penalty": ' + "[" * 900 + "]" * 900 + "}"
    for path in ("/v1/batch", "/v1/evaluate"):
        answer = client.post(path, params={"rule": "isotonic", "rule_params": deep}, content='{"text": "a"}\n', headers=NDJSON)
        assert code_of(answer) == (422, "rule-params")
    body = {"text": "a", "rule": "isotonic", "rule_params": {"penalty": json.loads("[" * 50 + "]" * 50)}}
    assert code_of(client.post("/v1/classify", json=body)) == (422, "misfit")


# ---- cells of tables ------------------------------------------------------------------------------------------------------


def test_a_row_of_very_many_values_is_a_problem_of_that_row_alone(client):
    many = '{"text": "a", "x": [' + ",".join(["{}"] * batches.CELLS) + "]}\n"
    first, second = client.post("/v1/batch", content=many + f'"{PARCEL}"\n', headers=NDJSON).text.splitlines()
    assert json.loads(first)["problem"] == "the row has more than 5,000 values"
    assert "problem" not in json.loads(second)


def test_a_table_of_very_many_columns_is_refused(client):
    head = ",".join(["text", "label", *(f"c{i}" for i in range(batches.CELLS))]) + "\na,b\n"
    for path in ("/v1/batch", "/v1/evaluate"):
        assert code_of(client.post(path, content=head, headers=CSV)) == (413, "too-many-values")
        assert code_of(client.post(path, content="\n\n" + head.replace(",", ";"), headers=CSV)) == (413, "too-many-values")


def test_a_row_of_many_lines_is_as_limited_as_one_line(client, monkeypatch):
    for module in (streams, batches):
        monkeypatch.setattr(module, "LONGEST", 2_000)
    table = "text\n" + '"' + "a\n" * 1_001 + '"\n'
    assert code_of(client.post("/v1/batch", content=table, headers=CSV_IN)) == (413, "too-long")
    assert client.post("/v1/batch", content="text\n" + '"a\nb"\n' * 1_001, headers=CSV).status_code == 200


def test_a_row_has_no_more_cells_than_a_text_characters(settings):
    limits = Limits(characters=100)
    with start(replace(settings, limits=limits)) as client:
        row = "," * (100 + batches.CELLS + 1)
        assert code_of(client.post("/v1/batch", content=f"text\n{row}\n", headers=CSV_IN)) == (413, "too-many-values")


@pytest.fixture
def seen(monkeypatch):
    """The rows of each batch that is classified."""
    found, real = [], batches.predict_batch
    monkeypatch.setattr(
        batches, "predict_batch", lambda predictor, rows, text: found.append(rows) or real(predictor, rows, text)
    )
    return found


def test_cells_that_are_not_returned_are_dropped_before_they_wait(client, seen):
    row = json.dumps({"text": "a", "id": 7, "more": list(range(100))}) + "\n"
    client.post("/v1/batch", content=row, headers=NDJSON)
    assert seen[0][0][1] == {"text": "a", "id": 7}
    assert "more" in client.post("/v1/batch?echo=true", content=row, headers=NDJSON).text


def test_all_cells_that_wait_count_in_the_size_of_a_batch(client, seen, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_BYTES", 10_000)
    row = json.dumps({"text": "a", "more": list(range(100))}) + "\n"
    client.post("/v1/batch", content=row * 10, headers=NDJSON)
    assert [len(rows) for rows in seen] == [10]
    seen.clear()
    client.post("/v1/batch?echo=true", content=row * 10, headers=NDJSON)
    assert [len(rows) for rows in seen] == [1] * 10
    seen.clear()
    client.post(
        "/v1/batch", content="text," + ",".join(map(str, range(100))) + "\n" + ("a" + "," * 100 + "\n") * 4, headers=CSV
    )
    assert max(map(len, seen)) == 1


def test_a_text_that_is_too_long_does_not_wait(settings, seen):
    with start(replace(settings, limits=Limits(characters=100))) as client:
        answer = client.post("/v1/batch", content=json.dumps({"text": "a" * 200}) + "\n", headers=NDJSON).text
    assert "up to 100 are allowed" in answer
    assert len(seen[0][0][1].cells["text"]) == 100


# ---- memory for tables that are evaluated -----------------------------------------------------------------------------------


def test_rows_are_counted_however_they_end():
    assert [evaluate.count_rows(b"a,b%bc,d%b" % (end, end), "csv") for end in (b"\n", b"\r", b"\r\n")] == [2, 2, 2]
    assert evaluate.count_rows(b'[{"a":1},{"a":2},{"a":3}]', "jsonl") == 3


def test_the_structure_of_a_table_counts_in_its_memory():
    assert evaluate.parsed_bytes(b"{},{}", "jsonl") > 2 * 200
    assert evaluate.parsed_bytes(b"a|b;c\td", "csv") > 3 * 60
    assert evaluate.parsed_bytes(b"a b c d", "csv") == 4 * 7


@pytest.mark.parametrize(
    ("table", "headers"),
    [
        ("text,label\r" + "dark,x\r" * 800, CSV),
        ("[" + ",".join(['{"text": "dark", "label": "x"}'] * 800) + "]", NDJSON),
        ('{"text": "dark", "label": "x", "more": [' + ",".join(["{}"] * 4_000) + "]}\n", NDJSON),
        ("[" + ",".join("1" * 12_000) + "]", NDJSON),
    ],
)
def test_a_table_that_needs_more_memory_than_there_is_is_refused_while_it_comes(settings, table, headers):
    with start(replace(settings, limits=Limits(memory_bytes=1_000_000))) as client:
        assert code_of(client.post("/v1/evaluate", content=table, headers=headers)) == (413, "memory")
        assert client.app._services.memory.used == 0


# ---- memory for answers -----------------------------------------------------------------------------------------------------


def scope_of(method, path, headers=None, query=b""):
    headers = [(b"host", b"localhost"), *((name.encode(), value.encode()) for name, value in (headers or {}).items())]
    made = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http", "state": {}}
    return made | {"path": path, "raw_path": path.encode(), "query_string": query, "headers": headers, "client": ("x", 1)}


class Client:
    """An ASGI client that sends pieces of a body, and reads only as long as it may."""

    def __init__(self, *pieces, more=False):
        self.pieces, self.more = list(pieces), more
        self.got, self.may_read, self.leaves = [], asyncio.Event(), asyncio.Event()
        self.is_blocked = asyncio.Event()

    async def receive(self):
        if self.pieces:
            body = self.pieces.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(self.pieces) or self.more}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        if len(self.got) > 1 and not self.may_read.is_set():  # the start and one piece, as a socket takes them
            self.is_blocked.set()
            await self.may_read.wait()
        self.got.append(message)

    @property
    def status(self):
        return self.got[0]["status"]

    @property
    def body(self):
        return b"".join(message["body"] for message in self.got[1:])


def test_a_large_answer_is_sent_in_pieces_and_reserved_until_it_is_read(settings):
    services = Services(settings)
    app = make_app(services)
    body = json.dumps({"texts": ["dark screen"] * 400, "top": 50}).encode()

    async def main():
        client = Client(body)
        running = asyncio.create_task(app(scope_of("POST", "/v1/classify", JSON), client.receive, client.send))
        await asyncio.wait_for(client.is_blocked.wait(), 30)
        length = int(dict(client.got[0]["headers"])[b"content-length"])
        assert length > 10 * middleware.PIECE
        assert length <= services.memory.used < 2 * length
        client.may_read.set()
        await running
        assert len(client.body) == length
        assert json.loads(client.body)["results"][399]
        assert max(len(message["body"]) for message in client.got[1:]) == middleware.PIECE
        assert [message["more_body"] for message in client.got[1:]] == [True] * (len(client.got) - 2) + [False]
        assert services.memory.used == 0

    asyncio.run(main())
    services.close()


def test_an_answer_for_which_there_is_no_memory_is_refused_before_it_begins(settings, monkeypatch):
    monkeypatch.setattr(middleware, "PIECE", 1_000)
    with start(replace(settings, limits=Limits(memory_bytes=100_000))) as client:
        services = client.app._services
        services.memory.reserve(95_000, 0)
        assert code_of(client.get("/openapi.json")) == (503, "busy")
        services.memory.release(95_000)
        assert client.get("/openapi.json").status_code == 200
        assert services.memory.used == 0


def test_many_labels_are_reserved_before_they_are_made(settings):
    with start(replace(settings, limits=Limits(memory_bytes=300_000))) as client:
        assert client.post("/v1/classify", json={"texts": ["dark"] * 10, "top": 1}).status_code == 200
        assert code_of(client.post("/v1/classify", json={"texts": ["dark"] * 10, "top": 80})) == (413, "memory")


def test_pages_of_long_documents_are_shorter_and_nothing_is_left_out(client, monkeypatch):
    monkeypatch.setattr(review_store, "PAGE_BYTES", 2_000)
    monkeypatch.setattr(review_routes, "PIECE", 100)
    texts = [f"document {i} of many " + "long " * 100 for i in range(12)]
    numbers = client.post("/v1/reviews", json={"documents": [{"text": text} for text in texts]}).json()["queued"]
    for number in numbers:
        decided = client.post(f"/v1/reviews/{number}/decisions", json={"action": "accept", "reviewer": "ann"})
        assert decided.status_code == 201
    found, total = [], 12
    while len(found) < total:
        page = client.get(
            "/v1/reviews", params={"status": "done", "order": "recent", "offset": len(found), "limit": 200}
        ).json()
        assert 1 <= len(page["documents"]) <= 3
        found += [document["text"] for document in page["documents"]]
        total = page["total"]
    assert found == texts[::-1]
    rows = [json.loads(line) for line in client.get("/v1/reviews/export?format=jsonl").text.splitlines()]
    assert [row["text"] for row in rows] == texts


def test_a_document_longer_than_a_page_is_a_page(client, monkeypatch):
    monkeypatch.setattr(review_store, "PAGE_BYTES", 1)
    client.post("/v1/reviews", json={"documents": [{"text": PARCEL}]})
    assert len(client.get("/v1/reviews").json()["documents"]) == 1


# ---- long work ------------------------------------------------------------------------------------------------------------


def test_a_long_text_is_not_explained(settings):
    with start(replace(settings, limits=Limits(explain_characters=100))) as client:
        assert code_of(client.post("/v1/explain", json={"text": "a " * 60})) == (413, "too-long")
        assert client.post("/v1/explain", json={"text": PARCEL}).status_code == 200
        assert client.post("/v1/classify", json={"text": "a " * 60}).status_code == 200
        assert client.get("/v1/session").json()["limits"]["explain_characters"] == 100


def test_a_search_does_not_wait_for_explanations(client):
    services, go_on = client.app._services, threading.Event()
    for _ in range(services.settings.threads):
        client.portal.start_task_soon(services.explain_pool.run, None, go_on.wait, 60)
    try:
        assert client.get("/v1/taxonomy/search", params={"query": "parcel"}).status_code == 200
    finally:
        go_on.set()


# ---- places for uploads -----------------------------------------------------------------------------------------------------


def run_uploads(settings, first, path=b"/v1/batch", query=b""):
    """A server with one place: a first client that lets it wait, then another one with a whole table."""
    services = Services(replace(settings, limits=Limits(uploads=1)))
    app = make_app(services)

    async def main():
        slow, quick = first(), Client(b'{"text": "dark screen", "label": "x"}\n')
        quick.may_read.set()
        scope = scope_of("POST", path.decode(), NDJSON, query)
        waiting = asyncio.create_task(app(scope, slow.receive, slow.send))
        while services.uploads._free or not slow.is_waiting():
            await asyncio.sleep(0.001)
        await app(scope_of("POST", "/v1/batch", NDJSON), quick.receive, quick.send)
        await asyncio.wait_for(waiting, 30)
        assert services.memory.used == 0
        return slow, quick

    found = asyncio.run(main())
    services.close()
    return found


class SlowSender(Client):
    def is_waiting(self):
        return not self.pieces

    def __init__(self):
        super().__init__(b'{"text": "a"}\n', more=True)
        self.may_read.set()


class SlowReader(Client):
    def is_waiting(self):
        return self.is_blocked.is_set()

    def __init__(self):
        super().__init__(*[b'{"text": "dark"}\n' * 1_000] * 3)


@pytest.mark.parametrize("path", [b"/v1/batch", b"/v1/evaluate"])
def test_a_client_that_sends_slowly_loses_its_place_to_another(settings, monkeypatch, path):
    monkeypatch.setattr(bounds, "PATIENCE", 0.0)
    slow, quick = run_uploads(settings, SlowSender, path)
    assert quick.status == 200
    assert b"labels" in quick.body
    if path == b"/v1/evaluate":
        assert slow.status == 503
        assert b"crowded-out" in slow.body


def test_a_client_that_reads_nothing_loses_its_place_to_another(settings, monkeypatch):
    monkeypatch.setattr(bounds, "PATIENCE", 0.0)
    slow, quick = run_uploads(settings, SlowReader)
    assert quick.status == 200
    assert slow.got[-1].get("more_body") is not False  # its answer has no proper end


def test_while_nobody_is_slow_another_table_is_told_to_come_again(settings, monkeypatch):
    monkeypatch.setattr(bounds, "PATIENCE", float("inf"))
    services = Services(replace(settings, limits=Limits(uploads=1)))
    app = make_app(services)

    async def main():
        slow, quick = SlowSender(), Client(b'{"text": "dark screen"}\n')
        quick.may_read.set()
        waiting = asyncio.create_task(app(scope_of("POST", "/v1/batch", NDJSON), slow.receive, slow.send))
        while services.uploads._free:
            await asyncio.sleep(0.001)
        await app(scope_of("POST", "/v1/batch", NDJSON), quick.receive, quick.send)
        assert quick.status == 503
        slow.leaves.set()
        await waiting

    asyncio.run(main())
    services.close()


# ---- room in the queue ------------------------------------------------------------------------------------------------------


def test_a_full_queue_takes_nothing_more_until_something_is_decided(settings, tmp_path):
    limits = Limits(open_reviews=2)
    with start(replace(settings, reviews=tmp_path / "r.db", limits=limits)) as client:

        def queue(*texts):
            return client.post("/v1/reviews", json={"documents": [{"text": text} for text in texts]})

        assert code_of(queue("a", "b", "c")) == (507, "queue-full")
        assert client.get("/v1/reviews").json()["total"] == 0
        assert queue("a", "b").status_code == 201
        assert code_of(queue("c")) == (507, "queue-full")
        assert queue("a", "b").json() == {"queued": [1, 2], "known": 2}
        client.post("/v1/reviews/1/decisions", json={"action": "reject"})
        assert queue("c").status_code == 201


def test_a_review_file_does_not_grow_beyond_its_limit(settings, tmp_path):
    with start(replace(settings, reviews=tmp_path / "r.db", limits=Limits(review_bytes=300_000))) as client:
        assert client.post("/v1/reviews", json={"documents": [{"text": "a " * 50_000}]}).status_code == 201
        assert code_of(client.post("/v1/reviews", json={"documents": [{"text": "b " * 200_000}]})) == (507, "queue-full")
        assert client.get("/v1/reviews").json()["total"] == 1


def not_queued(client):
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith('ramify_reviews_total{what="not queued"}'))


def test_what_cannot_be_queued_is_counted_and_logged_once_and_answers_go_on(settings, tmp_path, caplog):
    limits = Limits(open_reviews=0)
    with start(replace(settings, reviews=tmp_path / "r.db", review_below=1.0, limits=limits)) as client:
        for _ in range(3):
            assert client.post("/v1/classify", json={"texts": ["dark screen", PARCEL]}).status_code == 200
            client.post("/v1/batch", content='"please call me"\n', headers=NDJSON)
        while not_queued(client) < 9:
            pass
        assert [record.getMessage() for record in caplog.records].count("not queued") == 1
        assert client.get("/v1/reviews").json()["total"] == 0
        assert client.app._services.memory.used == 0


def test_texts_that_queue_up_by_themselves_count_in_the_memory_until_they_are_written(settings, tmp_path):
    with start(replace(settings, reviews=tmp_path / "r.db", review_below=1.0)) as client:
        services, go_on = client.app._services, threading.Event()
        client.portal.start_task_soon(services.review_pool.run, None, go_on.wait, 60)
        client.post("/v1/classify", json={"text": "dark " * 1_000})
        assert services.memory.used >= 5_000
        go_on.set()
        while services.memory.used:
            pass
        assert client.get("/v1/reviews").json()["total"] == 1


def test_more_than_a_fourth_of_the_memory_does_not_wait_for_the_queue(settings, tmp_path):
    limits = Limits(memory_bytes=400_000)
    with start(replace(settings, reviews=tmp_path / "r.db", review_below=1.0, limits=limits)) as client:
        assert client.post("/v1/classify", json={"text": "dark " * 2_000}).status_code == 200
        assert not_queued(client) == 1


def test_the_bundled_tables_are_far_from_every_limit(client):
    texts = load_electronics().test.documents[:1_000]
    assert client.post("/v1/classify", json={"texts": texts, "top": 5}).status_code == 200


@pytest.mark.parametrize("most", [1, 7, 10_000])
def test_a_large_answer_is_written_in_parts(client, monkeypatch, most):
    texts = [PARCEL, "", "a \u2028 \U0001f600 screen", "the screen stays dark"] * 5
    whole = client.post("/v1/classify", json={"texts": texts, "top": 5}).json()
    sizes, real = [], classify_route.to_json

    def to_json(value):
        sizes.append(sum(len(each["labels"]) + len(each["others"]) for each in value) if isinstance(value, list) else 0)
        return real(value)

    monkeypatch.setattr(classify_route, "to_json", to_json)
    monkeypatch.setattr(classify_route, "MOST_LABELS", most)
    assert client.post("/v1/classify", json={"texts": texts, "top": 5}).json() == whole
    assert sum(sizes) == 15 * 5
    assert max(sizes) < most + 5


def test_files_of_models_are_looked_at_outside_of_the_event_loop(client, monkeypatch):
    """A disk that does not answer must not stop the server."""
    loops = []

    def has_changed(served):
        loops.append(asyncio._get_running_loop())
        return False

    monkeypatch.setattr(ServedModel, "has_changed", property(has_changed))
    for path in ("/v1/models", "/v1/models/m"):
        assert client.get(path).status_code == 200
    assert client.post("/v1/models/m/reload").status_code == 200
    assert loops == [None] * 3


def test_the_description_of_the_api_is_there_before_anybody_asks(settings):
    with start(settings) as made:
        assert made.app._app.openapi_schema is not None
