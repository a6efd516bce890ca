"""More classes than one process should hold: ``python benchmarks/huge.py --leaves 100000 --documents 500000``.

Makes a directory-shaped problem, trains on a cluster of two simulated nodes whose members write the model shard by shard, saves
it, loads it in a process of its own by memory map, and classifies documents that were not trained on. Told are seconds, the
size of the model, how many answers are right, and the most memory that the whole machine used beyond what it used before: the
driver, all workers, and the object stores of both nodes, with X in each. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from clusters import simulated_cluster
from measuring import host_facts
from scipy.sparse import csr_array

import ramify
from ramify.data import make_web_directory
from ramify.features import Vectors
from ramify.learners.linear import dual_solver
from ramify.parallel import open_cluster, running_on, writing_shards_to
from ramify.systems import find_system
from ramify.taxonomy import most_specific

Figures = dict[str, Any]


def main() -> None:
    """Make, train, save, load, classify, tell."""
    given = parse()
    found: Figures = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, watching_memory() as used:
        with timed(found, "making the problem"):
            learn, tested, labels, answers, taxonomy = make(given)
        sizes = {"train": learn.shape[0], "features": learn.shape[1], "nonzeros": learn.nnz, "classes": len(set(labels))}
        if given.gather_at_most is not None:
            dual_solver.MOST_GATHERED = given.gather_at_most
        with simulated_cluster([1] * given.nodes, given.store) as cluster, open_cluster(cluster.address) as executor:
            with timed(found, "training"), running_on(executor), writing_shards_to(Path(folder)):
                classifier = train(given, learn, labels, taxonomy)
            found["traffic"] = {name: getattr(executor.traffic, name) for name in ("placed", "sent", "received", "calls")}
        found["gap"], found["rounds"] = float(classifier.learner_.gap_), classifier.learner_.n_iter_
        found["shards"] = len(getattr(classifier.learner_.weights_, "shards", ()))
        with timed(found, "saving"):
            classifier.save(Path(folder) / "model")
        found["training memory GB"] = round(max(used) / 1e9, 2)
        del classifier, learn
        found["model GB"] = round(sum(file.stat().st_size for file in (Path(folder) / "model").iterdir()) / 1e9, 2)
        found |= predict_in_subprocess(Path(folder) / "model", tested, answers)
        found["memory GB"] = round(max(used) / 1e9, 2)
    print(json.dumps(found, indent=1))
    if given.out:
        about = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": host_facts(), "sizes": sizes}
        given.out.write_text(json.dumps({**about, "rows": [as_row(given, found)], "found": found}, indent=1))


def as_row(given: argparse.Namespace, found: Figures) -> Figures:
    """As ``benchmarks/cluster.py`` tells it."""
    kind = type(find_system(given.system).learner()).__name__ + "".join(f":{each}" for each in given.param)
    where = f"nodes of {' + '.join(['1'] * given.nodes)}"
    return {"row": kind, "where": where, "seconds": found["training s"], "start": 0.0, "rounds": found["rounds"]}


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leaves", type=int, default=100_000)
    parser.add_argument("--documents", type=int, default=500_000)
    parser.add_argument("--tested", type=int, default=10_000)
    parser.add_argument("--words", type=int, default=40, help="of a typical document, repetitions included")
    parser.add_argument("--system", default="svm")
    parser.add_argument("--param", nargs="*", default=["mode=fast"])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--store", type=int, default=2 << 30)
    parser.add_argument("--gather-at-most", type=int, help="weights; fewer are gathered and not written by shard")
    parser.add_argument("--folder", type=Path, help="for the model and its shards")
    parser.add_argument("--out", type=Path, help="write what was found, for scaling_model.py")
    return parser.parse_args()


def make(given: argparse.Namespace) -> tuple[Any, ...]:
    """Documents to train on and to test on, the labels of both, and the taxonomy."""
    made = make_web_directory(given.leaves, given.documents + given.tested, n_words=given.words, seed=0)
    nodes, n = most_specific(made.Y, made.taxonomy).indices, given.documents
    labels = [made.taxonomy.names[node] for node in nodes[:n].tolist()]
    return csr_array(made.X[:n]), csr_array(made.X[n:]), labels, nodes[n:], made.taxonomy


def train(given: argparse.Namespace, X: csr_array, labels: list[str], taxonomy: Any) -> Any:
    """A classifier of vectors."""
    settings = {name: json.loads(value) if value[:1].isdigit() else value for name, value in map(split, given.param)}
    learner = find_system(given.system).learner().set_params(**settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = ramify.TextClassifier(given.system, taxonomy, features=Vectors(), learner=learner).fit(X, labels)
    for each in caught:
        print(f"warning: {each.message}")
    return fitted


def split(pair: str) -> tuple[str, str]:
    """A name and a value."""
    name, _, value = pair.partition("=")
    return name, value


def predict_in_subprocess(model: Path, X: csr_array, true: np.ndarray) -> Figures:
    """Load and predict in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(predict, (model, X, true))


def predict(model: Path, X: csr_array, true: np.ndarray) -> Figures:
    """Seconds for loading and predicting, and the accuracy."""
    found: Figures = {}
    with timed(found, "loading"):
        classifier = ramify.load(model)
    classifier.predict(X[:100])
    start = time.perf_counter()
    given = classifier.predict_matrix(X)
    found["documents/s"] = round(X.shape[0] / (time.perf_counter() - start))
    found["accuracy"] = round(float(np.mean(most_specific(given, classifier.taxonomy_).indices == true)), 4)
    return found


@contextmanager
def timed(found: Figures, what: str) -> Iterator[None]:
    """Note the seconds of a block, and say that it is done."""
    start = time.perf_counter()
    yield
    found[f"{what} s"] = round(time.perf_counter() - start, 1)
    print(f"{what}: {found[f'{what} s']} s", flush=True)


@contextmanager
def watching_memory() -> Iterator[list[float]]:
    """Bytes that the machine uses beyond what it used before, looked at five times a second."""
    before, done = in_use(), threading.Event()
    seen = [0.0]

    def sample() -> None:
        while not done.wait(0.2):
            seen.append(in_use() - before)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def in_use() -> float:
    """Bytes that are neither free nor a cache that could be given back."""
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total, available = (1024 * int(lines[name].split()[0]) for name in ("MemTotal", "MemAvailable"))
    return total - available


if __name__ == "__main__":
    main()
