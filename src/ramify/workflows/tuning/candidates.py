"""The search space: a system, one parameter of its learner, and the features of texts."""

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
class Prior:
    """What is known of a system before the first trial.

    cost: training time, relative to a flat SVM with C = 1. merit: expected quality, relative to the best system.
    parameter: the parameter of its learner that matters most, if any; grid: its values, rising; first: where the search starts.
    """

    cost: float
    merit: float
    parameter: str | None = None
    grid: tuple[float, ...] = ()
    first: float | None = None


Priors = Mapping[str, Prior]


def _over_C(cost: float, merit: float, first: float = 1.0) -> Prior:
    return Prior(cost, merit, "C", COSTS, first)


# measured on five corpora, rounded: see docs/which-system.md
TEXT_PRIORS: Priors = {
    "nb": Prior(0.2, 0.2, "alpha", SMOOTHINGS, 0.1),
    "shrinkage-nb": Prior(0.5, 0.7),
    "pachinko-nb": Prior(0.2, 0.1, "alpha", SMOOTHINGS, 0.1),
    "svm": _over_C(1, 1.0),
    "lr": _over_C(4, 1.0, first=10.0),
    "td-svm": _over_C(0.7, 0.3),
    "hr-svm": _over_C(4, 0.9),
    "hr-lr": _over_C(10, 0.9, first=10.0),
    "hsvm": _over_C(5, 0.5),
    "ot": _over_C(7, 0.1),
    "hblr": Prior(60, 0.5),
    "h-svm": _over_C(2, 0.2),
    "b-svm": _over_C(2, 0.1),
    "adaboost-mh": Prior(3, 0.2, "n_rounds", ROUNDS, 500),
    "treeboost-mh": Prior(1, 0.2, "n_rounds", ROUNDS, 500),
    "isotonic-svm": _over_C(7, 0.4),
    "isotonic-nb": Prior(2, 0.1, "alpha", SMOOTHINGS, 0.1),
}
# a few dense features, as in docs/papers/gopal2013.md: logistic regression is trained fastest
DENSE_PRIORS: Priors = {
    **TEXT_PRIORS,
    "svm": _over_C(5, 0.4),
    "lr": _over_C(2, 1.0),
    "td-svm": _over_C(4, 0.2, first=0.1),
    "hr-svm": _over_C(9, 0.6, first=0.1),
    "hr-lr": _over_C(3, 1.0),
    "hsvm": _over_C(7, 0.8, first=0.1),
    "ot": _over_C(12, 0.1, first=0.1),
    "hblr": Prior(13, 0.9),
    "h-svm": _over_C(5, 0.2),
    "b-svm": _over_C(5, 0.1),
    "isotonic-svm": _over_C(15, 0.3),
}
DEFAULT_PRIOR = Prior(10, 0.1)  # of a system that was not measured yet

# changes of the vectorizer of a system; a later one may build on an earlier one
PAIRS: Settings = (("ngram_range", (1, 2)),)
CHANGES: tuple[Settings, ...] = (
    (*PAIRS, ("min_df", 2)),
    PAIRS,
    (("min_df", 2),),
    (("stop_words", "english"),),
    (("stemmer", "english"),),
    (("ngram_range", (1, 3)), ("min_df", 2)),
)
NEEDED: dict[Settings, Settings] = {(("ngram_range", (1, 3)), ("min_df", 2)): PAIRS}  # changes that must come first


@dataclass(frozen=True, slots=True)
class Candidate:
    """A system with settings that differ from its defaults. params: of the learner. features: of the vectorizer."""

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
    """What the user has set, so that it is not tuned.

    params: of the learner. features: of the vectorizer. rule: the decision rule. priors: what is known of systems.
    """

    system: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)
    rule: DecisionRule | None = None
    priors: Priors = field(default_factory=lambda: TEXT_PRIORS)

    def check(self) -> None:
        """Refuse parameters without their system."""
        if self.system is not None:
            find_system(self.system)
        elif self.params:
            raise InputError("parameters were given without their system; name the system, or leave them to the search.")

    def prior(self, system: str) -> Prior:
        """What is known of a system."""
        return self.priors.get(system, DEFAULT_PRIOR)

    def starts(self) -> list[Candidate]:
        """The first candidate of every system, the best expected quality for its time first; ties in the order of the list."""
        names = SYSTEMS if self.system is None else (self.system,)
        hashable = {name: tuple(value) if isinstance(value, list) else value for name, value in self.features.items()}
        found = []
        for name in sorted(names, key=lambda name: -self.prior(name).merit / self.prior(name).cost):
            known = self.prior(name)
            first = {} if known.parameter is None else {known.parameter: known.first}
            found.append(Candidate(name, tuple((first | dict(self.params)).items()), tuple(sorted(hashable.items()))))
        return found

    def steps(self, candidate: Candidate) -> Iterator[Candidate]:
        """The same with the parameter of its learner one step up, and one down."""
        known = self.prior(candidate.system)
        if known.parameter is None or known.parameter in self.params:
            return
        place = known.grid.index(dict(candidate.params)[known.parameter])
        for there in (place + 1, place - 1):
            if 0 <= there < len(known.grid):
                yield candidate.with_param(known.parameter, known.grid[there])

    def changes(self, candidate: Candidate) -> Iterator[Candidate]:
        """The same with one allowed change of its features."""
        has, fixed = dict(candidate.features), set(self.features)
        if "hashing" in fixed:
            fixed.add("min_df")
        if importlib.util.find_spec("snowballstemmer") is None:
            fixed.add("stemmer")
        for change in CHANGES:
            allowed = tuple((name, value) for name, value in change if name not in fixed)
            is_ready = set(NEEDED.get(change, ())) <= {*has.items(), *set(change) - set(allowed)}
            if change[0] in allowed and is_ready and any(has.get(name) != value for name, value in allowed):
                yield candidate.with_features(allowed)


def relative_cost(candidate: Candidate, priors: Priors = TEXT_PRIORS) -> float:
    """The expected time of a candidate, relative to a flat SVM with C = 1 on words."""
    known, features = priors.get(candidate.system, DEFAULT_PRIOR), dict(candidate.features)
    longest = int(features.get("ngram_range", (1, 1))[1])
    # most n-grams occur once
    ngrams = 1.0 if longest == 1 else 0.75 * longest if features.get("min_df", 1) != 1 else 1.25 * longest
    if known.parameter is None or known.first is None:
        return float(known.cost * ngrams)
    value = float(dict(candidate.params).get(known.parameter, known.first))
    return float(known.cost * ngrams * growth(known, value / known.first))


def growth(known: Prior, factor: float) -> float:
    """How much longer a learner takes when its parameter is this many times as large.

    >>> growth(TEXT_PRIORS["svm"], 1.0), growth(TEXT_PRIORS["adaboost-mh"], 2.0), growth(TEXT_PRIORS["nb"], 0.1)
    (1.0, 2.0, 1.0)
    """
    if known.parameter == "alpha":
        return 1.0
    return float(factor) if known.parameter == "n_rounds" else float(max(factor, 0.1) ** 0.4)


def _short(value: Any) -> str:
    """A value in short.

    >>> _short((1, 2)), _short(10.0), _short("english")
    ('2', '10', 'english')
    """
    if isinstance(value, tuple):
        return str(value[1]) if len(value) == 2 and isinstance(value[1], int) else f"{len(value)} words"
    return f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
