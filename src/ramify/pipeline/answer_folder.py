"""A directory of answers, one file for each file of documents, and the note in it that says what they are answers of.

    ramify-answers.json   the model's fingerprint, what was asked for, and for each file of answers the documents it is of
    part-0.csv            answers; a file is there whole or not at all

The note is there before the first file, so whatever the process was doing when it was killed, the files that are there are
answers of what the note says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramify.errors import InputError
from ramify.persistence import only_writer, write_text_atomically

NOTE = "ramify-answers.json"
FORMAT = "ramify-answers-1"
BEGIN = "leave out --resume to begin anew"


@dataclass(frozen=True, slots=True)
class AnswerFolder:
    """What is to be in a directory of answers.

    depends_on: all that answers depend on beside the documents, as plain values, by what users call it.
    sources: the file of documents of each file of answers, by its name.
    """

    directory: Path
    depends_on: Mapping[str, Any]
    sources: Mapping[str, Path]

    @contextmanager
    def opened(self, resume: bool) -> Iterator[list[str]]:
        """The names of the files that are to be written, while nobody else may write here.

        resume: files that an earlier run wrote stay, if all else is the same; otherwise they are removed before anything is
        written. Files that are not ours are never touched.
        """
        if resume and not (self.directory / NOTE).is_file():
            raise InputError(f"there are no answers to go on with in {self.directory}; {BEGIN}.")
        self._make()
        with only_writer(self.directory / NOTE):
            before = self._read()
            done = self._check_earlier(before) if resume else self._clear(before)
            self._write(before if resume else {})
            yield [name for name in self.sources if name not in done]

    def _make(self) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.directory} cannot be a directory for answers: {error.strerror}; choose another.") from None

    def _read(self) -> dict[str, Any]:
        """What an earlier run noted; nothing where there was none."""
        path = self.directory / NOTE
        if not path.exists():
            return {}
        try:
            note = json.loads(path.read_bytes())
            fits = note["format"] == FORMAT and isinstance(note["depends_on"], dict) and isinstance(note["files"], dict)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            fits = False
        if not fits or any("/" in name or name.startswith(".") for name in note["files"]):
            raise InputError(f"{path} is not a note that this Ramify writes; choose another directory, or remove it.")
        return dict(note)

    def _write(self, before: Mapping[str, Any]) -> None:
        files = {**before.get("files", {}), **{name: stand_of(path) for name, path in self.sources.items()}}
        note = {"format": FORMAT, "depends_on": self.depends_on, "files": files}
        write_text_atomically(self.directory / NOTE, json.dumps(note, ensure_ascii=False, indent=1) + "\n")

    def _check_earlier(self, before: dict[str, Any]) -> set[str]:
        """The files that are there already; refuses to go on where they are answers of something else."""
        for name, value in self.depends_on.items():
            if before["depends_on"].get(name) != value:
                what = "of another model" if name == "model" else f"with another {name}"
                raise InputError(f"the answers in {self.directory} are {what}; {BEGIN}, or give what they were begun with.")
        done = {name for name in before["files"] if (self.directory / name).is_file()}
        for name in sorted(done):
            if name not in self.sources:
                raise InputError(f"{self.directory / name} is of a file that is not among these; {BEGIN}.")
            if before["files"][name] != stand_of(self.sources[name]):
                raise InputError(f"{self.sources[name]} has changed since its answers were written; {BEGIN}.")
        return done

    def _clear(self, before: dict[str, Any]) -> set[str]:
        """Remove what an earlier run wrote; refuses where something else is in the way."""
        ours = {NOTE, *before.get("files", {})}
        there = sorted(entry.name for entry in self.directory.iterdir() if not entry.name.startswith("."))
        foreign = [name for name in there if name not in ours and (not before or name in self.sources)]
        if foreign:
            advice = "give an empty directory, or --resume to go on with an earlier run"
            raise InputError(f"{self.directory} holds {foreign[0]!r}, which no earlier run wrote; {advice}.")
        for name in before.get("files", {}):
            (self.directory / name).unlink(missing_ok=True)
        return set()


def stand_of(path: Path) -> dict[str, Any]:
    """What tells whether a file is still as it was: its name, its size, and when it was last written to."""
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    return {"of": path.name, "bytes": found.st_size, "written": found.st_mtime_ns}
