"""Papers and reproductions as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from experiments import Part, Reproduction, Study
from experiments.data import CORPORA
from experiments.page import Beside, shown
from experiments.running import Outcome

ORIGINS = {
    "ran": "{seconds:,.1f} s",
    "known": "from an earlier run",
    "earlier": "from an earlier run; its data is not available now",
}


def render_papers(studies: Iterable[Study]) -> RenderableType:
    """Each paper with its parts and the data that they need; then the layouts of that data."""
    studies = list(studies)
    parts: list[RenderableType] = [each for study in studies for each in (_paper(study), Text())]
    needed = [name for name in CORPORA if any(name in part.needs for study in studies for part in study.parts)]
    if needed:
        parts.append(Text("Contents of --data DIR", style="bold"))
        parts += [_item(CORPORA[name].title, CORPORA[name].forms()) for name in needed]
    return Group(*parts)


def _paper(study: Study) -> RenderableType:
    table = Table(box=None, pad_edge=False, show_header=False)
    for part in study.parts:
        table.add_row(f"  {part.name}", Text(part.about), Text(_needs(part), style="dim"))
    return Group(Text.assemble((study.name, "bold"), f"  {study.title}"), table)


def _needs(part: Part) -> str:
    if part.in_place_of:
        return f"in place of {', '.join(part.in_place_of)}"
    return f"needs {', '.join(CORPORA[name].title for name in part.needs)}" if part.needs else "needs no data"


def render_reproduction(done: Reproduction) -> RenderableType:
    """What ran, with the tables beside the paper's; what did not run, and why; the path of the page."""
    parts: list[RenderableType] = [Text(done.study.title, style="bold")]
    for outcome in done.outcomes:
        parts += [Text(), *_outcome(outcome)]
    parts += [Text(), *_missing(done)]
    parts.append(Text(f"Page: {done.page}\nResults: {done.results}"))
    return Group(*parts)


def _outcome(outcome: Outcome) -> Iterator[RenderableType]:
    origin = ORIGINS[outcome.origin].format(seconds=outcome.entry.seconds)
    instead = f"; in place of {', '.join(outcome.part.in_place_of)}" if outcome.part.in_place_of else ""
    yield Text.assemble((outcome.part.name, "bold cyan"), f"  {outcome.part.about} ", (f"({origin}{instead})", "dim"))
    for figures in outcome.figures():
        yield Padding(_beside(figures), (0, 0, 0, 2), expand=False)


def _beside(figures: Beside) -> Table:
    """Our figures beside the paper's, without the reasons, which are long and on the page."""
    table = Table(title=Text(figures.title), title_justify="left", title_style="", box=None, pad_edge=False)
    whole = figures.as_table()
    for number, name in enumerate(whole.columns[:4]):
        table.add_column(name, justify="right" if number else "left")
    for row in whole.rows:
        table.add_row(*(Text(shown(cell, figures.digits)) for cell in row[:4]))
    return table


def _missing(done: Reproduction) -> Iterator[RenderableType]:
    if done.missing:
        yield Text("What did not run", style="bold")
        yield from (_item(name, why) for name, why in done.missing.items())
        yield Text()
    if done.study.not_obtainable:
        yield Text("Not obtainable", style="bold")
        yield from (_item(name, why) for name, why in done.study.not_obtainable.items())
        yield Text()


def _item(name: str, words: str) -> RenderableType:
    return Padding(Text(f"{name}: {words}"), (0, 0, 0, 2), expand=False)
