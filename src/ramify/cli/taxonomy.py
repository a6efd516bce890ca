"""``ramify taxonomy``: make a taxonomy where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table
from scipy.sparse import csr_array

from ramify.cli.building import MinDf, Stem, StopWords, read_stop_words
from ramify.cli.console import RichProgress, answers, print_json, say
from ramify.cli.console import answers as printed
from ramify.cli.options import (
    AsJson,
    Encoding,
    LabelColumn,
    LabelSeparator,
    Strict,
    TextColumn,
    Threads,
    readable,
    refuse_output,
    tell_about,
)
from ramify.data import Corpus, read_corpus
from ramify.errors import InputError, LabelError, TaxonomyError
from ramify.features import Vectorizer, Vectors
from ramify.formatting import counted
from ramify.parallel import count_workers, reporting_to
from ramify.persistence import write_text_atomically
from ramify.taxonomy import (
    Change,
    LearnedTaxonomy,
    Taxonomy,
    TaxonomyDiff,
    diff_taxonomies,
    learn_groups,
    read_reassignments,
    read_taxonomy,
    render_reassignment_template,
)
from ramify.taxonomy.diff import KINDS, suggestion_for
from ramify.taxonomy.files import parse_taxonomy
from ramify.taxonomy.formats import FORMATS
from ramify.taxonomy.learning import LINKAGES, check_number, check_settings, refuse_paths

FORMAT_OF = {".tsv": "edges", ".json": "json"}
SHOWN = 3


def learn(
    data: Annotated[Path, typer.Argument(help="Documents: CSV, TSV, JSON Lines, Parquet, or svmlight; - for stdin.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Taxonomy file to write: .tsv (child, parent) or .json.")],
    groups: Annotated[str, typer.Option(help="How many groups; with commas one number a level, e.g. 4,12.")] = "4",
    linkage: Annotated[str, typer.Option(help=f"What makes groups near: {', '.join(LINKAGES)}.")] = "ward",
    sample: Annotated[int | None, typer.Option(help="Look at so many documents of each category only.")] = None,
    seed: Annotated[int, typer.Option(help="Fixes which documents --sample takes.")] = 0,
    flat: Annotated[bool, typer.Option("--flat", help="Take labels that look like paths as plain names.")] = False,
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    stop_words: StopWords = None,
    stem: Stem = None,
    min_df: MinDf = 1,
    strict: Strict = False,
    encoding: Encoding = "utf-8",
    threads: Threads = -1,
    as_json: AsJson = False,
) -> None:
    """Group the flat categories of a table by the words of their documents, and write the groups as a taxonomy.

    \b
    Examples:
      ramify taxonomy learn tickets.csv --out taxonomy.tsv
      ramify taxonomy learn news.jsonl --groups 4,12 --stop-words english --min-df 2 --out taxonomy.tsv
      ramify train news.jsonl --taxonomy taxonomy.tsv --model out
    """
    levels = _read_groups(groups)
    check_settings(levels, linkage, sample, seed)
    _refuse_ending(out)
    refuse_output(out, None, data)
    count_workers(threads)
    vectorizer = Vectorizer(stop_words=read_stop_words(stop_words), stemmer=stem, min_df=min_df, n_jobs=threads)
    vectorizer.check_settings()
    columns: dict[str, Any] = {"text": text, "label": label, "label_separator": label_separator}
    with RichProgress() as progress, reporting_to(progress):
        with readable(data) as file:
            corpus = _labelled(read_corpus(file, **columns, strict=strict, encoding=encoding))
        categories = _categories(corpus, levels, flat)
        X, terms = _vectors(corpus, vectorizer)
        Y = categories.encode(corpus.labels)
        learnt = learn_groups(X, Y, categories.names, levels, linkage=linkage, sample=sample, seed=seed)
    _write(learnt.taxonomy, out)
    if as_json:
        print_json(_as_dict(learnt, out, terms))
        return
    answers.print(_table(learnt, terms))
    say(f"Taxonomy written to {out}. Next: ramify train {'DATA' if str(data) == '-' else data} --taxonomy {out} --model out")


def _read_groups(given: str) -> tuple[int, ...]:
    """
    >>> _read_groups("4"), _read_groups("4, 12")
    ((4,), (4, 12))
    """
    try:
        return tuple(int(part) for part in given.split(","))
    except ValueError:
        raise InputError(f"--groups is {given!r}; give a number, or one for each level, such as 4 or 4,12.") from None


def _refuse_ending(out: Path) -> None:
    if out.suffix.lower() not in FORMAT_OF:
        raise InputError(f"--out is {str(out)!r}; give a name that ends in {' or '.join(FORMAT_OF)}.")


def _write(taxonomy: Taxonomy, out: Path) -> None:
    """Write a taxonomy, unless a name of a category is such that the file would not read back as it was."""
    text = FORMATS[FORMAT_OF[out.suffix.lower()]].render(taxonomy)
    try:
        is_kept = parse_taxonomy(text) == taxonomy
    except TaxonomyError:
        is_kept = False
    if not is_kept:
        raise InputError(f"names of categories do not read back from {out.suffix}; write .json, or rename them.")
    write_text_atomically(out, text)


def _labelled(corpus: Corpus) -> Corpus:
    tell_about(corpus)
    missing = sum(not labels for labels in corpus.labels)
    if missing == len(corpus):
        raise LabelError(f"{corpus.source}: no document has a label; grouping needs at least two categories.")
    if missing:
        say(f"  {counted(missing, 'document')} without a label, left out")
    return corpus.labelled()


def _categories(corpus: Corpus, levels: tuple[int, ...], flat: bool) -> Taxonomy:
    names = sorted({label for labels in corpus.labels for label in labels})
    check_number(len(names), levels)
    if not flat:
        refuse_paths(names)
    return Taxonomy.flat(names)


def _vectors(corpus: Corpus, vectorizer: Vectorizer) -> tuple[csr_array, Any]:
    """Documents × terms, and the names of terms."""
    chosen = Vectors() if corpus.has_vectors else vectorizer
    X = chosen.fit_transform(corpus.documents)
    return X, chosen.get_feature_names_out()


def _as_dict(learnt: LearnedTaxonomy, out: Path, terms: Any) -> dict[str, Any]:
    groups = [
        {
            "name": group.name,
            "level": group.level,
            "documents": group.documents,
            "terms": [str(terms[column]) for column in group.top_features],
            "categories": list(group.categories),
        }
        for group in learnt.groups
    ]
    categories = int(np.sum(learnt.taxonomy.is_leaf))
    return {"taxonomy": str(out), "categories": categories, "groups": groups}


def _table(learnt: LearnedTaxonomy, terms: Any) -> Table:
    table = Table("group", box=None, pad_edge=False)
    for count in ("categories", "documents"):
        table.add_column(count, justify="right")
    table.add_column("top terms", overflow="fold")
    table.add_column("largest categories", overflow="fold")
    for group in learnt.groups:
        words = ", ".join(str(terms[column]) for column in group.top_features)
        more = f" and {len(group.categories) - SHOWN:,} more" if len(group.categories) > SHOWN else ""
        members = ", ".join(group.categories[:SHOWN]) + more
        name = "  " * group.level + group.name
        table.add_row(name, f"{len(group.categories):,}", f"{group.documents:,}", escape(words), escape(members))
    return table


# --------------------------------------------------------------------------------------------------------------
# ``ramify taxonomy diff``: what changed between two taxonomies.


SHOWN_CHANGES = 20  # changes of a kind, and unassigned, that are printed
ReassignmentsFile = Annotated[
    Path | None,
    typer.Option(help="Where documents of old nodes go: a table of old and new nodes; '-' gives documents up."),
]


def diff(
    old: Annotated[Path, typer.Argument(help="The taxonomy as it was, in any format.")],
    new: Annotated[Path, typer.Argument(help="The taxonomy as it is now.")],
    reassignments: ReassignmentsFile = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write a table of unassigned nodes here, to fill in.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what changed: nodes renamed, moved, merged, split, added and retired.

    Nodes of the same name are the same; where names are whole paths, nodes are recognized by their titles, parents and children
    as far as that leaves no doubt. Say where documents of retired nodes go in a table of old and new
    nodes: several rows with the same new node merge, several with the same old node split.

    \b
    Examples:
      ramify taxonomy diff taxonomy.tsv newer.tsv
      ramify taxonomy diff taxonomy.tsv newer.tsv --out reassignments.tsv
      ramify taxonomy diff taxonomy.tsv newer.tsv --reassignments reassignments.tsv --json
    """
    if out is not None:
        refuse_output(out, None, old, new)
    before, after = read_taxonomy(old), read_taxonomy(new)
    changes = diff_taxonomies(
        before, after, None if reassignments is None else read_reassignments(reassignments, before, after)
    )
    if out is not None:
        write_text_atomically(out, render_reassignment_template(changes))
    if as_json:
        print_json(changes.as_dict())
        return
    _tell(changes, out)


def _tell(changes: TaxonomyDiff, out: Path | None) -> None:
    if changes:
        printed.print(table_of(changes))
    say(", ".join(f"{number:,} {kind}" for kind, number in changes.counts.items() if number) or "Nothing changed.")
    unassigned = changes.unassigned
    if not unassigned:
        return
    say(f"{counted(len(unassigned), 'retired node')} without a successor; where do documents go that are labelled so?")
    for node in unassigned[:SHOWN_CHANGES]:
        near = suggestion_for(changes, node)
        say(f"  {changes.old.show(node)}" + ("" if near is None else f"  (perhaps to {near})"))
    if len(unassigned) > SHOWN_CHANGES:
        say(f"  and {len(unassigned) - SHOWN_CHANGES:,} more")
    where = "--out reassignments.tsv writes a table of them" if out is None else f"They are written to {out}"
    say(f"{where}; fill in the column 'new', and give the file back with --reassignments.")


def table_of(changes: TaxonomyDiff) -> Table:
    """Changes, the most important kinds first; of many only the first are shown."""
    table = Table("change", "old", "new", box=None, pad_edge=False)
    table.add_column("nodes below", justify="right")
    for kind in KINDS:
        listed = changes.of(kind)
        for change in listed[:SHOWN_CHANGES]:
            table.add_row(kind, *_ends(changes, change), f"{change.nodes_below:,}" if change.nodes_below else "")
        if len(listed) > SHOWN_CHANGES:
            table.add_row(kind, f"and {len(listed) - SHOWN_CHANGES:,} more", "", "")
    return table


def _ends(changes: TaxonomyDiff, change: Change) -> tuple[str, str]:
    def shown(taxonomy: Taxonomy, nodes: tuple[int, ...]) -> str:
        return escape(", ".join(taxonomy.show(node) for node in nodes))

    return shown(changes.old, change.old), shown(changes.new, change.new)
