"""What every peer does: get ready, train, save, predict; this file reads the problem, takes the times, writes the result.

Started as ``python -m peers.<peer> PROBLEM OUT --threads 2 [option=value …]`` from the folder above. OUT receives
result.json, predicted.npy (a node for each test document) and, from one-vs-rest linear machines, weights.npy and classes.npy.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix

REPEATS = 3
MAX_WEIGHTS = 1 << 28  # above this, weights are not handed over: 2 GB on the disk


@dataclass(frozen=True)
class Problem:
    """X: documents × features. y: the node of each training document. parent: of each node, −1 at a root; parents first."""

    X_train: csr_matrix
    y_train: np.ndarray
    X_test: csr_matrix
    parent: np.ndarray

    @cached_property
    def classes(self) -> np.ndarray:
        """The nodes that training documents have, rising."""
        return np.unique(self.y_train)

    @property
    def columns(self) -> np.ndarray:
        """The position among the classes of each training document's node."""
        return np.searchsorted(self.classes, self.y_train)

    def one_hot(self) -> csr_matrix:
        """Training documents × classes, float32."""
        n_docs, ones = len(self.y_train), np.ones(len(self.y_train), dtype=np.float32)
        return csr_matrix((ones, self.columns, np.arange(n_docs + 1)), shape=(n_docs, len(self.classes)))


class Peer(ABC):
    """One method of one library. `folder` is where its model goes, `scratch` is for files that it reads."""

    package: ClassVar[str]
    C: ClassVar[float | None] = None

    def __init__(self, problem: Problem, threads: int, folder: Path, scratch: Path, options: dict[str, Any]) -> None:
        self.problem, self.threads, self.options = problem, threads, options
        self.folder, self.scratch = folder, scratch

    def prepare(self) -> None:  # noqa: B027  # most read arrays, and have nothing to write
        """Write the files of a library that reads nothing else; not counted."""

    @abstractmethod
    def train(self) -> None:
        """Learn, beginning with arrays (or with the prepared files); counted."""

    @abstractmethod
    def save(self) -> None:
        """Write the model to the folder, and load it again where a loaded one predicts faster; not counted."""

    @abstractmethod
    def predict(self) -> Any:
        """The node of each test document; counted."""

    def weights(self) -> np.ndarray | None:
        """Classes × (features, then bias) of a one-vs-rest machine."""
        return None

    def facts(self) -> dict[str, Any]:
        """What else is worth a note."""
        return {}


def run(peer_class: type[Peer]) -> None:
    """Measure a peer as the command line says."""
    given = _parse()
    if given.memory:
        resource.setrlimit(resource.RLIMIT_AS, (given.memory, given.memory))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scratch:
        options = dict(read_option(text) for text in given.options)
        peer = peer_class(_load(given.problem), given.threads, Path(folder), Path(scratch), options)
        (given.out / "result.json").write_text(json.dumps(_measure(peer, given.out)))


def _measure(peer: Peer, out: Path) -> dict[str, Any]:
    peer.prepare()
    train_seconds, _ = _timed(peer.train)
    peer.save()
    rounds = [_timed(peer.predict) for _ in range(REPEATS)]
    peak = peak_bytes()
    np.save(out / "predicted.npy", np.asarray(rounds[0][1], dtype=np.int64))
    _save_weights(peer, out)
    return {
        "version": version(peer.package),
        "train_seconds": train_seconds,
        "predict_seconds": min(seconds for seconds, _ in rounds),
        "peak_bytes": peak,
        "model_bytes": sum(file.stat().st_size for file in peer.folder.rglob("*") if file.is_file()),
        "C": peer.C,
        **peer.facts(),
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def peak_bytes() -> int:
    """The most memory that this program has held.

    Linux hands the parent's ru_maxrss on to a child that it starts, so the kernel's own high-water mark is read instead.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("the peak memory is not known; the benchmarks need Linux.")


def _save_weights(peer: Peer, out: Path) -> None:
    problem = peer.problem
    if len(problem.classes) * problem.X_train.shape[1] > MAX_WEIGHTS:
        return
    W = peer.weights()
    if W is not None:
        np.save(out / "weights.npy", W)
        np.save(out / "classes.npy", problem.classes)


def _load(folder: Path) -> Problem:
    y_train, parent = (np.load(folder / f"{name}.npy") for name in ("y_train", "parent"))
    return Problem(_load_matrix(folder, "X_train"), y_train, _load_matrix(folder, "X_test"), parent)


def _load_matrix(folder: Path, name: str) -> csr_matrix:
    data, indices, indptr, shape = (np.load(folder / f"{name}.{part}.npy") for part in ("data", "indices", "indptr", "shape"))
    return csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()))


def read_option(text: str) -> tuple[str, Any]:
    """``C=10`` and ``multicore=true`` as JSON values, anything else as a string."""
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("options", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", type=int, default=0, help="refuse to use more bytes than this")
    return parser.parse_args()
