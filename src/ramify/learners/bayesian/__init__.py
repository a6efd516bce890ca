"""Logistic regression over a hierarchy with a distribution over its weights, learnt by raising a bound on the evidence."""

from ramify.learners.bayesian.learner import BayesianLogistic

__all__ = ["BayesianLogistic"]
