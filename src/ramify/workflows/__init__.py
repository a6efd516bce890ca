"""What commands, the server and Python users call: train, evaluate, predict, compare, tune, audit, update."""

from typing import TYPE_CHECKING

from ramify.lazy import lazy_names

if TYPE_CHECKING:
    from ramify.workflows.auditing.audit import Audit, audit
    from ramify.workflows.auditing.issue_details import LabelIssue
    from ramify.workflows.comparing import compare
    from ramify.workflows.comparison import Comparison, Recommendation, recommend
    from ramify.workflows.evaluation import PredictionError, evaluate, evaluate_with_errors
    from ramify.workflows.explaining import ExplainResult, explain
    from ramify.workflows.file_predictions import FilesPredicted, predict_files
    from ramify.workflows.many_files import read_sharded
    from ramify.workflows.predict_stream import Prediction, predict_rows, predict_vectors, score_rows
    from ramify.workflows.predicting import PredictResult, predict
    from ramify.workflows.predictor import PredictOptions, Predictor
    from ramify.workflows.reading import ReadOptions
    from ramify.workflows.training import FeatureOptions, TrainOptions, TrainResult, TuneOptions, train, train_classifier
    from ramify.workflows.tuning.result import TuningResult
    from ramify.workflows.tuning.tune import tune
    from ramify.workflows.updating import PartialFitResult, UpdateResult, update

__all__ = [
    "Audit",
    "Comparison",
    "ExplainResult",
    "FeatureOptions",
    "FilesPredicted",
    "LabelIssue",
    "PartialFitResult",
    "PredictOptions",
    "PredictResult",
    "Prediction",
    "PredictionError",
    "Predictor",
    "ReadOptions",
    "Recommendation",
    "TrainOptions",
    "TrainResult",
    "TuneOptions",
    "TuningResult",
    "UpdateResult",
    "audit",
    "compare",
    "evaluate",
    "evaluate_with_errors",
    "explain",
    "predict",
    "predict_files",
    "predict_rows",
    "predict_vectors",
    "read_sharded",
    "recommend",
    "score_rows",
    "train",
    "train_classifier",
    "tune",
    "update",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__)
