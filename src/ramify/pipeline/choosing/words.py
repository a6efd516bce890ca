"""A choice in words: what was taken, how sure that is, what would be tried next, and how to get the same by hand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

from ramify.metrics.sums import LOSSES
from ramify.pipeline.amounts import duration
from ramify.pipeline.choosing.choice import Choice, Trial, rule_settings
from ramify.pipeline.comparison import LABELS, in_words

SURE, LIKELY = 0.95, 0.75  # shares of the resamples from which on a lead is more than luck, or likely
OPTIONS = {
    "ngram_range": "--ngrams",
    "min_df": "--min-df",
    "stop_words": "--stop-words",
    "stemmer": "--stem",
    "max_features": "--max-features",
    "hashing": "--hashing",
}


def choice_in_words(choice: Choice, is_reported: bool) -> list[str]:
    """Sentences. is_reported: whether there is a report on documents that took no part in the choice."""
    return [*_instead(choice), *_taken(choice), *_sure(choice), *_honest(is_reported), *_next(choice), *_left_out(choice)]


def options_by_hand(choice: Choice) -> str:
    """The options of ``ramify train`` that train the same."""
    words = ["--system", choice.candidate.system]
    for name, value in choice.candidate.params:
        words += ["--param", f"{name}={_written(value)}"]
    for name, value in choice.candidate.features:
        words += [OPTIONS[name], str(value[1] if name == "ngram_range" else value)] if _can_be_said(value) else []
    if not choice.is_own_rule:
        words += ["--rule", choice.rule.kind]
        for name, value in rule_settings(choice.rule).items():
            words += ["--rule-param", f"{name}={_written(value)}"]
    return shlex.join(words)


def _taken(choice: Choice) -> Iterator[str]:
    winner, n_tried = choice.trials[0], len(choice.trials)
    most = "least" if choice.by in LOSSES else "highest"
    among = f"the {most} of {n_tried} ways that were tried" if n_tried > 1 else "the only way that was tried"
    score = f"{LABELS[choice.by]} {winner.score:.3f} ± {choice.sureness.error:.3f}"
    found = "Took" if choice.in_place_of is None else "Found"
    yield f"{found} {winner.settings}, decided by {winner.rule}: {score} in {_folds(winner)}, {among}."


def _instead(choice: Choice) -> Iterator[str]:
    if choice.in_place_of is not None:
        yield f"There was no time to train {choice.in_place_of}, the best of all, so {choice.candidate} was trained instead."


def _sure(choice: Choice) -> Iterator[str]:
    sure, finalists = choice.sureness, [trial for trial in choice.trials if trial.is_finalist]
    if sure.ahead is None or sure.low is None or sure.high is None:
        yield "There was no other to compare it with at the end, so nothing is known of how sure that is."
        return
    lead = "so its lead is more than luck" if sure.first >= SURE else "so it is likely the best" if sure.first >= LIKELY else ""
    lead = lead or "so these documents cannot tell which is best"
    yield (
        f"Of {len(finalists)} finalists it is first in {100 * sure.first:.0f} of 100 resamples of the {sure.documents:,} "
        f"documents, {lead}; {finalists[1].settings} is next, {sure.ahead:.3f} behind [{sure.low:.3f}, {sure.high:.3f}]."
    )
    other = next((trial for trial in finalists[1:] if trial.system != finalists[0].system), None)
    if other is not None and other is not finalists[1]:
        apart = abs(finalists[0].score - other.score)
        yield f"The best of another system is {other.settings}, {apart:.3f} behind."


def _honest(is_reported: bool) -> Iterator[str]:
    but = "the report is on documents that took no part in the choice" if is_reported else "nothing was held out"
    yield f"The score above is of the best of many, so it is a little too good; {but}."


def _next(choice: Choice) -> Iterator[str]:
    if choice.left:
        listed = in_words([f"{each.settings} (about {duration(each.seconds)})" for each in choice.left])
        yield f"With more time it would try {listed}."
    else:
        yield "Nothing was left to try."


def _left_out(choice: Choice) -> Iterator[str]:
    if choice.skipped:
        were = "was" if len(choice.skipped) == 1 else "were"
        yield f"{in_words([each.name for each in choice.skipped])} {were} left out, being unable to take these documents."


def _folds(trial: Trial) -> str:
    n = len(trial.by_fold)
    return f"{n} folds" if n > 1 else "one fold"


def _can_be_said(value: Any) -> bool:
    return not isinstance(value, tuple) or isinstance(value[-1], int)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
