"""The web page in a real browser, against a real server: files, reviews and evaluations."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from uuid import uuid4

import pytest
from page_steps import HOSTILE, PARCEL, classify, expect, start_batch

from ramify.data import load_electronics

pytestmark = pytest.mark.slow


def test_a_file_is_classified_filtered_sorted_and_saved(logged, table, tmp_path):
    page = logged("batch")
    start_batch(page, table)
    expect(page.locator("#batch-status")).to_contain_text("Done: 402 rows")
    expect(page.locator("#page-status")).to_contain_text("of 402 rows")
    expect(page.locator("#branches li").first).to_be_visible()
    page.check("#filter-problems")
    expect(page.locator("#batch-rows tbody tr")).to_have_count(1)
    page.uncheck("#filter-problems")
    branch = page.locator("#branches li button").first
    size = page.locator("#branches li").first.locator(".number").inner_text()
    branch.click()
    expect(page.locator("#page-status")).to_contain_text("found among 402 rows")
    found = re.search(r"of (\d+) found", page.locator("#page-status").inner_text())
    assert found is not None
    assert int(size) <= int(found[1]) < 402  # rows with several labels count for each
    page.fill("#filter-label", "")
    page.fill("#filter-text", "hyperlink")
    expect(page.locator("#batch-rows tbody tr")).to_have_count(1)
    with page.expect_download() as started:
        page.click("#download-shown")
    started.value.save_as(tmp_path / "found.csv")
    with open(tmp_path / "found.csv", newline="", encoding="utf-8-sig") as file:
        (row,) = csv.DictReader(file)
    assert row["text"] == "'=HYPERLINK(1) where is my parcel"
    assert 0 < float(row["probability"]) <= 1
    page.fill("#filter-text", "")
    page.select_option("#sort", "sure")
    numbers = [int(re.sub(r"\D", "", text)) for text in page.locator("#batch-rows .number").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True)


def test_a_branch_shows_its_rows_however_labels_are_written(logged, table):
    page = logged("batch")
    rows = [
        {
            "line": 2,
            "row": {"text": "nurse"},
            "labels": [{"label": "2221", "path": ["Professionals", "Nurses"], "probability": 0.9}],
        },
        {
            "line": 3,
            "row": {"text": "driver"},
            "labels": [{"label": "8331", "path": ["Operators", "Drivers"], "probability": 0.8}],
        },
    ]
    body = "".join(f"{json.dumps(row)}\n" for row in rows)
    page.route("**/v1/batch*", lambda route: route.fulfill(body=body, content_type="application/x-ndjson"))
    start_batch(page, table)
    page.get_by_role("button", name="Professionals").click()
    expect(page.locator("#page-status")).to_contain_text("of 1 found among 2 rows")
    expect(page.locator("#batch-rows tbody")).to_contain_text("2221")


def test_a_batch_can_be_stopped_and_keeps_what_has_come(logged, tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text("".join(f"{json.dumps(f'request {i}: {PARCEL}')}\n" for i in range(60_000)))
    page = logged("batch")
    start_batch(page, path)
    expect(page.locator("#batch-status")).to_contain_text("of about 60,000 rows")
    page.click("#batch-cancel")
    expect(page.locator("#batch-status")).to_contain_text("Stopped")
    expect(page.locator("#batch-rows tbody tr")).to_have_count(25)


def test_a_file_that_is_no_table_is_refused_in_words(logged, tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    page = logged("batch")
    page.set_input_files("#batch-file", tmp_path / "picture.png")
    expect(page.locator("#batch-problem")).to_contain_text("picture.png is not a table")
    expect(page.locator("#batch-go")).to_be_disabled()


# ---- review -----------------------------------------------------------------------------------------------------------


def queue_text(page, text):
    classify(page, text)
    page.click("#ask-colleague")
    expect(page.locator("#feedback-note")).to_contain_text("Queued")


def decide_by_key(page, key, word):
    page.locator("#review-title").click()
    page.keyboard.press(key)
    expect(page.locator("#review-note")).to_contain_text(word)


def test_documents_are_accepted_corrected_and_rejected_by_key(logged):
    page = logged()
    for text in ("Which washing machine is quiet?", "the remote of my tv is lost", "send my invoice again please"):
        queue_text(page, f"{text} Number {uuid4().hex}")
    page.click("[data-view=review]")
    page.fill("#review-name", "Ada")
    expect(page.locator("[data-review]")).to_be_visible()
    decide_by_key(page, "a", "Accepted")
    decide_by_key(page, "r", "Rejected")
    page.locator("#review-title").click()
    page.keyboard.press("c")
    expect(page.locator("#review-label")).to_be_focused()
    page.keyboard.type("invoice copy")
    expect(page.locator("[role=option]:visible").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#review-correct")).to_be_enabled()
    page.keyboard.press("Enter")  # the label is chosen; once more sends it
    expect(page.locator("#review-note")).to_contain_text("Corrected")
    page.select_option("#review-status", "done")
    expect(page.locator(".decisions")).to_contain_text("Ada")
    expect(page.locator("#agreement")).to_contain_text("reviewed")
    with page.expect_download() as started:
        page.click("#review-export-csv")
    assert Path(started.value.path()).read_text(encoding="utf-8").startswith("text,")


def test_a_wrong_answer_is_put_right_on_the_spot(logged):
    page = logged()
    classify(page, "Can I get a refund for the broken speaker?")
    page.click("#say-wrong")
    expect(page.locator("#wrong-send")).to_be_disabled()
    page.fill("#wrong-label", "warranty claim")
    page.locator("#wrong-dialog [role=option]").first.click()
    page.fill("#wrong-comment", HOSTILE)
    page.click("#wrong-send")
    expect(page.locator("#feedback-note")).to_contain_text("with the right label")
    page.click("#say-right")
    expect(page.locator("#feedback-note")).to_contain_text("Noted as right")


# ---- evaluate ---------------------------------------------------------------------------------------------------------


def test_the_stored_report_and_that_of_a_file_are_shown(logged, tmp_path):
    page = logged("evaluate")
    expect(page.locator("#report-levels tbody tr")).to_have_count(3)
    expect(page.locator(".chart")).to_have_count(2)
    test = load_electronics().test
    with open(tmp_path / "labelled.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "labels"])
        writer.writerows((text, "|".join(labels)) for text, labels in zip(test.documents[:200], test.labels[:200], strict=True))
    page.set_input_files("#evaluate-file", tmp_path / "labelled.csv")
    page.click("#evaluate-go")
    expect(page.locator("#evaluate-status")).to_contain_text("labelled.csv: 200 documents")
    expect(page.locator(".error").first).to_contain_text("from the true label")
    expect(page.locator(".error .badge").first).to_have_text("differs here")
