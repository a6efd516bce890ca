"""Attack every reader with random cases: ``python -m attacks.run --cases 10000 --seed 1 [--target models]``.

A case is made from the seed and its number, so that it can be repeated: ``--only NUMBER``. Every finding is written to a folder as
a recipe in JSON, which can be moved to ``tests/attacks/corpus/`` once it is fixed; ``--recipe FILE`` tries one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attacks.workers import Worker

SHARES = {"models": 0.5, "tables": 0.2, "taxonomies": 0.12, "reviews": 0.1, "http": 0.08}
CORPUS = Path(__file__).parent / "corpus"


def known_cases() -> list[tuple[str, dict[str, Any]]]:
    """The cases of the corpus, by name."""
    return [(path.stem, json.loads(path.read_text())) for path in sorted(CORPUS.glob("*.json"))]


def numbers(n_cases: int, target: str | None) -> Iterator[tuple[str, int]]:
    """Targets and numbers of cases: as many of each target as it has a share."""
    done = Counter[str]()
    for k in range(n_cases):
        name = target or max(SHARES, key=lambda each: SHARES[each] * (k + 1) - done[each])
        yield name, done[name]
        done[name] += 1


def prepare(worker: Worker, targets: Any) -> None:
    """Make what the cases of the targets damage."""
    for name in targets:
        if "outcome" in (result := worker.ask({"prepare": name})):
            log = (worker.folder / "worker.log").read_text()[-2000:]
            raise RuntimeError(f"the cases of {name} cannot be made: {result['message']}\n{log}")


def describe(worker: Worker, question: dict[str, Any]) -> dict[str, Any]:
    """The case of a question, as a recipe."""
    return dict(question["case"]) if "case" in question else dict(worker.ask({**question, "only_make": True})["case"])


def main() -> int:
    """Try many cases; the exit code is 1 if there is a finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000, help="number of random cases (default: 10,000)")
    parser.add_argument("--seed", type=int, default=0, help="of the random cases (default: 0)")
    parser.add_argument("--target", choices=SHARES, help="what to attack (default: everything)")
    parser.add_argument("--only", type=int, help="try the case with this number only; needs --target")
    parser.add_argument("--recipe", type=Path, help="try the case in this file only")
    parser.add_argument("--findings", type=Path, default=Path("build/attack-findings"), help="folder for recipes of findings")
    parser.add_argument("--folder", type=Path, help="where the files to damage are made; used again if it is there")
    options = parser.parse_args()
    if options.only is not None and options.target is None:
        parser.error("--only needs --target")
    questions: list[dict[str, Any]] = [{"case": case, "name": name} for name, case in known_cases()]
    questions = [each for each in questions if options.target in (None, each["case"]["target"])]
    if options.recipe is not None:
        questions = [{"case": json.loads(options.recipe.read_text())}]
    elif options.only is not None:
        questions = [{"target": options.target, "seed": options.seed, "number": options.only}]
    else:
        chosen = numbers(options.cases, options.target)
        questions += [{"target": name, "seed": options.seed, "number": number} for name, number in chosen]
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        with Worker(folder) as worker:
            targets = {question["target"] if "target" in question else question["case"]["target"] for question in questions}
            prepare(worker, sorted(name for name in targets if not (folder / name).exists()))
            return report(worker, questions, options.findings, is_single=len(questions) == 1)


def report(worker: Worker, questions: list[dict[str, Any]], findings: Path, is_single: bool) -> int:
    """Try the cases, print what became of them, and write recipes of findings."""
    outcomes, kinds, slowest, largest = Counter[str](), Counter[str](), (0.0, ""), (0, "")
    for k, question in enumerate(questions, start=1):
        result = worker.ask(question)
        outcomes[result["outcome"]] += 1
        name = question.get("name") or "{target}-{seed}-{number}".format(**{"target": "", "seed": "", "number": "", **question})
        slowest, largest = max(slowest, (result.get("seconds", 0), name)), max(largest, (result.get("mib", 0), name))
        if is_single:
            print(json.dumps(describe(worker, question), indent=1))
            print(result)
        if result["outcome"] == "finding":
            kind, case = result["message"].replace(str(worker.folder), ""), describe(worker, question)
            kinds[kind] += 1
            if kinds[kind] <= 3:
                findings.mkdir(parents=True, exist_ok=True)
                (findings / f"{name}.json").write_text(json.dumps({**case, "finding": kind}, indent=1))
                print(f"{name}: {kind}", flush=True)
        if k % 500 == 0:
            print(f"{k:,} of {len(questions):,} cases: {dict(outcomes)}", file=sys.stderr, flush=True)
    print(f"{len(questions):,} cases: {', '.join(f'{n:,} {name}' for name, n in sorted(outcomes.items()))}")
    print(f"{slowest[1]} took {slowest[0]:.1f} s of the processor, {largest[1]} took {largest[0]:,} MiB; no other took more")
    for kind, n in kinds.most_common():
        print(f"{n:6,} × {kind}")
    if kinds:
        print(f"recipes are in {findings}; repeat one with --recipe FILE")
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main())
