"""Signed models: once keys are trusted, only what their owners signed is read."""

import base64
import json
import os
import shutil
import stat
from contextlib import nullcontext

import pytest

import ramify
from ramify import TextClassifier
from ramify.cli.main import main
from ramify.errors import InputError, ModelError
from ramify.persistence import atomic, create_keys, exclusive_writer, sign_model, signatures, trust
from ramify.workflows import file_predictions, predict_files
from ramify.workflows.file_predictions import predict_one_file

pytest.importorskip("cryptography")


@pytest.fixture(autouse=True)
def nobody_trusted_afterwards():
    yield
    trust(())


@pytest.fixture
def signed(tmp_path):
    TextClassifier("nb").fit(["fresh apple", "green tea"], ["food", "drink"]).save(tmp_path / "model")
    create_keys(tmp_path / "ann.key")
    sign_model(tmp_path / "model", tmp_path / "ann.key")
    return tmp_path / "model"


def test_a_private_key_is_private_and_none_is_overwritten(signed, tmp_path):
    assert stat.S_IMODE((tmp_path / "ann.key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "ann.key.pub").stat().st_mode) & 0o044
    with pytest.raises(InputError, match="exists already"):
        create_keys(tmp_path / "ann.key")


def test_a_signed_model_is_read_with_and_without_trust(signed, tmp_path):
    ramify.load(signed)
    trust([tmp_path / "ann.key.pub"])
    assert ramify.load(signed).predict(["apple"]).tolist() == ["food"]
    assert ramify.load(signed, private=True).predict(["apple"]).tolist() == ["food"]


def test_a_model_without_a_signature_or_with_another_key_is_refused(signed, tmp_path):
    create_keys(tmp_path / "eve.key")
    trust([tmp_path / "eve.key.pub"])
    with pytest.raises(ModelError, match="a key that you do not trust"):
        ramify.load(signed)
    trust([tmp_path / "eve.key.pub", tmp_path / "ann.key.pub"])
    ramify.load(signed)
    (signed / "signature.json").unlink()
    with pytest.raises(ModelError, match="is not signed"):
        ramify.load(signed)


def test_a_model_that_is_saved_anew_must_be_signed_anew(signed, tmp_path):
    TextClassifier("nb").fit(["fresh pear", "black tea"], ["food", "drink"]).save(signed)
    trust([tmp_path / "ann.key.pub"])
    with pytest.raises(ModelError, match="is not signed"):
        ramify.load(signed)


def test_a_signature_of_another_model_is_refused(signed, tmp_path):
    TextClassifier("nb").fit(["fresh pear", "black tea"], ["food", "drink"]).save(tmp_path / "other")
    shutil.copy(signed / "signature.json", tmp_path / "other")
    trust([tmp_path / "ann.key.pub"])
    with pytest.raises(ModelError, match="was changed after it was signed"):
        ramify.load(tmp_path / "other")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "[]",
        lambda text: text[:-20],
        lambda text: "[" * 2000,
        lambda text: text * 30,
        lambda text: json.dumps({**json.loads(text), "signature": base64.b64encode(bytes(64)).decode()}),
        lambda text: json.dumps({**json.loads(text), "signature": "AAAA"}),
        lambda text: json.dumps({**json.loads(text), "signature": 5}),
        lambda text: json.dumps({**json.loads(text), "key": "é"}),
    ],
)
def test_damaged_signatures_are_refused_in_one_sentence(signed, tmp_path, damage):
    place = signed / "signature.json"
    place.write_text(damage(place.read_text()))
    trust([tmp_path / "ann.key.pub"])
    with pytest.raises(ModelError) as caught:
        ramify.load(signed)
    assert "\n" not in str(caught.value)


def test_a_signature_is_no_link(signed, tmp_path):
    (signed / "signature.json").rename(tmp_path / "elsewhere")
    (signed / "signature.json").symlink_to(tmp_path / "elsewhere")
    trust([tmp_path / "ann.key.pub"])
    with pytest.raises(ModelError):
        ramify.load(signed)


@pytest.mark.parametrize("content", ["", "ramify-public-key", "ramify-public-key AAAA", "ramify-private-key " + "A" * 43 + "="])
def test_files_without_a_public_key_are_refused(tmp_path, content):
    (tmp_path / "key").write_text(content)
    with pytest.raises(InputError, match="holds no public key"):
        trust([tmp_path / "key"])


@pytest.mark.parametrize("value", [":", "::", " ", "no-such-key.pub"])
def test_an_environment_that_names_no_key_does_not_let_every_model_in(signed, monkeypatch, capsys, value):
    monkeypatch.setenv("RAMIFY_TRUST", value)
    monkeypatch.setattr(signatures, "_trusted", None)
    with pytest.raises(InputError, match=r"RAMIFY_TRUST is|cannot be read"):
        ramify.load(signed)
    assert main(["explain", str(signed), "apple"]) == 2
    assert "RAMIFY_TRUST is" in (found := capsys.readouterr().err) or "cannot be read" in found


def test_an_empty_place_among_the_keys_of_the_environment_is_no_key(signed, tmp_path, monkeypatch):
    monkeypatch.setenv("RAMIFY_TRUST", f"{tmp_path / 'ann.key.pub'}{os.pathsep}")
    assert main(["explain", str(signed), "apple"]) == 0
    (signed / "signature.json").unlink()
    assert main(["explain", str(signed), "apple"]) == 2


@pytest.mark.parametrize("key", [str, lambda path: path])
def test_one_path_is_no_list_of_keys(signed, tmp_path, key):
    with pytest.raises(InputError, match="give a list of files"):
        trust(key(tmp_path / "ann.key.pub"))


def test_a_model_can_be_signed_by_somebody_who_reads_signed_models_only(signed, tmp_path):
    (signed / "signature.json").unlink()
    trust([tmp_path / "ann.key.pub"])
    sign_model(signed, tmp_path / "ann.key")
    assert ramify.load(signed).predict(["apple"]).tolist() == ["food"]


def test_a_model_that_is_replaced_while_it_is_signed_must_be_signed_again(signed, tmp_path, monkeypatch):
    other, real = TextClassifier("nb").fit(["fresh pear", "black tea"], ["food", "drink"]), signatures.sign

    def replaced_meanwhile(*given):
        other.save(signed)
        real(*given)

    monkeypatch.setattr(signatures, "sign", replaced_meanwhile)
    with pytest.raises(ModelError, match="was replaced while it was signed; sign it again"):
        sign_model(signed, tmp_path / "ann.key")
    trust([tmp_path / "ann.key.pub"])
    with pytest.raises(ModelError, match="was changed after it was signed"):
        ramify.load(signed)


def test_what_a_killed_signing_leaves_is_removed_and_blocks_nothing(signed, tmp_path):
    left = signed / f".signature.json.{'a' * 32}.partial"
    left.touch()
    made = ramify.load(signed)
    made.save(signed)
    left.touch()
    sign_model(signed, tmp_path / "ann.key")
    assert not left.exists()
    (signed / f".notes.{'a' * 32}.partial").touch()
    with pytest.raises(ModelError, match="does not belong to a model"):
        made.save(signed)


def test_files_are_classified_by_trusted_models_only_in_other_processes_too(signed, tmp_path, monkeypatch):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.csv").write_text("text\nfresh apple\n")
    assert predict_files(signed, tmp_path / "docs", tmp_path / "out").written == 1
    create_keys(tmp_path / "eve.key")
    trust([tmp_path / "eve.key.pub"])
    with pytest.raises(ModelError, match="do not trust"):  # although it is loaded already
        predict_files(signed, tmp_path / "docs", tmp_path / "more")

    def elsewhere(job, file):
        monkeypatch.setattr(signatures, "_trusted", None)  # as in a new process
        file_predictions._predictors.clear()
        (signed / "signature.json").unlink()
        return predict_one_file(job, file)

    trust([tmp_path / "ann.key.pub"])
    monkeypatch.setattr(file_predictions, "predict_one_file", elsewhere)
    with pytest.raises(ModelError, match="is not signed"):
        predict_files(signed, tmp_path / "docs", tmp_path / "last")


def test_a_damaged_model_is_not_signed(signed, tmp_path):
    (signed / "features.json").write_text("{}")
    with pytest.raises(ModelError):
        sign_model(signed, tmp_path / "ann.key")


def test_the_commands_sign_and_trust(signed, tmp_path, capsys, monkeypatch):
    assert main(["sign", "--new-key", str(tmp_path / "ben.key")]) == 0
    assert main(["sign", str(signed), "--key", str(tmp_path / "ben.key")]) == 0
    assert main(["explain", str(signed), "apple", "--trust", str(tmp_path / "ben.key.pub")]) == 0
    assert main(["explain", str(signed), "apple", "--trust", str(tmp_path / "ann.key.pub")]) == 2
    assert "do not trust" in capsys.readouterr().err
    monkeypatch.setenv("RAMIFY_TRUST", str(tmp_path / "ann.key.pub"))
    assert main(["explain", str(signed), "apple"]) == 2
    monkeypatch.delenv("RAMIFY_TRUST")
    assert main(["explain", str(signed), "apple"]) == 0
    assert main(["sign", str(signed)]) == 2
    assert "--key FILE" in capsys.readouterr().err


@pytest.mark.parametrize("make", [lambda place, other: place.symlink_to(other), lambda place, other: os.mkfifo(place)])
def test_a_signature_is_written_through_no_link_and_no_pipe(signed, tmp_path, make):
    (tmp_path / "other").write_text("precious")
    (signed / "signature.json").unlink()
    make(signed / "signature.json", tmp_path / "other")
    with pytest.raises(ModelError, match="not a regular file"):
        sign_model(signed, tmp_path / "ann.key")
    assert (tmp_path / "other").read_text() == "precious"


def test_the_environment_is_asked_for_keys_also_in_python(signed, tmp_path, monkeypatch):
    create_keys(tmp_path / "eve.key")
    for variable, is_read in (("ann.key.pub", True), ("eve.key.pub", False)):
        monkeypatch.setenv("RAMIFY_TRUST", str(tmp_path / variable))
        monkeypatch.setattr(signatures, "_trusted", None)  # as in a new process
        with nullcontext() if is_read else pytest.raises(ModelError, match="do not trust"):
            ramify.load(signed)


def test_no_command_reads_a_model_that_is_not_trusted(signed, tmp_path, monkeypatch, capsys):
    create_keys(tmp_path / "eve.key")
    (tmp_path / "docs.csv").write_text("text,label\nfresh apple,food\ngreen tea,drink\n")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.csv").write_text("text\nfresh apple\n")
    assert main(["score", str(signed), str(tmp_path / "docs.csv"), "--out", str(tmp_path / "scores.csv")]) == 0
    monkeypatch.setenv("RAMIFY_TRUST", str(tmp_path / "eve.key.pub"))
    model, docs = str(signed), str(tmp_path / "docs.csv")
    shutil.copytree(signed, tmp_path / "copy")
    commands = [
        ["evaluate", model, docs], ["explain", model, "apple"], ["inspect", model], ["predict", model, docs],
        ["predict", model, str(tmp_path / "docs"), "--out", str(tmp_path / "out")], ["score", model, docs],
        ["update", model, "--data", docs], ["compare", docs, "--model", model, "--model", str(tmp_path / "copy")], ["serve", model],
        ["decide", str(tmp_path / "scores.csv"), "--model", model],
    ]  # fmt: skip
    for command in commands:
        monkeypatch.setattr(signatures, "_trusted", None)
        capsys.readouterr()
        assert main(command) == 2, command
        assert "do not trust" in capsys.readouterr().err, command


def test_a_trusted_model_stays_as_it_was_checked(signed, tmp_path):
    trust([tmp_path / "ann.key.pub"])
    made = ramify.load(signed)
    weights = signed / "weights.safetensors"
    content = weights.read_bytes()
    before = made.predict_proba(["apple"]).tolist()
    with open(weights, "r+b") as file:  # in place
        file.write(bytes(len(content)))
    assert made.predict_proba(["apple"]).tolist() == before


def test_two_commands_make_one_key_and_no_half_is_left(tmp_path, monkeypatch):
    path = tmp_path / "ann.key"
    with exclusive_writer(path), pytest.raises(InputError, match="another process"):
        create_keys(path)
    assert not path.exists()
    real = atomic.atomic_writer

    def failing(target, private=False):
        if not private:
            raise InputError("cannot write the public key: no space.")
        return real(target, private=private)

    monkeypatch.setattr(atomic, "atomic_writer", failing)
    with pytest.raises(InputError, match="no space"):
        create_keys(path)
    assert not path.exists()
