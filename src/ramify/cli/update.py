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
from ramify.datasets import Corpus, read_corpus
from ramify.errors import InputError
from ramify.execution import reporting_to
from ramify.persistence import refuse_foreign_target
from ramify.pipeline import TextClassifier, load
from ramify.pipeline.going_on import cut_rounds, larger_taxonomy, refuse_unable
from ramify.pipeline.training import check_labels, fitting
from ramify.taxonomy import Taxonomy, read_taxonomy


def update(
    model: ModelDirectory,
    data: Annotated[Path, typer.Option(help="More labelled documents, in any form that 'ramify train' reads.")],
    taxonomy: Annotated[Path | None, typer.Option(help="The taxonomy so far with nodes added, where labels need them.")] = None,
    to: Annotated[Path | None, typer.Option(help="Write the new model here; otherwise it replaces the old one.")] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Of boosting: make so many more rounds; as many as in training by default.")
    ] = None,
    choose_rounds: Annotated[
        bool,
        typer.Option(
            "--choose-rounds", help="Of boosting: learn nothing, but keep the rounds that serve these documents best."
        ),
    ] = False,
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
      ramify update boosted --data validation.csv --choose-rounds
    """
    target = model if to is None else to
    refuse_foreign_target(target)
    if rounds is not None and choose_rounds:
        raise InputError("--rounds makes more rounds, and --choose-rounds makes none; give one of them.")
    given = None if taxonomy is None else read_taxonomy(taxonomy)
    with RichProgress() as progress, reporting_to(progress), readable(data) as file:
        classifier = load(model)
        refuse_unable(classifier)
        _refuse_rounds(classifier, rounds, choose_rounds)
        classifier.use_threads(threads)
        columns: dict[str, Any] = {"text": text, "label": label, "like": classifier.figures_.get("columns")}
        columns |= {"label_separator": label_separator, "strict": strict, "encoding": encoding}
        corpus = _read(classifier, file, given, columns)
        before = set(_classes(classifier)), classifier.vectorizer_.n_features_out
        quality = cut_rounds(classifier, corpus.documents, corpus.labels) if choose_rounds else None
        if not choose_rounds:
            _learn(classifier, corpus, given, rounds)
        classifier.figures_ = {key: value for key, value in classifier.figures_.items() if key not in _OUTDATED}
        classifier.report_ = None
        classifier.save(target)
    told: dict[str, Any] = {"model": str(target), "documents": len(corpus)}
    told["new_classes"] = sorted(set(_classes(classifier)) - before[0])
    told["new_words"] = classifier.vectorizer_.n_features_out - before[1]
    if hasattr(classifier.learner_, "n_rounds_"):
        told["rounds"] = classifier.learner_.n_rounds_
    if quality is not None:
        told["micro_f1"] = quality
    print_json(told) if as_json else _tell(told)


def _read(classifier: TextClassifier, file: Path, given: Taxonomy | None, columns: dict[str, Any]) -> Corpus:
    """Labelled documents that fit a model, columns and separators as in those that it learnt from."""
    known = classifier.taxonomy_ if given is None else given
    columns["label_separator"] = columns["label_separator"] or classifier.figures_.get("columns", {}).get("label_separator")
    columns["is_label"] = None if classifier.figures_.get("taxonomy_from_labels") and given is None else known.__contains__
    corpus = fitting(classifier, labelled(read_corpus(file, **columns), False))
    check_labels(corpus, larger_taxonomy(classifier, corpus.labels, given))
    return corpus


def _learn(classifier: TextClassifier, corpus: Corpus, given: Taxonomy | None, rounds: int | None) -> None:
    several = classifier.form_.many or any(len(labels) != 1 for labels in corpus.labels)
    usual = classifier.learner_.get_params().get("n_rounds")
    if rounds is not None:
        classifier.learner_.n_rounds = rounds
    classifier.partial_fit(corpus.documents, corpus.labels, given)
    classifier.form_ = replace(classifier.form_, many=several)
    if usual is not None:
        classifier.learner_.n_rounds = usual


def _tell(told: dict[str, Any]) -> None:
    if "micro_f1" in told:
        for rounds, quality in told["micro_f1"].items():
            say(f"  {rounds:6,} rounds: micro F1 {quality:.3f}")
        say(f"{counted(told['rounds'], 'round')} serve these {counted(told['documents'], 'document')} best, and are kept.")
    else:
        new, words = told["new_classes"], counted(told["new_words"], "new word")
        say(f"Learnt from {counted(told['documents'], 'more document')}: {words}, {counted(len(new), 'new class')}.")
        for name in new[:10]:
            say(f"  {name}")
        if "rounds" in told:
            say(f"Committees have up to {counted(told['rounds'], 'round')} now.")
    say(f"Model saved in {told['model']}.")


def _refuse_rounds(classifier: TextClassifier, rounds: int | None, choose: bool) -> None:
    if rounds is None and not choose:
        return
    if "n_rounds" not in classifier.learner_.get_params():
        option = "--choose-rounds" if choose else "--rounds"
        raise InputError(f"{option} is for boosting, and system {classifier.system!r} makes no rounds; leave it out.")


_OUTDATED = ("evaluation", "tested_on", "held_out")


def _classes(classifier: TextClassifier) -> list[str]:
    return [classifier.taxonomy_.names[node] for node in classifier.learner_.class_nodes_.tolist()]
