"""Pages and charts: well-formed, escaped, and with all numbers in their places."""

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.page import Beside, Chart, Line, Row, Section, Table, Text, render_page
from ramify.reports.charts import MEDIUM, axis, line_chart

SVG = "{http://www.w3.org/2000/svg}"
numbers = st.floats(min_value=-1e6, max_value=1e6) | st.integers(-1000, 1000)
words = st.text(st.characters(min_codepoint=32, exclude_categories=("Cs", "Cn", "Cc")), max_size=20)


def page_of(*blocks):
    return render_page("title", "lead", [Section("section", "", list(blocks))])


def cells(page):
    return [cell.text for cell in ElementTree.fromstring(page).iter("td")]


# ---- pages --------------------------------------------------------------------------------------------------------------


@given(words)
def test_every_word_is_escaped(word):
    table = Table(word, (word, "n"), [(word, 1)], word)
    chart = Chart(word, [Line(word, [(0, 1), (1, 2)])], word, word, note=word)
    page = render_page(word, word, [Section(word, word, [Text(word), table, Beside(word, [Row(word, 1.0, 2.0, word)]), chart])])
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    root = ElementTree.fromstring(body)
    assert not list(root.iter("script"))
    assert word.strip() in "".join(root.find("body").itertext())


def test_a_page_asks_for_nothing_from_elsewhere():
    page = page_of(Text("x"), Chart("c", [Line("l", [(0, 1)])], "x", "y"))
    assert not re.search(r"<(script|link|img|iframe)|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)


def test_the_difference_is_ours_less_the_papers():
    rows = [
        Row("a", 0.5, 0.25, "why"),
        Row("b", None, 0.5),
        Row("c", 0.5, None),
        Row("d", 0.5, 0.5000001),
        Row("e", 3299, 3019),
    ]
    assert cells(page_of(Beside("t", rows))) == [
        *("a", "0.50", "0.25", "−0.25", "why"),
        *("b", "–", "0.50", "–", None),
        *("c", "0.50", "–", "–", None),
        *("d", "0.50", "0.50", "+0.00", None),
        *("e", "3,299", "3,019", "−280", None),
    ]


def test_reasons_have_no_column_where_there_are_none():
    assert '<th class="text">why</th>' not in page_of(Beside("t", [Row("a", 1.0, 2.0)]))


def test_tables_show_digits_thousands_and_dashes():
    table = Table("t", ("", "a", "b"), [("x", 1234, 0.12345), ("y", None, "± 3")], digits=3)
    assert cells(page_of(table)) == ["x", "1,234", "0.123", "y", "–", "± 3"]


def test_words_in_backticks_are_code():
    assert "<code>ramify &lt;x&gt;</code>" in page_of(Text("run `ramify <x>` now"))


def test_charts_that_follow_each_other_stand_side_by_side():
    chart = Chart("c", [Line("l", [(0, 1)])], "x", "y")
    root = ElementTree.fromstring(page_of(chart, chart, Text("between"), chart))
    assert [len(list(plots)) for plots in root.iter("div") if plots.get("class") == "plots"] == [2, 1]


# ---- axes ---------------------------------------------------------------------------------------------------------------


@given(st.lists(numbers, min_size=1, max_size=6))
def test_an_even_axis_holds_all_values_between_rising_ticks(values):
    ticks = axis(values).ticks
    assert 3 <= len(ticks) <= 12
    assert all(a < b for a, b in pairwise(ticks))
    slack = 1e-6 * (1 + max(map(abs, values)))
    assert ticks[0] - slack <= min(values)
    assert max(values) <= ticks[-1] + slack


@given(st.lists(st.floats(min_value=1e-9, max_value=1e9), min_size=1, max_size=6))
def test_a_logarithmic_axis_holds_all_values_between_rising_ticks(values):
    ticks = axis(values, log=True).ticks
    assert len(ticks) >= 2
    assert all(a < b for a, b in pairwise(ticks))
    assert ticks[0] <= min(values) * (1 + 1e-6)
    assert max(values) <= ticks[-1] * (1 + 1e-6)


def test_places_are_linear_or_logarithmic():
    assert axis([0, 10]).place(2.5) == pytest.approx(0.25)
    assert axis([1, 10000], log=True).place(10) == pytest.approx(0.25)
    assert axis([0, 10]).place(-5) == 0


# ---- charts -------------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.tuples(numbers | st.none(), numbers | st.none() | st.just(math.nan)), max_size=5), max_size=8),
    st.booleans(),
    st.booleans(),
)
def test_charts_are_well_formed_and_stay_inside_their_frame(lines, log_x, log_y):
    drawn = [Line(f"line <{k}> & more", points, [0.5] * len(points), dashed=k % 2 == 1) for k, points in enumerate(lines)]
    root = ElementTree.fromstring(line_chart(Chart("t", drawn, "x", "y", log_x, log_y)))
    for circle in root.iter(f"{SVG}circle"):
        assert MEDIUM.frame.left - 0.1 <= float(circle.get("cx")) <= MEDIUM.width
        assert 0 <= float(circle.get("cy")) <= MEDIUM.height


def test_every_point_with_numbers_is_drawn_and_no_other():
    line = Line("l", [(1, 0.5), (2, None), (None, 1), (3, math.inf), (0, 1), (4, 0.25)])
    assert line_chart(Chart("t", [line], "x", "y")).count("<circle") == 3
    assert line_chart(Chart("t", [line], "x", "y", log_x=True)).count("<circle") == 2  # 0 has no place


def test_error_bars_reach_as_far_as_the_error():
    root = ElementTree.fromstring(line_chart(Chart("t", [Line("l", [(0, 1.0), (1, 3.0)], [0.5, None])], "x", "y")))
    bars = [line for line in root.iter(f"{SVG}line") if line.get("class") == "l0" and line.get("x1") == line.get("x2")]
    dots = [float(dot.get("cy")) for dot in root.iter(f"{SVG}circle")]
    unit = (dots[0] - dots[1]) / 2
    assert len(bars) == 1
    assert float(bars[0].get("y1")) - float(bars[0].get("y2")) == pytest.approx(unit, abs=0.2)


def test_dashed_lines_are_dashed_in_the_chart_and_in_the_legend():
    lines = [Line("ours", [(0, 1), (1, 2)]), Line("paper", [(0, 2), (1, 3)], dashed=True)]
    assert line_chart(Chart("t", lines, "x", "y")).count("stroke-dasharray") == 2


def test_all_lines_stand_in_the_legend_which_grows_with_them():
    few, many = (
        ElementTree.fromstring(line_chart(Chart("t", [Line(f"quite a long name {k}", [(0, k)]) for k in range(n)], "x", "y")))
        for n in (2, 9)
    )
    assert [t.text for t in many.iter(f"{SVG}text") if "start" in t.get("class")] == [
        f"quite a long name {k}" for k in range(9)
    ]
    assert float(many.get("viewBox").split()[3]) > float(few.get("viewBox").split()[3])
