"""A model as a directory: JSON documents, named arrays, and a manifest that vouches for them.

    manifest.json               format version, what the caller says about the model, SHA-256 and size of every other file
    <name>.json                 one plain document a part
    weights.safetensors         every array, memory-mapped on load
    weights-00001.safetensors   and so on: the arrays of each shard, where weights are kept in shards

This module knows no learner: it stores and returns plain values and arrays. Reading runs no code from the files, checks the
version, names, sizes and hashes, and refuses what does not match. Parts check shapes and index ranges themselves when they
are made from their arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ramify.errors import ModelError
from ramify.persistence import atomic
from ramify.persistence.array_files import ArrayFile
from ramify.persistence.arrays import write_arrays

FORMAT = "ramify-model"
FORMAT_VERSION = 2  # of models in shards; all others have the first, which older readers know as well
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
SHARD_NAME = re.compile(r"weights-[0-9]{5}\.safetensors")
DOCUMENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}\.json")


@dataclass(frozen=True, slots=True)
class StoredModel:
    """What a model directory holds: what was said about it, its documents by name, and its arrays.

    shards: arrays in files of their own; to be taken over by a model that is written, and mapped in one that was read.
    """

    about: dict[str, Any]
    documents: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    shards: Sequence[ArrayFile] = ()


def shard_name(number: int) -> str:
    """The file of a shard; the first has number 1.

    >>> shard_name(1)
    'weights-00001.safetensors'
    """
    return f"weights-{number:05d}.safetensors"


def write_model(path: str | Path, model: StoredModel) -> None:
    """Write a model directory, replacing an older model at the same place in one step."""
    path = Path(path)
    refuse_foreign_target(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.clear_leftovers(path)
        with atomic.claimed(path, Path.mkdir) as beside:
            _write_files(beside, model)
            atomic.replace_directory(beside, path)
        atomic.clear_leftovers(path)
    except OSError as error:
        raise ModelError(
            f"cannot save the model at {path}: {error.strerror}; what was there before is untouched. "
            "Put that right, or choose another place."
        ) from error


def is_model(path: str | Path) -> bool:
    """Whether a directory says that it is a model; it may still be damaged."""
    return (Path(path) / MANIFEST).is_file()


def model_about(path: str | Path) -> dict[str, Any]:
    """What a model says about itself, unchecked and for people only; empty where there is none."""
    try:
        about = json.loads((Path(path) / MANIFEST).read_bytes())["about"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def model_fingerprint(path: str | Path) -> str:
    """What tells a model from any other: the hash of the manifest, which has those of all files."""
    try:
        return str(_fingerprint(Path(path) / MANIFEST)["sha256"])
    except OSError as error:
        raise ModelError(f"cannot read the model at {path}: {error.strerror}.") from None


def refuse_foreign_target(path: str | Path) -> None:
    """Refuse to put a model where something else is; long work asks this before it starts."""
    path = Path(path)
    try:
        above = next(parent for parent in path.absolute().parents if parent.exists())
        if not above.is_dir() or path.resolve() == Path.cwd():
            raise ModelError(f"{path} cannot be a model directory; choose another place for the model.")
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise ModelError(f"{path} is not a directory; choose another place for the model.")
        foreign = _foreign_files(path)
    except OSError as error:
        raise ModelError(f"cannot save a model at {path}: {error.strerror}; choose another place.") from None
    if foreign:
        raise ModelError(f"{path} holds {foreign[0]!r}, which is no part of a model; move it away, or choose another place.")


def _foreign_files(path: Path) -> list[str]:
    """What is in a directory and is not named by its manifest."""
    if not path.is_dir():
        return []
    ours = {MANIFEST, *_named_files(path)} if is_model(path) else set()
    return sorted(entry.name for entry in path.iterdir() if entry.name not in ours)


def _named_files(path: Path) -> list[str]:
    """The files that a manifest names; none when it cannot be read."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        return list(manifest["files"]) if manifest["format"] == FORMAT else []
    except (ValueError, KeyError, TypeError, RecursionError):
        return []


def _write_files(directory: Path, model: StoredModel) -> None:
    for name, document in model.documents.items():
        _write_bytes(directory / f"{name}.json", _to_json(document))
    if model.arrays:
        write_arrays(directory / WEIGHTS, model.arrays)
    for number, shard in enumerate(model.shards, start=1):
        shard.put(directory / shard_name(number))
    files = {entry.name: _fingerprint(entry) for entry in sorted(directory.iterdir())}
    for number, shard in enumerate(model.shards, start=1):
        if shard.sha256 not in (None, files[shard_name(number)]["sha256"]):
            raise ModelError(f"shard {number} of the model was changed after it was loaded; restore it from a copy.")
    version = FORMAT_VERSION if model.shards else 1
    manifest = {"format": FORMAT, "version": version, "about": model.about, "files": files}
    _write_bytes(directory / MANIFEST, _to_json(manifest))
    atomic.sync_directory(directory)


def _to_json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode()


def _write_bytes(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _fingerprint(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}
