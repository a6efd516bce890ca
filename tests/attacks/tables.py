"""Attacks on tables of documents: CSV, TSV, JSON Lines, JSON, Parquet, svmlight, gzipped; and tables of scores."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from attacks import edits, small_files
from attacks.edits import Rng
from attacks.model_parts import check_message, documents
from ramify import Taxonomy
from ramify.data import read_corpus
from ramify.data.corpus import BadRow
from ramify.data.documents import stream_rows
from ramify.data.encodings import known_encoding
from ramify.data.file_sets import open_file_set
from ramify.errors import RamifyError
from ramify.workflows.score_tables import open_scores

ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8", "latin-1", "utf-16", "cp1252", "shift_jis", "no such")
TAXONOMY = Taxonomy.from_paths(["a/b", "a/c", "d"])


def prepare(folder: Path) -> None:
    """Write one file of every kind."""
    texts, labels = documents(12)
    rows = [
        {"id": k, "text": text, "label": row[0], "level1": row[0][:1]}
        for k, (text, row) in enumerate(zip(texts, labels, strict=True))
    ]
    names = list(rows[0])
    quoted = [
        ",".join(names),
        *(f'{row["id"]},"{row["text"]}, ""quoted""\nnext line",{row["label"]},{row["level1"]}' for row in rows),
    ]
    tabbed = ["\t".join(names), *("\t".join(str(row[name]) for name in names) for row in rows)]
    scores = ["id,label,a,a/b,a/c,d", *(f"{k},a/b,0.5,{k / 12},-1e3," for k in range(12))]
    vectors = [f"{k % 3},{k % 2} 1:0.5 {k + 2}:1.25 30:-2" for k in range(12)]
    lines = "\n".join(json.dumps({**row, "label": [row["label"]]}) for row in rows)
    contents = {
        "quoted.csv": "\n".join(quoted), "tabs.tsv": "\n".join(tabbed), "lines.jsonl": lines, "list.json": json.dumps(rows),
        "vectors.svm": "\n".join(vectors), "scores.csv": "\n".join(scores), "semicolons.txt": "\n".join(tabbed).replace("\t", ";"),
        "headed.svm": "12 31 3\n" + "\n".join(vectors),
    }  # fmt: skip
    for name, content in contents.items():
        (folder / name).write_text(content)
    for name in ("quoted.csv", "lines.jsonl", "vectors.svm"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes(), mtime=0))
    (folder / "wide.csv").write_bytes("\ufeff".encode() + (folder / "quoted.csv").read_bytes())
    (folder / "utf16.csv").write_text((folder / "tabs.tsv").read_text(), encoding="utf-16")
    pl.DataFrame(rows).write_parquet(folder / "rows.parquet")
    pl.DataFrame([{**row, "label": [row["label"], "d"]} for row in rows]).write_parquet(
        folder / "lists.parquet", compression="gzip"
    )


def make(rng: Rng, folder: Path) -> dict[str, Any]:
    """A random case, with options of the reader."""
    case = small_files.splice(rng, small_files.make(rng, folder), folder)
    case["encoding"] = edits.pick(rng, ENCODINGS)
    if rng.random() < 0.5:
        case["options"] = {"text": edits.pick(rng, (None, "text", "label", "no such", "")), "strict": bool(rng.random() < 0.3)}
        case["options"]["label"] = edits.pick(rng, (None, "label", "level1,label", "id", ","))
        case["options"]["label_separator"] = edits.pick(rng, (None, "|", ";", ""))
    if rng.random() < 0.2:  # another name, which may tell of another kind
        case["name"] = edits.pick(rng, ("x", "x.csv", "x.jsonl", "x.json", "x.parquet", "x.svm", "x.gz", "x.csv.gz"))
    return case


def attempt(case: dict[str, Any], folder: Path, scratch: Path) -> str:
    """Read the file in every way there is; returns what happened."""
    path = small_files.write(case, folder, scratch)
    if "name" in case:
        path = path.rename(scratch / case["name"])
    try:
        said = [said_by(read, path, case) for read in (_corpus, _rows, _scores, _set)]
    finally:
        path.unlink()
    return f"refused: {said[0]}" if said[0] else "answered"


def said_by(read: Callable[[Path, dict[str, Any]], None], path: Path, case: dict[str, Any]) -> str:
    """The sentence with which a reader refuses a file; empty if it does not."""
    try:
        read(path, case)
    except RamifyError as error:
        check_message(error)
        return str(error)
    return ""


def _corpus(path: Path, case: dict[str, Any]) -> None:
    corpus = read_corpus(path, encoding=case["encoding"], **case.get("options", {}))
    assert len(corpus.labels) == len(corpus), "texts and labels differ in number"
    for bad in corpus.bad_rows[:50]:
        _check_bad(bad)


def _rows(path: Path, case: dict[str, Any]) -> None:
    for _, row in islice(stream_rows(path, encoding=case["encoding"])[2], 10_000):
        if isinstance(row, BadRow):
            _check_bad(row)


def _scores(path: Path, case: dict[str, Any]) -> None:
    for rows, S in open_scores(path, TAXONOMY, case["encoding"]).blocks(len(TAXONOMY)):
        assert S.shape == (sum(not isinstance(row, BadRow) for _, row in rows), len(TAXONOMY)), (
            "scores and rows differ in number"
        )


def _set(path: Path, case: dict[str, Any]) -> None:
    for _ in open_file_set(path.parent / f"{path.name[:-1]}?", known_encoding(case["encoding"])).rows():
        pass


def _check_bad(bad: BadRow) -> None:
    check_message(ValueError(str(bad)))
