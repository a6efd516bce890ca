"""Decision rules: from scores S to consistent label sets Y."""

from ramify.decisions.bayes import MinimizeHLoss, minimize_h_loss
from ramify.decisions.best import Best, best
from ramify.decisions.contract import DecisionRule, LearnableRule, RefiningRule
from ramify.decisions.descend import Descend, descend
from ramify.decisions.isotonic import isotonic_smooth
from ramify.decisions.per_document import PredictedCut, RCut
from ramify.decisions.promises import PROMISES, Promise, learn_promise
from ramify.decisions.sign import Sign, sign
from ramify.decisions.smoothing import IsotonicSmooth
from ramify.decisions.thresholds import PCut, SCut
from ramify.decisions.top_down import TopDown, top_down

__all__ = [
    "PROMISES",
    "Best",
    "DecisionRule",
    "Descend",
    "IsotonicSmooth",
    "LearnableRule",
    "MinimizeHLoss",
    "PCut",
    "PredictedCut",
    "Promise",
    "RCut",
    "RefiningRule",
    "SCut",
    "Sign",
    "TopDown",
    "best",
    "descend",
    "isotonic_smooth",
    "learn_promise",
    "minimize_h_loss",
    "sign",
    "top_down",
]
