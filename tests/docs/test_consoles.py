"""The commands of the quickstart and the tutorial run in order, and print what the pages show."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
NEW = "$ cat new.csv\n"
LABELS = ["Returns & warranty > Refunds > Refund not received"]


def consoles(page):
    """The commands of a page, each with what it shows."""
    for block in re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, shown = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()
            yield command.strip(), shown


def plain(text):
    return " ".join(text.split())


def check_shown(command, shown, printed):
    """Every part of what is shown is printed, in order; … stands for anything."""
    rest = plain(printed)
    for piece in filter(None, map(plain, shown.split("…"))):
        assert piece in rest, f"$ {command}\n{piece!r} is not in\n{rest}"
        rest = rest.split(piece, 1)[1]


def review(address):
    """Accept two labels of the queue and correct one."""
    with urllib.request.urlopen(f"{address}/v1/reviews") as response:
        queued = json.load(response)["documents"]
    for document, decision in zip(queued, [{"action": "accept"}] * 2 + [{"action": "correct", "labels": LABELS}], strict=False):
        body = json.dumps(decision).encode()
        place = f"{address}/v1/reviews/{document['id']}/decisions"
        urllib.request.urlopen(urllib.request.Request(place, body, {"content-type": "application/json"})).close()


def serve_and_review(command, shown):
    server = subprocess.Popen([*command.split(), "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        first = server.stderr.readline()
        address = re.search(r"http://\S+", first)[0]
        assert plain(first.replace(address, "")) == plain(re.sub(r"http://\S+", "", shown))
        if "--reviews" in command:
            review(address)
    finally:
        server.terminate()
        server.wait()
        server.stderr.close()


@pytest.mark.parametrize("name", ["quickstart.md", "tutorial.md"])
def test_commands_print_what_the_page_shows(name, tmp_path, monkeypatch):
    shutil.copytree(DOCS / "tables", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    page = (DOCS / name).read_text(encoding="utf-8")
    Path("new.csv").write_text(page.partition(NEW)[2].partition("$ ")[0])
    ran = 0
    for command, shown in consoles(page):
        if command.startswith("pip "):
            continue
        if command.startswith("ramify serve"):
            serve_and_review(command, shown)
        else:
            done = subprocess.run(
                ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
            )
            check_shown(command, shown, done.stdout)
        ran += 1
    assert ran > 10


def test_tables_of_the_tutorial_are_small():
    assert all(file.stat().st_size < 20_000 for file in (DOCS / "tables").iterdir())
