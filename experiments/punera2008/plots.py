"""Averaged measures as line charts, two panels a row, as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor
from pathlib import Path

Rows = dict[str, dict[str, float]]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 380, 340, 44, 10, 34, 102
COLUMNS = 2
DRAWN = ("svm", "nb-isotonic")
COLOURS = ("#0b6e99", "#b3541e", "#5b8c2a", "#7a4fa3", "#b8860b")
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel: a value at every tick; dashed where it tells what to compare with."""

    name: str
    values: Sequence[float]
    colour: str
    dashed: bool = False


def draw_all(average: dict[str, dict[str, Rows]], folder: Path) -> None:
    """Draw every part that there is, for the learners that the systems have."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, parts in ((name.split()[1], parts) for name, parts in average.items()):
        for part, rows in parts.items() if kind in DRAWN else ():
            title, panels = PANELS[part](rows)
            (folder / f"punera-{part}-{kind}.svg").write_text(together(f"{title}, {kind}", panels))


def penalty_panels(rows: Rows) -> tuple[str, list[str]]:
    """Measures against the penalty."""
    names = [name for name in rows if name != "none"]
    return "Taxonomy I", both_panels(rows, names, [_size(name) for name in names], "penalty")


def hybrid_panels(rows: Rows) -> tuple[str, list[str]]:
    """Measures against the scale of node penalties; then accuracy and F beside those of one penalty for all."""
    names = [name for name in rows if name.startswith("shares")]
    ticks = [_size(name.split()[1]) for name in names]
    panels = both_panels(rows, names, ticks, "multiple of the share")
    for title, measure in (("accuracy", "accuracy"), ("F", "f")):
        lines = [
            Line("penalty by share", [rows[name][measure] for name in names], COLOURS[0]),
            Line("the same everywhere", [rows[name.replace("shares", "one")][measure] for name in names], COLOURS[1]),
            Line("no smoothing", [rows["none"][measure]] * len(names), COLOURS[2], dashed=True),
        ]
        panels.append(panel(title, lines, ticks, "multiple of the share, or penalty"))
    return "Taxonomy II", panels


def missing_panels(rows: Rows) -> tuple[str, list[str]]:
    """Every way against the share of missing classifiers, a panel a measure."""
    shares = list(dict.fromkeys(name.split()[1] for name in rows))
    titles = {"accuracy": "accuracy", "auc": "AUC", "f": "F", "f_one": "F, at least one"}
    panels = []
    for measure, title in titles.items():
        lines = []
        for (way, shown), colour in zip(WAYS.items(), COLOURS, strict=True):
            lines.append(Line(shown, [rows[f"{way} {share}"][measure] for share in shares], colour, way == "guesses"))
        panels.append(panel(title, lines, shares, "classifiers missing, in percent"))
    return "Taxonomy I, missing classifiers", panels


WAYS = {
    "guesses": "guesses by share",
    "strict": "strict smoothing",
    "plain": "plain, penalty 0",
    "priors-0.1": "strict, priors × 0.1",
    "priors-0.5": "strict, priors × 0.5",
}
PANELS = {"penalty": penalty_panels, "missing": missing_panels, "hybrids": hybrid_panels}


def both_panels(rows: Rows, names: Sequence[str], ticks: Sequence[str], x_label: str) -> list[str]:
    """Accuracy with AUC, and precision with recall and F; dashed without smoothing."""
    groups = {
        "accuracy and AUC": {"accuracy": "accuracy", "AUC": "auc", "accuracy, at least one": "accuracy_one"},
        "precision, recall and F": {"precision": "precision", "recall": "recall", "F": "f", "F, at least one": "f_one"},
    }
    panels = []
    for title, measures in groups.items():
        lines = []
        for (shown, measure), colour in zip(measures.items(), COLOURS, strict=False):
            lines.append(Line(shown, [rows[name][measure] for name in names], colour))
            if "_one" not in measure:  # without smoothing, the root is always a label
                lines.append(Line("", [rows["none"][measure]] * len(names), colour, dashed=True))
        lines.append(Line("dashed: no smoothing", [], "#555555", dashed=True))
        panels.append(panel(title, lines, ticks, x_label))
    return panels


def _size(name: str) -> str:
    return "∞" if name == "inf" else name


def panel(title: str, lines: Sequence[Line], ticks: Sequence[str], x_label: str) -> str:
    """One chart: ticks stand at equal distances, the upright axis spans what there is."""
    values = [value for line in lines for value in line.values]
    low, high, step = _span(min(values), max(values))
    marks = [_text(WIDTH / 2, 22, title, "middle", "bold")]
    for k in range(round((high - low) / step) + 1):
        y = _y(low + k * step, low, high)
        marks.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        marks.append(_text(LEFT - 6, y + 4, f"{low + k * step:.2f}", "end"))
    for k, tick in enumerate(ticks):
        marks.append(_text(_x(k, len(ticks)), HEIGHT - BOTTOM + 16, tick, "middle"))
    marks.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 34, x_label, "middle"))
    for line in lines:
        marks += _line(line, low, high)
    return "".join([*marks, *_legend(lines)])


def _span(lowest: float, highest: float) -> tuple[float, float, float]:
    """Both ends of the axis and the distance of its lines, at most seven of them."""
    step = next((step for step in STEPS if (highest - lowest) / step <= 6), STEPS[-1])
    low, high = floor(lowest / step + 1e-9), ceil(highest / step - 1e-9)
    return low * step, max(high, low + 1) * step, step


def _x(position: int, n: int) -> float:
    return LEFT + 12 + (WIDTH - LEFT - RIGHT - 24) * position / max(1, n - 1)


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low)


def _line(line: Line, low: float, high: float) -> list[str]:
    placed = [(_x(k, len(line.values)), _y(value, low, high)) for k, value in enumerate(line.values)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    marks = [f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"{dash}/>']
    is_flat = len(set(line.values)) <= 1
    return marks + [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{line.colour}"/>' for x, y in placed if not is_flat]


def _legend(lines: Sequence[Line]) -> list[str]:
    """Two names a row."""
    marks = []
    for k, line in enumerate(line for line in lines if line.name):
        x, y = LEFT + 176 * (k % 2), HEIGHT - BOTTOM + 54 + 17 * (k // 2)
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        marks.append(f'<line x1="{x}" x2="{x + 18}" y1="{y}" y2="{y}" stroke="{line.colour}" stroke-width="2"{dash}/>')
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
