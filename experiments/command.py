"""``python -m experiments``: the experiments of a paper, run anew and set beside what the paper reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments import Study, find_study, study_names
from experiments import reproduce as reproduce_study
from experiments.data import CORPORA, Datasets
from experiments.show import render_papers, render_reproduction
from ramify.cli.console import output, print_json, progress_shown
from ramify.cli.options import AsJson, Threads
from ramify.errors import RamifyError
from ramify.parallel import count_workers


def reproduce(
    paper: Annotated[str | None, typer.Argument(help="Which paper; without it, the papers are listed.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="In minutes: less data, fewer settings and repetitions.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the corpora of the papers, in their published layouts or ours.")
    ] = None,
    fetch: Annotated[bool, typer.Option("--fetch", help="Download what scikit-learn can and --data lacks.")] = False,
    part: Annotated[list[str] | None, typer.Option(help="Run this part alone; may be given several times.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for results (JSON) and page (HTML).")] = Path("reproduced"),
    seed: Annotated[int, typer.Option(min=0, help="Fixes everything that is drawn.")] = 0,
    threads: Threads = -1,
    listed: Annotated[bool, typer.Option("--list", help="List the papers, their parts and the data that each needs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a paper's experiments on the data at hand, and set the results beside the paper's.

    Without --data, parts on synthetic data and on the bundled corpus run; what could not run is named with the reason. A run
    that was stopped goes on where it was, and what is known with the same settings is not computed again.

    \b
    Examples:
      python -m experiments
      python -m experiments cesabianchi2006 --quick
      python -m experiments mccallum1998 --data corpora --out reproduced
      python -m experiments gopal2013 --quick --data corpora --part imclef07a
    """
    if paper is None or listed:
        _list(study_names() if paper is None else [paper], as_json)
        return
    study = find_study(paper)
    study.refuse_unknown(part or [])
    count_workers(threads)
    try:
        with progress_shown():
            datasets = Datasets(data, fetch)
            done = reproduce_study(study, datasets, out, "quick" if quick else "full", part or [], seed, threads)
    except KeyboardInterrupt:
        raise RamifyError(f"interrupted; what is done is kept in {out}, and the same command goes on from there.") from None
    if as_json:
        print_json(done.as_dict())
    else:
        output.print(render_reproduction(done))


def _list(names: list[str], as_json: bool) -> None:
    studies = [find_study(name) for name in names]
    if as_json:
        print_json([_as_dict(study) for study in studies])
    else:
        output.print(render_papers(studies))


def _as_dict(study: Study) -> dict[str, Any]:
    parts = [
        {"name": p.name, "about": p.about, "needs": list(p.needs), "in_place_of": list(p.in_place_of)} for p in study.parts
    ]
    data = {name: CORPORA[name].forms() for part in study.parts for name in part.needs}
    not_obtainable = dict(study.not_obtainable)
    return {"paper": study.name, "title": study.title, "parts": parts, "data": data, "not_obtainable": not_obtainable}
