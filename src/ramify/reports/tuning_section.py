"""A choice as a part of a report's page."""

from __future__ import annotations

from html import escape

from ramify.formatting import duration
from ramify.reports.page import table
from ramify.workflows.comparison import LABELS
from ramify.workflows.tuning.result import Trial, TuningResult, choice_in_words


def columns_of_trials(choice: TuningResult) -> tuple[str, ...]:
    """What stands above the columns of a table of trials."""
    return "", "what was tried", "rule", LABELS[choice.by], "folds", "learnt from", "time"


def cells_of(trial: Trial) -> tuple[str, ...]:
    """A trial in the cells of a table."""
    mark = "final" if trial.is_finalist else ""
    counts = str(len(trial.by_fold)), f"{trial.learnt_from:,}"
    return mark, trial.settings, trial.rule, f"{trial.score:.3f}", *counts, duration(trial.seconds)


def choice_section(choice: TuningResult, is_reported: bool = True) -> str:
    """How it was chosen, as HTML."""
    words = "".join(f"<p>{escape(sentence)}</p>" for sentence in choice_in_words(choice, is_reported))
    trials = table(columns_of_trials(choice), map(cells_of, choice.trials), texts=range(3))
    return f'<h2>How it was chosen</h2><div class="card advice">{words}</div>{trials}'
