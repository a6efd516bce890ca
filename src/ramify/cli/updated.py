"""What ``ramify update`` says about a model that followed a change of its taxonomy."""

from __future__ import annotations

from typing import Any

from ramify.cli.console import counted, say

SHOWN = 10


def tell_about_update(told: dict[str, Any]) -> None:
    """Say what changed, what became of the documents, and what was trained."""
    kinds = [f"{number:,} {kind}" for kind, number in told["changes"]["counts"].items() if number]
    say(f"Taxonomy: {', '.join(kinds) or 'as before'}.")
    if told["relabelled"]:
        say(f"  {counted(told['relabelled'], 'document')} of moved, merged, split or retired nodes relabelled")
    if told["at_split"]:
        where = "stay above the parts until documents with the same text say more (--data)"
        say(f"  {counted(told['at_split'], 'document')} of split nodes {where}")
    if told["left_out"]:
        say(f"  {counted(told['left_out'], 'document')} without a label in the new taxonomy, left out")
    if told["added"]:
        again = f", {told['replaced']:,} of them with a text that was known, and new labels for it" if told["replaced"] else ""
        say(f"  {counted(told['added'], 'document')} added{again}")
    _tell_about_training(told)
    for name in told["begun"][:SHOWN]:
        say(f"  {name} has no documents, and begins as its parent")


def _tell_about_training(told: dict[str, Any]) -> None:
    if not told["is_trained"]:
        say("Nothing was trained: all classifiers are as they were.")
    elif told["taken_over"] is not None:
        taken, total = told["taken_over"]
        say(f"{counted(total - taken, 'classifier')} trained, {taken:,} taken over as they were.")
    elif told["gone_on"]:
        say(f"Trained from where it was, on {counted(told['documents'], 'document')}.")
    else:
        say(f"Trained anew, on {counted(told['documents'], 'document')}: this system learns from all of them at once.")
