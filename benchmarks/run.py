"""Train and time Ramify and its peers side by side: ``python benchmarks/run.py --problem directory-1000 --peers all``."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from datasets import DIRECTORIES, describe, make_problem, write_problem
from environments import HERE, Row, known_peers
from measuring import host_facts, measure
from report import choose_base, make_table, one_line
from rich.console import Console

OURS = (
    "ramify:OneVsRestSVM:mode=fast",
    "ramify:OneVsRestSVM:mode=exact",
    "ramify:RecursiveSVM:mode=fast",
    "ramify:RecursiveSVM:mode=exact",
    "ramify:TopDownSVM",
    "ramify:MultinomialNaiveBayes",
)
# a folded table is hard to read in a file, and a narrow terminal can scroll
console = Console(width=max(140, Console().width))


def main() -> None:
    """Measure what is not measured yet, keep it, show all of it."""
    given = parse()
    rows = [row_of(name) for name in names_of(given.peers)]
    with console.status(f"making {given.problem}"):
        split = make_problem(given.problem, given.data)
    results = read_results(given.out)
    kept = results.setdefault(given.problem, {"facts": describe(split), "rows": {}})
    with tempfile.TemporaryDirectory() as folder:
        write_problem(split, Path(folder))
        for row in rows:
            if given.again or not is_reusable(kept["rows"].get(row.name), given.threads):
                with console.status(f"{row.name}: installing if need be, training, predicting"):
                    limits = {"envs": given.envs, "threads": given.threads, "timeout": given.timeout}
                    kept["rows"][row.name] = measure(row, split, Path(folder), **limits)
                write_results(given.out, results)
            console.print(one_line(row.name, kept["rows"][row.name]), highlight=False, markup=False)
    shown = {row.name: kept["rows"][row.name] for row in rows}
    console.print(make_table(given.problem, kept["facts"], shown, choose_base(shown, given.base)))


def names_of(peers: str) -> list[str]:
    """``all``, or names with commas between them."""
    return [*OURS, *known_peers()] if peers == "all" else [name.strip() for name in peers.split(",")]


def row_of(name: str) -> Row:
    """A peer by its name, or ``ramify:Learner:parameter=value:…``."""
    peers = known_peers()
    if name in peers:
        return peers[name]
    module, _, rest = name.partition(":")
    if module != "ramify" or not rest:
        raise SystemExit(f"no peer {name!r}; there are {', '.join(peers)}, and ramify:Learner:parameter=value.")
    learner, *options = rest.split(":")
    return Row(name, "ramify", options=(f"learner={learner}", *options))


def is_reusable(result: dict[str, Any] | None, threads: int) -> bool:
    """Whether figures were taken on this machine with as many threads; failures are tried again."""
    if result is None or "failed" in result:
        return False
    return result["threads"] == threads and result["machine"] == host_facts()


def read_results(path: Path) -> dict[str, Any]:
    """Earlier results by problem."""
    return json.loads(path.read_text()) if path.is_file() else {}


def write_results(path: Path, results: dict[str, Any]) -> None:
    """All results in one step, so that an interruption leaves the last ones whole."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(results, indent=1))
    beside.replace(path)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="directory-1000", help=f"{', '.join(DIRECTORIES)}, or a corpus below --data")
    parser.add_argument("--data", type=Path, help="a folder of corpora")
    parser.add_argument("--peers", default="all", help="all, or names with commas; ours as ramify:Learner:parameter=value")
    parser.add_argument("--base", help="the row to compare with; the first of Ramify's when not given")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one peer")
    parser.add_argument("--envs", type=Path, default=HERE / ".envs", help="where the peers' environments are kept")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    parser.add_argument("--again", action="store_true", help="measure again what is in the results already")
    return parser.parse_args()


if __name__ == "__main__":
    main()
