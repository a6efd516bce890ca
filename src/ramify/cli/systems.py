"""``ramify systems``: what can be chosen with --system."""

from __future__ import annotations

from rich.table import Table

from ramify.cli.console import answers, print_json
from ramify.cli.options import AsJson
from ramify.systems import SYSTEMS


def systems(as_json: AsJson = False) -> None:
    """List the systems that --system can name.

    \b
    Examples:
      ramify systems
      ramify systems --json
    """
    if as_json:
        print_json(
            [{"name": s.name, "summary": s.summary, "source": s.source, "needs_tree": s.needs_tree} for s in SYSTEMS.values()]
        )
        return
    table = Table(box=None, pad_edge=False)
    for column in ("system", "what it is", "from"):
        table.add_column(column)
    for system in SYSTEMS.values():
        table.add_row(system.name, system.summary, system.source)
    answers.print(table)
