"""``ramify decide``: labels from saved scores, by any rule, without training again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ramify.classifier import load
from ramify.classifier.rules import refuse_misfit
from ramify.cli.console import RichProgress, say
from ramify.cli.options import AsJson, Encoding, RuleName, RuleParams, Strict, chosen_rule, readable, refuse_output
from ramify.cli.tables import choose_writer, write_answers
from ramify.decisions import DecisionRule, FittableRule
from ramify.errors import InputError
from ramify.formatting import counted
from ramify.parallel import reporting_to
from ramify.taxonomy import read_taxonomy
from ramify.workflows.score_tables import Decider, decide_rows, open_scores


def decide(
    scores: Annotated[Path, typer.Argument(help="Scores: a table with a column for every node; see 'ramify score'.")],
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="The model that scored; turns scores into what a rule takes.")
    ] = None,
    taxonomy: Annotated[
        Path | None, typer.Option(help="Taxonomy file, for scores of another origin; rules take these as they are.")
    ] = None,
    rule: RuleName = None,
    rule_param: RuleParams = None,
    learn: Annotated[
        Path | None, typer.Option(help="Held-out scores with true labels, for a rule that learns penalties or thresholds.")
    ] = None,
    label: Annotated[str, typer.Option(help="Of --learn: the column with true labels, several split at '|'.")] = "label",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write: .csv, .tsv or .jsonl.")] = None,
    strict: Strict = False,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
) -> None:
    """Decide saved scores again by any rule; nothing is trained.

    With --model, scores are those of the model's learner, and the rule is told what it takes of them: P(node) for
    isotonic, P(node | parent) for minimize-h-loss. With --taxonomy, the table must hold what the rule takes.

    \b
    Examples:
      ramify decide scores.csv --model out --rule minimize-h-loss
      ramify decide scores.csv --model out --rule isotonic --learn held-out-scores.csv
      ramify decide other.csv --taxonomy taxonomy.tsv --rule isotonic --rule-param penalty=inf --out labels.csv
    """
    writer = choose_writer(out, as_json)
    if out is not None:
        refuse_output(out, model, scores, learn)
    wanted = chosen_rule(rule, rule_param)
    with RichProgress() as progress, reporting_to(progress), readable(scores) as file:
        decider = _decider(model, taxonomy, wanted)
        if learn is not None:
            decider = decider.learnt(open_scores(learn, decider.taxonomy, encoding), label)
        if isinstance(decider.rule, FittableRule) and not decider.rule.is_fitted:
            raise InputError(f"rule {decider.rule.kind!r} has something to learn; give --learn, or its settings as numbers.")
        refuse_misfit(decider.rule, decider.taxonomy)
        table = open_scores(file, decider.taxonomy, encoding)
        if len(table.nodes) < len(decider.taxonomy):
            missing = len(decider.taxonomy) - len(table.nodes)
            say(f"{counted(missing, 'node')} of {len(decider.taxonomy):,} without a column, as if without a classifier")
        write_answers(decide_rows(decider, table), table.others, scores, out, writer, 1, strict)


def _decider(model: Path | None, taxonomy: Path | None, wanted: DecisionRule | None) -> Decider:
    if (model is None) == (taxonomy is None):
        raise InputError("give --model for scores of a model, or --taxonomy for scores of another origin, and not both.")
    if model is not None:
        classifier = load(model)
        return Decider(wanted or classifier.decision_, classifier.taxonomy_, classifier.learner_, classifier.form_)
    if wanted is None or taxonomy is None:
        raise InputError("without a model there is no rule to take for granted; name one with --rule.")
    return Decider(wanted, read_taxonomy(taxonomy))
