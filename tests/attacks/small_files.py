"""Damage to small files: what the targets that read one file have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attacks import edits
from attacks.edits import Rng

MOST_BYTES = 1 << 22


def make(rng: Rng, folder: Path) -> dict[str, Any]:
    """A random case: a file of a folder, and one or more changes of its bytes."""
    base = edits.pick(rng, sorted(path.name for path in folder.iterdir()))
    size, n = len((folder / base).read_bytes()), int(rng.choice([1, 1, 2, 3, 5, 8]))
    return {"file": base, "edits": [edits.random_byte_edit(rng, size) for _ in range(n)]}


def splice(rng: Rng, case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The case with a part of another file of the folder put into its own, now and then."""
    if rng.random() < 0.15:
        other = edits.pick(rng, sorted(path.name for path in folder.iterdir()))
        case["edits"].append(
            {"splice": other, "at": int(rng.integers(500)), "from": int(rng.integers(500)), "length": int(rng.integers(1, 800))}
        )
    return case


def write(case: dict[str, Any], folder: Path, scratch: Path) -> Path:
    """Write the damaged file of a case. A recipe may also hold its content."""
    target = scratch / Path(case["file"]).name
    if "content" in case:
        target.write_bytes(edits.unpack(case["content"]))
        return target
    data = (folder / case["file"]).read_bytes()
    for edit in case["edits"]:
        if "splice" in edit:
            part = (folder / edit["splice"]).read_bytes()[edit["from"] : edit["from"] + edit["length"]]
            data = data[: edit["at"]] + part + data[edit["at"] :]
        else:
            data = edits.edit_bytes(data, edit)
        data = data[:MOST_BYTES]
    target.write_bytes(data)
    return target
