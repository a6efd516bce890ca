"""Table 3 on RCV1, where a story has several topics: answers are all topics above a threshold that each story gets predicted.

Every topic of a story is a label, inner ones as well: documents at an inner node are those of a leaf below it, as in the
paper. F1 is that over all topics with training documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from experiments.gopal2013.classes import FEW, SOME, TESTS
from experiments.gopal2013.problem import Problem, some_of
from experiments.gopal2013.systems import Row, Way, try_all
from experiments.packing import pack_labels, unpack_labels
from experiments.study import Run
from experiments.trees import narrowed, under_one_root
from ramify.classifier.fitting import fit_rule, values_for
from ramify.data import Corpus
from ramify.decisions import PredictedCut
from ramify.metrics.flat import both, f1, per_node
from ramify.metrics.resampling import decision_tests
from ramify.taxonomy import Taxonomy

OWN = " (itself)"
PAIRS = (("hr-svm", "svm"), ("hr-lr", "lr"), ("hr-svm", "td-svm"))


def run_rcv1(run: Run) -> Row:
    """Every system that can give several topics."""
    data, most = run.corpus("rcv1"), run.choose(None, SOME, FEW)
    train, test = (some_of(part, most, run.seed) for part in (data.train, data.test))
    problem = make_topics(train, test, data.taxonomy)
    return {"as it is": try_all(run, problem, Way(predict_topics, judge, compare_pairs))}


def make_topics(train: Corpus, test: Corpus, taxonomy: Taxonomy) -> Problem:
    """All topics with training documents as leaves: below an inner topic hangs one for the topic itself."""
    Y = taxonomy.encode(train.labels)
    kept = np.flatnonzero(per_node(Y))
    topics = narrowed(taxonomy, kept)
    tree = under_one_root(with_own_leaves(topics))
    names = [name if is_leaf else name + OWN for name, is_leaf in zip(topics.names, topics.is_leaf, strict=True)]
    columns = [taxonomy.index(name) for name in topics.names]
    labels = [
        [[names[topic] for topic in row] for row in np.split(closed.indices, closed.indptr[1:-1])]
        for closed in (csr_array(taxonomy.encode(part.labels)[:, columns]) for part in (train, test))
    ]
    width = train.documents.shape[1]
    encoded = tree.encode(labels[1])
    return Problem(tree, train.documents, tree.encode(labels[0]), test.with_width(width).documents, encoded, encoded)


def with_own_leaves(topics: Taxonomy) -> Taxonomy:
    """Below every inner node one more leaf."""
    parents = [topics.names[p] if p >= 0 else None for p in topics.parent.tolist()]
    own = [(name + OWN, name) for name, is_leaf in zip(topics.names, topics.is_leaf, strict=True) if not is_leaf]
    return Taxonomy.from_edges([*zip(topics.names, parents, strict=True), *own])


def predict_topics(problem: Problem, learner: Any) -> dict[str, str]:
    """The topics of every test story, by a threshold that is predicted for it."""
    rule = fit_rule(PredictedCut(), learner, problem.X, problem.Y)

    def decide(scores: Any) -> csr_array:
        return rule.decide(values_for(rule, learner, scores), problem.taxonomy)

    return pack_labels(csr_array(vstack([given for _, given in learner.map_scores(problem.X_test, decide)], format="csr")))


def on_leaves(Y: csr_array, problem: Problem) -> csr_array:
    """Labels as decisions about topics."""
    return csr_array(Y[:, np.flatnonzero(problem.taxonomy.is_leaf)])


def judge(problem: Problem, answers: dict[str, str]) -> Row:
    """Macro and micro F1 over topics in percent."""
    T, P = on_leaves(problem.Y_test, problem), on_leaves(unpack_labels(answers, len(problem.taxonomy)), problem)
    right, true, said = (per_node(Y) for Y in (both(T, P), T, P))
    return {"macro": 100 * float(f1(right, true, said).mean()), "micro": 100 * float(f1(right.sum(), true.sum(), said.sum()))}


def compare_pairs(problem: Problem, answers: dict[str, dict[str, str]]) -> list[Row]:
    """p-value and difference of some tests, for the pairs that the paper looks at."""
    T, n_nodes = on_leaves(problem.Y_test, problem), len(problem.taxonomy)
    given = {name: on_leaves(unpack_labels(packed, n_nodes), problem) for name, packed in answers.items()}
    found = []
    for a, b in PAIRS:
        if a in given and b in given:
            tests = decision_tests(T, given[a], given[b])
            found.append({"a": a, "b": b, **{n: [tests[n].p_value, tests[n].difference] for n in TESTS if n in tests}})
    return found
