"""What a person does on the web page, for tests in a browser."""

from __future__ import annotations

import os

import pytest

if "CI" in os.environ:  # where everything must be checked, a missing browser is a failure
    from playwright.sync_api import expect
else:
    expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

PARCEL = "My parcel was due on Monday and the tracking has not moved since."
HOSTILE = "<img src=x onerror=\"document.title='taken over'\"><script>document.title='taken over'</script>"


def classify(page, text=PARCEL):
    page.fill("#text", text)
    page.press("#text", "Control+Enter")
    expect(page.locator("#answer .taken").first).to_be_visible()
    expect(page.locator("#marked")).to_contain_text(text[:30])


def item(page, name, tree="#answer"):
    return page.locator(f'{tree} [role=treeitem][data-node="{name}"]')


def start_batch(page, path):
    page.set_input_files("#batch-file", path)
    page.click("#batch-go")
