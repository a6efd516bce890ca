"""Attacks on the server: bodies, query strings and headers. No answer may be a server error or show where the code is."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attacks import edits
from attacks.edits import Rng
from attacks.model_parts import BASES, SHARDED

MODELS = {"nb": "nb", "calibrated": "guarantee", "dag": "dag, svm"}
JSON_BODIES: dict[str, Any] = {
    "/v1/classify": {"texts": ["red b1 box", "new"], "model": "nb", "top": 2, "threshold": 0.1, "within": ["a"], "without": []},
    "/v1/explain": {"text": "red b1 box", "label": "a/b", "model": "nb"},
    "/v1/reviews": {"model": "nb", "documents": [{"text": "red b1 box", "source": "mail"}]},
    "/v1/reviews/1/decisions": {"action": "accept", "labels": ["a/b"], "comment": "yes"},
}
TABLES = ("/v1/batch", "/v1/evaluate", "/v1/tables/preview", "/v1/tables/csv")
READ = ("/v1/models", "/v1/models/nb", "/v1/models/nb/report", "/v1/taxonomy", "/v1/taxonomy/search", "/v1/reviews", "/v1/reviews/1",
        "/v1/reviews/summary", "/v1/reviews/export", "/v1/session", "/metrics", "/healthz", "/", "/page/index.html")  # fmt: skip
PARAMETERS = ("model", "top", "threshold", "risk", "nodes", "by_branch", "within", "without", "text", "id", "echo", "paths", "label",
              "queue_below", "node", "query", "q", "limit", "offset", "status", "order", "format", "after", "kind", "page", "encoding", "cut", "sheet")  # fmt: skip
VALUES = ("", "0", "1", "-1", "2", "10", "0.5", "1.5", "nan", "inf", "-inf", "1e400", "true", "a", "a/b", "nb", "dag", "calibrated", "\x00",
          "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "é", "x" * 3000, "9" * 400, "[]", "null", "../../etc/passwd",
          "text", "label", "csv", "jsonl", "open", "done", "all", "recent", "utf-16", "cp1252", "2147483648", "9223372036854775808")  # fmt: skip
TYPES = (
    "application/json",
    "text/csv",
    "application/x-ndjson",
    "text/plain",
    "application/json; charset=utf-16",
    "",
    "x" * 300,
    "multipart/form-data",
)
CSV = "id,text,label\n1,red b1 box,a/b\n2,new c1 box,a/c\n3,old h1 box,d/f/h\n"
NDJSON = '{"text": "red b1 box", "label": "a/b"}\n{"text": "new c2", "label": ["a/c"]}\n'


def prepare(folder: Path) -> None:
    """Train the models that are served."""
    for name, base in MODELS.items():
        assert base not in SHARDED
        BASES[base]().save(folder / name)


@cache
def _client(folder: Path, scratch: Path) -> Any:
    from starlette.testclient import TestClient

    from ramify.server.app import make_app
    from ramify.server.services import Services
    from ramify.server.settings import Limits, Settings

    limits = Limits(texts=50, characters=5000, upload_bytes=1 << 26)
    settings = Settings({name: folder / name for name in MODELS}, reviews=scratch / "served.db", limits=limits, threads=1)
    client = TestClient(make_app(Services(settings)), base_url="http://localhost")
    client.__enter__()
    queued = client.post("/v1/reviews", json={"model": "nb", "documents": [{"text": "red b1 box"}]})
    assert queued.status_code == 201, queued.text  # so that there is a document to decide about
    return client


def make(rng: Rng, folder: Path) -> dict[str, Any]:
    """A random request."""
    kind = rng.random()
    case: dict[str, Any] = {"method": "POST", "headers": {}}
    if kind < 0.5:
        case["path"] = edits.pick(rng, list(JSON_BODIES))
        body = JSON_BODIES[case["path"]]
        for _ in range(int(rng.integers(1, 3))):
            body = edits.edit_json(body, edits.random_json_edit(rng, body, edits.paths_in(body)))
        data = edits.render_json(body)
        case["headers"]["content-type"] = "application/json"
    elif kind < 0.75:
        case["path"] = edits.pick(rng, TABLES)
        is_csv = rng.random() < 0.5
        data, case["headers"]["content-type"] = (
            (CSV.encode(), "text/csv") if is_csv else (NDJSON.encode(), "application/x-ndjson")
        )
    else:
        case["path"], case["method"], data = (
            edits.pick(rng, READ),
            edits.pick(rng, ("GET", "GET", "GET", "POST", "HEAD", "PUT")),
            b"",
        )
    if data and rng.random() < (0.3 if kind < 0.5 else 0.9):
        for _ in range(int(rng.integers(1, 4))):
            data = edits.edit_bytes(data, edits.random_byte_edit(rng, len(data)))
    if rng.random() < (0.15 if kind < 0.5 else 0.8):
        case["query"] = [[edits.pick(rng, PARAMETERS), edits.pick(rng, VALUES)] for _ in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.15:
        case["headers"]["content-type"] = edits.pick(rng, TYPES)
    if rng.random() < 0.1:
        name = edits.pick(rng, ("content-encoding", "accept", "authorization", "range", "host", "content-length", "origin"))
        case["headers"][name] = edits.pick(
            rng, ("gzip", "text/csv", "Bearer x", "bytes=0-", "evil", "-1", "identity", "*/*", "localhost")
        )
    return {**case, "body": base64.b64encode(data[: 1 << 19]).decode()}


def attempt(case: dict[str, Any], folder: Path, scratch: Path) -> str:
    """Send the request; returns what happened."""
    client = _client(folder, scratch)
    query = "&".join(
        f"{quote(name)}={quote(value, encoding='latin-1', errors='replace')}" for name, value in case.get("query", ())
    )
    url = case["path"] + (f"?{query}" if query else "")
    body = edits.unpack(case["packed"]) if "packed" in case else base64.b64decode(case["body"])
    found = client.request(case["method"], url, content=body, headers=case["headers"])
    assert found.status_code < 500 or found.status_code == 503, f"status {found.status_code}: {found.text[:300]}"
    assert "Traceback" not in found.text, found.text[:300]
    assert ".py" not in found.text or found.headers["content-type"].startswith(("text/html", "text/javascript")), found.text[
        :300
    ]
    if found.status_code < 400 or case["method"] == "HEAD":
        if found.headers.get("content-type", "").startswith("application/json") and case["method"] != "HEAD":
            json.loads(found.text, parse_constant=_refuse)
        return "answered"
    return f"refused: {found.json()['error']['message']}"


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")
