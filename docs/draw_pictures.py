"""Draw the pictures of the documentation from the bundled corpus: ``make pictures`` (needs Chromium).

``python docs/draw_pictures.py tutorial`` draws those of the tutorial only.
"""

import contextlib
import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import openpyxl
from playwright.sync_api import Browser, Page, sync_playwright

from ramify.cli.main import main as ramify
from ramify.data import load_electronics

IMAGES, TABLES = Path(__file__).parent / "images", Path(__file__).parent / "tables"
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
TEXT = "My parcel was due on Monday, and the tracking has not moved since."
TICKET = "Where is it? I paid on Monday and the parcel was due on Thursday."
SHEET = """
body { margin: 0; background: #fff } table { border-collapse: collapse; font: 13px "Liberation Sans", Arial, sans-serif }
th { background: #eef1f3; color: #555; font-weight: normal; min-width: 28px } td, th { border: 1px solid #d5dadd; height: 26px }
td { padding: 0 6px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 236px }
td:nth-child(6) { max-width: 330px } tr:nth-child(2) td { font-weight: bold }
"""
SYSTEMS = {"support": "shrinkage-nb", "linear": "hr-svm"}


def main() -> None:
    """Train the demo, and photograph its report and the page of a server."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Chromium is not installed; on Debian: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder, chromium = Path(name), driver.chromium.launch(executable_path=browser, args=QUIET)
        draw_tutorial(chromium, folder / "tutorial")
        if "tutorial" in sys.argv[1:]:
            return
        ramify(["demo", "--model", str(folder / "model"), "--report", str(folder / "report.html")])
        report = chromium.new_page(viewport={"width": 1100, "height": 1340})
        report.goto((folder / "report.html").as_uri())
        report.screenshot(path=IMAGES / "report.png")
        write_table(folder / "tickets.csv")
        for model, system in SYSTEMS.items():
            ramify(["train", str(folder / "tickets.csv"), "--system", system, "--model", str(folder / model)])
        with serving([str(folder / model) for model in SYSTEMS], folder) as address:
            for look in ("light", "dark"):
                page = chromium.new_context(viewport={"width": 1200, "height": 860}, color_scheme=look).new_page()
                page.goto(address)
                others = (draw_browse, draw_batch, draw_compare, draw_review, draw_evaluate) if look == "light" else ()
                for draw in (draw_classify, *others):
                    draw(page, address, folder, "" if look == "light" else "-dark")
        chromium.close()


def write_table(path: Path) -> None:
    """The bundled corpus with one label per document, as a table."""
    shop = load_electronics()
    rows = [(text, labels[0]) for text, labels in zip(shop.train.documents, shop.train.labels, strict=True) if len(labels) == 1]
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *rows])


@contextmanager
def serving(models: list[str], folder: Path) -> Iterator[str]:
    """A server with models, and its address."""
    command = [sys.executable, "-m", "ramify.cli.main", "serve", *models, "--port", "0", "--log-level", "warning"]
    server = subprocess.Popen([*command, "--reviews", str(folder / "reviews.db")], stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        found = re.search(r"http://\S+", server.stderr.readline())
        assert found is not None, "the server did not start"
        yield found[0]
    finally:
        server.terminate()
        server.wait()


def keep(page: Page, name: str, **options: Any) -> None:
    """Photograph what the window shows."""
    page.wait_for_timeout(700)
    page.screenshot(path=IMAGES / f"{name}.png", **options)


def draw_tutorial(chromium: Browser, folder: Path) -> None:
    """The table, the report and the served model of the tutorial."""
    shutil.copytree(TABLES, folder)
    reading = ["tickets.xlsx", "--text", "Title,Body", "--merge-spellings"]
    page = chromium.new_page()
    page.set_content(render_sheet(folder / "tickets.xlsx", n_rows=9))
    photograph(page, "table", 262)
    with contextlib.chdir(folder):
        ramify(["train", *reading, "--model", "out", "--report", "report.html"])
        ramify(["audit", *reading, "--max-issues", "12", "--out", "issues.jsonl"])
        ramify(["reviews", "add", "reviews.db", "issues.jsonl", "--model", "out"])
    page.goto((folder / "report.html").as_uri())
    photograph(page, "report", 1010)
    with serving([str(folder / "out")], folder) as address:
        page.goto(f"{address}/#classify")
        page.fill("#text", TICKET)
        page.wait_for_selector("#answer [data-node]")
        photograph(page, "classify", 742)
        page.goto(f"{address}/#review")
        page.wait_for_selector("#review-accept")
        photograph(page, "review", 940)


def photograph(page: Page, name: str, height: int) -> None:
    """Keep a picture of the tutorial, with a window as high as what it has to show."""
    page.set_viewport_size({"width": 1000, "height": height})
    keep(page, f"tutorial-{name}")


def render_sheet(path: Path, n_rows: int) -> str:
    """The first rows of a spreadsheet as a page that looks like one."""
    rows = list(openpyxl.load_workbook(path).active.iter_rows(max_row=n_rows, values_only=True))
    heads = "".join(f"<th>{letter}" for letter in " ABCDE")
    lines = [f"<tr><th>{k}" + "".join(f"<td>{show_cell(cell)}" for cell in row) for k, row in enumerate(rows, start=1)]
    return f"<style>{SHEET}</style><table><tr>{heads}{''.join(lines)}</table>"


def show_cell(cell: Any) -> str:
    """A cell as a spreadsheet shows it."""
    return "" if cell is None else escape(f"{cell:%d/%m/%Y}" if isinstance(cell, datetime) else str(cell))


def draw_classify(page: Page, address: str, folder: Path, look: str) -> None:
    """An answer with its reasons."""
    page.goto(f"{address}/#classify")
    page.fill("#text", TEXT)
    page.wait_for_selector("#answer [data-node]")
    keep(page, f"page-classify{look}", full_page=True)


def draw_browse(page: Page, address: str, folder: Path, look: str) -> None:
    """A branch of the taxonomy."""
    page.goto(f"{address}/#browse")
    page.wait_for_selector("#taxonomy [data-node]")
    page.locator("#taxonomy [data-node]").first.click()
    page.keyboard.press("ArrowRight")
    keep(page, f"page-browse{look}")


def draw_batch(page: Page, address: str, folder: Path, look: str) -> None:
    """A table before and after it has been classified."""
    page.goto(f"{address}/#batch")
    page.set_input_files("#batch-file", folder / "tickets.csv")
    page.wait_for_selector("#batch-preview table")
    keep(page, f"page-table{look}")
    page.click("#batch-go")
    page.wait_for_timeout(4_000)
    page.evaluate("document.querySelector('#batch-status').scrollIntoView()")
    keep(page, f"page-batch{look}")


def draw_compare(page: Page, address: str, folder: Path, look: str) -> None:
    """Two models that do not agree."""
    page.goto(f"{address}/#compare")
    page.fill("#compare-text", "the voucher was not taken off the invoice")
    page.click("#compare-go")
    page.wait_for_function("document.querySelector('#parting').textContent.length > 0")
    keep(page, f"page-compare{look}", full_page=True)


def draw_review(page: Page, address: str, folder: Path, look: str) -> None:
    """A document that waits for somebody."""
    texts = ["they said monday, then friday, now nobody answers", "no sound since the update", "can I still change the address"]
    body = json.dumps({"documents": [{"text": text} for text in texts]}).encode()
    request = urllib.request.Request(f"{address}/v1/reviews", body, {"content-type": "application/json"})
    urllib.request.urlopen(request).read()
    page.goto(f"{address}/#review")
    page.wait_for_selector("#review-accept")
    keep(page, f"page-review{look}")


def draw_evaluate(page: Page, address: str, folder: Path, look: str) -> None:
    """The report of the training."""
    page.goto(f"{address}/#evaluate")
    page.wait_for_selector("#report-levels")
    keep(page, f"page-evaluate{look}")


if __name__ == "__main__":
    main()
