"""Classifying a file that need not fit into memory: ``python benchmarks/streaming.py --megabytes 1000``.

Writes a CSV file of changed documents (of the corpus that comes with Ramify, or of the 20 newsgroups with ``--data DIR``),
trains a small model, and runs ``ramify predict MODEL FILE --out ANSWERS`` on a tenth of it and on all of it. Memory that
stays the same is the point of streaming. Needs Linux, and room on the disk for the file and the answers.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
from measuring import host_facts

import ramify
from ramify.data import load_electronics

sys.path.insert(0, str(Path(__file__).parent.parent))  # experiments is not installed

from experiments.newsgroups import newsgroups_taxonomy, read_newsgroups

ROOM = 3  # bytes of disk for each of the large file: itself, and the answers, which repeat it and add to it
COLUMNS = ("file MB", "documents", "seconds", "documents/s", "MB/s", "peak MB")
WAIT = 0.05  # seconds between two looks at the memory of the command

Figures = dict[str, Any]


def main() -> None:
    """Train, write, classify, tell."""
    given = parse()
    refuse_without_room(given.folder, given.megabytes)
    documents, labels, taxonomy = read_documents(given.data)
    show(COLUMNS)
    show(["---"] * len(COLUMNS))
    rows = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        model = Path(folder) / "model"
        ramify.TextClassifier(given.system, taxonomy, n_jobs=given.threads).fit(documents, labels).save(model)
        for megabytes in (given.megabytes / 10, given.megabytes):
            file = Path(folder) / "large.csv"
            n_documents = write_file(file, changed(documents), int(1e6 * megabytes))
            rows.append(classify(model, file, n_documents, given.threads))
            show(cells_of(rows[-1]))
    if given.out:
        date = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"machine": host_facts(), "date": date, "system": given.system, "threads": given.threads}
        given.out.write_text(json.dumps({**about, "rows": rows}, indent=1))


def refuse_without_room(folder: Path, megabytes: float) -> None:
    """End with a sentence where the disk is too full."""
    free = shutil.disk_usage(folder).free / 1e6
    if free < ROOM * megabytes:
        needed = f"{ROOM * megabytes:,.0f} MB are needed in {folder} and {free:,.0f} MB are free"
        raise SystemExit(f"{needed}; make room, name another --folder, or ask for fewer --megabytes.")


# ---- documents ------------------------------------------------------------------------------------------------------


def read_documents(data: Path | None) -> tuple[list[str], list[list[str]], Any]:
    """Texts in one line each, their labels, and the taxonomy."""
    if data is None:
        shop = load_electronics()
        corpus, taxonomy = shop.train, shop.taxonomy
    else:
        corpus, taxonomy = read_newsgroups(data), newsgroups_taxonomy()
    return [" ".join(text.split()) for text in corpus.documents], corpus.labels, taxonomy


def changed(documents: list[str], seed: int = 0) -> Iterator[str]:
    """The documents over and over, each time with two words exchanged for those of another document, and a new number."""
    rng = np.random.default_rng(seed)
    words = [text.split() for text in documents if text]
    number = 0
    while True:
        for own, other in zip(words, rng.permutation(len(words)).tolist(), strict=True):
            now = own.copy()
            for place, taken in rng.random((2, 2)).tolist():
                now[int(place * len(now))] = words[other][int(taken * len(words[other]))]
            number += 1
            yield f"{' '.join(now)} case{number}"


def write_file(file: Path, documents: Iterator[str], n_bytes: int) -> int:
    """A table with a number and a text in each row, of about so many bytes; gives the number of rows."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        table = csv.writer(opened)
        table.writerow(["id", "text"])
        for number, text in enumerate(documents, 1):
            table.writerow([number, text])
            if number % 1000 == 0 and opened.tell() >= n_bytes:
                break
    return number


# ---- the command ----------------------------------------------------------------------------------------------------


def classify(model: Path, file: Path, n_documents: int, threads: int) -> Figures:
    """Run the command, watch its memory, and see that every row was answered."""
    answers = file.with_name("answers.csv")
    ramify_command = str(Path(sys.executable).with_name("ramify"))
    command = [ramify_command, "predict", str(model), str(file), "--text=text", f"--out={answers}", f"--threads={threads}"]
    start, peak = perf_counter(), 0
    with tempfile.TemporaryFile("w+") as said, subprocess.Popen(command, stderr=said) as process:
        while process.poll() is None:
            peak = max(peak, peak_bytes(process.pid))
            sleep(WAIT)
        seconds = perf_counter() - start
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"the command ended with status {process.returncode}: {said.read()[-500:]}")
    n_answered = count_lines(answers) - 1
    if n_answered != n_documents:
        raise SystemExit(f"{n_documents:,} documents were written and {n_answered:,} were answered.")
    answers.unlink()
    n_bytes = file.stat().st_size
    return {"bytes": n_bytes, "documents": n_documents, "seconds": seconds, "peak_bytes": peak}


def peak_bytes(pid: int) -> int:
    """The most memory that a running program has held; 0 when it has just ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def count_lines(file: Path) -> int:
    """Lines of a large file."""
    with file.open("rb") as opened:
        return sum(block.count(b"\n") for block in iter(lambda: opened.read(1 << 24), b""))


# ---- reporting ------------------------------------------------------------------------------------------------------


def cells_of(row: Figures) -> list[str]:
    """A row as it is shown."""
    megabytes, speed = row["bytes"] / 1e6, row["documents"] / row["seconds"]
    figures = (megabytes, row["documents"], row["seconds"], speed, megabytes / row["seconds"], row["peak_bytes"] / 1e6)
    return [f"{value:,.{digits}f}" for value, digits in zip(figures, (0, 0, 1, 0, 1, 0), strict=True)]


def show(cells: Any) -> None:
    """One line of the table, at once."""
    print(f"| {' | '.join(cells)} |", flush=True)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=1000, help="the size of the large file")
    parser.add_argument("--data", type=Path, help="the folder of the 20 newsgroups, to take its posts")
    parser.add_argument("--system", default="nb", help="what is trained")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the files are made")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
