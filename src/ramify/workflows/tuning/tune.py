"""From documents and minutes to a trained classifier: features, system, cost, rule and thresholds are chosen by testing."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

from ramify.classifier.fitting import MULTI_LABEL_SHARE, multi_label_share
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.errors import InputError
from ramify.parallel import Clock, single_stage
from ramify.workflows.comparison import check_measure
from ramify.workflows.training import Parts, TrainResult, divide
from ramify.workflows.tuning.candidates import ON_FEW_FEATURES, ON_WORDS, Fixed, Prospects
from ramify.workflows.tuning.evaluator import Allowance, Attempt, Examiner, Times
from ramify.workflows.tuning.final_training import Finish
from ramify.workflows.tuning.folds import make_ground
from ramify.workflows.tuning.result import TuningResult, choice_of, taken_instead
from ramify.workflows.tuning.search import Search
from ramify.workflows.tuning.trials import try_out

SPARE, SPARE_SHARE = 2.0, 0.03  # seconds, and of the time: for starting, writing the model and showing what was found
FEWEST_SECONDS = 5.0
DENSE = 0.5  # share of values that are there, from which on vectors are no bags of words


class Chosen(NamedTuple):
    """A classifier that was chosen and trained, and how it was chosen."""

    trained: TrainResult
    choice: TuningResult


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
    begun: float | None = None,
    clock: Clock = time.monotonic,
    attempt: Attempt = try_out,
) -> Chosen:
    """Choose what to train by cross-validation, train it, and test it on documents that took no part in the choice.

    classifier: gives the taxonomy, the separator of paths and the threads; everything else about it is chosen, but for what is
    `fixed`. test, holdout, seed, refit, more: as ``ramify.workflows.train_classifier`` takes them. by: the measure to choose by.
    seconds: for all of it, counted from `begun`, a moment of the clock, or from now. The same documents and seed give the same
    trials in the same order; time decides only how many of them there are.

    >>> from ramify.data import load_electronics
    >>> shop = load_electronics()
    >>> few, nb = shop.train.take(range(300)), Fixed("nb", {"alpha": 0.1})
    >>> found = tune(TextClassifier(taxonomy=shop.taxonomy), few, shop.test, seconds=60, fixed=nb)
    >>> found.choice.candidate.system, found.trained.tested_on
    ('nb', 1053)
    """
    check_measure(by)
    check_seconds(seconds)
    fixed = fixed or Fixed()
    fixed.check()
    begun = clock() if begun is None else begun
    parts = divide(classifier, corpus, test, holdout=holdout, seed=seed, more=more)
    fixed = replace(fixed, prospects=prospects_for(parts.learn))
    allowance, times = Allowance(seconds - SPARE - SPARE_SHARE * seconds, begun, clock), Times(fixed.prospects)
    finish = Finish(parts, refit, allowance, times, fixed.rule)
    with single_stage("choosing", seconds) as whole:
        ground = make_ground(parts.learn, parts.taxonomy, seed, classifier.n_jobs)
        examiner = Examiner(ground, by, _has_several(parts), fixed.rule, allowance, attempt, times)
        search = Search(examiner, fixed, finish.reserve)
        search.run(whole)
        choice = choice_of(search, seed, seconds)
        whole.describe(f"training {choice.candidate}")
        taken, trained = finish.run(search.finalists[0], search.ranked())
    choice = taken_instead(choice, taken)
    trained.classifier.figures_["choice"] = choice.as_dict()
    return Chosen(trained, choice)


def check_seconds(seconds: float) -> None:
    """Refuse so little time that nothing can be tried."""
    if not seconds >= FEWEST_SECONDS:
        raise InputError(f"{seconds:g} seconds are too few to choose anything; give {FEWEST_SECONDS:g} or more.")


def _has_several(parts: Parts) -> bool:
    return multi_label_share(parts.taxonomy.encode(parts.learn.labels), parts.taxonomy) >= MULTI_LABEL_SHARE


def prospects_for(corpus: Corpus) -> Prospects:
    """What is known of systems, for documents of one kind or the other."""
    if not corpus.has_vectors:
        return ON_WORDS
    n_documents, n_features = corpus.documents.shape
    return ON_FEW_FEATURES if corpus.documents.nnz > DENSE * n_documents * n_features else ON_WORDS
