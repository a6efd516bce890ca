"""The result of a comparison of systems, and which system it recommends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from string import ascii_uppercase
from typing import Any

from ramify.errors import InputError, suggest
from ramify.formatting import duration, factor, memory, speed
from ramify.metrics import MetricEstimate
from ramify.metrics.resampling import LOSSES, Tested
from ramify.results import Result
from ramify.type_hints import checks_types

LEVEL = 0.05  # significance level
LABELS = {"accuracy": "exact match", "micro_f1": "micro F1", "macro_f1": "macro F1"}
LABELS |= {"hierarchical_f1": "hierarchical F1", "h_loss": "H-loss"}
TESTS = {
    "sign": ("s", "decisions that only one got right"),
    "macro_sign": ("S", "classes: on how many F1 is higher"),
    "t": ("T", "classes: F1"),
    "rank_t": ("T'", "classes: rank of F1"),
    "wilcoxon": ("W", "classes: rank of F1 difference"),
    "precision": ("p", "micro precision"),
    "recall": ("p", "micro recall"),
    "accuracy": ("p", "binary accuracy"),
} | {f"bootstrap_{measure}": ("b", f"{label} on bootstrap resamples") for measure, label in LABELS.items()}
CORRECTION_NAMES = {"holm": "Holm", "bonferroni": "Bonferroni", "benjamini-hochberg": "Benjamini and Hochberg"}
MIN_RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class SystemResult:
    """Measures and costs of one system.

    training_seconds: mean over folds; None for a trained model. documents_per_second: of prediction, median over folds.
    peak_memory: megabytes of training and prediction, median over folds; None where it cannot be measured.
    """

    name: str
    measures: dict[str, MetricEstimate]
    training_seconds: float | None
    documents_per_second: float
    peak_memory: float | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A system that cannot be used on the data, and the reason."""

    name: str
    reason: str


def describe_skipped(skipped: Sequence[Skipped]) -> Iterator[str]:
    """A sentence on the systems that were skipped, if any."""
    if skipped:
        were = "was" if len(skipped) == 1 else "were"
        yield f"{join_names([each.name for each in skipped])} {were} skipped: not usable on these documents."


@dataclass(frozen=True, slots=True)
class Pair:
    """All tests of two systems. corrected: p-values, corrected for the number of pairs."""

    a: str
    b: str
    tests: dict[str, Tested]
    corrected: dict[str, float]

    def winner(self, test: str) -> str | None:
        """The system that is significantly better by a test; None where the difference is not significant."""
        if not self.corrected[test] < LEVEL:  # also where it is NaN
            return None
        return self.a if self.tests[test].difference > 0 else self.b


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Result):
    """The result of :func:`compare`.

    documents: number of test documents. folds: number of test sets that measures are averaged over. classes: of the modified
    hierarchy. duplicates: number of test documents with the same text as a training document. notes: further remarks.
    """

    documents: int
    folds: int
    classes: int
    duplicates: int
    systems: list[SystemResult]
    pairs: list[Pair]
    correction: str
    n_resamples: int
    seed: int
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ranked(self, by: str) -> list[SystemResult]:
        """The systems, best first by a measure; ties in the given order."""
        sign = 1 if by in LOSSES else -1
        return sorted(self.systems, key=lambda system: sign * system.measures[by].value)

    def pair(self, one: str, other: str) -> Pair:
        """All tests of two systems, in whichever order they were compared."""
        return next(pair for pair in self.pairs if {pair.a, pair.b} == {one, other})

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON-ready values; what is not a finite number is None."""
        return dict(_plain(asdict(self)))


def check_measure(by: str) -> None:
    """Refuse the name of an unknown measure."""
    if by not in LABELS:
        raise InputError(f"measure {by!r} is unknown; the measures are {', '.join(LABELS)}.{suggest(str(by), LABELS)}")


def needed_resamples(n_systems: int, correction: str) -> int:
    """The number of resamples from which on the bootstrap of a pair can be significant after correction.

    >>> needed_resamples(3, "holm"), needed_resamples(3, "none"), needed_resamples(17, "holm")
    (120, 40, 5440)
    """
    n_pairs = n_systems * (n_systems - 1) // 2
    return math.ceil(2 * (n_pairs if correction in ("holm", "bonferroni") else 1) / LEVEL)


def enough_resamples(n_systems: int, correction: str) -> int:
    """A number of resamples with which the bootstrap of a pair is significant even if one resample contradicts.

    >>> enough_resamples(3, "holm"), enough_resamples(17, "holm")
    (1000, 10880)
    """
    return max(MIN_RESAMPLES, 2 * needed_resamples(n_systems, correction))


def letters_of(systems: Sequence[SystemResult]) -> dict[str, str]:
    """A letter for the name of each system: A, B, …, Z, A2, B2, and so on."""
    letters = (letter if k == 1 else f"{letter}{k}" for k in count(1) for letter in ascii_uppercase)
    return dict(zip((system.name for system in systems), letters, strict=False))


def join_names(names: Sequence[str], conjunction: str = "and") -> str:
    """Names as in a sentence.

    >>> join_names(["nb"]), join_names(["nb", "svm", "lr"]), join_names(["nb", "svm"], "or")
    ('nb', 'nb, svm and lr', 'nb or svm')
    """
    *first, last = names
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- recommendation -----------------------------------------------------------------------------------------------------
# The recommended system has the best value of a measure. Others may be as good where the bootstrap of that measure, after
# correction, finds no significant difference; that does not prove that they are equal.

NOUNS = LABELS | {"accuracy": "fraction of exact matches"}
MUCH_FASTER = 2.0  # factor from which on a faster system is mentioned
FEW_DOCUMENTS = 100  # with fewer, only large differences can be significant
MANY = 6  # systems, from which on not all are named in a sentence
SAME = 1e-12  # difference up to which values are equal


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended system by a measure, those that are not significantly worse, best first, and the reasons."""

    by: str
    system: str
    not_worse: list[str]
    sentences: list[str]


@checks_types
def recommend(found: Comparison, by: str = "micro_f1") -> Recommendation:
    """Recommend a system, name cheaper ones that may be as good, and state what limits the comparison.

    by: the measure: accuracy, micro_f1, macro_f1, hierarchical_f1 or h_loss.

    >>> from ramify.data import load_electronics
    >>> from ramify import TextClassifier
    >>> from ramify.workflows import compare
    >>> shop = load_electronics()
    >>> systems = {name: TextClassifier(name, shop.taxonomy) for name in ("shrinkage-nb", "nb")}
    >>> recommend(compare(systems, shop.train, test=shop.test)).sentences[0]
    'Recommended: shrinkage-nb, with the highest micro F1 of 2 systems, 0.556 [0.527, 0.584].'
    """
    check_measure(by)
    ranked = found.ranked(by)
    cost = {s.name: 1 / s.documents_per_second if s.training_seconds is None else s.training_seconds for s in ranked}
    best, *others = sorted(ranked, key=lambda each: (_behind(each, ranked[0], by), cost[each.name]))  # of ties the cheapest
    not_worse = [other for other in others if found.pair(best.name, other.name).winner(f"bootstrap_{by}") != best.name]
    worse = [other for other in others if other not in not_worse]
    sentences = [*_about_best(found, by, best, others), *_about_others(found, by, best, not_worse, worse)]
    sentences += [*_other_measures(found, by, best), *_limits(found)]
    return Recommendation(by, best.name, [system.name for system in not_worse], sentences)


def _about_best(found: Comparison, by: str, best: SystemResult, others: list[SystemResult]) -> Iterator[str]:
    measured, most = best.measures[by], "lowest" if by in LOSSES else "highest"
    value = f"{measured.value:.3f}"
    equal = [other.name for other in others if _behind(other, best, by) == 0]
    if len(equal) == len(others):
        who = "Both" if len(found.systems) == 2 else f"All {len(found.systems)}"
        yield f"{who} systems have the same {NOUNS[by]}, {value}. Recommended: {best.name}, the cheapest of them."
    elif equal:
        tied = join_names([best.name, *equal])
        yield f"Recommended: {best.name}. {tied} have the {most} {NOUNS[by]}, {value}; it is the cheapest."
    else:
        interval = f"[{measured.low:.3f}, {measured.high:.3f}]"
        yield f"Recommended: {best.name}, with the {most} {NOUNS[by]} of {len(found.systems)} systems, {value} {interval}."
    trains = "" if best.training_seconds is None else f"trains in {duration(best.training_seconds)}, "
    needs = "" if best.peak_memory is None else f" and needs {memory(best.peak_memory)} of memory"
    yield f"{best.name} {trains}classifies {speed(best.documents_per_second)} documents per second{needs}."


def _about_others(
    found: Comparison, by: str, best: SystemResult, not_worse: list[SystemResult], worse: list[SystemResult]
) -> Iterator[str]:
    """Which systems may be as good and which are worse, and the much faster ones among them."""
    different = [other for other in not_worse if _behind(other, best, by) > 0]
    on, listed = f"on these {found.documents:,} documents", _listed(different, by) if different else ""
    if different and not worse:
        chance = "The order may be chance; more documents may show more."
        yield f"No other system is significantly worse {on}, though: {listed}. {chance}"
    elif different:
        yield f"Not significantly worse {on}: {listed}."
    gains: dict[str, list[str]] = {}  # of the fastest systems, where they are much faster
    for verb in ("trains", "classifies"):
        fastest = max(not_worse, key=lambda each: _times(each, best, verb), default=best)
        if _times(fastest, best, verb) >= MUCH_FASTER:
            gains.setdefault(fastest.name, []).append(_gain(fastest, best, verb))
    if gains:
        faster_ones = [f"{name} {' and '.join(its_gains)}" for name, its_gains in gains.items()]
        yield f"Of those that may be as good, {', and '.join(faster_ones)}."
    elif not_worse:
        yield "None of those that may be as good is twice as fast."
    if len(worse) == 1:
        yield f"{_listed(worse, by)} is significantly worse."
    elif worse:
        who = f"The other {len(worse)}" if not_worse else "All others"
        yield f"{who} are significantly worse; the next is {_listed(worse[:1], by)}."
    verb = "classifies" if best.training_seconds is None else "trains"
    faster = next((system for system in worse if _times(system, best, verb) >= MUCH_FASTER), None)
    if faster is not None and not gains:
        yield f"For less time: {faster.name} is {_behind(faster, best, by):.3f} behind, and {_gain(faster, best, verb)}."


def _gain(system: SystemResult, best: SystemResult, verb: str) -> str:
    is_training = verb == "trains"
    amount = duration(system.training_seconds) if is_training else f"{speed(system.documents_per_second)} documents per second"
    return f"{verb} {factor(_times(system, best, verb))} as fast ({amount})"


def _times(system: SystemResult, best: SystemResult, verb: str) -> float:
    if verb == "classifies":
        return system.documents_per_second / best.documents_per_second
    if system.training_seconds is None or best.training_seconds is None:
        return 0.0
    return best.training_seconds / max(system.training_seconds, 1e-9)


def _other_measures(found: Comparison, by: str, best: SystemResult) -> Iterator[str]:
    leads: dict[str, list[str]] = {}
    for measure in LABELS:
        first = found.ranked(measure)[0]
        if first.name != best.name and found.pair(first.name, best.name).winner(f"bootstrap_{measure}") == first.name:
            ours, its = best.measures[measure].value, first.measures[measure].value
            leads.setdefault(first.name, []).append(f"{NOUNS[measure]} ({its:.3f} against {ours:.3f})")
    if leads:
        named = [f"{name} in {join_names(measures)}" for name, measures in leads.items()]
        yield f"Significantly better by other measures: {'; '.join(named)}."


def _limits(found: Comparison) -> Iterator[str]:
    if found.documents < FEW_DOCUMENTS:
        yield f"Only {found.documents} documents were tested, so only large differences can be significant."
    needed = needed_resamples(len(found.systems), found.correction)
    if found.n_resamples < needed:
        yield f"{found.n_resamples:,} resamples are too few for any significant difference; at least {needed:,} are needed."
    if found.correction == "none" and len(found.pairs) > 1:
        yield f"p-values are not corrected: of {len(found.pairs):,} pairs, one in twenty is significant by chance."
    yield from describe_skipped(found.skipped)


def _listed(systems: list[SystemResult], by: str) -> str:
    """Systems and their values; of many, only the first."""
    many = len(systems) > MANY
    named = [f"{system.name} ({system.measures[by].value:.3f})" for system in (systems[: MANY - 1] if many else systems)]
    return join_names([*named, f"{len(systems) - len(named)} more"] if many else named)


def _behind(system: SystemResult, best: SystemResult, by: str) -> float:
    apart = abs(system.measures[by].value - best.measures[by].value)
    return apart if apart > SAME else 0.0
