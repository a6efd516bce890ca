"""``ramify explain``: what a model and its decision rule saw and did for one text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ramify.cli.console import answers, print_json
from ramify.cli.options import AsJson, ModelDirectory, RuleName, RuleParams, chosen_rule
from ramify.datasets.documents import why_not_text
from ramify.errors import InputError
from ramify.pipeline import Explanation, NodeView, TextClassifier, load, look
from ramify.pipeline.training import refuse_texts

MEANS = {"scores": "fit as a label", "margins": "margin", "memberships": "P(node)", "conditionals": "P(node | parent)"}


def explain(
    model: ModelDirectory,
    text: Annotated[str, typer.Argument(help="The text to classify.")],
    true: Annotated[
        list[str] | None, typer.Option("--true", help="A label that is true; shows where answers go wrong.")
    ] = None,
    rule: RuleName = None,
    rule_param: RuleParams = None,
    words: Annotated[int, typer.Option(min=0, help="Show so many words.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show node by node what a model thinks of a text, what its decision rule made of that, and which words spoke.

    With --true, also the H-loss and its contour: the nodes at which a path first goes wrong.

    \b
    Examples:
      ramify explain out "the screen of my phone is cracked"
      ramify explain out "no picture on my tv" --true tv/picture
      ramify explain out "no picture on my tv" --rule isotonic --rule-param penalty=inf
    """
    decision = chosen_rule(rule, rule_param)
    classifier = load(model) if decision is None else load(model).redecided(decision)
    refuse_texts(classifier, "the command line")
    if reason := why_not_text(text):
        raise InputError(f"{reason}; give some words to classify.")
    views, why = look(classifier, text, true), classifier.explain(text)
    if as_json:
        print_json({"rule": classifier.decision_.kind, "nodes": [asdict(view) for view in views], "why": asdict(why)})
        return
    answers.print(_table(classifier, views))
    _tell_contradictions(views)
    _tell_loss(views, true)
    _tell_words(why, words, any(view.is_taken for view in views))


def _table(classifier: TextClassifier, views: list[NodeView]) -> Table:
    rule = classifier.decision_
    takes = getattr(rule, "takes", "scores")
    table = Table("node", box=None, pad_edge=False, header_style="bold")
    is_told = any(view.value != view.score for view in views)
    numbers = [("score", "score")] + ([("value", MEANS[takes])] if is_told else [])
    numbers += [("refined", "smoothed")] if any(view.refined is not None for view in views) else []
    for _, title in numbers:
        table.add_column(title, justify="right")
    for title in ("label", ""):
        table.add_column(title)
    for view in views:
        name = "  " * view.depth + escape(classifier.taxonomy_.titles[view.node])
        style = "bold" if view.is_taken else None
        cells = [_cell(getattr(view, key)) for key, _ in numbers]
        table.add_row(name, *cells, "✓" if view.is_taken else "", _remarks(view), style=style)
    return table


def _cell(value: Any) -> str:
    return "–" if value is None else f"{value:.3f}"


def _remarks(view: NodeView) -> str:
    said = ["above its parent"] if view.contradicts else []
    if view.is_first_mistake:
        said.append("first mistake: " + ("wrong" if view.is_taken else "missed"))
    elif view.is_true and not view.is_taken:
        said.append("missed")
    return ", ".join(said)


def _tell_contradictions(views: list[NodeView]) -> None:
    n = sum(view.contradicts for view in views)
    if n:
        answers.print(f"\n{n} of these nodes are held likelier than their parents; a rule that respects the tree settles that.")


def _tell_loss(views: list[NodeView], true: list[str] | None) -> None:
    if true is None:
        return
    mistakes = [view.name for view in views if view.is_first_mistake]
    where = f": {', '.join(mistakes)}" if mistakes else ", every path is right"
    answers.print(f"\nH-loss {len(mistakes)}{where}", markup=False, soft_wrap=True)


def _tell_words(why: Explanation, most: int, has_label: bool) -> None:
    shown = ", ".join(f"{word} {weight:+.2f}" for word, weight in why.words[:most])
    if most:
        whom = "For" if has_label else "No label; nearest is"
        text = f"\n{whom} {' > '.join(why.path)}, rather than {' > '.join(why.rival)}: {shown or 'no known word'}"
        answers.print(text, markup=False, style="dim", soft_wrap=True)
