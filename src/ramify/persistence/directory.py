"""A model as a directory: JSON documents, named arrays, and a manifest that vouches for them.

    manifest.json         format version, what the caller says about the model, SHA-256 and size of every other file
    <name>.json           one plain document a part
    weights.safetensors   every array, memory-mapped on load

This module knows no learner: it stores and returns plain values and arrays. Reading runs no code from the files, checks
the version, names, sizes and hashes, and refuses what does not match. Parts check shapes and index ranges themselves
when they are made from their arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ramify.errors import ModelError
from ramify.persistence import atomic
from ramify.persistence.arrays import map_arrays, write_arrays

FORMAT = "ramify-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
MAX_JSON_BYTES = 1 << 30
DOCUMENT_NAME = re.compile(r"[a-z][a-z0-9_]*\.json")

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class StoredModel:
    """What a model directory holds: what was said about it, its documents by name, and its arrays."""

    about: dict[str, Any]
    documents: dict[str, Any]
    arrays: Arrays


def write_model(path: str | Path, model: StoredModel) -> None:
    """Write a model directory, replacing an older model at the same place in one step."""
    path = Path(path)
    refuse_foreign_target(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.recover_directory(path)
        atomic.clear_leftovers(path)
        beside = atomic.name_beside(path, "partial")
        try:
            beside.mkdir()
            _write_files(beside, model)
            atomic.replace_directory(beside, path)
        finally:
            atomic.remove(beside)
    except OSError as error:
        raise ModelError(
            f"cannot save the model at {path}: {error.strerror}; what was there before is untouched. "
            "Free some space or choose another place."
        ) from error


def read_model(path: str | Path) -> StoredModel:
    """Read a model directory after checking every file against the manifest."""
    path = Path(path)
    atomic.recover_directory(path)
    manifest = _read_manifest(path)
    for name, entry in manifest["files"].items():
        _check_file(path, name, entry)
    documents = {name.removesuffix(".json"): _read_json(path / name) for name in manifest["files"] if name != WEIGHTS}
    arrays = map_arrays(path / WEIGHTS) if WEIGHTS in manifest["files"] else {}
    return StoredModel(manifest["about"], documents, arrays)


def is_model(path: str | Path) -> bool:
    """Whether a directory says that it is a model; it may still be damaged."""
    atomic.recover_directory(Path(path))
    return (Path(path) / MANIFEST).is_file()


def refuse_foreign_target(path: str | Path) -> None:
    """Refuse to put a model where something else is; long work asks this before it starts."""
    path = Path(path)
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise ModelError(f"{path} is not a directory; choose another place for the model.")
    if path.is_dir() and not is_model(path) and any(path.iterdir()):
        raise ModelError(
            f"{path} is a directory with other files in it, not a model; choose another place for the model."
        )


def _write_files(directory: Path, model: StoredModel) -> None:
    for name, document in model.documents.items():
        _write_bytes(directory / f"{name}.json", _to_json(document))
    if model.arrays:
        write_arrays(directory / WEIGHTS, model.arrays)
    files = {entry.name: _fingerprint(entry) for entry in sorted(directory.iterdir())}
    manifest = {"format": FORMAT, "version": FORMAT_VERSION, "about": model.about, "files": files}
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


def _read_manifest(path: Path) -> dict[str, Any]:
    if not (path / MANIFEST).is_file():
        found = "there is no such directory" if not path.exists() else f"it has no {MANIFEST}"
        raise ModelError(f"{path} is not a Ramify model: {found}. Give the directory that 'ramify train' wrote.")
    manifest = _read_json(path / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelError(f"{path / MANIFEST} does not describe a Ramify model; train the model again.")
    _check_version(path, manifest.get("version"))
    if not isinstance(manifest.get("about"), dict) or not isinstance(manifest.get("files"), dict):
        raise ModelError(f"{path / MANIFEST} is incomplete; train the model again, or restore it from a copy.")
    return manifest


def _check_version(path: Path, version: Any) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelError(
            f"{path / MANIFEST} has format version {version!r}; expected a whole number up to {FORMAT_VERSION}."
        )
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{path} has format version {version}, but this Ramify reads versions up to {FORMAT_VERSION}; "
            "install a newer Ramify."
        )


def _check_file(path: Path, name: str, entry: Any) -> None:
    if name != WEIGHTS and (not DOCUMENT_NAME.fullmatch(name) or name == MANIFEST):
        raise ModelError(
            f"{path / MANIFEST} names the file {name!r}, which is no part of a model; do not trust this model."
        )
    if not isinstance(entry, dict):
        raise ModelError(f"{path / MANIFEST} does not give size and hash of {name}; do not trust this model.")
    try:
        found = _fingerprint(path / name)
    except OSError as error:
        raise ModelError(
            f"{path / name} cannot be read: {error.strerror}. Train the model again, or restore it from a copy."
        ) from None
    if found["bytes"] != entry.get("bytes"):
        raise ModelError(
            f"{path / name} has {found['bytes']:,} bytes where {entry.get('bytes')!r} were written; "
            "it is damaged or cut short. Train the model again, or restore it from a copy."
        )
    if found["sha256"] != entry.get("sha256"):
        raise ModelError(
            f"{path / name} was changed after it was saved; train the model again, or restore it from a copy."
        )


def _read_json(path: Path) -> Any:
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ModelError(f"{path} has more than {MAX_JSON_BYTES:,} bytes; do not trust this model.")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path} is not valid JSON; train the model again, or restore it from a copy.") from None
