"""Signatures of models: who made one, for those who get it from another machine. The only file that imports cryptography.

``signature.json`` beside the manifest holds an Ed25519 signature of the manifest, which has the hashes of all other files. A
key is one line of text: what it is, and 32 bytes in base64. Once keys are trusted, this process reads models that one of them
has signed, and no others.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ramify.errors import InputError, ModelError
from ramify.persistence.atomic import atomic_writer, refuse_unwritable, write_text_atomically

SIGNATURE = "signature.json"
FORMAT = "ramify-signature"
PRIVATE, PUBLIC = "ramify-private-key", "ramify-public-key"
CONTEXT = b"ramify-model\n"  # before what is signed, so that no other text can pass for a manifest
MAX_BYTES = 4096

_trusted: tuple[bytes, ...] = ()


def trust(keys: Iterable[str | Path]) -> None:
    """From now on, read only models that one of these keys has signed: files of public keys; none to read any model again."""
    global _trusted
    _trusted = tuple(_read_key(Path(key), PUBLIC) for key in keys)


def create_keys(private: str | Path) -> Path:
    """Write a new private key, which its owner alone can read, and beside it the public key for all who trust it."""
    private = Path(private)
    public = private.with_name(f"{private.name}.pub")
    made = _library().Ed25519PrivateKey.generate()
    for path in (private, public):
        refuse_unwritable(path)
        if path.exists():
            raise InputError(f"{path} exists already; give another name for the new key.")
    keys = {PRIVATE: made.private_bytes_raw(), PUBLIC: made.public_key().public_bytes_raw()}
    for path, (kind, key) in zip((private, public), keys.items(), strict=True):
        with atomic_writer(path, private=kind == PRIVATE) as file:
            file.write(f"{kind} {base64.b64encode(key).decode()}\n")
    return public


def sign(manifest: bytes, directory: Path, private: str | Path) -> None:
    """Sign the manifest of a model directory."""
    key = _library().Ed25519PrivateKey.from_private_bytes(_read_key(Path(private), PRIVATE))
    found = {"key": key.public_key().public_bytes_raw(), "signature": key.sign(CONTEXT + manifest)}
    values = {"format": FORMAT, "version": 1} | {name: base64.b64encode(value).decode() for name, value in found.items()}
    write_text_atomically(directory / SIGNATURE, json.dumps(values, indent=1) + "\n")


def is_needed() -> bool:
    """Whether only signed models may be read."""
    return bool(_trusted)


def check(manifest: bytes, signature: bytes, path: Path) -> None:
    """Refuse a manifest that no trusted key has signed."""
    try:
        values: Any = json.loads(signature)
        key, signed = (base64.b64decode(values[name], validate=True) for name in ("key", "signature"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelError(f"{path / SIGNATURE} is not a signature of Ramify; get the model again from who signed it.") from None
    if key not in _trusted:
        raise ModelError(f"{path} was signed with a key that you do not trust; add that key if you trust who made the model.")
    library = _library()
    try:
        library.Ed25519PublicKey.from_public_bytes(key).verify(signed, CONTEXT + manifest)
    except (library.InvalidSignature, ValueError):
        raise ModelError(f"{path} was changed after it was signed; get the model again from who signed it.") from None


def _read_key(path: Path, kind: str) -> bytes:
    try:
        with open(path, "rb") as file:
            word, _, value = file.read(MAX_BYTES).decode("ascii", "replace").strip().partition(" ")
    except OSError as error:
        raise InputError(f"the key in {path} cannot be read: {error.strerror}.") from None
    try:
        key = base64.b64decode(value, validate=True)
    except ValueError:
        key = b""
    if word != kind or len(key) != 32:
        wanted = "private" if kind == PRIVATE else "public"
        raise InputError(f"{path} holds no {wanted} key; 'ramify sign --new-key FILE' makes FILE and FILE.pub.")
    return key


def _library() -> Any:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise InputError("signatures need cryptography; install it with: pip install 'ramify[sign]'.") from None
    return type("Library", (), {**vars(ed25519), "InvalidSignature": InvalidSignature})
