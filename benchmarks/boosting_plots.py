"""Lines on logarithmic axes as SVG text, for the benchmarks of boosting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 620, 420, 64, 16, 40, 116
COLOURS = ("#0b6e99", "#b3541e", "#5b8c2a", "#7a4fa3", "#d9822b", "#555555")
GREY = "#d8d8d8"
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """From the least to the largest value, over so many pixels from a start; negative pixels go up."""

    low: float
    high: float
    start: float
    pixels: float
    is_log: bool

    def place(self, value: float) -> float:
        """Where a value stands."""
        low, high, at = (log10(v) if self.is_log else v for v in (self.low, self.high, value))
        return self.start + self.pixels * (at - low) / (high - low)

    def ticks(self) -> list[float]:
        """Powers of ten and, where these are few, 2 and 5 times them; otherwise whole numbers."""
        if not self.is_log:
            return [float(v) for v in range(ceil(self.low), floor(self.high) + 1)]
        powers = range(floor(log10(self.low)) - 1, ceil(log10(self.high)) + 1)
        steps = (1,) if self.high / self.low > 1000 else (1, 2, 5)
        return [10.0**k * step for k in powers for step in steps if self.low <= 10.0**k * step <= self.high]


def draw(
    series: dict[str, Sequence[Point]], title: str, across: str, up: str, *, log_x: bool = True, mark: float | None = None
) -> str:
    """A line a series, and one across at the mark."""
    xs, ys = (list(values) for values in zip(*(point for points in series.values() for point in points), strict=True))
    ys = [*ys, mark] if mark else ys
    x = Axis(min(xs) / (1.2 if log_x else 1), max(xs) * (1.2 if log_x else 1), LEFT, WIDTH - LEFT - RIGHT, log_x)
    y = Axis(min(ys) / 1.3, max(ys) * 1.3, HEIGHT - BOTTOM, -(HEIGHT - TOP - BOTTOM), True)
    marks = [*_grid(x, y), *_labels(title, across, up)]
    if mark:
        marks.append(_stroke([(x.low, mark), (x.high, mark)], x, y, "#000000", ' stroke-dasharray="4 3"'))
    for number, (name, points) in enumerate(series.items()):
        marks += _line(number, name, points, x, y)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}><title>{escape(title)}</title>{"".join(marks)}</svg>\n'


def _grid(x: Axis, y: Axis) -> list[str]:
    marks = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    for tick in x.ticks():
        at = x.place(tick)
        marks.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{GREY}"/>')
        marks.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:,g}</text>')
    for tick in y.ticks():
        at = y.place(tick)
        marks.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="{GREY}"/>')
        marks.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{tick:,g}</text>')
    return marks


def _labels(title: str, across: str, up: str) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return [
        f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" font-size="14">{escape(title)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - BOTTOM + 34}" text-anchor="middle">{escape(across)}</text>',
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{escape(up)}</text>',
    ]


def _line(number: int, name: str, points: Sequence[Point], x: Axis, y: Axis) -> list[str]:
    colour = COLOURS[number % len(COLOURS)]
    marks = [_stroke(points, x, y, colour)]
    marks += [f'<circle cx="{x.place(a):.1f}" cy="{y.place(b):.1f}" r="4" fill="{colour}"/>' for a, b in points]
    left, top = LEFT + 270 * (number % 2), HEIGHT - BOTTOM + 56 + 18 * (number // 2)
    marks.append(f'<rect x="{left}" y="{top - 9}" width="10" height="10" fill="{colour}"/>')
    marks.append(f'<text x="{left + 16}" y="{top}">{escape(name)}</text>')
    return marks


def _stroke(points: Sequence[Point], x: Axis, y: Axis, colour: str, dash: str = "") -> str:
    path = " ".join(f"{x.place(a):.1f},{y.place(b):.1f}" for a, b in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
