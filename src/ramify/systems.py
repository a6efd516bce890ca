"""The named systems: each is one row that joins features, a learner and a decision rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ramify import learners
from ramify.arguments import check_kind
from ramify.decisions import Best, DecisionRule, Descend, GCut, IsotonicSmooth, MinimizeHLoss, Sign, TopDown
from ramify.errors import InputError, suggest
from ramify.features import FeatureUnion, Vectorizer


@dataclass(frozen=True, slots=True)
class System:
    """One way to classify text into a taxonomy.

    vectorizer, learner, decision: make a new, unfitted part.
    multi_label_decision: makes the rule for multi-label documents; None where the system predicts one label only.
    """

    name: str
    summary: str
    source: str
    vectorizer: Callable[[], Any]
    learner: Callable[[], learners.Learner]
    decision: Callable[[], DecisionRule]
    multi_label_decision: Callable[[], DecisionRule] | None = None

    @property
    def is_multi_label(self) -> bool:
        """Whether a prediction may hold more than one label."""
        return self.multi_label_decision is not None

    @property
    def uses_main_parents(self) -> bool:
        """Whether learner or rule work over the main-parent tree of a DAG, rather than with all parents."""
        return self.learner().uses_main_parents or self.decision().uses_main_parents


_tf_idf = partial(Vectorizer, weighting="tf-idf", sublinear_tf=True)
_counts = partial(Vectorizer, weighting="counts")
_presence = partial(Vectorizer, weighting="binary")
_isotonic = partial(IsotonicSmooth, at_least_one=True)
_node_svms = partial(learners.NodeClassifiers, negatives="all", calibration="platt")
_node_nb = partial(learners.NodeClassifiers, base="nb", negatives="all", calibration="isotonic")

MCCALLUM, KOLLER, GOPAL = "McCallum et al. 1998", "Koller & Sahami 1997", "Gopal & Yang 2013"
CAI, ZHOU, GOPAL_2012 = "Cai & Hofmann 2004", "Zhou et al. 2011", "Gopal et al. 2012"
CESA_BIANCHI, ESULI, PUNERA = "Cesa-Bianchi et al. 2006", "Esuli et al. 2008", "Punera & Ghosh 2008"

DUMAIS = "after Dumais & Chen 2000"
DEFAULT_SYSTEM = "path-svm"

# fmt: off
_ROWS = (  # name, summary, source, vectorizer, learner, decision, decision for multi-label documents
    System("path-svm", "support vector machines at all nodes on words and characters, scores added along the path", DUMAIS,
           FeatureUnion, learners.PathSVM, Best, GCut),
    System("ensemble", "path-svm and shrinkage-nb on words and characters, scores added", f"{DUMAIS}; {MCCALLUM}",
           FeatureUnion, learners.Ensemble, Best, GCut),
    System("nb", "multinomial naive Bayes with Laplace smoothing, best labelled node", MCCALLUM,
           _counts, learners.MultinomialNaiveBayes, Best),
    System("shrinkage-nb", "naive Bayes with word probabilities shrunk towards the ancestors', best labelled node", MCCALLUM,
           _counts, learners.ShrinkageNaiveBayes, Best),
    System("pachinko-nb", "naive Bayes top-down, a classifier among the children of every node", KOLLER,
           _counts, learners.PachinkoNaiveBayes, Descend),
    System("svm", "flat support vector machines, one-vs-rest", GOPAL,
           _tf_idf, partial(learners.OneVsRestSVM, C="auto"), Best, GCut),
    System("lr", "flat logistic regression, one-vs-rest", GOPAL,
           _tf_idf, partial(learners.OneVsRestLogistic, C="auto"), Best, GCut),
    System("td-svm", "support vector machines top-down, a classifier among the children of every node", GOPAL,
           _tf_idf, learners.TopDownSVM, Descend),
    System("hr-svm", "support vector machines with weights regularized towards the parent's", GOPAL,
           _tf_idf, partial(learners.RecursiveSVM, C="auto"), Best, GCut),
    System("hr-lr", "logistic regression with weights regularized towards the parent's", GOPAL,
           _tf_idf, partial(learners.RecursiveLogistic, C="auto"), Best, GCut),
    System("hsvm", "one structured large-margin model of whole paths", CAI,
           _tf_idf, learners.HierarchicalSVM, Best),
    System("ot", "top-down classifiers regularized to be orthogonal to those of the ancestors", ZHOU,
           _tf_idf, learners.OrthogonalTransfer, Descend),
    System("hblr", "Bayesian logistic regression with a prior around the parent's weights and learnt variances", GOPAL_2012,
           _tf_idf, learners.BayesianLogistic, Best),
    System("h-svm", "a support vector machine per node, trained on its parent's documents, applied top-down", CESA_BIANCHI,
           _tf_idf, learners.NodeClassifiers, TopDown, TopDown),
    System("b-svm", "the same classifiers, and the label set with the least expected H-loss", CESA_BIANCHI,
           _tf_idf, learners.NodeClassifiers, MinimizeHLoss, MinimizeHLoss),
    System("adaboost-mh", "boosted decision stumps on the presence of words, all labelled nodes together", ESULI,
           _presence, learners.AdaBoostMH, Best, Sign),
    System("treeboost-mh", "boosted decision stumps among the children of every node, top-down", ESULI,
           _presence, learners.TreeBoostMH, Best, TopDown),
    System("isotonic-svm", "independent support vector machines at all nodes, with isotonic smoothing over the tree", PUNERA,
           _tf_idf, _node_svms, _isotonic, _isotonic),
    System("isotonic-nb", "independent naive Bayes classifiers at all nodes, with isotonic smoothing over the tree", PUNERA,
           _counts, _node_nb, _isotonic, _isotonic),
)
# fmt: on

SYSTEMS: dict[str, System] = {row.name: row for row in _ROWS}


def find_system(name: str) -> System:
    """The row of a system.

    >>> find_system("nb").source
    'McCallum et al. 1998'
    """
    check_kind(name, str, "system", "the name of one, such as 'hr-svm'")
    if name not in SYSTEMS:
        raise InputError(f"system {name!r} is unknown; the systems are {', '.join(SYSTEMS)}.{suggest(str(name), SYSTEMS)}")
    return SYSTEMS[name]
