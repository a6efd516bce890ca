"""What can be chosen: a system, one number of its learner, and how texts become features."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ramify.decisions import DecisionRule
from ramify.errors import InputError
from ramify.systems import SYSTEMS, find_system

COSTS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
SMOOTHINGS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
ROUNDS = (125, 250, 500, 1000, 2000)

Settings = tuple[tuple[str, Any], ...]  # names and values, in the order in which they were set


@dataclass(frozen=True, slots=True)
class Prospect:
    """What is known of a system before anything is tried.

    cost: how long it takes, flat machines with C = 1 being 1. promise: how much it is worth to try it, the best of all being 1.
    knob: the number of its learner that matters most, if one does; ladder: what it may be, rising; first: what is tried first.
    """

    cost: float
    promise: float
    knob: str | None = None
    ladder: tuple[float, ...] = ()
    first: float | None = None


Prospects = Mapping[str, Prospect]


def _of_costs(cost: float, promise: float, first: float = 1.0) -> Prospect:
    return Prospect(cost, promise, "C", COSTS, first)


# times and promises as in docs/choosing.md, rounded: where each system stood on five corpora, and how long it took
ON_WORDS: Prospects = {
    "nb": Prospect(0.2, 0.2, "alpha", SMOOTHINGS, 0.1),
    "shrinkage-nb": Prospect(0.5, 0.7),
    "pachinko-nb": Prospect(0.2, 0.1, "alpha", SMOOTHINGS, 0.1),
    "svm": _of_costs(1, 1.0),
    "lr": _of_costs(4, 1.0, first=10.0),
    "td-svm": _of_costs(0.7, 0.3),
    "hr-svm": _of_costs(4, 0.9),
    "hr-lr": _of_costs(10, 0.9, first=10.0),
    "hsvm": _of_costs(5, 0.5),
    "ot": _of_costs(7, 0.1),
    "hblr": Prospect(60, 0.5),
    "h-svm": _of_costs(2, 0.2),
    "b-svm": _of_costs(2, 0.1),
    "adaboost-mh": Prospect(3, 0.2, "n_rounds", ROUNDS, 500),
    "treeboost-mh": Prospect(1, 0.2, "n_rounds", ROUNDS, 500),
    "isotonic-svm": _of_costs(7, 0.4),
    "isotonic-nb": Prospect(2, 0.1, "alpha", SMOOTHINGS, 0.1),
}
# few features that most documents have, as in docs/papers/gopal2013.md: logistic problems are solved soonest
ON_FEW_FEATURES: Prospects = {
    **ON_WORDS,
    "svm": _of_costs(5, 0.4),
    "lr": _of_costs(2, 1.0),
    "td-svm": _of_costs(4, 0.2, first=0.1),
    "hr-svm": _of_costs(9, 0.6, first=0.1),
    "hr-lr": _of_costs(3, 1.0),
    "hsvm": _of_costs(7, 0.8, first=0.1),
    "ot": _of_costs(12, 0.1, first=0.1),
    "hblr": Prospect(13, 0.9),
    "h-svm": _of_costs(5, 0.2),
    "b-svm": _of_costs(5, 0.1),
    "isotonic-svm": _of_costs(15, 0.3),
}
UNKNOWN = Prospect(10, 0.1)  # a system that was added and not measured yet

# what may be done to texts, beside what a system does; a later one may follow on an earlier one
PAIRS: Settings = (("ngram_range", (1, 2)),)
CHANGES: tuple[Settings, ...] = (
    (*PAIRS, ("min_df", 2)),
    PAIRS,
    (("min_df", 2),),
    (("stop_words", "english"),),
    (("stemmer", "english"),),
    (("ngram_range", (1, 3)), ("min_df", 2)),
)
NEEDED: dict[Settings, Settings] = {(("ngram_range", (1, 3)), ("min_df", 2)): PAIRS}  # what has to be there before


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to classify, but for its rule. params: of the learner. features: of the vectorizer; both beside what is usual."""

    system: str
    params: Settings = ()
    features: Settings = ()

    def __str__(self) -> str:
        shown = {"ngram_range": "ngrams"}
        words = [f"{name}={_short(value)}" for name, value in self.params]
        words += [f"{shown.get(name, name)}={_short(value)}" for name, value in self.features]
        return " ".join([self.system, *words])

    def with_param(self, name: str, value: Any) -> Candidate:
        """The same with another value of a parameter."""
        return replace(self, params=tuple((dict(self.params) | {name: value}).items()))

    def with_features(self, change: Settings) -> Candidate:
        """The same with other features."""
        return replace(self, features=tuple(sorted((dict(self.features) | dict(change)).items())))

    def learner(self) -> Any:
        """A new learner."""
        return find_system(self.system).learner().set_params(**dict(self.params))

    def vectorizer(self) -> Any:
        """A new vectorizer for texts."""
        return find_system(self.system).vectorizer().set_params(**dict(self.features))


@dataclass(frozen=True, slots=True)
class Fixed:
    """What is not to be chosen, since the user has said it.

    system, params: of the learner. features: of the vectorizer. rule: how to decide. prospects: what is known of systems.
    """

    system: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)
    rule: DecisionRule | None = None
    prospects: Prospects = field(default_factory=lambda: ON_WORDS)

    def check(self) -> None:
        """Refuse parameters of nobody."""
        if self.system is not None:
            find_system(self.system)
        elif self.params:
            raise InputError("parameters were given without the system that has them; say which, or let them be chosen.")

    def prospect(self, system: str) -> Prospect:
        """What is known of a system."""
        return self.prospects.get(system, UNKNOWN)

    def starts(self) -> list[Candidate]:
        """Every system as it is tried first, the most promising for its time first; of equals those that are listed first."""
        names = SYSTEMS if self.system is None else (self.system,)
        ordered = sorted(names, key=lambda name: -self.prospect(name).promise / self.prospect(name).cost)
        return [self._start(name) for name in ordered]

    def _start(self, name: str) -> Candidate:
        known = self.prospect(name)
        first = {} if known.knob is None else {known.knob: known.first}
        features = tuple(sorted((setting, _hashable(value)) for setting, value in self.features.items()))
        return Candidate(name, tuple((first | dict(self.params)).items()), features)

    def steps(self, candidate: Candidate) -> Iterator[Candidate]:
        """The same with the number of its learner one step up, and one down."""
        known = self.prospect(candidate.system)
        if known.knob is None or known.knob in self.params:
            return
        place = known.ladder.index(dict(candidate.params)[known.knob])
        for there in (place + 1, place - 1):
            if 0 <= there < len(known.ladder):
                yield candidate.with_param(known.knob, known.ladder[there])

    def changes(self, candidate: Candidate) -> Iterator[Candidate]:
        """The same with one change of its features that may be made."""
        has = dict(candidate.features)
        for change in CHANGES:
            allowed = tuple((name, value) for name, value in change if not self._is_settled(name))
            is_ready = set(NEEDED.get(change, ())) <= {*has.items(), *set(change) - set(allowed)}
            if change[0] in allowed and is_ready and any(has.get(name) != value for name, value in allowed):
                yield candidate.with_features(allowed)

    def _is_settled(self, name: str) -> bool:
        """Whether a setting of the vectorizer cannot be chosen."""
        if name == "stemmer" and importlib.util.find_spec("snowballstemmer") is None:
            return True
        return name in self.features or (name == "min_df" and "hashing" in self.features)


def relative_cost(candidate: Candidate, prospects: Prospects = ON_WORDS) -> float:
    """How long a candidate takes before it was ever tried, flat machines with C = 1 on words being 1."""
    known = prospects.get(candidate.system, UNKNOWN)
    runs = _cost_of_runs(dict(candidate.features))
    if known.knob is None or known.first is None:
        return float(known.cost * runs)
    value = float(dict(candidate.params).get(known.knob, known.first))
    return float(known.cost * runs * growth(known, value / known.first))


def _cost_of_runs(features: dict[str, Any]) -> float:
    """How much longer everything takes with runs of words; most of them occur once."""
    longest = int(features.get("ngram_range", (1, 1))[1])
    return 1.0 if longest == 1 else 0.75 * longest if features.get("min_df", 1) != 1 else 1.25 * longest


def growth(known: Prospect, times: float) -> float:
    """How much longer a learner takes when its number is so many times as large.

    >>> growth(ON_WORDS["svm"], 1.0), growth(ON_WORDS["adaboost-mh"], 2.0), growth(ON_WORDS["nb"], 0.1)
    (1.0, 2.0, 1.0)
    """
    if known.knob == "alpha":
        return 1.0
    return float(times) if known.knob == "n_rounds" else float(max(times, 0.1) ** 0.4)


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _short(value: Any) -> str:
    """A value in few letters.

    >>> _short((1, 2)), _short(10.0), _short("english")
    ('2', '10', 'english')
    """
    if isinstance(value, tuple):
        return str(value[1]) if len(value) == 2 and isinstance(value[1], int) else f"{len(value)} words"
    return f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
