"""What most users touch: a classifier from texts to label paths, its training from a corpus and its model directory."""

from ramify.pipeline.classifier import Explanation, TextClassifier
from ramify.pipeline.loading import load
from ramify.pipeline.streaming import classify_rows
from ramify.pipeline.training import Trained, evaluate, train

__all__ = ["Explanation", "TextClassifier", "Trained", "classify_rows", "evaluate", "load", "train"]
