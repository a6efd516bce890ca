"""API keys and roles; the key file holds hashes only.

A key has 256 random bits, so a plain SHA-256 of it can be neither guessed nor inverted. The file is JSON, replaced atomically
and read again when it changes: a removed key stops working within a second.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from ramify.errors import InputError, suggest
from ramify.formatting import UNPRINTABLE_CHARACTERS
from ramify.persistence import atomic_writer, exclusive_writer, refuse_unwritable
from ramify.persistence.paths import is_special, read_at_most, resolved

log = logging.getLogger(__name__)

ROLES = ("read", "review", "admin")
FORMAT = "ramify-keys"
MAX_BYTES = 1 << 20
LOCK_SECONDS = 30.0  # to wait for another command that changes the keys
CHECK_INTERVAL = 0.5  # seconds between two checks of the file
PERSON = re.compile(f"[^\t\n{UNPRINTABLE_CHARACTERS}]{{1,80}}")


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        """Whether the caller has this role or a higher one.

        >>> Caller("ann", "review").may("read"), Caller("ann", "review").may("admin")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class Key(Caller):
    """A key in the file: its owner and role, and its hash."""

    sha256: str
    created_at: str


class KeyRing:
    """The keys of a file, kept up to date."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._checked_at = monotonic()
        self._callers: dict[str, Caller] = {}
        self._read()

    def find(self, key: str) -> Caller | None:
        """The owner of a key; None if there is none."""
        if monotonic() - self._checked_at >= CHECK_INTERVAL:
            self._checked_at = monotonic()
            try:
                self._read()
            except InputError as error:  # an unreadable key file lets nobody in
                log.error("keys", extra={"fields": {"problem": str(error)}})
                self._callers, self._stamp = {}, None
        return self._callers.get(_hash(key))

    def _read(self) -> None:
        try:
            found = self._path.stat()
        except OSError as error:
            raise _unreadable(self._path, error) from None
        stamp = found.st_mtime_ns, found.st_size, found.st_ino
        if stamp != self._stamp:
            self._callers = {key.sha256: Caller(key.name, key.role) for key in read_keys(self._path)}
            self._stamp = stamp


def add_key(path: Path, name: str, role: str) -> str:
    """Create a key and return it; the file holds only its hash."""
    if role not in ROLES:
        raise InputError(f"role {role!r} is unknown; give {', '.join(ROLES)}.{suggest(role, ROLES)}")
    if not PERSON.fullmatch(name) or name != name.strip():
        raise InputError(f"{name!r} cannot be a name; give one of up to 80 letters.")
    _refuse_place(path)
    with exclusive_writer(resolved(path), seconds=LOCK_SECONDS):
        keys = read_keys(path) if path.exists() and path.stat().st_size else []  # a full disk may have left an empty file
        if any(key.name == name for key in keys):
            raise InputError(f"{name!r} has a key already; remove it first with: ramify keys remove {path} {name!r}.")
        secret = f"ramify_{secrets.token_urlsafe(32)}"
        made = Key(name, role, _hash(secret), datetime.now(UTC).isoformat(timespec="seconds"))
        _write_keys(path, [*keys, made])
    return secret


def remove_key(path: Path, name: str) -> None:
    """Remove a key."""
    _refuse_place(path)
    with exclusive_writer(resolved(path), seconds=LOCK_SECONDS):
        keys = read_keys(path)
        left = [key for key in keys if key.name != name]
        if len(left) == len(keys):
            raise InputError(f"{path} has no key for {name!r}; see 'ramify keys list {path}'.")
        _write_keys(path, left)


def read_keys(path: Path) -> list[Key]:
    """The keys of a file."""
    try:
        values = json.loads(read_at_most(path, MAX_BYTES, only_regular=True))
        keys = [Key(**{each.name: str(entry[each.name]) for each in fields(Key)}) for entry in values["keys"]]
        is_ours = values["format"] == FORMAT and all(key.role in ROLES for key in keys)
    except OSError as error:
        raise _unreadable(path, error) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        is_ours = False
    if not is_ours:
        raise InputError(f"{path} is not a key file of Ramify; create one with 'ramify keys add'.")
    return keys


def _refuse_place(path: Path) -> None:
    """Refuse a path at which no keys can be kept; a device would take them and forget them."""
    refuse_unwritable(path)
    if is_special(path):
        raise InputError(f"{path} is a pipe or a device, which keeps no keys; give the name of a file.")


def _write_keys(path: Path, keys: Sequence[Key]) -> None:
    values = {"format": FORMAT, "version": 1, "keys": [asdict(key) for key in keys]}
    with atomic_writer(path, private=True) as file:  # hashes are not secret, but names are private
        file.write(json.dumps(values, indent=1, ensure_ascii=False) + "\n")


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(f"the keys in {path} cannot be read: {error.strerror}; create one with 'ramify keys add'.")
