"""``ramify keys``: the API keys of a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from rich.table import Table
from typer import Argument, Option

from ramify.cli.console import literal, output, print_json, say
from ramify.cli.options import AsJson
from ramify.server.keys import add_key, read_keys, remove_key

KeyFile = Annotated[Path, Argument(help="File of keys; it holds hashes only.")]


def add(
    file: KeyFile,
    name: Annotated[str, Argument(help="Owner of the key.")],
    role: Annotated[str, Option(help="read: classify; review: also decide; admin: also reload models.")] = "read",
) -> None:
    """Create a key and print it; it is shown only once.

    \b
    Example:
      ramify keys add keys.json ann --role review
    """
    key = add_key(file, name, role)
    sys.stdout.write(f"{key}\n")
    say(f"This is the key of {name}, with the role {role!r}. Only its hash is stored in {file}.")


def remove(file: KeyFile, name: Annotated[str, Argument(help="Owner of the key.")]) -> None:
    """Remove a key; running servers notice within a second.

    \b
    Example:
      ramify keys remove keys.json ann
    """
    remove_key(file, name)
    say(f"The key of {name} was removed.")


def show(file: KeyFile, as_json: AsJson = False) -> None:
    """List the owners of keys.

    \b
    Example:
      ramify keys list keys.json
    """
    keys = read_keys(file)
    if as_json:
        print_json([{"name": key.name, "role": key.role, "created_at": key.created_at} for key in keys])
        return
    table = Table("name", "role", "created", box=None, pad_edge=False, header_style="bold")
    for key in keys:
        table.add_row(literal(key.name), key.role, literal(key.created_at))
    output.print(table)
