"""``python -m experiments``: run a paper's experiments, and compare the results with the paper's."""

from __future__ import annotations

import sys

from ramify.cli.main import main


def run(arguments: list[str] | None = None) -> int:
    """Run the command line of this folder, and return its exit code."""
    from experiments.command import reproduce

    return main(arguments, reproduce, "python -m experiments")


if __name__ == "__main__":
    sys.exit(run())
