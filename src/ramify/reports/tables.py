"""The tables of reports, audits, comparisons and tuning as text: the terminal and the pages show the same cells."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from ramify.formatting import NOTHING, counted, duration, memory, p_value, speed
from ramify.metrics.evaluation import Report
from ramify.workflows import comparison
from ramify.workflows.auditing.audit import Audit, Duplicates
from ramify.workflows.comparison import LABELS, LEVEL, TESTS, Comparison, Pair, SystemResult
from ramify.workflows.training import TrainResult
from ramify.workflows.tuning.result import TuningResult
from ramify.workflows.updating import PartialFitResult, UpdateResult

SHOWN_NODES = 10  # names of nodes that are listed

FIGURES = {
    "accuracy": "exact match",
    "hierarchical_f1": "hierarchical F1 (with ancestors)",
    "micro_f1_own": "micro F1, most specific labels",
    "macro_f1_own": "macro F1, most specific labels",
    "micro_f1_leaves": "micro F1, leaves",
    "macro_f1_leaves": "macro F1, leaves with documents",
    "h_loss": "H-loss",
    "h_loss_siblings": "H-loss, costs 1 / siblings",
    "h_loss_own_costs": "H-loss, own costs",
    "mean_distance_of_errors": "distance of an error (steps in the tree)",
    "document_auc": "AUC within a document",
    "leaf_precision_at_1": "precision at 1 (leaves)",
    "leaf_precision_at_3": "precision at 3 (leaves)",
    "prediction_calibration_error": "calibration error of predicted labels",
}
LEAVES = {"all": "all leaves", "leaves": "original leaves", "dummies": "dummy leaves"}

# the columns of the tables of a report: a name, and how a cell is written from the values of a row
F1 = "nodes={nodes:,} | support={support:,} | precision={precision:.3f} | recall={recall:.3f} | micro F1={f1:.3f}"
F1 += " | macro F1={macro_f1:.3f}"
MODIFIED = "={kind} | leaves={n_classes:,} | with documents={n_occurring:,} | labels={n_labels:,} | micro F1={micro_f1:.3f}"
MODIFIED += " | macro F1={macro_f1:.3f} | macro F1 (with documents)={macro_f1_occurring:.3f}"
CALIBRATION = "level={level} | all nodes={pairs:.3f} | before calibration={pairs_uncalibrated:.3f}"
CALIBRATION += " | most probable node={top_label:.3f} | before calibration={top_label_uncalibrated:.3f}"
GUARANTEES = "risk={risk:g} | guaranteed={guaranteed:.1%} | achieved={achieved:.1%} | mean depth={depth:.2f}"
GUARANTEES += " | depth without guarantee={depth_without_guarantee:.2f} | no label={without_label:.1%}"
CONFUSIONS = "true={true} | predicted={predicted} | below={below} | times={count}"
NODES = "node={path} | true={support:,} | predicted={predicted:,} | precision={precision:.2f} | recall={recall:.2f}"
NODES += " | F1={f1:.2f}"
DISTANCES = "steps in the tree={steps} | documents={documents:,} | fraction={fraction:.1%}"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text below the names of columns.

    text_columns: columns of words, aligned at the left; others are numbers, aligned at the right. note: a line below.
    bars: one number between 0 and 1 per row, which the terminal also draws as a bar.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Collection[int] = (0,)
    note: str = ""
    bars: Sequence[float] = ()

    def first(self, most: int | None) -> Table:
        """The first rows, and a note of how many more there are. most: None for all."""
        if most is None or len(self.rows) <= most:
            return self
        note = f"The first {most:,} of {len(self.rows):,}. {self.note}".strip()
        return replace(self, rows=self.rows[:most], bars=self.bars[:most], note=note)


def shorten(text: str, length: int) -> str:
    """The beginning of a text on one line.

    >>> shorten("no  picture\\non my new television", 20)
    'no picture on my ne…'
    """
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"


def percentage(p: float) -> str:
    """A probability as a percentage that is never rounded to 0% or 100%.

    >>> percentage(0.5), percentage(0.0004), percentage(0.9996)
    ('50%', '< 0.1%', '> 99.9%')
    """
    if p < 0.001:
        return "< 0.1%"
    if p > 0.999:
        return "> 99.9%"
    return f"{p:.1%}" if p < 0.1 or p > 0.9 else f"{p:.0%}"


# ---- a report -----------------------------------------------------------------------------------------------------------


def figure_rows(report: Report) -> list[tuple[str, str]]:
    """The single figures of a report with their names."""
    return [(label, f"{report.figures[key]:.3f}") for key, label in FIGURES.items() if key in report.figures]


def report_tables(report: Report, most_confusions: int = 20) -> dict[str, Table]:
    """The tables of a report by what they are about, in order; those that do not apply have no rows."""
    levels = [{**row, "level": row["key"] + 1} for row in report.levels]
    # there are no ratios where there are no leaves of the kind
    modified = [row if row["n_classes"] else {k: v for k, v in row.items() if "f1" not in k} for row in report.modified]
    modified = [{**row, "kind": LEAVES[row["over"]]} for row in modified]
    calibration = [{**row, "level": row["depth"] + 1} for row in report.calibration]
    confusions = [{**row, "below": row["parent"] or "(top level)"} for row in report.confusions[:most_confusions]]
    distances = [{"steps": d, "documents": n, "fraction": n / report.documents} for d, n in report.distances.items()]
    worst = sorted(report.nodes, key=lambda row: (row["f1"], -row["support"]))[:30]
    return {
        "levels": _table("By level", f"level={{level}} | {F1} | H-loss={{h_loss:.3f}}", levels, (), has_bars=True),
        "modified": _table("Modified hierarchy", MODIFIED, modified),
        "calibration": _table("Calibration error by level", CALIBRATION, calibration, ()),
        "guarantees": _table("Backing off to a parent to keep the error rate", GUARANTEES, report.guarantees, ()),
        "branches": _table("By branch", f"branch={{name}} | {F1}", report.branches[:100], has_bars=True),
        "confusions": _table("Most confused siblings", CONFUSIONS, confusions, range(3)),
        "distances": _table("Distance between true and predicted labels", DISTANCES, distances, ()),
        "nodes": _table("Nodes with the lowest F1", NODES, worst),
    }


def _table(
    title: str, columns: str, rows: Iterable[Mapping[str, Any]], text_columns: Collection[int] = (0,), has_bars: bool = False
) -> Table:
    def cell(form: str, row: Mapping[str, Any]) -> str:
        try:
            return form.format_map(row)
        except KeyError:
            return NOTHING

    names, forms = zip(*(each.split("=") for each in columns.split(" | ")), strict=True)
    cells = [[cell(form, row) for form in forms] for row in rows]
    return Table(title, names, cells, text_columns, bars=[row["f1"] for row in rows] if has_bars else ())


# ---- training and updates ---------------------------------------------------------------------------------------------


def describe_training(trained: TrainResult) -> str:
    """How many documents were trained and tested on, in a sentence."""
    if trained.report is None:
        return f"Trained on {counted(trained.trained_on, 'document')}; nothing was held out, so there are no figures."
    duplicates = f" ({trained.test_duplicates:,} with the text of a training document)" if trained.test_duplicates else ""
    guarantee = trained.classifier.guarantee_
    kept_back = " except those kept back" if guarantee is not None and guarantee.is_proven else ""
    again = f"; the saved model was then trained on all of them{kept_back}" if trained.refitted else ""
    return f"Trained on {counted(trained.trained_on, 'document')}, tested on {trained.tested_on:,} others{duplicates}{again}."


def describe_update(done: UpdateResult) -> Iterator[str]:
    """What changed in the taxonomy, what became of the documents, and what was trained."""
    counts: dict[str, Any] = done.changes.counts
    yield f"Taxonomy: {', '.join(f'{number:,} {kind}' for kind, number in counts.items() if number) or 'unchanged'}."
    if done.relabelled:
        yield f"  {counted(done.relabelled, 'document')} of moved, merged, split or retired nodes relabelled"
    if done.at_split:
        yield f"  {counted(done.at_split, 'document')} of split nodes stay at the parent until --data relabels their texts"
    if done.left_out:
        yield f"  {counted(done.left_out, 'document')} without a label in the new taxonomy, left out"
    if done.added:
        replaced = f", {done.replaced:,} of them with new labels for a known text" if done.replaced else ""
        yield f"  {counted(done.added, 'document')} added{replaced}"
    if not done.is_trained:
        yield "Nothing was trained: all classifiers are unchanged."
    elif done.reused is not None:
        reused, total = done.reused
        yield f"{counted(total - reused, 'classifier')} trained, {reused:,} reused."
    else:
        how = "Trained with a warm start" if done.warm_started else "Trained from scratch"
        yield f"{how}, on {counted(done.documents, 'document')}."
    for name in done.started_from_parent[:SHOWN_NODES]:
        yield f"  {name} has no documents, and starts with its parent's classifier"


def describe_partial_fit(done: PartialFitResult) -> Iterator[str]:
    """What training on more documents added."""
    if done.micro_f1 is not None:
        for rounds, quality in done.micro_f1.items():
            yield f"  {rounds:6,} rounds: micro F1 {quality:.3f}"
        yield f"Kept {counted(done.rounds or 0, 'round')}, the best on these {counted(done.documents, 'document')}."
        return
    words, classes = counted(done.new_words, "new word"), counted(len(done.new_classes), "new class")
    yield f"Trained on {counted(done.documents, 'more document')}: {words}, {classes}."
    yield from (f"  {name}" for name in done.new_classes[:SHOWN_NODES])
    if done.rounds is not None:
        yield f"The model has up to {counted(done.rounds, 'round')} now."


# ---- tuning -------------------------------------------------------------------------------------------------------------


def trials_table(result: TuningResult) -> Table:
    """All trials, best first."""
    columns = ("", "candidate", "rule", LABELS[result.by], "folds", "trained on", "time")
    rows = []
    for trial in result.trials:
        costs = str(len(trial.by_fold)), f"{trial.trained_on:,}", duration(trial.seconds)
        rows.append(["final" if trial.is_finalist else "", trial.settings, trial.rule, f"{trial.score:.3f}", *costs])
    return Table(f"{len(rows)} trials" if len(rows) > 1 else "1 trial", columns, rows, range(3))


# ---- an audit -----------------------------------------------------------------------------------------------------------

ISSUE_KINDS = {"wrong": "probably wrong", "extra": "probably superfluous", "missing": "probably missing"}


def describe_audit(found: Audit) -> str:
    """What was audited, and how, in a sentence or two."""
    skipped = f" {found.skipped:,} documents are the only ones of their class and were skipped." if found.skipped else ""
    return (
        f"{found.documents:,} documents of {found.source}, audited with {found.system} by {found.folds}-fold "
        f"cross-validation: each document is scored by a model that was not trained on it.{skipped}"
    )


def siblings_table(found: Audit) -> Table:
    """Siblings that the classifier cannot tell apart."""
    rows = []
    for pair in found.inseparable_siblings:
        n, m = pair.documents
        rows.append([pair.first, pair.second, f"{n:,}", f"{m:,}", f"{pair.accuracy:.0%}", f"{pair.p_value:.2g}"])
    columns = ("sibling", "sibling", "documents", "documents", "accuracy", "p, corrected")
    note = "Guessing has an accuracy of 50%. Merge them, describe the difference more clearly, or review their labels."
    return Table("Siblings that cannot be distinguished", columns, rows, range(2), note)


def duplicates_table(group: Duplicates, length: int) -> Table:
    """The documents of one group of duplicates."""
    rows = [
        [place, " | ".join(labels), "" if text is None else shorten(text, length)]
        for place, labels, text in zip(group.places, group.labels, group.texts, strict=True)
    ]
    return Table("", ("same words" if group.is_equal else "almost the same words", "labels", "text"), rows, range(3))


def classes_table(found: Audit) -> Table:
    """Classes that cannot be learnt."""
    rows = []
    for each in found.classes:
        confused = "" if each.confused_with is None else f"{each.confused_with} ({each.times:,})"
        rows.append([each.label, each.kind, f"{each.documents:,}", confused])
    return Table("Classes that cannot be learnt", ("class", "problem", "documents", "mostly predicted"), rows, (0, 1, 3))


# ---- a comparison -------------------------------------------------------------------------------------------------------


def costs_table(systems: Iterable[SystemResult], letters: Mapping[str, str]) -> Table:
    """Time and memory of each system."""
    rows = []
    for each in systems:
        costs = duration(each.training_seconds), speed(each.documents_per_second), memory(each.peak_memory)
        rows.append([letters[each.name], each.name, *costs])
    note = "Training is the mean of the folds, documents/s the median. Memory is the median peak of training and prediction."
    return Table("Time and memory", ("", "system", "training", "documents/s", "memory"), rows, range(2), note)


def measures_table(found: Comparison, systems: Sequence[SystemResult], letters: Mapping[str, str]) -> Table:
    """All measures with their intervals."""
    best, rows = best_values(found), []
    for system in systems:
        rows.append([letters[system.name], system.name])
        for name, value in system.measures.items():
            mark = "*" if round(value.value, 3) == best[name] else ""
            rows[-1].append(f"{value.value:.3f}{mark} [{value.low:.3f}, {value.high:.3f}]")
    return Table("Measures", ("", "system", *LABELS.values()), rows, range(2), describe_measures(found))


def best_values(found: Comparison) -> dict[str, float]:
    """The best value of each measure, rounded as it is shown."""
    return {name: round(found.ranked(name)[0].measures[name].value, 3) for name in LABELS}


def describe_measures(found: Comparison) -> str:
    """What the numbers of the table of measures are."""
    mean = f"means of {found.folds} folds" if found.folds > 1 else "values"
    seen = f" {found.duplicates:,} test documents have the same text as a training document." if found.duplicates else ""
    return (
        f"* best; {mean} [95% interval, {found.n_resamples:,} bootstrap resamples of the documents]. "
        f"F1 over {found.classes:,} classes: leaves, and inner nodes that are labels of documents.{seen}"
    )


def pairs_table(found: Comparison, systems: Sequence[SystemResult], letters: Mapping[str, str]) -> Table:
    """The p-values of all tests for every pair."""
    columns = ("pair", *(f"{symbol} {about.removesuffix(' on bootstrap resamples')}" for symbol, about in TESTS.values()))
    rows = []
    for a, b in combinations((system.name for system in systems), 2):
        values = [p_and_winner(found.pair(a, b), test, letters) for test in TESTS]
        rows.append([f"{letters[a]} – {letters[b]}", *values])
    return Table("Every pair", columns, rows, note=f"The letter is the better system where p < {LEVEL}.{missing_tests(found)}")


def p_and_winner(pair: Pair, test: str, names: Mapping[str, str] | None = None) -> str:
    """A corrected p-value and, where it is significant, the better system."""
    winner = pair.winner(test)
    return f"{p_value(pair.corrected[test], LEVEL)}{'' if winner is None else f' {names[winner] if names else winner}'}"


def missing_tests(found: Comparison) -> str:
    """Why some p-values are dashes, if any are."""
    return " – where there are fewer than two classes." if any(math.isnan(pair.corrected["t"]) for pair in found.pairs) else ""


def limits_of_tests(found: Comparison) -> str:
    """What the tests cannot show."""
    needed = comparison.needed_resamples(len(found.systems), found.correction)
    few = f" With so few resamples b cannot fall below {LEVEL}; use --resamples {needed:,}."
    return missing_tests(found) + ("" if found.n_resamples >= needed else few)


def describe_correction(found: Comparison) -> str:
    """How p-values were corrected."""
    name = comparison.CORRECTION_NAMES.get(found.correction)
    if len(found.pairs) == 1:
        return "one comparison, so not corrected"
    return "not corrected" if name is None else f"corrected for {len(found.pairs):,} comparisons by {name}'s method"
