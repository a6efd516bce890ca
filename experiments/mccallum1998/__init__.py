"""Shrinkage on the 20 newsgroups, after McCallum, Rosenfeld, Mitchell & Ng 1998, sections 3 and 4.

Of the 20 newsgroups 15 are used, under five topics. Where they are not at hand, the bundled requests to an electronics shop
take their place. Following few branches is tried in two larger trees, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from experiments.bundled import Show, stand_in
from experiments.mccallum1998.mixtures import show_bundled_weights, show_corpus, show_weights
from experiments.mccallum1998.protocol import newsgroups, requests
from experiments.mccallum1998.published import NOT_OBTAINABLE, OTHER_CORPUS
from experiments.mccallum1998.tables import show_branches, show_sizes, show_words
from experiments.mccallum1998.trials import run_branches, run_corpus, run_sizes, run_tree_branches, run_weights, run_words
from experiments.study import Part, Study

NEEDS = ("20newsgroups",)
FEW_NODES = f"five topics with two to five newsgroups leave little to lose; {OTHER_CORPUS}"
FOLLOWING = "Following only the best branches"


def both(name: str, about: str, run: Callable[..., Any], show: Show, bundled: Show | None = None) -> tuple[Part, Part]:
    """A part, and the same with the bundled requests in its place."""
    part = Part(name, about, partial(run, newsgroups), show, NEEDS)
    return part, stand_in(part, partial(run, requests), bundled or show)


def branches_in(corpus: str, name: str, about: str, why: str) -> Part:
    """A part that follows branches in another tree."""
    return Part(name, about, partial(run_tree_branches, corpus), partial(show_branches, why), (corpus,))


STUDY = Study(
    name="mccallum1998",
    title="McCallum, Rosenfeld, Mitchell & Ng 1998: Improving Text Classification by Shrinkage in a Hierarchy of Classes",
    lead="A class with few documents borrows words from the nodes above it.",
    parts=(
        Part("corpus", "How large the corpus is, and ways to count its words", run_corpus, show_corpus, NEEDS),
        *both("weights", "Mixture weights from few and from many documents", run_weights, show_weights, show_bundled_weights),
        *both("sizes", "Accuracy against training documents", run_sizes, show_sizes),
        *both("words", "Accuracy against words", run_words, show_words),
        *both("branches", FOLLOWING, run_branches, partial(show_branches, FEW_NODES)),
        branches_in("arxiv_small", "branches-arxiv", f"{FOLLOWING}, arXiv abstracts", OTHER_CORPUS),
        branches_in("esco_titles", "branches-esco", f"{FOLLOWING}, ESCO job titles", OTHER_CORPUS),
    ),
    not_obtainable=NOT_OBTAINABLE,
)
