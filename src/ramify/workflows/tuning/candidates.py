"""The search space: the default, and around it systems, parameters of their learners, and features of texts."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ramify.decisions import DecisionRule
from ramify.errors import InputError
from ramify.features import FeatureUnion
from ramify.systems import DEFAULT_SYSTEM, SYSTEMS, find_system
from ramify.workflows.training import new_vectorizer

COSTS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
SMOOTHINGS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
ROUNDS = (125, 250, 500, 1000, 2000)

Settings = tuple[tuple[str, Any], ...]  # names and values, in the order in which they were set

PAIRS: Settings = (("ngram_range", (1, 2)), ("min_df", 2))
UNION: Settings = (("characters", "3-4"), *PAIRS)  # words and n-grams of characters side by side
SQUARED: Settings = (("loss", "squared_hinge"),)


@dataclass(frozen=True, slots=True)
class Prior:
    """What is known of a system before the first trial.

    cost: training time, relative to a flat SVM with C = 1. merit: expected quality, relative to the best system.
    parameter: the parameter of its learner that matters most, if any; grid: its values, rising; first: where the search starts.
    params, features: other settings to start from. variants: other parameters to try once.
    """

    cost: float
    merit: float
    parameter: str | None = None
    grid: tuple[float, ...] = ()
    first: float | None = None
    params: Settings = ()
    features: Settings = ()
    variants: tuple[Settings, ...] = ()


Priors = Mapping[str, Prior]


def _over_C(cost: float, merit: float, first: float = 1.0, **others: Any) -> Prior:
    return Prior(cost, merit, "C", COSTS, first, **others)


# measured on five corpora, rounded: see docs/which-system.md
TEXT_PRIORS: Priors = {
    "path-svm": Prior(3, 1.0, variants=((("C", 1.0),), (("C", 10.0),))),  # its learner selects C
    "ensemble": Prior(5, 1.0),
    "nb": Prior(0.2, 0.2, "alpha", SMOOTHINGS, 0.1),
    "shrinkage-nb": Prior(0.5, 0.5),
    "pachinko-nb": Prior(0.2, 0.1, "alpha", SMOOTHINGS, 0.1),
    "svm": _over_C(1, 0.6, variants=(SQUARED,)),
    "lr": _over_C(4, 0.9, first=10.0, features=UNION),
    "td-svm": _over_C(0.7, 0.3),
    "hr-svm": _over_C(4, 1.0, first=3.0, params=SQUARED, features=UNION),
    "hr-lr": _over_C(10, 0.9, first=10.0, features=UNION),
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
    "ensemble": Prior(10, 0.1),
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

# changes of the features of a system; a later one may build on an earlier one
CHANGES: tuple[Settings, ...] = (
    PAIRS,
    PAIRS[:1],
    (("min_df", 2),),
    (("stop_words", "english"),),
    (("stemmer", "english"),),
    (("ngram_range", (1, 3)), ("min_df", 2)),
)
NEEDED: dict[Settings, Settings] = {CHANGES[-1]: PAIRS[:1]}  # changes that must come first
# the same for systems on tf-idf: n-grams of characters
CHARACTER_CHANGES: tuple[Settings, ...] = (UNION, (("characters", "3-5"), *PAIRS), (("characters", "2-4"), *PAIRS))
CHARACTERS_COST = 1.5  # of n-grams of characters, relative to words
WEIGHTS = ("0.5", "2")  # of n-grams of characters beside words


@dataclass(frozen=True, slots=True)
class Candidate:
    """A system with settings that differ from its defaults.

    params: of the learner. features: of the vectorizer of words; "characters": n-grams beside them, as for ``--characters``.
    """

    system: str
    params: Settings = ()
    features: Settings = ()

    def __str__(self) -> str:
        shown = {"ngram_range": "ngrams"}
        words = [f"{name}={_short(value)}" for name, value in self.params]
        words += [f"{shown.get(name, name)}={_short(value)}" for name, value in self.features]
        return " ".join([self.system, *words])

    def with_params(self, change: Settings) -> Candidate:
        """The same with other values of parameters."""
        return replace(self, params=tuple((dict(self.params) | dict(change)).items()))

    def with_features(self, change: Settings) -> Candidate:
        """The same with other features."""
        return replace(self, features=tuple(sorted((dict(self.features) | dict(change)).items())))

    def learner(self) -> Any:
        """A new learner."""
        return find_system(self.system).learner().set_params(**dict(self.params))

    def vectorizer(self) -> Any:
        """A new vectorizer for texts."""
        words = dict(self.features)
        return new_vectorizer(find_system(self.system), words, words.pop("characters", None))


@dataclass(frozen=True, slots=True)
class Fixed:
    """What the user has set, so that it is not tuned.

    params: of the learner. features: as of a candidate. rule: the decision rule. priors: what is known of systems.
    has_texts: whether there are features to tune.
    """

    system: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)
    rule: DecisionRule | None = None
    priors: Priors = field(default_factory=lambda: TEXT_PRIORS)
    has_texts: bool = True

    def check(self) -> None:
        """Refuse parameters without their system."""
        if self.system is not None:
            find_system(self.system)
        elif self.params:
            raise InputError("parameters were given without their system; name the system, or leave them to the search.")

    def prior(self, system: str) -> Prior:
        """What is known of a system."""
        return self.priors.get(system, DEFAULT_PRIOR)

    @property
    def default(self) -> Candidate:
        """What is trained without tuning."""
        hashable = {name: tuple(value) if isinstance(value, list) else value for name, value in self.features.items()}
        return Candidate(self.system or DEFAULT_SYSTEM, tuple(self.params.items()), tuple(sorted(hashable.items())))

    def starts(self) -> list[Candidate]:
        """The default, then the first candidate of every system, the best expected quality for its time first."""
        names = SYSTEMS if self.system is None else (self.system,)
        found = [self.default]
        for name in sorted(names, key=lambda name: -self.prior(name).merit / self.prior(name).cost):
            known = self.prior(name)
            first = {} if known.parameter is None else {known.parameter: known.first}
            start = replace(self.default, system=name, params=tuple((dict(known.params) | first | dict(self.params)).items()))
            found.append(start.with_features(self._allowed(known.features)))
        return list(dict.fromkeys(found))

    def steps(self, candidate: Candidate) -> Iterator[Candidate]:
        """The same with the parameter of its learner one step up, and one down, and with variants of other parameters."""
        known, has = self.prior(candidate.system), dict(candidate.params)
        if known.parameter in has and known.parameter not in self.params:
            place = known.grid.index(has[known.parameter])
            for there in (place + 1, place - 1):
                if 0 <= there < len(known.grid):
                    yield candidate.with_params(((known.parameter, known.grid[there]),))
        for change in known.variants:
            if not {name for name, _ in change} & {*has, *self.params}:
                yield candidate.with_params(change)

    def changes(self, candidate: Candidate) -> Iterator[Candidate]:
        """The same with one allowed change of its features."""
        has, changes = dict(candidate.features), list(CHANGES)
        lengths = has.get("characters", "none")
        if _has_union(candidate.system) or find_system(candidate.system).vectorizer().weighting == "tf-idf":
            changes += CHARACTER_CHANGES
            weights = WEIGHTS if lengths != "none" and ":" not in lengths else ()
            changes += [(("characters", f"{lengths}:{weight}"),) for weight in weights]
        for change in changes:
            allowed = self._allowed(change)
            is_ready = set(NEEDED.get(change, ())) <= {*has.items(), *set(change) - set(allowed)}
            if change[0] in allowed and is_ready and any(has.get(name) != value for name, value in allowed):
                yield candidate.with_features(allowed)

    def _allowed(self, change: Settings) -> Settings:
        """What of a change of features the user has not set, and the documents and packages allow."""
        fixed = set(self.features)
        if "hashing" in fixed:
            fixed.add("min_df")
        if importlib.util.find_spec("snowballstemmer") is None:
            fixed.add("stemmer")
        return tuple((name, value) for name, value in change if self.has_texts and name not in fixed)


def relative_cost(candidate: Candidate, priors: Priors = TEXT_PRIORS) -> float:
    """The expected time of a candidate, relative to a flat SVM with C = 1 on words."""
    known, features = priors.get(candidate.system, DEFAULT_PRIOR), dict(candidate.features)
    if "characters" not in features and _has_union(candidate.system):
        features = dict(UNION) | features
    longest = int(features.get("ngram_range", (1, 1))[1])
    # most n-grams occur once
    ngrams = 1.0 if longest == 1 else 0.75 * longest if features.get("min_df", 1) != 1 else 1.25 * longest
    if features.get("characters", "none") != "none":
        ngrams += CHARACTERS_COST
    if known.parameter is None or known.first is None:
        return float(known.cost * ngrams)
    value = float(dict(candidate.params).get(known.parameter, known.first))
    return float(known.cost * ngrams * growth(known, value / known.first))


def _has_union(system: str) -> bool:
    """Whether the features of a system are words and characters by default."""
    return isinstance(find_system(system).vectorizer(), FeatureUnion)


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
