import io
import json
import re

import numpy as np
import pytest
from rich.console import Console

from ramify import Taxonomy
from ramify.metrics import make_report
from ramify.reports.pages import report_page
from ramify.reports.terminal import render_report


@pytest.fixture(scope="module")
def report(classifier, shop):
    Y, P = classifier.decide_with_probabilities(shop.test.documents)
    return make_report(shop.taxonomy.encode(shop.test.labels), Y, shop.taxonomy, P)


def test_a_report_is_plain_json(report):
    again = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert again["documents"] == report.documents
    assert {row["key"] for row in again["levels"]} == {0, 1, 2}


def test_the_figures_agree_with_each_other(report):
    assert sum(row["h_loss"] for row in report.levels) == pytest.approx(report.figures["h_loss"])
    assert sum(report.distances.values()) == report.documents
    assert report.distances[0] / report.documents == pytest.approx(report.figures["accuracy"])
    assert sum(row["support"] for row in report.branches) == sum(row["support"] for row in report.levels)


def test_the_terminal_shows_levels_and_confusions(report):
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(render_report(report))
    shown = console.export_text()
    assert "By level" in shown
    assert "Most confused siblings" in shown
    assert f"{report.figures['hierarchical_f1']:.3f}" in shown


def test_the_page_stands_alone(report):
    page = report_page(report, "Title", "lead")
    assert page.count("<svg") == 4
    assert "<script" not in page
    assert not re.search(r"(src|href)\s*=|url\(|@import", page)
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_labels_from_the_data_are_escaped():
    evil = "<script>alert(1)</script>"
    taxonomy = Taxonomy.from_paths([f"{evil}|x", f"{evil}|[red]y"], separator="|")
    Y = taxonomy.encode([f"{evil}|x"]), taxonomy.encode([f"{evil}|[red]y"])
    report = make_report(*Y, taxonomy, np.full((1, 3), 0.5))
    page = report_page(report, evil, evil)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(render_report(report))
    assert "[red]y" in console.export_text()


def test_without_probabilities_the_report_says_so(food):
    Y = food.encode(["apple"])
    report = make_report(Y, Y, food)
    assert report.reliability == []
    assert "no probabilities" in report.notes[0]
    assert report_page(report, "t").count("<svg") == 2
