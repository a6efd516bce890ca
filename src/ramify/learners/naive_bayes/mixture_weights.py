"""Mixture weights by expectation and maximization: the units of a hierarchy, and the fit of their weights in parallel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ramify.errors import ModelError
from ramify.learners.linear.taxonomy_ties import tie_along_paths
from ramify.native import LabelledDocuments, Pattern, WordCounts, fit_mixtures_in_place, pattern_of, rows_of
from ramify.parallel import Arrays, Codec, choose_executor, stage
from ramify.taxonomy import Taxonomy

EM_WORDS = 1e6  # that EM steps read before Newton steps take over
N_BLOCKS = 64

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Units:
    """What has an estimate: classes, the nodes above them, and all documents where there are several roots.

    parent: the unit above each, -1 for the top; parents come first. node: of the taxonomy, -1 for all documents.
    class_units: the unit of each class, in node order. path_offsets, paths: for every unit the units from itself to the top.
    """

    parent: NDArray[np.int32]
    node: NDArray[np.int64]
    class_units: NDArray[np.int32]
    path_offsets: NDArray[np.int64]
    paths: NDArray[np.int32]

    @classmethod
    def of(cls, taxonomy: Taxonomy, class_nodes: NDArray[np.int64]) -> Units:
        """The units above some classes."""
        forest = tie_along_paths(taxonomy, class_nodes)
        parent, node, is_class = forest.parent, forest.node, forest.class_of >= 0
        if int((parent < 0).sum()) > 1:
            parent = np.concatenate([[-1], parent + 1]).astype(np.int32)
            node, is_class = np.concatenate([[-1], node]), np.concatenate([[False], is_class])
        classes = np.flatnonzero(is_class)
        paths: list[list[int]] = []
        for unit, above in enumerate(parent.tolist()):
            paths.append([unit, *(paths[above] if above >= 0 else [])])
        offsets = np.concatenate([[0], np.cumsum([len(path) for path in paths])]).astype(np.int64)
        flat = np.asarray([unit for path in paths for unit in path], dtype=np.int32)
        return cls(parent, node, classes[np.argsort(node[classes])].astype(np.int32), offsets, flat)

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def above(self) -> csr_array:
        """Classes × units: one where the documents of a class are documents of a unit."""
        n, ones = len(self), np.ones(len(self.paths))
        return csr_array(csr_array((ones, self.paths, self.path_offsets), shape=(n, n))[self.class_units])

    @cached_property
    def children(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Offsets of the children of every unit, and the children."""
        order = np.argsort(self.parent, kind="stable").astype(np.int32)
        return np.searchsorted(self.parent[order], np.arange(len(self) + 1)).astype(np.int64), order

    @cached_property
    def all_paths(self) -> Pattern:
        """The paths of all units as kernels take them, units × units."""
        return Pattern(self.path_offsets, self.paths, len(self))

    @cached_property
    def is_inner(self) -> NDArray[np.bool_]:
        """Whether a unit has children."""
        inner = np.ones(len(self), dtype=bool)
        inner[self.class_units] = False
        return inner

    def path_of(self, unit: int) -> NDArray[np.int32]:
        """The units from one to the top."""
        return self.paths[self.path_offsets[unit] : self.path_offsets[unit + 1]]

    def weights_at(self, unit: int) -> slice:
        """The places of a unit's weights: one for each unit of its path, and one for the uniform estimate."""
        return slice(int(self.path_offsets[unit]) + unit, int(self.path_offsets[unit + 1]) + unit + 1)

    @cached_property
    def weight_ends(self) -> tuple[Ints, Ints]:
        """The places of the first weight of each unit, and of the last, that of the uniform estimate."""
        return self.path_offsets[:-1] + np.arange(len(self)), self.path_offsets[1:] + np.arange(len(self))

    def weights_of(self, some: NDArray[np.int32]) -> Ints:
        """The places of the weights of some units, unit by unit."""
        starts, lasts = (ends[some] for ends in self.weight_ends)
        lengths = lasts - starts + 1
        return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())

    @property
    def n_weights(self) -> int:
        """The number of all weights."""
        return len(self.paths) + len(self)

    def key_of(self, unit: int, names: tuple[str, ...]) -> tuple[str, bool]:
        """A key that does not change when units are added: the name of a unit's node, and whether it is a class."""
        node = int(self.node[unit])
        return "" if node < 0 else names[node], not self.is_inner[unit]

    def keys_along(self, unit: int, names: tuple[str, ...]) -> list[Any]:
        """The key of each part of a unit's mixture, the uniform one last."""
        return [*(self.key_of(int(step), names) for step in self.path_of(unit)), "uniform"]


@dataclass(frozen=True, slots=True)
class MixtureProblem:
    """The EM problem of all units.

    counts: words × units and their totals. documents, unit_documents: whose likelihood EM maximizes, and those of each unit.
    limits: whether they are among the counts, so that each is subtracted from them in turn; the tolerance, in nats per word;
    the most steps; and the words that EM reads before Newton steps take over. expected: words that earlier documents ascribe
    to each part. sizes: the words of each unit.
    """

    units: Units
    counts: WordCounts
    documents: LabelledDocuments
    unit_documents: Pattern
    limits: tuple[bool, float, int, float]
    expected: Floats
    sizes: NDArray[Any]

    @classmethod
    def of(
        cls, units: Units, counts: WordCounts, X: csr_array, weight: Floats, members: csr_array, limits: Any, expected: Floats
    ) -> MixtureProblem:
        """weight, members: how much each document counts, and how often at each unit."""
        members.sort_indices()
        row_of = np.repeat(np.arange(members.shape[0]), np.diff(members.indptr))
        sizes = np.bincount(members.indices, np.diff(X.indptr)[row_of], minlength=len(units))
        repeats = members.data.astype(np.int32)
        documents = LabelledDocuments(rows_of(X), np.ascontiguousarray(weight), pattern_of(members), repeats)
        return cls(units, counts, documents, pattern_of(csc_array(members)), limits, expected, sizes)


def fit_weights(problem: MixtureProblem, wanted: NDArray[np.bool_], n_jobs: int | None, weights: Floats) -> list[int]:
    """Write the weights of the wanted units; gives the steps that each took."""
    blocks = _blocks(np.flatnonzero(wanted).astype(np.int32), problem.sizes)
    executor, steps = choose_executor(n_jobs), list[int]()
    with stage("mixture weights", int(wanted.sum())) as step:
        results = executor.distribute(fit_block, executor.place(problem), blocks, CODEC)
        for block, found in zip(blocks, results, strict=True):
            places = problem.units.weights_of(block)
            fits = [part.shape for part in found] == [places.shape, block.shape]
            if not fits or [part.dtype for part in found] != [np.float64, np.int32]:  # as a damaged checkpoint may hold
                raise ModelError("the checkpoint holds mixture weights of other classes; train without --resume to begin anew.")
            weights[places] = found[0]
            steps += found[1].tolist()
            step.advance(len(block))
    return steps


def _blocks(units: NDArray[np.int32], size: NDArray[Any]) -> list[NDArray[np.int32]]:
    """Adjacent units in blocks with about equally many words."""
    if not len(units):
        return []
    before = np.concatenate([[0.0], np.cumsum(size[units])])
    before, budget = before[:-1], max(1.0, before[-1] / N_BLOCKS)
    return np.split(units, np.flatnonzero(np.diff(before // budget) > 0) + 1)


def fit_block(problem: MixtureProblem, block: NDArray[np.int32]) -> tuple[Floats, NDArray[np.int32]]:
    """The weights of some units, unit by unit, and the steps that each took."""
    weights = np.zeros(problem.units.n_weights)  # only the places of these units are written
    steps = np.zeros(len(block), dtype=np.int32)
    fit_mixtures_in_place(
        problem.counts, problem.units.all_paths, problem.documents, problem.unit_documents, block,
        *problem.limits, problem.expected, weights, steps,
    )  # fmt: skip
    return weights[problem.units.weights_of(block)], steps


def _to_arrays(found: tuple[Floats, NDArray[np.int32]]) -> Arrays:
    return {"weights": found[0], "steps": found[1]}


CODEC = Codec(_to_arrays, itemgetter("weights", "steps"))
