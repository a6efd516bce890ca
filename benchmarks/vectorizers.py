"""Texts to tf-idf, beside scikit-learn and PECOS: ``python benchmarks/vectorizers.py --data DIR --out vectorizers.json``.

DIR holds train.jsonl.gz and test.jsonl.gz with the texts in the column text; without it, texts are made up.
All rows take turns, so that a busy moment hits all of them, and the best of some rounds counts. With ``--analyzer char_wb``
or ``char``, terms are n-grams of characters, of which PECOS is left out: it cuts them otherwise.
Ends with status 1 where Ramify and scikit-learn differ in a single bit.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from environments import HERE, InstallError, known_peers, python_for
from measuring import host_facts
from sklearn.feature_extraction.text import TfidfVectorizer

from ramify.data import read_corpus
from ramify.features import Vectorizer

WORD = re.compile(r"\b\w\w+\b")
STEPS = ("fit", "transform")
CLOCKS = ("seconds", "cpu")
TIMES = ("fit_transform s", "× first", "CPU s", "× first", "transform s", "× first", "CPU s", "× first")
COLUMNS = ("row", "threads", *TIMES, "MB/s", "terms", "entries")
NOTE_ON_RATIOS = """
Ratios are to the first row: 2 means twice as long. MB/s: characters of the plain texts that transform reads."""
NOTE_ON_PECOS = """
PECOS splits at white space only and keeps capitals, so it finds other terms in plain texts. In the rows "words given" it gets
the lower-case words that the others must find first, joined by spaces; finding them is not counted. It has no fit_transform:
its time is that of training and of transforming."""

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One way to do it. ask: does a step and gives the seconds, on the clock and of CPU, the terms and the entries."""

    name: str
    threads: int
    ask: Callable[[str], Facts]
    times: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: {clock: {step: [] for step in STEPS} for clock in CLOCKS}
    )
    facts: Facts = field(default_factory=dict)

    def run(self) -> None:
        """One round."""
        for step in STEPS:
            found = self.ask(step)
            for clock in CLOCKS:
                self.times[clock][step].append(found.pop(clock))
            self.facts.update(found)

    def best(self, step: str, clock: str = "seconds") -> float:
        """The least seconds of all rounds."""
        return min(self.times[clock][step])


def main() -> None:
    """Compare first, then measure row by row, some rounds."""
    given = parse()
    texts = read_texts(given.data) if given.data else make_texts(given.documents)
    n_characters = sum(map(len, texts))
    print(f"{len(texts):,} texts, {n_characters / 1e6:,.1f} million characters\n", flush=True)
    terms = {"analyzer": given.analyzer, "ngram_range": tuple(given.ngrams)}
    is_equal = equals_scikit_learn(texts, terms)
    with ExitStack() as open_until_the_end:
        rows = all_rows(texts, terms, given, open_until_the_end)
        for _ in range(given.rounds):
            for row in rows:
                row.run()
    show(rows, n_characters)
    print(f"\nRamify's matrix {'equals' if is_equal else 'DIFFERS FROM'} scikit-learn's, bit for bit.")
    if given.out:
        given.out.write_text(json.dumps(results(rows, texts, is_equal, given), indent=1))
    if not is_equal:
        raise SystemExit(1)


# ---- texts ----------------------------------------------------------------------------------------------------------


def read_texts(folder: Path) -> list[str]:
    """All texts of a corpus."""
    return [text for part in ("train", "test") for text in read_corpus(folder / f"{part}.jsonl.gz", text="text").documents]


def make_texts(n_texts: int, n_words: int = 60_000, seed: int = 0) -> list[str]:
    """Texts of made-up words, a few of them frequent and most rare, with capitals, stops and some letters with accents."""
    rng = np.random.default_rng(seed)
    letters = np.asarray(list("etaoinshrdlucmfwypvbgkjqxzéüß"))
    shares = 1 / np.arange(1, len(letters) + 1)
    lengths = np.clip(rng.poisson(6, n_words), 2, None)
    words = ["".join(rng.choice(letters, length, p=shares / shares.sum())) for length in lengths.tolist()]
    chances = 1 / (10 + np.arange(n_words))
    sizes = np.clip(rng.lognormal(4.8, 1, n_texts), 3, 5000).astype(int).tolist()
    drawn = iter(rng.choice(n_words, sum(sizes), p=chances / chances.sum()).tolist())
    return [sentence_of([words[next(drawn)] for _ in range(size)]) for size in sizes]


def sentence_of(words: list[str]) -> str:
    """Words with a stop after every twelfth, and a capital behind it."""
    cut = [words[k : k + 12] for k in range(0, len(words), 12)]
    return " ".join(" ".join([part[0].capitalize(), *part[1:]]) + "." for part in cut)


# ---- rows -----------------------------------------------------------------------------------------------------------


def all_rows(texts: list[str], terms: Facts, given: argparse.Namespace, until_the_end: ExitStack) -> list[Row]:
    """Ramify, scikit-learn, and for words PECOS where it can be installed."""
    counts = sorted({1, given.threads})
    rows = [Row("ramify", n, InProcess(Vectorizer(n_jobs=n, **terms), texts)) for n in counts]
    rows.append(Row("scikit-learn", 1, InProcess(TfidfVectorizer(dtype=np.float32, **terms), texts)))
    if given.analyzer != "word":
        return rows
    try:
        python = python_for(known_peers()["pecos"], given.envs)
    except InstallError as error:
        print(f"pecos {error}", file=sys.stderr)
        return rows
    folder = Path(until_the_end.enter_context(tempfile.TemporaryDirectory()))
    words = [" ".join(WORD.findall(text.lower())) for text in texts]
    for name, what in (("pecos", texts), ("pecos, words given", words)):
        file = folder / f"{len(name)}.json"
        file.write_text(json.dumps(what))
        rows += [Row(name, n, until_the_end.enter_context(Subprocess(python, file, n))) for n in counts]
    return rows


@dataclass(frozen=True, slots=True)
class InProcess:
    """A vectorizer in this process."""

    vectorizer: Any
    texts: list[str]

    def __call__(self, step: str) -> Facts:
        """Do a step."""
        start, cpu_start = perf_counter(), process_time()
        X = self.vectorizer.fit_transform(self.texts) if step == "fit" else self.vectorizer.transform(self.texts)
        times = {"seconds": perf_counter() - start, "cpu": process_time() - cpu_start}
        return {**times, "features": X.shape[1], "nonzeros": int(X.nnz)}


class Subprocess:
    """PECOS in an environment and a process of its own, which waits between its turns."""

    def __init__(self, python: Path, file: Path, threads: int) -> None:
        self.command = [str(python), "-m", "peers.pecos_vectorizer", str(file), f"--threads={threads}"]

    def __enter__(self) -> Subprocess:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        patient = {**os.environ, "OMP_WAIT_POLICY": "passive"}  # threads that spin stall each other on a busy machine
        self.process = subprocess.Popen(self.command, cwd=HERE, env=patient, **pipes)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def __call__(self, step: str) -> Facts:
        """Ask for a step."""
        print(step, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"PECOS ended with status {self.process.wait()}; what it said stands above.")
        found: Facts = json.loads(answer)
        return found


def equals_scikit_learn(texts: list[str], terms: Facts) -> bool:
    """Whether both give the same matrix, bit for bit, when learning and when transforming, and the same terms."""
    ours, theirs = Vectorizer(n_jobs=2, **terms), TfidfVectorizer(dtype=np.float32, **terms)
    pairs = [(ours.fit_transform(texts), theirs.fit_transform(texts)), (ours.transform(texts), theirs.transform(texts))]
    return all(is_same(X, Z) for X, Z in pairs) and ours.terms_.tolist() == theirs.get_feature_names_out().tolist()


def is_same(X: Any, Z: Any) -> bool:
    """Whether two matrices are, once rows are sorted."""
    Z.sort_indices()
    return all(np.array_equal(getattr(X, part), getattr(Z, part)) for part in ("indptr", "indices", "data"))


# ---- reporting ------------------------------------------------------------------------------------------------------


def show(rows: list[Row], n_characters: int) -> None:
    """The table and what must be known of it."""
    for cells in (COLUMNS, ["---"] * len(COLUMNS), *(cells_of(row, rows[0], n_characters) for row in rows)):
        print(f"| {' | '.join(cells)} |")
    print(NOTE_ON_RATIOS if all(row.name != "pecos" for row in rows) else NOTE_ON_RATIOS + NOTE_ON_PECOS)


def cells_of(row: Row, first: Row, n_characters: int) -> list[str]:
    """A row as it is shown."""
    pairs = [(row.best(step, clock), first.best(step, clock)) for step in STEPS for clock in CLOCKS]
    times = [cell for mine, base in pairs for cell in (f"{mine:.3f}", f"{mine / base:.2f}")]
    speed = f"{n_characters / row.best('transform') / 1e6:,.0f}"
    return [row.name, str(row.threads), *times, speed, f"{row.facts['features']:,}", f"{row.facts['nonzeros']:,}"]


def results(rows: list[Row], texts: list[str], is_equal: bool, given: argparse.Namespace) -> Facts:
    """Everything, for a file."""
    measured = [{"row": row.name, "threads": row.threads, **row.times, **row.facts} for row in rows]
    return {
        "machine": host_facts() | {"scikit-learn": version("scikit-learn")},
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "corpus": given.data.name if given.data else "made up",
        "texts": len(texts),
        "characters": sum(map(len, texts)),
        "analyzer": given.analyzer,
        "ngrams": given.ngrams,
        "equals_scikit_learn": is_equal,
        "rows": measured,
    }


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with train.jsonl.gz and test.jsonl.gz")
    parser.add_argument("--documents", type=int, default=20_000, help="how many texts are made up without --data")
    parser.add_argument("--analyzer", choices=("word", "char", "char_wb"), default="word")
    parser.add_argument("--ngrams", type=int, nargs=2, default=[1, 1], help="least and most words or characters of a term")
    parser.add_argument("--threads", type=int, default=2, help="beside one")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts")
    parser.add_argument("--envs", type=Path, default=HERE / ".envs", help="where the peers' environments are kept")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    return parser.parse_args()


if __name__ == "__main__":
    main()
