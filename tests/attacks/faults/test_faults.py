"""A selection of faults; ``make faults`` tries all of them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attacks.faults import harness
from attacks.faults.scenarios import SCENARIOS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the library that is preloaded calls Linux"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="another library is preloaded"),
    pytest.mark.skipif(not any(map(shutil.which, harness.COMPILERS)), reason="there is no compiler"),
]
SELECTION = (
    "save",
    "save by moving aside",
    "update by documents",
    "checkpoints of shrinkage-nb, resumed",
    "predict many files",
    "write a private file",
    "requests of the first reviewers",
    "keys",
)


def run(*arguments: str) -> list[dict]:
    """The results of ``attacks.faults.run``."""
    with harness.new_root() as root:
        results = Path(root).resolve() / "results.json"
        done = harness.start(results.parent, "attacks.faults.run", [*arguments, "--json", str(results)])
        assert results.exists(), done.stderr
        return json.loads(results.read_text())


def scenarios(*names: str) -> list[str]:
    return [word for name in names for word in ("--scenario", name)]


def test_whatever_call_fails_what_was_acknowledged_is_there_and_files_are_old_or_new():
    results = run(*scenarios(*SELECTION), "--most", "14")
    assert [result["scenario"] for result in results] == [each.name for each in SCENARIOS if each.name in SELECTION]
    assert all(result["trials"] >= 10 for result in results)
    assert [finding for result in results for finding in result["findings"]] == []


def test_the_first_key_can_be_added_again_after_the_process_was_killed():
    results = run(*scenarios("the first key"), "--fault", "killed before", "--most", "14")
    assert [finding for result in results for finding in result["findings"]] == []


CARELESS = """
import os, sys
path = sys.argv[1] + "/file"
handle = os.open(path, os.O_WRONLY | os.O_CREAT)
os.write(handle, b"text")
os.fsync(handle)
os.rename(path, path + "2")
"""


def test_calls_below_the_folder_are_counted_and_the_chosen_one_fails(tmp_path):
    (tmp_path / "work").mkdir()
    library = harness.compile_library(tmp_path)
    armed = "import ctypes; ctypes.CDLL(None).faults_arm(ctypes.c_long({at}), {kind}, 28, ctypes.c_long(2), 0)\n"
    environment = os.environ | {"LD_PRELOAD": str(library), harness.FOLDER: str(tmp_path.resolve() / "work")}

    def trace(at: int, kind: int, folder: str = "work") -> tuple[int, list[list[str]]]:
        (tmp_path / folder).mkdir(exist_ok=True)
        script = armed.format(at=at, kind=kind) + CARELESS
        command = [sys.executable, "-S", "-c", script, str(tmp_path.resolve() / folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, [line.split("\t")[1:] for line in done.stderr.splitlines() if line[:1].isdigit()]

    names = [["create", "file"], ["write", "file"], ["fsync", "file"], ["rename", "file", "file2"]]
    assert trace(0, harness.COUNT) == (0, names)
    assert trace(0, harness.COUNT, "elsewhere") == (0, [])
    assert trace(3, harness.ONCE) == (1, [*names[:2], [*names[2], "fails"]])
    (tmp_path / "work" / "file").unlink()
    assert trace(2, harness.KILL_BEFORE) == (-9, [names[0], [*names[1], "fails"]])
    assert (tmp_path / "work" / "file").read_bytes() == b""
    assert trace(2, harness.KILL_AFTER)[0] == -9
    assert (tmp_path / "work" / "file").read_bytes() == b"text"
