"""How each kind of result is shown: in one line, on a terminal, in a notebook, as a data frame, a chart and plain values.

The base class of results, :class:`ramify.results.Result`, calls the functions at the end of this file.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ramify.classifier.explanation import Explanation
from ramify.errors import InputError, suggest
from ramify.formatting import counted, visible_name
from ramify.metrics.evaluation import Report
from ramify.reports import charts, explanations, tables, taxonomies, terminal
from ramify.reports.figures import Figure
from ramify.reports.frames import frame
from ramify.reports.pages import NOTEBOOK, audit_page, comparison_page, comparison_plots, render, report_page, report_plots
from ramify.reports.tables import Table, shorten
from ramify.taxonomy.hierarchy import Taxonomy
from ramify.workflows.auditing.audit import Audit
from ramify.workflows.comparison import LABELS, Comparison, recommend
from ramify.workflows.explaining import ExplainResult
from ramify.workflows.predict_stream import LABEL_SEPARATOR, PredictionTable
from ramify.workflows.predicting import PredictResult
from ramify.workflows.training import TrainResult
from ramify.workflows.tuning.result import TuningResult, describe_tuning
from ramify.workflows.tuning.tune import Tuned
from ramify.workflows.updating import PartialFitResult, UpdateResult

WIDTH = 140  # columns of what is printed
MOST, MAX_ROWS, MAX_BARS = 20, 30, 12  # of each kind of entry, rows of a table, and bars of a chart
LETTERS = 60  # of a text in one line

Rows = list[dict[str, Any]]
Charts = dict[str, tuple[str, str]]  # caption and chart, by what they show


@dataclass(frozen=True, slots=True)
class Presentation:
    """How one kind of result is shown. tables, charts: by name; the first is the default. title: of a line about it."""

    line: Callable[[Any], str]
    text: Callable[[Any], RenderableType]
    html: Callable[[Any], str]
    values: Callable[[Any], dict[str, Any]]
    tables: Mapping[str, Callable[[Any], Rows]]
    charts: Callable[[Any], Charts]


def _summary(title: str, **parts: Any) -> str:
    return render("summary.html", NOTEBOOK, title=title, **{"lead": "", **parts})


def _lines(lines: Iterable[str]) -> RenderableType:
    return Group(*(Text(visible_name(line)) for line in lines))


def _bars(values: Mapping[str, float], caption: str, digits: int = 0) -> tuple[str, str]:
    return caption, charts.value_bars(list(values.items())[:MAX_BARS], caption, digits)


def _as_dict(result: Any) -> dict[str, Any]:
    return dict(result.as_dict())


# ---- training and evaluation ---------------------------------------------------------------------------------------------


def _report_line(report: Report) -> str:
    known = [name for name in ("accuracy", "hierarchical_f1") if name in report.figures]
    figures = [f"{tables.FIGURES[name].partition(' (')[0]} {report.figures[name]:.3f}" for name in known]
    return f"{counted(report.documents, 'document')}; {', '.join(figures) or 'no figures'}"


def _report_tables() -> dict[str, Callable[[Any], Rows]]:
    lists = ("nodes", "levels", "branches", "confusions", "reliability", "calibration", "guarantees", "modified")
    made: dict[str, Callable[[Any], Rows]] = {name: attrgetter(name) for name in lists}
    made["figures"] = lambda report: [{"figure": name, "value": value} for name, value in report.figures.items()]
    made["distances"] = lambda report: [{"steps": d, "documents": n} for d, n in report.distances.items()]
    return made


def _trial_rows(tuning: TuningResult | None) -> Rows:
    return [] if tuning is None else [asdict(trial) for trial in tuning.trials]


def _from(part: Callable[[Any], Any], makers: Mapping[str, Callable[[Any], Rows]]) -> dict[str, Callable[[Any], Rows]]:
    """The same tables of a part of a result. part: gives it."""

    def of(maker: Callable[[Any], Rows]) -> Callable[[Any], Rows]:
        return lambda result: maker(part(result))

    return {name: of(maker) for name, maker in makers.items()}


def _report_of(trained: TrainResult) -> Report:
    if trained.report is None:
        raise InputError("nothing was held out in training, so there are no figures; train with test= or a larger holdout=.")
    return trained.report


def _train_line(trained: TrainResult) -> str:
    made = f"{trained.classifier.system} trained on {counted(trained.trained_on, 'document')}"
    if trained.report is None:
        return made
    return f"{made}; micro F1 {trained.report.figures['micro_f1_own']:.3f} on {trained.tested_on:,} others"


def _train_text(trained: TrainResult) -> RenderableType:
    about = [_lines([tables.describe_training(trained), trained.classifier.summary()])]
    tuned = [] if trained.tuning is None else [terminal.render_tuning(trained.tuning, trained.report is not None), Text()]
    report = [] if trained.report is None else [Text(), terminal.render_report(trained.report)]
    return Group(*tuned, *about, *report)


def _train_html(trained: TrainResult) -> str:
    title, lead = trained.classifier.summary(), tables.describe_training(trained)
    if trained.report is not None:
        return report_page(trained.report, title, lead, trained.tuning, layout=NOTEBOOK)
    tuning = trained.tuning
    trials = [] if tuning is None else [tables.trials_table(tuning).first(MAX_ROWS)]
    return _summary(title, lead=lead, sentences=[] if tuning is None else describe_tuning(tuning, False), tables=trials)


REPORT = Presentation(
    line=_report_line,
    text=terminal.render_report,
    html=lambda report: report_page(report, "Evaluation", counted(report.documents, "document"), layout=NOTEBOOK),
    values=_as_dict,
    tables=_report_tables(),
    charts=report_plots,
)
TRAINED = Presentation(
    line=_train_line,
    text=_train_text,
    html=_train_html,
    values=_as_dict,
    tables=_from(_report_of, _report_tables()) | {"trials": lambda trained: _trial_rows(trained.tuning)},
    charts=lambda trained: report_plots(_report_of(trained)),
)

# ---- tuning --------------------------------------------------------------------------------------------------------------


def _tuning_line(tuning: TuningResult) -> str:
    best = tuning.trials[0].score if tuning.trials else float("nan")
    return f"{tuning.candidate}, {LABELS[tuning.by]} {best:.3f}, of {counted(len(tuning.trials), 'candidate')}"


def _tuning_charts(tuning: TuningResult) -> Charts:
    scores = {f"{trial.settings}, {trial.rule}": trial.score for trial in tuning.trials}
    return {"trials": _bars(scores, f"{LABELS[tuning.by]} of the trials, best first", 3)}


def _tuning_html(tuning: TuningResult) -> str:
    shown = {"sentences": describe_tuning(tuning, True), "tables": [tables.trials_table(tuning).first(MAX_ROWS)]}
    return _summary("Tuning", plots=_tuning_charts(tuning).values(), **shown)


TUNING = Presentation(
    line=_tuning_line,
    text=lambda tuning: terminal.render_tuning(tuning, True),
    html=_tuning_html,
    values=_as_dict,
    tables={"trials": _trial_rows},
    charts=_tuning_charts,
)


def _with_tuning(tuned: Tuned) -> TrainResult:
    return replace(tuned.trained, tuning=tuned.tuning)


def _tuned_charts(tuned: Tuned) -> Charts:
    report = tuned.trained.report
    return _tuning_charts(tuned.tuning) | ({} if report is None else report_plots(report))


TUNED = Presentation(
    line=lambda tuned: _tuning_line(tuned.tuning),
    text=lambda tuned: _train_text(_with_tuning(tuned)),
    html=lambda tuned: _train_html(_with_tuning(tuned)),
    values=lambda tuned: _with_tuning(tuned).as_dict(),
    tables={"trials": lambda tuned: _trial_rows(tuned.tuning)}
    | _from(lambda tuned: _report_of(tuned.trained), _report_tables()),
    charts=_tuned_charts,
)

# ---- comparison ----------------------------------------------------------------------------------------------------------


def _comparison_line(found: Comparison) -> str:
    advice = recommend(found)
    best = next(each for each in found.systems if each.name == advice.system).measures[advice.by].value
    systems = f"{counted(len(found.systems), 'system')} on {counted(found.documents, 'document')}"
    return f"{systems}; recommended: {advice.system}, {LABELS[advice.by]} {best:.3f}"


def _system_rows(found: Comparison) -> Rows:
    rows = []
    for each in found.systems:
        row: dict[str, Any] = {"system": each.name}
        for name, value in each.measures.items():
            row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        costs = ("training_seconds", "documents_per_second", "peak_memory")
        rows.append(row | {name: getattr(each, name) for name in costs})
    return rows


COMPARED = Presentation(
    line=_comparison_line,
    text=lambda found: terminal.render_comparison(found, recommend(found), WIDTH),
    html=lambda found: comparison_page(found, recommend(found), "Comparison", NOTEBOOK),
    values=lambda found: found.as_dict() | {"recommendation": asdict(recommend(found))},
    tables={
        "systems": _system_rows,
        "pairs": lambda found: [{"a": pair.a, "b": pair.b, **pair.corrected} for pair in found.pairs],
        "skipped": lambda found: [asdict(each) for each in found.skipped],
    },
    charts=lambda found: comparison_plots(found, recommend(found)),
)

# ---- audit ---------------------------------------------------------------------------------------------------------------


def _audit_line(found: Audit) -> str:
    issues, groups = counted(found.n_issues, "label issue"), counted(len(found.duplicates), "group")
    classes = f"{counted(len(found.classes), 'class')} that cannot be learnt"
    return f"{counted(found.documents, 'document')}; {issues}, {groups} of duplicates, {classes}"


def _issue_rows(found: Audit) -> Rows:
    rows = []
    for issue in found.issues:
        row: dict[str, Any] = {name: getattr(issue, name) for name in ("place", "line", "text", "labels", "kind")}
        for name in ("given", "suggested"):
            info = getattr(issue, name)
            row |= {name: info and info.label, f"{name}_probability": info and info.probability}
        rows.append(row | {"score": issue.score, "words": [word for word, _ in issue.words]})
    return rows


def _audit_charts(found: Audit) -> Charts:
    named = (f"{each.given.label} → {each.suggested.label}" for each in found.issues if each.given and each.suggested)
    of_pairs, of_kinds = dict(Counter(named).most_common(MAX_BARS)), Counter(each.kind for each in found.classes)
    return {
        "issues": _bars(of_pairs, "Label issues: given → suggested"),
        "classes": _bars(of_kinds, "Classes that cannot be learnt"),
    }


AUDITED = Presentation(
    line=_audit_line,
    text=lambda found: terminal.render_audit(found, MOST),
    html=lambda found: audit_page(found, "Audit", NOTEBOOK, MOST),
    values=_as_dict,
    tables={
        "issues": _issue_rows,
        "duplicates": lambda found: [asdict(group) for group in found.duplicates],
        "classes": lambda found: [asdict(each) for each in found.classes],
        "siblings": lambda found: [asdict(pair) for pair in found.inseparable_siblings],
    },
    charts=_audit_charts,
)

# ---- updates -------------------------------------------------------------------------------------------------------------


def _update_line(done: UpdateResult) -> str:
    counts: dict[str, int] = done.changes.counts
    changes = ", ".join(f"{number:,} {kind}" for kind, number in counts.items() if number)
    return f"{counted(done.documents, 'document')}, {done.relabelled:,} relabelled; {changes or 'nothing changed'}"


def _change_rows(done: UpdateResult) -> Rows:
    old, new = done.changes.old, done.changes.new
    return [
        {
            "change": change.kind,
            "old": [old.show(node) for node in change.old],
            "new": [new.show(node) for node in change.new],
            "nodes_below": change.nodes_below,
        }
        for change in done.changes.changes
    ]


def _update_html(done: UpdateResult) -> str:
    rows = [(row["change"], ", ".join(row["old"]), ", ".join(row["new"])) for row in _change_rows(done)]
    changes = Table("Changes", ("change", "old", "new"), rows, range(3)).first(MAX_ROWS)
    return _summary("Update", sentences=list(tables.describe_update(done)), tables=[changes])


UPDATED = Presentation(
    line=_update_line,
    text=lambda done: _lines(tables.describe_update(done)),
    html=_update_html,
    values=_as_dict,
    tables={"changes": _change_rows},
    charts=lambda done: {"changes": _bars({k: n for k, n in done.changes.counts.items() if n}, "Changes of the taxonomy")},
)
EXTENDED = Presentation(
    line=lambda done: f"{counted(done.documents, 'more document')}, {counted(len(done.new_classes), 'new class')}",
    text=lambda done: _lines(tables.describe_partial_fit(done)),
    html=lambda done: _summary("Update", sentences=list(tables.describe_partial_fit(done))),
    values=_as_dict,
    tables={"classes": lambda done: [{"new_class": name} for name in done.new_classes]},
    charts=lambda done: {"micro_f1": _bars({f"{k:,} rounds": v for k, v in (done.micro_f1 or {}).items()}, "Micro F1", 3)},
)

# ---- explanations and predictions ----------------------------------------------------------------------------------------


def _why_line(why: Explanation) -> str:
    words = ", ".join(word for word, weight in why.words[:3] if weight > 0)
    p = tables.percentage(why.probabilities[-1]) if why.probabilities else "–"
    return f"{' > '.join(why.path)} ({p}), {f'because of {words}' if words else 'without any known word'}"


def _word_rows(why: Explanation) -> Rows:
    return [{"node": step.name, "word": word, "weight": weight} for step in why.steps for word, weight in step.words]


def _step_rows(why: Explanation) -> Rows:
    names = ("name", "title", "probability", "is_taken", "score", "prior", "reason")
    return [{name: getattr(step, name) for name in names} for step in why.steps]


def _why_charts(why: Explanation) -> Charts:
    path = {step.title: step.probability for step in why.steps}
    caption = f"Words for {' › '.join(why.path)}" + (f" rather than {' › '.join(why.rival)}" if why.rival else "")
    return {"words": _bars(dict(why.words), caption, 2), "path": _bars(path, "Probability of each node of the path", 3)}


EXPLANATION = Presentation(
    line=_why_line,
    text=explanations.render_why,
    html=lambda why: render(
        "explanation.html", NOTEBOOK, title="Explanation", lead="", text="", **explanations.page_parts(why)
    ),
    values=asdict,
    tables={"words": _word_rows, "steps": _step_rows},
    charts=_why_charts,
)


def _explained_html(found: ExplainResult) -> str:
    lead = "" if found.has_label else "No label was predicted; this is the best node."
    text = shorten(found.text, 1000)
    return render("explanation.html", NOTEBOOK, title="Explanation", lead=lead, text=text, **explanations.page_parts(found.why))


EXPLAINED = Presentation(
    line=lambda found: f"{shorten(found.text, LETTERS)!r} is {_why_line(found.why)}",
    text=explanations.render_explanation,
    html=_explained_html,
    values=_as_dict,
    tables={
        "words": lambda found: _word_rows(found.why),
        "steps": lambda found: _step_rows(found.why),
        "nodes": lambda found: [asdict(node) for node in found.nodes],
    },
    charts=lambda found: _why_charts(found.why),
)


def _predict_line(found: PredictResult) -> str:
    n_labels, bad = sum(map(len, found.labels)), len(found.problems)
    not_classified = f"; {bad:,} could not be classified" if bad else ""
    return f"{counted(len(found), 'document')} with {counted(n_labels, 'label')}{not_classified}"


def _predict_rows(found: PredictResult, most: int | None = None) -> Rows:
    """The cells of the table that the command writes; probabilities are numbers where there is one label."""
    table, n_given = PredictionTable(found.columns, found.top), len(found.columns)

    def cell(place: int, value: Any) -> Any:
        is_probability = place >= n_given and (place - n_given) % 2 == 1 and place < len(table.head) - 1
        return float(value) if is_probability and value and LABEL_SEPARATOR not in value else value or None

    cells = ([cell(place, value) for place, value in enumerate(table.cells(each))] for each in found.predictions[:most])
    return [dict(zip(table.head, row, strict=True)) for row in cells]


def _predict_table(found: PredictResult) -> Table:
    rows = _predict_rows(found, MAX_ROWS)
    columns = PredictionTable(found.columns, found.top).head
    cells = [[shorten(str(row[name] if row[name] is not None else ""), LETTERS) for name in columns] for row in rows]
    more = len(found) - len(rows)
    note = f"and {counted(more, 'more document')}; to_frame() has all" if more > 0 else ""
    return Table("", columns, cells, range(len(columns)), note)


def _predict_text(found: PredictResult) -> RenderableType:
    table = _predict_table(found)
    return Group(Text(_predict_line(found)), terminal.render_table(table), *([Text(table.note)] if table.note else []))


def _label_counts(found: PredictResult) -> Charts:
    counts = Counter(label for labels in found.labels for label in labels)
    return {"labels": _bars(dict(counts.most_common(MAX_BARS)), "Documents of the most frequent labels")}


PREDICTED = Presentation(
    line=_predict_line,
    text=_predict_text,
    html=lambda found: _summary("Predictions", lead=_predict_line(found), tables=[_predict_table(found)]),
    values=_as_dict,
    tables={"predictions": _predict_rows},
    charts=_label_counts,
)

# ---- taxonomies ----------------------------------------------------------------------------------------------------------


def _level_charts(taxonomy: Taxonomy) -> Charts:
    sizes = Counter(taxonomy.depth.tolist())
    return {"levels": _bars({f"level {depth + 1}": n for depth, n in sorted(sizes.items())}, "Nodes at each level")}


TAXONOMY = Presentation(
    line=taxonomies.describe_taxonomy,
    text=terminal.draw,
    html=taxonomies.taxonomy_part,
    values=lambda taxonomy: taxonomy.state(),
    tables={"nodes": taxonomies.taxonomy_rows},
    charts=_level_charts,
)

# ---- what the base class of results calls --------------------------------------------------------------------------------

SHOWN: dict[type, Presentation] = {
    Audit: AUDITED, Comparison: COMPARED, Explanation: EXPLANATION, ExplainResult: EXPLAINED, PartialFitResult: EXTENDED,
    PredictResult: PREDICTED, Report: REPORT, Taxonomy: TAXONOMY, TrainResult: TRAINED, Tuned: TUNED, TuningResult: TUNING,
    UpdateResult: UPDATED,
}  # fmt: skip


def _shown(result: Any) -> Presentation:
    return next(SHOWN[kind] for kind in type(result).__mro__ if kind in SHOWN)


def describe(result: Any) -> str:
    """One line."""
    return f"<{type(result).__name__}: {visible_name(_shown(result).line(result))}>"


def as_text(result: Any) -> str:
    """What the command prints, without colours."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(_shown(result).text(result))
    return "\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines())


def as_html(result: Any) -> str:
    """A part of a page, which needs nothing else."""
    return _shown(result).html(result)


def as_values(result: Any) -> dict[str, Any]:
    """Plain values, as the command prints them with --json."""
    return _shown(result).values(result)


def as_frame(result: Any, table: str | None) -> Any:
    """One of its tables as a data frame."""
    known = _shown(result).tables
    return frame(known[_one_of(known, table, "table", result)](result))


def as_figure(result: Any, chart: str | None) -> Figure:
    """One of its charts."""
    known = _shown(result).charts(result)
    return Figure(*known[_one_of(known, chart, "chart", result)])


def _one_of(known: Mapping[str, Any], name: str | None, what: str, result: Any) -> str:
    if name is None:
        return next(iter(known))
    if name not in known:
        found = f"a {type(result).__name__} has no {what} {name!r}"
        raise InputError(f"{found}; give one of {', '.join(known)}.{suggest(str(name), known)}")
    return name
