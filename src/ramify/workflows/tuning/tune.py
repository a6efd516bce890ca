"""Tuning within a time limit: features, system, C, decision rule and thresholds are selected by cross-validation."""

from __future__ import annotations

import time
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

from ramify.classifier.fitting import MULTI_LABEL_FRACTION, multi_label_fraction
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.errors import InputError
from ramify.parallel import Clock, single_stage
from ramify.results import Result
from ramify.type_hints import checks_types
from ramify.workflows.comparison import check_measure
from ramify.workflows.folds import make_folds
from ramify.workflows.training import TrainResult, split_train_test
from ramify.workflows.tuning.candidates import DENSE_PRIORS, TEXT_PRIORS, Fixed
from ramify.workflows.tuning.evaluator import Evaluator, RunFold, TimeBudget, Timings
from ramify.workflows.tuning.final_training import FinalTraining
from ramify.workflows.tuning.result import TuningResult, make_result
from ramify.workflows.tuning.search import Search
from ramify.workflows.tuning.trials import run_fold

OVERHEAD, OVERHEAD_FRACTION = 2.0, 0.03  # seconds, and fraction of the time: for starting, saving and printing
MIN_SECONDS = 5.0
DENSE = 0.5  # fraction of non-zero values from which on vectors are not bags of words


class _Tuned(NamedTuple):
    trained: TrainResult
    tuning: TuningResult


class Tuned(Result, _Tuned):
    """The trained classifier, and how it was selected: a pair of `trained` and `tuning`."""

    __slots__ = ()

    @property
    def classifier(self) -> TextClassifier:
        """The trained classifier."""
        return self.trained.classifier


@checks_types
def tune(
    classifier: TextClassifier,
    corpus: Corpus,
    test: Corpus | None = None,
    *,
    seconds: float = 300.0,
    by: str = "micro_f1",
    fixed: Fixed | None = None,
    holdout: float = 0.2,
    seed: int = 0,
    refit: bool = True,
    more: Corpus | None = None,
    started: float | None = None,
    clock: Clock = time.monotonic,
    run_fold: RunFold = run_fold,
) -> Tuned:
    """Select a classifier by cross-validation, train it, and test it on documents that were not used for the selection.

    classifier: has the taxonomy, the separator of paths and the threads; everything else is tuned, except for what is `fixed`.
    What is trained without tuning is the default; it is kept unless another candidate is clearly ahead of it.
    test, holdout, seed, refit, more: as for ``ramify.workflows.train_classifier``. by: the measure to maximize. seconds:
    for everything, counted from `started`, a time of the clock (default: now). The same documents and seed give the same
    trials in the same order; the time only limits how many of them there are.

    >>> from ramify.data import load_electronics
    >>> shop = load_electronics()
    >>> few, nb = shop.train.take(range(300)), Fixed("nb", {"alpha": 0.1})
    >>> found = tune(TextClassifier(taxonomy=shop.taxonomy), few, shop.test, seconds=60, fixed=nb)
    >>> found.tuning.candidate.system, found.trained.tested_on
    ('nb', 1053)
    """
    check_measure(by)
    if not seconds >= MIN_SECONDS:
        raise InputError(f"{seconds:g} seconds are too few for tuning; give {MIN_SECONDS:g} or more.")
    if started is not None and not isfinite(started):
        raise InputError(f"started is {started}; give a time of the clock, or None for now.")
    fixed = fixed or Fixed()
    fixed.check()
    started = clock() if started is None else started
    parts = split_train_test(classifier, corpus, test, holdout=holdout, seed=seed, more=more)
    vectors = parts.train.documents if parts.train.has_vectors else None
    is_dense = vectors is not None and vectors.nnz > DENSE * vectors.shape[0] * vectors.shape[1]
    fixed = replace(fixed, priors=DENSE_PRIORS if is_dense else TEXT_PRIORS, has_texts=vectors is None)
    budget, timings = TimeBudget(seconds - OVERHEAD - OVERHEAD_FRACTION * seconds, started, clock), Timings(fixed.priors)
    final_training = FinalTraining(parts, refit, budget, timings, fixed.rule)
    is_multi_label = multi_label_fraction(parts.taxonomy.encode(parts.train.labels), parts.taxonomy) >= MULTI_LABEL_FRACTION
    with single_stage("tuning", seconds) as whole:
        folds = make_folds(parts.train, parts.taxonomy, seed, classifier.n_jobs)
        evaluator = Evaluator(folds, by, is_multi_label, fixed.rule, budget, run_fold, timings)
        search = Search(evaluator, fixed, final_training.reserve)
        search.run(whole)
        winner, tuning = make_result(search, seed, seconds)
        whole.describe(f"training {tuning.candidate}")
        best, trained = final_training.run(winner, search.ranked())
    if best.candidate != tuning.candidate:  # there was no time to train the winner
        replaced = str(tuning.candidate)
        tuning = replace(tuning, candidate=best.candidate, rule=best.rule, is_own_rule=best.place == 0, replaced=replaced)
    tuning = replace(tuning, lacks_calibration=classifier.calibrate and not trained.classifier.calibrate)
    trained.classifier.figures_["tuning"] = tuning.as_dict()
    return Tuned(trained, tuning)
