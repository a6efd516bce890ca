"""The experiments of the papers, each a study that runs on the data at hand and compares what comes out with the paper."""

from ramify.papers.registry import find_study, study_names
from ramify.papers.running import Reproduction, reproduce
from ramify.papers.study import Part, Run, Study

__all__ = ["Part", "Reproduction", "Run", "Study", "find_study", "reproduce", "study_names"]
