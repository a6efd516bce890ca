"""Accuracies as line charts with bars of one standard error, side by side, as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor
from pathlib import Path
from statistics import mean
from typing import Any

from tables import WAYS, standard_error

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 440, 380, 48, 12, 34, 112
COLUMNS = 2
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
RED, BLUE, ORANGE, GREEN, PURPLE = "#b3541e", "#0b6e99", "#d9822b", "#5b8c2a", "#7a4fa3"
STYLES = {  # colour, and whether dashed
    "nb": (RED, False),
    "shrinkage": (BLUE, False),
    "nb-sharper": (ORANGE, True),
    "shrinkage-flat": (GREEN, True),
    "shrinkage-held-out": (PURPLE, True),
    "nb-seen": (RED, True),
    "shrinkage-seen": (BLUE, True),
}
SIZE_PANELS = {  # title, measure, what is drawn
    "flat and shrinkage": ("accuracy", ("nb", "shrinkage")),
    "where the gain comes from": ("accuracy", ("nb", "shrinkage", "nb-sharper", "shrinkage-flat", "shrinkage-held-out")),
    "only words of the training documents": ("accuracy", ("nb", "shrinkage", "nb-seen", "shrinkage-seen")),
    "the topic is right": ("topic", ("nb", "shrinkage", "nb-sharper", "shrinkage-flat")),
}
SELECTIONS = {
    "nb flat": "flat, for all classes",
    "nb hierarchical": "flat, by inner node",
    "shrinkage flat": "shrinkage, for all classes",
    "shrinkage hierarchical": "shrinkage, by inner node",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel: mean and standard error at every tick."""

    name: str
    means: Sequence[float]
    errors: Sequence[float]
    colour: str
    dashed: bool = False

    @classmethod
    def of(cls, name: str, trials: Sequence[Sequence[float]], colour: str, dashed: bool = False) -> Line:
        """From the values of all trials at every tick."""
        return cls(name, [mean(values) for values in trials], [standard_error(values) for values in trials], colour, dashed)


def draw_all(results: dict[str, Any], folder: Path) -> None:
    """Draw the parts that there are."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, make in {"sizes": size_panels, "words": word_panels}.items():
        if part in results:
            title, panels = make(results[part])
            (folder / f"mccallum-{part}.svg").write_text(together(title, panels))


def size_panels(found: dict[str, Any]) -> tuple[str, list[str]]:
    """Accuracy against training documents: the paper's two, what tells where the gain comes from, topics."""
    ticks = [f"{int(size):,}" for size in found["nb"]]
    panels = []
    for title, (measure, ways) in SIZE_PANELS.items():
        lines = [Line.of(WAYS[way], [lists[measure] for lists in found[way].values()], *STYLES[way]) for way in ways]
        panels.append(panel(title, lines, ticks, "training documents"))
    return "Accuracy against training documents", panels


def word_panels(found: dict[str, Any]) -> tuple[str, list[str]]:
    """Accuracy against words, a panel for each size of the training set; then what shrinkage gains in the same trials."""
    asked = list(next(iter(found.values()))["nb flat"])
    ticks = [words.removesuffix("000") + "k" * words.endswith("000") for words in asked]
    panels, gains = [], []
    for (size, ways), colour in zip(found.items(), (PURPLE, GREEN, ORANGE), strict=True):
        values = {way: [ways[way][words]["accuracy"] for words in asked] for way in SELECTIONS}
        styles = {way: (BLUE if "shrinkage" in way else RED, way.endswith("hierarchical")) for way in SELECTIONS}
        lines = [Line.of(SELECTIONS[way], values[way], *styles[way]) for way in SELECTIONS]
        panels.append(panel(f"{int(size):,} training documents", lines, ticks, "words"))
        pairs = zip(values["shrinkage flat"], values["nb flat"], strict=True)
        differences = [[a - b for a, b in zip(*pair, strict=True)] for pair in pairs]
        gains.append(Line.of(f"{int(size):,} documents", differences, colour))
    panels.append(panel("shrinkage less flat, words for all classes", gains, ticks, "words"))
    return "Accuracy against vocabulary", panels


def panel(title: str, lines: Sequence[Line], ticks: Sequence[str], x_label: str) -> str:
    """One chart: ticks stand at equal distances, the upright axis spans what there is."""
    ends = [(value - error, value + error) for line in lines for value, error in zip(line.means, line.errors, strict=True)]
    low, high, step = _span(min(ends)[0], max(high for _, high in ends))
    marks = [_text(WIDTH / 2, 22, title, "middle", "bold")]
    for k in range(round((high - low) / step) + 1):
        y = _y(low + k * step, low, high)
        marks.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        marks.append(_text(LEFT - 6, y + 4, f"{low + k * step:z.2f}", "end"))
    for k, tick in enumerate(ticks):
        marks.append(_text(_x(k, len(ticks)), HEIGHT - BOTTOM + 16, tick, "middle"))
    marks.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 34, x_label, "middle"))
    for line in lines:
        marks += _line(line, low, high)
    return "".join([*marks, *_legend(lines)])


def _span(lowest: float, highest: float) -> tuple[float, float, float]:
    """Both ends of the axis and the distance of its lines, at most eight of them."""
    step = next((step for step in STEPS if (highest - lowest) / step <= 7), STEPS[-1])
    low, high = floor(lowest / step + 1e-9), ceil(highest / step - 1e-9)
    return low * step, max(high, low + 1) * step, step


def _x(position: int, n: int) -> float:
    return LEFT + 14 + (WIDTH - LEFT - RIGHT - 28) * position / max(1, n - 1)


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low)


def _line(line: Line, low: float, high: float) -> list[str]:
    n = len(line.means)
    placed = [(_x(k, n), _y(value, low, high)) for k, value in enumerate(line.means)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    marks = [f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"{_dash(line)}/>']
    for k, (x, y) in enumerate(placed):
        top, bottom = (_y(line.means[k] + sign * line.errors[k], low, high) for sign in (1, -1))
        bar = f"M{x - 4:.1f} {top:.1f}h8M{x - 4:.1f} {bottom:.1f}h8M{x:.1f} {top:.1f}V{bottom:.1f}"
        marks.append(f'<path d="{bar}" stroke="{line.colour}" stroke-width="1.5" fill="none"/>')
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{line.colour}"/>')
    return marks


def _dash(line: Line) -> str:
    return ' stroke-dasharray="5 4"' if line.dashed else ""


def _legend(lines: Sequence[Line]) -> list[str]:
    """Two names a row."""
    marks = []
    for k, line in enumerate(lines):
        x, y = 14 + 216 * (k % 2), HEIGHT - BOTTOM + 58 + 18 * (k // 2)
        marks.append(f'<line x1="{x}" x2="{x + 18}" y1="{y}" y2="{y}" stroke="{line.colour}" stroke-width="2"{_dash(line)}/>')
        marks.append(_text(x + 24, y + 4, line.name, "start"))
    return marks


def _text(x: float, y: float, words: str, anchor: str, weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'


def together(title: str, panels: Sequence[str]) -> str:
    """The picture, on white."""
    width, height = WIDTH * COLUMNS, HEIGHT * ceil(len(panels) / COLUMNS)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    places = [(WIDTH * (k % COLUMNS), HEIGHT * (k // COLUMNS)) for k in range(len(panels))]
    placed = "".join(f'<g transform="translate({x} {y})">{marks}</g>' for (x, y), marks in zip(places, panels, strict=True))
    ground = f'<rect width="{width}" height="{height}" fill="white"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return f"{head}<title>{escape(title)}</title>{ground}{placed}</svg>\n"
