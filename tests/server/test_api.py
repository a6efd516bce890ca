"""What the API answers, and what it refuses."""

from __future__ import annotations

import gzip
import json
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from starlette.testclient import TestClient

from ramify import load
from ramify.classifier import make_rule
from ramify.data import load_electronics
from ramify.errors import ModelError
from ramify.metrics import h_loss
from ramify.server.app import make_app
from ramify.server.keys import add_key
from ramify.server.services import Services
from ramify.server.settings import Limits, Settings

PARCEL = "my parcel was due on monday and the tracking has not moved since"
PICTURE = "the tv has no picture any more, only sound"
NDJSON, CSV = {"content-type": "application/x-ndjson"}, {"content-type": "text/csv"}


def start(settings):
    return TestClient(make_app(Services(settings)), base_url="http://localhost")


@pytest.fixture(scope="module")
def settings(models, tmp_path_factory):
    return Settings(models, reviews=tmp_path_factory.mktemp("reviews") / "reviews.db")


@pytest.fixture(scope="module")
def client(settings):
    with start(settings) as made:
        yield made


@pytest.fixture(scope="module")
def classifier(models):
    return load(models["support"])


def refused(response, status, code):
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert error["message"]
    return error["message"]


# ---- classify ---------------------------------------------------------------------------------------------------------


def test_answers_are_those_of_the_model(client, classifier):
    texts = load_electronics().test.documents[:200]
    results = client.post("/v1/classify", json={"texts": texts}).json()["results"]
    given = [[label["label"] for label in result["labels"]] for result in results]
    assert [sorted(row) for row in given] == [sorted(row) for row in classifier.predict(texts)]
    for p, result in zip(classifier.predict_proba(texts), results, strict=True):
        for label in result["labels"]:
            nodes = classifier.taxonomy_.nodes_to(classifier.taxonomy_.index(label["label"]))
            assert label["probabilities"] == pytest.approx(p[nodes].tolist(), abs=1e-5)
            assert label["path"] == [classifier.taxonomy_.titles[node] for node in nodes]
            assert label["probability"] == label["probabilities"][-1]


def test_one_text_alone_gets_the_same_answer_as_among_others(client):
    texts = [PARCEL, PICTURE, "thank you"]
    together = client.post("/v1/classify", json={"texts": texts, "top": 3}).json()["results"]
    assert together == [client.post("/v1/classify", json={"text": text, "top": 3}).json()["results"][0] for text in texts]


def test_every_model_is_asked_by_its_name_and_the_first_without_one(client):
    assert client.post("/v1/classify", json={"text": PARCEL}).json()["model"] == "support"
    assert client.post("/v1/classify", json={"text": PARCEL, "model": "support-nb"}).json()["model"] == "support-nb"
    assert "support-nb" in refused(client.post("/v1/classify", json={"text": "x", "model": "suport-nb"}), 404, "unknown-model")


def test_a_risk_backs_off_to_a_parent_and_the_model_states_its_guarantee(client):
    guarantee = client.get("/v1/models/support").json()["guarantee"]
    assert guarantee["documents"] > 2_000
    assert not guarantee["is_proven"]
    deep, safe = (
        client.post("/v1/classify", json={"text": PARCEL, "risk": risk}).json()["results"][0]["labels"] for risk in (0.6, 0.02)
    )
    assert sum(len(label["path"]) for label in deep) >= sum(len(label["path"]) for label in safe)
    table = "text\n" + PARCEL + "\n"
    answer = client.post("/v1/batch?risk=0.6", content=table, headers=CSV).text
    assert deep[0]["label"] in answer
    refused = client.post("/v1/classify", json={"text": PARCEL, "risk": guarantee["least_risk"] / 2})
    assert refused.status_code == 422
    assert "held-out documents" in refused.json()["error"]["message"]


def test_options_are_respected(client):
    asked = {"text": PARCEL, "within": ["Payment & invoices"], "top": 2}
    result = client.post("/v1/classify", json=asked).json()["results"][0]
    assert all(label["path"][0] == "Payment & invoices" for label in result["labels"] + result["others"])
    assert len(result["labels"] + result["others"]) == 2
    result = client.post("/v1/classify", json={"text": PARCEL, "without": ["Orders & delivery"]}).json()["results"][0]
    assert result["labels"][0]["path"][0] != "Orders & delivery"
    sure = client.post("/v1/classify", json={"text": PARCEL, "threshold": 1.0}).json()["results"][0]
    assert sure["labels"] == []
    assert sure["problem"] is None


def test_a_request_may_name_another_rule(client, classifier):
    texts = load_electronics().test.documents[:50]
    asked = {"isotonic": {"penalty": {"Orders & delivery": 2, "Returns & warranty": 1e9}, "weights": {"Orders & delivery": 3}}}
    asked |= {"minimize-h-loss": {"costs": {"Orders & delivery": 3.5}}, "top-down": {"threshold": -0.2}, "rcut": {"k": 3}}
    for rule, params in asked.items():
        body = {"texts": texts, "rule": rule, "rule_params": params}
        results = client.post("/v1/classify", json=body).json()["results"]
        own = classifier.redecided(make_rule(rule, params))
        expected = [set(labels) for labels in own.taxonomy_.decode(own.predict_matrix(texts))]
        names = [{own.taxonomy_.names[own.taxonomy_.index(label["label"])] for label in r["labels"]} for r in results]
        assert names == expected, rule
        rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        query = {"rule": rule, "rule_params": json.dumps(params)}
        lines = client.post("/v1/batch", params=query, content=rows.encode(), headers=NDJSON).text.splitlines()
        assert [{label["label"] for label in json.loads(line)["labels"]} for line in lines] == [
            {label["label"] for label in r["labels"]} for r in results
        ]
    assert client.post("/v1/classify", json={"texts": texts}).json()["results"] != results


def test_empty_texts_have_a_problem_and_no_label(client):
    results = client.post("/v1/classify", json={"texts": ["", "  \n", PARCEL]}).json()["results"]
    assert [result["problem"] for result in results] == ["the text is empty", "the text is empty", None]
    assert [bool(result["labels"]) for result in results] == [False, False, True]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "misfit"),
        ({"text": "a", "texts": ["b"]}, 422, "misfit"),
        ({"texts": []}, 422, "misfit"),
        ({"text": 5}, 422, "misfit"),
        ({"texts": "abc"}, 422, "misfit"),
        ({"text": "a", "top": 0}, 422, "misfit"),
        ({"text": "a", "top": 1000}, 422, "misfit"),
        ({"text": "a", "threshold": 2}, 422, "misfit"),
        ({"text": "a", "risk": 0}, 422, "misfit"),
        ({"text": "a", "nodes": 3}, 422, "misfit"),
        ({"text": "a", "within": ["nowhere"]}, 404, "unknown-label"),
        ({"text": "a", "within": ["Orders & delivery"], "without": ["Orders & delivery"]}, 422, "misfit"),
        ({"text": "a", "surprise": 1}, 422, "misfit"),
        ({"text": "a", "model": "../../etc/passwd"}, 404, "unknown-model"),
        ({"text": "a", "model": "x" * 65}, 422, "misfit"),
        (["a"], 422, "misfit"),
        (5, 422, "misfit"),
        ({"text": "a", "rule": "bast"}, 422, "rule"),
        ({"text": "a", "rule": 5}, 422, "misfit"),
        ({"text": "a", "rule_params": {"penalty": 1}}, 422, "misfit"),
        ({"text": "a", "rule": "best", "rule_params": {"penalty": 1}}, 422, "rule"),
        ({"text": "a", "rule": "isotonic"}, 422, "rule"),  # is to be fitted
        ({"text": "a", "rule": "scut"}, 422, "rule"),
        ({"text": "a", "rule": "isotonic", "rule_params": {"penalty": 1, "levels": None}}, 422, "rule"),
        ({"text": "a", "rule": "minimize-h-loss", "rule_params": {"costs": {"nowhere": 1}}}, 422, "rule"),
        ({"text": "a", "rule": "minimize-h-loss", "rule_params": {"costs": {"Returns & warranty": "x"}}}, 422, "rule"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(client, body, status, code):
    message = refused(client.post("/v1/classify", json=body), status, code)
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    "body", [b"{", b"", b"\xff\xfe{", b'{"text": "\xff"}', b'{"text": NaN}', b'{"text": "\\ud800"}', b"[" * 10_000]
)
def test_bodies_that_are_no_json_are_refused(client, body):
    response = client.post("/v1/classify", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert response.json()["error"]["message"]


def test_a_refusal_does_not_repeat_the_document(client):
    secret = "the secret of the document"
    response = client.post("/v1/classify", json={"text": [secret]})
    assert response.status_code == 422
    assert secret not in response.text


def test_a_long_list_of_what_does_not_fit_is_refused(client):
    as_json = {"content-type": "application/json"}
    for body in ('{"texts": [' + "1," * 9_000 + "1]}", '{"texts": [' + '"a",' * 500_000 + '"a"]}'):
        response = client.post("/v1/classify", content=body.encode(), headers=as_json)
        assert response.status_code == (413 if len(body) > 1_000_000 else 422)
    body = '{"documents": [' + "{}," * 9_000 + "{}]}"
    assert client.post("/v1/reviews", content=body.encode(), headers=as_json).status_code == 422


# ---- limits -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(settings, tmp_path_factory):
    limits = Limits(texts=3, characters=100, body_bytes=2_000, upload_bytes=5_000)
    with start(replace(settings, limits=limits, reviews=tmp_path_factory.mktemp("small") / "r.db")) as made:
        yield made


def test_more_than_is_allowed_is_refused(small):
    refused(small.post("/v1/classify", json={"texts": ["a"] * 4}), 413, "too-many")
    refused(small.post("/v1/classify", json={"text": "a" * 101}), 413, "too-long")
    refused(small.post("/v1/classify", json={"text": "a" * 3_000}), 413, "too-large")
    refused(small.post("/v1/explain", json={"text": "a" * 101}), 413, "too-long")
    refused(small.post("/v1/reviews", json={"documents": [{"text": "a"}] * 4}), 413, "too-many")
    refused(small.post("/v1/evaluate", content=b"text,label\n" + b"x" * 6_000, headers=CSV), 413, "too-large")
    assert small.post("/v1/classify", json={"texts": ["a"] * 3}).status_code == 200


def test_a_body_that_hides_its_length_is_cut_off_all_the_same(small):
    def pieces():
        yield b'{"text": "'
        for _ in range(100):
            yield b"a" * 100
        yield b'"}'

    refused(small.post("/v1/classify", content=pieces(), headers={"content-type": "application/json"}), 413, "too-large")


def test_a_row_that_is_too_long_is_a_problem_of_that_row_alone(small):
    body = json.dumps({"text": "a" * 200}) + "\n" + json.dumps({"text": PARCEL[:50]}) + "\n"
    first, second = small.post("/v1/batch", content=body, headers=NDJSON).text.splitlines()
    assert "up to 100 are allowed" in json.loads(first)["problem"]
    assert "problem" not in json.loads(second)


def test_labels_of_tables_have_their_paths_where_that_is_wanted(client):
    plain = json.loads(client.post("/v1/batch", content='"late parcel"\n', headers=NDJSON).text)
    wanted = json.loads(client.post("/v1/batch", content='"late parcel"\n', headers=NDJSON, params={"paths": True}).text)
    assert "path" not in plain["labels"][0]
    assert wanted["labels"][0]["path"] == wanted["labels"][0]["label"].split(" > ")


def test_what_a_table_lacks_is_named(client):
    assert (
        json.loads(client.post("/v1/batch", content='{"text": "a"}\n{"body": "b"}\n', headers=NDJSON).text.splitlines()[1])[
            "problem"
        ]
        == "there is no 'text'"
    )
    message = refused(client.post("/v1/batch", content="text\nparcel\n", headers=CSV, params={"id": "no--such"}), 422, "table")
    assert "no--such" in message
    refused(client.post("/v1/batch", content=gzip.compress(b"text\nparcel\n"), headers=CSV), 415, "packed")
    found = client.post("/v1/batch", content='"parcel"\n', headers=NDJSON, params={"text": "body"}).text
    assert "problem" not in json.loads(found)
    odd = client.post("/v1/batch", content='{"text": "parcel", "id": NaN}\n"x", "id": 7\n', headers=NDJSON).text.splitlines()
    assert json.loads(odd[0])["id"] is None
    assert "problem" in json.loads(odd[1])


# ---- models and taxonomy ----------------------------------------------------------------------------------------------


def test_models_tell_about_themselves(client):
    models = client.get("/v1/models").json()["models"]
    assert [(model["name"], model["system"], model["is_default"]) for model in models] == [
        ("support", "svm", True),
        ("support-nb", "nb", False),
    ]
    assert models[0]["documents"] == 2464
    assert client.get("/v1/models/support").json() == models[0]
    assert client.get("/v1/models/support/report").json()["report"]["figures"] == models[0]["evaluation"]
    for name in ("no", "..%2F..%2Fetc", "%00", "support%2F..", "ü"):
        assert client.get(f"/v1/models/{name}").status_code == 404


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("manifest", lambda about: about["figures"]["evaluation"].update(accuracy="high")),
        ("manifest", lambda about: about["figures"].update(tested_on="many")),
        ("report", lambda report: report["nodes"][0].update(support="x")),
        ("report", lambda report: report["nodes"][0].pop("name")),
        ("report", lambda report: report.update(levels=5)),
        ("report", lambda report: report.pop("distances")),
    ],
)
def test_figures_that_are_none_are_refused_when_a_model_is_loaded(models, tmp_path, part, change):
    from ramify.persistence import read_model, write_model

    stored = read_model(models["support-nb"])
    change(stored.metadata if part == "manifest" else stored.documents["report"])
    write_model(tmp_path / "m", stored)
    with pytest.raises(ModelError):
        load(tmp_path / "m")


def test_models_without_report_and_sizes_load_as_before(models, tmp_path):
    from ramify.persistence import read_model, write_model

    stored = read_model(models["support-nb"])
    stored.documents.pop("report")
    stored.arrays.pop("figures.sizes")
    write_model(tmp_path / "m", stored)
    fitted = load(tmp_path / "m")
    assert fitted.report_ is None
    assert fitted.sizes_ is None
    fitted.save(tmp_path / "m")


def test_a_model_is_read_anew_and_a_damaged_one_leaves_the_old_in_use(settings, models, tmp_path):
    place = tmp_path / "model"
    load(models["support-nb"]).save(place)
    with start(replace(settings, models={"m": place}, reviews=None)) as client:
        before = client.post("/v1/classify", json={"text": PARCEL}).json()
        load(models["support"]).save(place)
        assert client.post("/v1/models/m/reload").json()["system"] == "svm"
        after = client.post("/v1/classify", json={"text": PARCEL}).json()
        assert after != before
        (place / "taxonomy.json").write_text("{}")
        assert "old model stays" in refused(client.post("/v1/models/m/reload"), 409, "bad-model")
        assert client.post("/v1/classify", json={"text": PARCEL}).json() == after


def test_the_taxonomy_is_told_piece_by_piece(client, classifier):
    taxonomy = classifier.taxonomy_
    top = client.get("/v1/taxonomy").json()
    assert [node["name"] for node in top["children"]] == [taxonomy.names[node] for node in taxonomy.roots]
    assert top["node"] is None
    first = top["children"][0]
    below = client.get("/v1/taxonomy", params={"node": first["name"], "limit": 2, "offset": 1}).json()
    children = taxonomy.children_of(taxonomy.index(first["name"]))
    assert [node["name"] for node in below["children"]] == [taxonomy.names[node] for node in children[1:3]]
    assert below["total"] == len(children) == first["children"]
    assert below["node"] == first
    leaf = client.get("/v1/taxonomy", params={"node": taxonomy.names[int(np.flatnonzero(taxonomy.is_leaf)[0])]}).json()
    assert [node["depth"] for node in leaf["above"]] == [0, 1]
    assert leaf["children"] == []
    assert leaf["node"]["leaves"] == 1


def test_nodes_have_the_documents_and_the_quality_of_the_training(client, classifier):
    top = client.get("/v1/taxonomy").json()["children"]
    Y = classifier.taxonomy_.encode(load_electronics().train.labels)
    counts = np.bincount(Y.indices, minlength=len(classifier.taxonomy_))
    assert [node["documents"] for node in top] == [int(counts[classifier.taxonomy_.index(node["name"])]) for node in top]
    rows = {row["name"]: row for row in classifier.report_["nodes"]}
    assert [node["quality"]["f1"] for node in top] == [rows[node["name"]]["f1"] for node in top]
    assert sum(node["leaves"] for node in top) == int(classifier.taxonomy_.is_leaf.sum())


def test_a_search_finds_all_words_wherever_they_stand(client):
    found = client.get("/v1/taxonomy/search", params={"query": "LATE parcel"}).json()
    assert found["matches"][0]["title"] == "Late or lost parcel"
    assert client.get("/v1/taxonomy/search", params={"query": "delivery late"}).json()["total"] >= 1
    for nothing in ("", "   ", "zzzz"):
        assert client.get("/v1/taxonomy/search", params={"query": nothing}).json()["matches"] == []
    refused(client.get("/v1/taxonomy/search"), 422, "misfit")
    refused(client.get("/v1/taxonomy", params={"node": "nowhere"}), 404, "unknown-label")
    refused(client.get("/v1/taxonomy", params={"model": "nobody"}), 404, "unknown-model")


# ---- explain ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["support", "support-nb"])
def test_words_and_prior_add_up_at_every_step_and_stand_where_it_is_said(client, model):
    made = client.post("/v1/explain", json={"text": PICTURE, "model": model}).json()
    assert made["additive"]
    assert [step["title"] for step in made["steps"]] == made["explained"]["path"]
    for step in made["steps"]:
        assert sum(word["weight"] for word in step["words"]) + step["prior"] == pytest.approx(step["score"], abs=1e-4)
        assert step["reason"]
    assert sum(word["weight"] for word in made["explained"]["words"]) + made["explained"]["prior"] == pytest.approx(
        made["explained"]["margin"], abs=1e-4
    )
    assert {PICTURE[span["start"] : span["end"]].lower() for span in made["spans"]} >= {"picture", "sound"}
    for span in made["spans"]:
        assert made["terms"][span["word"]] == PICTURE[span["start"] : span["end"]].lower()
    assert {node["node"] for node in made["nodes"]} >= {step["node"] for step in made["steps"]}


def test_of_very_many_words_the_largest_are_listed_and_the_rest_added_up(client, monkeypatch):
    whole = client.post("/v1/explain", json={"text": PICTURE}).json()
    monkeypatch.setattr("ramify.server.predictions.MOST_WORDS", 2)
    monkeypatch.setattr("ramify.server.predictions.MOST_SPANS", 1)
    short = client.post("/v1/explain", json={"text": PICTURE}).json()
    assert len(short["spans"]) == 1
    for before, after in zip(whole["steps"], short["steps"], strict=True):
        for word, expected in zip(after["words"], before["words"][:2], strict=True):
            assert (word["text"], word["weight"]) == (expected["text"], expected["weight"])
            assert short["terms"][word["word"]] == whole["terms"][expected["word"]]
        assert after["rest"] == pytest.approx(sum(word["weight"] for word in before["words"][2:]))
        assert before["rest"] == 0


def test_another_label_can_be_explained_and_the_truth_told(client):
    label = "Returns & warranty > Refunds > Refund not received"
    made = client.post("/v1/explain", json={"text": PICTURE, "label": label, "true": [label]}).json()
    assert made["explained"]["label"] == label
    assert any(node["is_first_error"] for node in made["nodes"])
    assert not made["steps"][0]["is_taken"]
    refused(client.post("/v1/explain", json={"text": PICTURE, "label": "nowhere"}), 404, "unknown-label")
    refused(client.post("/v1/explain", json={"text": "  "}), 422, "misfit")


# ---- evaluate ---------------------------------------------------------------------------------------------------------


def test_a_table_is_evaluated_as_by_the_command_line(client, classifier):
    shop = load_electronics()
    rows = "".join(
        json.dumps({"text": text, "label": labels}) + "\n"
        for text, labels in zip(shop.test.documents, shop.test.labels, strict=True)
    )
    made = client.post("/v1/evaluate", params={"examples": 5}, content=rows.encode(), headers=NDJSON).json()
    assert made["report"]["figures"] == pytest.approx(classifier.report_["figures"])
    assert made["documents"] == len(shop.test)
    assert len(made["errors"]) == 5
    distances = [error["distance"] for error in made["errors"]]
    assert distances == sorted(distances, reverse=True)
    for error in made["errors"]:
        assert error["text"] == shop.test.documents[error["line"] - 1]
        assert error["true"] != [label["label"] for label in error["predicted"]]


def test_a_table_is_evaluated_with_a_rule_and_costs(client, classifier):
    shop = load_electronics()
    pairs = list(zip(shop.test.documents, shop.test.labels, strict=True))[:100]
    rows = "".join(json.dumps({"text": text, "label": labels}) + "\n" for text, labels in pairs)
    costs, params = {"Orders & delivery": 3.0}, {"costs": {"Orders & delivery": 3.0}}
    query = {"rule": "minimize-h-loss", "rule_params": json.dumps(params), "costs": json.dumps(costs)}
    figures = client.post("/v1/evaluate", params=query, content=rows.encode(), headers=NDJSON).json()["report"]["figures"]
    Y = classifier.redecided(make_rule("minimize-h-loss", params)).predict_matrix([text for text, _ in pairs])
    T = classifier.taxonomy_.encode([labels for _, labels in pairs])
    assert figures["h_loss_own_costs"] == pytest.approx(h_loss(T, Y, classifier.taxonomy_, costs))
    assert figures["h_loss"] == pytest.approx(h_loss(T, Y, classifier.taxonomy_))
    for wrong, code in (
        ({"costs": '{"nowhere": 1}'}, "table"),
        ({"costs": "[1]"}, "costs"),
        ({"costs": "{" * 10_000}, "costs"),
        ({"rule_params": '{"penalty": 1}'}, "rule"),
        ({"rule": "best", "rule_params": "[5]"}, "rule-params"),
        ({"rule": "scut"}, "rule"),
    ):
        message = refused(client.post("/v1/evaluate", params=wrong, content=rows.encode(), headers=NDJSON), 422, code)
        assert "--" not in message


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"", CSV, 422, "table"),
        (b"text,label\n", CSV, 422, "table"),
        (b"text,label\nno picture,nowhere\n", CSV, 422, "table"),
        (b"a,b\n1,2\n", CSV, 422, "table"),
        (b'text,label\n"open quote,x\n', CSV, 422, "table"),
        (b"\x00\x01", CSV, 422, "table"),
        (b"PAR1 no parquet", {"content-type": "application/vnd.apache.parquet"}, 415, "content-type"),
        (b"PAR1 no parquet", CSV, 415, "packed"),
        (gzip.compress(b"text,label\nparcel,x\n", mtime=0), CSV, 415, "packed"),
        (b"text,label\nparcel,x\n", CSV, 422, "table"),
        (b"text,label\n", {"content-type": "text/plain"}, 415, "content-type"),
        (b"text,label\n", {}, 415, "content-type"),
    ],
)
def test_tables_that_cannot_be_evaluated_are_refused_without_telling_where_they_lay(client, body, headers, status, code):
    message = refused(client.post("/v1/evaluate", content=body, headers=headers), status, code)
    assert "/tmp" not in message
    assert "--" not in message


# ---- reviews ----------------------------------------------------------------------------------------------------------


def test_documents_go_through_the_queue_into_training_rows(client):
    texts = ["the parcel went to a neighbour nobody knows", "sound but no picture at all", "asdf qwertz"]
    queued = client.post("/v1/reviews", json={"documents": [{"text": text, "source": "test"} for text in texts]})
    assert queued.status_code == 201
    numbers = queued.json()["queued"]
    assert client.post("/v1/reviews", json={"documents": [{"text": texts[0]}]}).json() == {"queued": numbers[:1], "known": 1}
    listed = client.get("/v1/reviews", params={"limit": 200}).json()
    assert {document["text"] for document in listed["documents"]} >= set(texts)
    confidences = [document["confidence"] for document in listed["documents"]]
    assert confidences == sorted(confidences)
    right = "TV, audio & smart home > TV & projectors > Picture problems"
    accepted = client.post(f"/v1/reviews/{numbers[0]}/decisions", json={"action": "accept", "reviewer": "ann"})
    assert accepted.status_code == 201
    assert accepted.json()["decisions"][0]["reviewer"] == "ann"
    corrected = client.post(f"/v1/reviews/{numbers[1]}/decisions", json={"action": "correct", "labels": ["Picture problems"]})
    assert corrected.json()["decisions"][0]["labels"] == [right]
    client.post(f"/v1/reviews/{numbers[2]}/decisions", json={"action": "reject", "comment": "no words"})
    exported = client.get("/v1/reviews/export", params={"format": "jsonl"}).text.splitlines()
    rows = {row["text"]: row["label"] for row in map(json.loads, exported)}
    assert rows[texts[1]] == [right]
    assert texts[0] in rows
    assert texts[2] not in rows
    assert client.get("/v1/reviews/export").text.startswith("text,label,")
    summary = client.get("/v1/reviews/summary").json()
    assert (summary["accepted"], summary["corrected"], summary["rejected"]) == (1, 1, 1)
    assert summary["agreement"] == 0.5
    assert summary["by_level"][0]["documents"] == 2


def test_decisions_that_make_no_sense_are_refused(client):
    (number,) = client.post("/v1/reviews", json={"documents": [{"text": "where is my invoice"}]}).json()["queued"]
    place = f"/v1/reviews/{number}/decisions"
    refused(client.post(place, json={"action": "correct"}), 422, "no-labels")
    refused(client.post(place, json={"action": "correct", "labels": ["nowhere"]}), 404, "unknown-label")
    refused(client.post(place, json={"action": "burn"}), 422, "misfit")
    refused(client.post("/v1/reviews/99999999/decisions", json={"action": "reject"}), 404, "unknown-review")
    refused(client.get("/v1/reviews/99999999"), 404, "unknown-review")
    refused(client.get(f"/v1/reviews/{1 << 70}"), 422, "misfit")
    refused(client.get("/v1/reviews/abc"), 422, "misfit")
    refused(client.post("/v1/reviews", json={"documents": [{"text": " "}]}), 422, "misfit")
    assert client.get(f"/v1/reviews/{number}").json()["decisions"] == []


def test_a_file_of_reviews_that_is_held_by_another_is_told_and_answers_go_on(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("ramify.server.reviews.store.WAIT", 0.1)
    with start(replace(settings, reviews=tmp_path / "r.db", review_below=1.0)) as client:
        other = sqlite3.connect(tmp_path / "r.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert "locked" in refused(client.post("/v1/reviews", json={"documents": [{"text": "a b"}]}), 503, "reviews")
        assert client.post("/v1/classify", json={"text": PARCEL}).status_code == 200
        assert client.post("/v1/batch", content='"please call me"\n', headers=NDJSON).text.count("labels") == 1
        asked = client.post("/v1/batch", content='"please call me"\n', headers=NDJSON, params={"queue_below": 1.0})
        refused(asked, 503, "reviews")
        other.execute("ROLLBACK")
        other.close()
        assert client.post("/v1/reviews", json={"documents": [{"text": "a b"}]}).status_code == 201


def test_queueing_below_0_queues_nothing(settings, tmp_path):
    with start(replace(settings, reviews=tmp_path / "r.db", review_below=1.0)) as client:
        client.post("/v1/batch", content='"please call me"\n', headers=NDJSON, params={"queue_below": 0})
        assert client.get("/v1/reviews").json()["total"] == 0


def test_a_file_of_reviews_that_is_gone_is_told(settings, tmp_path):
    with start(replace(settings, reviews=tmp_path / "r.db")) as client:
        (tmp_path / "r.db").unlink()
        assert "removed" in refused(client.post("/v1/reviews", json={"documents": [{"text": "a b"}]}), 503, "reviews")


def test_a_request_can_keep_out_of_the_queue_and_what_queues_up_has_runners_up(settings, tmp_path):
    with start(replace(settings, reviews=tmp_path / "r.db", review_below=1.0)) as client:
        client.post("/v1/classify", json={"text": PARCEL, "queue": False})
        client.post("/v1/classify", json={"text": PICTURE})
        for _ in range(50):
            documents = client.get("/v1/reviews").json()["documents"]
            if documents:
                break
        assert [document["text"] for document in documents] == [PICTURE]
        assert documents[0]["others"]


def test_unsure_answers_queue_up_by_themselves_where_that_is_wanted(settings, tmp_path):
    with start(replace(settings, reviews=tmp_path / "r.db", review_below=1.0)) as client:
        client.post("/v1/classify", json={"texts": [PARCEL, "", PICTURE]})
        client.post("/v1/batch", content='"please call me"\n', headers=NDJSON)
        for _ in range(50):
            listed = client.get("/v1/reviews").json()
            if listed["total"] == 3:
                break
        assert {document["text"] for document in listed["documents"]} == {PARCEL, PICTURE, "please call me"}


def test_without_a_place_for_reviews_there_are_none(settings):
    with start(replace(settings, reviews=None)) as client:
        assert client.get("/v1/session").json()["reviews"] is False
        for call in (client.get("/v1/reviews"), client.get("/v1/reviews/1"), client.get("/v1/reviews/summary")):
            refused(call, 404, "no-reviews")
        refused(client.post("/v1/reviews", json={"documents": [{"text": "a"}]}), 404, "no-reviews")


# ---- who may do what --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    keys = {role: add_key(folder / "keys.json", f"{role}-person", role) for role in ("read", "review", "admin")}
    with start(replace(settings, keys=folder / "keys.json", reviews=folder / "r.db")) as client:
        yield client, {role: {"authorization": f"Bearer {key}"} for role, key in keys.items()}


CALLS = {
    "read": [("GET", "/v1/session", None), ("GET", "/v1/models", None), ("POST", "/v1/classify", {"text": "a"}), ("GET", "/metrics", None)],
    "review": [("GET", "/v1/reviews", None), ("POST", "/v1/reviews", {"documents": [{"text": "a b"}]}), ("GET", "/v1/reviews/summary", None)],
    "admin": [("POST", "/v1/models/support/reload", None)],
}  # fmt: skip


@pytest.mark.parametrize(("needed", "call"), [(role, call) for role, calls in CALLS.items() for call in calls])
def test_each_role_may_do_what_it_may_and_no_more(guarded, needed, call):
    client, keys = guarded
    roles = ["read", "review", "admin"]
    method, path, body = call
    refused(client.request(method, path, json=body), 401, "no-key")
    refused(client.request(method, path, json=body, headers={"authorization": "Bearer nonsense"}), 401, "wrong-key")
    refused(client.request(method, path, json=body, headers={"authorization": "Basic abc"}), 401, "no-key")
    for role in roles:
        response = client.request(method, path, json=body, headers=keys[role])
        if roles.index(role) >= roles.index(needed):
            assert response.status_code in (200, 201), response.text
        else:
            assert "role" in refused(response, 403, "role")


def test_a_body_is_not_looked_at_before_the_key(guarded):
    client, _ = guarded
    broken = {"content": b"{broken", "headers": {"content-type": "application/json"}}
    refused(client.post("/v1/classify", **broken), 401, "no-key")
    refused(client.post("/v1/nowhere", **broken), 401, "no-key")


def test_the_key_says_who_decides(guarded):
    client, keys = guarded
    (number,) = client.post("/v1/reviews", json={"documents": [{"text": PARCEL}]}, headers=keys["review"]).json()["queued"]
    place = f"/v1/reviews/{number}/decisions"
    refused(client.post(place, json={"action": "reject", "reviewer": "boss"}, headers=keys["review"]), 409, "reviewer")
    made = client.post(place, json={"action": "reject"}, headers=keys["review"]).json()
    assert made["decisions"][0]["reviewer"] == "review-person"
    assert made["queued_by"] == "review-person"


def test_readers_cannot_fill_the_queue_through_tables(guarded):
    client, keys = guarded
    sent = {"content": '"a"\n', "headers": {**NDJSON, **keys["read"]}, "params": {"queue_below": 0.5}}
    refused(client.post("/v1/batch", **sent), 403, "role")


def test_health_and_the_page_need_no_key(guarded):
    client, _ = guarded
    assert client.get("/healthz").json() == {"status": "ok", "models": 2}
    assert client.get("/openapi.json").status_code == 200


def test_pages_of_other_sites_and_other_names_are_refused(client):
    evil = {"origin": "https://evil.example"}
    refused(client.post("/v1/classify", json={"text": "a"}, headers=evil), 403, "foreign-origin")
    refused(client.post("/v1/classify", json={"text": "a"}, headers={"origin": "null"}), 403, "foreign-origin")
    refused(client.post("/v1/classify", json={"text": "a"}, headers={"origin": "http://["}), 403, "foreign-origin")
    assert client.post("/v1/classify", json={"text": "a"}, headers={"origin": "http://localhost"}).status_code == 200
    for host in ("evil.example", "localhost.evil.example", ""):
        refused(client.get("/v1/models", headers={"host": host}), 403, "foreign-host")
    for host in ("localhost:8080", "127.0.0.1", "[::1]:80"):
        assert client.get("/v1/models", headers={"host": host}).status_code == 200


def test_a_form_of_another_site_cannot_pass_for_json(client):
    response = client.post("/v1/classify", content=b'{"text": "a"}', headers={"content-type": "text/plain"})
    assert response.status_code == 415


def test_every_answer_says_how_it_may_be_used(client):
    for path in ("/healthz", "/v1/models", "/nowhere", "/v1/taxonomy"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self'" in headers["content-security-policy"]


def test_unknown_places_and_methods_are_told_in_the_same_form(client):
    refused(client.get("/nowhere"), 404, "not-found")
    refused(client.get("/page/..%2Fapp.py"), 404, "not-found")
    refused(client.get("/page/app.py"), 404, "not-found")
    refused(client.delete("/v1/classify"), 405, "method")
    assert client.delete("/v1/classify").headers["allow"] == "POST"
    assert client.delete("/v1/reviews").headers["allow"] == "GET, POST"
    assert client.delete("/v1/reviews/5").headers["allow"] == "GET"


def test_the_description_asks_for_keys_only_where_they_are_needed(client, guarded):
    free, closed = client.get("/openapi.json").json(), guarded[0].get("/openapi.json").json()
    assert "securitySchemes" not in free["components"]
    assert "security" not in free["paths"]["/v1/classify"]["post"]
    assert "security" in closed["paths"]["/v1/classify"]["post"]


# ---- what is counted and logged ---------------------------------------------------------------------------------------


def test_counts_grow_with_what_happens(client):
    before = client.get("/metrics").text
    client.post("/v1/classify", json={"texts": [PARCEL, PICTURE]})
    after = client.get("/metrics").text

    def count(text):
        named = 'ramify_documents_total{model="support",route="/v1/classify"}'
        found = [line for line in text.splitlines() if line.startswith(named)]
        return float(found[0].rsplit(" ", 1)[1]) if found else 0.0  # nothing is counted before the first

    assert count(after) == count(before) + 2
    assert 'ramify_requests_total{method="POST",route="/v1/classify",status="200"}' in after


def test_logs_tell_what_happened_and_nothing_of_documents(client, caplog):
    with caplog.at_level("INFO", logger="ramify.server"):
        client.post("/v1/classify", json={"text": "a secret parcel"})
        client.post("/v1/classify", json={"text": 5})
        client.get("/nowhere/secret-place")
    fields = [record.fields for record in caplog.records]
    assert [(f["status"], f.get("code")) for f in fields] == [(200, None), (422, "misfit"), (404, "not-found")]
    assert fields[0]["route"] == "/v1/classify"
    assert fields[0]["documents"] == 1
    assert "secret parcel" not in str(fields)


def test_logs_hold_documents_only_where_that_is_asked_for(settings, caplog):
    with start(replace(settings, log_text=True, reviews=None)) as client, caplog.at_level("INFO", logger="ramify.server"):
        client.post("/v1/classify", json={"text": "a secret parcel"})
    assert caplog.records[0].fields["text"] == "a secret parcel"
