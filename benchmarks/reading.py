"""Reading tables, beside polars: ``python benchmarks/reading.py``.

Makes a table of a million rows with an id, a text of a dozen words and a label path; some texts have commas, quotes and line
ends. ``read_corpus`` finds encoding, columns and separator, checks every row, and gives texts and labels; ``polars.read_csv``
gives columns, of which two become Python lists. The csv module of Python reads all cells. Runs alternate; the best of each
counts.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import polars
from measuring import host_facts

from ramify.data import read_corpus


def main() -> None:
    """Make a table, read it, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="texts without commas, quotes and line ends")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(path, given.rows, given.plain)
        ways: dict[str, Callable[[], Any]] = {
            "polars and lists": lambda: read_by_polars(path),
            "read_corpus": lambda: read_corpus(path),
            "csv module": lambda: read_by_csv(path),
        }
        best = measure(ways, given.rounds)
    print(f"{given.rows:,} rows; {json.dumps(host_facts())}")
    first = next(iter(best.values()))
    for name, (seconds, cpu) in best.items():
        print(f"{name:18} {seconds:6.2f} s  × {seconds / first[0]:.2f}   {cpu:6.2f} CPU s  × {cpu / first[1]:.2f}")
    if given.out:
        given.out.write_text(json.dumps(best))


def write_table(path: Path, n_rows: int, is_plain: bool) -> None:
    """A table as an export of tickets may look."""
    rng = random.Random(0)
    words = [f"word{k}" for k in range(5000)]
    labels = [f"area {k % 7} > group {k % 50} > class {k}" for k in range(500)]
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text", "label"])
        for number in range(n_rows):
            text = " ".join(rng.choices(words, k=12))
            if not is_plain:
                text = text.replace(" ", ", ", 1) if number % 5 == 0 else text
                text = text.replace(" ", "\n", 1) if number % 50 == 0 else text
                text += ' "so"' if number % 100 == 0 else ""
            rows.writerow([number, text, rng.choice(labels)])


def read_by_polars(path: Path) -> tuple[list[str], list[str]]:
    """Two columns as lists, on all cores."""
    table = polars.read_csv(path)
    return table["text"].to_list(), table["label"].to_list()


def read_by_csv(path: Path) -> list[list[str]]:
    """All cells."""
    with open(path, newline="") as file:
        return list(csv.reader(file))


def measure(ways: dict[str, Callable[[], Any]], n_rounds: int) -> dict[str, tuple[float, float]]:
    """The least seconds and CPU seconds of each way."""
    best = {name: (float("inf"), float("inf")) for name in ways}
    for _ in range(n_rounds):
        for name, read in ways.items():
            began, cpu = perf_counter(), process_time()
            made = read()
            took = perf_counter() - began, process_time() - cpu
            del made
            best[name] = min(best[name][0], took[0]), min(best[name][1], took[1])
    return best


if __name__ == "__main__":
    main()
