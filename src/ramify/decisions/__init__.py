"""Decision rules: from scores S to consistent label sets Y."""

from ramify.decisions.best import Best, best
from ramify.decisions.contract import DecisionRule, LearnableRule
from ramify.decisions.descend import Descend, descend
from ramify.decisions.per_document import PredictedCut, RCut
from ramify.decisions.thresholds import PCut, SCut

__all__ = ["Best", "DecisionRule", "Descend", "LearnableRule", "PCut", "PredictedCut", "RCut", "SCut", "best", "descend"]
