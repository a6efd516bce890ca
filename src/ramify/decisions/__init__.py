"""Decision rules: from scores S to consistent label sets Y."""

from ramify.decisions.best import Best, best
from ramify.decisions.contract import DecisionRule

__all__ = ["Best", "DecisionRule", "best"]
