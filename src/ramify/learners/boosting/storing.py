"""Committees as plain arrays, and back after checking every one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.errors import ModelError
from ramify.learners.boosting.committee import Committee, Ints, offsets_of
from ramify.taxonomy import Taxonomy

Arrays = dict[str, NDArray[Any]]

_KINDS = {
    "committee_nodes": "i8",
    "class_offsets": "i8",
    "classes": "i8",
    "round_offsets": "i8",
    "pivots": "i8",
    "absent": "f8",
    "present": "f8",
    "z": "f8",
    "normalizers": "f8",
}


def committee_arrays(committees: list[Committee]) -> Arrays:
    """One array for each field, with the committees one after the other."""

    def joined(name: str) -> NDArray[Any]:
        parts = [getattr(committee, name).ravel() for committee in committees]
        return np.concatenate([np.zeros(0, dtype=_KINDS[name]), *parts])

    return {
        "committee_nodes": np.asarray([committee.node for committee in committees], dtype=np.int64),
        "class_offsets": offsets_of([len(committee.classes) for committee in committees]),
        "round_offsets": offsets_of([committee.n_rounds for committee in committees]),
        **{name: joined(name) for name in ("classes", "pivots", "absent", "present", "z", "normalizers")},
    }


def read_parameters(values: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a stored learner, if they are the ones that it takes."""
    parameters = dict(values["parameters"])
    fits = set(parameters) == set(known) - {"taxonomy", "n_jobs"} and isinstance(values["several_labels"], bool)
    if not fits or not isinstance(values["n_features"], int) or values["n_features"] < 1:
        raise ModelError("the parameters of boosting are not the ones that it takes; train the model again.")
    return parameters


def read_committees(arrays: Arrays, n_features: int, n_nodes: int) -> list[Committee]:
    """Committees from their arrays; refuses what boosting does not write."""
    if any(arrays[name].dtype != kind or arrays[name].ndim != 1 for name, kind in _KINDS.items()):
        raise ModelError("the committees are of another type than boosting writes; train the model again.")
    nodes, n = arrays["committee_nodes"], len(arrays["committee_nodes"])
    widths = _lengths(arrays["class_offsets"], n, len(arrays["classes"]))
    rounds = _lengths(arrays["round_offsets"], n, len(arrays["pivots"]))
    sizes = [len(arrays[name]) for name in ("absent", "present")]
    if sizes != [int(widths @ rounds)] * 2 or any(len(arrays[name]) != rounds.sum() for name in ("z", "normalizers")):
        raise ModelError("the rounds of boosting have shapes that do not fit together; train the model again.")
    _check_range(arrays["pivots"], 0, n_features, "a pivot")
    _check_range(arrays["classes"], 0, n_nodes, "a class")
    _check_range(nodes, -1, n_nodes, "a committee")
    if np.any(np.diff(nodes) <= 0) or np.any(widths < 1) or len(np.unique(arrays["classes"])) < len(arrays["classes"]):
        raise ModelError("the committees of boosting do not answer for distinct nodes; train the model again.")
    if not all(np.isfinite(arrays[name]).all() for name in ("absent", "present", "z", "normalizers")):
        raise ModelError("the votes of boosting are not all finite numbers; train the model again.")
    return [_committee(arrays, k, widths, rounds) for k in range(n)]


def read_nodes(arrays: Arrays, committees: list[Committee]) -> Ints:
    """The nodes of a model file that may be labels: some of those that boosting knows."""
    listed = [arrays[name] for name in ("class_nodes", "merged", "merged_with")]
    if any(array.dtype != np.int64 or array.ndim != 1 for array in listed):
        raise ModelError("the nodes of boosting are of another type than it writes; train the model again.")
    nodes, merged, _ = listed
    known = np.concatenate([merged, *(committee.classes for committee in committees)])
    if np.any(np.diff(nodes) <= 0) or not np.isin(nodes, known).all():
        raise ModelError("the labels of boosting are not nodes that it knows; train the model again.")
    return nodes


def check_merged(merged: Ints, merged_with: Ints, committees: list[Committee], taxonomy: Taxonomy) -> None:
    """Refuse merged nodes that do not hang below what they are merged with."""
    if len(merged) != len(merged_with):
        raise ModelError("the merged nodes of boosting are not what it writes; train the model again.")
    _check_range(merged, 0, len(taxonomy), "a merged node")
    known = {-1, *merged.tolist(), *(int(node) for committee in committees for node in committee.classes)}
    answered = np.concatenate([np.zeros(0, dtype=np.int64), *(committee.classes for committee in committees)])
    leads = np.array_equal(taxonomy.parent[merged], merged_with) and np.all(np.diff(merged) > 0)
    if not leads or np.isin(merged, answered).any() or not known.issuperset(merged_with.tolist()):
        raise ModelError("the merged nodes of boosting do not hang below nodes that it knows; train the model again.")
    if not known.issuperset(committee.node for committee in committees):
        raise ModelError("a committee of boosting is at a node that is never reached; train the model again.")


def _committee(arrays: Arrays, k: int, widths: Ints, rounds: Ints) -> Committee:
    classes = slice(*arrays["class_offsets"][k : k + 2])
    made = slice(*arrays["round_offsets"][k : k + 2])
    start = int(widths[:k] @ rounds[:k])
    shape = (int(rounds[k]), int(widths[k]))
    votes = [arrays[name][start : start + shape[0] * shape[1]].reshape(shape) for name in ("absent", "present")]
    others = [arrays[name][made] for name in ("z", "normalizers")]
    return Committee(int(arrays["committee_nodes"][k]), arrays["classes"][classes], arrays["pivots"][made], *votes, *others)


def _lengths(offsets: Ints, n: int, total: int) -> Ints:
    lengths: Ints = np.diff(offsets)
    if len(offsets) != n + 1 or offsets[0] != 0 or offsets[-1] != total or np.any(lengths < 0):
        raise ModelError("the committees of boosting have shapes that do not fit together; train the model again.")
    return lengths


def _check_range(values: Ints, low: int, end: int, what: str) -> None:
    if len(values) and (values.min() < low or values.max() >= end):
        raise ModelError(f"{what} of boosting lies outside {low} to {end - 1}; train the model again.")
