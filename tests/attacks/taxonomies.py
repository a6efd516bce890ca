"""Attacks on taxonomy files of every format, and on tables of reassignments and of numbers by node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attacks import edits, small_files
from attacks.edits import Rng
from attacks.model_parts import diamond
from attacks.tables import said_by
from ramify import Taxonomy, read_taxonomy
from ramify.errors import RamifyError
from ramify.taxonomy import diff_taxonomies, read_node_values, read_reassignments, write_taxonomy
from ramify.taxonomy.files import is_taxonomy_file
from ramify.taxonomy.formats import FORMATS

TREE = Taxonomy.from_paths(["food/fruit/apple", "food/fruit/pear", "food/bread", "drink"])
READ_BACK = 20_000  # characters of names, at most


def prepare(folder: Path) -> None:
    """Write a tree and a DAG in every format that can hold them."""
    for kind, taxonomy in (("tree", TREE), ("dag", diamond())):
        for name in FORMATS:
            try:
                (folder / f"{kind}.{name}").write_text(FORMATS[name].render(taxonomy))
            except RamifyError:  # paths cannot hold a DAG
                continue
    (folder / "nested.json").write_text('{"food": {"fruit": ["apple", "pear"], "bread": {}}, "drink": null}')
    (folder / "commas.csv").write_text('id,parent,title\nfood,,Food\napple,food,"Apples, red"\npear,food,Pears\n')
    (folder / "values.json").write_text('{"food": 1.5, "drink": 2}')
    (folder / "moves.tsv").write_text("old\tnew\nfood\tdrink\ndrink\t-\n")


def make(rng: Rng, folder: Path) -> dict[str, Any]:
    """A random case, read in a format that is found or given."""
    case = small_files.splice(rng, small_files.make(rng, folder), folder)
    if rng.random() < 0.4:
        case["format"] = edits.pick(rng, [*FORMATS, "no such"])
    return case


def attempt(case: dict[str, Any], folder: Path, scratch: Path) -> str:
    """Read the file, write it again, and read it as other tables; returns what happened."""
    path = small_files.write(case, folder, scratch)
    said = [said_by(read, path, case) for read in (_taxonomy, _values, _moves)]
    return f"refused: {said[0]}" if said[0] else "answered"


def _taxonomy(path: Path, case: dict[str, Any]) -> None:
    is_taxonomy_file(path)
    taxonomy = read_taxonomy(path, case.get("format"))
    assert len(taxonomy), "there are no nodes"
    diff_taxonomies(TREE, taxonomy)
    assert Taxonomy.from_state(taxonomy.state()) == taxonomy, "the state is of another taxonomy"
    for name in FORMATS if sum(map(len, taxonomy.names)) < READ_BACK else ():
        again = path.parent / f"again.{name}"
        try:
            write_taxonomy(taxonomy, again, name)
        except RamifyError:
            continue
        found = read_taxonomy(again, name)
        # doccano has names only, some of which may look like paths
        assert name == "doccano" or len(found) == len(taxonomy), f"{name} holds another number of nodes"


def _values(path: Path, case: dict[str, Any]) -> None:
    read_node_values(path)


def _moves(path: Path, case: dict[str, Any]) -> None:
    read_reassignments(path, TREE, diamond())
