"""The result of tuning: the winner and its probability of winning, all trials, and what more time would be used for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ramify.decisions import DecisionRule, FittableRule
from ramify.formatting import counted, duration
from ramify.metrics.resampling import LOSSES
from ramify.results import Result
from ramify.workflows.comparison import LABELS, Skipped, describe_skipped, join_names
from ramify.workflows.tuning.candidates import Candidate
from ramify.workflows.tuning.search import Search
from ramify.workflows.tuning.trials import Trial, WinProbability, estimate_winning

MAX_UNTRIED = 5  # candidates that are listed
LEAST_LEAD = 0.002  # over the default, of any measure, that is worth another classifier


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """One candidate with its scores.

    settings: as text. rule: the best decision rule. score: of the measure, on `documents` test documents; by_fold: on each
    fold. trained_on: training documents of a fold. seconds: of all folds. is_finalist: whether it was in the final round.
    """

    system: str
    settings: str
    rule: str
    score: float
    by_fold: list[float]
    documents: int
    trained_on: int
    seconds: float
    is_finalist: bool


@dataclass(frozen=True, slots=True)
class Untried:
    """A candidate that was not tried for lack of time, and its expected seconds."""

    settings: str
    seconds: float


@dataclass(frozen=True, slots=True)
class AgainstDefault:
    """The best candidate beside the default, which is what is trained without tuning.

    settings, rule, score: of the default. best, best_rule: the best other candidate, or the default with a better rule.
    winning: of that one over the default, on the same held-out documents; None without another one. is_ahead: whether the
    95% interval of its lead is above 0, and the lead at least 0.002; otherwise the default is kept.
    """

    settings: str
    rule: str
    score: float
    best: str | None
    best_rule: str | None
    winning: WinProbability | None
    is_ahead: bool


@dataclass(frozen=True, slots=True, repr=False)
class TuningResult(Result):
    """The result of :func:`~ramify.workflows.tuning.tune`.

    by: the measure. candidate, rule: the winner; is_own_rule: whether the rule is the default of the system. winning: how
    likely the best trial is the best of all. trials: best first, finalists before all others. untried: candidates that would be
    tried next. skipped: systems that cannot be used on the documents. seconds: of the search; time_limit: of everything.
    default: how the best compares with the default; None if that could not be tried. replaced: the winner, where there was no
    time to train it and another candidate was trained. lacks_calibration: whether there was no time to calibrate probabilities.
    """

    by: str
    candidate: Candidate
    rule: DecisionRule
    is_own_rule: bool
    winning: WinProbability
    trials: list[TrialSummary]
    untried: list[Untried]
    skipped: list[Skipped]
    seconds: float
    time_limit: float
    default: AgainstDefault | None = None
    replaced: str | None = None
    lacks_calibration: bool = False

    @property
    def keeps_default(self) -> bool:
        """Whether the default is as good as any other, and so the winner."""
        return self.default is not None and not self.default.is_ahead

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON-ready values."""
        features = {name: list(value) if isinstance(value, tuple) else value for name, value in self.candidate.features}
        winner: dict[str, Any] = {"system": self.candidate.system, "params": dict(self.candidate.params), "features": features}
        winner |= {"rule": self.rule.kind, "rule_params": rule_settings(self.rule), "is_own_rule": self.is_own_rule}
        values, others = asdict(self), ("default", "winning", "trials", "untried", "skipped", "seconds", "time_limit")
        found = {"by": self.by, "winner": winner, "keeps_default": self.keeps_default}
        return found | {name: values[name] for name in (*others, "replaced", "lacks_calibration")}


def make_result(search: Search, seed: int, time_limit: float) -> tuple[Trial, TuningResult]:
    """The winner of a search, and the result. time_limit: seconds for everything."""
    evaluator, (winner, default) = search.evaluator, _compare_with_default(search, seed)
    winning = estimate_winning(search.finalists, evaluator.folds, evaluator.by, seed)
    beside = [trial for trial in search.ranked() if trial.candidate not in {each.candidate for each in search.finalists}]
    trials = [_summarize(trial, search, True) for trial in search.finalists]
    trials += [_summarize(trial, search, False) for trial in beside]
    untried = [Untried(str(candidate), seconds) for candidate, seconds in search.untried()[:MAX_UNTRIED]]
    reasons = {candidate.system: reason for candidate, reason in evaluator.refused.items()}
    tried = {candidate.system for candidate in search.trials}
    skipped = [Skipped(system, reason) for system, reason in reasons.items() if system not in tried]
    chosen = winner.candidate, winner.rule, winner.place == 0
    seconds = evaluator.budget.used, time_limit
    return winner, TuningResult(evaluator.by, *chosen, winning, trials, untried, skipped, *seconds, default)


def _compare_with_default(search: Search, seed: int) -> tuple[Trial, AgainstDefault | None]:
    """The winner: the best finalist if it is clearly ahead of the default with its own rule, and otherwise the latter."""
    evaluator, best = search.evaluator, search.finalists[0]
    found = next((trial for trial in search.finalists if trial.candidate == search.fixed.default), None)
    if found is None:
        return best, None
    default, sign = found.with_own_rule(), -1.0 if evaluator.by in LOSSES else 1.0
    is_other = best.candidate != default.candidate or best.place != default.place
    other = best if is_other else next(iter(search.finalists[1:]), None)
    known = str(default.candidate), _named(default.rule), sign * default.score
    if other is None:
        return default, AgainstDefault(*known, None, None, None, False)
    winning = estimate_winning([other, default], evaluator.folds, evaluator.by, seed)
    is_ahead = winning.low is not None and winning.low > 0 and (winning.lead or 0.0) >= LEAST_LEAD
    compared = AgainstDefault(*known, str(other.candidate), _named(other.rule), winning, is_ahead)
    return other if is_ahead else default, compared


def rule_settings(rule: DecisionRule) -> dict[str, Any]:
    """The settings of a rule that differ from their defaults."""
    defaults = type(rule)().state()
    settings = (rule.unfitted() if isinstance(rule, FittableRule) else rule).state()
    return {name: value for name, value in settings.items() if value != defaults[name]}


def _named(rule: DecisionRule) -> str:
    settings = rule_settings(rule).items()
    return " ".join([rule.kind, *(f"{name}={value}" for name, value in settings if name != "at_least_one")])


def _summarize(trial: Trial, search: Search, is_finalist: bool) -> TrialSummary:
    folds, by = search.evaluator.folds, search.evaluator.by
    sign = -1.0 if by in LOSSES else 1.0
    by_fold = [sign * score for score in trial.by_fold(folds, by)]
    documents = sum(len(folds.positions(number, 0.0)[1]) for number in trial.results)
    named = trial.candidate.system, str(trial.candidate), _named(trial.rule)
    trained_on = len(folds.positions(0, trial.fraction)[0])
    return TrialSummary(*named, sign * trial.score, by_fold, documents, trained_on, trial.seconds, is_finalist)


# ---- sentences ----------------------------------------------------------------------------------------------------------

SIGNIFICANT, LIKELY = 0.95, 0.75  # probabilities of winning
OPTIONS = {"ngram_range": "--ngrams", "min_df": "--min-df", "stop_words": "--stop-words", "stemmer": "--stem"}
OPTIONS |= {"max_features": "--max-features", "hashing": "--hashing", "characters": "--characters"}


def describe_tuning(tuning: TuningResult, has_holdout: bool) -> list[str]:
    """Sentences. has_holdout: whether there is a report on documents that were not used for tuning."""
    sentences = list[str]()
    if tuning.replaced is not None:
        instead = f"{tuning.candidate} was trained instead"
        sentences.append(f"There was no time to train the best candidate, {tuning.replaced}; {instead}.")
    sentences += _default_sentences(tuning) if tuning.keeps_default else _winner_sentences(tuning, has_holdout)
    if tuning.lacks_calibration:
        sentences.append("There was no time to calibrate probabilities, so that --risk cannot be used; give more time.")
    listed = [f"{each.settings} (about {duration(each.seconds)})" for each in tuning.untried]
    next_trials = f"With more time, the next trials would be {join_names(listed)}." if listed else "All candidates were tried."
    return [*sentences, next_trials, *describe_skipped(tuning.skipped)]


def command_options(tuning: TuningResult) -> str:
    """The options of ``ramify train`` that train the same classifier."""
    words = ["--system", tuning.candidate.system]
    for name, value in tuning.candidate.params:
        words += ["--param", f"{name}={_written(value)}"]
    for name, value in tuning.candidate.features:
        if not isinstance(value, tuple) or isinstance(value[-1], int):
            words += [OPTIONS[name], str(value[1] if name == "ngram_range" else value)]
    if not tuning.is_own_rule:
        words += ["--rule", tuning.rule.kind]
        for name, value in rule_settings(tuning.rule).items():
            words += ["--rule-param", f"{name}={_written(value)}"]
    return shlex.join(words)


def _winner_sentences(tuning: TuningResult, has_holdout: bool) -> Iterator[str]:
    winner, n_trials, name = tuning.trials[0], len(tuning.trials), "Winner" if tuning.replaced is None else "Best"
    most = "lowest" if tuning.by in LOSSES else "highest"
    among = f"the {most} of {n_trials} candidates" if n_trials > 1 else "the only candidate that was tried"
    score = f"{LABELS[tuning.by]} {winner.score:.3f} ± {tuning.winning.standard_error:.3f}"
    in_folds = f"{score} in {counted(len(winner.by_fold), 'fold')}, {among}"
    yield f"{name}: {winner.settings}, decided by {winner.rule}: {in_folds}."
    if tuning.default is None:
        yield "There was no time to compare it with the default."
    elif tuning.default.winning is not None:
        other = f"the default, {tuning.default.settings} decided by {tuning.default.rule}"
        yield f"It is {_lead(tuning.default.winning, other)}."
    yield from _probability(tuning)
    but = "the report is on documents that were not used for tuning" if has_holdout else "no documents were held out"
    yield f"The score of the best of many candidates is slightly too high; {but}."


def _default_sentences(tuning: TuningResult) -> Iterator[str]:
    default = tuning.default
    assert default is not None
    score = f"{LABELS[tuning.by]} {default.score:.3f} in {counted(len(tuning.trials[0].by_fold), 'fold')}"
    yield f"The default is as good: {default.settings}, decided by {default.rule}: {score}."
    winning = default.winning
    if winning is None:
        yield "No other candidate was compared with it."
        return
    is_chance = winning.low is None or winning.low <= 0
    chance = "" if (winning.lead or 0.0) <= 0 else "; that may be chance" if is_chance else "; that is too little"
    best = f"{default.best} decided by {default.best_rule}"
    yield f"The best of {counted(len(tuning.trials), 'candidate')} otherwise, {best}, is {_lead(winning, 'it')}{chance}."


def _lead(winning: WinProbability, other: str) -> str:
    """How far a candidate is ahead of, or behind, another one."""
    assert winning.lead is not None
    span = f"95% interval {winning.low:+.3f} to {winning.high:+.3f}, paired bootstrap on {winning.documents:,} documents"
    return f"{abs(winning.lead):.3f} {'ahead of' if winning.lead >= 0 else 'behind'} {other} ({span})"


def _probability(tuning: TuningResult) -> Iterator[str]:
    winning, finalists = tuning.winning, [trial for trial in tuning.trials if trial.is_finalist]
    if winning.lead is None or winning.low is None or winning.high is None:
        yield "There was no other finalist, so the probability that it is the best is unknown."
        return
    p, about = winning.probability, "other candidates may be as good"
    if p >= LIKELY:
        about = "its lead is significant" if p >= SIGNIFICANT else "it is likely the best"
    yield (
        f"The probability that it is the best of {len(finalists)} finalists on other documents is {p:.0%} (bootstrap on "
        f"{winning.documents:,} documents): {about}. Next is {finalists[1].settings}, {winning.lead:.3f} behind "
        f"[{winning.low:.3f}, {winning.high:.3f}]."
    )
    other = next((trial for trial in finalists[1:] if trial.system != finalists[0].system), None)
    if other is not None and other is not finalists[1]:
        yield f"The best of another system is {other.settings}, {abs(finalists[0].score - other.score):.3f} behind."


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
