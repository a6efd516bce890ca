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
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from ramify.errors import ModelError
from ramify.persistence import atomic
from ramify.persistence.arrays import ArrayFile, MappedFile, map_file, remedy, write_arrays

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


def model_metadata(path: str | Path) -> dict[str, Any]:
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


# --------------------------------------------------------------------------------------------------------------
# Reading a model directory that may be damaged, hostile, or just being replaced.
#
# The directory is opened once, and every file once below it: what is checked is what is read, also while another process puts a
# newer model in its place. Only plain files are opened, links are not followed, and nothing is read that the manifest does not
# name.


MAX_MANIFEST = 1 << 24
MAX_DOCUMENT = 1 << 30
MAX_DOCUMENTS = 8
MAX_SHARDS = 10_000
TRIES = 50
AGAIN = "Train the model again, or restore it from a copy."


def read_model(path: str | Path) -> StoredModel:
    """Read a model directory after checking every file against the manifest."""
    path = Path(path)
    for _ in range(TRIES):
        with _opened_directory(path) as handle:
            try:
                return _read(path, handle)
            except ModelError:
                if not _was_replaced(path, handle):
                    raise
    raise ModelError(f"{path} is replaced faster than it can be read; try again.")


def _read(path: Path, directory: int) -> StoredModel:
    manifest = _checked_manifest(path, _read_json(path, directory, MANIFEST, MAX_MANIFEST, None))
    documents: dict[str, Any] = {}
    mapped: dict[str, MappedFile] = {}
    for name, entry in sorted(manifest["files"].items()):
        if name == WEIGHTS or SHARD_NAME.fullmatch(name):
            with _opened_file(path, directory, name) as file:
                _check(path / name, file, entry)
                mapped[name] = map_file(path / name, file, entry["sha256"])
        else:
            documents[name.removesuffix(".json")] = _read_json(path, directory, name, MAX_DOCUMENT, entry)
    arrays = mapped.pop(WEIGHTS).arrays if WEIGHTS in mapped else {}
    return StoredModel(manifest["about"], documents, arrays, tuple(mapped.values()))


def open_array_file(path: str | Path) -> MappedFile:
    """Map an array file that stands alone, such as a shard that is no part of a model yet."""
    path = Path(path)
    with _opened_file(path.parent, None, str(path.absolute())) as file:
        return map_file(path, file)


@contextmanager
def _opened_directory(path: Path) -> Iterator[int]:
    """The directory itself, whatever name it has by now; one that stands aside while it is replaced counts too."""
    handle = _open_directory(path)
    for _ in range(5):
        if handle is not None:
            break
        time.sleep(0.01)  # one that is just being replaced is back by now
        handle = _open_directory(path)
    if handle is None:
        found = "it is no directory" if path.exists() else "there is no such directory"
        raise ModelError(f"{path} is not a Ramify model: {found}. Give the directory that 'ramify train' wrote.")
    try:
        yield handle
    finally:
        os.close(handle)


def _open_directory(path: Path) -> int | None:
    for candidate in (path, *atomic.leftovers_of(path, "replaced")):
        try:
            return os.open(candidate, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror}.") from None
    return None


@contextmanager
def _opened_file(path: Path, directory: int | None, name: str) -> Iterator[IO[bytes]]:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        if name == MANIFEST:
            raise ModelError(
                f"{path} is not a Ramify model: it has no {MANIFEST}. Give the directory that 'ramify train' wrote."
            ) from None
        raise ModelError(f"{path / name} is missing. {AGAIN}") from None
    except OSError as error:
        raise ModelError(f"{path / name} cannot be read: {error.strerror}. {remedy(error, AGAIN)}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelError(f"{path / name} is not a plain file; do not trust this model.")
    with open(handle, "rb") as file:
        yield file


def _read_json(path: Path, directory: int, name: str, limit: int, entry: Any) -> Any:
    with _opened_file(path, directory, name) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise ModelError(f"{path / name} has more than {limit:,} bytes; do not trust this model.")
        if entry is not None:
            _check(path / name, file, entry)
        try:
            return json.loads(file.read(), parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            raise ModelError(f"{path / name} is not valid JSON. {AGAIN}") from None


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _check(path: Path, file: IO[bytes], entry: dict[str, Any]) -> None:
    """Compare size and hash with the manifest's, and go back to the beginning."""
    size = os.fstat(file.fileno()).st_size
    if size != entry.get("bytes"):
        expected = entry.get("bytes")
        raise ModelError(f"{path} has {size:,} bytes where {expected!r} were written; it is damaged or cut short. {AGAIN}")
    if hashlib.file_digest(file, "sha256").hexdigest() != entry.get("sha256"):  # type: ignore[arg-type]
        raise ModelError(f"{path} was changed after it was saved. {AGAIN}")
    file.seek(0)


def _checked_manifest(path: Path, manifest: Any) -> dict[str, Any]:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelError(f"{path / MANIFEST} does not describe a Ramify model. {AGAIN}")
    _check_version(path, manifest.get("version"))
    if not isinstance(manifest.get("about"), dict) or not isinstance(manifest.get("files"), dict):
        raise ModelError(f"{path / MANIFEST} is incomplete. {AGAIN}")
    shards = [name for name in manifest["files"] if SHARD_NAME.fullmatch(name)]
    if len(shards) > MAX_SHARDS or len(manifest["files"]) - len(shards) > MAX_DOCUMENTS:
        raise ModelError(f"{path / MANIFEST} names more files than a model has; do not trust this model.")
    if sorted(shards) != [shard_name(number) for number in range(1, len(shards) + 1)]:
        raise ModelError(f"{path / MANIFEST} names shards that are not numbered from 1 to {len(shards)}. {AGAIN}")
    for name, entry in manifest["files"].items():
        is_known = name == WEIGHTS or SHARD_NAME.fullmatch(name) or (DOCUMENT_NAME.fullmatch(name) and name != MANIFEST)
        if not is_known:
            raise ModelError(f"{path / MANIFEST} names the file {name!r}, no part of a model; do not trust this model.")
        if not isinstance(entry, dict):
            raise ModelError(f"{path / MANIFEST} does not give size and hash of {name}; do not trust this model.")
    return manifest


def _check_version(path: Path, version: Any) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        expected = f"expected a whole number up to {FORMAT_VERSION}"
        raise ModelError(f"{path / MANIFEST} has format version {version!r}; {expected}.")
    if version > FORMAT_VERSION:
        reads = f"this Ramify reads versions up to {FORMAT_VERSION}"
        raise ModelError(f"{path} has format version {version}, but {reads}; install a newer Ramify.")


def _was_replaced(path: Path, handle: int) -> bool:
    """Whether another directory stands in the place of the one that was read."""
    try:
        return not os.path.samestat(os.stat(path), os.fstat(handle))
    except OSError:
        return bool(atomic.leftovers_of(path, "replaced"))
