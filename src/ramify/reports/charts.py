"""Charts as SVG text, in the colours of the page: bars, dots, lines and named points over axes with round numbers.

Every function returns one ``<svg>`` element in which every label is escaped. Colours are classes of the page's style: ``s0`` to
``s5`` fill a mark, ``l0`` to ``l5`` draw a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import ceil, floor, isfinite, log10
from typing import NamedTuple

N_COLOURS = 6
LETTER = 6.4  # average width of a letter, in units of the picture
STEPS = (1, 2, 5, 10)
SMALLEST = 1e-300  # number that an axis can show
QUARTERS = [0.0, 0.25, 0.5, 0.75, 1.0]
Point = tuple[float, float, float, float]  # x, y, and the ends of the error bar


# ---- axes ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps numbers to positions between 0 and 1; ticks are round numbers, or names."""

    ticks: list[float]
    log: bool = False
    names: Sequence[str] = ()
    is_reversed: bool = False

    def place(self, value: float) -> float:
        """The position of a number; numbers beyond an end are placed at that end."""
        low, high, at = (log10(v) if self.log else v for v in (self.ticks[0], self.ticks[-1], value))
        position = min(1.0, max(0.0, (at - low) / (high - low)))
        return 1 - position if self.is_reversed else position

    def label(self, value: float) -> str:
        """The text at a tick."""
        return self.names[round(value)] if self.names else in_short(value)


def axis(values: Iterable[float], log: bool = False, is_reversed: bool = False) -> Axis:
    """An axis with room for all values.

    >>> axis([0.12, 0.48]).ticks
    [0.1, 0.2, 0.3, 0.4, 0.5]
    >>> axis([3, 2000], log=True).ticks
    [1, 10, 100, 1000, 10000]
    >>> axis([0, 1, 2]).ticks
    [0, 1, 2]
    """
    found = list(values) or [1.0]
    whole = all(isinstance(value, int) for value in found)
    ticks = _log_ticks(min(found), max(found)) if log else _even_ticks(min(found), max(found), whole)
    return Axis(ticks, log, is_reversed=is_reversed)


def _even_ticks(low: float, high: float, whole: bool, wanted: int = 5) -> list[float]:
    """Three ticks or more, at multiples of 1, 2 or 5 times a power of ten; whole: only at whole numbers."""
    largest = max(1.0, abs(low), abs(high))
    span = high - low if high - low > 1e-9 * largest else largest
    power = 10.0 ** floor(log10(span / wanted))
    step = next(s for s in STEPS if s * power * wanted >= span * 0.999) * power
    if whole:
        step = max(1, round(step))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    if last - first < 2:
        first, last = first - 1, last + 1
    return [round(k * step, 12) for k in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; within two of them, also 2 and 5 times."""
    low, high = max(low, SMALLEST), max(high, SMALLEST)
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    first, last = (first, last) if last > first else (first, first + 1)
    if last - first > 2:
        return [_power(k) for k in range(first, last + 1)]
    fine = [s * _power(k) for k in range(first, last) for s in STEPS[:3]] + [_power(last)]
    start = max(k for k, tick in enumerate(fine[:-1]) if tick <= low * (1 + 1e-9))
    end = min(k for k, tick in enumerate(fine) if k > start and tick >= high * (1 - 1e-9))
    return fine[start : end + 1]


def _power(exponent: int) -> float:
    return 10**exponent if exponent >= 0 else float(f"1e{exponent}")


def in_short(value: float) -> str:
    """A number as it is written at a tick.

    >>> in_short(0.25), in_short(1500.0), in_short(-2)
    ('0.25', '1,500', '−2')
    """
    return (f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}").replace("-", "−")


# ---- the picture around the marks ---------------------------------------------------------------------------------------


class Box(NamedTuple):
    """A rectangle of the picture."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether the two rectangles have a common point."""
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def lies_in(self, other: Box) -> bool:
        """Whether no part of it is outside the other."""
        return self.left >= other.left and self.right <= other.right and self.top >= other.top and self.bottom <= other.bottom


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture of one size. frame: the rectangle between the axes; below it is room for ticks and the title of the axis."""

    width: float
    height: float
    frame: Box
    across: Axis = Axis([0.0, 1.0])
    up: Axis = Axis(QUARTERS)

    def x(self, value: float) -> float:
        """Where a value is drawn across."""
        return self.frame.left + (self.frame.right - self.frame.left) * self.across.place(value)

    def y(self, value: float) -> float:
        """Where a value is drawn upwards."""
        return self.frame.bottom - (self.frame.bottom - self.frame.top) * self.up.place(value)

    def up_axis(self, title: str = "", digits: int | None = None) -> Iterator[str]:
        """Horizontal grid lines, their numbers and the title of the axis."""
        left, top, right, bottom = self.frame
        for value in self.up.ticks:
            y = self.y(value)
            shown = in_short(value) if digits is None else f"{value:.{digits}f}"
            yield f'<line class="grid" x1="{left:g}" y1="{y:.1f}" x2="{right:g}" y2="{y:.1f}"/>'
            yield _text("tick end", left - 6, y + 4, shown)
        if title:
            turned = f'transform="rotate(-90)" x="{-(top + bottom) / 2:.1f}" y="13"'
            yield f'<text class="tick" {turned}>{escape(title)}</text>'

    def across_axis(self, title: str = "", has_grid: bool = False) -> Iterator[str]:
        """Ticks below the frame, their numbers or names and the title of the axis."""
        left, top, right, bottom = self.frame
        for value in self.across.ticks:
            x = self.x(value)
            start = top if has_grid else bottom
            yield f'<line class="grid" x1="{x:.1f}" y1="{start:g}" x2="{x:.1f}" y2="{bottom + 4:g}"/>'
            yield _text("tick", x, bottom + 17, self.across.label(value))
        if title:
            yield _text("tick", (left + right) / 2, self.height - 7, title)

    def svg(self, marks: Iterable[str], title: str, extra: float = 22) -> str:
        """The whole element. extra: height of the legend below the picture."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height + extra:g}" role="img" '
            f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join(marks)}</svg>'
        )


SMALL = Plot(460, 260, Box(46, 14, 446, 220))
MEDIUM = Plot(460, 290, Box(58, 12, 434, 246))
LARGE = Plot(760, 430, Box(64, 14, 740, 382))


def _text(kind: str, x: float, y: float, words: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _circle(kind: str, x: float, y: float, radius: float, tip: str = "") -> str:
    inside = f"<title>{escape(tip)}</title>" if tip else ""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}">{inside}</circle>'


def _rect(kind: str, box: Box, tip: str = "") -> str:
    size = f'width="{box.right - box.left:.1f}" height="{box.bottom - box.top:.1f}"'
    inside = f"<title>{escape(tip)}</title>" if tip else ""
    return f'<rect class="{kind}" x="{box.left:.1f}" y="{box.top:.1f}" {size}>{inside}</rect>'


# ---- bars and dots of a report ------------------------------------------------------------------------------------------


def bars(groups: Sequence[tuple[str, Sequence[float]]], series: Sequence[str], title: str) -> str:
    """Groups of vertical bars between 0 and 1, one bar per series."""
    plot, (left, _, right, bottom) = SMALL, SMALL.frame
    step = (right - left) / max(1, len(groups))
    thick = min(34.0, step * 0.8 / max(1, len(series)))
    marks = [*plot.up_axis(digits=2)]
    for g, (name, values) in enumerate(groups):
        start = left + step * (g + 0.5) - thick * len(values) / 2
        for s, value in enumerate(values):
            x, top = start + s * thick, plot.y(value)
            marks.append(_rect(f"s{s}", Box(x, top, x + thick - 2, bottom), f"{name}, {series[s]}: {value:.3f}"))
            marks.append(_text("value", x + thick / 2 - 1, top - 4, f"{value:.2f}"))
        marks.append(_text("tick", left + step * (g + 0.5), bottom + 16, name))
    x = left
    for s, name in enumerate(series):
        marks.append(_rect(f"s{s % N_COLOURS}", Box(x, plot.height + 4, x + 10, plot.height + 14)))
        marks.append(_text("tick start", x + 14, plot.height + 13, name))
        x += 34 + LETTER * len(name)
    return plot.svg(marks, title)


def horizontal_bars(items: Sequence[tuple[str, int]], title: str) -> str:
    """Horizontal bars of counts, each below its name."""
    plot, largest = SMALL, max([count for _, count in items], default=1)
    step = (plot.height + 14) / max(6, len(items))
    marks = []
    for i, (name, count) in enumerate(items):
        top, width = i * step, (plot.width - 60) * count / largest
        marks.append(_text("tick start", 4, top + 12, name if len(name) <= 66 else f"{name[:65]}…"))
        marks.append(_rect("s4", Box(4, top + 17, 4 + width, top + step - 7), f"{name}: {count}"))
        marks.append(_text("tick start", width + 10, top + step - 10, str(count)))
    return plot.svg(marks, title)


def value_bars(items: Sequence[tuple[str, float]], title: str, digits: int = 2) -> str:
    """Horizontal bars of numbers, each below its name; where some are negative, names stand on the other side of 0."""
    shown = [(name, value if isfinite(value) else 0.0) for name, value in items]
    low, high = min([0.0, *(value for _, value in shown)]), max([0.0, *(value for _, value in shown)])
    longest = 23 if low < 0 else 66
    names = [name if len(name) <= longest else f"{name[: longest - 1]}…" for name, _ in shown]
    numbers = [f"{value:,.{digits}f}".replace("-", "−") for _, value in shown]
    beside = [*names, *numbers] if low < 0 else numbers
    room = max([65.0, *(LETTER * len(words) + 10 for words in beside)])  # on both sides of the bars
    scale = (SMALL.width - 2 * room) / max(high - low, SMALLEST)
    zero, above, step = (room - low * scale, 4, 22) if low < 0 else (4.0, 18, 34)
    plot, marks = replace(SMALL, height=max(2, len(shown)) * step), []
    for i, (name, written, (whole, value)) in enumerate(zip(names, numbers, shown, strict=True)):
        top, end = i * step, zero + value * scale
        colour, side = ("s4", -1) if value < 0 else ("s0", 1)
        after, before = ("tick start", "tick end")[::side]
        marks.append(_text(before, zero - 5 * side, top + 15, name) if low < 0 else _text("tick start", 4.0, top + 13, name))
        tip = f"{whole}: {written}"
        marks.append(_rect(colour, Box(min(zero, end), top + above, max(zero, end), top + step - 4), tip))
        marks.append(_text(after, end + 5 * side, top + step - 7, written))
    return plot.svg(marks, title, extra=4)


def dots(points: Sequence[tuple[int, float, str]], title: str, x_title: str) -> str:
    """Counts (logarithmic, across) against values between 0 and 1 (upwards); the tip of each dot has its name."""
    highest = ceil(log10(max([10, *(count for count, _, _ in points)])) - 1e-9)
    plot = replace(SMALL, across=Axis([10.0**power for power in range(highest + 1)], log=True))
    marks = [*plot.up_axis(digits=2), *plot.across_axis(x_title)]
    for count, value, name in points:
        tip = f"{name}: {count} documents, F1 {value:.2f}"
        marks.append(_circle("s0 dot", plot.x(max(1, count)), plot.y(value), 4, tip))
    return plot.svg(marks, title)


# ---- lines --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """Points (x, y) in order; a point without a number is left out. errors: half the height of an error bar at each point.

    A line without a name is a reference: not in the legend, without dots; without a colour it is grey. colour: number of the
    line whose colour it takes.
    """

    name: str
    points: Sequence[Sequence[float | None]]
    errors: Sequence[float | None] | None = None
    dashed: bool = False
    colour: int | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over the same two axes, with the titles x and y. names: for x = 0, 1, 2, and so on, where x is not a number."""

    title: str
    lines: Sequence[Line]
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    note: str = ""
    names: Sequence[str] = ()


def line_chart(chart: Chart) -> str:
    """Lines through points with error bars, and a legend below."""
    drawn = [list(_points(line, chart)) for line in chart.lines]
    points = [point for line in drawn for point in line]
    names = [*chart.names, "", ""][: max(2, len(chart.names))]  # at 0, 1, 2, and so on; a single name is placed at the left
    across = Axis(list(map(float, range(len(names)))), names=names)
    if not chart.names:
        across = axis((x for x, *_ in points), chart.log_x)
    up = axis((end for _, *ends in points for end in ends), chart.log_y)
    plot = replace(MEDIUM, across=across, up=up)
    marks = [*plot.up_axis(chart.y), *plot.across_axis(chart.x)]
    colours = [(number if line.colour is None else line.colour) % N_COLOURS for number, line in enumerate(chart.lines)]
    for line, colour, its_points in zip(chart.lines, colours, drawn, strict=True):
        marks += _line(plot, line, colour, its_points)
    # names, as many per row as fit
    x, row, row_height = plot.frame.left, 0, 17
    for line, colour in ((line, colour) for line, colour in zip(chart.lines, colours, strict=True) if line.name):
        width = 40 + LETTER * len(line.name)
        if x > plot.frame.left and x + width > plot.width:
            x, row = plot.frame.left, row + 1
        y = plot.height + 8 + row_height * row
        marks.append(f'<line {_stroke(line, colour)} x1="{x:.0f}" y1="{y:g}" x2="{x + 18:.0f}" y2="{y:g}"/>')
        marks.append(_text("tick start", x + 23, y + 4, line.name))
        x += width
    return plot.svg(marks, chart.title, row_height * (row + 1))


def _points(line: Line, chart: Chart) -> Iterator[Point]:
    """Points that the axes have a place for; an error bar that would leave a logarithmic axis is cut at its point."""
    errors = line.errors or [None] * len(line.points)
    for (x, y), error in zip(line.points, errors, strict=True):
        if x is None or y is None or not (isfinite(x) and isfinite(y)) or (chart.log_x and x <= 0) or (chart.log_y and y <= 0):
            continue
        half = error if error is not None and isfinite(error) else 0.0
        yield x, y, y - half if y > half or not chart.log_y else y, y + half


def _line(plot: Plot, line: Line, colour: int, points: Sequence[Point]) -> Iterator[str]:
    path = " ".join(f"{plot.x(x):.1f},{plot.y(y):.1f}" for x, y, _, _ in points)
    yield f'<polyline {_stroke(line, colour)} points="{path}"/>'
    for x, y, low, high in points if line.name else ():
        if plot.y(low) != plot.y(high):
            ends = f'x1="{plot.x(x):.1f}" y1="{plot.y(low):.1f}" x2="{plot.x(x):.1f}" y2="{plot.y(high):.1f}"'
            yield f'<line class="l{colour}" {ends}/>'
        spread = f" ± {in_short(high - y)}" if high > y else ""
        yield _circle(f"s{colour}", plot.x(x), plot.y(y), 3.2, f"{line.name}: {plot.across.label(x)}, {in_short(y)}{spread}")


def _stroke(line: Line, colour: int) -> str:
    kind = "reference" if not line.name and line.colour is None else f"l{colour}"
    return f'class="{kind}"' + (' stroke-dasharray="5 4"' if line.dashed else "")


# ---- named points; no name covers another, nor a point ------------------------------------------------------------------

NAME_LETTER, NAME_HEIGHT, RADIUS, GAP = 7.2, 13.0, 5.0, 8.0  # sizes of a name and a point, and the gap between them
FARTHEST, STEP = 280, 14  # how far a name may be from its point, and the distance between the places that are tried
LONGEST = 40  # letters of a name; the tip has all of it
DIRECTIONS = ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))  # right, left, and around the point


@dataclass(frozen=True, slots=True)
class NamedPoint:
    """A point with a name, the interval of its y, its kind (a place in the legend) and its tip."""

    name: str
    x: float
    y: float
    low: float
    high: float
    kind: int
    tip: str


def scatter(
    named: Sequence[NamedPoint], title: str, x: str, y: str, kinds: Sequence[tuple[str, int]], *, less_is_up: bool
) -> str:
    """Named points with intervals; x is logarithmic. kinds: name and colour of each. less_is_up: draw small values on top."""
    ends = [end for each in named for end in (each.low, each.y, each.high)]
    plot = replace(LARGE, across=axis((each.x for each in named), log=True), up=axis(ends, is_reversed=less_is_up))
    points = [(plot.x(each.x), plot.y(each.y)) for each in named]
    marks = [*plot.up_axis(y), *plot.across_axis(x, has_grid=True)]
    for each, (left, _) in zip(named, points, strict=True):
        low, high = plot.y(each.low), plot.y(each.high)
        marks.append(f'<line class="spread" x1="{left:.1f}" y1="{low:.1f}" x2="{left:.1f}" y2="{high:.1f}"/>')
    names = [each.name if len(each.name) <= LONGEST else f"{each.name[: LONGEST - 1]}…" for each in named]
    for name, point, box in zip(names, points, place_names(points, names, plot.frame), strict=True):
        marks += _name(name, point, box)
    for each, (left, top) in zip(named, points, strict=True):
        marks.append(_circle(f"s{kinds[each.kind][1]}", left, top, RADIUS, each.tip))
    at = plot.frame.left
    for name, colour in kinds:
        marks += [_circle(f"s{colour}", at, plot.height + 10, RADIUS), _text("tick start", at + 10, plot.height + 14, name)]
        at += 34 + NAME_LETTER * len(name)
    return plot.svg(marks, title)


def place_names(points: Sequence[tuple[float, float]], names: Sequence[str], frame: Box) -> list[Box | None]:
    """A place for each name close to its point, where it covers no other name and no point; None where there is none.

    >>> place_names([(50, 50), (50, 50)], ["one", "two"], Box(0, 0, 200, 100))[0]
    Box(left=58.0, top=43.5, right=79.6, bottom=56.5)
    """
    taken = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in points]
    placed: list[Box | None] = []
    for (x, y), name in zip(points, names, strict=True):
        places = _places(x, y, NAME_LETTER * len(name))
        free = (box for box in places if box.lies_in(frame) and not any(map(box.overlaps, taken)))
        placed.append(next(free, None))
        taken += [box for box in placed[-1:] if box is not None]
    return placed


def _places(x: float, y: float, width: float) -> Iterator[Box]:
    """Places for a name around a point, the closest first."""
    for reach in range(0, FARTHEST, STEP):
        for right, down in DIRECTIONS:
            centre = y + down * (NAME_HEIGHT + reach)
            far = GAP + (reach if right and not down else reach / 2 if right else 0)
            left = x + far if right > 0 else x - far - width if right < 0 else x - width / 2
            yield Box(left, centre - NAME_HEIGHT / 2, left + width, centre + NAME_HEIGHT / 2)


def _name(name: str, point: tuple[float, float], box: Box | None) -> Iterator[str]:
    """A name at its place, with a line to its point where they are apart."""
    if box is None:
        return
    x, y = point
    end_x, end_y = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
    if abs(end_x - x) > GAP + 1 or abs(end_y - y) > NAME_HEIGHT:
        yield f'<line class="grid" x1="{x:.1f}" y1="{y:.1f}" x2="{end_x:.1f}" y2="{end_y:.1f}"/>'
    # the width of letters varies: a name at the left of its point is aligned at its end
    kind, at = ("name end", box.right) if box.right < x else ("name", box.left)
    yield _text(kind, at, box.bottom - 3, name)
