"""``ramify update``: let a model go on learning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli.console import RichProgress, counted, print_json, say
from ramify.cli.options import (
    AsJson,
    Encoding,
    LabelColumn,
    LabelSeparator,
    ModelDirectory,
    Strict,
    TextColumn,
    Threads,
    labelled,
    readable,
)
from ramify.datasets import read_corpus
from ramify.errors import InputError
from ramify.execution import reporting_to
from ramify.persistence import refuse_foreign_target
from ramify.pipeline import load
from ramify.pipeline.going_on import larger_taxonomy, refuse_unable
from ramify.pipeline.training import check_labels, fitting
from ramify.taxonomy import read_taxonomy


def update(
    model: ModelDirectory,
    data: Annotated[Path, typer.Option(help="More labelled documents, in any form that 'ramify train' reads.")],
    taxonomy: Annotated[Path | None, typer.Option(help="The taxonomy so far with nodes added, where labels need them.")] = None,
    to: Annotated[Path | None, typer.Option(help="Write the new model here; otherwise it replaces the old one.")] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Of boosting: make so many more rounds; as many as in training by default.")
    ] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    strict: Strict = False,
    encoding: Encoding = "utf-8",
    threads: Threads = -1,
    as_json: AsJson = False,
) -> None:
    """Add documents to what a model has learnt; nothing is learnt anew.

    nb, shrinkage-nb and pachinko-nb count them, new classes included; where label paths spelled out the taxonomy, new ones
    add to it. adaboost-mh and treeboost-mh make more rounds on them, with the classes that they have: with the training
    documents of old, this is the same as one longer training.

    \b
    Examples:
      ramify update out --data more.csv
      ramify update out --data more.csv --taxonomy larger.tsv --to newer
      ramify update boosted --data tickets.csv --rounds 500
    """
    target = model if to is None else to
    refuse_foreign_target(target)
    given = None if taxonomy is None else read_taxonomy(taxonomy)
    with RichProgress() as progress, reporting_to(progress), readable(data) as file:
        classifier = load(model)
        refuse_unable(classifier)
        _set_rounds(classifier, rounds)
        classifier.use_threads(threads)
        known = classifier.taxonomy_ if given is None else given
        columns: dict[str, Any] = {"text": text, "label": label, "like": classifier.figures_.get("columns")}
        is_label = None if classifier.figures_.get("taxonomy_from_labels") and given is None else known.__contains__
        split = label_separator or classifier.figures_.get("columns", {}).get("label_separator")
        separators: dict[str, Any] = {"label_separator": split, "is_label": is_label}
        corpus = labelled(read_corpus(file, **columns, **separators, strict=strict, encoding=encoding), False)
        corpus = fitting(classifier, corpus)
        check_labels(corpus, larger_taxonomy(classifier, corpus.labels, given))
        before = {"classes": set(_classes(classifier)), "words": classifier.vectorizer_.n_features_out}
        several = classifier.form_.many or any(len(labels) != 1 for labels in corpus.labels)
        classifier.partial_fit(corpus.documents, corpus.labels, given)
        classifier.form_ = replace(classifier.form_, many=several)
        if "n_rounds" in classifier.learner_.get_params():  # what trains anew makes as many
            classifier.learner_.n_rounds = max(1, classifier.learner_.n_rounds_)
        classifier.figures_ = {key: value for key, value in classifier.figures_.items() if key not in _OUTDATED}
        classifier.save(target)
    new = sorted(set(_classes(classifier)) - before["classes"])
    words = classifier.vectorizer_.n_features_out - before["words"]
    made = getattr(classifier.learner_, "n_rounds_", None)
    if as_json:
        told = {"model": str(target), "documents": len(corpus), "new_classes": new, "new_words": words}
        print_json(told if made is None else told | {"rounds": made})
        return
    say(f"Learnt from {counted(len(corpus), 'more document')}: {counted(words, 'new word')}, {counted(len(new), 'new class')}.")
    for name in new[:10]:
        say(f"  {name}")
    if made is not None:
        say(f"Committees have up to {counted(made, 'round')} now.")
    say(f"Model saved in {target}.")


def _set_rounds(classifier: Any, rounds: int | None) -> None:
    if rounds is None:
        return
    if "n_rounds" not in classifier.learner_.get_params():
        raise InputError(f"--rounds is for boosting, and system {classifier.system!r} makes no rounds; leave it out.")
    classifier.learner_.n_rounds = rounds


_OUTDATED = ("evaluation", "tested_on", "held_out")


def _classes(classifier: Any) -> list[str]:
    return [classifier.taxonomy_.names[node] for node in classifier.learner_.class_nodes_.tolist()]
