"""Learners: from the document matrix X and labels to scores S over the nodes of a taxonomy."""

from ramify.learners.bayesian import BayesianLogistic
from ramify.learners.boosting import AdaBoostMH, Committee, TreeBoostMH
from ramify.learners.branch_machines import BranchMachines
from ramify.learners.branches import BranchLearner
from ramify.learners.contract import Learner
from ramify.learners.counting import CountingLearner
from ramify.learners.naive_bayes import MultinomialNaiveBayes
from ramify.learners.nodes import NodeClassifiers
from ramify.learners.one_vs_rest import OneVsRestLogistic, OneVsRestSVM
from ramify.learners.orthogonal_transfer import OrthogonalTransfer
from ramify.learners.pachinko import PachinkoNaiveBayes
from ramify.learners.recursive import RecursiveLogistic, RecursiveSVM
from ramify.learners.shrinkage import ShrinkageNaiveBayes
from ramify.learners.structured import HierarchicalSVM
from ramify.learners.top_down import TopDownSVM

__all__ = [
    "AdaBoostMH",
    "BayesianLogistic",
    "BranchLearner",
    "BranchMachines",
    "Committee",
    "CountingLearner",
    "HierarchicalSVM",
    "Learner",
    "MultinomialNaiveBayes",
    "NodeClassifiers",
    "OneVsRestLogistic",
    "OneVsRestSVM",
    "OrthogonalTransfer",
    "PachinkoNaiveBayes",
    "RecursiveLogistic",
    "RecursiveSVM",
    "ShrinkageNaiveBayes",
    "TopDownSVM",
    "TreeBoostMH",
]
