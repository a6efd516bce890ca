"""What a study is: parts, each of which names the data that it needs, runs in some size, and shows what it found.

A part's ``run`` gets a :class:`Run` and gives plain values, as JSON has them. Whatever takes long is asked for through
:meth:`Run.keep`, which saves it at once, so that a run that is stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from experiments.data import DataSet, Datasets
from experiments.page import Block
from experiments.results import Entry
from ramify.errors import InputError, suggest
from ramify.parallel import stage

Size = Literal["full", "quick", "tiny"]
Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Run:
    """What a part may ask for while it runs.

    size: "full" as in the paper, "quick" for minutes, "tiny" for tests. threads: as n_jobs. datasets: the data at hand.
    """

    part: str
    size: Size
    seed: int
    threads: int
    datasets: Datasets
    entry: Entry

    def choose(self, full: Choice, quick: Choice, tiny: Choice | None = None) -> Choice:
        """What suits the size; without a tiny value, the quick one."""
        if self.size == "full":
            return full
        return quick if self.size == "quick" or tiny is None else tiny

    def corpus(self, name: str) -> DataSet:
        """A corpus that the part needs, read once for all parts."""
        return self.datasets.read(name)

    def keep(self, key: str, compute: Callable[[], Any]) -> Any:
        """What `compute` gives, as plain JSON values; computed once, saved at once, and known from then on."""
        if key not in self.entry.steps:
            with stage(f"{self.part}: {key}"):
                self.entry.keep(key, compute())
        return self.entry.steps[key]


@dataclass(frozen=True, slots=True)
class Part:
    """One experiment of a paper.

    about: what it is, in a line. run: does it and gives plain JSON values. show: from these, and from the values of all
    parts there are by name, to what stands on the page.
    needs: names of corpora in ``experiments.data``. in_place_of: parts for which this one stands in: it runs where one
    of them cannot. version: raised when what `run` does changes, so that old results are not taken for new ones.
    also: other settings that results depend on, such as the systems that there are. in_quick: whether quick runs have it.
    """

    name: str
    about: str
    run: Callable[[Run], Any]
    show: Callable[[Any, Mapping[str, Any]], Iterable[Block]]
    needs: tuple[str, ...] = ()
    in_place_of: tuple[str, ...] = ()
    version: int = 1
    also: Callable[[], dict[str, Any]] = dict
    in_quick: bool = True


@dataclass(frozen=True, slots=True)
class Study:
    """A paper: its name here, its title, and its experiments.

    lead: what the page says first. not_obtainable: data of the paper that no part can be given, each with the reason.
    """

    name: str
    title: str
    lead: str
    parts: tuple[Part, ...]
    not_obtainable: Mapping[str, str] = field(default_factory=dict)

    def refuse_unknown(self, names: Iterable[str]) -> None:
        """Refuse names that no part has."""
        known = [part.name for part in self.parts]
        for name in names:
            if name not in known:
                raise InputError(f"{self.name} has no part {name!r}; its parts are {', '.join(known)}.{suggest(name, known)}")
