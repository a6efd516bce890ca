"""From scores to probabilities: one curve a classifier, or one model of all nodes of a taxonomy."""

from ramify.calibration.consistent import (
    CALIBRATIONS,
    ClosureCalibration,
    SeveralCalibration,
    TreeCalibration,
    calibration_for,
)
from ramify.calibration.curves import KINDS, Calibration, check_kind, fit_calibration, fit_sigmoid
from ramify.calibration.energies import Energies

__all__ = [
    "CALIBRATIONS",
    "KINDS",
    "Calibration",
    "ClosureCalibration",
    "Energies",
    "SeveralCalibration",
    "TreeCalibration",
    "calibration_for",
    "check_kind",
    "fit_calibration",
    "fit_sigmoid",
]
