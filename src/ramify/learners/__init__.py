"""Learners: from the document matrix X and labels to scores S over the nodes of a taxonomy."""

from ramify.learners.contract import Learner
from ramify.learners.naive_bayes import MultinomialNaiveBayes

__all__ = ["Learner", "MultinomialNaiveBayes"]
