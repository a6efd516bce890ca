"""``ramify explain``: why a text gets its labels, node by node, word by word."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from typer import Argument, Option

from ramify.cli.console import literal, output, print_json, print_plain
from ramify.cli.options import AsJson, ModelDirectory, RuleName, RuleParams, Trust, load_model, parse_rule
from ramify.errors import InputError

if TYPE_CHECKING:
    from ramify.classifier import NodeExplanation, Step, TextClassifier

MEANS = {"scores": "label score", "margins": "margin", "memberships": "P(node)", "conditionals": "P(node | parent)"}
SHOWN = 0.005  # smaller weights would print as 0.00


def explain(
    model: ModelDirectory,
    text: Annotated[str, Argument(help="The text to classify.")],
    true: Annotated[list[str] | None, Option("--true", help="A true label; marks the errors; may be repeated.")] = None,
    label: Annotated[str | None, Option("--label", help="Explain this node instead of the predicted one.")] = None,
    rule: RuleName = None,
    rule_param: RuleParams = None,
    words: Annotated[int, Option(min=0, help="Words to show per step.")] = 10,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Explain the labels of a text: node by node, word by word.

    For every node on the path: its best rival, the words for and against it, and the reason of the decision rule. --label
    explains another node: why was it not predicted? --true adds the H-loss and the nodes at which a path first goes wrong.

    \b
    Examples:
      ramify explain out "the screen of my phone is cracked"
      ramify explain out "no picture on my tv" --label tv/sound
      ramify explain out "no picture on my tv" --true tv/picture
      ramify explain out "no picture on my tv" --rule isotonic --rule-param penalty=inf
    """
    from ramify.classifier import explain_nodes
    from ramify.data.documents import why_not_text
    from ramify.workflows.reading import refuse_texts

    classifier = load_model(model, parse_rule(rule, rule_param))
    refuse_texts(classifier, "the command line")
    if reason := why_not_text(text):
        raise InputError(f"{reason}; give some words to classify.")
    nodes, why = explain_nodes(classifier, text, true), classifier.explain(text, label)
    if as_json:
        print_json({"rule": classifier.decision_.kind, "nodes": [asdict(node) for node in nodes], "why": asdict(why)})
        return
    output.print(_table(classifier, nodes))
    if contradictions := sum(node.contradicts for node in nodes):
        more = f"{contradictions} of these nodes are more probable than their parents"
        print_plain("", f"{more}; isotonic smoothing would correct that.")
    if true is not None:
        errors = [node.name for node in nodes if node.is_first_error]
        print_plain("", f"H-loss {len(errors)}{': ' + ', '.join(errors) if errors else ', every path is correct'}")
    if words:
        intro = "For" if label is not None or any(node.is_taken for node in nodes) else "No label; the best is"
        path, rival = " > ".join(why.path), " > ".join(why.rival)
        print_plain("", f"{intro} {path}, rather than {rival}: {_listed(why.words[:words]) or 'no known word'}", style="dim")
    for step in why.steps:
        _print_step(step, words)


def _table(classifier: TextClassifier, nodes: list[NodeExplanation]) -> Table:
    numbers = {"score": [node.score for node in nodes]}
    if any(node.value != node.score for node in nodes):
        numbers[MEANS[classifier.decision_.takes]] = [node.value for node in nodes]
    if any(node.refined is not None for node in nodes):
        numbers["smoothed"] = [node.refined for node in nodes]
    table = Table("node", box=None, pad_edge=False, header_style="bold")
    for title in numbers:
        table.add_column(title, justify="right")
    table.add_column("label")
    table.add_column("")
    for node, *row in zip(nodes, *numbers.values(), strict=True):
        name = "  " * node.depth + literal(classifier.taxonomy_.titles[node.node])
        cells = ["–" if number is None else f"{number:.3f}" for number in row]
        remarks = ["above its parent"] if node.contradicts else []
        if node.is_first_error:
            remarks.append("first error: " + ("wrong" if node.is_taken else "missed"))
        elif node.is_true and not node.is_taken:
            remarks.append("missed")
        table.add_row(name, *cells, "✓" if node.is_taken else "", ", ".join(remarks), style="bold" if node.is_taken else None)
    return table


def _print_step(step: Step, most: int) -> None:
    """Print a node of the path: its lead over its rival, the reason of the rule, and the words for and against it."""
    rival = "" if step.rival is None else f" against {' > '.join(step.rival)}"
    fate = "taken" if step.is_taken else "not taken"
    lines = ["", f"{step.title}: {step.probability:.1%}, {fate}; score {step.score:+.2f}{rival}"]
    lines += [f"  rule: {step.reason}"] if step.reason else []
    weights = [(word, weight) for word, weight in step.words if abs(weight) >= SHOWN][:most]
    for side, sign in (("for", 1), ("against", -1)):
        words = _listed([(word, weight) for word, weight in weights if weight * sign > 0])
        lines += [f"  {side}: {words}"] if words else []
    lines += [f"  without any word: {step.prior:+.2f}"] if abs(step.prior) >= SHOWN else []
    print_plain(*lines)


def _listed(words: list[tuple[str, float]]) -> str:
    return ", ".join(f"{word} {weight:+.2f}" for word, weight in words)
