"""Check that retired words do not come back: one idea has one name, and it is the field's.

usage: python tools/check_words.py [FILE …]      without files, everything that users and contributors read

RETIRED holds words that are not used at all, neither in prose nor as a part of a name. RETIRED_NAMES holds common English words
that are fine in prose, but not as the name of a module, class or function. Each comes with what to say instead.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "docs", "experiments", "benchmarks", "tests", "README.md", "CONTRIBUTING.md", "Makefile")
ENDINGS = {".py", ".md", ".cpp", ".h", ".js", ".html", ".css", ".toml", ""}
EXCEPT = {"tests/tools/test_check_words.py"}

RETIRED = {
    "crew": "worker group",
    "crews": "worker groups",
    "climb": "dual ascent, or a step of it",
    "climbs": "dual ascent",
    "climbing": "dual ascent",
    "settle": "inner pass, or solve",
    "settles": "inner pass, or solve",
    "settled": "solved, or converged",
    "awake": "active",
    "surroundings": "context",
    "going on": "partial_fit",
    "learn more": "partial_fit",
    "taking over": "warm start",
    "promise": "guarantee",
    "promises": "guarantees",
    "promised": "guaranteed",
    "promising": "guarantee",
    "narrowing": "nested sets",
    "wish": "options",
    "wishes": "options",
    "answering": "predictor, predicting",
    "examiner": "evaluator",
    "sureness": "probability of winning",
    "finals": "final round",
    "doubts": "label issues",
    "slips": "noise model",
    "strongest": "top features",
    "spreading": "parallel",
    "energies": "log potentials",
    "mistakes": "errors",
    "gathering": "micro-batching, or gather",
    "shelf": "model registry",
    "amounts": "formatting",
    "mended": "fixed",
    "unless told": "default",
    "more than luck": "significant",
    "drawn to": "regularized towards, or shrunk towards",
    "drawn towards": "regularized towards, or shrunk towards",
    "learnt from": "trained on",
    "learn from": "train on",
    "told from": "distinguishable from",
    "told as": "reported as",
    "kept documents": "training data kept with the model",
}
RETIRED_NAMES = {
    "member": "worker",
    "members": "workers",
    "exchange": "all-reduce, or gather",
    "ascend": "dual ascent",
    "walk": "path",
    "walks": "paths",
    "stretch": "class range",
    "stretches": "class ranges",
    "share": "partition, or fraction",
    "shares": "partitions, or fractions",
    "here": "local",
    "before": "warm_start",
    "reached": "incremental",
    "kept": "training data, or stored",
    "near": "candidates",
    "collecting": "assemble",
    "collect": "assemble, or gather",
    "look": "trial, pass, or NodeExplanation",
    "looks": "trials, or passes",
    "view": "NodeExplanation",
    "answer": "prediction",
    "answers": "predictions",
    "ground": "folds",
    "choosing": "tune, or select_C",
    "choices": "nested logit",
    "competition": "class probabilities",
    "unseen": "out-of-fold",
    "several": "multi-label",
    "contract": "base, or protocol",
    "machine": "classifier, SVM; a computer is a node or host",
    "machines": "classifiers; computers are nodes or hosts",
    "moving": "reallocation",
    "consistent": "tree calibration",
    "door": "dependencies",
    "guard": "middleware",
    "turns": "bounded pool",
}
# Where a word stands for something else than what was renamed.
ALLOWED = {
    ("src/ramify/server/page", "promise"),  # JavaScript's own
    ("src/ramify/server/page", "promises"),
}


def read_files(arguments: list[str]) -> Iterator[Path]:
    """The files to check: those named, or all that git tracks in FOLDERS."""
    if arguments:
        yield from map(Path, arguments)
        return
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in ENDINGS and path.is_file() and name not in EXCEPT and "electronics" not in path.parts:
            yield path


def split_words(text: str) -> str:
    """Text in lower case with names taken apart: ``JournalledCrew`` and ``going_on`` become words between blanks."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.sub(r"[_\s]+", " ", apart).lower()


PHRASES = re.compile(r"\b(" + "|".join(sorted(map(re.escape, RETIRED), key=len, reverse=True)) + r")\b")


def find_retired(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, word and replacement of every retired word of a file."""
    place = path.resolve().relative_to(ROOT).as_posix() if path.resolve().is_relative_to(ROOT) else path.as_posix()
    for part in split_words(place.rsplit(".", 1)[0].replace("/", " ").replace("-", " ")).split():
        if part in RETIRED_NAMES or part in RETIRED:
            yield 0, part, (RETIRED | RETIRED_NAMES)[part]
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        for match in PHRASES.finditer(split_words(line)):
            word = match.group(1)
            if not any(place.startswith(folder) and word == allowed for folder, allowed in ALLOWED):
                yield number, word, RETIRED[word]
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("test_"):
                for part in split_words(node.name).split():
                    if part in RETIRED_NAMES:
                        yield node.lineno, node.name, RETIRED_NAMES[part]


def main(arguments: list[str]) -> int:
    """Print what was found; 1 where there is anything."""
    found = 0
    for path in read_files(arguments):
        for line, word, instead in find_retired(path):
            found += 1
            sys.stdout.write(f"{path}:{line}: {word!r} is retired; say {instead}\n")
    if found:
        sys.stdout.write(f"{found} retired words\n")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
