"""What was chosen, what was tried, how sure the choice is, and what would be tried with more time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ramify.decisions import DecisionRule
from ramify.metrics.sums import LOSSES
from ramify.pipeline.choosing.candidates import Candidate
from ramify.pipeline.choosing.looks import Look
from ramify.pipeline.choosing.search import Search
from ramify.pipeline.choosing.sureness import Sureness, how_sure
from ramify.pipeline.comparison import Skipped

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
class Choice:
    """What :func:`~ramify.pipeline.choosing.train_best` found.

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


def choice_of(search: Search, seed: int, allowed: float) -> Choice:
    """What a search came to. allowed: seconds for all."""
    examiner, winner = search.examiner, search.finalists[0]
    sureness = how_sure(search.finalists, examiner.ground, examiner.by, seed)
    beside = [look for look in search.ranked() if look.candidate not in {each.candidate for each in search.finalists}]
    trials = [_trial(look, search, True) for look in search.finalists] + [_trial(look, search, False) for look in beside]
    left = [Untried(str(candidate), seconds) for candidate, seconds in search.left()[:MOST_LEFT]]
    chosen = winner.candidate, winner.rule, winner.is_own_rule
    return Choice(examiner.by, *chosen, sureness, trials, left, _skipped(search), examiner.allowance.used, allowed)


def taken_instead(choice: Choice, taken: Look) -> Choice:
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
