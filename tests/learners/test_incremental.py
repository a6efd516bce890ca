"""The changed part of a tree, and the certificate of a solution of which only that part was solved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import build, trees

from ramify import Taxonomy
from ramify.data import make_web_directory
from ramify.learners import RecursiveLogistic, RecursiveSVM
from ramify.learners.linear.incremental import find_changed_part
from ramify.learners.linear.taxonomy_ties import tie_along_paths
from ramify.learners.warm_start import WarmStart
from ramify.taxonomy import expand_to_ancestors, most_specific

C = 1.0


@st.composite
def two_trees(draw):
    """A tree, and the same after some nodes were moved; every node is a class, or every leaf is."""
    old = draw(trees(max_nodes=9, min_nodes=2))
    new = [list(above) for above in old]
    for node in draw(st.lists(st.integers(1, len(old) - 1), max_size=2)):
        new[node] = draw(st.sampled_from([[], *([k] for k in range(node))]))
    return build(old), build(new)


def below(forest):
    """For every unit the classes at or below it, by the taxonomy's nodes."""
    found = [set() for _ in range(len(forest))]
    for unit in range(len(forest) - 1, -1, -1):
        if forest.class_of[unit] >= 0:
            found[unit].add(int(forest.node[unit]))
        if forest.parent[unit] >= 0:
            found[forest.parent[unit]] |= found[unit]
    return found


@given(two_trees(), st.booleans())
def test_units_outside_the_changed_part_are_where_they_were(pair, leaves_only):
    old, new = pair
    labelled = np.flatnonzero(old.is_leaf & new.is_leaf) if leaves_only else np.arange(len(old))
    if not len(labelled):
        return
    then, now = tie_along_paths(old, labelled), tie_along_paths(new, labelled)
    place = {int(node): k for k, node in enumerate(then.class_nodes)}
    changed = find_changed_part(then, now, np.asarray([place[int(node)] for node in now.class_nodes]))
    were, are = below(then), below(now)
    for unit in np.setdiff1d(np.arange(len(now)), changed.units):
        old_unit = changed.old[unit]
        assert old_unit >= 0
        above, above_old = now.parent[unit], then.parent[old_unit]
        assert (changed.old[above] if above >= 0 else -1) == above_old
        if unit not in changed.path:
            assert are[unit] == were[old_unit]
    for unit in changed.units:
        assert now.parent[unit] < 0 or now.parent[unit] in changed.units or now.parent[unit] == changed.path[-1]
    if old == new:
        assert not len(changed.units)
    if changed.path:
        wider = changed.wider(now)
        assert wider.path == changed.path[:-1]
        assert {int(now.node[unit]) for unit in wider.units if now.class_of[unit] >= 0} == are[changed.path[-1]]
        assert set(changed.units) < set(wider.units)


# ---- certificates -----------------------------------------------------------------------------------------------------------

PROBLEM = make_web_directory(n_leaves=60, n_docs=600, n_words=60, seed=2)


def forest_of(edges):
    """Without the root, so that there are several."""
    return Taxonomy.from_edges((child, None if parent == "n0" else parent) for child, parent in edges if child != "n0")


EDGES = [
    (name, None if p < 0 else PROBLEM.taxonomy.names[p])
    for name, p in zip(PROBLEM.taxonomy.names, PROBLEM.taxonomy.parent.tolist(), strict=True)
]
OLD = forest_of(EDGES)
LABELS = PROBLEM.taxonomy.decode(PROBLEM.Y)


def moved_within_a_root():
    """A leaf of a deep branch under the root of that branch."""
    node = max(np.flatnonzero(OLD.is_leaf).tolist(), key=lambda leaf: OLD.depth[leaf])
    root = OLD.names[OLD.nodes_to(node)[0]]
    return forest_of([(name, root if name == OLD.names[node] else parent) for name, parent in EDGES])


def moved_to_a_root_of_its_own():
    node = max(np.flatnonzero(OLD.is_leaf).tolist(), key=lambda leaf: OLD.depth[leaf])
    return forest_of([(name, "n0" if name == OLD.names[node] else parent) for name, parent in EDGES])


def objective(learner, Y):
    """½ Σ ‖δ‖² + C Σ loss over all documents and classes, from the weights as they are."""
    W = learner.weights_
    own = most_specific(Y, learner.taxonomy_)[:, learner.class_nodes_].toarray()
    margins = np.where(own, 1, -1) * W.score(PROBLEM.X).astype(np.float64)
    loss = np.maximum(0, 1 - margins) if isinstance(learner, RecursiveSVM) else np.log1p(np.exp(-margins))
    return 0.5 * (np.square(W.deltas.data.astype(np.float64)).sum() + W.bias @ W.bias) + C * loss.sum()


def bound(learner):
    """Σ α − ½ Σ ‖δ(α)‖², from the dual variables as they are; of the hinge loss."""
    dual, forest = learner.dual_, tie_along_paths(learner.taxonomy_, np.sort(learner.class_nodes_))
    X = np.column_stack([PROBLEM.X.toarray().astype(np.float64), np.ones(PROBLEM.X.shape[0])])
    shape = (len(X), len(dual))
    classes = np.repeat(np.arange(len(dual)), np.diff(dual.offsets))
    u = csr_array((dual.values.astype(np.float64), (dual.documents, classes)), shape=shape).T @ X
    assert np.all(np.abs(dual.values) <= C + 1e-6)
    delta = np.zeros((len(forest), X.shape[1]))
    delta[forest.class_of >= 0] = u
    for unit in range(len(forest) - 1, -1, -1):
        if forest.parent[unit] >= 0:
            delta[forest.parent[unit]] += delta[unit]
    return np.abs(dual.values.astype(np.float64)).sum() - 0.5 * np.square(delta).sum()


@pytest.mark.parametrize("kind", [RecursiveSVM, RecursiveLogistic])
@pytest.mark.parametrize("new", [moved_within_a_root(), moved_to_a_root_of_its_own(), OLD], ids=["within", "out", "same"])
def test_solving_only_the_changed_part_certifies_the_whole_problem(kind, new):
    Y_old, Y = OLD.encode(LABELS), new.encode(LABELS)
    first = kind(OLD, tol=1e-3)
    first.keeps_warm_start = True
    first.fit(PROBLEM.X, Y_old)
    again = kind(new, tol=4e-3)  # a wider gap, so that there is something left for the part
    first.tol = 4e-3
    again.keeps_warm_start = True
    before = WarmStart(first, most_specific(Y_old, OLD), np.arange(600), 600)
    again.refit_from(PROBLEM.X, Y, before)
    taken, total = again.reused_
    assert taken == total if new == OLD else 0 < taken < total  # not the whole
    assert again.gap_ <= 4e-3
    assert again.gap_.primal == pytest.approx(objective(again, Y), rel=1e-4)
    anew = kind(new).fit(PROBLEM.X, Y)
    assert again.gap_.dual <= anew.gap_.primal * (1 + 1e-6)
    assert anew.gap_.dual <= again.gap_.primal * (1 + 1e-6)
    if kind is RecursiveSVM:
        assert bound(again) == pytest.approx(again.gap_.dual, rel=1e-4)
    twice = kind(new, tol=4e-3).refit_from(PROBLEM.X, Y, WarmStart(again, most_specific(Y, new), np.arange(600), 600))
    assert twice.reused_ == (total, total)
    assert twice.gap_.primal == pytest.approx(again.gap_.primal, rel=1e-6)
    assert expand_to_ancestors(most_specific(Y, new), new).nnz == Y.nnz
