"""What a comparison of systems found, as plain values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from string import ascii_uppercase
from typing import Any

from ramify.errors import InputError, suggest
from ramify.formatting import duration, factor, memory, speed
from ramify.metrics import Measured
from ramify.metrics.resampling import LOSSES, Tested

LEVEL = 0.05  # below it a difference is called one
LABELS = {
    "accuracy": "exactly right",
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "hierarchical_f1": "hierarchical F1",
    "h_loss": "H-loss",
}
TESTS = {
    "sign": ("s", "decisions that one alone got right"),
    "macro_sign": ("S", "classes: on how many F1 is higher"),
    "t": ("T", "classes: F1"),
    "rank_t": ("T'", "classes: rank of F1"),
    "wilcoxon": ("W", "classes: rank of F1 difference"),
    "precision": ("p", "micro precision"),
    "recall": ("p", "micro recall"),
    "accuracy": ("p", "share of decisions that are right"),
} | {f"bootstrap_{measure}": ("b", f"{label} on resampled documents") for measure, label in LABELS.items()}
CORRECTED_AFTER = {"holm": "Holm", "bonferroni": "Bonferroni", "benjamini-hochberg": "Benjamini & Hochberg"}
FEWEST_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system: its measures and what it costs.

    training_seconds: of one training, the mean over folds; None for a trained model. documents_per_second: how fast it answers,
    in the middle one of the folds.
    peak_memory: megabytes that one fold needs at its height, above what was there before; None where nothing can tell.
    """

    name: str
    measures: dict[str, Measured]
    training_seconds: float | None
    documents_per_second: float
    peak_memory: float | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A system that cannot take the data, and why, in its own words."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems put to every test; corrected: p-values, made larger for the number of pairs."""

    a: str
    b: str
    tests: dict[str, Tested]
    corrected: dict[str, float]

    def ahead(self, test: str) -> str | None:
        """The system that is better by more than luck, as a test sees it; None where it cannot tell."""
        if not self.corrected[test] < LEVEL:  # nor is NaN
            return None
        return self.a if self.tests[test].difference > 0 else self.b


@dataclass(frozen=True, slots=True)
class Comparison:
    """What :func:`compare` found.

    documents: how many were tested. folds: over how many test sets measures are averaged. classes: of the modified hierarchy.
    seen_before: how many test documents have the text of one that was learnt from. skipped: systems that could not take the
    data. notes: what else is good to know.
    """

    documents: int
    folds: int
    classes: int
    seen_before: int
    systems: list[SystemResult]
    pairs: list[Pair]
    correction: str
    n_resamples: int
    seed: int
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ranked(self, by: str) -> list[SystemResult]:
        """The systems, best first by a measure; of equals the first given."""
        sign = 1 if by in LOSSES else -1
        return sorted(self.systems, key=lambda system: sign * system.measures[by].value)

    def pair(self, one: str, other: str) -> Pair:
        """Two systems put to every test, whichever was given first."""
        return next(pair for pair in self.pairs if {pair.a, pair.b} == {one, other})

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON-ready values; what is not a finite number is None."""
        values: dict[str, Any] = _plain(asdict(self))
        return values


def check_measure(by: str) -> None:
    """Refuse a name that no measure has."""
    if by not in LABELS:
        raise InputError(f"measure {by!r} is unknown; the measures are {', '.join(LABELS)}.{suggest(str(by), LABELS)}")


def needed_resamples(n_systems: int, correction: str) -> int:
    """So many resamples it takes for the bootstrap of a pair to be able to fall below the level after correction.

    >>> needed_resamples(3, "holm"), needed_resamples(3, "none"), needed_resamples(17, "holm")
    (120, 40, 5440)
    """
    n_pairs = n_systems * (n_systems - 1) // 2
    return math.ceil(2 * (n_pairs if correction in ("holm", "bonferroni") else 1) / LEVEL)


def enough_resamples(n_systems: int, correction: str) -> int:
    """So many resamples that the bootstrap of a pair may also say yes when one of them says no.

    >>> enough_resamples(3, "holm"), enough_resamples(17, "holm")
    (1000, 10880)
    """
    return max(FEWEST_RESAMPLES, 2 * needed_resamples(n_systems, correction))


def letters_of(systems: Sequence[SystemResult]) -> dict[str, str]:
    """A letter for the name of each system: A, B, …, Z, A2, B2, and so on."""
    turns = (letter if turn == 1 else f"{letter}{turn}" for turn in count(1) for letter in ascii_uppercase)
    return dict(zip((system.name for system in systems), turns, strict=False))


def in_words(names: Sequence[str], joined_by: str = "and") -> str:
    """Names as they stand in a sentence.

    >>> in_words(["nb"]), in_words(["nb", "svm", "lr"]), in_words(["nb", "svm"], "or")
    ('nb', 'nb, svm and lr', 'nb or svm')
    """
    *first, last = names
    return f"{', '.join(first)} {joined_by} {last}" if first else last


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# --------------------------------------------------------------------------------------------------------------
# Which system to take, in words: from what a comparison measured, and from nothing else.
#
# The best is the one with the best value of a measure. Others are called as good where the bootstrap of that measure, after
# correction, cannot tell them from it; that they are equal it does not say, and neither do the words.


NOUNS = LABELS | {"accuracy": "share of exactly right answers"}
MUCH = 2.0  # times as fast, from which on it is worth a word
FEW_DOCUMENTS = 100  # below, only large differences can show
MANY = 6  # systems that are not all named in a sentence
SAME = 1e-12  # values that are so near are equal


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to take.

    by: the measure that it goes by. system: the one to take. as_good: those that the documents cannot tell from it, best
    first. words: sentences.
    """

    by: str
    system: str
    as_good: list[str]
    words: list[str]


def recommend(found: Comparison, by: str = "micro_f1") -> Recommendation:
    """Which system to take, which are as good as far as the documents tell but cheaper, and what is to be minded.

    by: the measure: accuracy, micro_f1, macro_f1, hierarchical_f1 or h_loss.

    >>> from ramify.data import load_electronics
    >>> from ramify import TextClassifier
    >>> from ramify.workflows import compare
    >>> shop = load_electronics()
    >>> systems = {name: TextClassifier(name, shop.taxonomy) for name in ("shrinkage-nb", "nb")}
    >>> recommend(compare(systems, shop.train, test=shop.test)).words[0]
    'Take shrinkage-nb: of 2 systems it has the highest micro F1, 0.534 [0.507, 0.561].'
    """
    check_measure(by)
    best, *others = sorted(found.ranked(by), key=lambda system: (_behind(system, found.ranked(by)[0], by), _cost(system)))
    as_good = [other for other in others if found.pair(best.name, other.name).ahead(f"bootstrap_{by}") != best.name]
    behind = [other for other in others if other not in as_good]
    words = [
        *_take(found, by, best, others),
        _costs(best),
        *_equals(found, by, best, as_good, is_all=not behind),
        *_cheaper_equals(best, as_good),
        *_rest(by, behind, is_all=not as_good),
        *_cheaper_rest(by, best, [] if _fastest(as_good, best) else behind),
        *_other_measures(found, by, best),
        *_mind(found),
    ]
    return Recommendation(by, best.name, [system.name for system in as_good], words)


def _take(found: Comparison, by: str, best: SystemResult, others: list[SystemResult]) -> Iterator[str]:
    measured, most = best.measures[by], "least" if by in LOSSES else "highest"
    value = f"{measured.value:.3f}"
    equal = [other.name for other in others if _behind(other, best, by) == 0]
    if len(equal) == len(others):
        who = "Both" if len(found.systems) == 2 else f"All {len(found.systems)}"
        yield f"{who} systems have the same {NOUNS[by]}, {value}; take {best.name}, the cheapest of them."
    elif equal:
        yield f"Take {best.name}: it shares the {most} {NOUNS[by]}, {value}, with {in_words(equal)}, and is the cheapest."
    else:
        spread = f"[{measured.low:.3f}, {measured.high:.3f}]"
        yield f"Take {best.name}: of {len(found.systems)} systems it has the {most} {NOUNS[by]}, {value} {spread}."


def _equals(found: Comparison, by: str, best: SystemResult, as_good: list[SystemResult], is_all: bool) -> Iterator[str]:
    """Who is as good as far as these documents tell."""
    apart = [other for other in as_good if _behind(other, best, by) > 0]
    if apart and is_all:
        yield (
            f"These {found.documents:,} documents cannot tell it from any other, though: {_listed(apart, by)}. "
            "The order may be luck; more documents may show more."
        )
    elif apart:
        yield f"These {found.documents:,} documents cannot tell it from {_listed(apart, by)}."


def _rest(by: str, behind: list[SystemResult], is_all: bool) -> Iterator[str]:
    """Who is worse."""
    if len(behind) == 1:
        yield f"{_listed(behind, by)} is behind by more than luck."
    elif behind:
        who = "All others" if is_all else f"The other {len(behind)}"
        yield f"{who} are behind by more than luck; the next is {_listed(behind[:1], by)}."


def _costs(best: SystemResult) -> str:
    learns = "" if best.training_seconds is None else f"learns in {duration(best.training_seconds)}, "
    needs = "" if best.peak_memory is None else f" and needs {memory(best.peak_memory)} of memory"
    answers = f"classifies {speed(best.documents_per_second)} documents a second"
    return f"{best.name} {learns}{answers}{needs}."


def _cheaper_equals(best: SystemResult, as_good: list[SystemResult]) -> Iterator[str]:
    fastest = _fastest(as_good, best)
    if fastest:
        gains = [f"{name} {' and '.join(its_gains)}" for name, its_gains in fastest.items()]
        yield f"Of those that may be as good, {', and '.join(gains)}."
    elif as_good:
        yield "None of those that may be as good is twice as fast."


def _cheaper_rest(by: str, best: SystemResult, behind: list[SystemResult]) -> Iterator[str]:
    """The best of the others that is much cheaper."""
    verb = "classifies" if best.training_seconds is None else "learns"
    system = next((system for system in behind if _times(system, best, verb) >= MUCH), None)
    if system is not None:
        yield f"For less time: {system.name} is {_behind(system, best, by):.3f} behind, and {_gain(system, best, verb)}."


def _fastest(systems: list[SystemResult], best: SystemResult) -> dict[str, list[str]]:
    """Who learns and who classifies fastest, where that is much faster, and how much."""
    found: dict[str, list[str]] = {}
    for verb in ("learns", "classifies"):
        system = max(systems, key=lambda each: _times(each, best, verb), default=best)
        if _times(system, best, verb) >= MUCH:
            found.setdefault(system.name, []).append(_gain(system, best, verb))
    return found


def _gain(system: SystemResult, best: SystemResult, verb: str) -> str:
    is_learning = verb == "learns"
    amount = duration(system.training_seconds) if is_learning else f"{speed(system.documents_per_second)} documents a second"
    return f"{verb} {factor(_times(system, best, verb))} as fast ({amount})"


def _times(system: SystemResult, best: SystemResult, verb: str) -> float:
    if verb == "classifies":
        return system.documents_per_second / best.documents_per_second
    if system.training_seconds is None or best.training_seconds is None:
        return 0.0
    return best.training_seconds / max(system.training_seconds, 1e-9)


def _other_measures(found: Comparison, by: str, best: SystemResult) -> Iterator[str]:
    """Who leads where it is another, by more than luck."""
    leads: dict[str, list[str]] = {}
    for measure in LABELS:
        first = found.ranked(measure)[0]
        if first.name != best.name and found.pair(first.name, best.name).ahead(f"bootstrap_{measure}") == first.name:
            ours, its = best.measures[measure].value, first.measures[measure].value
            leads.setdefault(first.name, []).append(f"{NOUNS[measure]} ({its:.3f} against {ours:.3f})")
    if leads:
        named = [f"{name} in {in_words(measures)}" for name, measures in leads.items()]
        yield f"By other measures others lead by more than luck: {'; '.join(named)}."


def _mind(found: Comparison) -> Iterator[str]:
    """What weakens all this."""
    if found.documents < FEW_DOCUMENTS:
        yield f"Only {found.documents} documents were tested, so only large differences can show."
    needed = needed_resamples(len(found.systems), found.correction)
    if found.n_resamples < needed:
        yield f"{found.n_resamples:,} resamples are too few to call any difference more than luck; it takes {needed:,}."
    if found.correction == "none" and len(found.pairs) > 1:
        yield f"p-values are not corrected: of {len(found.pairs):,} pairs, one in twenty seems to differ by luck."
    if found.skipped:
        were = "was" if len(found.skipped) == 1 else "were"
        yield f"{in_words([each.name for each in found.skipped])} {were} left out, being unable to take these documents."


def _listed(systems: list[SystemResult], by: str) -> str:
    """Systems and their values; of many, the first."""
    many = len(systems) > MANY
    named = [f"{system.name} ({system.measures[by].value:.3f})" for system in (systems[: MANY - 1] if many else systems)]
    return in_words([*named, f"{len(systems) - len(named)} more"] if many else named)


def _behind(system: SystemResult, best: SystemResult, by: str) -> float:
    """How much worse a system's value is."""
    apart = abs(system.measures[by].value - best.measures[by].value)
    return apart if apart > SAME else 0.0


def _cost(system: SystemResult) -> float:
    return 1 / system.documents_per_second if system.training_seconds is None else system.training_seconds
