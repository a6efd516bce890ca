"""``ramify demo``: train, evaluate and predict on the bundled corpus."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Option

import ramify
from ramify.cli import options
from ramify.cli.console import output, print_plain, progress_shown

MODEL, REPORT = Path("demo-model"), Path("demo-report.html")
EXAMPLES = (
    "my parcel was due on monday and the tracking has not moved since",
    "the tv has no picture any more, only sound",
    "please send me the invoice again, with our vat number on it",
    "I want my money back for the headphones I returned three weeks ago",
)


def demo(
    model: Annotated[Path, Option("--model", "-m", help="Directory to write the model to.")] = MODEL,
    report: Annotated[Path, Option(help="HTML page to write the report to.")] = REPORT,
    system: Annotated[str, Option(help="System to train; see 'ramify systems'.")] = "path-svm",
    force: options.Force = False,
) -> None:
    """Train, evaluate and predict on the bundled corpus.

    \b
    Example:
      ramify demo
    """
    from ramify.persistence import write_text_atomically
    from ramify.reports.pages import report_page
    from ramify.reports.terminal import render_report

    named = [place for place, default in ((report, REPORT), (model, MODEL)) if place != default]  # its own are replaced
    options.refuse_outputs(report, models=[model], force=True)
    options.ask_to_replace(*named, force=force)
    start = time.perf_counter()
    with progress_shown():
        shop = ramify.data.load_electronics()
        trained = ramify.train(shop.train, ramify.TrainOptions(system, taxonomy=shop.taxonomy, test=shop.test), model)
    output.print(
        f"Support requests of an electronics shop: {len(shop.train):,} training and {len(shop.test):,} test documents, "
        f"{len(shop.taxonomy)} nodes in {shop.taxonomy.n_levels} levels. "
        f"Trained and tested '{system}' in {time.perf_counter() - start:.1f} s.\n"
        f"{trained.classifier.summary()}\n"
    )
    if trained.report is not None:
        output.print(render_report(trained.report, worst=5))
        page = report_page(trained.report, f"{system} on the electronics shop", "The corpus bundled with Ramify.")
        write_text_atomically(report, page)
    output.print("\n[bold]A few requests[/bold]")
    classifier, texts = trained.classifier, list(EXAMPLES)
    for text, labels, p in zip(texts, classifier.predict(texts), classifier.predict_proba(texts), strict=True):
        print_plain(f"  {text}")
        for label in labels:
            print_plain(f"    → {label}  ({p[classifier.taxonomy_.index(label)]:.0%})", style="cyan")
    print_plain(
        "",
        f"The report is also a page: {report}. What to type next:",
        f'  ramify predict {model} --try "the screen of my phone is cracked"',
        f"  ramify serve {model}",
        f"  ramify inspect {model}",
        "  ramify train your.csv --text TEXT_COLUMN --label LABEL_COLUMN --model your-model",
        "  ramify --help",
    )
