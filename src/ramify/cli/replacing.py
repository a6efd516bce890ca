"""Before anything is replaced: a question on a terminal, ``--force`` everywhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from typer import Option

from ramify.cli.console import messages
from ramify.errors import InputError
from ramify.formatting import visible_name
from ramify.persistence import model_metadata
from ramify.persistence.paths import is_special

Force = Annotated[bool, Option("--force", help="Replace outputs that exist, without asking.")]
YES = ("y", "yes")


def ask_to_replace(*places: Path | None, force: bool) -> None:
    """Ask whether what is at these places may be replaced; refuse without a terminal. force: neither is needed."""
    for place in places:
        if force or place is None or not _holds_something(place):
            continue
        found = _describe(place)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise InputError(f"{found}; give --force to replace it, or another place.")
        if not _is_confirmed(f"{found}. Replace it? [y/N] "):
            raise InputError(f"{place} is kept, and nothing was done; give another place, or answer yes.")


def _holds_something(place: Path) -> bool:
    """Whether anything would be lost: an empty file or directory is nothing, and a device is not replaced."""
    if not place.exists() or is_special(place):
        return False
    return any(place.iterdir()) if place.is_dir() else place.stat().st_size > 0


def _describe(place: Path) -> str:
    system = model_metadata(place).get("system") if place.is_dir() else None
    return f"{place} exists already" if system is None else f"{place} holds a model of system {system!r}"


def _is_confirmed(question: str) -> bool:
    messages.print(visible_name(question), markup=False, end="")
    return sys.stdin.readline().strip().lower() in YES
