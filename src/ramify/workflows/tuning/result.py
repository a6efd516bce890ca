"""What was chosen, what was tried, how sure the choice is, and what would be tried with more time."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from ramify.decisions import DecisionRule
from ramify.formatting import duration
from ramify.metrics.resampling import LOSSES
from ramify.workflows.comparison import LABELS, Skipped, in_words
from ramify.workflows.tuning.candidates import Candidate
from ramify.workflows.tuning.search import Search
from ramify.workflows.tuning.trials import Look, Sureness, how_sure

MOST_LEFT = 5  # of what would be tried next


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate that was tried.

    settings: in words. rule: by which it decides. score: of the measure, on `documents` that it had not learnt from; by_fold:
    on each test set. learnt_from: documents, in each. seconds: in all. is_finalist: whether it was compared at the end.
    """

    system: str
    settings: str
    rule: str
    score: float
    by_fold: list[float]
    documents: int
    learnt_from: int
    seconds: float
    is_finalist: bool


@dataclass(frozen=True, slots=True)
class Untried:
    """A candidate that there was no time for, and about how many seconds it would take."""

    settings: str
    seconds: float


@dataclass(frozen=True, slots=True)
class TuningResult:
    """What :func:`~ramify.workflows.tuning.tune` found.

    by: the measure. candidate, rule: what to take; is_own_rule: whether the rule is what the system has anyway. trials: best
    first, finalists before all others. left: what would be tried next. skipped: systems that cannot take the documents.
    seconds: that choosing took; allowed: how many were given for all. in_place_of: the best of all, where there was no time to
    train it.
    """

    by: str
    candidate: Candidate
    rule: DecisionRule
    is_own_rule: bool
    sureness: Sureness
    trials: list[Trial]
    left: list[Untried]
    skipped: list[Skipped]
    seconds: float
    allowed: float
    in_place_of: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON-ready values."""
        chosen: dict[str, Any] = {"system": self.candidate.system, "params": dict(self.candidate.params)}
        chosen |= {"features": {name: _plain(value) for name, value in self.candidate.features}}
        chosen |= {"rule": self.rule.kind, "rule_params": rule_settings(self.rule), "is_own_rule": self.is_own_rule}
        lists = {name: [asdict(each) for each in getattr(self, name)] for name in ("trials", "left", "skipped")}
        spent = {"seconds": self.seconds, "allowed": self.allowed, "in_place_of": self.in_place_of}
        return {"by": self.by, "chosen": chosen, "sureness": asdict(self.sureness), **lists, **spent}


def choice_of(search: Search, seed: int, allowed: float) -> TuningResult:
    """What a search came to. allowed: seconds for all."""
    examiner, winner = search.examiner, search.finalists[0]
    sureness = how_sure(search.finalists, examiner.ground, examiner.by, seed)
    beside = [look for look in search.ranked() if look.candidate not in {each.candidate for each in search.finalists}]
    trials = [_trial(look, search, True) for look in search.finalists] + [_trial(look, search, False) for look in beside]
    left = [Untried(str(candidate), seconds) for candidate, seconds in search.left()[:MOST_LEFT]]
    chosen = winner.candidate, winner.rule, winner.is_own_rule
    return TuningResult(examiner.by, *chosen, sureness, trials, left, _skipped(search), examiner.allowance.used, allowed)


def taken_instead(choice: TuningResult, taken: Look) -> TuningResult:
    """A choice after what was best could not be trained in time, and another was."""
    if taken.candidate == choice.candidate:
        return choice
    best = str(choice.candidate)
    return replace(choice, candidate=taken.candidate, rule=taken.rule, is_own_rule=taken.is_own_rule, in_place_of=best)


def rule_settings(rule: DecisionRule) -> dict[str, Any]:
    """The settings of a rule that differ from what they are when nothing is said."""
    usual = type(rule)()
    names = [name for name in getattr(rule, "__dataclass_fields__", {}) if rule.__dataclass_fields__[name].repr]  # type: ignore[attr-defined]
    return {name: _plain(getattr(rule, name)) for name in names if repr(getattr(rule, name)) != repr(getattr(usual, name))}


def describe_rule(rule: DecisionRule) -> str:
    """A rule and its settings in few words."""
    return " ".join([rule.kind, *(f"{name}={value}" for name, value in rule_settings(rule).items() if name != "at_least_one")])


def _trial(look: Look, search: Search, is_finalist: bool) -> Trial:
    examiner, sign = search.examiner, -1.0 if search.examiner.by in LOSSES else 1.0
    ground = examiner.ground
    learnt_from = len(ground.positions(0, look.share)[0])
    return Trial(
        look.candidate.system,
        str(look.candidate),
        describe_rule(look.rule),
        sign * look.score,
        [sign * score for score in look.by_fold(ground, examiner.by)],
        sum(len(ground.positions(number, 0.0)[1]) for number in look.folds),
        learnt_from,
        look.seconds,
        is_finalist,
    )


def _skipped(search: Search) -> list[Skipped]:
    reasons = {candidate.system: reason for candidate, reason in search.examiner.refused.items()}
    tried: Iterable[str] = {candidate.system for candidate in search.looks}
    return [Skipped(system, reason) for system, reason in reasons.items() if system not in tried]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# --------------------------------------------------------------------------------------------------------------
# A choice in words: what was taken, how sure that is, what would be tried next, and how to get the same by hand.


SURE, LIKELY = 0.95, 0.75  # shares of the resamples from which on a lead is more than luck, or likely
OPTIONS = {
    "ngram_range": "--ngrams",
    "min_df": "--min-df",
    "stop_words": "--stop-words",
    "stemmer": "--stem",
    "max_features": "--max-features",
    "hashing": "--hashing",
}


def choice_in_words(choice: TuningResult, is_reported: bool) -> list[str]:
    """Sentences. is_reported: whether there is a report on documents that took no part in the choice."""
    return [*_instead(choice), *_taken(choice), *_sure(choice), *_honest(is_reported), *_next(choice), *_left_out(choice)]


def options_by_hand(choice: TuningResult) -> str:
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


def _taken(choice: TuningResult) -> Iterator[str]:
    winner, n_tried = choice.trials[0], len(choice.trials)
    most = "least" if choice.by in LOSSES else "highest"
    among = f"the {most} of {n_tried} ways that were tried" if n_tried > 1 else "the only way that was tried"
    score = f"{LABELS[choice.by]} {winner.score:.3f} ± {choice.sureness.error:.3f}"
    found = "Took" if choice.in_place_of is None else "Found"
    yield f"{found} {winner.settings}, decided by {winner.rule}: {score} in {_folds(winner)}, {among}."


def _instead(choice: TuningResult) -> Iterator[str]:
    if choice.in_place_of is not None:
        yield f"There was no time to train {choice.in_place_of}, the best of all, so {choice.candidate} was trained instead."


def _sure(choice: TuningResult) -> Iterator[str]:
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


def _next(choice: TuningResult) -> Iterator[str]:
    if choice.left:
        listed = in_words([f"{each.settings} (about {duration(each.seconds)})" for each in choice.left])
        yield f"With more time it would try {listed}."
    else:
        yield "Nothing was left to try."


def _left_out(choice: TuningResult) -> Iterator[str]:
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
