"""A model as a directory: JSON documents, named arrays, and a manifest with their hashes.

    manifest.json               format version, metadata of the model, size and SHA-256 of every other file, and its own
    <name>.json                 one document per component
    weights.safetensors         every array, memory-mapped on load
    weights-00001.safetensors   and so on: the arrays of each shard, if the weights are sharded

This module stores plain values and arrays and depends on no learner. Reading runs no code from the files; it checks the
version, names, sizes and hashes, and refuses what does not match. Components check shapes and index ranges themselves.

The directory is opened once, and every file once relative to it, so what is checked is what is read, even while another process
replaces the model. Only regular files are opened, links are not followed, and only files in the manifest are read. Arrays are
mapped, so that they change if a file is overwritten in place; a private copy does not.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import IO, Any

from numpy.typing import NDArray

from ramify.arguments import as_path
from ramify.errors import ModelError
from ramify.persistence import atomic, paths, signatures
from ramify.persistence.arrays import ArrayFile, OpenedArrays, open_arrays, remedy, write_arrays

FORMAT = "ramify-model"
FORMAT_VERSION = 3
RELEASES = {1: "0.1", 2: "0.1"}  # the release that wrote each older format
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
SHARD_NAME = re.compile(r"weights-[0-9]{5}\.safetensors")
DOCUMENT_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}\.json")
CHECKSUM = b',\n "sha256": "%b"\n}'  # the end of a manifest
END = len(CHECKSUM % bytes(64))
MAX_MANIFEST = 1 << 22
MAX_DOCUMENT = 1 << 29
MAX_DOCUMENTS = 4
MAX_NESTED = 2_000_000  # lists and objects of a document; a taxonomy has two per node
MAX_SHARDS = 10_000
TRIES = 50
DirectoryStamp = tuple[tuple[str, int, int, int, int], ...] | None
OPEN_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
RETRAIN = "Train the model again, or restore it from a copy."


@dataclass(frozen=True, slots=True)
class StoredModel:
    """The content of a model directory: metadata, documents by name, arrays, and shards (arrays in files of their own)."""

    metadata: dict[str, Any]
    documents: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    shards: Sequence[ArrayFile] = ()


def shard_name(number: int) -> str:
    """The file name of a shard; the first is number 1.

    >>> shard_name(1)
    'weights-00001.safetensors'
    """
    return f"weights-{number:05d}.safetensors"


def write_model(path: str | Path, model: StoredModel) -> None:
    """Write a model directory, atomically replacing an older model."""
    path = as_path(path, "path")
    refuse_foreign_target(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.clear_leftovers(path)
        with atomic.temporary_beside(path, Path.mkdir) as beside:
            for name, document in model.documents.items():
                _write_json(beside / f"{name}.json", document)
            if model.arrays:
                write_arrays(beside / WEIGHTS, model.arrays)
            for number, shard in enumerate(model.shards, start=1):
                shard.write_to(beside / shard_name(number))
            files = {entry.name: _fingerprint(entry) for entry in sorted(beside.iterdir())}
            for number, shard in enumerate(model.shards, start=1):
                if shard.sha256 not in (None, files[shard_name(number)]["sha256"]):
                    raise ModelError(f"shard {number} of the model was changed after it was loaded; restore it from a copy.")
            manifest = {"format": FORMAT, "version": FORMAT_VERSION, "metadata": model.metadata, "files": files}
            _write_bytes(beside / MANIFEST, sealed(manifest))
            atomic.sync_directory(beside)
            atomic.replace_directory(beside, path)
        atomic.clear_leftovers(path)
    except OSError as error:
        failed = f"cannot save the model at {path}: {error.strerror}"
        raise ModelError(f"{failed}; an older model there is unchanged. Fix that, or choose another path.") from error


def is_model(path: str | Path) -> bool:
    """Whether a directory has a model manifest; it may still be damaged."""
    return (Path(path) / MANIFEST).is_file()


def model_metadata(path: str | Path) -> dict[str, Any]:
    """The metadata of a model, unchecked, for display only; empty if there is none."""
    try:
        metadata = json.loads(_manifest_bytes(Path(path)))["metadata"]
    except (ModelError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return metadata if isinstance(metadata, dict) else {}


def model_fingerprint(path: str | Path) -> str:
    """The hash of the manifest, which contains the hashes of all files."""
    return hashlib.sha256(_manifest_bytes(Path(path))).hexdigest()


def directory_stamp(path: str | Path) -> DirectoryStamp:
    """Name, inode, size and time of change of every file in a directory: differs if any was changed; None if it is gone."""
    try:
        with os.scandir(path) as entries:
            found = [(entry.name, entry.stat()) for entry in entries]
    except OSError:
        return None
    return tuple(sorted((name, at.st_ino, at.st_size, at.st_mtime_ns, at.st_ctime_ns) for name, at in found))


def refuse_foreign_target(path: str | Path) -> None:
    """Refuse to save a model over something else; called before long work starts."""
    path = Path(path)
    try:
        above = next(parent for parent in path.absolute().parents if parent.exists())
        place = paths.resolved(path)
        if not above.is_dir() or _is_working_directory(place):
            raise ModelError(f"{path} cannot be a model directory; choose another path for the model.")
        if (model := next(filter(is_model, place.parents), None)) is not None:
            raise ModelError(f"{path} lies in the model {model}, which could not be replaced any more; choose another path.")
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise ModelError(f"{path} is not a directory; choose another path for the model.")
        foreign = _foreign_names(path) if path.is_dir() else []
    except OSError as error:
        raise ModelError(f"cannot save a model at {path}: {error.strerror}; choose another path.") from None
    if foreign:
        found = f"{path} holds {foreign[0]!r}, which does not belong to a model"
        raise ModelError(f"{found}; move it away, or choose another path.")


def _foreign_names(path: Path) -> list[str]:
    """What is in a directory and belongs to no model, in order; of one directory, also while others replace it."""
    for _ in range(TRIES):
        with _opened_directory(path) as handle:
            names, own = os.listdir(handle), set[str]()
            if MANIFEST in names:
                own = {MANIFEST, signatures.SIGNATURE}
                with suppress(ModelError, ValueError, KeyError, TypeError, RecursionError):  # a damaged one names no files
                    manifest = json.loads(_read_bytes(path, handle, MANIFEST, MAX_MANIFEST))
                    own |= set(manifest["files"]) if manifest["format"] == FORMAT else set()
                own |= {name for name in names if atomic.is_leftover(name, signatures.SIGNATURE)}
            foreign = sorted(set(names) - own)
            with suppress(FileNotFoundError):
                if not foreign or os.path.samestat(os.stat(path), os.fstat(handle)):
                    return foreign
    return foreign


def _is_working_directory(place: Path) -> bool:
    try:
        return place == Path.cwd()
    except FileNotFoundError:  # it was removed
        return False


def sealed(manifest: dict[str, Any]) -> bytes:
    """The manifest as JSON; its last line has the hash of everything before it."""
    body = _dump(manifest).removesuffix(b"\n}")
    return body + CHECKSUM % hashlib.sha256(body).hexdigest().encode()


def _dump(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False).encode()


def _write_json(path: Path, document: Any) -> None:
    _write_bytes(path, _dump(document))


def _write_bytes(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _fingerprint(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


# ---- reading -----------------------------------------------------------------------------------------------------------


def read_model(path: str | Path, private: bool = False) -> StoredModel:
    """Read a model directory after checking every file against the manifest.

    private: read all arrays into memory, where nothing changes them; otherwise they are mapped, unless only signed models are
    read: what was checked must stay as it is.
    """
    path, private = as_path(path, "path"), private or signatures.is_needed()
    for _ in range(TRIES):
        with _opened_directory(path) as handle:
            try:
                return _read(path, handle, private)
            except ModelError:
                try:
                    was_replaced = not os.path.samestat(os.stat(path), os.fstat(handle))
                except OSError:
                    was_replaced = bool(atomic.leftovers_of(path, "replaced"))
                if not was_replaced:
                    raise
    raise ModelError(f"{path} is being replaced faster than it can be read; try again.")


def _read(path: Path, directory: int, private: bool) -> StoredModel:
    content = _read_bytes(path, directory, MANIFEST, MAX_MANIFEST)
    if signatures.is_needed():
        signatures.check(content, _read_signature(path, directory), path)
    return _read_files(path, directory, content, private)


def _read_files(path: Path, directory: int, content: bytes, private: bool) -> StoredModel:
    """The model of a manifest, whose content is given, after checking every file against it."""
    manifest = _checked_manifest(path, _parse_json(path / MANIFEST, content))
    body, end = content[:-END], content[-END:]
    if end != CHECKSUM % hashlib.sha256(body).hexdigest().encode():
        raise ModelError(f"{path / MANIFEST} was changed after it was saved. {RETRAIN}")
    documents: dict[str, Any] = {}
    opened: dict[str, OpenedArrays] = {}
    for name, entry in sorted(manifest["files"].items()):
        if name == WEIGHTS or SHARD_NAME.fullmatch(name):
            with _opened_file(path, directory, name) as file:
                _check_size(path / name, file, entry)
                opened[name] = open_arrays(path / name, file, str(entry.get("sha256")), private)
        else:
            content = _read_bytes(path, directory, name, MAX_DOCUMENT, entry)
            documents[name.removesuffix(".json")] = _parse_json(path / name, content)
    arrays = opened.pop(WEIGHTS).arrays if WEIGHTS in opened else {}
    return StoredModel(manifest["metadata"], documents, arrays, tuple(opened.values()))


def sign_model(path: str | Path, private_key: str | Path) -> None:
    """Sign a model directory that is whole, with the key in a file; what is signed is what was checked.

    It may be a model that nobody has signed yet, whichever keys are trusted.
    """
    path = as_path(path, "path")
    with _opened_directory(path) as handle:
        content = _read_bytes(path, handle, MANIFEST, MAX_MANIFEST)
        _read_files(path, handle, content, private=False)
        signatures.sign(content, path, private_key)
        with suppress(OSError):
            if os.path.samestat(os.stat(path), os.fstat(handle)):
                return
    raise ModelError(f"{path} was replaced while it was signed; sign it again.")


def _manifest_bytes(path: Path) -> bytes:
    """The manifest as it is, from a regular file of a possible size."""
    with _opened_directory(path) as handle:
        return _read_bytes(path, handle, MANIFEST, MAX_MANIFEST)


def open_array_file(path: str | Path) -> OpenedArrays:
    """Map a single array file, such as a shard that does not belong to a model yet."""
    path = Path(path)
    with _opened_file(path.parent, None, str(path.absolute())) as file:
        return open_arrays(path, file)


@contextmanager
def _opened_directory(path: Path) -> Iterator[int]:
    """A handle of the directory, also while it is being replaced."""
    for attempt in range(6):
        time.sleep(0.01 if attempt else 0)  # a directory that is being replaced is back by then
        for candidate in (path, *atomic.leftovers_of(path, "replaced")):
            try:
                handle = os.open(candidate, OPEN_DIRECTORY)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise ModelError(f"{path} cannot be read: {error.strerror}.") from None
            try:
                yield handle
            finally:
                os.close(handle)
            return
    found = "it is not a directory" if path.exists() else "there is no such directory"
    raise ModelError(f"{path} is not a Ramify model: {found}. Give the directory that 'ramify train' wrote.")


@contextmanager
def _opened_file(path: Path, directory: int | None, name: str) -> Iterator[IO[bytes]]:
    try:
        handle = os.open(name, os.O_RDONLY | atomic.SAFE_OPEN, dir_fd=directory)
    except FileNotFoundError:
        if name == MANIFEST:
            advice = "Give the directory that 'ramify train' wrote."
            raise ModelError(f"{path} is not a Ramify model: it has no {MANIFEST}. {advice}") from None
        raise ModelError(f"{path / name} is missing. {RETRAIN}") from None
    except OSError as error:
        raise ModelError(f"{path / name} cannot be read: {error.strerror}. {remedy(error, RETRAIN)}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelError(f"{path / name} is not a regular file; do not trust this model.")
    with open(handle, "rb") as file:
        yield file


def _read_signature(path: Path, directory: int) -> bytes:
    try:
        os.stat(signatures.SIGNATURE, dir_fd=directory, follow_symlinks=False)
    except OSError:
        raise ModelError(f"{path} is not signed, and only signed models are read; see 'ramify sign --help'.") from None
    return _read_bytes(path, directory, signatures.SIGNATURE, signatures.MAX_BYTES)


def _read_bytes(path: Path, directory: int, name: str, limit: int, entry: dict[str, Any] | None = None) -> bytes:
    """The content of a file; what is checked against its size and hash is what was read."""
    with _opened_file(path, directory, name) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise ModelError(f"{path / name} has more than {limit:,} bytes; do not trust this model.")
        if entry is not None:
            _check_size(path / name, file, entry)
        content = file.read(limit + 1)
    if entry is not None and hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise ModelError(f"{path / name} was changed after it was saved. {RETRAIN}")
    return content


def _parse_json(path: Path, content: bytes) -> Any:
    def finite(word: str) -> float:
        if not isfinite(number := float(word)):
            raise ValueError(f"{word} is not JSON")
        return number

    if content.count(b"{") + content.count(b"[") > MAX_NESTED:  # a few bytes each, but 50 times as much in memory
        raise ModelError(f"{path} has more than {MAX_NESTED:,} lists and objects; do not trust this model.")
    try:
        return json.loads(content, parse_constant=finite, parse_float=finite)
    except (ValueError, RecursionError):
        raise ModelError(f"{path} is not valid JSON. {RETRAIN}") from None


def _check_size(path: Path, file: IO[bytes], entry: dict[str, Any]) -> None:
    size = os.fstat(file.fileno()).st_size
    if size != (expected := entry.get("bytes")):
        raise ModelError(f"{path} has {size:,} bytes instead of {expected!r}; it is damaged or truncated. {RETRAIN}")


def _checked_manifest(path: Path, manifest: Any) -> dict[str, Any]:
    where, doubt = path / MANIFEST, "do not trust this model"
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelError(f"{where} does not describe a Ramify model. {RETRAIN}")
    version, reads = manifest.get("version"), f"this version reads format {FORMAT_VERSION}"
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ModelError(f"{where} has format version {version!r}; expected the whole number {FORMAT_VERSION}.")
    if version > FORMAT_VERSION:
        raise ModelError(f"{path} was saved by a newer Ramify (model format {version}); {reads}. Install a newer Ramify.")
    if version < FORMAT_VERSION:
        release = f"Ramify {RELEASES[version]} (model format {version})"
        raise ModelError(f"{path} was saved by {release}; {reads}. Train it again with 'ramify train'.")
    if not isinstance(manifest.get("metadata"), dict) or not isinstance(manifest.get("files"), dict):
        raise ModelError(f"{where} is incomplete. {RETRAIN}")
    shards = [name for name in manifest["files"] if SHARD_NAME.fullmatch(name)]
    if len(shards) > MAX_SHARDS or len(manifest["files"]) - len(shards) > MAX_DOCUMENTS:
        raise ModelError(f"{where} names more files than a model can have; {doubt}.")
    if sorted(shards) != [shard_name(number) for number in range(1, len(shards) + 1)]:
        raise ModelError(f"{where} names shards that are not numbered from 1 to {len(shards)}. {RETRAIN}")
    for name, entry in manifest["files"].items():
        is_known = name == WEIGHTS or SHARD_NAME.fullmatch(name) or (DOCUMENT_NAME.fullmatch(name) and name != MANIFEST)
        if not is_known:
            raise ModelError(f"{where} names the file {name!r}, which does not belong to a model; {doubt}.")
        if not isinstance(entry, dict):
            raise ModelError(f"{where} does not give size and hash of {name}; {doubt}.")
    return manifest
