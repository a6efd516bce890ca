"""The experiments of the papers, each a study that runs on the data at hand and compares what comes out with the paper."""

from experiments.registry import find_study, study_names
from experiments.running import Reproduction, reproduce
from experiments.study import Part, Run, Study

__all__ = ["Part", "Reproduction", "Run", "Study", "find_study", "reproduce", "study_names"]
