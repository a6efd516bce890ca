"""What every result can do: be shown on a terminal and in a notebook, and become a data frame, a chart or plain values.

How each kind looks is said in ``ramify.reports.results``, which stands above all of them and is imported by its name when a
result is first shown: a result knows nothing of pages and charts.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def _reports() -> Any:
    return import_module("ramify.reports.results")


class Result:
    """Base class of the results of commands.

    ``str()`` is what the command prints, ``repr()`` one line; a notebook shows a page.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(_reports().describe(self))

    def __str__(self) -> str:
        return str(_reports().as_text(self))

    def _repr_html_(self) -> str:
        return str(_reports().as_html(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``--json`` prints them."""
        return dict(_reports().as_values(self))

    def to_frame(self, table: str | None = None) -> Any:
        """A table as a data frame: of pandas if it is installed, else of polars. table: which one (default: the first)."""
        return _reports().as_frame(self, table)

    def plot(self, chart: str | None = None) -> Any:
        """A chart, which a notebook shows; ``plot().save("chart.svg")`` writes it. chart: which one (default: the first)."""
        return _reports().as_figure(self, chart)
