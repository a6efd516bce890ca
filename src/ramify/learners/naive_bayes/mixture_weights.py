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
from ramify.native import LabelledDocuments, MixtureLimits, Pattern, WordCounts, fit_mixtures_in_place, pattern_of, rows_of
from ramify.parallel import Arrays, Codec, choose_executor, stage
from ramify.taxonomy import Taxonomy

EM_WORDS = 1e6  # that EM steps read before Newton steps take over
ROUNDING = 1e-9  # of weighted counts: a smaller part of them is rounding
N_BLOCKS = 64

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Paths:
    """For every unit the units whose estimates it mixes, from itself to the top, all or some. pattern: as kernels take them."""

    offsets: Ints
    units: NDArray[np.int32]
    pattern: Pattern

    @classmethod
    def of(cls, offsets: Ints, units: NDArray[np.int32]) -> Paths:
        """One row for each unit."""
        return cls(offsets, units, Pattern(offsets, units, len(offsets) - 1))

    @property
    def n_estimates(self) -> Ints:
        """The number of estimates, and so of weights, of each unit: one for each step, and the uniform one."""
        return np.diff(self.offsets) + 1


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
    def all_paths(self) -> Paths:
        """The paths of all units."""
        return Paths.of(self.path_offsets, self.paths)

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

    def added_words(self, totals: Floats) -> Floats:
        """The words that each step of the paths adds to those of the step before it; 0 where the rest is rounding."""
        here = totals[self.paths]
        below = np.roll(here, 1)
        below[self.path_offsets[:-1]] = 0
        return np.where(here - below > ROUNDING * here, here - below, 0.0)

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
class Labelled:
    """Documents whose likelihood EM maximizes: documents × words, a weight for each, and how often each counts at each unit."""

    X: csr_array
    weight: Floats
    members: csr_array

    def select(self, is_used: NDArray[np.bool_] | None) -> csr_array:
        """The members, all or some of their entries."""
        if is_used is None:
            return self.members
        offsets = np.concatenate([[0], np.cumsum(is_used)])[self.members.indptr]
        return csr_array((self.members.data[is_used], self.members.indices[is_used], offsets), shape=self.members.shape)

    def packed(self) -> LabelledDocuments:
        """The documents as kernels take them."""
        self.members.sort_indices()
        repeats = self.members.data.astype(np.int32)
        return LabelledDocuments(rows_of(self.X), np.ascontiguousarray(self.weight), pattern_of(self.members), repeats)

    @property
    def n_words(self) -> Ints:
        """For each entry of the members, the different words of its document."""
        return np.repeat(np.diff(self.X.indptr), np.diff(self.members.indptr)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class MixtureProblem:
    """The EM problem of groups of units; the units of a group have the same weights, and paths of the same length.

    counts: words × units and their totals. documents, unit_documents: whose likelihood EM maximizes, and those of each unit.
    group_offsets, group_units: the units of each group. places: where the weights of each group begin, and the end.
    limits: when EM ends. expected: words that earlier documents ascribe to each estimate, group by group. sizes: the words of
    each group.
    """

    counts: WordCounts
    paths: Paths
    documents: LabelledDocuments
    unit_documents: Pattern
    group_offsets: Ints
    group_units: NDArray[np.int32]
    places: Ints
    limits: MixtureLimits
    expected: Floats
    sizes: Floats

    @classmethod
    def of(
        cls, counts: WordCounts, paths: Paths, labelled: Labelled, groups: list[NDArray[np.int32]], limits: MixtureLimits,
        expected: Floats, is_used: NDArray[np.bool_] | None = None,
    ) -> MixtureProblem:  # fmt: skip
        """expected: of each group, joined. is_used: which entries of the members (default: all)."""
        offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
        units = np.concatenate(groups) if groups else np.zeros(0, dtype=np.int32)
        places = np.concatenate([[0], np.cumsum(paths.n_estimates[units[offsets[:-1]]])]).astype(np.int64)
        used = labelled.n_words if is_used is None else labelled.n_words * is_used
        n_words = np.bincount(labelled.members.indices, used, minlength=len(paths.n_estimates))
        sizes = np.add.reduceat(n_words[units], offsets[:-1]) if groups else np.zeros(0)
        documents, by_unit = labelled.packed(), pattern_of(csc_array(labelled.select(is_used)))
        return cls(counts, paths, documents, by_unit, offsets, units, places, limits, expected, sizes)


def fit_weights(problem: MixtureProblem, n_jobs: int | None, title: str = "mixture weights") -> tuple[Floats, list[int]]:
    """The weights of all groups, joined, and the steps that each took; one more than allowed where it did not converge."""
    blocks = _blocks(problem.sizes)
    executor, steps, weights = choose_executor(n_jobs), list[int](), np.zeros(problem.places[-1])
    with stage(title, len(problem.sizes)) as step:
        results = executor.distribute(fit_block, executor.place(problem), blocks, CODEC)
        for block, found in zip(blocks, results, strict=True):
            part = slice(problem.places[block[0]], problem.places[block[-1] + 1])
            fits = [array.shape for array in found] == [weights[part].shape, block.shape]
            if not fits or [array.dtype for array in found] != [np.float64, np.int32]:  # as a damaged checkpoint may hold
                raise ModelError("the checkpoint holds mixture weights of other classes; train without --resume to begin anew.")
            weights[part] = found[0]
            steps += found[1].tolist()
            step.advance(len(block))
    return weights, steps


def _blocks(sizes: Floats) -> list[Ints]:
    """Adjacent groups in blocks with about equally many words."""
    if not len(sizes):
        return []
    before = np.cumsum(sizes) - sizes
    budget = max(1.0, sizes.sum() / N_BLOCKS)
    return np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(before // budget) > 0) + 1)


def fit_block(problem: MixtureProblem, block: Ints) -> tuple[Floats, NDArray[np.int32]]:
    """The weights of some adjacent groups, joined, and the steps that each took."""
    part = slice(problem.places[block[0]], problem.places[block[-1] + 1])
    offsets = problem.group_offsets[block[0] : block[-1] + 2]
    units = problem.group_units[offsets[0] : offsets[-1]]
    groups = Pattern(offsets - offsets[0], units, len(problem.paths.offsets) - 1)
    weights, steps = np.zeros(part.stop - part.start), np.zeros(len(block), dtype=np.int32)
    fit_mixtures_in_place(
        problem.counts, problem.paths.pattern, problem.documents, problem.unit_documents, groups,
        problem.limits, problem.expected[part], weights, steps,
    )  # fmt: skip
    return weights, steps


def _to_arrays(found: tuple[Floats, NDArray[np.int32]]) -> Arrays:
    return {"weights": found[0], "steps": found[1]}


CODEC = Codec(_to_arrays, itemgetter("weights", "steps"))
