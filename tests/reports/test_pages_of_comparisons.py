"""A comparison as a page."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from comparisons import alike, comparison, pair, system

from ramify.reports.pages import comparison_page
from ramify.workflows.comparison import LABELS, TESTS, Skipped, recommend

SVG = "{http://www.w3.org/2000/svg}"


def page(found, by="micro_f1"):
    return comparison_page(found, recommend(found, by), "Systems on x.csv")


def tree(found, by="micro_f1"):
    return ET.fromstring(page(found, by).removeprefix("<!DOCTYPE html>"))


def heads(root):
    return [head.text for head in root.iter("h2")]


def test_everything_is_on_it():
    found = comparison([system("one", 0.8), system("two", 0.6)], [pair("two", "one")], skipped=[Skipped("ot", "no tree")])
    root, text = tree(found), page(found)
    assert heads(root) == [
        "Recommendation", "Quality against time", "Measures", "Time and memory", "Significant differences", "Skipped",
        "Every pair",
    ]  # fmt: skip
    assert all(sentence in text for sentence in recommend(found).sentences)
    assert all(label in text for label in LABELS.values())
    assert "0.800* [0.700, 0.900]" in text
    assert "1.50 s" in text
    assert "20 MB" in text
    assert "no tree" in text


@pytest.mark.parametrize("by", list(LABELS))
def test_it_is_well_formed_and_whole_by_every_measure(by):
    root = tree(alike([f"system{k}" for k in range(17)]), by)
    (matrix,) = (table for table in root.iter("table") if table.get("class") == "matrix")
    assert len(list(matrix.iter("td"))) == 17 * 17
    (every,) = root.iter("details")
    assert len(list(every.iter("tr"))) == 1 + 17 * 16 // 2
    assert len(list(list(every.iter("tr"))[1])) == 1 + len(TESTS)


def test_words_of_users_are_escaped():
    mean = "<script>alert('x')</script> & \"co\""
    found = comparison(
        [system(mean, 0.8), system("two", 0.6)], [pair("two", mean)], skipped=[Skipped(mean, mean)], notes=[mean]
    )
    assert "<script>" not in page(found)
    ET.fromstring(page(found).removeprefix("<!DOCTYPE html>"))
    assert mean in "".join(tree(found).itertext())


def test_it_asks_nobody_for_anything():
    text = page(alike(["x", "y"])).replace("http://www.w3.org/2000/svg", "")
    assert not any(word in text for word in ("http", "<script", "<link", "<img", "@import", "url("))


def test_the_matrix_tells_who_is_ahead_of_whom_and_where_nobody_is():
    systems = [system("one", 0.8), system("two", 0.7), system("three", 0.6)]
    found = comparison(systems, [pair("two", "one"), pair("three", "one", bootstrap_micro_f1=0.2)])
    (matrix,) = (table for table in tree(found).iter("table") if table.get("class") == "matrix")
    cells = [[cell.text or "" for cell in row.iter("td")] for row in matrix.iter("tr")][1:]
    assert cells == [["", "▲", "·"], ["▼", "", "·"], ["·", "·", ""]]
    tip = next(matrix.iter("td")).get("title") or list(matrix.iter("td"))[1].get("title")
    assert "s decisions that only one got right: 0.010 one" in tip


def test_time_of_training_is_drawn_where_there_was_any():
    trained, loaded = (comparison([system("one", 0.8, seconds), system("two", 0.6, seconds)]) for seconds in (1.0, None))
    assert len(list(tree(trained).iter(f"{SVG}svg"))) == 2
    assert len(list(tree(loaded).iter(f"{SVG}svg"))) == 1
    assert "–" in page(loaded)


def test_a_training_of_no_time_at_all_has_a_place():
    assert tree(comparison([system("one", 0.8, 0.0), system("two", 0.6, 1.0)]))


def test_tests_that_could_not_be_made_are_dashes():
    text = page(alike(["x", "y"], p_value=float("nan")))
    assert "nan" not in text
    assert "– where there are fewer than two classes" in text


def test_what_was_duplicates_is_said():
    assert "12 test documents have the same text as a training document" in page(replace(alike(["x", "y"]), duplicates=12))


def test_jinja_is_imported_only_when_a_page_is_rendered():
    code = "import sys, ramify.reports.pages; assert 'jinja2' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
