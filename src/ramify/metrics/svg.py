"""Small charts as SVG text: bars, dots and lines, drawn in the page's own colours."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log10

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
