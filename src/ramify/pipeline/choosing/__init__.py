"""Choosing features, system, cost, rule and thresholds by cross-validation, within a time."""

from ramify.pipeline.choosing.candidates import Candidate, Fixed
from ramify.pipeline.choosing.choice import Choice, Trial, Untried
from ramify.pipeline.choosing.choose import Chosen, train_best
from ramify.pipeline.choosing.sureness import Sureness

__all__ = ["Candidate", "Choice", "Chosen", "Fixed", "Sureness", "Trial", "Untried", "train_best"]
