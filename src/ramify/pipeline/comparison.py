"""What a comparison of systems found, as plain values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from string import ascii_uppercase
from typing import Any

from ramify.errors import InputError, suggest
from ramify.metrics import Measured
from ramify.metrics.paired import Tested
from ramify.metrics.sums import LOSSES

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
