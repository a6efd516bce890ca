"""Running a study: what can run does, what is known is not computed again, and what could not run is named.

Results and page are written after every part, so whoever stops a run finds on the page what is done, and the next run goes on
from there. The page shows what is known with the same size and seed, also of parts that were not asked for this time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.data import CORPORA, Datasets
from experiments.page import Beside, Block, Section, Table, Text, render_page
from experiments.results import Entry, Results
from experiments.study import Part, Run, Size, Study
from ramify.errors import InputError, RamifyError
from ramify.parallel import stage
from ramify.persistence import exclusive_writer, refuse_unwritable, write_text_atomically

SIZES = {
    "full": "A full run.",
    "quick": "A quick run: less data, fewer repetitions or fewer settings than the paper; its figures are rougher.",
    "tiny": "A run so small that its figures mean nothing; it shows that everything works.",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A part whose results are there.

    origin: "ran" just now; "known" with the same settings; or "earlier", from data that is not at hand this time.
    """

    part: Part
    entry: Entry
    origin: str
    blocks: Sequence[Block] = ()

    def figures(self) -> Iterator[Beside]:
        """The tables that stand beside the paper's."""
        return (block for block in self.blocks if isinstance(block, Beside))


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What came of a study.

    outcomes: parts with results. missing: why other parts have none, by name, and what to do.
    results, page: where these were written to.
    """

    study: Study
    size: Size
    seed: int
    outcomes: list[Outcome]
    missing: dict[str, str]
    results: Path
    page: Path

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "paper": self.study.name,
            "size": self.size,
            "seed": self.seed,
            "results": str(self.results),
            "page": str(self.page),
            "parts": [_as_dict(outcome) for outcome in self.outcomes],
            **named_as_missing(self.study, self.missing),
        }


def _as_dict(outcome: Outcome) -> dict[str, Any]:
    tables = [
        {"title": table.title, "rows": [{"what": r.what, "paper": r.paper, "ours": r.ours, "why": r.why} for r in table.rows]}
        for table in outcome.figures()
    ]
    entry = outcome.entry
    return {"part": outcome.part.name, "origin": outcome.origin, "seconds": entry.seconds, "beside": tables}


def named_as_missing(study: Study, missing: dict[str, str]) -> dict[str, Any]:
    """What did not run, and what nobody can be given, as plain values."""
    parts = {part.name: part for part in study.parts}
    not_run = [{"part": name, "about": parts[name].about, "why": why} for name, why in missing.items()]
    return {"not_run": not_run, "not_obtainable": dict(study.not_obtainable)}


def reproduce(
    study: Study,
    datasets: Datasets,
    out: Path,
    size: Size = "full",
    parts: Iterable[str] = (),
    seed: int = 0,
    threads: int = -1,
) -> Reproduction:
    """Run the parts of a study for which there is data, all or those named, and write `<paper>.json` and `<paper>.html`."""
    named = set(parts)
    study.refuse_unknown(named)
    results, page = (_writable(out, f"{study.name}.{kind}") for kind in ("json", "html"))
    # a part that stands in for others waits until it is known whether they can run
    in_turn = sorted(study.parts, key=lambda part: bool(part.in_place_of))
    # two runs on one file would each write what the other has not done
    with exclusive_writer(results), stage(f"reproducing {study.name}", total=len(in_turn)) as step:
        work = _Work(study, Results.open(results, study.name), datasets, page, size, seed, threads, named)
        for part in in_turn:
            work.finish(part)
            work.write()
            step.advance()
    return Reproduction(study, size, seed, work.shown(), work.missing, results, page)


def _writable(out: Path, name: str) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file" if out.is_file() else error.strerror
        raise InputError(f"cannot write into {out}: {why}; choose another folder with --out.") from None
    refuse_unwritable(out / name)
    return out / name


@dataclass(slots=True)
class _Work:
    """A run under way: what there is so far, and why the rest is not there."""

    study: Study
    results: Results
    datasets: Datasets
    page: Path
    size: Size
    seed: int
    threads: int
    named: set[str]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def finish(self, part: Part) -> None:
        """Find the results of a part, or make them, or say why there are none."""
        if part.in_place_of and part.name not in self.named and not any(map(self.could_not_run, part.in_place_of)):
            return  # nothing needs it
        known = self.known(part)
        if known is not None:
            self.outcomes[part.name] = known
        elif self.size == "quick" and not part.in_quick:
            self.missing[part.name] = "takes too long for a quick run; leave out --quick to run it."
        elif part.in_place_of or self.is_asked(part.name):
            self.make(part)
        else:
            self.missing[part.name] = "was not asked for; leave out --part to run it."

    def is_asked(self, name: str) -> bool:
        """Whether a part is one of those named, or none is."""
        return not self.named or name in self.named

    def could_not_run(self, name: str) -> bool:
        """Whether a part was asked for in vain."""
        return name in self.missing and self.is_asked(name)

    def known(self, part: Part) -> Outcome | None:
        """What is known of a part; what other data gave, only where the part's own is not at hand."""
        settings = self.settings(part)
        if all(map(self.datasets.is_available, part.needs)):
            entry, origin = self.results.find(part.name, settings), "known"
        else:
            entry, origin = self.results.find_without_data(part.name, settings), "earlier"
        if entry is None or entry.found is None or any(name in self.datasets.failed for name in part.needs):
            return None
        return Outcome(part, entry, origin)

    def settings(self, part: Part) -> dict[str, Any]:
        """What the results of a part depend on."""
        data = {name: self.datasets.fingerprint(name) for name in part.needs if self.datasets.is_available(name)}
        return {"size": self.size, "seed": self.seed, "version": part.version, "data": data, **part.also()}

    def make(self, part: Part) -> None:
        """Run a part whose data can be read; what is wrong with the data is named, and other parts go on."""
        lacking = [self.datasets.why_not(name) for name in part.needs if not self.datasets.obtain(name)]
        if lacking:
            self.missing[part.name] = "; ".join(lacking) + "."
            return
        entry = self.results.begin(part.name, self.settings(part))
        run = Run(part.name, self.size, self.seed, self.threads, self.datasets, entry)
        try:
            self.outcomes[part.name] = Outcome(part, _timed(part, run), "ran")
        except RamifyError as error:
            if not part.needs:
                raise  # nobody's data is to blame
            self.missing[part.name] = f"stopped at its data: {error}"

    def shown(self) -> list[Outcome]:
        """The parts that have results, in the order of the study, with what they show."""
        found = {name: outcome.entry.found for name, outcome in self.outcomes.items()}
        there = [self.outcomes[part.name] for part in self.study.parts if part.name in self.outcomes]
        return [Outcome(o.part, o.entry, o.origin, list(o.part.show(o.entry.found, found))) for o in there]

    def write(self) -> None:
        """Results and page as they are now."""
        self.results.head = named_as_missing(self.study, self.missing)
        self.results.save()
        sections = [
            *(_section(outcome, self.missing) for outcome in self.shown()),
            *_missing_sections(self.study, self.missing),
        ]
        lead = f"{self.study.lead} {SIZES[self.size]} Seed {self.seed}."
        write_text_atomically(self.page, render_page(self.study.title, lead, sections))


def _timed(part: Part, run: Run) -> Entry:
    """Run a part; the time counts that earlier runs spent on steps which are kept."""
    start, before = time.perf_counter(), run.entry.seconds
    run.entry.threads = run.threads
    try:
        found = part.run(run)
    finally:
        run.entry.seconds = round(before + time.perf_counter() - start, 3)  # as the file has them, so that pages agree
        run.entry.results.save()
    run.entry.complete(found)
    return run.entry


def _section(outcome: Outcome, missing: dict[str, str]) -> Section:
    part, used = outcome.part, [CORPORA[name].title for name in outcome.part.needs]
    facts = [f"part `{part.name}`", *used, f"{outcome.entry.seconds:,.1f} seconds"]
    if part.in_place_of:
        stood_for = [name for name in part.in_place_of if name in missing] or part.in_place_of
        facts.append(f"in place of {' and '.join(f'`{name}`' for name in stood_for)}")
    if outcome.origin == "earlier":
        facts.append("of an earlier run, whose data is not at hand this time")
    return Section(part.about, f"{', '.join(facts)}.", outcome.blocks)


def _missing_sections(study: Study, missing: dict[str, str]) -> Iterator[Section]:
    """What did not run and what nobody can be given, each with the reason."""
    named = named_as_missing(study, missing)
    if missing:
        rows = [(each["part"], each["about"], each["why"]) for each in named["not_run"]]
        yield Section("What did not run", "", [Table("Parts without results", ("part", "about", "why, and what to do"), rows)])
    if study.not_obtainable:
        words = [Text(f"{name}: {why}") for name, why in study.not_obtainable.items()]
        yield Section("What cannot be obtained", "Data of the paper that no part can be given.", words)
