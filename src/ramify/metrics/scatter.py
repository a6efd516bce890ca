"""Named points over two axes as SVG text; no name lies over another, nor over a point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from ramify.metrics.axes import Axis, axis, in_short

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
    points = [(_x(across, spot.x), _y(up, spot.y, less_is_up)) for spot in spots]
    marks = [*_axes(across, up, x, y, less_is_up)]
    for spot, (left, _) in zip(spots, points, strict=True):
        low, high = _y(up, spot.low, less_is_up), _y(up, spot.high, less_is_up)
        marks.append(f'<line class="spread" x1="{left:.1f}" y1="{low:.1f}" x2="{left:.1f}" y2="{high:.1f}"/>')
    names = [spot.name if len(spot.name) <= LONGEST else f"{spot.name[: LONGEST - 1]}…" for spot in spots]
    for name, point, box in zip(names, points, place_names(points, names, FRAME), strict=True):
        marks += _name(name, point, box)
    for spot, (left, top) in zip(spots, points, strict=True):
        colour, tip = kinds[spot.kind][1], escape(spot.tip)
        marks.append(f'<circle class="s{colour}" cx="{left:.1f}" cy="{top:.1f}" r="{DOT}"><title>{tip}</title></circle>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 22}" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>{"".join([*marks, *_legend(kinds)])}</svg>'
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
        top = _y(up, value, less_is_up)
        yield f'<line class="grid" x1="{LEFT}" y1="{top:.1f}" x2="{WIDTH - RIGHT}" y2="{top:.1f}"/>'
        yield f'<text class="tick end" x="{LEFT - 6}" y="{top + 4:.1f}">{in_short(value)}</text>'
    for value in across.ticks:
        left = _x(across, value)
        yield f'<line class="grid" x1="{left:.1f}" y1="{TOP}" x2="{left:.1f}" y2="{HEIGHT - BOTTOM + 4}"/>'
        yield f'<text class="tick" x="{left:.1f}" y="{HEIGHT - BOTTOM + 18}">{in_short(value)}</text>'
    yield f'<text class="tick" x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 8}">{escape(x)}</text>'
    yield f'<text class="tick" transform="rotate(-90)" x="{-(TOP + HEIGHT - BOTTOM) / 2:.1f}" y="14">{escape(y)}</text>'


def _legend(kinds: Sequence[tuple[str, int]]) -> Iterator[str]:
    x = float(LEFT)
    for name, colour in kinds:
        yield f'<circle class="s{colour}" cx="{x:.0f}" cy="{HEIGHT + 10}" r="{DOT}"/>'
        yield f'<text class="tick start" x="{x + 10:.0f}" y="{HEIGHT + 14}">{escape(name)}</text>'
        x += 34 + LETTER * len(name)


def _x(across: Axis, value: float) -> float:
    return FRAME.left + (FRAME.right - FRAME.left) * across.place(value)


def _y(up: Axis, value: float, less_is_up: bool) -> float:
    height = up.place(value)
    return FRAME.bottom - (FRAME.bottom - FRAME.top) * (1 - height if less_is_up else height)
