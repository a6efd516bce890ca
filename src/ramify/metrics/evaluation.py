"""All figures of one evaluation as plain values, by level and branch too: what the terminal, the page and ``--json`` show."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ramify.errors import InputError, suggest
from ramify.metrics import flat, hierarchical
from ramify.metrics.calibration import calibration_errors, expected_calibration_error, prediction_calibration_error, reliability
from ramify.metrics.flat import Counts, NodeScores, f1, label_pair, mean, precision_recall_f1, ratio
from ramify.metrics.hierarchical import Costs, h_loss, h_loss_by_depth, h_loss_by_node, modified_f1
from ramify.results import Result
from ramify.taxonomy import Taxonomy, ancestor_matrix, most_specific

MAX_DENSE = 1 << 25  # document–node pairs; ranking and calibration need a dense matrix
MAX_CONFUSIONS = 50
NODE_FIGURES = ("support", "predicted", "precision", "recall", "f1")
HIERARCHIES = ("original", "modified")
OPTIONAL = ("modified", "calibration", "guarantees")


@dataclass(frozen=True, slots=True, repr=False)
class Report(Result):
    """The figures of one evaluation.

    figures: single numbers by name. levels, branches, nodes, confusions, reliability: tables, one dictionary per row.
    distances: the number of documents at each tree distance from the truth. notes: what was left out, and why.
    modified: F1 on the modified hierarchy, for all its leaves, the original ones and the dummies; empty by default.
    calibration: calibration errors of each level, also before calibration.
    guarantees: for some risks, the guaranteed and the achieved rate; empty where there is no guarantee.
    """

    documents: int
    figures: dict[str, float]
    levels: list[dict[str, Any]]
    branches: list[dict[str, Any]]
    nodes: list[dict[str, Any]]
    confusions: list[dict[str, Any]]
    distances: dict[int, int]
    reliability: list[dict[str, Any]]
    notes: list[str]
    modified: list[dict[str, Any]] = field(default_factory=list)
    calibration: list[dict[str, Any]] = field(default_factory=list)
    guarantees: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON-ready values."""
        return {name: value for name, value in asdict(self).items() if value or name not in OPTIONAL}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        """Make a report from what :meth:`as_dict` gave, also after a trip through JSON; a ValueError where it is none."""
        made = cls(**{**values, "distances": {int(steps): int(n) for steps, n in values["distances"].items()}})
        tables = [made.levels, made.branches, made.nodes, made.confusions, made.reliability]
        tables += [made.modified, made.calibration, made.guarantees]
        is_plain = isinstance(made.documents, int) and isinstance(made.figures, dict) and isinstance(made.notes, list)
        is_plain = is_plain and all(isinstance(table, list) and all(map(_is_flat, table)) for table in tables)
        if not is_plain or not _is_flat(made.figures):
            raise ValueError("not a report")
        if not all(isinstance(row["name"], str) and all(map(_is_number, map(row.get, NODE_FIGURES))) for row in made.nodes):
            raise ValueError("not the figures of nodes")
        return made


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_flat(row: Any) -> bool:
    """Whether a row holds only strings and numbers."""
    return isinstance(row, dict) and all(value is None or isinstance(value, (str, int, float)) for value in row.values())


def make_report(
    Y_true: Any,
    Y_pred: Any,
    taxonomy: Taxonomy,
    probabilities: Any = None,
    hierarchy: str = "original",
    uncalibrated: Any = None,
    costs: Costs = None,
) -> Report:
    """Evaluate predictions against the truth.

    probabilities: add ranking and calibration. hierarchy: "modified" adds F1 on the leaves of the modified hierarchy.
    uncalibrated: probabilities before calibration, to compare. costs: of the H-loss, to report beside those of 1 everywhere and
    of 1 / the number of siblings.
    """
    check_hierarchy(hierarchy)
    pair = Y_true, Y_pred, taxonomy
    figures, notes = _decision_figures(*pair), []
    if costs is not None:
        figures["h_loss_own_costs"] = h_loss(*pair, costs=costs)
    bins, calibration = list[dict[str, Any]](), list[dict[str, Any]]()
    if probabilities is None:
        notes.append("no probabilities were given, so there is no ranking and no calibration")
    else:
        added, bins, calibration = _probability_figures(*pair, probabilities, uncalibrated)
        figures |= added
    losses, distance = h_loss_by_depth(*pair), flat.tree_distance(*pair)
    confusions, titles = [], taxonomy.titles
    for found in sibling_confusion(*pair)[:MAX_CONFUSIONS]:
        row: dict[str, Any] = {"parent": " > ".join(taxonomy.path_of(found.true)[:-1]), "true": titles[found.true]}
        confusions.append({**row, "predicted": titles[found.predicted], "count": found.count})
    modified = asdict(modified_f1(*pair)) if hierarchy == "modified" else {}
    return Report(
        documents=len(distance),
        figures=figures,
        levels=[{**asdict(row), "h_loss": float(losses[row.key])} for row in by_level(*pair)],
        branches=[{"name": taxonomy.titles[row.key], **asdict(row)} for row in by_subtree(*pair)],
        nodes=_node_rows(*pair),
        confusions=confusions,
        distances={int(d): int(n) for d, n in zip(*np.unique(distance, return_counts=True), strict=True)},
        reliability=bins,
        notes=notes,
        modified=[{"over": name, **row} for name, row in modified.items()],
        calibration=calibration,
    )


def check_hierarchy(name: str) -> None:
    """Refuse an unknown hierarchy."""
    if name not in HIERARCHIES:
        raise InputError(f"hierarchy is {name!r}; give 'original' or 'modified'.{suggest(str(name), HIERARCHIES)}")


def fits_dense(n_documents: int, taxonomy: Taxonomy) -> bool:
    """Whether probabilities of so many documents fit into one dense matrix."""
    return n_documents * len(taxonomy) <= MAX_DENSE


def _decision_figures(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> dict[str, float]:
    pair = Y_true, Y_pred, taxonomy
    distance = flat.tree_distance(*pair)
    of_nodes = (hierarchical.hierarchical_precision, hierarchical.hierarchical_recall, hierarchical.hierarchical_f1)
    figures = {metric.__name__: metric(*pair) for metric in (flat.accuracy, *of_nodes)}
    overs: tuple[flat.Over, ...] = ("own", "leaves", "nodes")
    for over in overs:
        figures[f"micro_f1_{over}"] = flat.micro_f1(*pair, over=over)
        figures[f"macro_f1_{over}"] = flat.macro_f1(*pair, over=over, empty="skip")
    figures |= {"h_loss": h_loss(*pair), "h_loss_siblings": h_loss(*pair, costs="siblings")}
    figures["mean_distance_of_errors"] = flat.mean(distance[distance > 0].astype(np.float64), of_nothing=0.0)
    of_documents = (flat.document_precision, flat.document_recall, flat.document_f1)
    return figures | {metric.__name__: metric(*pair) for metric in of_documents}


def _probability_figures(
    Y_true: Any, Y_pred: Any, taxonomy: Taxonomy, probabilities: Any, uncalibrated: Any
) -> tuple[dict[str, float], list[dict[str, Any]], list[dict[str, Any]]]:
    """Figures of ranking and calibration, reliability in bins, and calibration errors of each level."""
    given = Y_true, probabilities, taxonomy
    auc = flat.document_auc(*given)
    leaves = np.where(taxonomy.is_leaf, probabilities, np.nan)
    figures = {"document_auc": float(np.nanmean(auc))} if np.isfinite(auc).any() else {}
    figures |= {f"leaf_precision_at_{k}": flat.precision_at_k(Y_true, leaves, taxonomy, k) for k in (1, 3, 5)}
    figures["expected_calibration_error"] = expected_calibration_error(*given)
    figures["prediction_calibration_error"] = prediction_calibration_error(Y_true, Y_pred, probabilities, taxonomy)
    bins: list[dict[str, Any]] = []
    for level in reliability(*given):
        for i in np.flatnonzero(level.count):
            predicted, observed = float(level.mean_probability[i]), float(level.fraction_true[i])
            bins.append({"depth": level.depth, "count": int(level.count[i]), "predicted": predicted, "observed": observed})
    rows = [asdict(level) for level in calibration_errors(*given)]
    if uncalibrated is not None:
        for row, before in zip(rows, calibration_errors(Y_true, uncalibrated, taxonomy), strict=True):
            row |= {"pairs_uncalibrated": before.pairs, "top_label_uncalibrated": before.top_label}
    return figures, bins, rows


def _node_rows(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> list[dict[str, Any]]:
    """Nodes that occur; own_support is the number of documents whose most specific label it is."""
    scores = flat.precision_recall_f1(Y_true, Y_pred, taxonomy)
    own = np.bincount(most_specific(Y_true, taxonomy).indices, minlength=len(taxonomy))
    losses, rows = h_loss_by_node(Y_true, Y_pred, taxonomy), []
    for node in np.flatnonzero(scores.support + scores.predicted).tolist():
        row: dict[str, Any] = {"name": taxonomy.names[node], "path": taxonomy.show(node), "depth": int(taxonomy.depth[node])}
        row |= {"is_leaf": bool(taxonomy.is_leaf[node]), "support": int(scores.support[node]), "own_support": int(own[node])}
        row |= {"predicted": int(scores.predicted[node]), "precision": float(scores.precision[node])}
        row |= {"recall": float(scores.recall[node]), "f1": float(scores.f1[node]), "h_loss": float(losses[node])}
        rows.append(row)
    return rows


@dataclass(frozen=True, slots=True)
class GroupScores:
    """Scores of a group of nodes: micro over all its document–node pairs, macro over its nodes that occur."""

    key: int
    nodes: int
    support: int
    precision: float
    recall: float
    f1: float
    macro_f1: float


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often `true` was missed while its sibling `predicted` was predicted wrongly."""

    true: int
    predicted: int
    count: int


def by_level(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> list[GroupScores]:
    """Scores of the nodes at each depth, roots first; `key` is the depth."""
    scores = precision_recall_f1(Y_true, Y_pred, taxonomy)
    return [_group(depth, np.flatnonzero(taxonomy.depth == depth), scores) for depth in range(taxonomy.n_levels)]


def by_subtree(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> list[GroupScores]:
    """Scores of each root with everything below it; `key` is the root."""
    scores = precision_recall_f1(Y_true, Y_pred, taxonomy)
    roots = taxonomy.roots
    below = ancestor_matrix(taxonomy)[:, roots].tocsc()  # nodes × roots: the roots above each node, itself included
    branches = (below.indices[below.indptr[r] : below.indptr[r + 1]] for r in range(len(roots)))
    return [_group(int(root), nodes, scores) for root, nodes in zip(roots, branches, strict=True)]


def sibling_confusion(Y_true: Any, Y_pred: Any, taxonomy: Taxonomy) -> list[Confusion]:
    """Pairs of siblings confused with each other, most frequent first; all roots are siblings."""
    T, P = label_pair(Y_true, Y_pred, taxonomy)
    pairs: Counter[tuple[int, int]] = Counter()
    for d in range(T.shape[0]):
        true = set(T.indices[T.indptr[d] : T.indptr[d + 1]].tolist())
        predicted = set(P.indices[P.indptr[d] : P.indptr[d + 1]].tolist())
        wrong_below: dict[int, list[int]] = {}
        for node in predicted - true:
            for parent in taxonomy.parents_of(node).tolist() or [-1]:
                wrong_below.setdefault(parent, []).append(node)
        missed = ((node, parent) for node in true - predicted for parent in taxonomy.parents_of(node).tolist() or [-1])
        pairs.update({(node, other) for node, parent in missed for other in wrong_below.get(parent, ())})
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    return [Confusion(a, b, count) for (a, b), count in ordered]


def _group(key: int, nodes: Counts, scores: NodeScores) -> GroupScores:
    support, predicted, correct = (counts[nodes] for counts in (scores.support, scores.predicted, scores.correct))
    true, given, right = int(support.sum()), int(predicted.sum()), int(correct.sum())
    precision, recall = float(ratio(right, given, true)), float(ratio(right, true, given))
    macro = mean(scores.f1[nodes][(support + predicted) > 0], of_nothing=1.0)
    return GroupScores(key, len(nodes), true, precision, recall, float(f1(right, true, given)), macro)
