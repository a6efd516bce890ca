"""``ramify explain``: why a text gets its labels, node by node, word by word."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from ramify import workflows
from ramify.cli.console import output, print_json
from ramify.cli.options import AsJson, ModelDirectory, RuleName, RuleParams, Trust, load_model, parse_rule


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
    from ramify.reports.explanations import render_explanation

    found = workflows.explain(load_model(model, parse_rule(rule, rule_param)), text, label, true)
    if as_json:
        print_json(found.to_dict())
    else:
        output.print(render_explanation(found, words))
