"""Learn a taxonomy for flat categories by clustering: categories whose documents use the same words become siblings.

The centroid of a category is the mean of its documents' unit vectors, scaled to unit length. Agglomerative clustering merges
the closest two groups repeatedly; the groups of a level are a cut of the dendrogram. All levels cut one dendrogram, so finer
groups lie within coarser ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ramify.errors import InputError, suggest
from ramify.parallel import stage
from ramify.taxonomy.formats.text import find_separator
from ramify.taxonomy.hierarchy import Taxonomy

DECIMALS = 12  # of distances, so that equal distances stay equal in any order of documents
BLOCK = 256
LINKAGES = ("ward", "average", "complete", "single")
MAX_CATEGORIES = 10_000
N_TOP = 5

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def unit_rows(matrix: csr_array) -> csr_array:
    """Rows of length 1; empty ones stay empty."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    unit = matrix.copy()
    unit.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(matrix.indptr))
    return unit


def draw_sample(X: csr_array, Y: csr_array, sample: int, seed: int) -> csr_array:
    """The labels of at most `sample` documents of each category, drawn by a hash of the seed and their content."""
    columns, values, start = X.indices.astype(np.int32), X.data.astype(np.float32), f"{int(seed)}:".encode()
    contents = (start + columns[a:b].tobytes() + values[a:b].tobytes() for a, b in pairwise(X.indptr.tolist()))
    hashes = np.frombuffer(b"".join(blake2b(content, digest_size=8).digest() for content in contents), dtype="<u8")
    ranks = np.argsort(np.argsort(hashes, kind="stable"), kind="stable")
    by_category = Y.tocsc()
    members = (by_category.indices[a:b] for a, b in pairwise(by_category.indptr.tolist()))
    drawn = [documents[np.argsort(ranks[documents])[:sample]] for documents in members]
    categories, rows = np.repeat(np.arange(len(drawn)), [len(documents) for documents in drawn]), np.concatenate(drawn)
    return csr_array((np.ones(len(rows), dtype=bool), (rows, categories)), shape=Y.shape)


def distances_between(centroids: csr_array, linkage: str) -> Floats:
    """Condensed cosine distances of all pairs; for Ward's linkage Euclidean ones, √(2 · cosine distance) for unit vectors.

    A category without any feature has distance 1 to all others.
    """
    n, end = centroids.shape[0], 0
    distances = np.empty(n * (n - 1) // 2)  # may be large, so it is computed in place
    for start in range(0, n, BLOCK):
        products = (centroids[start : start + BLOCK] @ centroids.T).toarray()
        for first, row in enumerate(products, start + 1):
            distances[end : end + n - first] = 1.0 - row[first:]
            end += n - first
    np.clip(np.round(distances, DECIMALS, out=distances), 0.0, 2.0, out=distances)
    return np.sqrt(2.0 * distances) if linkage == "ward" else distances


def cut(merges: Floats, n_categories: int, n_groups: int) -> Ints:
    """The group of each category in a cut into n_groups, numbered by their first category."""
    group = np.arange(n_categories)
    members = {category: [category] for category in range(n_categories)}
    # all but the last n_groups - 1 merges leave n_groups groups
    for step, (a, b) in enumerate(merges[: n_categories - n_groups, :2].astype(np.int64).tolist()):
        members[n_categories + step] = members.pop(a) + members.pop(b)
    for joined in members.values():
        group[joined] = min(joined)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Group:
    """A group of categories.

    level: 0 for the coarsest. categories: names, by falling number of documents. documents: how many have any of them.
    top_features: the columns of X with the largest difference from the other groups of the level.
    """

    name: str
    level: int
    categories: tuple[str, ...]
    documents: int
    top_features: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LearnedTaxonomy:
    """A taxonomy of groups of categories, and the groups in the order of the taxonomy."""

    taxonomy: Taxonomy
    groups: tuple[Group, ...]


def learn_taxonomy(
    X: Any, Y: Any, names: Sequence[str], n_groups: int | Sequence[int] = 4, *,
    linkage: str = "ward", sample: int | None = None, seed: int = 0,
) -> Taxonomy:  # fmt: skip
    """Cluster flat categories into groups.

    X: documents × features, rows are scaled to unit length. Y: documents × categories, 0 or 1.
    names: of the categories. n_groups: the number of groups, or one for each level, increasing: ``(4, 12)``.
    linkage: "ward", "average", "complete" or "single". sample: the number of documents to use of each
    category, drawn with `seed`; None for all.

    >>> X, Y = [[1, 0], [1, 0.1], [0, 1], [0.1, 1]], np.eye(4)
    >>> learn_taxonomy(X, Y, ["apple", "pear", "bus", "car"], n_groups=2).names
    ('group-1', 'apple', 'pear', 'group-2', 'bus', 'car')
    """
    return learn_groups(X, Y, names, n_groups, linkage=linkage, sample=sample, seed=seed).taxonomy


def learn_groups(
    X: Any, Y: Any, names: Sequence[str], n_groups: int | Sequence[int] = 4, *,
    linkage: str = "ward", sample: int | None = None, seed: int = 0,
) -> LearnedTaxonomy:  # fmt: skip
    """Like :func:`learn_taxonomy`, also returning the groups with their top features."""
    check_settings(n_groups, linkage, sample, seed)
    check_number(len(names), n_groups)
    X, Y, names = _checked(X, Y, names)
    drawn = Y if sample is None else draw_sample(X, Y, sample, seed)
    centroids = unit_rows(csr_array(drawn.T.astype(np.float64) @ X))  # categories × features
    with stage("clustering categories"):
        from scipy.cluster import hierarchy  # takes 0.1 s to import

        merges = np.asarray(hierarchy.linkage(distances_between(centroids, linkage), linkage), dtype=np.float64)
    levels = [_describe(cut(merges, len(names), count), Y, centroids) for count in _listed(n_groups)]
    return _assemble(names, Y, dict(_numbered(levels, (), range(len(names)))))


def check_settings(n_groups: int | Sequence[int], linkage: str, sample: int | None, seed: int) -> None:
    """Refuse invalid settings, before any data is read."""
    if linkage not in LINKAGES:
        raise InputError(f"linkage is {linkage!r}; give one of {', '.join(LINKAGES)}.{suggest(str(linkage), LINKAGES)}")
    if sample is not None and not (_is_whole(sample) and sample >= 1):
        raise InputError(f"sample is {sample!r}; give a number of documents, 1 or more, or nothing for all.")
    if not (_is_whole(seed) and seed >= 0):
        raise InputError(f"seed is {seed!r}; give a whole number, 0 or more.")
    counts = _listed(n_groups)
    shown = ",".join(map(repr, counts)) or "missing"
    if not counts or not all(_is_whole(count) and count >= 2 for count in counts):
        raise InputError(f"the number of groups is {shown}; give 2 or more, or such a number for each level: 4,12.")
    if any(finer <= coarser for coarser, finer in pairwise(counts)):
        raise InputError(f"the numbers of groups are {shown}; each level needs more than the one above: 4,12.")


def check_number(n_categories: int, n_groups: int | Sequence[int]) -> None:
    """Refuse fewer than two categories, fewer than groups, and too many for the memory of their distances."""
    if n_categories < 2:
        raise InputError(f"there {'is 1 category' if n_categories else 'are no categories'}; grouping needs at least two.")
    if n_categories > MAX_CATEGORIES:
        size = f"{8 * n_categories * (n_categories - 1) / 2 / 1e9:,.1f} GB"
        found = f"there are {n_categories:,} categories, whose distances would take {size}"
        raise InputError(f"{found}; at most {MAX_CATEGORIES:,} can be grouped, so leave out the rare ones.")
    most = _listed(n_groups)[-1]
    if most > n_categories:
        raise InputError(f"{most:,} groups are more than the {n_categories:,} categories; ask for fewer.")


def refuse_paths(names: Sequence[str]) -> None:
    """Refuse labels that are paths, which already form a tree."""
    separator = find_separator(names)
    if separator is not None:
        example = next(name for name in names if separator in name)
        found = f"labels such as {example!r} are paths joined by {separator!r}, so they already form a tree"
        raise InputError(f"{found}; train on them as they are, or take them as plain names with --flat.")


def _checked(X: Any, Y: Any, names: Sequence[str]) -> tuple[csr_array, csr_array, tuple[str, ...]]:
    """Unit rows, and label columns sorted by name, which fixes the order of ties."""
    Taxonomy.flat(names)  # refuses empty and duplicate names
    matrices = []
    for what, given in (("X", X), ("Y", Y)):
        values = given if issparse(given) else np.asarray(given)
        if values.ndim != 2:
            raise InputError(f"{what} is not a matrix; give one with a row per document.")
        matrix = csr_array(values, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrices.append(matrix)
    X, Y = matrices[0].astype(np.float64), matrices[1].astype(bool)
    if X.shape[0] != Y.shape[0] or Y.shape[1] != len(names):
        found = f"X has {X.shape[0]:,} rows, Y has {Y.shape[0]:,} rows and {Y.shape[1]:,} columns"
        raise InputError(f"{found}, and there are {len(names):,} names; give a row per document and a name per column of Y.")
    if not np.isfinite(X.data).all():
        raise InputError("X holds values that are not finite; fill in missing values first.")
    order = sorted(range(len(names)), key=names.__getitem__)
    Y, listed = csr_array(Y[:, order]), tuple(names[i] for i in order)
    sizes = np.bincount(Y.indices, minlength=len(listed))
    if not sizes.all():
        raise InputError(f"category {listed[int(np.argmin(sizes))]!r} has no documents; leave it out.")
    return unit_rows(X), Y, listed


def _listed(n_groups: int | Sequence[int]) -> list[int]:
    return [n_groups] if np.isscalar(n_groups) or n_groups is None else list(n_groups)  # type: ignore[list-item, arg-type]


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


class _Found(NamedTuple):
    """A group without a name: its categories, how many documents have any of them, and its top features."""

    members: list[int]
    documents: int
    top_features: tuple[int, ...]


def _describe(group_of: Ints, Y: csr_array, centroids: csr_array) -> dict[int, _Found]:
    """The groups of one level, by their first category."""
    n_categories = len(group_of)
    belongs = csr_array((np.ones(n_categories), (np.arange(n_categories), group_of)))
    n_groups = belongs.shape[1]
    documents = np.bincount(csr_array(Y.astype(np.float64) @ belongs).indices, minlength=n_groups)
    group_centroids = unit_rows(csr_array(belongs.T @ centroids))
    total = np.asarray(group_centroids.sum(axis=0)).ravel()
    found: dict[int, _Found] = {}
    for g in range(n_groups):
        # the features with the largest difference between the group's centroid and the mean of the others; ties by column
        columns, values = group_centroids[[g]].indices, group_centroids[[g]].data
        difference = np.round(values - (total[columns] - values) / (n_groups - 1), DECIMALS)
        best = np.lexsort((columns, -difference))[:N_TOP]
        top_features = tuple(int(columns[i]) for i in best if difference[i] > 0)
        members = np.flatnonzero(group_of == g).tolist()
        found[members[0]] = _Found(members, int(documents[g]), top_features)
    return found


def _numbered(
    levels: list[dict[int, _Found]], prefix: tuple[int, ...], within: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], _Found]]:
    """Groups in depth-first order, each with its rank among its siblings and those of its ancestors, the largest being 1."""
    siblings = [levels[0][first] for first in within if first in levels[0]] if levels else []
    for rank, group in enumerate(sorted(siblings, key=lambda group: (-group.documents, group.members[0])), 1):
        yield (*prefix, rank), group
        yield from _numbered(levels[1:], (*prefix, rank), group.members)


def _assemble(names: tuple[str, ...], Y: csr_array, found: dict[tuple[int, ...], _Found]) -> LearnedTaxonomy:
    sizes = np.bincount(Y.indices, minlength=len(names))
    word = "group"  # group-1, group-1.2 and so on; with a longer prefix if a category has such a name
    while True:
        called = {number: f"{word}-{'.'.join(map(str, number))}" for number in found}
        if set(names).isdisjoint(called.values()):
            break
        word = f"learned-{word}"
    deepest = max(map(len, found))
    edges: list[tuple[str, str | None]] = []
    groups = []
    for number, group in found.items():
        name = called[number]
        edges.append((name, called.get(number[:-1])))
        edges += [(names[i], name) for i in group.members if len(number) == deepest]
        members = tuple(names[i] for i in sorted(group.members, key=lambda i: (-sizes[i], i)))
        groups.append(Group(name, len(number) - 1, members, group.documents, group.top_features))
    return LearnedTaxonomy(Taxonomy.from_edges(edges), tuple(groups))
