"""From options to new classifiers and to documents: what 'train' and 'compare' share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from sklearn.base import clone

from ramify.classifier.fitting import selector_for
from ramify.cli.console import say
from ramify.cli.options import labelled, readable
from ramify.data import Corpus, read_corpus
from ramify.errors import InputError
from ramify.features import TermSelector
from ramify.features.relevance import MEASURES
from ramify.features.selection import JOINS, SCOPES
from ramify.features.text_analysis import STOP_LISTS
from ramify.formatting import counted
from ramify.persistence import model_metadata
from ramify.systems import System
from ramify.taxonomy import Taxonomy
from ramify.workflows.many_files import needs_shards, read_sharded

TaxonomyFile = Annotated[Path | None, typer.Option(help="Taxonomy file; without it label paths spell it out.")]
TaxonomyFormat = Annotated[str | None, typer.Option(help="edges, paths, indented, json, lshtc or skos.")]
PathSeparator = Annotated[str | None, typer.Option(help="What joins the parts of a label path, e.g. ' > '.")]
Ngrams = Annotated[int, typer.Option(min=1, help="Use runs of up to this many words.")]
StopWords = Annotated[
    str | None, typer.Option(help="Leave out common words: 'english', 'english-long', or a file with one a line.")
]
Stem = Annotated[str | None, typer.Option(help="Reduce words to stems: 'english', 'porter', 'german', …")]
MinDf = Annotated[int, typer.Option(min=1, help="Leave out words in fewer documents.")]
MaxFeatures = Annotated[int | None, typer.Option(min=1, help="Keep only so many words, the most frequent.")]
Hashing = Annotated[int | None, typer.Option(min=1, help="Put words into so many columns by their hash.")]
Select = Annotated[int | None, typer.Option(min=1, help="Keep so many words that tell most about the labels.")]
SelectBy = Annotated[str, typer.Option(help=f"How much a word tells: {', '.join(MEASURES)}.")]
SelectJoin = Annotated[str, typer.Option(help=f"How classes are joined: {', '.join(JOINS)}.")]
SelectScope = Annotated[str, typer.Option(help=f"Where words are chosen: {', '.join(SCOPES)}.")]


def read_stop_words(given: str | None) -> str | list[str] | None:
    """The name of a stop list, or the words of a file."""
    if given is None or given in STOP_LISTS:
        return given
    try:
        return [line.strip() for line in Path(given).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError):
        names = " or ".join(repr(name) for name in STOP_LISTS)
        raise InputError(f"--stop-words is {given!r}; give {names}, or a text file with one word a line.") from None


def new_vectorizer(system: System, **settings: Any) -> Any:
    """The vectorizer of a system, with some settings; those that make no sense are found out before anything is read."""
    vectorizer = system.vectorizer().set_params(**settings)
    vectorizer.check_settings()
    return vectorizer


def new_learner(system: System, params: dict[str, Any], option: str = "--param") -> Any:
    """The learner of a system, with some of its parameters set."""
    learner = system.learner()
    allowed = sorted(set(learner.get_params()) - {"taxonomy", "n_jobs"})
    for name in params:
        if name not in allowed:
            raise InputError(f"{option} {name} is no parameter of {system.name}; it has {', '.join(allowed)}.")
    return learner.set_params(**params)


def new_selector(select: int | None, select_by: str, select_join: str, select_scope: str) -> TermSelector | None:
    """What --select and its like ask for, if they do; settings that make no sense are refused."""
    if select is None:
        return None
    selector = TermSelector(select, measure=select_by, join=select_join, scope=select_scope)
    clone(selector).set_params(taxonomy=Taxonomy.flat(["x"])).check_settings()
    return selector


def refuse_selector(selector: TermSelector | None, learner: Any) -> None:
    """Refuse a way to choose words that is not for this learner."""
    selector_for(selector, learner)


def read_labelled(path: Path, reading: dict[str, Any], keep_unlabelled: bool, sharding: dict[str, Any] | None = None) -> Corpus:
    """The labelled documents of a file, of standard input, or of several files.

    sharding: who is to read the words of many documents, and where counts are put, so that texts are not held.
    """
    if sharding is not None and needs_shards(path):
        return labelled(read_sharded(path, **sharding, **reading), keep_unlabelled)
    with readable(path) as file:
        return labelled(read_corpus(file, **reading), keep_unlabelled)


def tell_about_change(model: Path, system: str) -> None:
    """Say so where a model of another system is about to be replaced."""
    before = model_metadata(model).get("system")
    if before is not None and before != system:
        say(f"{model} holds a model of system {before!r}, which one of {system!r} will replace; --system {before} keeps to it.")


def read_added(paths: Sequence[Path], corpus: Corpus, taxonomy: Taxonomy | None, strict: bool, encoding: str) -> Corpus | None:
    """The documents of further files as one corpus, columns and labels looked for as in the first file; None without any."""
    known = {label for labels in corpus.labels for label in labels} if taxonomy is None else taxonomy
    reading: dict[str, Any] = {
        "like": corpus.found,
        "may_be_empty": True,
        "is_label": known.__contains__,
        "strict": strict,
        "encoding": encoding,
    }
    added: Corpus | None = None
    for path in paths:
        some = read_labelled(path, reading, keep_unlabelled=False)
        if not len(some):
            continue
        if corpus.has_vectors or some.has_vectors:
            raise InputError(f"{path} cannot be added: only texts can, to texts; put vectors into one file.")
        added = some if added is None else added.joined(some)
    if added is not None:
        replaced = len(corpus) - len(corpus.without_texts_of(added))
        if replaced:
            say(f"  {counted(replaced, 'document')} of {corpus.source} with the same text left out, since the added ones count")
        new = {label: None for labels in added.labels for label in labels if label not in known}
        if new:
            say(f"  {counted(len(new), 'label')} that {corpus.source} does not have, such as {next(iter(new))!r}")
    return added


def warn_about_several_labels(system: System, corpus: Corpus, is_ruled: bool = False) -> None:
    """Say so where documents have several labels and the system, which learns from them, answers with one."""
    several = sum(len(labels) > 1 for labels in corpus.labels)
    if several and not system.several_labels and not is_ruled and system.learner().supports_multi_label:
        say(f"  {counted(several, 'document')} with several labels; {system.name} learns from all, and answers with one")
