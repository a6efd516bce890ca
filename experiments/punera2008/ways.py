"""What is tried on the scores of every fold: penalties, missing classifiers, documents at inner nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.punera2008.folds import Scored, parts_of, score_fold
from experiments.punera2008.measures import Floats, Rows, mean_of
from experiments.punera2008.posts import Posts, Protocol, Source
from experiments.study import Run
from ramify.decisions.isotonic import fraction_with_child

PENALTIES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, np.inf)
SCALES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, np.inf)
SHARES = tuple(range(0, 100, 10))  # percent of the nodes that have no classifier
PRIOR_WEIGHTS = (0.1, 0.5)


# ---- ways ---------------------------------------------------------------------------------------------------------------


def penalty_rows(scored: Scored, _: int, __: np.random.Generator) -> Rows:
    """No smoothing, and every penalty."""
    rows = {"none": scored.measure(scored.P)}
    return rows | {f"{a:g}": scored.measure_smoothed(scored.P, penalty=a) for a in PENALTIES}


def missing_rows(scored: Scored, draws: int, rng: np.random.Generator) -> Rows:
    """Every share of missing classifiers and every way to do without them, each the mean of some draws."""
    n = len(scored.taxonomy)
    priors = np.asarray(scored.T_learnt.sum(axis=0)).ravel() / scored.T_learnt.shape[0]
    rows: Rows = {}
    for share in SHARES:
        drawn = [rng.permutation(n)[: round(share / 100 * n)] for _ in range(draws if share else 1)]
        found = [fill(scored, missing, priors, rng) for missing in drawn]
        rows |= {f"{way} {share}": mean_of(draw[way] for draw in found) for way in found[0]}
    return rows


def fill(scored: Scored, missing: NDArray[np.int64], priors: Floats, rng: np.random.Generator) -> Rows:
    """The paper's guesses by class share, its smoothing, plain isotonic regression, smoothing where class shares stand in."""
    guessed, known = scored.P.copy(), scored.P.copy()
    guessed[:, missing] = rng.random((len(guessed), len(missing))) < priors[missing]
    known[:, missing] = np.nan
    rows = {
        "guesses": scored.measure(guessed),
        "strict": scored.measure_smoothed(known, penalty=np.inf),
        "plain": scored.measure_smoothed(known, penalty=0.0),
    }
    for weight in PRIOR_WEIGHTS:
        rows[f"priors-{weight:g}"] = scored.measure_smoothed(known, penalty=np.inf, prior_weight=weight, priors=priors)
    return rows


def hybrid_rows(scored: Scored, _: int, __: np.random.Generator) -> Rows:
    """No smoothing, penalties by shares with every scale, and one penalty for all nodes."""
    shares = fraction_with_child(scored.T_learnt, scored.taxonomy)
    rows = {"none": scored.measure(scored.P)}
    for scale in SCALES:
        by_share = np.where(shares > 0, scale, 0.0) * np.where(shares > 0, shares, 1.0)
        rows[f"shares {scale:g}"] = scored.measure_smoothed(scored.P, penalty=by_share)
        rows[f"one {scale:g}"] = scored.measure_smoothed(scored.P, penalty=scale)
    return rows


ROWS: dict[str, Callable[[Scored, int, np.random.Generator], Rows]] = {
    "penalty": penalty_rows,
    "missing": missing_rows,
    "hybrids": hybrid_rows,
}


# ---- running ------------------------------------------------------------------------------------------------------------


def run_ways(source: Source, kinds: Sequence[str], ways: Sequence[str], run: Run) -> dict[str, Any]:
    """By learner, a list over the folds: what is to be told of its training, and the rows of every way."""
    posts, protocol = source(run)
    found: dict[str, Any] = {}
    for kind in kinds:
        steps = {fold: partial(run_fold, posts, protocol, kind, ways, fold, run) for fold in range(protocol.tested)}
        found[kind] = [run.keep(f"{kind}, fold {fold + 1}", step) for fold, step in steps.items()]
    return found


def run_fold(posts: Posts, protocol: Protocol, kind: str, ways: Sequence[str], fold: int, run: Run) -> dict[str, Any]:
    """Everything about one fold; documents at inner nodes are there for the sake of "hybrids" alone."""
    parts = parts_of(posts, fold, protocol, run.seed, hybrids="hybrids" in ways)
    scored, told = score_fold(parts, kind, run.threads)
    rows = {way: ROWS[way](scored, protocol.draws, np.random.default_rng([run.seed, fold])) for way in ways}
    return told | {"rows": rows}
