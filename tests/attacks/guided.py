"""Attacks on the readers of tables and taxonomies, guided by coverage: inputs that reach new code are changed further.

Needs ``pip install atheris``, which is no dependency: ``python -m attacks.guided tables -max_total_time=600``. Options are those
of libFuzzer; an input that ends in anything but an answer or one clear sentence is written to ``build/attack-findings``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import FunctionType, ModuleType

from attacks import tables, taxonomies
from attacks.model_parts import check_message
from ramify.data import documents, svmlight
from ramify.data import tables as readers
from ramify.errors import RamifyError
from ramify.taxonomy import diff, edges, files, hierarchy, node_values
from ramify.taxonomy.formats import json_nodes
from ramify.taxonomy.formats import text as text_formats

KINDS = ("x.csv", "x.jsonl", "x.svm", "x.tsv")
FINDINGS = Path("build/attack-findings")


def read_table(data: bytes, folder: Path) -> None:
    """Read bytes as a table, whose kind the first one says."""
    path = folder / KINDS[data[0] % len(KINDS)]
    path.write_bytes(data[1:])
    documents.read_corpus(path)
    for _ in islice(documents.stream_rows(path)[2], 1000):
        pass


def read_taxonomy(data: bytes, folder: Path) -> None:
    """Read bytes as a taxonomy, and as numbers by node."""
    text = data.decode("utf-8", "replace")
    for parse in (files.parse_taxonomy, node_values.parse_node_values):
        try:
            parse(text)
        except RamifyError as error:
            check_message(ValueError(str(error)[:900]))


TARGETS: dict[str, tuple[Callable[[bytes, Path], None], ModuleType, tuple[ModuleType, ...]]] = {
    "tables": (read_table, tables, (readers, documents, svmlight)),
    "taxonomies": (read_taxonomy, taxonomies, (files, text_formats, json_nodes, edges, hierarchy, node_values, diff)),
}


def main() -> None:
    """Attack one target until libFuzzer ends."""
    import atheris

    read, target, modules = TARGETS[sys.argv[1]]
    for module in modules:
        for function in list(vars(module).values()):
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                atheris.instrument_func(function)
    FINDINGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        seeds, scratch = Path(made) / "seeds", Path(made) / "scratch"
        seeds.mkdir()
        scratch.mkdir()
        target.prepare(seeds)

        def attempt(data: bytes) -> None:
            try:
                read(data or b"\0", scratch)
            except RamifyError as error:
                check_message(error)

        atheris.Setup([sys.argv[0], f"-artifact_prefix={FINDINGS}/", *sys.argv[2:], str(seeds)], attempt)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
