"""``ramify score`` and ``ramify decide``: the scores of all nodes as a table, and decisions on such tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ramify.cli import options
from ramify.cli.console import progress_shown, say
from ramify.errors import DataError, InputError
from ramify.formatting import counted


def score(
    model: options.ModelDirectory,
    data: Annotated[Path, Argument(help="Documents: CSV, TSV, JSON Lines, Parquet, svmlight; - for stdin.")],
    out: Annotated[Path | None, Option("--out", "-o", help="CSV file to write.")] = None,
    text: options.TextColumn = None,
    strict: options.Strict = False,
    encoding: options.Encoding = None,
    trust: options.Trust = None,
    threads: options.Threads = -1,
    force: options.Force = False,
) -> None:
    """Write the scores of all nodes as a table.

    Its columns are those of the input except the text, then one for every node of the taxonomy: empty where a node has no
    classifier, -inf where it has no training documents.

    \b
    Examples:
      ramify score out new.csv --out scores.csv
      ramify decide scores.csv --model out --rule isotonic --rule-param penalty=5
    """
    from ramify.parallel import stage
    from ramify.workflows.score_tables import score_file, score_writer

    options.refuse_outputs(out, models=[model], read=[data], force=force)
    if out is not None and out.suffix.lower() not in ("", ".csv", ".txt"):
        raise InputError(f"cannot write a file that ends in {out.suffix!r}; scores are written as .csv.")
    classifier, bad, total = options.load_model(model, threads=threads), list[str](), 0
    scored = score_file(classifier, data, text, encoding, bad, strict)
    with progress_shown(), scored as (columns, rows), options.opened(out) as target, stage(f"scoring {data.name}") as step:
        write = score_writer(target, columns, classifier.taxonomy_)
        for row, scores in rows:
            write(row, scores)
            step.advance()
            total += 1
        if bad and not total:
            raise DataError(f"{data}: no row could be scored; the first: {bad[0]}.")
    if bad:
        say(f"{counted(len(bad), 'row')} left out. The first: {bad[0]}.")
    if out is not None:
        say(f"Written to {out}. Next: ramify decide {out} --model {model} --rule top-down")


def decide(
    scores: Annotated[Path, Argument(help="Scores: a table with a column for every node; see 'ramify score'.")],
    model: Annotated[
        Path | None, Option("--model", "-m", help="The model that computed the scores; converts them for the rule.")
    ] = None,
    taxonomy: Annotated[
        Path | None, Option(help="Taxonomy file, for scores from elsewhere; the rule uses them as they are.")
    ] = None,
    rule: options.RuleName = None,
    rule_param: options.RuleParams = None,
    learn: Annotated[
        Path | None, Option(help="Held-out scores with true labels, for a rule that learns penalties or thresholds.")
    ] = None,
    label: Annotated[str, Option(help="With --learn: column with the true labels, separated by '|'.")] = "label",
    out: Annotated[Path | None, Option("--out", "-o", help="File to write: .csv, .tsv or .jsonl.")] = None,
    escape_formulas: options.EscapeFormulas = False,
    strict: options.Strict = False,
    encoding: options.Encoding = None,
    trust: options.Trust = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Apply a decision rule to saved scores; nothing is trained.

    With --model, scores are those of the model's learner, and are converted to what the rule takes: P(node) for
    isotonic, P(node | parent) for minimize-h-loss. With --taxonomy, the table must hold what the rule takes.

    \b
    Examples:
      ramify decide scores.csv --model out --rule minimize-h-loss
      ramify decide scores.csv --model out --rule isotonic --learn held-out-scores.csv
      ramify decide other.csv --taxonomy taxonomy.tsv --rule isotonic --rule-param penalty=inf --out labels.csv
    """
    from ramify.workflows.reading import readable
    from ramify.workflows.score_tables import decide_rows, new_decider, open_scores

    kind = options.table_format(out, as_json, escape_formulas)
    files = options.files_among(rule, *(rule_param or ()))
    options.refuse_outputs(out, models=[model], read=[scores, learn, taxonomy, *files], force=force)
    wanted = options.parse_rule(rule, rule_param)
    if (model is None) == (taxonomy is None):
        raise InputError("give --model for scores of a model, or --taxonomy for scores from elsewhere, and not both.")
    if taxonomy is not None and wanted is None:
        raise InputError("without a model there is no default rule; name one with --rule.")
    with progress_shown(), readable(scores) as file:
        decider = new_decider(model, taxonomy, wanted, learn, label, encoding)
        options.say_notes(wanted, decider.taxonomy)
        table = open_scores(file, decider.taxonomy, encoding)
        if missing := len(decider.taxonomy) - len(table.nodes):
            say(f"{missing:,} of {len(decider.taxonomy):,} nodes have no column, and count as nodes without a classifier")
        options.write_predictions(decide_rows(decider, table), table.others, scores, out, kind, 1, strict, escape_formulas)
