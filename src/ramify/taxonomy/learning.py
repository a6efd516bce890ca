"""From vectors of documents to groups of categories: centroids, their distances, and cuts of a dendrogram."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ramify.errors import InputError, suggest
from ramify.parallel import stage
from ramify.taxonomy.formats.paths import find_separator
from ramify.taxonomy.hierarchy import Taxonomy

DECIMALS = 12  # what rounding adds to a distance is gone, so that equal distances are equal in any order of documents
BLOCK = 256

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def unit_rows(matrix: csr_array) -> csr_array:
    """Rows of length 1; empty ones stay empty."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    unit = matrix.copy()
    unit.data /= np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(matrix.indptr))
    return unit


def centroids_of(X: csr_array, Y: csr_array) -> csr_array:
    """categories × features: the direction of the mean of each category's documents."""
    return unit_rows(csr_array(Y.T.astype(np.float64) @ X))


def draw(X: csr_array, Y: csr_array, sample: int, seed: int) -> csr_array:
    """The labels of at most so many documents of each category.

    Documents are drawn by a hash of the seed and what is in them, so that their order does not matter.
    """
    ranks = np.argsort(np.argsort(_lots(X, seed), kind="stable"), kind="stable")
    columns = Y.tocsc()
    kept = []
    for a, b in pairwise(columns.indptr.tolist()):
        documents = columns.indices[a:b]
        kept.append(documents[np.argsort(ranks[documents])[:sample]])
    places = np.repeat(np.arange(len(kept)), [len(documents) for documents in kept])
    rows = np.concatenate(kept)
    return csr_array((np.ones(len(rows), dtype=bool), (rows, places)), shape=Y.shape)


def _lots(X: csr_array, seed: int) -> NDArray[np.uint64]:
    """A number for each document that its content and the seed determine."""
    columns, values = X.indices.astype(np.int32), X.data.astype(np.float32)
    start = f"{int(seed)}:".encode()
    digests = b"".join(
        blake2b(start + columns[a:b].tobytes() + values[a:b].tobytes(), digest_size=8).digest()
        for a, b in pairwise(X.indptr.tolist())
    )
    return np.frombuffer(digests, dtype="<u8")


def join(centroids: csr_array, linkage: str) -> Floats:
    """What is joined with what, nearest first: the dendrogram as scipy writes it."""
    from scipy.cluster import hierarchy  # a tenth of a second that every other use of Ramify is spared

    return np.asarray(hierarchy.linkage(distances_between(centroids, linkage), linkage), dtype=np.float64)


def distances_between(centroids: csr_array, linkage: str) -> Floats:
    """Cosine distances of all pairs, row after row; for Ward's linkage, which needs them, the Euclidean ones.

    Between vectors of length 1 these are √(2 · cosine distance). A category without any feature is at 1 from all others.
    """
    n, end = centroids.shape[0], 0
    distances = np.empty(n * (n - 1) // 2)  # a table of them may be large, so there is only this one
    for start in range(0, n, BLOCK):
        products = (centroids[start : start + BLOCK] @ centroids.T).toarray()
        for first, row in enumerate(products, start + 1):
            distances[end : end + n - first] = 1.0 - row[first:]
            end += n - first
    np.clip(np.round(distances, DECIMALS, out=distances), 0.0, 2.0, out=distances)
    return np.sqrt(2.0 * distances) if linkage == "ward" else distances


def cut(merges: Floats, n_categories: int, n_groups: int) -> Ints:
    """The group of each category when so many groups are left, numbered by their first category."""
    group = np.arange(n_categories)
    members = {category: [category] for category in range(n_categories)}
    # merges come nearest first, so those before the last n_groups - 1 leave just n_groups
    for step, (a, b) in enumerate(merges[: n_categories - n_groups, :2].astype(np.int64).tolist()):
        members[n_categories + step] = members.pop(a) + members.pop(b)
    for joined in members.values():
        group[joined] = min(joined)
    return np.unique(group, return_inverse=True)[1].astype(np.int64)


# --------------------------------------------------------------------------------------------------------------
# A taxonomy for categories that have none: categories whose documents use the same words go below one node.
#
# Every category becomes the mean of its documents' unit vectors, brought to unit length itself. Agglomerative clustering
# joins the nearest two groups again and again, and the groups of a level are those that stand when so many are left.
# Levels cut one dendrogram, so the groups of a finer level lie within those of a coarser one.


LINKAGES = ("ward", "average", "complete", "single")
MAX_CATEGORIES = 10_000
N_TOP = 5


@dataclass(frozen=True, slots=True)
class Group:
    """A group of categories.

    level: 0 for the coarsest. categories: by name, those with most documents first. documents: that have any of them.
    top_features: the columns of X that stand out most against the other groups of the level.
    """

    name: str
    level: int
    categories: tuple[str, ...]
    documents: int
    top_features: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LearnedTaxonomy:
    """A taxonomy of groups over categories, and what is in each group, in the order of the taxonomy."""

    taxonomy: Taxonomy
    groups: tuple[Group, ...]


def learn_taxonomy(
    X: Any,
    Y: Any,
    names: Sequence[str],
    n_groups: int | Sequence[int] = 4,
    *,
    linkage: str = "ward",
    sample: int | None = None,
    seed: int = 0,
) -> Taxonomy:
    """Put flat categories into groups of like ones.

    X: documents × features, rows of unit length (others are brought to it). Y: documents × categories, 0 or 1.
    names: one a category. n_groups: how many groups, or a rising number for each level: ``(4, 12)``.
    linkage: "ward", "average", "complete" or "single". sample: so many documents of each category are looked at,
    drawn by `seed`; None for all.

    >>> X, Y = [[1, 0], [1, 0.1], [0, 1], [0.1, 1]], np.eye(4)
    >>> learn_taxonomy(X, Y, ["apple", "pear", "bus", "car"], n_groups=2).names
    ('group-1', 'apple', 'pear', 'group-2', 'bus', 'car')
    """
    return learn_groups(X, Y, names, n_groups, linkage=linkage, sample=sample, seed=seed).taxonomy


def learn_groups(
    X: Any,
    Y: Any,
    names: Sequence[str],
    n_groups: int | Sequence[int] = 4,
    *,
    linkage: str = "ward",
    sample: int | None = None,
    seed: int = 0,
) -> LearnedTaxonomy:
    """The same as :func:`learn_taxonomy`, with what is in each group and which features tell it from others."""
    check_settings(n_groups, linkage, sample, seed)
    check_number(len(names), n_groups)
    X, Y, names = _checked(X, Y, names)
    centroids = centroids_of(X, Y if sample is None else draw(X, Y, sample, seed))
    with stage("joining categories"):
        merges = join(centroids, linkage)
    found = [_look_at(cut(merges, len(names), count), Y, centroids) for count in _listed(n_groups)]
    return _put_together(names, Y, list(_walk(found, (), range(len(names)))))


def check_settings(n_groups: int | Sequence[int], linkage: str, sample: int | None, seed: int) -> None:
    """Refuse settings that make no sense, before anything is read."""
    if linkage not in LINKAGES:
        raise InputError(f"linkage is {linkage!r}; give one of {', '.join(LINKAGES)}.{suggest(str(linkage), LINKAGES)}")
    if sample is not None and not (_is_whole(sample) and sample >= 1):
        raise InputError(f"sample is {sample!r}; give a number of documents, 1 or more, or nothing for all.")
    if not (_is_whole(seed) and seed >= 0):
        raise InputError(f"seed is {seed!r}; give a whole number, 0 or more.")
    counts = _listed(n_groups)
    if not counts or not all(_is_whole(count) and count >= 2 for count in counts):
        raise InputError(f"the number of groups is {_shown(n_groups)}; give 2 or more, or such a number for each level: 4,12.")
    if any(finer <= coarser for coarser, finer in pairwise(counts)):
        raise InputError(f"the numbers of groups are {_shown(n_groups)}; each level needs more than the one above: 4,12.")


def check_number(n_categories: int, n_groups: int | Sequence[int]) -> None:
    """Refuse fewer than two categories, fewer than groups, and so many that their distances would not fit into memory."""
    if n_categories < 2:
        raise InputError(f"there {'is 1 category' if n_categories else 'are no categories'}; grouping needs at least two.")
    if n_categories > MAX_CATEGORIES:
        size = 8 * n_categories * (n_categories - 1) / 2 / 1e9
        raise InputError(
            f"there are {n_categories:,} categories, whose distances would take {size:,.1f} GB; at most {MAX_CATEGORIES:,} "
            "can be grouped, so leave out the rare ones."
        )
    most = _listed(n_groups)[-1]
    if most > n_categories:
        raise InputError(f"{most:,} groups are more than the {n_categories:,} categories; ask for fewer.")


def refuse_paths(names: Sequence[str]) -> None:
    """Refuse labels that spell out a tree already."""
    separator = find_separator(names)
    if separator is not None:
        example = next(name for name in names if separator in name)
        raise InputError(
            f"labels such as {example!r} are paths joined by {separator!r}, so they already form a tree; train on them as they "
            "are, or take them as plain names with --flat."
        )


def _checked(X: Any, Y: Any, names: Sequence[str]) -> tuple[csr_array, csr_array, tuple[str, ...]]:
    """Unit rows, and the columns of labels in the order of names, in which equal distances are then met."""
    Taxonomy.flat(names)  # refuses names that are empty or there twice
    X, Y = _as_matrix(X, "X").astype(np.float64), _as_matrix(Y, "Y").astype(bool)
    if X.shape[0] != Y.shape[0] or Y.shape[1] != len(names):
        found = f"X has {X.shape[0]:,} rows, Y has {Y.shape[0]:,} rows and {Y.shape[1]:,} columns"
        raise InputError(f"{found}, and there are {len(names):,} names; give a row a document and a name a column of Y.")
    if not np.isfinite(X.data).all():
        raise InputError("X holds values that are not finite; fill in missing values first.")
    order = sorted(range(len(names)), key=names.__getitem__)
    Y, listed = csr_array(Y[:, order]), tuple(names[i] for i in order)
    sizes = np.bincount(Y.indices, minlength=len(listed))
    if not sizes.all():
        raise InputError(f"category {listed[int(np.argmin(sizes))]!r} has no documents; leave it out.")
    return unit_rows(X), Y, listed


def _as_matrix(values: Any, what: str) -> csr_array:
    if not issparse(values):
        values = np.asarray(values)
    if values.ndim != 2:
        raise InputError(f"{what} is no matrix; give one with a row a document.")
    matrix = csr_array(values, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _listed(n_groups: int | Sequence[int]) -> list[int]:
    return [n_groups] if np.isscalar(n_groups) or n_groups is None else list(n_groups)  # type: ignore[list-item, arg-type]


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _shown(n_groups: Any) -> str:
    return ",".join(map(repr, _listed(n_groups))) or "missing"


# ---- from groups to a taxonomy ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """A group before it has a name; place: its position below each group above, the largest being 1."""

    members: list[int]
    documents: int
    top_features: tuple[int, ...]
    place: tuple[int, ...] = ()


def _look_at(group_of: Ints, Y: csr_array, centroids: csr_array) -> dict[int, _Found]:
    """The groups of one level, by their first category."""
    n_categories = len(group_of)
    belongs = csr_array((np.ones(n_categories), (np.arange(n_categories), group_of)))
    n_groups = belongs.shape[1]
    documents = np.bincount(csr_array(Y.astype(np.float64) @ belongs).indices, minlength=n_groups)
    middles = unit_rows(csr_array(belongs.T @ centroids))
    total = np.asarray(middles.sum(axis=0)).ravel()
    found: dict[int, _Found] = {}
    for g in range(n_groups):
        members = np.flatnonzero(group_of == g).tolist()
        found[members[0]] = _Found(members, int(documents[g]), _top_features(middles[[g]], total, n_groups))
    return found


def _top_features(middle: csr_array, total: Floats, n_groups: int) -> tuple[int, ...]:
    """The features that are highest in a group's middle less the mean of the others' middles; equal ones by column."""
    columns, values = middle.indices, middle.data
    others = (total[columns] - values) / (n_groups - 1)
    stands_out = np.round(values - others, DECIMALS)
    best = np.lexsort((columns, -stands_out))[:N_TOP]
    return tuple(int(columns[i]) for i in best if stands_out[i] > 0)


def _walk(levels: list[dict[int, _Found]], place: tuple[int, ...], within: Sequence[int]) -> Iterator[_Found]:
    """Every group with the groups within it behind it; those with most documents first, then by their first category."""
    if not levels:
        return
    here = [levels[0][first] for first in within if first in levels[0]]
    for number, group in enumerate(sorted(here, key=lambda group: (-group.documents, group.members[0])), 1):
        yield replace(group, place=(*place, number))
        yield from _walk(levels[1:], (*place, number), group.members)


def _put_together(names: tuple[str, ...], Y: csr_array, found: list[_Found]) -> LearnedTaxonomy:
    sizes = np.bincount(Y.indices, minlength=len(names))
    called = _names_for([group.place for group in found], names)
    deepest = max(len(group.place) for group in found)
    edges: list[tuple[str, str | None]] = []
    groups = []
    for group in found:
        name = called[group.place]
        edges.append((name, called.get(group.place[:-1])))
        edges += [(names[i], name) for i in group.members if len(group.place) == deepest]
        largest_first = sorted(group.members, key=lambda i: (-sizes[i], i))
        members = tuple(names[i] for i in largest_first)
        groups.append(Group(name, len(group.place) - 1, members, group.documents, group.top_features))
    return LearnedTaxonomy(Taxonomy.from_edges(edges), tuple(groups))


def _names_for(places: list[tuple[int, ...]], taken: Sequence[str]) -> dict[tuple[int, ...], str]:
    """group-1, group-1.2 and so on, or with a longer first word where a category is called so."""
    word, used = "group", set(taken)
    while True:
        called = {place: f"{word}-{'.'.join(map(str, place))}" for place in places}
        if used.isdisjoint(called.values()):
            return called
        word = f"learnt-{word}"
