"""Parameters of the parts of a system by name: `C`, or `learner__C` as scikit-learn writes it.

A part that the user gave has parameters of its own. Those of the system's parts, which `fit` makes, are kept in the dictionary
`params` of a classifier until then, so that a clone has them, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ramify.arguments import check_kind
from ramify.classifier.fitting import RULES, rule_params, with_settings
from ramify.decisions import DecisionRule
from ramify.errors import InputError, suggest
from ramify.systems import SYSTEMS, System

if TYPE_CHECKING:
    from ramify.classifier.text_classifier import TextClassifier

PARTS = ("learner", "features", "decision")
OF_CLASSIFIER = ("taxonomy", "n_jobs")  # which sets them for its parts

ByPart = dict[str, dict[str, Any]]


def known_params(classifier: TextClassifier) -> ByPart:
    """The parameters of every part with their values before training; none of a part that cannot be made.

    >>> from ramify import TextClassifier
    >>> known_params(TextClassifier("nb"))["learner"]
    {'alpha': 1.0, 'fit_prior': True}
    """
    system = SYSTEMS.get(classifier.system) if isinstance(classifier.system, str) else None
    made: dict[str, Any] = {"learner": classifier.learner, "features": classifier.features, "decision": classifier.decision}
    if system is not None:
        made["learner"] = made["learner"] if made["learner"] is not None else system.learner()
        made["features"] = made["features"] if made["features"] is not None else system.vectorizer()
    return {part: _params_of(made[part], system if made[part] is None else None) for part in PARTS}


def _params_of(part: Any, system: System | None) -> dict[str, Any]:
    if hasattr(part, "get_params") and not isinstance(part, type):
        return {name: value for name, value in part.get_params().items() if name not in OF_CLASSIFIER}
    if isinstance(part, DecisionRule):
        return rule_params(part)
    rules = [] if system is None else [rule() for rule in (system.multi_label_decision, system.decision) if rule is not None]
    return {name: value for rule in rules for name, value in rule_params(rule).items()}


def full_name(classifier: TextClassifier, name: str) -> str:
    """The name of a parameter with its part, such as learner__C for C; refuses unknown and ambiguous names."""
    known = known_params(classifier)
    part, _, rest = name.partition("__")
    if rest and part in PARTS:
        if rest in known[part] or (part == "decision" and classifier.decision is None and rest in _all_rule_params()):
            return name
        return _refuse(classifier, name, rest, known[part], f"{part}__")
    among = [part for part in PARTS if name in known[part]]
    if len(among) > 1:
        full = " or ".join(f"{part}__{name}" for part in among)
        raise InputError(f"{name!r} is a parameter of {' and '.join(among)}; write {full}.")
    if among:
        return f"{among[0]}__{name}"
    every = [*classifier._get_param_names(), *(name for part in PARTS for name in known[part])]
    return _refuse(classifier, name, name, every, "")


def _all_rule_params() -> set[str]:
    return {each.name for rule in RULES.values() for each in fields(rule) if each.repr}


def _refuse(classifier: TextClassifier, name: str, word: str, known: Iterable[str], prefix: str) -> str:
    listed = [each for each in dict.fromkeys(known) if "__" not in each]
    found = f"{name!r} is not a parameter of TextClassifier({classifier.system!r})"
    meant = re.sub(r"'(\w+)'", rf"'{prefix}\1'", suggest(word, listed))
    meant = meant or suggest(prefix + word, [prefix + each for each in listed])  # of a word that is too short to compare
    shown = ", ".join(prefix + each for each in listed) or "none"
    raise InputError(f"{found}.{meant}" if meant else f"{found}; there are {shown}.")


def given_params(classifier: TextClassifier) -> ByPart:
    """What `params` sets, by part."""
    found: ByPart = {part: {} for part in PARTS}
    if classifier.params is None:
        return found
    check_kind(classifier.params, dict, "params", "a dictionary of parameters of the system's parts, such as {'C': 0.3}")
    for name, value in classifier.params.items():
        check_kind(name, str, "a name in params", "the name of a parameter, such as 'C' or 'learner__C'")
        part, _, rest = full_name(classifier, name).partition("__")
        found[part][rest] = value
    return found


def set_by_name(classifier: TextClassifier, name: str, value: Any) -> bool:
    """Set a parameter of the system's part, or of a decision rule; whether that was all there is to do."""
    full = full_name(classifier, name)
    part, _, rest = full.partition("__")
    given = classifier.params if isinstance(classifier.params, dict) else {}
    if getattr(classifier, part) is None or {name, rest, full} & set(given):
        kept = {key: kept for key, kept in given.items() if key not in (rest, full)}
        classifier.params = {**kept, full: value}
        return True
    if isinstance(classifier.decision, DecisionRule) and part == "decision":
        classifier.decision = with_settings(classifier.decision, {rest: value})
        return True
    return False
