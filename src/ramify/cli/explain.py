"""``ramify explain``: what a model and its decision rule saw and did for one text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from ramify.classifier import Explanation, NodeExplanation, Step, TextClassifier, explain_nodes, load
from ramify.cli.console import answers, print_json
from ramify.cli.options import AsJson, ModelDirectory, RuleName, RuleParams, chosen_rule
from ramify.data.documents import why_not_text
from ramify.errors import InputError
from ramify.workflows.training import refuse_texts

MEANS = {"scores": "fit as a label", "margins": "margin", "memberships": "P(node)", "conditionals": "P(node | parent)"}
SHOWN = 0.005  # what is nearer to 0 reads as 0.00


def explain(
    model: ModelDirectory,
    text: Annotated[str, typer.Argument(help="The text to classify.")],
    true: Annotated[
        list[str] | None, typer.Option("--true", help="A label that is true; shows where answers go wrong.")
    ] = None,
    label: Annotated[str | None, typer.Option("--label", help="Explain this node instead of the predicted one.")] = None,
    rule: RuleName = None,
    rule_param: RuleParams = None,
    words: Annotated[int, typer.Option(min=0, help="Show so many words a step.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show node by node what a model thinks of a text, what its decision rule made of that, and which words spoke.

    For every node on the path: the words for it and against it, beside its best rival there, and the rule's reason.
    With --label, the same for another node: why not that? With --true, also the H-loss and its contour: the nodes at which a
    path first goes wrong.

    \b
    Examples:
      ramify explain out "the screen of my phone is cracked"
      ramify explain out "no picture on my tv" --label tv/sound
      ramify explain out "no picture on my tv" --true tv/picture
      ramify explain out "no picture on my tv" --rule isotonic --rule-param penalty=inf
    """
    decision = chosen_rule(rule, rule_param)
    classifier = load(model) if decision is None else load(model).redecided(decision)
    refuse_texts(classifier, "the command line")
    if reason := why_not_text(text):
        raise InputError(f"{reason}; give some words to classify.")
    views, why = explain_nodes(classifier, text, true), classifier.explain(text, label)
    if as_json:
        print_json({"rule": classifier.decision_.kind, "nodes": [asdict(view) for view in views], "why": asdict(why)})
        return
    answers.print(_table(classifier, views))
    _tell_contradictions(views)
    _tell_loss(views, true)
    _tell_words(why, words, "For" if label is not None or any(view.is_taken for view in views) else "No label; nearest is")
    for step in why.steps:
        _tell_step(step, words)


def _table(classifier: TextClassifier, views: list[NodeExplanation]) -> Table:
    rule = classifier.decision_
    takes = rule.takes
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


def _remarks(view: NodeExplanation) -> str:
    said = ["above its parent"] if view.contradicts else []
    if view.is_first_mistake:
        said.append("first mistake: " + ("wrong" if view.is_taken else "missed"))
    elif view.is_true and not view.is_taken:
        said.append("missed")
    return ", ".join(said)


def _tell_contradictions(views: list[NodeExplanation]) -> None:
    n = sum(view.contradicts for view in views)
    if n:
        answers.print(f"\n{n} of these nodes are held likelier than their parents; a rule that respects the tree settles that.")


def _tell_loss(views: list[NodeExplanation], true: list[str] | None) -> None:
    if true is None:
        return
    mistakes = [view.name for view in views if view.is_first_mistake]
    where = f": {', '.join(mistakes)}" if mistakes else ", every path is right"
    answers.print(f"\nH-loss {len(mistakes)}{where}", markup=False, soft_wrap=True)


def _tell_words(why: Explanation, most: int, whom: str) -> None:
    shown = ", ".join(f"{word} {weight:+.2f}" for word, weight in why.words[:most])
    if most:
        text = f"\n{whom} {' > '.join(why.path)}, rather than {' > '.join(why.rival)}: {shown or 'no known word'}"
        answers.print(text, markup=False, style="dim", soft_wrap=True)


def _tell_step(step: Step, most: int) -> None:
    """A node of the path: how far it is ahead of whom, the rule's reason, and the words on both sides."""
    whom = "" if step.rival is None else f" against {' > '.join(step.rival)}"
    fate = "taken" if step.is_taken else "not taken"
    lines = [f"\n{step.title}: {step.probability:.1%}, {fate}; score {step.score:+.2f}{whom}"]
    lines += [f"  rule: {step.reason}"] if step.reason else []
    spoken = [(word, weight) for word, weight in step.words if abs(weight) >= SHOWN][:most]
    for side, sign in (("for", 1), ("against", -1)):
        words = ", ".join(f"{word} {weight:+.2f}" for word, weight in spoken if weight * sign > 0)
        lines += [f"  {side}: {words}"] if words else []
    lines += [f"  without any word: {step.prior:+.2f}"] if abs(step.prior) >= SHOWN else []
    answers.print("\n".join(lines), markup=False, soft_wrap=True)
