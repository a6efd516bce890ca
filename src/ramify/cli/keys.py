"""``ramify keys``: who may use a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ramify.cli.console import answers, print_json, say
from ramify.cli.options import AsJson
from ramify.server.keys import add_key, read_keys, remove_key

KeyFile = Annotated[Path, typer.Argument(help="File of keys; it holds hashes only.")]


def add(
    file: KeyFile,
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    role: Annotated[str, typer.Option(help="read: classify; review: also decide; admin: also read models anew.")] = "read",
) -> None:
    """Make a key for somebody, and print it; this is the only time that it is shown.

    \b
    Example:
      ramify keys add keys.json ann --role review
    """
    key = add_key(file, name, role)
    sys.stdout.write(f"{key}\n")
    say(f"This is the key of {name}, with the role {role!r}. It is not kept, only its hash in {file}.")


def remove(file: KeyFile, name: Annotated[str, typer.Argument(help="Whose key is taken away.")]) -> None:
    """Take somebody's key away; servers that use the file notice within a second.

    \b
    Example:
      ramify keys remove keys.json ann
    """
    remove_key(file, name)
    say(f"{name} has no key any more.")


def show(file: KeyFile, as_json: AsJson = False) -> None:
    """List who has a key.

    \b
    Example:
      ramify keys list keys.json
    """
    keys = read_keys(file)
    if as_json:
        print_json([{"name": key.name, "role": key.role, "created_at": key.created_at} for key in keys])
        return
    table = Table("name", "role", "made", box=None, pad_edge=False, header_style="bold")
    for key in keys:
        table.add_row(key.name, key.role, key.created_at)
    answers.print(table)
