"""Progress where there is no terminal: a line now and then."""

import pytest

from ramify.cli import console


@pytest.mark.parametrize(("every", "expected"), [(0.0, ["solving: round 1", "solving: round 2"]), (3600.0, [])])
def test_lines_come_now_and_then(every, expected, monkeypatch, capsys):
    monkeypatch.setattr(console, "EVERY", every)
    with console.RichProgress() as progress, progress.stage("solving", None) as step:
        for number in (1, 2):
            step.describe(f"round {number}")
        step.describe("")
    assert capsys.readouterr().err.splitlines() == expected
