"""Measures of how well label sets over a taxonomy agree; ``docs/metrics.md`` defines each of them."""

from ramify.metrics.by_document import document_f1, document_precision, document_recall, tree_distance
from ramify.metrics.calibration import (
    ReliabilityBins,
    answer_calibration_error,
    expected_calibration_error,
    reliability,
)
from ramify.metrics.flat import NodeScores, accuracy, macro_f1, micro_f1, precision_recall_f1
from ramify.metrics.h_loss import h_loss, h_loss_by_depth, h_loss_by_node
from ramify.metrics.hierarchical import hierarchical_f1, hierarchical_precision, hierarchical_recall
from ramify.metrics.ranking import document_auc, precision_at_k
from ramify.metrics.report import Report, make_report
from ramify.metrics.tables import Confusion, GroupScores, by_level, by_subtree, sibling_confusion

__all__ = [
    "Confusion",
    "GroupScores",
    "NodeScores",
    "ReliabilityBins",
    "Report",
    "accuracy",
    "answer_calibration_error",
    "by_level",
    "by_subtree",
    "document_auc",
    "document_f1",
    "document_precision",
    "document_recall",
    "expected_calibration_error",
    "h_loss",
    "h_loss_by_depth",
    "h_loss_by_node",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "macro_f1",
    "make_report",
    "micro_f1",
    "precision_at_k",
    "precision_recall_f1",
    "reliability",
    "sibling_confusion",
    "tree_distance",
]
