"""A comparison of systems as one HTML page that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from itertools import combinations

from ramify.formatting import duration, memory, p_value, speed
from ramify.metrics.resampling import LOSSES
from ramify.reports.charts import Spot, scatter
from ramify.reports.page import table, whole_page
from ramify.workflows.comparison import (
    CORRECTED_AFTER,
    LABELS,
    LEVEL,
    TESTS,
    Comparison,
    Pair,
    Recommendation,
    SystemResult,
    letters_of,
)

KINDS = (("the one to take", 4), ("cannot be told from it", 2), ("behind it by more than luck", 0))  # with their colours
SHORTEST = 1e-6  # seconds; a logarithmic axis has no place for none


def render_comparison_page(found: Comparison, advice: Recommendation, title: str) -> str:
    """The whole page; every word that comes from users is escaped."""
    systems = found.ranked(advice.by)
    letters = letters_of(systems)
    folds = f" in {found.folds} folds" if found.folds > 1 else ""
    lead = f"{len(systems)} systems on {found.documents:,} documents{folds}, compared by {LABELS[advice.by]}."
    parts = (
        _words(advice),
        _plots(found, advice, systems),
        _measures(found, systems, letters),
        _costs(systems, letters),
        _matrix(found, advice, systems, letters),
        _skipped(found),
        _every_pair(found, systems, letters),
        "".join(f"<p>Note: {escape(note)}.</p>" for note in found.notes),
    )
    return whole_page(title, lead, "".join(parts))


def _words(advice: Recommendation) -> str:
    first, *others = (escape(sentence) for sentence in advice.words)
    return f'<h2>Recommendation</h2><div class="card advice"><p><strong>{first}</strong></p><p>{" ".join(others)}</p></div>'


# ---- pictures -----------------------------------------------------------------------------------------------------------


def _plots(found: Comparison, advice: Recommendation, systems: Sequence[SystemResult]) -> str:
    """Quality against the time of training, where there was one, and of answering."""
    label = LABELS[advice.by]
    answering = [1000 / system.documents_per_second for system in systems]
    plots = [_plot(f"{label} against the time to classify", "seconds for 1,000 documents", answering, advice, systems)]
    training = [system.training_seconds for system in systems if system.training_seconds is not None]
    if len(training) == len(systems):
        plots.insert(0, _plot(f"{label} against the time to learn", "seconds of one training", training, advice, systems))
    return f"<h2>Quality against time</h2>{''.join(plots)}"


def _plot(title: str, x: str, times: Sequence[float], advice: Recommendation, systems: Sequence[SystemResult]) -> str:
    is_loss = advice.by in LOSSES
    spots = [_spot(system, max(seconds, SHORTEST), advice) for system, seconds in zip(systems, times, strict=True)]
    y = f"{LABELS[advice.by]} [95% interval]{', less is better' if is_loss else ''}"
    drawn = scatter(spots, title, f"{x}, logarithmic", y, KINDS, less_is_up=is_loss)
    return f"<figure><figcaption>{escape(title)}</figcaption>{drawn}</figure>"


def _spot(system: SystemResult, seconds: float, advice: Recommendation) -> Spot:
    measured = system.measures[advice.by]
    kind = 0 if system.name == advice.system else 1 if system.name in advice.as_good else 2
    tip = f"{system.name}: {LABELS[advice.by]} {measured.value:.3f}, {duration(seconds)}"
    return Spot(system.name, seconds, measured.value, measured.low, measured.high, kind, tip)


# ---- tables -------------------------------------------------------------------------------------------------------------


def _measures(found: Comparison, systems: Sequence[SystemResult], letters: dict[str, str]) -> str:
    head = ("", "system", *LABELS.values())
    best = {name: found.ranked(name)[0].measures[name].value for name in LABELS}
    rows = [[letters[system.name], system.name, *_cells(system, best)] for system in systems]
    mean = f"means of {found.folds} folds" if found.folds > 1 else "values"
    seen = f" {found.seen_before:,} test documents have the text of one learnt from." if found.seen_before else ""
    about = (
        f"* best; {mean} [95% interval, {found.n_resamples:,} resamples of the documents]. F1 over {found.classes:,} classes: "
        f"leaves, and inner nodes at which documents stop.{seen}"
    )
    return f"<h2>Measures</h2>{_whole(table(head, rows, texts=range(2)))}{_note(about)}"


def _cells(system: SystemResult, best: dict[str, float]) -> Iterator[str]:
    for name, measured in system.measures.items():
        star = "*" if round(measured.value, 3) == round(best[name], 3) else ""
        yield f"{measured.value:.3f}{star} [{measured.low:.3f}, {measured.high:.3f}]"


def _costs(systems: Sequence[SystemResult], letters: dict[str, str]) -> str:
    head = ("", "system", "training", "documents/s", "memory")
    rows = (
        [
            letters[each.name],
            each.name,
            duration(each.training_seconds),
            speed(each.documents_per_second),
            memory(each.peak_memory),
        ]
        for each in systems
    )
    about = (
        "Training is the mean of the folds, documents/s the middle one. Memory is what learning and answering need at "
        "their height, above what was there before: the middle one of the folds."
    )
    return f"<h2>Time and memory</h2>{_whole(table(head, rows, texts=range(2)))}{_note(about)}"


def _matrix(found: Comparison, advice: Recommendation, systems: Sequence[SystemResult], letters: dict[str, str]) -> str:
    """Who is ahead of whom, by the bootstrap of the measure gone by."""
    head = "".join(f"<th>{letters[system.name]}</th>" for system in systems)
    rows = []
    for one in systems:
        cells = (_cell(found, advice, one.name, other.name) for other in systems)
        rows.append(f'<tr><th class="text">{letters[one.name]} {escape(one.name)}</th>{"".join(cells)}</tr>')
    after = CORRECTED_AFTER.get(found.correction)
    corrected = f"corrected for {len(found.pairs):,} pairs after {after}" if after else "not corrected"
    about = (
        f"▲ the system of the row is ahead of that of the column in {LABELS[advice.by]}, ▼ behind it, by more than luck: "
        f"paired bootstrap, two-sided, p < {LEVEL}, {corrected}; · cannot tell. Point at a cell for all tests."
    )
    return (
        '<h2>Which differences are more than luck</h2><div class="scroll"><table class="matrix">'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{_note(about)}"
    )


def _cell(found: Comparison, advice: Recommendation, one: str, other: str) -> str:
    if one == other:
        return "<td></td>"
    pair = found.pair(one, other)
    ahead = pair.ahead(f"bootstrap_{advice.by}")
    kind, mark = ("unsure", "·") if ahead is None else ("ahead", "▲") if ahead == one else ("behind", "▼")
    tests = [f"{symbol} {about}: {_p(pair, test)}" for test, (symbol, about) in TESTS.items()]
    tip = escape("\n".join([f"{pair.a}, {pair.b}", *tests]))
    return f'<td class="{kind}" title="{tip}">{mark}</td>'


def _p(pair: Pair, test: str, letters: dict[str, str] | None = None) -> str:
    """A corrected p-value and, where it is small, who is ahead."""
    ahead = pair.ahead(test)
    who = "" if ahead is None else f" {letters[ahead] if letters else ahead}"
    return f"{p_value(pair.corrected[test], LEVEL)}{who}"


def _skipped(found: Comparison) -> str:
    if not found.skipped:
        return ""
    rows = ([each.name, each.reason] for each in found.skipped)
    return f"<h2>Left out</h2>{table(('system', 'why'), rows, texts=range(2))}"


def _every_pair(found: Comparison, systems: Sequence[SystemResult], letters: dict[str, str]) -> str:
    head = ("pair", *(f"{symbol} {_brief(about)}" for symbol, about in TESTS.values()))
    rows = [
        [f"{letters[a.name]} – {letters[b.name]}", *(_p(found.pair(a.name, b.name), test, letters) for test in TESTS)]
        for a, b in combinations(systems, 2)
    ]
    few = " – where there are fewer than two classes." if any(math.isnan(pair.corrected["t"]) for pair in found.pairs) else ""
    about = f"The letter is the system ahead where p < {LEVEL}.{few}"
    return (
        f"<h2>Every pair</h2><details><summary>p-values of {len(TESTS)} tests</summary>"
        f"{_whole(table(head, rows, texts=range(1)))}{_note(about)}</details>"
    )


def _brief(about: str) -> str:
    return about.removesuffix(" on resampled documents")


def _whole(rows: str) -> str:
    """A table whose cells are not broken over lines."""
    return f'<div class="whole">{rows}</div>'


def _note(words: str) -> str:
    return f'<p class="lead">{escape(words)}</p>'
