"""Results of a study as one JSON file, written anew after every step.

An entry is one part with the settings that it ran with. Entries with other settings stay, so that a quick run does not cost
the results of a long one.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ramify.errors import InputError
from ramify.persistence import write_text_atomically

KIND = "python -m experiments"
FORMAT = 1


def plain(value: Any) -> Any:
    """A value as JSON would give it back: lists for tuples and arrays, None for what is no finite number.

    >>> plain({1: (np.float32(0.5), float("nan")), "a": np.arange(2)})
    {'1': [0.5, None], 'a': [0, 1]}
    """
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    raise TypeError(f"a {type(value).__name__} is no plain value; give numbers, words, lists and dictionaries")


@dataclass(slots=True)
class Entry:
    """One part with its settings.

    steps: what is done so far of a part under way, by key. found: what the part gave; None until it is complete.
    """

    part: str
    settings: dict[str, Any]
    results: Results
    steps: dict[str, Any] = field(default_factory=dict)
    found: Any = None
    seconds: float = 0.0
    threads: int | None = None

    def keep(self, key: str, value: Any) -> None:
        """Save a step."""
        self.steps[key] = plain(value)
        self.results.save()

    def complete(self, found: Any) -> None:
        """Save what the part gave; its steps are no longer needed."""
        self.found, self.steps = plain({} if found is None else found), {}
        self.results.save()

    def as_dict(self) -> dict[str, Any]:
        """The entry as the file holds it."""
        kept = {"steps": self.steps} if self.found is None else {"found": self.found}
        return {
            "part": self.part,
            "settings": self.settings,
            "seconds": self.seconds,
            "threads": self.threads,
            **kept,
        }


@dataclass(slots=True)
class Results:
    """The file of one paper.

    head: what the file says of the last run, beside the entries.
    """

    path: Path
    paper: str
    entries: list[Entry] = field(default_factory=list)
    head: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, paper: str) -> Results:
        """Read the file, or begin a new one; refuse a file that is something else."""
        results = cls(path, paper)
        held = _read(path) if path.exists() else {}
        if held:
            _refuse_other(path, held, paper)
            try:
                results.entries = [_entry(row, results) for row in held["parts"]]
            except (KeyError, TypeError, AttributeError, ValueError):
                raise _broken(path) from None
        return results

    def find(self, part: str, settings: dict[str, Any]) -> Entry | None:
        """The entry of a part with just these settings."""
        wanted = plain(settings)
        return next((entry for entry in self.entries if entry.part == part and entry.settings == wanted), None)

    def find_without_data(self, part: str, settings: dict[str, Any]) -> Entry | None:
        """The newest complete entry of a part with these settings, whatever its data was."""
        wanted = {**plain(settings), "data": None}
        fitting = (e for e in reversed(self.entries) if e.part == part and {**e.settings, "data": None} == wanted)
        return next((entry for entry in fitting if entry.found is not None), None)

    def begin(self, part: str, settings: dict[str, Any]) -> Entry:
        """The entry to go on with; entries that an older version of the part made are dropped."""
        found = self.find(part, settings)
        if found is None:
            found = Entry(part, plain(settings), self)
            version = settings["version"]
            self.entries = [e for e in self.entries if e.part != part or e.settings.get("version") == version]
            self.entries.append(found)
        return found

    def save(self) -> None:
        """Write the file; whoever is stopped while this happens finds the old one."""
        held = {
            "kind": KIND,
            "format": FORMAT,
            "paper": self.paper,
            **self.head,
            "parts": [entry.as_dict() for entry in self.entries],
        }
        write_text_atomically(self.path, json.dumps(held, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _read(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}.") from None
    except ValueError:
        raise _broken(path) from None
    if not isinstance(held, dict) or held.get("kind") != KIND or not isinstance(held.get("parts"), list):
        raise InputError(f"{path} does not hold results of 'python -m experiments'; choose another folder with --out.")
    return held


def _refuse_other(path: Path, held: dict[str, Any], paper: str) -> None:
    if held.get("paper") != paper:
        raise InputError(f"{path} holds results of {held.get('paper')}, not of {paper}; choose another folder with --out.")
    if held.get("format") != FORMAT:
        raise InputError(f"{path} has format {held.get('format')}; this version reads {FORMAT}: choose another --out.")


def _broken(path: Path) -> InputError:
    return InputError(f"{path} is broken and cannot be gone on with; remove it, or choose another folder with --out.")


def _entry(row: dict[str, Any], results: Results) -> Entry:
    entry = Entry(str(row["part"]), dict(row["settings"]), results, dict(row.get("steps") or {}), row.get("found"))
    entry.seconds, entry.threads = float(row.get("seconds", 0.0)), row.get("threads")
    return entry
