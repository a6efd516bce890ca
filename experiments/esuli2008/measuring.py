"""What is measured of a learner: F1 on the modified hierarchy, pivots, additions, and times.

Whatever is timed runs on one thread, again and again for a second, and the shortest time counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from experiments.esuli2008.material import Collection
from ramify.metrics import modified_f1
from ramify.metrics.flat import both, f1, per_node
from ramify.metrics.resampling import modified_classes, on_classes

SIZES = ((1, 9), (10, 99), (100, None))  # training documents of rare, middling and frequent categories

Row = dict[str, Any]


def measure(of: Collection, given: csr_array) -> Row:
    """F1 over all leaves of the modified hierarchy, over leaves and dummies apart, and by the size of categories."""
    true = of.truth()
    found = modified_f1(true, given, of.judged)
    row: Row = {"micro": found.all.micro_f1, "macro": found.all.macro_f1}
    if found.dummies.n_classes:
        row |= {"leaves": [found.leaves.micro_f1, found.leaves.macro_f1]}
        row |= {"dummies": [found.dummies.micro_f1, found.dummies.macro_f1]}
    return row | _by_size(of, true, given)


def _by_size(of: Collection, true: csr_array, given: csr_array) -> Row:
    classes = modified_classes(true, of.judged)
    T, P, learnt = (on_classes(Y, classes, of.judged) for Y in (true, given, of.judged.encode(of.labels)))
    right, sizes = both(T, P), per_node(learnt)
    each = f1(per_node(right), per_node(T), per_node(P))
    among = [(sizes >= low) & (sizes <= (np.inf if high is None else high)) for low, high in SIZES]
    return {
        "precision": right.nnz / max(1, P.nnz),
        "recall": right.nnz / max(1, T.nnz),
        "n_by_size": [int(some.sum()) for some in among],
        "by_size": [float(each[some].mean()) if some.any() else None for some in among],
    }


def count_stumps(learner: Any, X: csr_array) -> Row:
    """Stumps, different pivots among them, and the additions of scoring."""
    pivots = [committee.pivots for committee in learner.committees_]
    row: Row = {"stumps": sum(map(len, pivots)), "pivots": len(np.unique(np.concatenate(pivots)))}
    row["sums"], row["present_sums"] = count_sums(learner, X)
    return row


def count_sums(learner: Any, X: csr_array) -> tuple[int, int]:
    """What scoring adds up, for the committees that documents meet: over all pivots, as the paper counts, and over theirs."""
    passed, over_all, over_present = learner.predict_sets(X).tocsc(), 0, 0
    for committee in learner.committees_:
        met = X if committee.node < 0 else X[passed.indices[passed.indptr[committee.node] : passed.indptr[committee.node + 1]]]
        pivots, n_classes = np.unique(committee.pivots), len(committee.classes)
        over_all += met.shape[0] * len(pivots) * n_classes
        over_present += int(np.isin(met.indices, pivots).sum()) * n_classes
    return over_all, over_present


def seconds(work: Callable[[], Any], at_least: float) -> float:
    """The shortest time that some work takes, repeated until so many seconds are over."""
    times: list[float] = []
    while not times or sum(times) < at_least:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def predict_texts(of: Collection, learner: Any) -> Callable[[], Any] | None:
    """From texts to labels with the words that pivots need, and no others."""
    if of.words is None:
        return None
    columns, narrow = learner.with_used_features()
    texts, vectorizer = of.words.texts, copy(of.words.vectorizer)
    vectorizer.select_columns(columns)
    return lambda: narrow.predict_sets(vectorizer.transform(texts))
