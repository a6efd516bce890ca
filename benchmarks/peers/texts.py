"""What every peer that begins with texts does: train, predict; this file reads the problem, takes CPU seconds, writes labels.

Started as ``python -m peers.text_<peer> PROBLEM OUT --threads 1 [option=value …]`` from the folder above. PROBLEM holds
problem.json. OUT receives result.json and answers.json, a list of nodes for each test text.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from peers.skeleton import peak_bytes, read_option

Answers = list[list[int]]


@dataclass(frozen=True)
class TextProblem:
    """labels: the most specific nodes of each training text. parents: those of each node, none of a root; parents come first.

    gives_several: whether answers may have several labels. blocks: settings and weight of each block of features that Ramify
    uses by default, for those who take words and characters.
    """

    train: list[str]
    labels: Answers
    test: list[str]
    parents: list[list[int]]
    gives_several: bool
    blocks: list[dict[str, Any]]

    @property
    def first_labels(self) -> np.ndarray:
        """One node for each training text."""
        return np.array([nodes[0] for nodes in self.labels])

    @property
    def classes(self) -> np.ndarray:
        """The nodes that training texts have, rising."""
        return np.unique([node for nodes in self.labels for node in nodes])


class TextPeer(ABC):
    """One method of one library, from texts. `scratch` is for files that it reads and writes."""

    package: ClassVar[str]

    def __init__(self, problem: TextProblem, threads: int, scratch: Path, options: dict[str, Any]) -> None:
        self.problem, self.threads, self.scratch, self.options = problem, threads, scratch, options

    def prepare(self) -> None:  # noqa: B027  # most read the texts as they are
        """Write the files of a program that reads nothing else; not counted."""

    @abstractmethod
    def train(self) -> None:
        """From texts to a model; counted."""

    @abstractmethod
    def predict(self) -> Answers:
        """The most specific nodes of each test text; counted."""

    def facts(self) -> dict[str, Any]:
        """What else is worth a note."""
        return {}


def run(peer_class: type[TextPeer]) -> None:
    """Measure a peer as the command line says."""
    given = _parse()
    if given.memory:
        resource.setrlimit(resource.RLIMIT_AS, (given.memory, given.memory))
    problem = TextProblem(**json.loads((given.problem / "problem.json").read_text()))
    with tempfile.TemporaryDirectory() as scratch:
        peer = peer_class(problem, given.threads, Path(scratch), dict(read_option(text) for text in given.options))
        peer.prepare()
        train_seconds, _ = _measured(peer.train)
        train_bytes = _most_bytes()
        answer_seconds, answers = _measured(peer.predict)
        result = {"version": version(peer.package), "train_cpu": train_seconds, "answer_cpu": answer_seconds}
        result |= {"train_bytes": train_bytes, "peak_bytes": _most_bytes(), **peer.facts()}
    (given.out / "answers.json").write_text(json.dumps(answers))
    (given.out / "result.json").write_text(json.dumps(result))


def above_or_best(scores: np.ndarray, classes: np.ndarray, gives_several: bool, threshold: float = 0.0) -> Answers:
    """The best class, or all classes above a threshold and the best one where there is none (scores: documents × classes)."""
    best = scores.argmax(axis=1)
    if not gives_several:
        return [[int(node)] for node in classes[best]]
    taken = scores > threshold
    taken[np.arange(len(taken)), best] = True
    return [classes[row].tolist() for row in taken]


def _measured(work: Callable[[], Any]) -> tuple[float, Any]:
    start = _cpu_seconds()
    result = work()
    return _cpu_seconds() - start, result


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _most_bytes() -> int:
    return max(peak_bytes(), 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("options", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", type=int, default=0, help="refuse to use more bytes than this")
    return parser.parse_args()
