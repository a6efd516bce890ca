"""``ramify taxonomy``: learn a taxonomy from flat labels, compare two taxonomies, or convert one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from typer import Argument, Option

from ramify import workflows
from ramify.cli import options
from ramify.cli.console import literal, output, print_json, progress_shown, say
from ramify.errors import InputError, TaxonomyError
from ramify.formatting import counted

if TYPE_CHECKING:
    from ramify.taxonomy import LearnedTaxonomy, Taxonomy, TaxonomyDiff

FORMAT_OF = {".tsv": "edges", ".json": "json"}
SHOWN_CATEGORIES = 3  # of a group
SHOWN_CHANGES = 20  # of a kind


def learn(
    data: Annotated[Path, Argument(help="Documents: CSV, TSV, JSON Lines, Parquet, or svmlight; - for stdin.")],
    out: Annotated[Path, Option("--out", "-o", help="Taxonomy file to write: .tsv (child, parent) or .json.")],
    groups: Annotated[str, Option(help="Number of groups; one number per level, e.g. 4,12.")] = "4",
    linkage: Annotated[str, Option(help="Linkage of the clustering: ward, average, complete or single.")] = "ward",
    sample: Annotated[int | None, Option(help="Use this many documents of each label (default: all).")] = None,
    seed: Annotated[int, Option(help="Seed of --sample.")] = 0,
    flat: Annotated[bool, Option("--flat", help="Treat labels that look like paths as plain names.")] = False,
    text: options.TextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    stop_words: options.StopWords = None,
    stem: options.Stem = None,
    min_df: options.MinDf = 1,
    strict: options.Strict = False,
    encoding: options.Encoding = None,
    sheet: options.Sheet = None,
    merge_spellings: options.MergeSpellings = False,
    threads: options.Threads = -1,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Group the flat labels of a table into a taxonomy.

    Labels are clustered by the words of their documents.

    \b
    Examples:
      ramify taxonomy learn flat.csv --out taxonomy.tsv
      ramify taxonomy learn news.jsonl --groups 4,12 --stop-words english --min-df 2 --out taxonomy.tsv
      ramify train news.jsonl --taxonomy taxonomy.tsv --model out
    """
    from ramify.features import Vectorizer
    from ramify.parallel import count_workers
    from ramify.taxonomy.learning import check_settings
    from ramify.workflows.option_values import read_stop_words
    from ramify.workflows.training import learn_taxonomy

    levels = _parse_groups(groups)
    check_settings(levels, linkage, sample, seed)
    if out.suffix.lower() not in FORMAT_OF:
        raise InputError(f"--out is {str(out)!r}; give a name that ends in {' or '.join(FORMAT_OF)}.")
    options.refuse_outputs(out, read=[data, stop_words], force=force)
    count_workers(threads)
    vectorizer = Vectorizer(stop_words=read_stop_words(stop_words), stemmer=stem, min_df=min_df, n_jobs=threads)
    vectorizer.check_settings()
    reading = workflows.ReadOptions(text, label, label_separator, strict, False, encoding, sheet, merge_spellings)
    with progress_shown():
        corpus = reading.read(data)
        learnt, terms = learn_taxonomy(corpus, vectorizer, levels, flat, linkage=linkage, sample=sample, seed=seed)
    _write(learnt.taxonomy, out)
    words = [[str(terms[column]) for column in group.top_features] for group in learnt.groups]
    if as_json:
        found = [
            {"name": group.name, "level": group.level, "documents": group.documents, "terms": top}
            | {"categories": list(group.categories)}
            for group, top in zip(learnt.groups, words, strict=True)
        ]
        print_json({"taxonomy": str(out), "categories": int(learnt.taxonomy.is_leaf.sum()), "groups": found})
        return
    output.print(_groups_table(learnt, words))
    say(f"Taxonomy written to {out}. Next: ramify train {'DATA' if str(data) == '-' else data} --taxonomy {out} --model out")


def _parse_groups(given: str) -> tuple[int, ...]:
    """
    >>> _parse_groups("4"), _parse_groups("4, 12")
    ((4,), (4, 12))
    """
    try:
        return tuple(int(part) for part in given.split(","))
    except ValueError:
        raise InputError(f"--groups is {given!r}; give a number, or one for each level, such as 4 or 4,12.") from None


def _write(taxonomy: Taxonomy, out: Path) -> None:
    """Write a taxonomy; refuses labels that would not read back from the file."""
    from ramify.persistence import write_text_atomically
    from ramify.taxonomy.files import parse_taxonomy
    from ramify.taxonomy.formats import FORMATS

    text = FORMATS[FORMAT_OF[out.suffix.lower()]].render(taxonomy)
    is_kept = False
    with suppress(TaxonomyError):
        is_kept = parse_taxonomy(text) == taxonomy
    if not is_kept:
        raise InputError(f"some labels would not read back from {out.suffix}; write .json, or rename them.")
    write_text_atomically(out, text)


def _groups_table(learnt: LearnedTaxonomy, words: list[list[str]]) -> Table:
    table = Table("group", box=None, pad_edge=False)
    for count in ("categories", "documents"):
        table.add_column(count, justify="right")
    for listed in ("top terms", "largest categories"):
        table.add_column(listed, overflow="fold")
    for group, top in zip(learnt.groups, words, strict=True):
        size = len(group.categories)
        more = f" and {size - SHOWN_CATEGORIES:,} more" if size > SHOWN_CATEGORIES else ""
        labels = ", ".join(group.categories[:SHOWN_CATEGORIES]) + more
        name = "  " * group.level + group.name
        table.add_row(literal(name), f"{size:,}", f"{group.documents:,}", literal(", ".join(top)), literal(labels))
    return table


def diff(
    old: Annotated[Path, Argument(help="The old taxonomy, in any format.")],
    new: Annotated[Path, Argument(help="The new taxonomy.")],
    reassignments: options.ReassignmentsFile = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Write a table of unassigned nodes, to be filled in.")] = None,
    force: options.Force = False,
    language: options.Language = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare two taxonomies: nodes renamed, moved, merged, split, added and retired.

    Nodes with the same name are the same; where names are whole paths, nodes are matched by titles, parents and children, if
    the match is unique. A table of old and new nodes says where documents of retired nodes go: rows with the same new
    node merge, rows with the same old node split.

    \b
    Examples:
      ramify taxonomy diff taxonomy.tsv newer.tsv
      ramify taxonomy diff taxonomy.tsv newer.tsv --out reassignments.tsv
      ramify taxonomy diff taxonomy.tsv newer.tsv --reassignments reassignments.tsv --json
    """
    from ramify.persistence import write_text_atomically
    from ramify.taxonomy import diff_taxonomies, read_reassignments, read_taxonomy, render_reassignment_template
    from ramify.taxonomy.diff import suggestion_for

    options.refuse_outputs(out, read=[old, new, reassignments], force=force)
    with progress_shown():
        before, after = read_taxonomy(old, language=language), read_taxonomy(new, language=language)
    table = None if reassignments is None else read_reassignments(reassignments, before, after)
    changes = diff_taxonomies(before, after, table)
    if out is not None:
        write_text_atomically(out, render_reassignment_template(changes))
    if as_json:
        print_json(changes.as_dict())
        return
    if changes:
        output.print(_changes_table(changes))
    say(", ".join(f"{number:,} {kind}" for kind, number in changes.counts.items() if number) or "Nothing changed.")
    unassigned = changes.unassigned
    if not unassigned:
        return
    say(f"{counted(len(unassigned), 'retired node')} without a successor; where do their documents go?")
    for node in unassigned[:SHOWN_CHANGES]:
        suggestion = suggestion_for(changes, node)
        say(f"  {changes.old.show(node)}" + ("" if suggestion is None else f"  (perhaps to {suggestion})"))
    if len(unassigned) > SHOWN_CHANGES:
        say(f"  and {len(unassigned) - SHOWN_CHANGES:,} more")
    where = "--out reassignments.tsv writes a table of them" if out is None else f"They are in {out}"
    say(f"{where}; fill in the column 'new', and give the file with --reassignments.")


def convert(
    file: Annotated[Path, Argument(help="A taxonomy, in any format.")],
    to: Annotated[
        str | None,
        Option(help="Format: edges, paths, indented, json, lshtc, skos, label-studio or doccano (default: by --out)."),
    ] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="File to write (default: standard output).")] = None,
    taxonomy_format: options.TaxonomyFormat = None,
    language: options.Language = None,
    force: options.Force = False,
) -> None:
    """Write a taxonomy in another format, also as the labels of an annotation tool.

    label-studio is a labelling configuration with a Taxonomy tag, doccano a list of labels.

    \b
    Examples:
      ramify taxonomy convert taxonomy.tsv --to label-studio --out config.xml
      ramify taxonomy convert taxonomy.tsv --to doccano --out labels.json
      ramify taxonomy convert thesaurus.ttl --language de --to paths
    """
    from ramify.taxonomy import read_taxonomy
    from ramify.taxonomy.files import SUFFIXES, known_format, render_taxonomy

    options.refuse_outputs(out, read=[file], force=force)
    name = to or (None if out is None else SUFFIXES.get(out.suffix.lower()))
    if name is None:
        raise InputError("the format to write is not known; give it with --to, such as --to label-studio.")
    known_format(name)
    with progress_shown():
        taxonomy = read_taxonomy(file, taxonomy_format, language)
    text = render_taxonomy(taxonomy, name, language if name == "skos" else None)
    with options.opened(out) as written:
        written.write(text)
    if out is not None:
        say(f"{counted(len(taxonomy), 'node')} written to {out}")


def _changes_table(changes: TaxonomyDiff) -> Table:
    """Changes, the most important kinds first; of many only the first are shown."""
    from ramify.taxonomy.diff import KINDS

    def shown(taxonomy: Taxonomy, nodes: tuple[int, ...]) -> str:
        return literal(", ".join(taxonomy.show(node) for node in nodes))

    table = Table("change", "old", "new", box=None, pad_edge=False)
    table.add_column("nodes below", justify="right")
    for kind in KINDS:
        listed = changes.of(kind)
        for change in listed[:SHOWN_CHANGES]:
            ends = shown(changes.old, change.old), shown(changes.new, change.new)
            table.add_row(kind, *ends, f"{change.nodes_below:,}" if change.nodes_below else "")
        if len(listed) > SHOWN_CHANGES:
            table.add_row(kind, f"and {len(listed) - SHOWN_CHANGES:,} more", "", "")
    return table
