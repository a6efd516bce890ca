"""Axes of charts: from numbers to places, with round numbers as ticks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

STEPS = (1, 2, 5, 10)


@dataclass(frozen=True, slots=True)
class Axis:
    """From numbers to places between 0 and 1, with round numbers or names as ticks."""

    ticks: list[float]
    log: bool
    names: Sequence[str] = ()

    def place(self, value: float) -> float:
        """Where a number stands; beyond the ends, at the end."""
        low, high, at = (log10(v) if self.log else v for v in (self.ticks[0], self.ticks[-1], value))
        return min(1.0, max(0.0, (at - low) / (high - low)))

    def label(self, value: float) -> str:
        """What to write at a place."""
        return self.names[round(value)] if self.names else in_short(value)


def axis(values: Iterable[float], log: bool = False) -> Axis:
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
    return Axis(_log_ticks(min(found), max(found)) if log else _even_ticks(min(found), max(found), whole), log)


def named_axis(names: Sequence[str]) -> Axis:
    """An axis with a name at 0, 1, 2, and so on."""
    padded = [*names, "", ""][: max(2, len(names))]  # a lone name stands at the left
    return Axis([float(place) for place in range(len(padded))], log=False, names=padded)


def _even_ticks(low: float, high: float, whole: bool, wanted: int = 5) -> list[float]:
    """Three ticks or more, at multiples of 1, 2 or 5 times a power of ten; between whole numbers there is none."""
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
    """A number as it stands beside a tick.

    >>> in_short(0.25), in_short(1500.0), in_short(-2)
    ('0.25', '1,500', '−2')
    """
    return (f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}").replace("-", "−")


# --------------------------------------------------------------------------------------------------------------
# Small charts as SVG text: bars, dots and lines, drawn in the page's own colours.


WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 460, 260, 46, 40, 14, 14


def bars(groups: Sequence[tuple[str, Sequence[float]]], series: Sequence[str], title: str) -> str:
    """Groups of upright bars between 0 and 1, one bar a series."""
    step = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    thick = min(34.0, step * 0.8 / max(1, len(series)))
    marks = []
    for g, (name, values) in enumerate(groups):
        start = LEFT + step * (g + 0.5) - thick * len(values) / 2
        for s, value in enumerate(values):
            x, top = start + s * thick, _y(value)
            tip = escape(f"{name}, {series[s]}: {value:.3f}")
            marks.append(
                f'<rect class="s{s}" x="{x:.1f}" y="{top:.1f}" width="{thick - 2:.1f}" height="{_y(0) - top:.1f}">'
                f"<title>{tip}</title></rect>"
            )
            marks.append(f'<text class="value" x="{x + thick / 2 - 1:.1f}" y="{top - 4:.1f}">{value:.2f}</text>')
        marks.append(f'<text class="tick" x="{LEFT + step * (g + 0.5):.1f}" y="{HEIGHT - BOTTOM + 16}">{escape(name)}</text>')
    return _frame([*_share_axis(), *marks, *_legend(series)], title)


def rows(items: Sequence[tuple[str, int]], title: str) -> str:
    """Lying bars of counts, each below its name."""
    largest = max([count for _, count in items], default=1)
    step = (HEIGHT + 14) / max(6, len(items))
    marks = []
    for i, (name, count) in enumerate(items):
        top, width = i * step, (WIDTH - 60) * count / largest
        shown = name if len(name) <= 66 else f"{name[:65]}…"
        marks.append(f'<text class="tick start" x="4" y="{top + 12:.1f}">{escape(shown)}</text>')
        bar = f'<rect class="s4" x="4" y="{top + 17:.1f}" width="{width:.1f}" height="{step - 24:.1f}">'
        marks.append(f"{bar}<title>{escape(f'{name}: {count}')}</title></rect>")
        marks.append(f'<text class="tick start" x="{width + 10:.1f}" y="{top + step - 10:.1f}">{count}</text>')
    return _frame(marks, title)


def dots(points: Sequence[tuple[int, float, str]], title: str, x_label: str) -> str:
    """Counts (logarithmic, across) against shares (up); each dot tells its name."""
    largest = max([count for count, _, _ in points], default=1)
    decades = max(1.0, log10(max(10, largest)))
    marks = []
    for count, share, name in points:
        x = LEFT + (WIDTH - LEFT - RIGHT) * log10(max(1, count)) / decades
        tip = escape(f"{name}: {count} documents, F1 {share:.2f}")
        marks.append(f'<circle class="s0 dot" cx="{x:.1f}" cy="{_y(share):.1f}" r="4"><title>{tip}</title></circle>')
    for power in range(int(decades) + 1):
        x = LEFT + (WIDTH - LEFT - RIGHT) * power / decades
        marks.append(f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}">{10**power:,}</text>')
    return _frame([*_share_axis(), *marks, _x_title(x_label)], title)


def lines(series: Sequence[tuple[str, Sequence[tuple[float, float]]]], title: str, x_label: str) -> str:
    """Lines through points of two shares, with the diagonal where both are equal."""
    marks = [f'<line class="grid dash" x1="{_x(0):.1f}" y1="{_y(0):.1f}" x2="{_x(1):.1f}" y2="{_y(1):.1f}"/>']
    for s, (name, points) in enumerate(series):
        path = " ".join(f"{_x(a):.1f},{_y(b):.1f}" for a, b in points)
        marks.append(f'<polyline class="l{s % 6}" points="{path}"/>')
        for a, b in points:
            tip = escape(f"{name}: promised {a:.2f}, observed {b:.2f}")
            marks.append(f'<circle class="s{s % 6}" cx="{_x(a):.1f}" cy="{_y(b):.1f}" r="3.5"><title>{tip}</title></circle>')
    ticks = [f'<text class="tick" x="{_x(v):.1f}" y="{HEIGHT - BOTTOM + 16}">{v:.2f}</text>' for v in (0, 0.25, 0.5, 0.75, 1)]
    return _frame([*_share_axis(), *marks, *ticks, _x_title(x_label), *_legend([name for name, _ in series])], title)


def _x(share: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * share


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share


def _share_axis() -> list[str]:
    marks = []
    for value in (0, 0.25, 0.5, 0.75, 1):
        marks.append(f'<line class="grid" x1="{LEFT}" y1="{_y(value):.1f}" x2="{WIDTH - RIGHT}" y2="{_y(value):.1f}"/>')
        marks.append(f'<text class="tick end" x="{LEFT - 6}" y="{_y(value) + 4:.1f}">{value:.2f}</text>')
    return marks


def _x_title(label: str) -> str:
    return f'<text class="tick" x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 6}">{escape(label)}</text>'


def _legend(series: Sequence[str]) -> list[str]:
    marks, x = [], float(LEFT)
    for s, name in enumerate(series):
        marks.append(f'<rect class="s{s % 6}" x="{x:.0f}" y="{HEIGHT + 4}" width="10" height="10"/>')
        marks.append(f'<text class="tick start" x="{x + 14:.0f}" y="{HEIGHT + 13}">{escape(name)}</text>')
        x += 34 + 6.5 * len(name)
    return marks


def _frame(marks: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 22}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(marks)}</svg>"
    )


# --------------------------------------------------------------------------------------------------------------
# Named points over two axes as SVG text; no name lies over another, nor over a point.


WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 430, 64, 20, 14, 48
LETTER, LINE, DOT, GAP = 7.2, 13.0, 5.0, 8.0  # a letter's width, a name's height, a point's radius, and from it to its name
FARTHEST, STEP = 280, 14  # how far from its point a name may stand, and how far apart the places are that are tried
LONGEST = 40  # letters of a name; the whole of it is in the tip
# right, left, and round the point
DIRECTIONS = ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))


@dataclass(frozen=True, slots=True)
class Spot:
    """A named point, between which values it may lie up and down, its kind, and what it tells when pointed at."""

    name: str
    x: float
    y: float
    low: float
    high: float
    kind: int
    tip: str


class Box(NamedTuple):
    """Where something is drawn."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """Whether some place is in both."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def lies_in(self, other: Box) -> bool:
        """Whether no part of it is outside."""
        across = self.left >= other.left and self.right <= other.right
        return across and self.top >= other.top and self.bottom <= other.bottom


FRAME = Box(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM)


def scatter(spots: Sequence[Spot], title: str, x: str, y: str, kinds: Sequence[tuple[str, int]], *, less_is_up: bool) -> str:
    """Points over a logarithmic axis across; every word is escaped.

    x, y: what the axes are. kinds: the name of each kind of point and the number of its colour. less_is_up: whether small
    values stand above large ones.
    """
    across, up = (
        axis((spot.x for spot in spots), log=True),
        axis(end for spot in spots for end in (spot.low, spot.y, spot.high)),
    )
    points = [(_x_place(across, spot.x), _y_place(up, spot.y, less_is_up)) for spot in spots]
    marks = [*_axes(across, up, x, y, less_is_up)]
    for spot, (left, _) in zip(spots, points, strict=True):
        low, high = _y_place(up, spot.low, less_is_up), _y_place(up, spot.high, less_is_up)
        marks.append(f'<line class="spread" x1="{left:.1f}" y1="{low:.1f}" x2="{left:.1f}" y2="{high:.1f}"/>')
    names = [spot.name if len(spot.name) <= LONGEST else f"{spot.name[: LONGEST - 1]}…" for spot in spots]
    for name, point, box in zip(names, points, place_names(points, names, FRAME), strict=True):
        marks += _name(name, point, box)
    for spot, (left, top) in zip(spots, points, strict=True):
        colour, tip = kinds[spot.kind][1], escape(spot.tip)
        marks.append(f'<circle class="s{colour}" cx="{left:.1f}" cy="{top:.1f}" r="{DOT}"><title>{tip}</title></circle>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 22}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join([*marks, *_scatter_legend(kinds)])}</svg>'
    )


def place_names(points: Sequence[tuple[float, float]], names: Sequence[str], frame: Box) -> list[Box | None]:
    """A place for each name near its point, where it covers no other name and no point; None where there is none.

    >>> place_names([(50, 50), (50, 50)], ["one", "two"], Box(0, 0, 200, 100))[0]
    Box(left=58.0, top=43.5, right=79.6, bottom=56.5)
    """
    taken = [Box(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in points]
    placed: list[Box | None] = []
    for (x, y), name in zip(points, names, strict=True):
        free = (box for box in _places(x, y, LETTER * len(name)) if box.lies_in(frame) and not any(map(box.overlaps, taken)))
        placed.append(next(free, None))
        taken += [box for box in placed[-1:] if box is not None]
    return placed


def _places(x: float, y: float, width: float) -> Iterator[Box]:
    """Places for a name around a point, the nearest first."""
    for reach in range(0, FARTHEST, STEP):
        for right, down in DIRECTIONS:
            centre = y + down * (LINE + reach)
            far = GAP + (reach if right and not down else reach / 2 if right else 0)
            left = x + far if right > 0 else x - far - width if right < 0 else x - width / 2
            yield Box(left, centre - LINE / 2, left + width, centre + LINE / 2)


def _name(name: str, point: tuple[float, float], box: Box | None) -> Iterator[str]:
    """A name at its place, and a line to its point where they are apart."""
    if box is None:
        return
    x, y = point
    end_x, end_y = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
    if abs(end_x - x) > GAP + 1 or abs(end_y - y) > LINE:
        yield f'<line class="grid" x1="{x:.1f}" y1="{y:.1f}" x2="{end_x:.1f}" y2="{end_y:.1f}"/>'
    # letters are of many widths: a name ends, or begins, where its point is
    kind, at = ("name end", box.right) if box.right < x else ("name", box.left)
    yield f'<text class="{kind}" x="{at:.1f}" y="{box.bottom - 3:.1f}">{escape(name)}</text>'


def _axes(across: Axis, up: Axis, x: str, y: str, less_is_up: bool) -> Iterator[str]:
    for value in up.ticks:
        top = _y_place(up, value, less_is_up)
        yield f'<line class="grid" x1="{LEFT}" y1="{top:.1f}" x2="{WIDTH - RIGHT}" y2="{top:.1f}"/>'
        yield f'<text class="tick end" x="{LEFT - 6}" y="{top + 4:.1f}">{in_short(value)}</text>'
    for value in across.ticks:
        left = _x_place(across, value)
        yield f'<line class="grid" x1="{left:.1f}" y1="{TOP}" x2="{left:.1f}" y2="{HEIGHT - BOTTOM + 4}"/>'
        yield f'<text class="tick" x="{left:.1f}" y="{HEIGHT - BOTTOM + 18}">{in_short(value)}</text>'
    yield f'<text class="tick" x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 8}">{escape(x)}</text>'
    yield f'<text class="tick" transform="rotate(-90)" x="{-(TOP + HEIGHT - BOTTOM) / 2:.1f}" y="14">{escape(y)}</text>'


def _scatter_legend(kinds: Sequence[tuple[str, int]]) -> Iterator[str]:
    x = float(LEFT)
    for name, colour in kinds:
        yield f'<circle class="s{colour}" cx="{x:.0f}" cy="{HEIGHT + 10}" r="{DOT}"/>'
        yield f'<text class="tick start" x="{x + 10:.0f}" y="{HEIGHT + 14}">{escape(name)}</text>'
        x += 34 + LETTER * len(name)


def _x_place(across: Axis, value: float) -> float:
    return FRAME.left + (FRAME.right - FRAME.left) * across.place(value)


def _y_place(up: Axis, value: float, less_is_up: bool) -> float:
    height = up.place(value)
    return FRAME.bottom - (FRAME.bottom - FRAME.top) * (1 - height if less_is_up else height)
