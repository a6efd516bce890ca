"""The web page in a real browser, against a real server: files, reviews and evaluations."""

from __future__ import annotations

import csv
import json
import re
import urllib.request
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from page_steps import HOSTILE, PARCEL, classify, expect, start_batch
from server.conftest import serving
from sheets import write_xlsx

from ramify.cli.main import main as ramify
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


BOTH = "Orders & delivery > Delivery > Late or lost parcel|Account, shop & advice > Account > Loyalty points"


@pytest.fixture
def trained_on_body(tmp_path_factory):
    """A server with a model that was trained on the column "body"."""
    folder = tmp_path_factory.mktemp("body")
    shop = load_electronics()
    with open(folder / "train.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["body", "category"])
        writer.writerows((text, "|".join(labels)) for text, labels in zip(shop.train.documents, shop.train.labels, strict=True))
    train = ["train", str(folder / "train.csv"), "--system", "nb", "--model", str(folder / "m"), "--label-separator", "|"]
    assert ramify(train) == 0
    with serving(folder, f"m={folder / 'm'}") as running:
        yield running


def test_the_column_that_the_model_reads_is_shown_explained_and_queued(logged, trained_on_body, tmp_path):
    note = "a note of somebody " * 9  # longer than the text, and in a column with a usual name
    (tmp_path / "t.csv").write_text(f'text,category,body\n{note},"{BOTH}",the parcel is lost\n')
    page = logged("batch", server=trained_on_body)
    page.set_input_files("#batch-file", tmp_path / "t.csv")
    expect(page.locator("#batch-reads")).to_have_text("The model reads body. The first text: the parcel is lost")
    page.click("#batch-go")
    expect(page.locator("#rows-source")).to_contain_text("read from body, such as in line 2: the parcel is lost")
    expect(page.locator("#batch-rows tbody td").nth(1)).to_have_text("the parcel is lost")
    page.fill("#queue-below", "100")
    page.click("#queue-go")
    expect(page.locator("#queue-note")).to_contain_text("1 row queued")
    with urllib.request.urlopen(f"{trained_on_body.url}/v1/reviews") as answer:
        assert [each["text"] for each in json.load(answer)["documents"]] == ["the parcel is lost"]
    page.get_by_role("button", name="Why?").click()
    expect(page.locator("#text")).to_have_value("the parcel is lost")


def test_labels_that_are_longer_than_the_texts_are_neither_shown_nor_queued(logged, live, tmp_path):
    texts = [f"lost {uuid4().hex[:6]}" for _ in range(3)]
    (tmp_path / "t.csv").write_text("what,words\n" + "".join(f'"{BOTH}",{text}\n' for text in texts))
    page = logged("batch")
    start_batch(page, tmp_path / "t.csv")
    expect(page.locator("#batch-status")).to_contain_text("Done")
    assert page.locator("#batch-rows tbody td:nth-child(2)").all_inner_texts() == texts
    page.fill("#queue-below", "100")
    page.click("#queue-go")
    expect(page.locator("#queue-note")).to_contain_text("3 rows queued")
    with urllib.request.urlopen(f"{live.url}/v1/reviews?order=recent&limit=3") as answer:
        assert {each["text"] for each in json.load(answer)["documents"]} == set(texts)


def test_several_columns_can_be_chosen_and_are_joined(logged, tmp_path):
    (tmp_path / "t.csv").write_text("id,title,body\n1,late,my parcel is late again\n")
    page = logged("batch")
    page.set_input_files("#batch-file", tmp_path / "t.csv")
    expect(page.locator("#batch-columns input[value=body]")).to_be_checked()
    page.check("#batch-columns input[value=title]")
    expect(page.locator("#batch-reads")).to_contain_text("The model reads body and title, joined.")
    expect(page.locator("#batch-preview th .badge")).to_have_count(2)
    with page.expect_request("**/v1/batch*") as asked:
        page.click("#batch-go")
    assert parse_qs(urlsplit(asked.value.url).query)["text"] == ["body", "title"]
    expect(page.locator("#rows-source")).to_contain_text("read from body and title")
    expect(page.locator("#batch-rows tbody td").nth(1)).to_have_text("my parcel is late again late")
    for name in ("body", "title"):
        page.uncheck(f"#batch-columns input[value={name}]")
    expect(page.locator("#batch-reads")).to_have_text("Choose the column of the text.")
    expect(page.locator("#batch-go")).to_be_disabled()


@pytest.mark.parametrize(
    ("written", "name"),
    [("cp1252", "Windows-1252"), ("utf-16", "UTF-16"), ("utf-8-sig", "UTF-8"), ("utf-16-le", "UTF-16, little-endian")],
)
def test_the_encoding_is_detected_and_told(logged, tmp_path, written, name):
    (tmp_path / "t.csv").write_text("text\nmein Paket für 5 € ist verloren\n", encoding=written)
    page = logged("batch")
    page.set_input_files("#batch-file", tmp_path / "t.csv")
    expect(page.locator("#batch-encoding option:checked")).to_contain_text(f"({name})")
    page.click("#batch-go")
    expect(page.locator("#batch-rows tbody td").nth(1)).to_have_text("mein Paket für 5 € ist verloren")


def test_a_letter_far_down_tells_the_encoding(logged, tmp_path):
    (tmp_path / "t.csv").write_text("text\n" + "my parcel is lost\n" * 20_000 + "für 5 €\n", encoding="cp1252")
    page = logged("batch")
    page.set_input_files("#batch-file", tmp_path / "t.csv")
    expect(page.locator("#batch-encoding option:checked")).to_contain_text("Windows-1252")


def test_an_encoding_that_cannot_be_detected_can_be_chosen(logged, tmp_path):
    (tmp_path / "t.csv").write_text("текст\nпосылка не пришла\n", encoding="cp1251")
    page = logged("batch", expected="422")
    page.set_input_files("#batch-file", tmp_path / "t.csv")
    expect(page.locator("#batch-file-problem")).to_contain_text("give its encoding")
    expect(page.locator("#batch-preview table")).to_have_count(0)
    expect(page.locator("#batch-columns")).to_be_hidden()
    page.select_option("#batch-encoding", "cp1251")
    page.check("#batch-columns input")
    expect(page.locator("#batch-reads")).to_contain_text("посылка не пришла")
    page.click("#batch-go")
    expect(page.locator("#batch-rows tbody td").nth(1)).to_have_text("посылка не пришла")


def test_a_spreadsheet_is_read_and_its_sheet_can_be_named(logged, tmp_path):
    rows = [["text", "n"], ["my parcel is lost", "1"]]
    path = write_xlsx(tmp_path / "t.xlsx", {"first": rows, "second": [["text"], ["no picture"]]})
    page = logged("batch", expected="422")
    page.set_input_files("#batch-file", path)
    expect(page.locator("#batch-file-problem")).to_contain_text("'first', 'second'")
    expect(page.locator("#batch-encoding")).to_be_hidden()
    page.fill("#batch-sheet", "second")
    page.press("#batch-sheet", "Enter")
    expect(page.locator("#batch-reads")).to_contain_text("no picture")
    page.click("#batch-go")
    expect(page.locator("#batch-rows tbody td").nth(1)).to_have_text("no picture")


def test_a_table_that_fails_leaves_no_empty_panels_and_says_what_to_do(logged, tmp_path):
    (tmp_path / "t.csv").write_text('text\nparcel\n"an open quote\n')
    page = logged("batch", expected="422")
    page.set_input_files("#batch-file", tmp_path / "t.csv")
    expect(page.locator("#batch-file-problem")).to_contain_text("close it")
    expect(page.locator("#batch-go")).to_be_disabled()
    (tmp_path / "u.csv").write_text("text\nparcel\n")
    page.route(
        "**/v1/batch*", lambda route: route.fulfill(status=422, json={"error": {"code": "table", "message": "it fails."}})
    )
    start_batch(page, tmp_path / "u.csv")
    expect(page.locator("#batch-problem")).to_contain_text("It fails. Choose other columns or another encoding above")
    for panel in ("#branches", "#batch-rows", "#batch-status", "#rows-title"):
        expect(page.locator(panel)).to_be_hidden()
    expect(page.locator("#batch-go")).to_be_enabled()


def test_hostile_cells_and_names_of_columns_stay_text(logged, tmp_path):
    with open(tmp_path / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([[HOSTILE, f"{HOSTILE} 2"], [f"parcel {HOSTILE}", HOSTILE]])
    page = logged("batch")
    page.set_input_files("#batch-file", tmp_path / "t.csv")
    expect(page.locator("#batch-preview")).to_contain_text("<img src=x")
    expect(page.locator("#batch-columns")).to_contain_text("<script>")
    page.locator("#batch-columns input").first.check()
    page.click("#batch-go")
    expect(page.locator("#rows-source")).to_contain_text("<img src=x")
    assert page.locator("main img[src=x], main script").count() == 0
    assert "taken over" not in page.title()


def test_a_file_that_is_no_table_is_refused_in_words(logged, tmp_path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    page = logged("batch")
    page.set_input_files("#batch-file", tmp_path / "picture.png")
    expect(page.locator("#batch-file-problem")).to_contain_text("picture.png is not a table")
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


def test_the_second_enter_sends_the_right_label(logged):
    page = logged()
    classify(page, f"Can I get a refund for the speaker? Number {uuid4().hex}")
    page.click("#say-wrong")
    page.keyboard.type("warranty claim")
    expect(page.locator("#wrong-dialog [role=option]").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#wrong-dialog .chip")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("#feedback-note")).to_contain_text("with the right label")
    expect(page.locator("#wrong-dialog")).to_have_count(0)


def test_the_question_for_the_right_label_closes_with_its_view(logged):
    page = logged()
    classify(page)
    page.click("#say-wrong")
    expect(page.locator("#wrong-dialog")).to_be_visible()
    page.evaluate("() => { location.hash = 'browse'; }")
    expect(page.locator("#wrong-dialog")).to_have_count(0)
    expect(page.locator("#browse-title")).to_be_visible()


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


def test_columns_and_encoding_of_an_evaluation_can_be_chosen(logged, tmp_path):
    label = "Orders & delivery > Delivery > Late or lost parcel"
    table = f"id,title,body,was,right\n1,Paket,my parcel for 5 € is lost,Nowhere > No,{label}\n"
    (tmp_path / "t.csv").write_text(table, encoding="cp1252")
    page = logged("evaluate")
    page.set_input_files("#evaluate-file", tmp_path / "t.csv")
    expect(page.locator("#evaluate-encoding option:checked")).to_contain_text("Windows-1252")
    expect(page.locator("#evaluate-labels input[value=right]")).to_be_checked()
    page.check("#evaluate-columns input[value=title]")
    page.click("#evaluate-go")
    expect(page.locator("#evaluate-status")).to_contain_text(
        "The text was read from body and title, and the labels from right."
    )
    page.uncheck("#evaluate-labels input[value=right]")
    expect(page.locator("#evaluate-reads")).to_have_text("Choose the column of the true labels.")
    expect(page.locator("#evaluate-go")).to_be_disabled()


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
    expect(page.locator("#evaluate-reads")).to_contain_text("The model reads text, and the true labels are in labels.")
    page.click("#evaluate-go")
    expect(page.locator("#evaluate-status")).to_contain_text("labelled.csv: 200 documents")
    expect(page.locator(".error").first).to_contain_text("from the true label")
    expect(page.locator(".error .badge").first).to_have_text("differs here")
