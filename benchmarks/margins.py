"""The machine over paths beside liblinear's multi-class machine, and the rivals that compete in one problem, against size.

    python benchmarks/margins.py [--leaves 20 100 300]

Without a hierarchy `hsvm` is the machine of Crammer & Singer, which liblinear solves, too: the same objective on the same
documents, so that both times and both objectives can be put side by side. Then `hsvm`, `ot` and `hblr` with the tree, beside
`hr-svm`. Documents are those of `make_web_directory`, 40 a leaf. Ways take turns; the best of some counts.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from timing import head, interleaved, show, timed

from ramify import Taxonomy
from ramify.data import make_web_directory
from ramify.learners import BayesianLogistic, HierarchicalSVM, OrthogonalTransfer, RecursiveSVM
from ramify.taxonomy import most_specific

DOCUMENTS = 40  # a leaf
RIVALS = {"hr-svm": RecursiveSVM, "hsvm": HierarchicalSVM, "ot": OrthogonalTransfer, "hblr": BayesianLogistic}


def main() -> None:
    """Both tables, for every size."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--leaves", type=int, nargs="+", default=[20, 100, 300])
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--threads", type=int, default=-1)
    given = options.parse_args()
    problems = {n: make_web_directory(n_leaves=n, n_docs=DOCUMENTS * n, seed=0) for n in given.leaves}
    head(
        "One flat objective, C = 1",
        "leaves",
        "documents",
        "hsvm s",
        "liblinear s",
        "ratio",
        "hsvm above the bound",
        "liblinear above it",
    )
    for n, problem in problems.items():
        show(flat_row(n, problem, given.rounds))
    head("With the tree, seconds of one training", "leaves", "nodes", *RIVALS)
    for n, problem in problems.items():
        seconds = (
            timed(lambda make=make, problem=problem: make(problem.taxonomy, n_jobs=given.threads).fit(problem.X, problem.Y))[0]
            for make in RIVALS.values()
        )
        show([f"{n:,}", f"{len(problem.taxonomy):,}", *(f"{each:.2f}" for each in seconds)])


def flat_row(n: int, problem: Any, rounds: int) -> list[str]:
    """One size: seconds and objectives of both."""
    X, y = problem.X, np.asarray([names[0] for names in problem.taxonomy.decode(most_specific(problem.Y, problem.taxonomy))])
    flat = Taxonomy.flat(sorted(set(y)))

    def ours() -> HierarchicalSVM:
        return HierarchicalSVM(flat, C=1.0, fit_intercept=False).fit(X, y)

    def theirs() -> LinearSVC:
        return LinearSVC(multi_class="crammer_singer", C=1.0, fit_intercept=False, max_iter=10_000).fit(X, y)

    (a, fitted), (b, peer) = interleaved([ours, theirs], rounds)
    bound, value = fitted.gap_.dual, objective(peer.coef_, X, np.searchsorted(peer.classes_, y))
    return [
        f"{n:,}",
        f"{X.shape[0]:,}",
        f"{a:.2f}",
        f"{b:.2f}",
        f"×{b / a:.1f}",
        f"{fitted.gap_.primal / bound - 1:.1e}",
        f"{value / bound - 1:.1e}",
    ]


def objective(W: np.ndarray, X: Any, labels: np.ndarray) -> float:
    """½ ‖W‖² + Σ_i max over classes of [1 − (own) + f − f_own], C = 1 (W: classes × features)."""
    heights = X @ W.T + 1
    own = np.arange(len(labels)), labels
    heights[own] -= 1
    return float(0.5 * np.vdot(W, W) + (heights.max(axis=1) - heights[own]).sum())


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
