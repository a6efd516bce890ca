"""The named systems: each is one row that joins features, a learner and a decision rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ramify.decisions import Best, DecisionRule, Descend, IsotonicSmooth, MinimizeHLoss, SCut, Sign, TopDown
from ramify.errors import InputError, suggest
from ramify.features import Vectorizer
from ramify.learners import (
    AdaBoostMH,
    BayesianLogistic,
    HierarchicalSVM,
    Learner,
    MultinomialNaiveBayes,
    NodeClassifiers,
    OneVsRestLogistic,
    OneVsRestSVM,
    OrthogonalTransfer,
    PachinkoNaiveBayes,
    RecursiveLogistic,
    RecursiveSVM,
    ShrinkageNaiveBayes,
    TopDownSVM,
    TreeBoostMH,
)


@dataclass(frozen=True, slots=True)
class System:
    """One way to classify text into a taxonomy.

    vectorizer, learner, decision: make a new, unfitted part each.
    several: makes the rule that is used instead where documents have several labels; None where one label is all it gives.
    needs_tree: whether a DAG is refused.
    """

    name: str
    summary: str
    source: str
    vectorizer: Callable[[], Any]
    learner: Callable[[], Learner]
    decision: Callable[[], DecisionRule]
    several: Callable[[], DecisionRule] | None = None
    needs_tree: bool = False

    @property
    def several_labels(self) -> bool:
        """Whether an answer may hold more than one label."""
        return self.several is not None


def _tf_idf() -> Vectorizer:
    return Vectorizer(weighting="tf-idf", sublinear_tf=True)


def _counts() -> Vectorizer:
    return Vectorizer(weighting="counts")


def _presence() -> Vectorizer:
    return Vectorizer(weighting="binary")


def _cut_by_node() -> SCut:
    return SCut(at_least_one=True)


def _smoothing() -> IsotonicSmooth:
    return IsotonicSmooth(at_least_one=True)


_ROWS = (
    System(
        name="nb",
        summary="multinomial naive Bayes with Laplace smoothing, best labelled node",
        source="McCallum et al. 1998",
        vectorizer=_counts,
        learner=MultinomialNaiveBayes,
        decision=Best,
    ),
    System(
        name="shrinkage-nb",
        summary="naive Bayes whose word probabilities are drawn to those of the nodes above, best labelled node",
        source="McCallum et al. 1998",
        vectorizer=_counts,
        learner=ShrinkageNaiveBayes,
        decision=Best,
        needs_tree=True,
    ),
    System(
        name="pachinko-nb",
        summary="naive Bayes from the top down, siblings against each other",
        source="Koller & Sahami 1997",
        vectorizer=_counts,
        learner=PachinkoNaiveBayes,
        decision=Descend,
        needs_tree=True,
    ),
    System(
        name="svm",
        summary="flat support vector machines, one against the rest",
        source="Gopal & Yang 2013",
        vectorizer=_tf_idf,
        learner=OneVsRestSVM,
        decision=Best,
        several=_cut_by_node,
    ),
    System(
        name="lr",
        summary="flat logistic regression, one against the rest",
        source="Gopal & Yang 2013",
        vectorizer=_tf_idf,
        learner=OneVsRestLogistic,
        decision=Best,
        several=_cut_by_node,
    ),
    System(
        name="td-svm",
        summary="support vector machines from the top down, siblings against each other",
        source="Gopal & Yang 2013",
        vectorizer=_tf_idf,
        learner=TopDownSVM,
        decision=Descend,
        needs_tree=True,
    ),
    System(
        name="hr-svm",
        summary="support vector machines whose weights are drawn to those of the parent",
        source="Gopal & Yang 2013",
        vectorizer=_tf_idf,
        learner=RecursiveSVM,
        decision=Best,
        several=_cut_by_node,
    ),
    System(
        name="hr-lr",
        summary="logistic regression whose weights are drawn to those of the parent",
        source="Gopal & Yang 2013",
        vectorizer=_tf_idf,
        learner=RecursiveLogistic,
        decision=Best,
        several=_cut_by_node,
    ),
    System(
        name="hsvm",
        summary="one large-margin model of whole paths, all classes against each other",
        source="Cai & Hofmann 2004",
        vectorizer=_tf_idf,
        learner=HierarchicalSVM,
        decision=Best,
        needs_tree=True,
    ),
    System(
        name="ot",
        summary="machines from the top down, drawn to be orthogonal to those above them",
        source="Zhou et al. 2011",
        vectorizer=_tf_idf,
        learner=OrthogonalTransfer,
        decision=Descend,
        needs_tree=True,
    ),
    System(
        name="hblr",
        summary="Bayesian logistic regression around the weights of the parent, by how much is learnt as well",
        source="Gopal et al. 2012",
        vectorizer=_tf_idf,
        learner=BayesianLogistic,
        decision=Best,
        needs_tree=True,
    ),
    System(
        name="h-svm",
        summary="a support vector machine at every node among its parent's documents, from the top down",
        source="Cesa-Bianchi et al. 2006",
        vectorizer=_tf_idf,
        learner=NodeClassifiers,
        decision=TopDown,
        several=TopDown,
        needs_tree=True,
    ),
    System(
        name="b-svm",
        summary="the same machines, and the label set with the least expected H-loss",
        source="Cesa-Bianchi et al. 2006",
        vectorizer=_tf_idf,
        learner=NodeClassifiers,
        decision=MinimizeHLoss,
        several=MinimizeHLoss,
        needs_tree=True,
    ),
    System(
        name="adaboost-mh",
        summary="boosted stumps on the presence of words, all labelled nodes at once",
        source="Esuli et al. 2008",
        vectorizer=_presence,
        learner=AdaBoostMH,
        decision=Best,
        several=Sign,
    ),
    System(
        name="treeboost-mh",
        summary="boosted stumps among the children of every node, from the top down",
        source="Esuli et al. 2008",
        vectorizer=_presence,
        learner=TreeBoostMH,
        decision=Best,
        several=TopDown,
        needs_tree=True,
    ),
    System(
        name="isotonic-svm",
        summary="independent support vector machines at all nodes, made consistent by isotonic smoothing",
        source="Punera & Ghosh 2008",
        vectorizer=_tf_idf,
        learner=partial(NodeClassifiers, negatives="all", calibration="platt"),
        decision=_smoothing,
        several=_smoothing,
        needs_tree=True,
    ),
    System(
        name="isotonic-nb",
        summary="independent naive Bayes classifiers at all nodes, made consistent by isotonic smoothing",
        source="Punera & Ghosh 2008",
        vectorizer=_counts,
        learner=partial(NodeClassifiers, base="nb", negatives="all", calibration="isotonic"),
        decision=_smoothing,
        several=_smoothing,
        needs_tree=True,
    ),
)

SYSTEMS: dict[str, System] = {row.name: row for row in _ROWS}


def find_system(name: str) -> System:
    """The row of a system.

    >>> find_system("nb").source
    'McCallum et al. 1998'
    """
    if name not in SYSTEMS:
        raise InputError(f"system {name!r} is unknown; the systems are {', '.join(SYSTEMS)}.{suggest(str(name), SYSTEMS)}")
    return SYSTEMS[name]
