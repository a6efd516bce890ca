"""Choosing features, system, cost, rule and thresholds by cross-validation, within a time."""

from ramify.workflows.tuning.candidates import Candidate, Fixed
from ramify.workflows.tuning.result import Trial, TuningResult, Untried
from ramify.workflows.tuning.trials import Sureness
from ramify.workflows.tuning.tune import Chosen, tune

__all__ = ["Candidate", "Chosen", "Fixed", "Sureness", "Trial", "TuningResult", "Untried", "tune"]
