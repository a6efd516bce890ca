"""What most users touch: a classifier from texts to label paths, its training from a corpus and its model directory."""

from ramify.pipeline.classifier import TextClassifier
from ramify.pipeline.explaining import Explanation
from ramify.pipeline.loading import load
from ramify.pipeline.streaming import Answer, classify_rows, classify_vectors
from ramify.pipeline.training import Trained, evaluate, train

__all__ = [
    "Answer",
    "Explanation",
    "TextClassifier",
    "Trained",
    "classify_rows",
    "classify_vectors",
    "evaluate",
    "load",
    "train",
]
