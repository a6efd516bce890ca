"""``python -m experiments``: run a paper's experiments, and compare the results with the paper's."""

from __future__ import annotations

from typing import Any

from ramify.cli.main import main


def load_app() -> Any:
    """The command line of this folder, imported when it is needed."""
    import typer

    from experiments.command import reproduce
    from ramify.cli.app import guarded

    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(guarded(reproduce))
    return app


if __name__ == "__main__":
    main(load_app)
