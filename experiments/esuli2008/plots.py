"""Micro and macro F1 against the number of rounds, as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor
from pathlib import Path
from statistics import mean
from typing import Any

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 440, 380, 48, 12, 34, 112
STEP = 0.1
RED, BLUE, GREEN, PURPLE = "#b3541e", "#0b6e99", "#5b8c2a", "#7a4fa3"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a panel: a value for every number of rounds."""

    name: str
    values: Sequence[float]
    colour: str
    dashed: bool = False


def draw_all(results: dict[str, Any], folder: Path) -> None:
    """One picture, if there is something to draw."""
    if "rounds" not in results:
        return
    folder.mkdir(parents=True, exist_ok=True)
    ticks = [f"{int(s):,}" for s in results["rounds"]["all"]["adaboost"]]
    panels = [panel(f"{key} F1", lines(results, key), ticks) for key in ("micro", "macro")]
    (folder / "esuli-rounds.svg").write_text(together("F1 against rounds of boosting", panels))


def lines(results: dict[str, Any], key: str) -> list[Line]:
    """Both learners; and, where trees were tried, what tells where the gain comes from."""
    by_way, trees = results["rounds"]["all"], results.get("trees", {})
    rounds = list(by_way["adaboost"])
    names = {"adaboost": "adaboost-mh", "learnt": "treeboost-mh, learnt tree", "official": "treeboost-mh, official tree"}
    drawn = [
        Line(name, [by_way[way][s][key] for s in rounds], colour)
        for (way, name), colour in zip(names.items(), (RED, BLUE, GREEN), strict=True)
    ]
    if trees:
        shuffled = [rows for name, rows in trees.items() if name.startswith("shuffled")]
        drawn.append(Line("adaboost-mh, 5 × S rounds", [trees["stumps"][s][key] for s in rounds], RED, True))
        drawn.append(
            Line("treeboost-mh, shuffled trees", [mean(rows[s][key] for rows in shuffled) for s in rounds], PURPLE, True)
        )
    return drawn


def panel(title: str, drawn: Sequence[Line], ticks: Sequence[str]) -> str:
    """One chart: ticks stand at equal distances, the upright axis spans what there is."""
    found = [value for line in drawn for value in line.values]
    low, high = floor(min(found) / STEP + 1e-9), ceil(max(found) / STEP - 1e-9)
    marks = [_text(WIDTH / 2, 22, title, "middle", "bold")]
    for k in range(low, high + 1):
        y = _y(k * STEP, low * STEP, high * STEP)
        marks.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        marks.append(_text(LEFT - 6, y + 4, f"{k * STEP:.1f}", "end"))
    for k, tick in enumerate(ticks):
        marks.append(_text(_x(k, len(ticks)), HEIGHT - BOTTOM + 16, tick, "middle"))
    marks.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 34, "rounds S", "middle"))
    for line in drawn:
        marks += _line(line, low * STEP, high * STEP)
    return "".join([*marks, *_legend(drawn)])


def _x(position: int, n: int) -> float:
    return LEFT + 14 + (WIDTH - LEFT - RIGHT - 28) * position / max(1, n - 1)


def _y(value: float, low: float, high: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - low) / (high - low)


def _line(line: Line, low: float, high: float) -> list[str]:
    placed = [(_x(k, len(line.values)), _y(value, low, high)) for k, value in enumerate(line.values)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    marks = [f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"{_dash(line)}/>']
    return marks + [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{line.colour}"/>' for x, y in placed]


def _dash(line: Line) -> str:
    return ' stroke-dasharray="5 4"' if line.dashed else ""


def _legend(drawn: Sequence[Line]) -> list[str]:
    """Two names a row."""
    marks = []
    for k, line in enumerate(drawn):
        x, y = 14 + 216 * (k % 2), HEIGHT - BOTTOM + 58 + 18 * (k // 2)
        marks.append(f'<line x1="{x}" x2="{x + 18}" y1="{y}" y2="{y}" stroke="{line.colour}" stroke-width="2"{_dash(line)}/>')
        marks.append(_text(x + 24, y + 4, line.name, "start"))
    return marks


def _text(x: float, y: float, words: str, anchor: str, weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'


def together(title: str, panels: Sequence[str]) -> str:
    """The picture, on white, with panels side by side."""
    width = WIDTH * len(panels)
    size = f'viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}"'
    placed = "".join(f'<g transform="translate({WIDTH * k} 0)">{marks}</g>' for k, marks in enumerate(panels))
    ground = f'<rect width="{width}" height="{HEIGHT}" fill="white"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    return f"{head}<title>{escape(title)}</title>{ground}{placed}</svg>\n"
