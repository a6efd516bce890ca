"""Committees that another learner has made already, of the same documents and classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csc_array, csr_array

from ramify.learners.before import Before
from ramify.learners.boosting.committee import Committee, Ints
from ramify.learners.boosting.problems import ABOVE_ROOTS

Question = tuple[int, Ints]  # a node, and the classes that are asked about there


def known_committees(before: Before, were: csr_array, are: csr_array, asked: list[Question]) -> list[Committee | None]:
    """For every question a committee that was made of the same documents and classes, None where there is none.

    were, are: documents of before and of now × nodes, by which it is told whose documents they are.
    """
    then, now = before.now(csc_array(were)), csc_array(are)
    everyone = b"all" if before.has_same_documents else b"others"
    known = {}
    for committee in before.learner.committees_:
        keys = _keys(then, committee.classes)
        if all(keys):
            known[_node_key(then, committee.node, b"all"), frozenset(keys)] = committee, keys
    found: list[Committee | None] = []
    for node, classes in asked:
        keys = _keys(now, classes)
        same = known.get((_node_key(now, node, everyone), frozenset(keys)))
        is_clear = same is not None and len(set(keys)) == len(keys) == len(same[1])
        found.append(_placed(same[0], [same[1].index(key) for key in keys], node, classes) if same and is_clear else None)
    return found


def _placed(committee: Committee, order: list[int], node: int, classes: Ints) -> Committee:
    """A committee with its classes in another order, at another node."""
    absent, present = np.ascontiguousarray(committee.absent[:, order]), np.ascontiguousarray(committee.present[:, order])
    return replace(committee, node=node, classes=classes, absent=absent, present=present)


def _node_key(members: csc_array, node: int, everyone: bytes) -> bytes:
    return everyone if node == ABOVE_ROOTS else _keys(members, np.asarray([node]))[0]


def _keys(members: csc_array, nodes: Ints) -> list[bytes]:
    return [members.indices[members.indptr[n] : members.indptr[n + 1]].astype(np.int32).tobytes() for n in nodes.tolist()]
