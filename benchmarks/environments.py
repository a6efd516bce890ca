"""A virtual environment for each peer, made when it is first needed and again when its pins change."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "peers" / "requirements.toml"
STAMP = "installed.txt"


class InstallError(Exception):
    """A peer cannot be installed; the message is what pip said last."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the results: the file in `peers` that runs it, what it needs, and what it is told."""

    name: str
    module: str
    requires: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    alone: bool = False


def known_peers() -> dict[str, Row]:
    """Every peer with an environment of its own, by name."""
    tables = tomllib.loads(REQUIREMENTS.read_text(encoding="utf-8"))
    return {name: _row(name, table) for name, table in tables.items()}


def python_for(row: Row, folder: Path) -> Path:
    """The interpreter for a row; this one for a row without requirements."""
    if not row.requires:
        return Path(sys.executable)
    environment = folder.absolute() / row.name
    python, stamp = environment / "bin" / "python", environment / STAMP
    if not (stamp.is_file() and stamp.read_text().splitlines() == list(row.requires)):
        _install(row, environment)
        stamp.write_text("\n".join(row.requires))
    return python


def _row(name: str, table: dict[str, Any]) -> Row:
    lists = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Row(name, **{"module": name, **lists})


def _install(row: Row, environment: Path) -> None:
    _call(sys.executable, "-m", "venv", "--clear", str(environment))
    only = ["--no-deps"] if row.alone else []
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _call(*pip, *only, *row.requires)


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()[-1:]
        raise InstallError(f"cannot be installed: {' '.join(said[:1]).removeprefix('ERROR: ')}")
