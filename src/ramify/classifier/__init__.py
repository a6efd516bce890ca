"""TextClassifier: text in, label paths out. Features, a learner and a decision rule over one taxonomy, in one estimator."""

from typing import TYPE_CHECKING

from ramify.lazy import lazy_names

if TYPE_CHECKING:
    from ramify.classifier.explanation import Explanation, NodeExplanation, Step, explain_nodes
    from ramify.classifier.fitting import make_rule
    from ramify.classifier.loading import load
    from ramify.classifier.text_classifier import TextClassifier

__all__ = ["Explanation", "NodeExplanation", "Step", "TextClassifier", "explain_nodes", "load", "make_rule"]

__getattr__, __dir__ = lazy_names(__name__)
