"""What others wrote cannot steer the terminal, and is never read as markup; files and pipes get it as it is."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from ramify.cli import console
from ramify.cli.main import main

CODES = ("\x1b", "\r", "\x07", "\x9b", "\u202e", "\u2066")
RED, TURNED = "\x1b[31mred", "turned\u202e"
CELL = f"TV > [bold]{RED}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table whose labels, texts and columns hold escape codes and markup, and a model of it."""
    folder = tmp_path_factory.mktemp("codes")
    lines = ["text\x1b[2J,label\x9b,other"]
    lines += [f"parcel late courier\x1b]0;title\x07 {i},Orders > Late{TURNED},x" for i in range(8)]
    lines += [f"[red]wrong[/red] item in box :bug: {i},Orders > [/wrong],x" for i in range(8)]
    lines += [f"screen\x9b31m dark no picture {i},{CELL},x" for i in range(8)]
    lines += [f"sound crackles speaker {i},TV > Sound,x" for i in range(8)]
    table = folder / "ta[red]ble\x1b.csv"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["train", str(table), *COLUMNS, "--model", str(folder / "model\x1b"), "--system", "b-svm"]) == 0
    return folder


COLUMNS = ["--text", "text\x1b[2J", "--label", "label\x9b"]


def commands(folder):
    table, model = str(folder / "ta[red]ble\x1b.csv"), str(folder / "model\x1b")
    return {
        "train": ["train", table, *COLUMNS, "--model", f"{model}2", "--system", "nb"],
        "try": ["predict", model, "--try", "dark picture screen\x9b31m"],
        "explain": ["explain", model, "dark picture \x1b[5m screen", "--true", f"TV > [bold]{RED}"],
        "inspect model": ["inspect", model],
        "inspect data": ["inspect", table, *COLUMNS],
        "inspect node": ["inspect", model, "--node", f"TV > [bold]{RED}"],
        "evaluate": ["evaluate", model, table, *COLUMNS],
        "audit": ["audit", table, *COLUMNS, "--system", "nb", "--folds", "2", "--max-issues", "50"],
        "compare": [
            "compare",
            table,
            *COLUMNS,
            "--system",
            "nb",
            "--system",
            "nb:alpha=0.1",
            "--folds",
            "2",
            "--resamples",
            "20",
        ],
        "learn": ["taxonomy", "learn", table, *COLUMNS, "--flat", "--groups", "2", "--out", str(folder / "t\x1b.json")],
        "no such column": ["inspect", table, "--text", "te\x1bxt"],
        "no such label": ["explain", model, "x y", "--label", f"{RED}\r"],
        "no such file": ["inspect", f"{table}\r\x9b"],
        "no such command": ["tr\x1bain"],
        "no such option": ["train", table, "--\x1b[31m", "x"],
    }


@pytest.mark.parametrize("name", commands(Path()))
def test_no_command_prints_escape_codes(folder, name, capsys):
    code = main(commands(folder)[name])
    shown = capsys.readouterr()
    assert code == (2 if name.startswith("no such") else 0), shown.err
    for mark in CODES:
        assert mark not in shown.out
        assert mark not in shown.err
    assert "\\x" in shown.out + shown.err


def test_markup_and_words_between_colons_in_labels_are_printed_as_they_are(folder, capsys):
    assert main(["inspect", str(folder / "model\x1b")]) == 0
    shown = capsys.readouterr().out
    assert "[bold]\\x1b[31mred" in shown
    assert "[/wrong]" in shown
    console.say("[red]x[/red] :bug:")
    assert capsys.readouterr().err == "[red]x[/red] :bug:\n"


def test_taxonomies_are_compared_without_escape_codes(tmp_path, capsys):
    (tmp_path / "old.tsv").write_text(f"root\t\na{RED}\troot\nb\troot\n")
    (tmp_path / "new.tsv").write_text(f"root\t\nb\troot\nc[/red]{TURNED}\troot\n")
    assert main(["taxonomy", "diff", str(tmp_path / "old.tsv"), str(tmp_path / "new.tsv")]) == 0
    shown = capsys.readouterr()
    assert not any(mark in shown.out + shown.err for mark in CODES)
    assert "\\x1b[31mred" in shown.out
    assert "c[/red]turned\\u202e" in shown.out


def test_json_escapes_in_its_own_way_and_means_the_same(folder, capsys):
    assert main(["explain", str(folder / "model\x1b"), "dark picture screen", "--json"]) == 0
    shown = capsys.readouterr().out
    assert not any(mark in shown for mark in CODES)
    assert any(f"[bold]{RED}" in node["name"] for node in json.loads(shown)["nodes"])
    console.print_json({"\x9b": "\u202e\x7f\udcff"})
    assert json.loads(capsys.readouterr().out) == {"\x9b": "\u202e\x7f\udcff"}


def test_rows_go_into_pipes_as_they_are_and_onto_a_terminal_written_out(folder, capsys, monkeypatch):
    predict = ["predict", str(folder / "model\x1b"), str(folder / "ta[red]ble\x1b.csv"), "--text", "text\x1b[2J"]
    assert main(predict) == 0
    assert "courier\x1b]0;title\x07" in capsys.readouterr().out
    shown = io.StringIO()
    shown.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", shown)
    assert main(predict) == 0
    assert not any(mark in shown.getvalue() for mark in CODES)
    assert "courier\\x1b]0;title\\x07" in shown.getvalue()


def test_progress_bars_show_names_as_they_are(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(console, "messages", console.SafeConsole(file=shown, force_terminal=True, color_system=None, width=120))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with console.RichProgress() as progress, progress.stage("reading a[/b]\x1b]0;t\x07.csv", 3) as step:
        step.describe("[red]x\x9b")
        progress.bars.refresh()
    assert "reading a[/b]\\x1b]0;t\\x07.csv" in shown.getvalue()
    assert "[red]x\\x9b" in shown.getvalue()
    assert not any(mark in shown.getvalue() for mark in ("\x9b", "\x07", "\x1b]"))


def test_a_table_on_another_console_has_no_escape_codes(tmp_path):
    from ramify.reports.tables import Table
    from ramify.reports.terminal import render_table

    shown = Console(file=io.StringIO(), width=80)
    shown.print(render_table(Table(RED, ("name",), [[f"{RED}\r[b]"]])))
    assert "\x1b" not in shown.file.getvalue()
    assert "\\x1b[31mred\\x0d[b]" in shown.file.getvalue()


def test_errors_are_cut_to_a_sensible_length_on_one_line(folder, tmp_path, capsys):
    model, long = str(folder / "model\x1b"), "x" * 100_000
    for command in (["explain", model, "some words", "--label", long], [long], ["inspect", model, "--as", long]):
        assert main(command) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert len(error) < 2_200
        assert "characters left out" in error
    assert main(["inspect", model, "--levels", long]) == 2
    assert len(capsys.readouterr().err) < 5_000
    assert main(["inspect", os.fspath(tmp_path / "two\nlines")]) == 2
    assert "two\\nlines does not exist" in capsys.readouterr().err


FORGED = "Model saved in out."


@pytest.fixture(scope="module")
def forging(tmp_path_factory):
    """A table with line breaks in its labels and columns, and a model of it."""
    folder = tmp_path_factory.mktemp("forged")
    labels = {"parcel late courier": f"Orders > Late\n{FORGED}", "wrong item in box": f"Orders > Wrong\n{FORGED}"}
    labels |= {"screen dark no picture": f"TV\n{FORGED} > Picture\n{FORGED}", "sound crackles": f"TV\n{FORGED} > Sound"}
    rows = [{FORGED_COLUMNS[1]: f"{text} {i}", FORGED_COLUMNS[3]: label} for i in range(8) for text, label in labels.items()]
    (folder / f"table\n{FORGED}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = [
        "train",
        str(folder / f"table\n{FORGED}.jsonl"),
        "--model",
        str(folder / f"model\n{FORGED}"),
        "--system",
        "b-svm",
    ]
    assert main([*command, *FORGED_COLUMNS]) == 0
    return folder


FORGED_COLUMNS = ["--text", f"text\n{FORGED}", "--label", f"label\n{FORGED}"]


def forging_commands(folder):
    table, model = str(folder / f"table\n{FORGED}.jsonl"), str(folder / f"model\n{FORGED}")
    label = f"Orders > Late\n{FORGED}"
    return {
        "train": ["train", table, *FORGED_COLUMNS, "--model", f"{model}2", "--system", "nb"],
        "try": ["predict", model, "--try", "dark picture screen"],
        "explain": ["explain", model, "dark picture screen", "--true", label],
        "inspect model": ["inspect", model],
        "inspect data": ["inspect", table, *FORGED_COLUMNS],
        "inspect node": ["inspect", model, "--node", label],
        "evaluate": ["evaluate", model, table, *FORGED_COLUMNS],
        "audit": ["audit", table, *FORGED_COLUMNS, "--system", "nb", "--folds", "2", "--max-issues", "50"],
        "compare": ["compare", table, *FORGED_COLUMNS, "--system", "nb", "--system", "b-svm", "--folds", "2", "--resamples", "20"],
        "learn": ["taxonomy", "learn", table, *FORGED_COLUMNS, "--flat", "--groups", "2", "--out", str(folder / "t\nx.json")],
        "no such label": ["explain", model, "x y", "--label", f"x\n{FORGED}"],
        "no such option": ["train", table, f"--x\n{FORGED}", "x"],
        "no such number": ["inspect", model, "--levels", f"1\n{FORGED}"],
    }  # fmt: skip


@pytest.mark.parametrize("name", forging_commands(Path()))
def test_no_name_begins_a_line_of_its_own(forging, name, capsys):
    code = main(forging_commands(forging)[name])
    shown = capsys.readouterr()
    assert code == (2 if name.startswith("no such") else 0), shown.err
    lines = [line.strip() for line in (shown.out + shown.err).splitlines()]
    assert not [line for line in lines if line.startswith(FORGED)]
    if name not in ("no such option", "no such number"):  # typer writes these out in its own way
        assert f"\\n{FORGED}" in shown.out + shown.err


def test_keys_of_owners_with_line_breaks_are_listed_on_one_line(tmp_path, capsys):
    key = {"name": f"ann\n{FORGED}", "role": "read", "sha256": "0", "created_at": "now\nx"}
    (tmp_path / "keys.json").write_text(json.dumps({"format": "ramify-keys", "keys": [key]}))
    assert main(["keys", "list", str(tmp_path / "keys.json")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
