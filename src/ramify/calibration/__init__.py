"""From scores to probabilities: one curve per classifier, or one model of all nodes of a taxonomy."""

from ramify.calibration.curves import KINDS, Calibration, check_kind, fit_calibration, fit_sigmoid
from ramify.calibration.nested_logit import LogPotentials
from ramify.calibration.tree_calibration import (
    CALIBRATIONS,
    MultiLabelCalibration,
    TreeCalibration,
    calibration_class,
)

__all__ = ["CALIBRATIONS", "KINDS", "Calibration", "LogPotentials", "MultiLabelCalibration"]
__all__ += ["TreeCalibration", "calibration_class", "check_kind", "fit_calibration", "fit_sigmoid"]
