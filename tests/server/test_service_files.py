"""The unit for systemd and the container: the server in them needs keys, and their commands exist."""

import re
import shlex
from pathlib import Path

import pytest

from ramify.cli.main import main

DEPLOY = Path(__file__).parents[2] / "deploy"


def command_of(name):
    """The words of the command that starts the server."""
    text = (DEPLOY / name).read_text().replace("\\\n", " ")
    if name == "Containerfile":
        return re.findall(r'"([^"]+)"', re.search(r"^ENTRYPOINT \[(.*)\]$", text, re.M)[1])
    return shlex.split(re.search(r"^ExecStart=(.*)$", text, re.M)[1])


@pytest.mark.parametrize("name", ["ramify.service", "Containerfile"])
def test_a_server_that_others_can_reach_is_started_with_keys_and_options_that_exist(name, capsys):
    words = command_of(name)
    assert words[1] == "serve"
    assert "--keys" in words
    assert "--open" not in words
    assert main(["serve", "--help"]) == 0
    known = capsys.readouterr().out
    assert all(word in known for word in words if word.startswith("--"))
