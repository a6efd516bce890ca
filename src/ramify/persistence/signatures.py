"""Signatures of models: who made one, for those who get it from another machine. The only file that imports cryptography.

``signature.json`` beside the manifest holds an Ed25519 signature of the manifest, which has the hashes of all other files. A
key is one line of text: what it is, and 32 bytes in base64. Once keys are trusted, by a call or by the environment, this
process reads models that one of them has signed, and no others; and it reads them into memory, where nobody changes them
afterwards.
"""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ramify.errors import InputError, ModelError
from ramify.persistence import atomic

SIGNATURE = "signature.json"
FORMAT = "ramify-signature"
PRIVATE, PUBLIC = "ramify-private-key", "ramify-public-key"
CONTEXT = b"ramify-model\n"  # before what is signed, so that no other text can pass for a manifest
MAX_BYTES = 4096
VARIABLE = "RAMIFY_TRUST"  # files of public keys, separated as in PATH

_trusted: tuple[bytes, ...] | None = None  # None until the environment has been asked


def trust(keys: Iterable[str | Path] | None) -> None:
    """From now on, read only models that one of these keys has signed: files of public keys.

    None for the keys that the environment names, as at the start; an empty list to read any model again.
    """
    global _trusted
    if isinstance(keys, (str, Path)):
        raise InputError(f"keys is {str(keys)!r}; give a list of files, such as [{str(keys)!r}].")
    _trusted = None if keys is None else tuple(_read_key(Path(key), PUBLIC) for key in keys)


def trusted_keys() -> tuple[bytes, ...]:
    """The keys that are trusted: those of the last call of `trust`, or else those that the environment names."""
    global _trusted
    if _trusted is None:
        names = os.environ.get(VARIABLE, "")
        files = [name for name in names.split(os.pathsep) if name]
        if names and not files:
            raise InputError(f"{VARIABLE} is {names!r}; name files of public keys, or leave it empty to read any model.")
        _trusted = tuple(_read_key(Path(name), PUBLIC) for name in files)
    return _trusted


def trust_same(keys: tuple[bytes, ...]) -> None:
    """Trust what :func:`trusted_keys` gave in another process."""
    global _trusted
    _trusted = keys


def create_keys(private: str | Path) -> Path:
    """Write a new private key, which its owner alone can read, and beside it the public key for all who trust it."""
    private = Path(private)
    public = private.with_name(f"{private.name}.pub")
    made = _library().Ed25519PrivateKey.generate()
    keys = {PRIVATE: made.private_bytes_raw(), PUBLIC: made.public_key().public_bytes_raw()}
    atomic.refuse_unwritable(private)
    with atomic.exclusive_writer(private):
        for path in (private, public):
            if path.exists() or path.is_symlink():
                raise InputError(f"{path} exists already; give another name for the new key.")
        try:
            for path, (kind, key) in zip((private, public), keys.items(), strict=True):
                with atomic.atomic_writer(path, private=kind == PRIVATE) as file:
                    file.write(f"{kind} {base64.b64encode(key).decode()}\n")
        except InputError:
            atomic.remove(private)  # a key without its other half is of no use
            raise
    return public


def sign(manifest: bytes, directory: Path, private: str | Path) -> None:
    """Sign the manifest of a model directory."""
    key = _library().Ed25519PrivateKey.from_private_bytes(_read_key(Path(private), PRIVATE))
    found = {"key": key.public_key().public_bytes_raw(), "signature": key.sign(CONTEXT + manifest)}
    values = {"format": FORMAT, "version": 1} | {name: base64.b64encode(value).decode() for name, value in found.items()}
    place = directory / SIGNATURE
    try:
        if not stat.S_ISREG(os.lstat(place).st_mode):
            raise ModelError(f"{place} is not a regular file; do not trust this model.")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ModelError(f"{place} cannot be written: {error.strerror}.") from None
    try:
        atomic.clear_leftovers(place)
        with atomic.temporary_beside(place, Path.touch) as beside:
            with open(beside, "w", encoding="ascii") as file:
                file.write(json.dumps(values, indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            atomic.replace_file(beside, place)  # the name itself, whatever it has become: a link is not followed
    except OSError as error:
        raise ModelError(f"{place} cannot be written: {error.strerror}; the model is not signed.") from None


def is_needed() -> bool:
    """Whether only signed models may be read."""
    return bool(trusted_keys())


def check(manifest: bytes, signature: bytes, path: Path) -> None:
    """Refuse a manifest that no trusted key has signed."""
    try:
        values: Any = json.loads(signature)
        key, signed = (base64.b64decode(values[name], validate=True) for name in ("key", "signature"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelError(f"{path / SIGNATURE} is not a signature of Ramify; get the model again from who signed it.") from None
    if key not in trusted_keys():
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
