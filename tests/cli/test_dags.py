"""All systems on a DAG from the command line and over HTTP."""

import json

import pytest
from starlette.testclient import TestClient

from ramify import load
from ramify.cli.main import main
from ramify.server.app import make_app
from ramify.server.services import Services
from ramify.server.settings import Settings
from ramify.systems import SYSTEMS

DAG = "home\t\ngarden\t\ntv\thome\nlamp\thome\nlamp\tgarden\nsolar\tlamp\nsolar\tgarden\nspade\tgarden\n"
WORDS = {"tv": "screen dark", "lamp": "light bulb", "solar": "light sun", "spade": "soil dig", "home": "room wall"}
LAMP = "the light bulb is broken"


def ramify(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("dag")
    (made / "dag.tsv").write_text(DAG)
    rows = [
        f"{words} {word} number{i},{label}" for i in range(24) for label, words in WORDS.items() for word in words.split()[:1]
    ]
    (made / "docs.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return made


@pytest.fixture
def model(capsys, folder, system):
    """A model of a system; trained once, and the words that training printed beside it."""
    made = folder / system
    if not made.exists():
        code, out, err = ramify(
            capsys, "train", folder / "docs.csv", "--taxonomy", folder / "dag.tsv", "--system", system, "--model", made
        )
        assert code == 0, err
        (folder / f"{system}.txt").write_text(out + err)
    return made


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_command_takes_a_model_of_a_dag(capsys, folder, model, system):
    code, out, err = ramify(capsys, "predict", model, "--try", LAMP)
    assert code == 0, err
    assert "lamp" in out
    code, out, err = ramify(capsys, "evaluate", model, folder / "docs.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["figures"]["micro_f1_nodes"] > 0.5
    code, out, err = ramify(capsys, "explain", model, LAMP, "--true", "solar")
    assert code == 0, err
    facts = json.loads(ramify(capsys, "inspect", model, "--json")[1])
    assert facts["taxonomy"]["is_tree"] is False
    assert facts["system"] == system


@pytest.mark.parametrize("system", SYSTEMS)
def test_training_and_inspecting_show_main_parents_where_they_are_used(capsys, folder, model, system):
    printed = " ".join((folder / f"{system}.txt").read_text().split())
    facts = json.loads(ramify(capsys, "inspect", model, "--json")[1])
    placed = (
        "2 nodes with several parents: 'lamp' under 'garden' (also below 'home'); 'solar' under 'lamp' (also below 'garden')"
    )
    assert (placed in printed) == SYSTEMS[system].uses_main_parents
    assert facts.get("main_parents") == (placed if SYSTEMS[system].uses_main_parents else None)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_server_answers_with_a_model_of_a_dag(model, system):
    with TestClient(make_app(Services(Settings({system: model}))), base_url="http://localhost") as client:
        (result,) = client.post("/v1/classify", json={"text": LAMP}).json()["results"]
        classifier = load(model)
        expected = classifier.taxonomy_.decode(classifier.predict_matrix([LAMP]))[0]
        assert sorted(label["label"] for label in result["labels"]) == sorted(expected)
        assert client.post("/v1/explain", json={"text": LAMP}).status_code == 200


def test_training_names_the_rule_that_works_over_main_parents(capsys, folder):
    given = (
        "--taxonomy",
        folder / "dag.tsv",
        "--system",
        "svm",
        "--rule",
        "isotonic",
        "--no-calibrate",
        "--model",
        folder / "smooth",
    )
    code, out, err = ramify(capsys, "train", folder / "docs.csv", *given)
    assert code == 0, err
    assert "The taxonomy is a DAG: rule 'isotonic' works over the tree of main parents" in " ".join((out + err).split())


def test_systems_say_what_they_do_on_a_dag(capsys):
    listed = {row["name"]: row["uses_main_parents"] for row in json.loads(ramify(capsys, "systems", "--json")[1])}
    assert listed["svm"] is False
    assert listed["b-svm"] is True
    assert "main parents" in ramify(capsys, "systems")[1]
