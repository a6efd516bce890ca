"""Metrics of label sets over a taxonomy; ``docs/metrics.md`` defines each of them."""

from ramify.metrics.calibration import ReliabilityBins, expected_calibration_error, prediction_calibration_error, reliability
from ramify.metrics.evaluation import Confusion, GroupScores, Report, by_level, by_subtree, make_report, sibling_confusion
from ramify.metrics.flat import (
    NodeScores,
    accuracy,
    document_auc,
    document_f1,
    document_precision,
    document_recall,
    macro_f1,
    micro_f1,
    precision_at_k,
    precision_recall_f1,
    tree_distance,
)
from ramify.metrics.hierarchical import (
    LeafScores,
    ModifiedHierarchy,
    ModifiedScores,
    h_loss,
    h_loss_by_depth,
    h_loss_by_node,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    modified_f1,
    modified_hierarchy,
)
from ramify.metrics.resampling import (
    BootstrapDifference,
    MetricEstimate,
    compare_predictions,
    measure_predictions,
    paired_bootstrap,
)
from ramify.metrics.significance import (
    Significance,
    correct_p_values,
    macro_sign_test,
    proportions_test,
    rank_t_test,
    sign_test,
    t_test,
    wilcoxon_test,
)

__all__ = ["BootstrapDifference", "Confusion", "GroupScores", "LeafScores", "MetricEstimate", "ModifiedHierarchy"]
__all__ += ["ModifiedScores", "NodeScores", "ReliabilityBins", "Report", "Significance", "accuracy", "by_level", "by_subtree"]
__all__ += ["compare_predictions", "correct_p_values", "document_auc", "document_f1", "document_precision", "document_recall"]
__all__ += ["expected_calibration_error", "h_loss", "h_loss_by_depth", "h_loss_by_node", "hierarchical_f1"]
__all__ += ["hierarchical_precision", "hierarchical_recall", "macro_f1", "macro_sign_test", "make_report"]
__all__ += ["measure_predictions", "micro_f1", "modified_f1", "modified_hierarchy", "paired_bootstrap", "precision_at_k"]
__all__ += ["precision_recall_f1", "prediction_calibration_error", "proportions_test", "rank_t_test", "reliability"]
__all__ += ["sibling_confusion", "sign_test", "t_test", "tree_distance", "wilcoxon_test"]
