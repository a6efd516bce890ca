"""Signed models: once keys are trusted, only what their owners signed is read."""

import base64
import json
import shutil
import stat

import pytest

import ramify
from ramify import TextClassifier
from ramify.cli.main import main
from ramify.errors import InputError, ModelError
from ramify.persistence import create_keys, sign_model, trust

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
