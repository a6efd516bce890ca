"""What most users touch: a classifier from texts to label paths, its training from a corpus and its model directory."""

from ramify.pipeline.answer_files import FilesAnswered, classify_files
from ramify.pipeline.answering import Answering, Wish
from ramify.pipeline.auditing import Audit, Finding, audit
from ramify.pipeline.classifier import TextClassifier
from ramify.pipeline.comparing import compare
from ramify.pipeline.comparison import Comparison
from ramify.pipeline.explaining import Explanation, NodeView, Step, look
from ramify.pipeline.loading import load
from ramify.pipeline.recommending import Recommendation, recommend
from ramify.pipeline.rules import make_rule
from ramify.pipeline.sharded import read_sharded
from ramify.pipeline.streaming import Answer, classify_rows, classify_vectors, score_rows
from ramify.pipeline.training import Trained, evaluate, train
from ramify.pipeline.updating import Updated, update

__all__ = [
    "Answer",
    "Answering",
    "Audit",
    "Comparison",
    "Explanation",
    "FilesAnswered",
    "Finding",
    "NodeView",
    "Recommendation",
    "Step",
    "TextClassifier",
    "Trained",
    "Updated",
    "Wish",
    "audit",
    "classify_files",
    "classify_rows",
    "classify_vectors",
    "compare",
    "evaluate",
    "load",
    "look",
    "make_rule",
    "read_sharded",
    "recommend",
    "score_rows",
    "train",
    "update",
]
