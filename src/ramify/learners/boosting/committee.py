"""A committee of stumps for the classes of one node, round by round, and the sums into which it can be folded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Committee:
    """What boosting has learnt about the classes of one node.

    node: whose documents it judges, -1 above the roots. classes: the nodes that it answers for.
    pivots: the term that each round asks for. absent, present: rounds × classes, the votes where a document lacks the pivot
    and where it has it. z: of each round, the criterion by which its pivot was chosen.
    normalizers: the sum of the weights after each round, before they add up to one again; the share of wrong decisions on the
    training documents is no larger than the product of them.
    """

    node: int
    classes: Ints
    pivots: Ints
    absent: Floats
    present: Floats
    z: Floats
    normalizers: Floats

    @classmethod
    def empty(cls, node: int, classes: Ints) -> Self:
        """A committee without members."""
        votes = np.zeros((0, len(classes)))
        return cls(node, classes, np.zeros(0, dtype=np.int64), votes, votes, np.zeros(0), np.zeros(0))

    @property
    def n_rounds(self) -> int:
        """The number of stumps."""
        return len(self.pivots)

    def first(self, rounds: int) -> Self:
        """The committee after so many rounds; all of it where there were fewer."""
        pivots, absent, present, z, normalizers = (part[:rounds] for part in self._parts())
        return replace(self, pivots=pivots, absent=absent, present=present, z=z, normalizers=normalizers)

    def extended(self, more: Committee) -> Self:
        """The same committee with the rounds of another for the same classes after its own."""
        pairs = zip(self._parts(), more._parts(), strict=True)
        pivots, absent, present, z, normalizers = (np.concatenate(pair) for pair in pairs)
        return replace(self, pivots=pivots, absent=absent, present=present, z=z, normalizers=normalizers)

    def _parts(self) -> tuple[NDArray[Any], ...]:
        return self.pivots, self.absent, self.present, self.z, self.normalizers

    def with_pivots(self, pivots: Ints) -> Self:
        """The same committee where terms have other numbers."""
        return replace(self, pivots=pivots)

    def folded(self) -> tuple[Ints, Floats, Floats]:
        """Stumps on the same pivot as one: the pivots, rising; a bias a class; and what each pivot adds, pivots × classes.

        >>> votes = np.array([[1.0], [2.0]])
        >>> c = Committee(-1, np.array([0]), np.array([7, 7]), votes, 3 * votes, np.ones(2), np.ones(2))
        >>> c.folded()
        (array([7]), array([3.]), array([[6.]]))
        """
        columns, of_round = np.unique(self.pivots, return_inverse=True)
        sums = np.zeros((len(columns), len(self.classes)))
        np.add.at(sums, of_round, self.present - self.absent)
        return columns, np.asarray(self.absent.sum(axis=0)), sums

    def sum_votes(self, X: csr_array) -> Floats:
        """What all stumps together say of documents, documents × classes; the places of the non-zeros of X count."""
        columns, bias, sums = self.folded()
        present = csr_array((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
        return np.asarray(bias + present[:, columns] @ sums)


def offsets_of(lengths: list[int]) -> Ints:
    """Where each of several stretches begins, and where the last ends.

    >>> offsets_of([2, 3])
    array([0, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
