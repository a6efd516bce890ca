"""Lines through points as SVG text: axes with round numbers, bars for errors, a legend below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import NamedTuple

from ramify.reports.charts import Axis, axis, in_short, named_axis

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 460, 290, 58, 26, 12, 44
COLOURS = 6  # that the page's style knows
LETTER, LEGEND_ROW = 6.2, 17  # width of a letter and height of a row, in the units of the picture


@dataclass(frozen=True, slots=True)
class Line:
    """Points (x, y) in order; a point without a number is left out. errors: half the height of a bar at each point.

    A line without a name is but a level to compare with: not in the legend, without dots. colour: number of a line whose
    colour it takes.
    """

    name: str
    points: Sequence[Sequence[float | None]]
    errors: Sequence[float | None] | None = None
    dashed: bool = False
    colour: int | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over the same two axes, whose words are x and y.

    names: what stands below x = 0, 1, 2, and so on, where x is no number.
    """

    title: str
    lines: Sequence[Line]
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    note: str = ""
    names: Sequence[str] = ()


class Point(NamedTuple):
    """A point that can be drawn, and the ends of its error bar."""

    x: float
    y: float
    low: float
    high: float


def draw(chart: Chart) -> str:
    """The chart; every word is escaped."""
    drawn = [list(_points(line, chart)) for line in chart.lines]
    points = [point for line in drawn for point in line]
    across = named_axis(chart.names) if chart.names else axis((point.x for point in points), chart.log_x)
    up = axis((end for point in points for end in (point.y, point.low, point.high)), chart.log_y)
    marks = [*_axes(across, up, chart)]
    for number, (line, its_points) in enumerate(zip(chart.lines, drawn, strict=True)):
        marks += _line(line, _colour(number, line), its_points, across, up)
    legend, height = _legend(chart.lines)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + height}" role="img" '
        f'aria-label="{escape(chart.title)}"><title>{escape(chart.title)}</title>{"".join([*marks, *legend])}</svg>'
    )


def _points(line: Line, chart: Chart) -> Iterator[Point]:
    """The points that the axes have a place for; an error bar that would leave a logarithmic axis is cut at the point."""
    errors = line.errors or [None] * len(line.points)
    for (x, y), error in zip(line.points, errors, strict=True):
        if x is None or y is None or not (isfinite(x) and isfinite(y)) or (chart.log_x and x <= 0) or (chart.log_y and y <= 0):
            continue
        half = error if error is not None and isfinite(error) else 0.0
        yield Point(x, y, y - half if y > half or not chart.log_y else y, y + half)


def _axes(across: Axis, up: Axis, chart: Chart) -> Iterator[str]:
    for value in up.ticks:
        y = _y(up, value)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
        yield f'<text class="tick end" x="{LEFT - 6}" y="{y + 4:.1f}">{in_short(value)}</text>'
    for value in across.ticks:
        x = _x(across, value)
        yield f'<line class="grid" x1="{x:.1f}" y1="{HEIGHT - BOTTOM}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM + 4}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}">{escape(across.label(value))}</text>'
    yield f'<text class="tick" x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 8}">{escape(chart.x)}</text>'
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield f'<text class="tick" transform="rotate(-90)" x="{-middle:.1f}" y="13">{escape(chart.y)}</text>'


def _line(line: Line, colour: int, points: Sequence[Point], across: Axis, up: Axis) -> Iterator[str]:
    path = " ".join(f"{_x(across, p.x):.1f},{_y(up, p.y):.1f}" for p in points)
    yield f'<polyline class="l{colour}"{_dash(line)} points="{path}"/>'
    for p in points if line.name else ():
        x, y, low, high = _x(across, p.x), _y(up, p.y), _y(up, p.low), _y(up, p.high)
        if low != high:
            yield f'<line class="l{colour}" x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" y2="{high:.1f}"/>'
        spread = f" ± {in_short(p.high - p.y)}" if p.high > p.y else ""
        tip = escape(f"{line.name}: {across.label(p.x)}, {in_short(p.y)}{spread}")
        yield f'<circle class="s{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.2"><title>{tip}</title></circle>'


def _legend(lines: Sequence[Line]) -> tuple[list[str], int]:
    """Names, as many a row as fit, and the height of it all."""
    marks, x, row = [], float(LEFT), 0
    for number, line in ((number, line) for number, line in enumerate(lines) if line.name):
        width = 40 + LETTER * len(line.name)
        if x > LEFT and x + width > WIDTH:
            x, row = float(LEFT), row + 1
        y = HEIGHT + 8 + LEGEND_ROW * row
        kind = f'class="l{_colour(number, line)}"{_dash(line)}'
        marks.append(f'<line {kind} x1="{x:.0f}" y1="{y}" x2="{x + 18:.0f}" y2="{y}"/>')
        marks.append(f'<text class="tick start" x="{x + 23:.0f}" y="{y + 4}">{escape(line.name)}</text>')
        x += width
    return marks, LEGEND_ROW * (row + 1)


def _x(across: Axis, value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * across.place(value)


def _y(up: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * up.place(value)


def _colour(number: int, line: Line) -> int:
    return (number if line.colour is None else line.colour) % COLOURS


def _dash(line: Line) -> str:
    return ' stroke-dasharray="5 4"' if line.dashed else ""
