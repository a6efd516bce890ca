"""Servers for tests: one in this process, and one as people start it."""

from __future__ import annotations

import csv
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ramify.classifier import TextClassifier
from ramify.data import load_electronics
from ramify.workflows import train_classifier

SYSTEMS = {"support": "svm", "support-nb": "nb"}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two models of the bundled corpus, with their reports."""
    shop, folder = load_electronics(), tmp_path_factory.mktemp("models")
    for name, system in SYSTEMS.items():
        train_classifier(TextClassifier(system, shop.taxonomy), shop.train, shop.test).classifier.save(folder / name)
    return {name: folder / name for name in SYSTEMS}


@dataclass
class Live:
    """A server in a process of its own."""

    url: str
    process: subprocess.Popen[str]
    log: Path
    reviews: Path

    def kill(self) -> None:
        """End it at once, as a loss of power would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """End it as people do; gives its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


@contextmanager
def serving(folder: Path, *arguments: str, reviews: Path | None = None) -> Iterator[Live]:
    """A running `ramify serve`."""
    reviews, log = reviews or folder / "reviews.db", folder / "server.log"
    command = [sys.executable, "-m", "ramify.cli.main", "serve", *arguments, "--port", "0", "--reviews", str(reviews)]
    with open(log, "w") as written:
        process = subprocess.Popen([*command, "--log-format", "json"], stderr=written, text=True, cwd=folder)
    try:
        yield Live(_address(process, log), process, log, reviews)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=45)  # longer than a server waits for what is under way
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


def _address(process: subprocess.Popen[str], log: Path) -> str:
    for _ in range(600):
        found = re.search(r"at (http://\S+)", log.read_text())
        if found:
            return found[1]
        if process.poll() is not None:
            break
        try:
            process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"the server did not start: {log.read_text()}")


@pytest.fixture(scope="session")
def live(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A server as people start it, with both models and reviews."""
    with serving(tmp_path_factory.mktemp("live"), *(f"{name}={path}" for name, path in models.items())) as running:
        yield running


@pytest.fixture(scope="module")  # while it lives, its event loop runs in this thread, and other tests cannot run theirs
def browser() -> Iterator[Any]:
    """Headless Chromium; where there is none, tests are skipped, but never where everything must be checked."""
    playwright = pytest.importorskip("playwright.sync_api")
    import shutil

    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        assert not os.environ.get("CI"), "there is no browser, and this is where everything is checked"
        pytest.skip("there is no Chromium on this machine")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=[*quiet, "--no-first-run"])
        yield browser
        browser.close()


@pytest.fixture
def logged(browser: Any, live: Live) -> Iterator[Any]:
    """Opens the page; afterwards nothing may have been said on the console, and nothing asked of another place."""
    contexts: list[Any] = []
    said: list[str] = []
    asked: list[str] = []
    own: set[str] = set()

    def open_page(
        view: str = "classify", expected: str | None = None, before: Any = None, server: Live = live, **options: Any
    ) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda m: None if expected and re.search(expected, m.text) else said.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        if before:
            before(page)
        own.add(urlsplit(server.url).netloc)
        page.goto(f"{server.url.rstrip('/')}/#{view}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    foreign = [url for url in asked if urlsplit(url).scheme not in ("data", "blob") and urlsplit(url).netloc not in own]
    assert foreign == []


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Requests to classify: one like a formula, an empty one, and 400 of the bundled corpus."""
    path = tmp_path / "requests.csv"
    texts = [str(text) for text in load_electronics().test.documents[:400]]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows(enumerate(["=HYPERLINK(1) where is my parcel", "", *texts]))
    return path
