"""What commands, the server and Python users call: train, evaluate, predict, compare, tune, audit, update."""

from ramify.workflows.auditing import Audit, LabelIssue, audit
from ramify.workflows.comparing import compare
from ramify.workflows.comparison import Comparison, Recommendation, recommend
from ramify.workflows.file_predictions import FilesPredicted, predict_files
from ramify.workflows.many_files import read_sharded
from ramify.workflows.predict_stream import Prediction, predict_rows, predict_vectors, score_rows
from ramify.workflows.predictor import PredictOptions, Predictor
from ramify.workflows.training import TrainResult, evaluate, train
from ramify.workflows.updating import UpdateResult, update

__all__ = [
    "Audit",
    "Comparison",
    "FilesPredicted",
    "LabelIssue",
    "PredictOptions",
    "Prediction",
    "Predictor",
    "Recommendation",
    "TrainResult",
    "UpdateResult",
    "audit",
    "compare",
    "evaluate",
    "predict_files",
    "predict_rows",
    "predict_vectors",
    "read_sharded",
    "recommend",
    "score_rows",
    "train",
    "update",
]
