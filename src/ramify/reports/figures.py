"""One chart as a thing that a notebook shows and that can be written to a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from ramify.arguments import as_path
from ramify.errors import InputError
from ramify.persistence import refuse_existing, write_text_atomically

SCOPE = ".ramify"


@dataclass(frozen=True, slots=True, repr=False)
class Figure:
    """A chart with its caption. svg: one element, whose style is that of the page it stands in.

    >>> from ramify.reports import charts
    >>> Figure("Sizes", charts.horizontal_bars([("tv", 3)], "Sizes"))
    <Figure: Sizes>
    """

    caption: str
    svg: str

    def __repr__(self) -> str:
        return f"<Figure: {self.caption}>"

    def _repr_svg_(self) -> str:
        style = f"<style>{style_sheet()}</style>"
        return re.sub(r"^<svg ([^>]*)>", rf'<svg \1 font-family="system-ui, sans-serif">{style}', self.svg, count=1)

    def _repr_html_(self) -> str:
        from ramify.reports.pages import NOTEBOOK, render

        return render("summary.html", NOTEBOOK, title="", lead="", plots=[(self.caption, self.svg)])

    def save(self, path: str | Path, overwrite: bool = True) -> None:
        """Write the chart to a file that ends in .svg or .html. overwrite: whether a file that exists is replaced."""
        from ramify.reports.pages import render

        place = as_path(path, "path")
        suffix = place.suffix.lower()
        if suffix not in (".svg", ".html"):
            raise InputError(f"a chart cannot be written to {str(place)!r}; give a name that ends in .svg or .html.")
        refuse_existing(place, overwrite)
        page = render("summary.html", title=self.caption, lead="", plots=[(self.caption, self.svg)])
        write_text_atomically(place, self._repr_svg_() if suffix == ".svg" else page)


@cache
def style_sheet() -> str:
    """The style of all pages."""
    return files("ramify.reports").joinpath("templates/style.css").read_text(encoding="utf-8")


@cache
def scoped_style() -> str:
    """The same for one part of somebody else's page: every rule applies inside of the part only."""
    plain = re.sub(r"/\*.*?\*/", "", style_sheet(), flags=re.DOTALL)
    return re.sub(r"[^{}]+(?=\{)", lambda found: _scoped(found[0]), plain) + f"{SCOPE} {{ margin: 0; padding: .8rem; }}"


def _scoped(selectors: str) -> str:
    """The selectors of a rule, each below the part.

    >>> _scoped("th, td "), _scoped(":root "), _scoped("@media print ")
    ('.ramify th, .ramify td', '.ramify', '@media print ')
    """
    if selectors.strip().startswith("@"):
        return selectors
    named = (each.strip() for each in selectors.split(","))
    return ", ".join(SCOPE if each in (":root", "body") else f"{SCOPE} {each}" for each in named)
