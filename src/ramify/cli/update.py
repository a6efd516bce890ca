"""What ``ramify update`` says about a model that followed a change of its taxonomy."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.classifier import TextClassifier, load
from ramify.classifier.partial_fit import cut_rounds, larger_taxonomy, refuse_unable
from ramify.cli.console import RichProgress, print_json, say
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
from ramify.cli.taxonomy import ReassignmentsFile
from ramify.data import Corpus, read_corpus
from ramify.errors import InputError
from ramify.formatting import counted
from ramify.parallel import reporting_to
from ramify.persistence import refuse_foreign_target
from ramify.taxonomy import Taxonomy, read_reassignments, read_taxonomy
from ramify.workflows.training import check_labels, fitting
from ramify.workflows.updating import OUTDATED, follows_changes
from ramify.workflows.updating import update as follow

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


# --------------------------------------------------------------------------------------------------------------
# ``ramify update``: let a model follow a change of its taxonomy, or go on learning.


def update(
    model: ModelDirectory,
    data: Annotated[Path | None, typer.Option(help="More labelled documents, in any form that 'ramify train' reads.")] = None,
    taxonomy: Annotated[Path | None, typer.Option(help="The taxonomy as it is now, in any format.")] = None,
    reassignments: ReassignmentsFile = None,
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
    """Let a model follow a change of its taxonomy, or add documents to what it has learnt.

    A changed taxonomy: documents that the model has kept ('ramify train --keep-training-data') are relabelled as the change says,
    and what it reaches is trained, from where it was; new titles train nothing. Where documents of retired nodes go is asked;
    see 'ramify taxonomy diff'. Without kept documents give all of them with --data.

    More documents: nb, shrinkage-nb and pachinko-nb count them, new classes included; where label paths spelled out the
    taxonomy, new ones add to it. adaboost-mh and treeboost-mh make more rounds on them, with the classes that they have: with
    the training documents of old, this is the same as one longer training. Other systems need kept documents.

    \b
    Examples:
      ramify update out --taxonomy newer.tsv
      ramify update out --taxonomy newer.tsv --reassignments reassignments.tsv --data more.csv --to newer
      ramify update out --data more.csv
      ramify update out --data more.csv --taxonomy larger.tsv --to newer
      ramify update boosted --data tickets.csv --rounds 500
      ramify update boosted --data validation.csv --choose-rounds
    """
    target = model if to is None else to
    refuse_foreign_target(target)
    _refuse_options(data, taxonomy, reassignments, rounds, choose_rounds)
    given = None if taxonomy is None else read_taxonomy(taxonomy)
    with RichProgress() as progress, reporting_to(progress), nullcontext() if data is None else readable(data) as file:
        classifier = load(model)
        _refuse_rounds(classifier, rounds, choose_rounds)
        classifier.use_threads(threads)
        columns: dict[str, Any] = {"text": text, "label": label, "like": classifier.figures_.get("columns")}
        columns |= {"label_separator": label_separator, "strict": strict, "encoding": encoding}
        if file is None or follows_changes(classifier, given, reassignments is not None, rounds is not None or choose_rounds):
            told = _follow(classifier, given, reassignments, file, columns, target)
        else:
            told = _add(classifier, given, file, columns, target, rounds, choose_rounds)
    if as_json:
        print_json(told)
    elif "changes" in told:
        tell_about_update(told)
    else:
        _tell(told)
    if not as_json:
        say(f"Model saved in {target}.")


def _refuse_options(
    data: Path | None, taxonomy: Path | None, reassignments: Path | None, rounds: int | None, choose: bool
) -> None:
    if data is None and taxonomy is None:
        raise InputError("there is nothing to do; give a taxonomy with --taxonomy, documents with --data, or both.")
    if reassignments is not None and taxonomy is None:
        raise InputError(
            "--reassignments says where documents of retired nodes go; give the taxonomy that lacks them with --taxonomy."
        )
    if rounds is not None and choose:
        raise InputError("--rounds makes more rounds, and --choose-rounds makes none; give one of them.")
    if data is None and (rounds is not None or choose):
        raise InputError("rounds are made or chosen by documents; give some with --data.")


def _follow(
    classifier: TextClassifier,
    given: Taxonomy | None,
    table: Path | None,
    file: Path | None,
    columns: dict[str, Any],
    target: Path,
) -> dict[str, Any]:
    """Let a model follow a change of its taxonomy."""
    new = classifier.taxonomy_ if given is None else given
    reassignments = None if table is None else read_reassignments(table, classifier.taxonomy_, new)
    texts = labels = None
    if file is not None:
        columns["label_separator"] = columns["label_separator"] or classifier.figures_.get("columns", {}).get("label_separator")
        columns["is_label"] = lambda label: label in new or label in classifier.taxonomy_
        corpus = fitting(classifier, labelled(read_corpus(file, **columns), False))
        texts, labels = corpus.documents, corpus.labels
    done = follow(classifier, new, texts, labels, reassignments=reassignments)
    done.classifier.save(target)
    return {"model": str(target), **done.as_dict()}


def _add(
    classifier: TextClassifier,
    given: Taxonomy | None,
    file: Path,
    columns: dict[str, Any],
    target: Path,
    rounds: Any,
    choose: bool,
) -> dict[str, Any]:
    """Let a model go on learning."""
    refuse_unable(classifier)
    corpus = _read(classifier, file, given, columns)
    before = set(_classes(classifier)), classifier.vectorizer_.n_features_out
    quality = cut_rounds(classifier, corpus.documents, corpus.labels) if choose else None
    if not choose:
        _learn(classifier, corpus, given, rounds)
    classifier.figures_ = {key: value for key, value in classifier.figures_.items() if key not in OUTDATED}
    classifier.report_ = None
    classifier.save(target)
    told: dict[str, Any] = {"model": str(target), "documents": len(corpus)}
    told["new_classes"] = sorted(set(_classes(classifier)) - before[0])
    told["new_words"] = classifier.vectorizer_.n_features_out - before[1]
    if classifier.learner_.n_rounds_ is not None:
        told["rounds"] = classifier.learner_.n_rounds_
    return told if quality is None else told | {"micro_f1": quality}


def _read(classifier: TextClassifier, file: Path, given: Taxonomy | None, columns: dict[str, Any]) -> Corpus:
    """Labelled documents that fit a model, columns and separators as in those that it learnt from."""
    known = classifier.taxonomy_ if given is None else given
    columns["label_separator"] = columns["label_separator"] or classifier.figures_.get("columns", {}).get("label_separator")
    columns["is_label"] = None if classifier.figures_.get("taxonomy_from_labels") and given is None else known.__contains__
    corpus = fitting(classifier, labelled(read_corpus(file, **columns), False))
    check_labels(corpus, larger_taxonomy(classifier, corpus.labels, given))
    return corpus


def _learn(classifier: TextClassifier, corpus: Corpus, given: Taxonomy | None, rounds: int | None) -> None:
    several = classifier.form_.multi_label or any(len(labels) != 1 for labels in corpus.labels)
    usual = classifier.learner_.get_params().get("n_rounds")
    if rounds is not None:
        classifier.learner_.n_rounds = rounds
    classifier.partial_fit(corpus.documents, corpus.labels, given)
    classifier.form_ = replace(classifier.form_, multi_label=several)
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


def _refuse_rounds(classifier: TextClassifier, rounds: int | None, choose: bool) -> None:
    if rounds is None and not choose:
        return
    if "n_rounds" not in classifier.learner_.get_params():
        option = "--choose-rounds" if choose else "--rounds"
        raise InputError(f"{option} is for boosting, and system {classifier.system!r} makes no rounds; leave it out.")


def _classes(classifier: TextClassifier) -> list[str]:
    return [classifier.taxonomy_.names[node] for node in classifier.learner_.class_nodes_.tolist()]
