"""Draw the pictures of the documentation from the bundled corpus: ``make pictures`` (needs Chromium)."""

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
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from ramify.cli.main import main as ramify
from ramify.data import load_electronics

IMAGES = Path(__file__).parent / "images"
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
TEXT = "My parcel was due on Monday, and the tracking has not moved since."
SYSTEMS = {"support": "shrinkage-nb", "linear": "hr-svm"}


def main() -> None:
    """Train the demo, and photograph its report and the page of a server."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Chromium is not installed; on Debian: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder, chromium = Path(name), driver.chromium.launch(executable_path=browser, args=QUIET)
        ramify(["demo", "--model", str(folder / "model"), "--report", str(folder / "report.html")])
        report = chromium.new_page(viewport={"width": 1100, "height": 1340})
        report.goto((folder / "report.html").as_uri())
        report.screenshot(path=IMAGES / "report.png")
        write_table(folder / "tickets.csv")
        for model, system in SYSTEMS.items():
            ramify(["train", str(folder / "tickets.csv"), "--system", system, "--model", str(folder / model)])
        with serving(folder) as address:
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
def serving(folder: Path) -> Iterator[str]:
    """A server with the model, and its address."""
    models = [str(folder / name) for name in SYSTEMS]
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
