"""Boosting of decision stumps on the presence of terms: AdaBoost.MH over all classes, and TreeBoost.MH node by node."""

from ramify.learners.boosting.adaboost import AdaBoostMH
from ramify.learners.boosting.committee import Committee
from ramify.learners.boosting.treeboost import TreeBoostMH

__all__ = ["AdaBoostMH", "Committee", "TreeBoostMH"]
