"""Learners: from the document matrix X and labels to scores S over the nodes of a taxonomy."""

from ramify.learners.base import Learner
from ramify.learners.bayesian.learner import BayesianLogistic
from ramify.learners.boosting.adaboost import AdaBoostMH
from ramify.learners.boosting.committee import Committee
from ramify.learners.boosting.treeboost import TreeBoostMH
from ramify.learners.ensemble import Ensemble
from ramify.learners.linear.path_svm import PathSVM
from ramify.learners.linear.recursive import OneVsRestLogistic, OneVsRestSVM, RecursiveLogistic, RecursiveSVM
from ramify.learners.linear.top_down import TopDownLinear, TopDownSVM
from ramify.learners.naive_bayes.multinomial import MultinomialNaiveBayes
from ramify.learners.naive_bayes.pachinko import PachinkoNaiveBayes
from ramify.learners.naive_bayes.shrinkage import ShrinkageNaiveBayes
from ramify.learners.naive_bayes.word_counts import WordCountLearner
from ramify.learners.node_classifiers import NodeClassifiers
from ramify.learners.scikit import ScikitLearner
from ramify.learners.structured.hsvm import HierarchicalSVM
from ramify.learners.structured.ot import OrthogonalTransfer
from ramify.learners.top_down_base import TopDownLearner

__all__ = [
    "AdaBoostMH",
    "BayesianLogistic",
    "Committee",
    "Ensemble",
    "HierarchicalSVM",
    "Learner",
    "MultinomialNaiveBayes",
    "NodeClassifiers",
    "OneVsRestLogistic",
    "OneVsRestSVM",
    "OrthogonalTransfer",
    "PachinkoNaiveBayes",
    "PathSVM",
    "RecursiveLogistic",
    "RecursiveSVM",
    "ScikitLearner",
    "ShrinkageNaiveBayes",
    "TopDownLearner",
    "TopDownLinear",
    "TopDownSVM",
    "TreeBoostMH",
    "WordCountLearner",
]
