"""``ramify taxonomy diff``: what changed between two taxonomies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from ramify.cli.console import answers as printed
from ramify.cli.console import counted, print_json, say
from ramify.cli.options import AsJson, refuse_output
from ramify.persistence import write_text_atomically
from ramify.taxonomy import Change, Changes, Taxonomy, compare_taxonomies, read_answers, read_taxonomy, render_questions
from ramify.taxonomy.changes import KINDS, suggestion_for

SHOWN = 20  # changes of a kind, and questions, that are printed
AnswersFile = Annotated[
    Path | None,
    typer.Option(help="Where documents of old nodes go: a table of old and new nodes; '-' gives documents up."),
]


def diff(
    old: Annotated[Path, typer.Argument(help="The taxonomy as it was, in any format.")],
    new: Annotated[Path, typer.Argument(help="The taxonomy as it is now.")],
    answers: AnswersFile = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the open questions here, to be filled in.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what changed: nodes renamed, moved, merged, split, added and retired.

    Nodes of the same name are the same; where names are whole paths, nodes are recognized by their titles, parents and children
    as far as that leaves no doubt. Where documents of retired nodes go is asked, and answered by a table of old and new
    nodes: several rows with the same new node merge, several with the same old node split.

    \b
    Examples:
      ramify taxonomy diff taxonomy.tsv newer.tsv
      ramify taxonomy diff taxonomy.tsv newer.tsv --out questions.tsv
      ramify taxonomy diff taxonomy.tsv newer.tsv --answers questions.tsv --json
    """
    if out is not None:
        refuse_output(out, None, old, new)
    before, after = read_taxonomy(old), read_taxonomy(new)
    changes = compare_taxonomies(before, after, None if answers is None else read_answers(answers, before, after))
    if out is not None:
        write_text_atomically(out, render_questions(changes))
    if as_json:
        print_json(changes.as_dict())
        return
    _tell(changes, out)


def _tell(changes: Changes, out: Path | None) -> None:
    if changes:
        printed.print(table_of(changes))
    say(", ".join(f"{number:,} {kind}" for kind, number in changes.counts.items() if number) or "Nothing changed.")
    questions = changes.questions
    if not questions:
        return
    say(f"{counted(len(questions), 'retired node')} without a successor; where do documents go that are labelled so?")
    for node in questions[:SHOWN]:
        near = suggestion_for(changes, node)
        say(f"  {changes.old.show(node)}" + ("" if near is None else f"  (perhaps to {near})"))
    if len(questions) > SHOWN:
        say(f"  and {len(questions) - SHOWN:,} more")
    where = "--out questions.tsv writes these questions" if out is None else f"They are written to {out}"
    say(f"{where}; fill in the column 'new', and give the file back with --answers.")


def table_of(changes: Changes) -> Table:
    """Changes, the most important kinds first; of many only the first are shown."""
    table = Table("change", "old", "new", box=None, pad_edge=False)
    table.add_column("nodes below", justify="right")
    for kind in KINDS:
        listed = changes.of(kind)
        for change in listed[:SHOWN]:
            table.add_row(kind, *_ends(changes, change), f"{change.along:,}" if change.along else "")
        if len(listed) > SHOWN:
            table.add_row(kind, f"and {len(listed) - SHOWN:,} more", "", "")
    return table


def _ends(changes: Changes, change: Change) -> tuple[str, str]:
    def shown(taxonomy: Taxonomy, nodes: tuple[int, ...]) -> str:
        return escape(", ".join(taxonomy.show(node) for node in nodes))

    return shown(changes.old, change.old), shown(changes.new, change.new)
