"""``ramify demo``: the main job on the corpus that comes with Ramify."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ramify.classifier import TextClassifier
from ramify.cli.console import RichProgress, answers
from ramify.data import load_electronics
from ramify.parallel import reporting_to
from ramify.persistence import write_text_atomically
from ramify.reports.page import render_page
from ramify.reports.terminal import render_report
from ramify.workflows import train as train_on

EXAMPLES = (
    "my parcel was due on monday and the tracking has not moved since",
    "the tv has no picture any more, only sound",
    "please send me the invoice again, with our vat number on it",
    "I want my money back for the headphones I returned three weeks ago",
)


def demo(
    model: Annotated[Path, typer.Option("--model", "-m", help="Directory to write the model to.")] = Path("demo-model"),
    report: Annotated[Path, typer.Option(help="Where to write the report page.")] = Path("demo-report.html"),
    system: Annotated[str, typer.Option(help="Which system to train.")] = "nb",
) -> None:
    """Train on the bundled support requests, report level by level, classify a few examples, say what to do next.

    \b
    Example:
      ramify demo
    """
    start = time.perf_counter()
    with RichProgress() as progress, reporting_to(progress):
        shop = load_electronics()
        trained = train_on(TextClassifier(system, shop.taxonomy, n_jobs=-1), shop.train, shop.test)
        trained.classifier.save(model)
    seconds = time.perf_counter() - start
    answers.print(
        f"Support requests of an electronics shop: {len(shop.train):,} to learn from, {len(shop.test):,} to test on, "
        f"{len(shop.taxonomy)} nodes in {shop.taxonomy.n_levels} levels. "
        f"Trained and tested '{system}' in {seconds:.1f} s.\n"
    )
    if trained.report is not None:
        answers.print(render_report(trained.report, worst=5))
        write_text_atomically(
            report, render_page(trained.report, f"{system} on the electronics shop", "The corpus bundled with Ramify.")
        )
    answers.print("\n[bold]A few requests[/bold]")
    _classify_examples(trained.classifier)
    _say_what_next(model, report)


def _classify_examples(classifier: TextClassifier) -> None:
    probabilities = classifier.predict_proba(list(EXAMPLES))
    for text, labels, p in zip(EXAMPLES, classifier.predict(list(EXAMPLES)), probabilities, strict=True):
        answers.print(f"  {text}", markup=False)
        for label in labels:
            answers.print(f"    → {label}  ({p[classifier.taxonomy_.index(label)]:.0%})", markup=False, style="cyan")


def _say_what_next(model: Path, report: Path) -> None:
    answers.print(
        f"\nThe report is also a page: {report}. What to type next:\n"
        f'  ramify predict {model} --try "the screen of my phone is cracked"\n'
        f"  ramify serve {model}\n"
        f"  ramify inspect {model}\n"
        "  ramify train your.csv --text TEXT_COLUMN --label LABEL_COLUMN --model your-model\n"
        "  ramify --help",
        markup=False,
        soft_wrap=True,
    )
