"""``ramify inspect`` and ``ramify systems``: what is in a model, a table of documents or a taxonomy; the systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from typer import Argument, Option

import ramify
from ramify.cli.console import literal, output, print_json, progress_shown
from ramify.cli.options import (
    AsJson,
    Encoding,
    LabelColumn,
    LabelSeparator,
    Language,
    MergeSpellings,
    Sheet,
    TextColumn,
    Trust,
    load_model,
)
from ramify.errors import InputError, suggest

MOST_FEATURES = 1 << 24  # of a model whose words of a node are shown


def inspect(
    path: Annotated[Path, Argument(help="A model directory, a table of documents, or a taxonomy file.")],
    kind: Annotated[str | None, Option("--as", help="'model', 'data' or 'taxonomy' (default: detected).")] = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    label_separator: LabelSeparator = None,
    taxonomy_file: Annotated[Path | None, Option("--taxonomy", help="Check labels against this taxonomy.")] = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    merge_spellings: MergeSpellings = False,
    levels: Annotated[int, Option(min=1, help="Levels of the taxonomy to draw.")] = 3,
    tree: Annotated[bool, Option("--tree", help="Refuse a taxonomy that is not a tree.")] = False,
    node: Annotated[str | None, Option(help="Of a model: the top words and mixture weights of this node.")] = None,
    language: Language = None,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Show what is in a model, a table of documents or a taxonomy.

    \b
    Examples:
      ramify inspect out
      ramify inspect tickets.csv
      ramify inspect taxonomy.tsv --levels 2
      ramify inspect out --node food/fruit
    """
    from ramify.reports.terminal import draw
    from ramify.workflows.reading import note_contents, note_levels, readable

    facts: dict[str, Any] = {}
    counts: list[int] | None = None
    with progress_shown(), readable(path) as file:
        kind = kind or _find_kind(file)
        if node is not None:
            _show_node(file, kind, node, as_json)
            return
        if kind == "model":
            facts, taxonomy = _inspect_model(file)
        elif kind == "taxonomy":
            taxonomy = ramify.read_taxonomy(file, language=language)
        elif kind == "data":
            known = None if taxonomy_file is None else ramify.read_taxonomy(taxonomy_file, language=language)
            is_label = None if known is None else known.__contains__
            columns: dict[str, Any] = {"text": text, "label": label, "label_separator": label_separator}
            columns |= {"encoding": encoding, "sheet": sheet, "merge_spellings": merge_spellings}
            corpus = ramify.data.read_corpus(file, **columns, is_label=is_label)
            note_contents(corpus)
            facts, taxonomy, counts = _inspect_corpus(corpus, known)
            if known is None:
                note_levels(taxonomy, corpus)
        else:
            raise InputError(
                f"--as is {kind!r}; give 'model', 'data' or 'taxonomy'.{suggest(kind, ('model', 'data', 'taxonomy'))}"
            )
    if tree:
        taxonomy.require_tree("the option --tree")
    if as_json:
        sizes = {"nodes": len(taxonomy), "leaves": int(taxonomy.is_leaf.sum()), "roots": len(taxonomy.roots)}
        sizes |= {"levels": taxonomy.n_levels, "is_tree": taxonomy.is_tree}
        print_json({"kind": kind, **facts, "taxonomy": sizes})
        return
    if facts:
        table = Table(box=None, pad_edge=False, show_header=False)
        for key, value in facts.items():
            table.add_row(literal(key.replace("_", " ")), literal(_shown(value)))
        output.print(table)
    output.print(draw(taxonomy, counts, levels))


def systems(as_json: AsJson = False) -> None:
    """List the systems that --system accepts.

    \b
    Examples:
      ramify systems
      ramify systems --json
    """
    from ramify.systems import SYSTEMS

    if as_json:
        names = ("name", "summary", "source", "uses_main_parents")
        print_json([{name: getattr(system, name) for name in names} for system in SYSTEMS.values()])
        return
    table = Table("system", "description", "source", "on a DAG", box=None, pad_edge=False)
    for system in SYSTEMS.values():
        on_dag = "main parents" if system.uses_main_parents else "all parents"
        table.add_row(system.name, system.summary, system.source, on_dag)
    output.print(table)


def _find_kind(path: Path) -> str:
    from ramify.taxonomy.files import is_taxonomy_file

    if not path.exists():
        raise InputError(f"{path} does not exist; give a model directory, a table of documents or a taxonomy file.")
    if path.is_dir():
        from ramify.data.folders import is_document_folder
        from ramify.persistence import is_model

        return "data" if not is_model(path) and is_document_folder(path) else "model"
    return "taxonomy" if is_taxonomy_file(path) else "data"


def _show_node(path: Path, kind: str, node: str, as_json: bool) -> None:
    """Print the top words of a node, and its mixture weights, where the learner has such."""
    if kind != "model":
        raise InputError(f"--node is for models, but {path} is not one; give a model directory.")
    classifier = load_model(path)
    if (width := classifier.vectorizer_.n_features_out) > MOST_FEATURES:
        most = f"the words of a node can be shown for at most {MOST_FEATURES:,}"
        raise InputError(f"the model has {width:,} features, and {most}; ask 'ramify explain' for those of a text.")
    words = classifier.learner_.top_terms(node, 20, classifier.vectorizer_.get_feature_names_out())
    weights = classifier.learner_.mixture_weights(node)
    if as_json:
        found: dict[str, Any] = {"node": node, "words": [{"word": word, "weight": weight} for word, weight in words]}
        if weights:
            found["mixture_weights"] = [{"estimate": name, "weight": weight} for name, weight in weights]
        print_json(found)
        return
    for what, pairs, title in (("estimate", weights, f"{node}: mixture weights"), ("word", words, node)):
        if pairs or what == "word":
            table = Table(what, "weight", title=literal(title), title_justify="left", min_width=len(title) + 4)
            for name, weight in pairs:
                table.add_row(literal(str(name)), f"{weight:.3f}")
            output.print(table)


def _inspect_model(path: Path) -> tuple[dict[str, Any], ramify.Taxonomy]:
    from ramify.reports.terminal import describe_main_parents

    classifier = load_model(path)
    learner = classifier.learner_
    values, arrays = learner.state()
    figures = {key: value for key, value in classifier.figures_.items() if key not in ("evaluation", "columns")}
    facts = {
        "system": classifier.system,
        "learner": ", ".join(f"{name}={value}" for name, value in values.get("parameters", values).items()),
        **learner.training_facts(),
        "weight_bytes": sum(array.nbytes for array in arrays.values()) + learner.shard_bytes,
        **figures,
        **classifier.figures_.get("evaluation", {}),
    }
    if classifier.uses_main_parents:
        facts["main_parents"] = describe_main_parents(classifier.taxonomy_)
    return facts, classifier.taxonomy_


def _inspect_corpus(
    corpus: ramify.data.Corpus, known: ramify.Taxonomy | None
) -> tuple[dict[str, Any], ramify.Taxonomy, list[int]]:
    import numpy as np

    from ramify.taxonomy import taxonomy_of_labels
    from ramify.workflows.evaluation import check_labels

    if known is not None:
        check_labels(corpus, known)
    taxonomy = taxonomy_of_labels(corpus.labels) if known is None else known
    Y = taxonomy.encode(corpus.labels)
    sizes = np.asarray([len(labels) for labels in corpus.labels])
    facts: dict[str, Any] = {"documents": len(corpus), "bad_rows": len(corpus.bad_rows)}
    facts |= {"unlabelled": int((sizes == 0).sum()), "multi_label": int((sizes > 1).sum())}
    if not corpus.has_vectors:
        facts["duplicates"] = len(corpus) - len(set(corpus.documents))
        facts["words_per_document"] = round(float(np.mean([len(text.split()) for text in corpus.documents])), 1)
    return facts, taxonomy, np.bincount(Y.indices, minlength=len(taxonomy)).tolist()


def _shown(value: Any) -> str:
    """
    >>> [_shown(value) for value in (True, 12345, 0.5, 0.00123, 0.0, "x")]
    ['yes', '12,345', '0.5', '0.0012', '0.0', 'x']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2g}" if 0 < abs(value) < 0.01 else f"{value:.3f}".removesuffix("00")
    return str(value)
