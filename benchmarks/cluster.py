"""A Ray cluster beside threads: ``python benchmarks/cluster.py --problem directory-12294 --nodes 1,1``.

The same learners are trained on the same arrays, on threads and on clusters of simulated nodes that share this machine's
cores, in turns. Told are seconds, what went over the wire in all and in a round, what the object stores held at the most, and
the memory of the workers. Joining a cluster and starting its processes is told apart: it is paid once. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clusters import bytes_in_stores, simulated_cluster
from datasets import describe, make_problem
from measuring import host_facts
from timing import head, show

import ramify.learners
from ramify.parallel import open_cluster, running_on

Figures = dict[str, Any]


def main() -> None:
    """Measure every row on threads and on every cluster."""
    given = parse()
    split = make_problem(given.problem)
    rows: list[Figures] = []
    head(f"{given.problem}: {split.X_train.shape[0]:,} documents", *COLUMNS)
    for name in given.row:
        for _ in range(given.repeat):
            rows.append(measure_local(name, split, given.threads))
            tell(rows[-1], rows)
            for nodes in given.nodes:
                rows.append(measure_cluster(name, split, [int(each) for each in nodes.split(",")], given.store))
                tell(rows[-1], rows)
    if given.out:
        about = {"machine": host_facts(), "date": datetime.now(UTC).isoformat(timespec="seconds")}
        about |= {"problem": given.problem, "sizes": describe(split)}
        given.out.write_text(json.dumps({**about, "rows": rows}, indent=1))


COLUMNS = (
    "row", "where", "train s", "× threads", "start s", "gap", "objective", "rounds", "placed MB", "moved MB a round",
    "stores MB", "worker MB",
)  # fmt: skip


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", default="directory-1000")
    parser.add_argument("--row", nargs="+", default=["OneVsRestSVM:mode=fast", "OneVsRestSVM", "RecursiveSVM"])
    parser.add_argument("--nodes", nargs="+", default=["2", "1,1"], help="processors of each node, of every cluster")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--store", type=int, default=4 << 30, help="bytes of every node's object store")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def learner(name: str, taxonomy: Any, **more: Any) -> Any:
    """``RecursiveSVM:mode=fast`` and the like."""
    kind, *pairs = name.split(":")
    return getattr(ramify.learners, kind)(taxonomy, **dict(pair.split("=") for pair in pairs), **more)


def measure_local(name: str, split: Any, threads: int) -> Figures:
    """Train on threads of this process."""
    start = time.perf_counter()
    fitted = learner(name, split.taxonomy, n_jobs=threads).fit(split.X_train, names_of(split))
    seconds = time.perf_counter() - start
    return {"row": name, "where": f"{threads} threads", "seconds": seconds, **outcome(fitted)}


def measure_cluster(name: str, split: Any, processors: list[int], store: int) -> Figures:
    """Train on a cluster of simulated nodes."""
    before = bytes_in_stores()
    with simulated_cluster(processors, store) as cluster, open_cluster(cluster.address) as executor, watching() as seen:
        began = time.perf_counter()
        warm_up(executor)
        start = time.perf_counter()
        with running_on(executor):
            fitted = learner(name, split.taxonomy, n_jobs=sum(processors)).fit(split.X_train, names_of(split))
        seconds = time.perf_counter() - start
        peaks = peak_memory_of(executor)
    traffic, figures = executor.traffic, outcome(fitted)
    return {
        "row": name, "where": f"nodes of {' + '.join(map(str, processors))}", "seconds": seconds, "start": start - began,
        "placed": traffic.placed, "sent_per_round": (traffic.sent + traffic.received) / max(1, figures["rounds"]),
        "calls": traffic.calls, "stores": max(seen) - before, "workers": max(peaks), **figures,
    }  # fmt: skip


def names_of(split: Any) -> list[str]:
    """The label of every training document."""
    return [split.taxonomy.names[node] for node in split.y_train.tolist()]


def outcome(fitted: Any) -> Figures:
    """How good the solution is."""
    return {"gap": float(fitted.gap_), "objective": fitted.gap_.primal, "rounds": fitted.gap_.rounds}


class Idle:
    """A worker that has nothing to do; it is sent by value."""

    def __init__(self, common: Any, partition: Any, memory_saving: int) -> None:
        pass

    def begin(self) -> None:
        """Load what a process needs before it can work."""
        import ramify.learners  # noqa: F401


def warm_up(executor: Any) -> None:
    """Start processes for workers and for blocks on every node."""
    with executor.start_workers(Idle, None, [None] * len(executor.worker_threads)) as group:
        group.call(Idle.begin)
    list(executor.distribute(load_all, None, range(4 * sum(executor.worker_threads))))


def load_all(_: None, number: int) -> int:
    """Load what a process needs before it can work."""
    import ramify.learners  # noqa: F401

    time.sleep(0.2)  # so that the next block goes to another process
    return number


def peak_memory_of(executor: Any) -> list[int]:
    """The most bytes that each process used."""
    import ray

    return ray.get([actor.peak_memory.remote() for actors in executor.idle.values() for actor in actors])


@contextmanager
def watching() -> Iterator[list[int]]:
    """Look into the object stores now and then."""
    seen, done = [bytes_in_stores()], threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            seen.append(bytes_in_stores())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def tell(row: Figures, rows: list[Figures]) -> None:
    """One line of the table."""
    base = next(each for each in reversed(rows) if each["row"] == row["row"] and "start" not in each)
    there = [f"{row[key] / 1e6:,.1f}" if key in row else "" for key in ("placed", "sent_per_round", "stores", "workers")]
    show([
        f"`{row['row']}`", row["where"], f"{row['seconds']:.2f}", f"{row['seconds'] / base['seconds']:.2f}",
        f"{row['start']:.1f}" if "start" in row else "", f"{row['gap']:.1e}", f"{row['objective']:,.0f}",
        str(row["rounds"]), *there,
    ])  # fmt: skip


if __name__ == "__main__":
    main()
