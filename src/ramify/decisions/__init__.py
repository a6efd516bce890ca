"""Decision rules: from scores S to consistent label sets Y."""

from ramify.decisions.base import DecisionRule, FittableRule, RefiningRule
from ramify.decisions.best import Best, best
from ramify.decisions.conformal import CONFORMAL_KINDS, ConformalPredictor, fit_conformal
from ramify.decisions.h_loss import MinimizeHLoss, minimize_h_loss
from ramify.decisions.isotonic import IsotonicSmooth, isotonic_smooth
from ramify.decisions.thresholds import GCut, PCut, PredictedCut, RCut, SCut
from ramify.decisions.top_down import Descend, Sign, TopDown, descend, sign, top_down

__all__ = ["CONFORMAL_KINDS", "Best", "ConformalPredictor", "DecisionRule", "Descend", "FittableRule", "GCut"]
__all__ += [
    "IsotonicSmooth",
    "MinimizeHLoss",
    "PCut",
    "PredictedCut",
    "RCut",
    "RefiningRule",
    "SCut",
    "Sign",
    "TopDown",
    "best",
]
__all__ += ["descend", "fit_conformal", "isotonic_smooth", "minimize_h_loss", "sign", "top_down"]
