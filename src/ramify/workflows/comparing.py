"""Several systems on the same documents: how good each is, and which differences are more than luck.

Systems are trained and tested on the same folds, or trained on one corpus and tested on another, or, where they are trained
already, only tested. Every document is tested once, so all answers can be pooled for the tests. A system that cannot take the
data is left out with its reason; what the others did stays. Here they take turns, since they are timed; on a cluster, they run
side by side, each with the threads of one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.errors import DataError, InputError
from ramify.metrics import Measured, correct_p_values, measure_predictions
from ramify.metrics.flat import Counts
from ramify.metrics.resampling import check_resamples, compare_all_predictions, modified_classes
from ramify.metrics.significance import Correction, check_correction
from ramify.parallel import Executor, current_executor, single_stage
from ramify.parallel.progress import SingleStage
from ramify.systems import find_system
from ramify.taxonomy import Taxonomy, as_taxonomy, taxonomy_of_labels
from ramify.workflows.compare_trials import Answered, Arena, Round, Rounds, Trial, try_out, try_out_elsewhere, warm_up
from ramify.workflows.comparison import Comparison, Pair, Skipped, SystemResult, enough_resamples, in_words
from ramify.workflows.evaluation import check_labels
from ramify.workflows.folds import split_into_folds

Tried = Generator[Answered | None, None, None]  # what came of trials, one after the other
TESTING = 2  # steps of the progress bar that the tests of all pairs are worth


@dataclass(frozen=True, slots=True)
class _Answers:
    """The answers of one system, the seconds spent and the megabytes needed, test set by test set."""

    answers: list[csr_array] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    answering: list[float] = field(default_factory=list)
    memory: list[float | None] = field(default_factory=list)

    def take_in(self, answered: Answered) -> None:
        """Add the answers to one more test set."""
        self.answers.append(answered.answers)
        self.answering.append(answered.answering)
        self.memory.append(answered.memory)
        if answered.training is not None:
            self.training.append(answered.training)


def compare(
    classifiers: Mapping[str, TextClassifier],
    corpus: Corpus,
    *,
    test: Corpus | None = None,
    folds: int = 5,
    seed: int = 0,
    n_resamples: int | None = None,
    correction: Correction = "holm",
) -> Comparison:
    """Compare classifiers, given by name, on the same documents.

    With `test` they learn from `corpus` and are tested on `test`; without, the corpus is dealt into folds, each tested by what
    learnt from the others. Classifiers that are fitted already are tested on the corpus as they are; clone them to start anew.
    Intervals come from `n_resamples` resamples of the documents; without a number, from 1,000, or more where there are so many
    pairs that fewer could not tell. p-values are corrected over all pairs. What cannot take the data is left out.
    Within ``ramify.parallel.running_on(executor)``, systems and folds run there side by side.

    >>> from ramify.data import load_electronics
    >>> shop = load_electronics()
    >>> systems = {name: TextClassifier(name, shop.taxonomy) for name in ("shrinkage-nb", "nb")}
    >>> found = compare(systems, shop.train, test=shop.test, n_resamples=100)
    >>> found.systems[0].measures["micro_f1"].value > found.systems[1].measures["micro_f1"].value
    True
    >>> found.pairs[0].corrected["sign"] < 0.05
    True
    """
    check_correction(correction)
    if n_resamples is not None:
        check_resamples(n_resamples)
    taxonomy = _common_taxonomy(classifiers, corpus)
    dealt = _rounds(classifiers, corpus, test, taxonomy, folds, seed)
    rounds = list(dealt)
    Y_true = [taxonomy.encode(tested.labels) for _, tested in rounds]
    n_steps = len(classifiers) * (len(rounds) + 1) + TESTING
    elsewhere = current_executor()
    with single_stage("comparing", n_steps) as whole:
        arena = Arena(rounds if elsewhere is None else dealt, taxonomy, next(iter(classifiers.values())))
        given, skipped = _answer_all(classifiers, arena, elsewhere, whole)
        settings: dict[str, Any] = {"n_resamples": n_resamples or enough_resamples(len(given), correction), "seed": seed}
        systems = _measure_all(given, Y_true, taxonomy, settings, whole)
        whole.describe("testing pairs")
        pairs = _test_pairs(given, csr_array(vstack(Y_true, format="csr")), taxonomy, correction, settings)
        whole.advance(TESTING)
    return Comparison(
        documents=sum(len(tested) for _, tested in rounds),
        folds=len(rounds),
        classes=len(_classes(Y_true, taxonomy)),
        seen_before=sum(_count_seen(*each) for each in rounds),
        systems=systems,
        pairs=pairs,
        correction=correction,
        **settings,
        skipped=skipped,
        notes=[*_notes({name: classifiers[name] for name in given}, rounds), *_notes_on_times(elsewhere)],
    )


def _common_taxonomy(classifiers: Mapping[str, TextClassifier], corpus: Corpus) -> Taxonomy:
    """The taxonomy of all classifiers; refuses one classifier alone, and several that cannot be compared."""
    if len(classifiers) < 2:
        raise InputError(f"a comparison needs two systems or more, not {len(classifiers)}; give another.")
    if len({_is_fitted(classifier) for classifier in classifiers.values()}) > 1:
        raise InputError("some of the systems are trained and some are not; give either trained ones only, or new ones only.")
    found = {name: _taxonomy_of(classifier, corpus) for name, classifier in classifiers.items()}
    first, *others = found
    for name in others:
        if not _are_same(found[first], found[name]):
            raise InputError(
                f"{first!r} and {name!r} have different taxonomies; only systems for the same one can be compared."
            )
    return found[first]


def _taxonomy_of(classifier: TextClassifier, corpus: Corpus) -> Taxonomy:
    if _is_fitted(classifier):
        return classifier.taxonomy_
    given = classifier.taxonomy
    return taxonomy_of_labels(corpus.labels, classifier.separator) if given is None else as_taxonomy(given)


def _are_same(one: Taxonomy, other: Taxonomy) -> bool:
    return (
        list(one.names) == list(other.names)
        and np.array_equal(one.parent_offsets, other.parent_offsets)
        and np.array_equal(one.parent_nodes, other.parent_nodes)
    )


def _is_fitted(classifier: TextClassifier) -> bool:
    return classifier.__sklearn_is_fitted__()


def _rounds(
    classifiers: Mapping[str, TextClassifier], corpus: Corpus, test: Corpus | None, taxonomy: Taxonomy, folds: int, seed: int
) -> Rounds:
    """What is learnt from and tested on, one round a test set."""
    are_fitted = _is_fitted(next(iter(classifiers.values())))
    if are_fitted and test is not None:
        raise InputError("the systems are trained already, so there is nothing to learn; give only the documents to test on.")
    for documents in (corpus,) if test is None else (corpus, test):
        check_labels(documents, taxonomy)
        if len(documents) == 0:
            raise DataError(f"{documents.source} has no labelled documents to compare on.")
    if are_fitted or test is not None:
        return Rounds(corpus, test)
    return Rounds(corpus, parts=tuple(split_into_folds(corpus, taxonomy, folds, seed)))


def _answer_all(
    classifiers: Mapping[str, TextClassifier], arena: Arena, elsewhere: Executor | None, whole: SingleStage
) -> tuple[dict[str, _Answers], list[Skipped]]:
    """The answers of all systems; all take the first round before any takes the next, so mistakes show early."""
    found, skipped = {name: _Answers() for name in classifiers}, dict[str, Skipped]()
    n_rounds = len(arena.rounds)
    trials = [Trial(name, classifier, k) for k in range(n_rounds) for name, classifier in classifiers.items()]
    tell = partial(_tell, found, n_rounds, whole)
    tried = _in_turn(arena, trials, tell) if elsewhere is None else _side_by_side(arena, trials, tell, elsewhere)
    with closing(tried):
        for k in range(n_rounds):
            for name, answered in zip(classifiers, tried, strict=False):  # as many as there are systems
                if answered is None:
                    continue
                if answered.reason is None:
                    found[name].take_in(answered)
                    whole.advance()
                else:
                    del found[name]
                    skipped[name] = Skipped(name, answered.reason)
                    whole.advance(1 + n_rounds - k)  # also what it will not do: the other rounds, and being measured
            _refuse_too_few(found, skipped.values())
    return found, list(skipped.values())


def _tell(found: Mapping[str, _Answers], n_rounds: int, whole: SingleStage, trial: Trial) -> bool:
    """Say which trial is at hand, if its system is not left out; gives whether it is not."""
    if trial.name in found:
        whole.describe(f"{trial.name}, fold {trial.number + 1} of {n_rounds}" if n_rounds > 1 else trial.name)
    return trial.name in found


def _in_turn(arena: Arena, trials: Sequence[Trial], tell: Callable[[Trial], bool]) -> Tried:
    """Trials one after the other, so that none slows another down; None for those of systems that are left out."""
    warm_up(arena)
    for trial in trials:
        yield try_out(arena, trial) if tell(trial) else None


def _side_by_side(arena: Arena, trials: Sequence[Trial], tell: Callable[[Trial], bool], executor: Executor) -> Tried:
    """Trials that run elsewhere, each with the threads of one machine, told as they are done."""
    threads = min(executor.worker_threads)
    blocks = [replace(trial, threads=threads) for trial in trials]
    answers = executor.distribute(try_out_elsewhere, executor.place(arena), blocks, threads=threads)
    for trial, answered in zip(trials, answers, strict=True):
        yield answered if tell(trial) else None


def _refuse_too_few(left: Mapping[str, _Answers], skipped: Iterable[Skipped]) -> None:
    """Refuse to go on with fewer than two systems, and say why the others cannot take the data."""
    if len(left) < 2:
        by_reason: dict[str, list[str]] = {}
        for each in skipped:
            by_reason.setdefault(each.reason.rstrip("."), []).append(each.name)
        reasons = "; ".join(f"{in_words(names)}: {reason}" for reason, names in by_reason.items())
        able = f"only {next(iter(left))!r}" if left else "none of the systems"
        raise InputError(f"{able} can take these documents, and a comparison needs two; {reasons}.")


def _measure_all(
    given: Mapping[str, _Answers], Y_true: Sequence[csr_array], taxonomy: Taxonomy, settings: dict[str, Any], whole: SingleStage
) -> list[SystemResult]:
    classes, systems = _classes(Y_true, taxonomy), []
    for name, found in given.items():
        whole.describe(f"measuring {name}")
        measures = measure_predictions(list(zip(Y_true, found.answers, strict=True)), taxonomy, classes, **settings)
        systems.append(_result(name, found, measures))
        whole.advance()
    return systems


def _classes(Y_true: Sequence[csr_array], taxonomy: Taxonomy) -> Counts:
    return modified_classes(csr_array(vstack(Y_true, format="csr")), taxonomy)


def _result(name: str, found: _Answers, measures: dict[str, Measured]) -> SystemResult:
    seconds = float(np.mean(found.training)) if found.training else None
    memory = [megabytes for megabytes in found.memory if megabytes is not None]
    height = float(np.median(memory)) if memory else None
    n_each = [answers.shape[0] for answers in found.answers]
    speed = float(np.median(np.asarray(n_each) / np.maximum(found.answering, 1e-9)))
    return SystemResult(name, measures, seconds, speed, height)


def _test_pairs(
    given: Mapping[str, _Answers], Y_true: csr_array, taxonomy: Taxonomy, correction: Correction, settings: dict[str, Any]
) -> list[Pair]:
    """Every test of every pair on the pooled answers, p-values corrected over the pairs for each test."""
    pooled = {name: csr_array(vstack(found.answers, format="csr")) for name, found in given.items()}
    tests = compare_all_predictions(Y_true, pooled, taxonomy, **settings)
    p_values = {test: [found[test].p_value for found in tests.values()] for test in next(iter(tests.values()))}
    corrected = {test: correct_p_values(raw, correction) for test, raw in p_values.items()}
    return [
        Pair(a, b, found, {test: float(p[k]) for test, p in corrected.items()})
        for k, ((a, b), found) in enumerate(tests.items())
    ]


def _notes_on_times(elsewhere: Executor | None) -> list[str]:
    """What times are worth that were not taken here, in turn."""
    if elsewhere is None:
        return []
    least, n_machines = min(elsewhere.worker_threads), len(elsewhere.worker_threads)
    threads = "1 thread" if least == 1 else f"{least:,} threads"
    if n_machines == 1:
        return [f"systems were trained and timed elsewhere, with {threads} each"]
    return [
        f"systems ran side by side on a cluster, with {threads} each; "
        "they may have slowed each other down, so times tell less than where systems take turns"
    ]


def _notes(compared: Mapping[str, TextClassifier], rounds: Sequence[Round]) -> list[str]:
    """What is good to know about systems that answer with one label, where documents have several."""
    several = sum(len(labels) > 1 for _, tested in rounds for labels in tested.labels)
    names = [name for name, classifier in compared.items() if _gives_one(classifier)]
    if not several or not names:
        return []
    learns, answers = ("learns", "answers") if len(names) == 1 else ("learn", "answer")
    documents = "1 document has" if several == 1 else f"{several:,} documents have"
    return [f"{documents} several labels; {in_words(names)} {learns} from all, and {answers} with one"]


def _gives_one(classifier: TextClassifier) -> bool:
    is_ruled = _is_fitted(classifier) or classifier.decision is not None
    return not is_ruled and not find_system(classifier.system).is_multi_label


def _count_seen(learn: Corpus | None, tested: Corpus) -> int:
    if learn is None or learn.has_vectors or tested.has_vectors:
        return 0
    seen = set(learn.documents)
    return sum(text in seen for text in tested.documents)
