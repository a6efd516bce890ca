"""Draw the pictures of the documentation from the bundled corpus: ``make pictures`` (needs Chromium)."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ramify.cli.main import run

IMAGES = Path(__file__).parent / "images"
QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    """Train the demo, and photograph its report page."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Chromium is not installed; on Debian: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        run(["demo", "--model", f"{folder}/model", "--report", str(page)])
        options = [*QUIET, f"--user-data-dir={folder}/profile", "--hide-scrollbars", "--window-size=1100,1340"]
        subprocess.run([browser, *options, f"--screenshot={IMAGES / 'report.png'}", page.as_uri()], check=True)


if __name__ == "__main__":
    main()
