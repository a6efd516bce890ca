"""Training time against size, for one row: ``python benchmarks/scaling.py --row ramify:OneVsRestSVM:mode=fast``.

Documents grow at a fixed number of classes, then classes at a fixed number of documents. Both axes are logarithmic, so that
time ∝ sizeᵏ is a line of slope k; the legend tells k.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from html import escape
from math import log10
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Directory, split_directory, write_problem
from environments import HERE
from measuring import measure
from run import console, row_of

STEPS = (1, 2, 4, 8)
WIDTH, HEIGHT, MARGIN = 600, 360, 90
COLOURS = ("#0b6e99", "#b3541e")
N_TEST = 200

Point = tuple[float, float]
Series = dict[str, list[Point]]


def main() -> None:
    """Measure every size, keep the figures, draw them."""
    given = parse()
    n_docs, n_classes = given.documents, given.classes
    sizes = {
        f"documents ({n_classes:,} classes)": [(step * n_docs, n_classes) for step in STEPS],
        f"classes ({STEPS[-1] * n_docs:,} documents)": [(STEPS[-1] * n_docs, step * n_classes) for step in STEPS],
    }
    results = {name: [train(given, *size) for size in along] for name, along in sizes.items()}
    given.out.with_suffix(".json").write_text(json.dumps({"row": given.row, "results": results}, indent=1))
    series = {name: points_of(found, name.split()[0]) for name, found in results.items()}
    given.out.with_suffix(".svg").write_text(draw(series, f"{given.row}: training time"))


def train(given: argparse.Namespace, n_docs: int, n_classes: int) -> dict[str, Any]:
    """The figures of one size."""
    split = split_directory(Directory(n_classes, n_docs, N_TEST, given.features))
    with tempfile.TemporaryDirectory() as folder, console.status(f"{n_docs:,} documents, {n_classes:,} classes"):
        write_problem(split, Path(folder))
        limits = {"envs": given.envs, "threads": given.threads, "timeout": given.timeout}
        result = measure(row_of(given.row), split, Path(folder), **limits)
    outcome = result.get("failed") or f"{result['train_seconds']:.3f} s"
    console.print(f"{n_docs:,} documents, {n_classes:,} classes: {outcome}", highlight=False, markup=False)
    return {"documents": n_docs, "classes": n_classes, **result}


def points_of(results: list[dict[str, Any]], axis: str) -> list[Point]:
    """(size, seconds) of what finished."""
    return [(result[axis], result["train_seconds"]) for result in results if "failed" not in result]


def slope(points: list[Point]) -> float:
    """The k of time ∝ sizeᵏ, by least squares."""
    return float(np.polyfit(*np.log(np.asarray(points)).T, 1)[0]) if len(points) > 1 else float("nan")


def draw(series: Series, title: str) -> str:
    """A line a series on logarithmic axes, as SVG text."""
    everything = [point for points in series.values() for point in points] or [(1.0, 1.0)]
    low, high = (tuple(log10(edge(column)) for column in zip(*everything, strict=True)) for edge in (min, max))
    marks = [f'<text x="{WIDTH / 2}" y="20" text-anchor="middle">{escape(title)} (seconds, by size)</text>']
    for number, (name, points) in enumerate(series.items()):
        placed = [place(point, low, high) for point in points]
        marks += line(placed, points, COLOURS[number])
        label = f"{name}: time ∝ size^{slope(points):.2f}"
        marks.append(f'<text x="{MARGIN}" y="{HEIGHT - 24 + 16 * number}" fill="{COLOURS[number]}">{escape(label)}</text>')
    style = 'font-family="sans-serif" font-size="12"'
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}><title>{escape(title)}</title>{"".join(marks)}</svg>\n'


def place(point: Point, low: tuple[float, ...], high: tuple[float, ...]) -> Point:
    """Where a point stands in the picture."""
    across, up = ((log10(v) - a) / max(b - a, 1e-9) for v, a, b in zip(point, low, high, strict=True))
    return MARGIN + across * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)


def line(placed: list[Point], points: list[Point], colour: str) -> list[str]:
    """A line with a dot at every measurement, and its figures beside the dot."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    marks = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>']
    for (x, y), (size, seconds) in zip(placed, points, strict=True):
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        marks.append(f'<text x="{x - 6:.1f}" y="{y - 6:.1f}" text-anchor="end">{seconds:.3g} s @ {size:,}</text>')
    return marks


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--row", default="ramify:OneVsRestSVM:mode=fast", help="as a name of run.py --peers")
    parser.add_argument("--documents", type=int, default=2_000, help="the fewest; then 2, 4 and 8 times as many")
    parser.add_argument("--classes", type=int, default=100, help="the fewest; then 2, 4 and 8 times as many")
    parser.add_argument("--features", type=int, default=30_000, help="the same at every size")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one size")
    parser.add_argument("--envs", type=Path, default=HERE / ".envs", help="where the peers' environments are kept")
    parser.add_argument("--out", type=Path, default=HERE / "scaling", help="where the .json and .svg go")
    return parser.parse_args()


if __name__ == "__main__":
    main()
