"""Standard streams that are closed, full or read by nobody, and a working or temporary directory that cannot be used."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile

import pytest

from ramify.cli.main import main

RAMIFY = f"{shlex.quote(sys.executable)} -m ramify.cli.main"
needs_full_device = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, a model of it, a taxonomy, and texts to classify."""
    folder = tmp_path_factory.mktemp("streams")
    lines = ["text,label"]
    for i in range(8):
        lines += [f"parcel late courier {i},Orders > Late", f"screen dark no picture {i},TV > Picture"]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    (folder / "texts.csv").write_text("text\n" + "parcel late and courier late\n" * 100)
    (folder / "taxonomy.txt").write_text("Orders > Late\nTV > Picture\n")
    (folder / "newer.txt").write_text("Orders > Late\nTV > Sound\n")
    assert main(["train", str(folder / "table.csv"), "--model", str(folder / "model"), "--system", "nb"]) == 0
    return folder


def bash(folder, script):
    """Run a script in which `ramify` is the command line."""
    script = f'ramify() {{ {RAMIFY} "$@"; }}\ncd {shlex.quote(str(folder))}\n{script}'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("predict model texts.csv >&-", 0),
        ("--help >&-", 0),
        ("inspect model --json >&-", 0),
        ("inspect model <&- >&- 2>&-", 0),
        ("predict model texts.csv --out /dev/null 2>&-", 0),
        ("keys list none.json 2>&-", 2),
        ("nonsense 2>&-", 2),
    ],
)
def test_a_closed_stream_is_as_one_that_nobody_reads(folder, command, code):
    done = bash(folder, f"ramify {command}")
    assert done.returncode == code
    assert "Traceback" not in done.stderr


def test_closed_standard_input_is_named_for_what_it_is(folder):
    done = bash(folder, "ramify predict model - <&-")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ramify: standard input cannot be read: it is closed; give a file.\n"


def test_no_file_takes_the_number_of_a_closed_stream(folder, tmp_path):
    script = "import os, sys; from ramify.cli import main; main.open_missing_streams()\n"
    script += "print('lost'); print('lost', file=sys.stderr)\n"
    script += "file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY); os.write(file, b'%d' % file)"
    done = bash(folder, f"{shlex.quote(sys.executable)} -c {shlex.quote(script)} {tmp_path / 'number'} <&- >&- 2>&-")
    assert done.returncode == 0
    assert int((tmp_path / "number").read_text()) > 2


COMMANDS = (
    "inspect model", "systems", "evaluate model table.csv", "taxonomy diff taxonomy.txt newer.txt", "explain model 'parcel late'",
    "predict model texts.csv", "predict model --try 'parcel late'", "--help", "train --help", "systems --json",
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_stops_early_is_no_error(folder, command):
    read, write = os.pipe()
    os.close(read)
    arguments = [sys.executable, "-m", "ramify.cli.main", *shlex.split(command)]
    done = subprocess.run(arguments, stdout=write, stderr=subprocess.PIPE, cwd=folder, text=True, check=False)
    os.close(write)
    assert done.returncode == 0
    assert not [line for line in done.stderr.splitlines() if not line.startswith("table.csv: 16 documents")]


@needs_full_device
@pytest.mark.parametrize("command", ["nonsense", "inspect none", "train --nonsense"])
def test_the_exit_code_tells_of_an_error_that_cannot_be_printed(folder, command):
    assert bash(folder, f"ramify {command} 2>/dev/full").returncode == 2


@needs_full_device
def test_work_goes_on_if_messages_cannot_be_printed(folder):
    assert bash(folder, "ramify train table.csv --model unheard --system nb 2>/dev/full >/dev/null").returncode == 0
    assert (folder / "unheard" / "manifest.json").is_file()


@needs_full_device
@pytest.mark.parametrize("command", ["--help", "systems", "--version", "inspect model --json"])
def test_output_that_finds_no_room_is_an_error(folder, command):
    done = bash(folder, f"ramify {command} >/dev/full")
    assert done.returncode == 2
    assert done.stderr == "ramify: cannot read or write standard output: No space left on device.\n"


@pytest.mark.parametrize("command", ["train {0}/table.csv --model m --system nb", "keys add keys.json ann"])
def test_a_working_directory_that_was_removed_is_named_as_such(folder, command):
    done = bash(folder, f"mkdir gone; cd gone; rmdir ../gone; ramify {command.format(folder)}")
    assert done.returncode == 2
    assert done.stderr == "ramify: the directory in which you are has been removed; change to another one.\n"


def test_a_temporary_directory_without_room_is_named_as_such(folder):
    done = bash(folder, "ulimit -f 1; ramify predict model - < texts.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ramify: cannot copy standard input to ")
    assert done.stderr.endswith(": File too large; set TMPDIR to a directory on a disk with more room.\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [["predict", "model", "-"], ["evaluate", "model", "table.csv"]])
def test_a_temporary_directory_that_cannot_be_made_is_named_as_such(folder, command, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "none"))
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith("ramify: no temporary directory can be made: No such file or directory; set TMPDIR to ")
    assert error.count("\n") == 1


ENDLESS = {
    "inspect": ["inspect", "/dev/zero"],
    "stdin": ["predict", "model", "-"],
    "keys": ["keys", "list", "/dev/zero"],
    "taxonomy": ["taxonomy", "diff", "taxonomy.txt", "/dev/zero"],
    "issues": ["reviews", "add", "reviews.db", "/dev/zero", "--model", "m"],
    "stop words": ["train", "table.csv", "--model", "new", "--stop-words", "/dev/zero"],
}


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no device without an end")
@pytest.mark.parametrize("name", ENDLESS)
def test_a_device_without_an_end_is_refused(folder, name, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("ramify.taxonomy.files.MAX_BYTES", 1 << 20)
    monkeypatch.setattr("ramify.workflows.option_values.MAX_BYTES", 1 << 20)
    with open("/dev/zero") as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        assert main(ENDLESS[name]) == 2
    error = capsys.readouterr().err
    assert error.startswith("ramify: ")
    assert error.count("\n") == 1


def test_an_empty_device_is_an_empty_file(folder, capsys, monkeypatch):
    with open(os.devnull) as empty:
        monkeypatch.setattr(sys, "stdin", empty)
        assert main(["predict", str(folder / "model"), "-"]) == 2
    assert "is empty" in capsys.readouterr().err
