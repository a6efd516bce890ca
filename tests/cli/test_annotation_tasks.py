"""From documents to tasks of an annotation tool, and from annotated tasks to a model."""

from __future__ import annotations

import json
from contextlib import closing
from xml.etree import ElementTree

import pytest

import ramify
from ramify.cli.main import main
from ramify.data import read_corpus
from ramify.server.reviews import ReviewStore

LEAVES = {"Orders > Late", "Orders > Wrong", "TV > Picture", "TV > Sound"}


@pytest.fixture
def model(tickets, tmp_path):
    assert main(["train", tickets, "--model", str(tmp_path / "model"), "--system", "nb", "--holdout", "0"]) == 0
    return str(tmp_path / "model")


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("customer,body\n12,the courier is late\n13,no picture\n14,\n15,wrong box & item\n")
    return str(path)


def annotate(name, tasks):
    """What a tool exports after annotators have accepted every proposal."""
    if name == "label-studio":
        return [{**task, "annotations": [{"result": task["predictions"][0]["result"]}]} for task in tasks]
    if name == "argilla":
        values = [task["suggestions"]["label"]["value"] for task in tasks]
        return [{**task, "responses": {"label": [{"value": v, "user_id": "u"}]}} for task, v in zip(tasks, values, strict=True)]
    return tasks


@pytest.mark.parametrize(("name", "ending"), [("label-studio", "json"), ("argilla", "json"), ("doccano", "jsonl")])
def test_predictions_become_tasks_that_train_a_model_when_they_are_annotated(name, ending, model, new, tmp_path, capsys):
    out = tmp_path / f"tasks.{ending}"
    capsys.readouterr()
    assert main(["predict", model, new, "--out", str(out), "--format", name]) == 0
    said = capsys.readouterr().err
    assert f"3 tasks for {name} written to {out}" in said
    assert "1 row without a text left out" in said
    text = out.read_text()
    tasks = json.loads(text) if ending == "json" else [json.loads(line) for line in text.splitlines()]
    annotated = tmp_path / f"annotated.{ending}"
    done = annotate(name, tasks)
    annotated.write_text(json.dumps(done) if ending == "json" else "".join(f"{json.dumps(row)}\n" for row in done))
    corpus = read_corpus(annotated)
    assert corpus.documents == ["the courier is late", "no picture", "wrong box & item"]
    assert corpus.labels == [["Orders > Late"], ["TV > Picture"], ["Orders > Wrong"]]
    again = tmp_path / "again"
    assert main(["train", str(annotated), "--model", str(again), "--system", "nb", "--holdout", "0"]) == 0
    assert ramify.load(again).predict(["a courier"]).tolist() == ["Orders > Late"]


def test_other_cells_go_with_the_task(model, new, tmp_path):
    out = tmp_path / "tasks.json"
    assert main(["predict", model, new, "--out", str(out), "--format", "label-studio"]) == 0
    first = json.loads(out.read_text())[0]
    assert first["data"] == {"customer": "12", "text": "the courier is late"}
    assert 0 < first["predictions"][0]["score"] <= 1


REFUSED = {
    "an unknown tool": (["--format", "prodigy", "--out", "tasks.json"], "label-studio, argilla, doccano"),
    "a wrong suffix": (["--format", "doccano", "--out", "tasks.json"], "give a name that ends in .jsonl"),
    "JSON beside it": (["--format", "argilla", "--json"], "leave out --json and --escape-formulas"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_with_tasks_is_refused(name, model, new, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given, sentence = REFUSED[name]
    capsys.readouterr()
    assert main(["predict", model, new, *given]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("tasks*"))


def test_tasks_of_many_files_are_refused(model, tmp_path, capsys):
    (tmp_path / "parts").mkdir()
    assert main(["predict", model, str(tmp_path / "parts"), "--format", "argilla"]) == 2
    assert "give one file, and not --try or many files" in capsys.readouterr().err


# ---- documents that wait for review ----------------------------------------------------------------------------------------


def proposed(*path):
    return {"label": " > ".join(path), "path": list(path), "probabilities": [0.6] * len(path), "probability": 0.6}


@pytest.fixture
def reviews(tmp_path):
    with closing(ReviewStore(tmp_path / "reviews.db")) as store:
        documents = [("no picture", [proposed("TV", "Picture")], [], 0.6, "row 4"), ("done", [proposed("TV")], [], 0.5, None)]
        numbers, _ = store.queue("m", documents, by="ann")
        store.decide(numbers[1], "ben", "accept", ["TV"])
    return str(tmp_path / "reviews.db")


def test_documents_that_wait_for_review_become_tasks(reviews, tmp_path):
    out = tmp_path / "tasks.json"
    assert main(["reviews", "tasks", reviews, "--format", "label-studio", "--out", str(out)]) == 0
    (task,) = json.loads(out.read_text())
    assert task["data"] == {"id": 1, "model": "m", "source": "row 4", "text": "no picture"}
    assert task["predictions"][0]["result"][0]["value"] == {"taxonomy": [["TV", "Picture"]]}


def test_an_unknown_model_or_format_of_reviews_is_refused(reviews, capsys):
    assert main(["reviews", "tasks", reviews, "--format", "spreadsheet"]) == 2
    assert "label-studio, argilla, doccano" in capsys.readouterr().err


# ---- labels of a project ---------------------------------------------------------------------------------------------------


@pytest.fixture
def taxonomy(tmp_path):
    path = tmp_path / "taxonomy.txt"
    path.write_text("\n".join([*sorted(LEAVES), 'Hi-fi & <"more">']) + "\n")
    return str(path)


def test_a_taxonomy_becomes_a_labelling_configuration(taxonomy, tmp_path):
    out = tmp_path / "config.xml"
    assert main(["taxonomy", "convert", taxonomy, "--to", "label-studio", "--out", str(out)]) == 0
    tag = ElementTree.fromstring(out.read_text()).find("Taxonomy")
    assert [choice.get("value") for choice in tag] == ["Orders", "TV", 'Hi-fi & <"more">']
    assert [choice.get("value") for choice in tag[0]] == ["Late", "Wrong"]
    old, new = ramify.read_taxonomy(taxonomy), ramify.read_taxonomy(out)
    assert {new.path_of(node) for node in range(len(new))} == {old.path_of(node) for node in range(len(old))}


def test_a_taxonomy_becomes_a_label_list(taxonomy, capsys):
    assert main(["taxonomy", "convert", taxonomy, "--to", "doccano"]) == 0
    labels = json.loads(capsys.readouterr().out)
    assert {label["text"] for label in labels} == {*LEAVES, "Orders", "TV", 'Hi-fi & <"more">'}


def test_the_format_to_write_is_given_by_the_suffix_or_asked_for(taxonomy, tmp_path, capsys):
    assert main(["taxonomy", "convert", taxonomy, "--out", str(tmp_path / "a.json")]) == 0
    assert ramify.read_taxonomy(tmp_path / "a.json") == ramify.read_taxonomy(taxonomy)
    capsys.readouterr()
    assert main(["taxonomy", "convert", taxonomy]) == 2
    assert "give it with --to" in capsys.readouterr().err
    assert main(["taxonomy", "convert", taxonomy, "--to", "xml"]) == 2
    assert "taxonomy format 'xml' is unknown" in capsys.readouterr().err
