"""An explanation of the labels of a text: for the terminal, and the parts of its page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ramify.classifier.explanation import Explanation, Step
from ramify.formatting import visible_name
from ramify.workflows.explaining import ExplainResult

MEANS = {"scores": "label score", "margins": "margin", "memberships": "P(node)", "conditionals": "P(node | parent)"}
SHOWN = 0.005  # smaller weights would print as 0.00
WORDS = 10  # of a step

Words = Sequence[tuple[str, float]]


def render_explanation(found: ExplainResult, words: int = WORDS) -> RenderableType:
    """The nodes with their numbers, and the words for and against every step of the path. words: of each step."""
    parts: list[RenderableType] = [_table(found)]
    if contradictions := sum(node.contradicts for node in found.nodes):
        more = f"{contradictions} of these nodes are more probable than their parents"
        parts += [*_plain("", f"{more}; isotonic smoothing would correct that.")]
    if found.truth is not None:
        errors = [node.name for node in found.nodes if node.is_first_error]
        parts += [*_plain("", f"H-loss {len(errors)}{': ' + ', '.join(errors) if errors else ', every path is correct'}")]
    return Group(*parts, render_why(found.why, words, found.has_label))


def render_why(why: Explanation, words: int = WORDS, has_label: bool = True) -> RenderableType:
    """The words for and against one node and every step of its path."""
    lines = list[RenderableType]()
    if words:
        intro = "For" if has_label else "No label; the best is"
        path, rival = " > ".join(why.path), " > ".join(why.rival)
        said = f"{intro} {path}, rather than {rival}: {_listed(why.words[:words]) or 'no known word'}"
        lines += [*_plain(""), *_plain(said, style="dim")]
    for step in why.steps:
        lines += _plain(*_step(step, words))
    return Group(*lines)


def _plain(*lines: str, style: str = "") -> Iterator[Text]:
    """Lines that are not wrapped."""
    return (Text(visible_name(line), style=style, no_wrap=True, overflow="ignore") for line in lines)


def _table(found: ExplainResult) -> Table:
    nodes = found.nodes
    numbers: dict[str, list[float | None]] = {"score": [node.score for node in nodes]}
    if any(node.value != node.score for node in nodes):
        numbers[MEANS[found.takes]] = [node.value for node in nodes]
    if any(node.refined is not None for node in nodes):
        numbers["smoothed"] = [node.refined for node in nodes]
    table = Table("node", box=None, pad_edge=False, header_style="bold")
    for title in numbers:
        table.add_column(title, justify="right")
    table.add_column("label")
    table.add_column("")
    for node, title, *row in zip(nodes, found.titles, *numbers.values(), strict=True):
        cells = ["–" if number is None else f"{number:.3f}" for number in row]
        remarks = ["above its parent"] if node.contradicts else []
        if node.is_first_error:
            remarks.append("first error: " + ("wrong" if node.is_taken else "missed"))
        elif node.is_true and not node.is_taken:
            remarks.append("missed")
        name, style = Text("  " * node.depth + visible_name(title)), "bold" if node.is_taken else None
        table.add_row(name, *cells, "✓" if node.is_taken else "", ", ".join(remarks), style=style)
    return table


def _step(step: Step, most: int) -> list[str]:
    """A node of the path: its lead over its rival, the reason of the rule, and the words for and against it."""
    rival = "" if step.rival is None else f" against {' > '.join(step.rival)}"
    fate = "taken" if step.is_taken else "not taken"
    lines = ["", f"{step.title}: {step.probability:.1%}, {fate}; score {step.score:+.2f}{rival}"]
    lines += [f"  rule: {step.reason}"] if step.reason else []
    lines += [f"  {side}: {_listed(words)}" for side, words in sides(step.words, most)]
    return lines + ([f"  without any word: {step.prior:+.2f}"] if abs(step.prior) >= SHOWN else [])


def sides(words: Words, most: int) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """The words for and those against a node, where there are any.

    >>> list(sides([("late", 1.5), ("screen", -0.5), ("the", 0.001)], 5))
    [('for', [('late', 1.5)]), ('against', [('screen', -0.5)])]
    """
    weights = [(word, weight) for word, weight in words if abs(weight) >= SHOWN][:most]
    for side, sign in (("for", 1), ("against", -1)):
        found = [(word, weight) for word, weight in weights if weight * sign > 0]
        if found:
            yield side, found


def _listed(words: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{word} {weight:+.2f}" for word, weight in words)


def page_parts(why: Explanation, words: int = WORDS) -> dict[str, Any]:
    """What the page of an explanation shows."""
    steps = []
    for step in why.steps:
        listed = [(side, [(word, f"{weight:+.2f}") for word, weight in found]) for side, found in sides(step.words, words)]
        about: dict[str, Any] = {"title": step.title, "probability": step.probability, "is_taken": step.is_taken}
        steps.append(about | {"score": step.score, "rival": step.rival, "reason": step.reason, "sides": listed})
    path = [(step.title, step.probability, step.is_taken) for step in why.steps]
    more = max([0, *(len([1 for _, weight in step.words if abs(weight) >= SHOWN]) - words for step in why.steps)])
    known = any(step.words for step in why.steps) or bool(why.words)
    return {"path": path, "rival": " › ".join(why.rival), "words": known, "steps": steps, "more_words": more}
