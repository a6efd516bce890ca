"""Tuning: features, system, C, decision rule and thresholds by cross-validation, within a time limit."""

from ramify.workflows.tuning.candidates import Candidate, Fixed
from ramify.workflows.tuning.result import AgainstDefault, TrialSummary, TuningResult, Untried
from ramify.workflows.tuning.trials import WinProbability
from ramify.workflows.tuning.tune import Tuned, tune

__all__ = ["AgainstDefault", "Candidate", "Fixed", "TrialSummary", "Tuned", "TuningResult", "Untried", "WinProbability"]
__all__ += ["tune"]
