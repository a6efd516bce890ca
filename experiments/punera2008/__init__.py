"""Isotonic smoothing on the 20 newsgroups, after Punera & Ghosh 2008, section 3.

Five-fold cross-validation; a classifier at every node. Where the newsgroups are not at hand, the bundled requests to an
electronics shop take their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from experiments.bundled import Show, stand_in
from experiments.punera2008.posts import newsgroups, requests
from experiments.punera2008.published import NOT_OBTAINABLE
from experiments.punera2008.tables import show_hybrids, show_nb, show_svm
from experiments.punera2008.ways import run_ways
from experiments.study import Part, Study


def both(name: str, about: str, kinds: Sequence[str], ways: Sequence[str], show: Show) -> tuple[Part, Part]:
    """A part, and the same with the bundled requests in its place."""
    part = Part(name, about, partial(run_ways, newsgroups, kinds, ways), show, ("20newsgroups",))
    return part, stand_in(part, partial(run_ways, requests, kinds, ways), show)


STUDY = Study(
    name="punera2008",
    title="Punera & Ghosh 2008: Enhanced Hierarchical Classification via Isotonic Smoothing",
    lead="The scores of independent classifiers are moved as little as possible until they agree.",
    parts=(
        *both("svm", "SVMs: penalties, and missing classifiers", ("svm",), ("penalty", "missing"), show_svm),
        *both("naive-bayes", "Naive Bayes: penalties", ("nb", "nb-platt", "nb-isotonic"), ("penalty",), show_nb),
        *both("hybrids", "SVMs: documents at inner nodes, too", ("svm",), ("hybrids",), show_hybrids),
    ),
    not_obtainable=NOT_OBTAINABLE,
)
