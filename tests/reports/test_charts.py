"""Charts: axes, lines, bars and named points; well-formed, escaped, and with everything in its place."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.reports.charts import GAP, LARGE, LETTER, LONGEST, RADIUS, SMALL, Box, NamedPoint, place_names, scatter, value_bars

SVG = "{http://www.w3.org/2000/svg}"
FRAME = LARGE.frame
KINDS = (("first", 4), ("second", 0))
positions = st.tuples(st.floats(FRAME.left, FRAME.right), st.floats(FRAME.top, FRAME.bottom))


def point(name, x=1.0, y=0.5, kind=0):
    return NamedPoint(name, x, y, y - 0.1, y + 0.1, kind, f"{name}: tip")


def texts(drawn, kind):
    return [text.text for text in ET.fromstring(drawn).iter(f"{SVG}text") if kind in text.get("class").split()]


@given(st.lists(positions, max_size=25), st.integers(1, 20))
def test_no_name_covers_another_nor_a_point_nor_leaves_the_picture(points, length):
    boxes = place_names(points, ["n" * length] * len(points), FRAME)
    placed = [box for box in boxes if box is not None]
    assert not any(a.overlaps(b) for i, a in enumerate(placed) for b in placed[:i])
    dots = [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in points]
    assert not any(box.overlaps(dot) for box in placed for dot in dots)
    assert all(box.lies_in(FRAME) for box in placed)


@pytest.mark.parametrize("spread", [0.0, 20.0, 200.0])
def test_twenty_systems_all_have_their_names(spread):
    rng = np.random.default_rng(0)
    points = [(300 + spread * rng.random(), 200 + spread * rng.random() / 2) for _ in range(20)]
    assert None not in place_names(points, ["shrinkage-nb"] * 20, FRAME)


def test_a_lonely_name_is_right_of_its_point_and_at_the_edge_left_of_it():
    middle, edge = place_names([(300, 200), (FRAME.right, 100)], ["middle", "edge"], FRAME)
    assert 300 < middle.left < 310
    assert FRAME.right - 10 < edge.right < FRAME.right


def test_a_name_left_of_its_point_ends_there_however_wide_its_letters_are():
    drawn = scatter(
        [NamedPoint(n, x, 1, 1, 1, 0, n) for n, x in (("quick", 1), ("slow", 1000))], "", "", "", KINDS, less_is_up=False
    )
    at = {text.text: float(text.get("x")) for text in ET.fromstring(drawn).iter(f"{SVG}text")}
    first, last, *_ = (float(circle.get("cx")) for circle in ET.fromstring(drawn).iter(f"{SVG}circle"))
    assert at["quick"] - first == pytest.approx(GAP)
    assert last - at["slow"] == pytest.approx(GAP)
    assert "slow" in texts(drawn, "end")


def test_what_is_drawn_is_well_formed_and_escaped():
    drawn = scatter([point("<a & b>"), point('"c"', 2.0, 0.7, 1)], "<t>", "<x>", "<y>", KINDS, less_is_up=False)
    assert texts(drawn, "name") == ["<a & b>", '"c"']
    assert {"<x>", "<y>"} <= set(texts(drawn, "tick"))
    circles = [circle.get("class") for circle in ET.fromstring(drawn).iter(f"{SVG}circle")]
    assert circles == ["s4", "s0", "s4", "s0"]  # two points, and two of the legend


def test_small_values_are_on_top_where_less_is_better():
    def heights(less_is_up):
        drawn = ET.fromstring(scatter([point("a", 1, 0.2), point("b", 2, 0.8)], "", "", "", KINDS, less_is_up=less_is_up))
        return [float(circle.get("cy")) for circle in drawn.iter(f"{SVG}circle")][:2]

    low, high = heights(less_is_up=False)
    assert low > high  # SVG counts from the top
    assert heights(less_is_up=True)[0] < heights(less_is_up=True)[1]


def test_time_is_drawn_in_equal_factors():
    drawn = ET.fromstring(scatter([point("a", 0.1), point("b", 1), point("c", 10)], "", "", "", KINDS, less_is_up=False))
    a, b, c = [float(circle.get("cx")) for circle in drawn.iter(f"{SVG}circle")][:3]
    assert b - a == pytest.approx(c - b, abs=0.2)


def test_long_names_are_cut_and_the_tip_has_them_whole():
    name = "n" * 60
    drawn = scatter([point(name)], "", "", "", KINDS, less_is_up=False)
    assert texts(drawn, "name") == [name[: LONGEST - 1] + "…"]
    assert f"{name}: tip" in drawn


def test_points_that_are_all_the_same_are_drawn():
    assert texts(scatter([NamedPoint(n, 1, 1, 1, 1, 0, n) for n in "ab"], "", "", "", KINDS, less_is_up=False), "name") == [
        "a",
        "b",
    ]


@given(st.lists(st.tuples(st.text("abc ", min_size=1, max_size=90), st.floats(-1e6, 1e6)), max_size=12))
def test_names_and_numbers_of_bars_stay_in_the_picture(items):
    for text in ET.fromstring(value_bars(items, "t")).iter(f"{SVG}text"):
        x, width = float(text.get("x")), LETTER * len(text.text)
        left = x - width if text.get("class") == "tick end" else x
        assert left >= -1e-6
        assert left + width <= SMALL.width + 1e-6 or len(text.text) > 60


def test_bars_have_their_numbers_and_those_that_are_no_numbers_are_nothing():
    drawn = value_bars([("late", 1.5), ("screen", -0.5), ("odd", float("nan")), ("<b>", float("inf"))], "t")
    assert texts(drawn, "tick") == ["late", "1.50", "screen", "−0.50", "odd", "0.00", "<b>", "0.00"]
    assert texts(value_bars([], "t"), "tick") == []
