"""Examples of pages that read the tables of the tutorial run in a folder with a copy of them."""

import shutil
from pathlib import Path

import pytest

PAGES = ("tutorial.md", "recipes.md")


@pytest.fixture(autouse=True)
def _tables(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.name in PAGES:
        shutil.copytree(Path(__file__).parent / "tables", tmp_path, dirs_exist_ok=True)
        monkeypatch.chdir(tmp_path)
