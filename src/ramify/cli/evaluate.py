"""``ramify evaluate``: how good a model is on labelled documents."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from ramify import workflows
from ramify.cli import options
from ramify.cli.console import output, print_json, progress_shown, say


def evaluate(
    model: options.ModelDirectory,
    data: options.LabelledFile,
    text: options.TextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    rule: options.RuleName = None,
    rule_param: options.RuleParams = None,
    costs: options.Costs = None,
    hierarchy: Annotated[
        str, Option(help="'modified' adds F1 where inner nodes have leaves for documents of their own.")
    ] = "original",
    report: options.ReportPage = None,
    strict: options.Strict = False,
    keep_unlabelled: options.KeepUnlabelled = False,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    merge_spellings: options.MergeSpellings = False,
    trust: options.Trust = None,
    threads: options.Threads = -1,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate a model on labelled documents.

    The report has figures level by level, branch by branch, and the most confused siblings.

    \b
    Examples:
      ramify evaluate out test.csv
      ramify evaluate out test.csv --report report.html
      ramify evaluate out test.csv --json > figures.json
      ramify evaluate out test.csv --hierarchy modified
      ramify evaluate out test.csv --rule isotonic --rule-param penalty=5
      ramify evaluate out test.csv --rule minimize-h-loss --rule-param costs=costs.csv --costs costs.csv
    """
    from ramify.metrics.evaluation import check_hierarchy
    from ramify.metrics.hierarchical import node_costs
    from ramify.persistence import write_text_atomically
    from ramify.reports.pages import report_page
    from ramify.reports.terminal import render_report
    from ramify.taxonomy import note_on_others
    from ramify.workflows.reading import temporary_directory

    files = options.files_among(costs, rule, *(rule_param or ()))
    options.refuse_outputs(report, models=[model], read=[data, *files], force=force)
    check_hierarchy(hierarchy)
    reading = workflows.ReadOptions(text, label, label_separator, strict, keep_unlabelled, encoding, sheet, merge_spellings)
    decision, counted = options.parse_rule(rule, rule_param), options.parse_costs(costs)
    with progress_shown(), temporary_directory() as scratch:
        classifier = options.load_model(model, decision, threads)
        node_costs(classifier.taxonomy_, counted)
        if note := note_on_others(counted, classifier.taxonomy_, "costs", 1.0):
            say(f"{note}.")
        sharding = {"vectorizer": classifier.vectorizer_, "scratch": scratch, "n_jobs": threads}
        columns = classifier.figures_.get("columns")
        corpus = reading.read(data, classifier.taxonomy_.__contains__, like=columns, sharding=sharding)
        result = workflows.evaluate(classifier, corpus, hierarchy, counted)
    if report is not None:
        write_text_atomically(report, report_page(result, f"{classifier.system} on {data.name}", f"Model {model}."))
        say(f"Report written to {report}")
    if as_json:
        print_json(result.as_dict())
    else:
        output.print(render_report(result))
