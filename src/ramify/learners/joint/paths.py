"""Classes as sums over paths: the answer c is every unit from the top down to class c."""

from __future__ import annotations

import numpy as np

from ramify.learners.joint.problem import Answers, Floats
from ramify.learners.linear.forest import Forest


def path_answers(forest: Forest, margins: Floats) -> Answers:
    """All classes compete for every document (margins: classes × classes, 0 on the diagonal)."""
    class_units = np.flatnonzero(forest.class_of >= 0)
    n = len(class_units)
    above = np.split(forest.above, forest.above_offsets[1:-1])
    listed = [np.append(units, unit).astype(np.int32) for units, unit in zip(above, class_units, strict=True)]
    own_first = np.tile(np.arange(n, dtype=np.int32), (n, 1))
    for c in range(n):
        own_first[c, : c + 1] = [c, *range(c)]
    units = np.concatenate(listed)
    return Answers(
        offsets=n * np.arange(n + 1, dtype=np.int64),
        answers=own_first.ravel(),
        margins=np.take_along_axis(margins, own_first.astype(np.int64), axis=1).ravel(),
        unit_offsets=np.concatenate([[0], np.cumsum([len(path) for path in listed])]).astype(np.int64),
        units=units,
        signs=np.ones(len(units)),
    )


def tree_distances(forest: Forest) -> Floats:
    """Half the number of edges between two classes, with one root above all: classes × classes.

    >>> from ramify import Taxonomy
    >>> from ramify.learners.linear.forest import tie_along_paths
    >>> tree = Taxonomy.from_paths(["a/x", "a/y", "b"])
    >>> tree_distances(tie_along_paths(tree, np.asarray([tree.index("b"), tree.index("a/x"), tree.index("a/y")])))
    array([[0. , 1. , 1.5],
           [1. , 0. , 1.5],
           [1.5, 1.5, 0. ]])
    """
    lengths = np.diff(forest.above_offsets) + 1
    return np.asarray((lengths[:, None] + lengths[None, :]) / 2 - shared_units(forest))


def shared_units(forest: Forest) -> Floats:
    """How many units the paths of two classes have in common: classes × classes."""
    n = len(forest.above_offsets) - 1
    passes = np.zeros((n, len(forest)))
    passes[np.repeat(np.arange(n), np.diff(forest.above_offsets)), forest.above] = 1
    passes[np.arange(n), np.flatnonzero(forest.class_of >= 0)] = 1
    return np.asarray(passes @ passes.T)
