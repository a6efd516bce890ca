"""Options that commands share, each declared once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated, Any, cast

from typer import Argument, Option

import ramify
from ramify.cli.console import Terminal, say
from ramify.cli.replacing import Force as Force
from ramify.cli.replacing import ask_to_replace as ask_to_replace
from ramify.errors import DataError, InputError, RamifyError
from ramify.formatting import counted
from ramify.persistence import trust

MANY_FILES = "a directory or a quoted pattern of files; - for stdin."
MEASURES = "accuracy, micro_f1, macro_f1, hierarchical_f1, h_loss"
NODE_VALUES = (".json", ".csv", ".tsv", ".tab", ".txt")  # files with a number per node
TABLES = {".jsonl": ".jsonl", ".ndjson": ".jsonl", ".tsv": ".tsv", ".tab": ".tsv", ".csv": ".csv", ".txt": ".csv"}

# models and documents
ModelDirectory = Annotated[Path, Argument(help="Model directory that 'ramify train' wrote.")]
DOCUMENTS = "CSV, TSV, JSON, Parquet, Excel, svmlight, a folder of texts"
TrainingFile = Annotated[Path, Argument(help=f"Documents: {DOCUMENTS}; {MANY_FILES}")]
LabelledFile = Annotated[Path, Argument(help="Labelled documents, in any form that 'ramify train' reads.")]
TextColumn = Annotated[
    str | None, Option("--text", help="Column with the text, or several that are joined: 'title,body' (default: detected).")
]
LabelColumn = Annotated[
    str | None, Option("--label", help="Column with the labels, or level columns: 'level1,level2' (default: detected).")
]
LabelSeparator = Annotated[str | None, Option(help="Separates multiple labels in one cell, e.g. '|' (default: detected).")]
Encoding = Annotated[str | None, Option(help="Encoding of CSV, JSON and text files, such as cp1252 (default: detected).")]
Sheet = Annotated[str | None, Option(help="Sheet of a spreadsheet (default: the only one with cells).")]
MergeSpellings = Annotated[
    bool, Option("--merge-spellings", help="Take labels that differ in case or white space for one, and names for their paths.")
]
Columns = Annotated[
    list[str] | None, Option("--column", help="A further column, of numbers or categories, as features; may be repeated.")
]
Separate = Annotated[
    bool, Option("--separate", help="Give each text column features of its own, rather than joining the texts.")
]
Strict = Annotated[bool, Option("--strict", help="Refuse the file if a row is bad.")]
KeepUnlabelled = Annotated[bool, Option("--keep-unlabelled", help="Keep documents without a label.")]
TaxonomyFile = Annotated[Path | None, Option(help="Taxonomy file (default: read from label paths).")]
TaxonomyFormat = Annotated[str | None, Option(help="edges, paths, indented, json, lshtc, skos, … (default: detected).")]
Language = Annotated[str | None, Option(help="Language of the titles of a SKOS taxonomy, such as de (default: en).")]
PathSeparator = Annotated[str | None, Option(help="Joins the parts of a label path, e.g. ' > ' (default: detected).")]

# features
Ngrams = Annotated[int, Option(min=1, help="Use word n-grams up to this length.")]
CharacterNgrams = Annotated[
    str | None,
    Option("--characters", help="N-grams of characters beside words: 3-4, 3-4:0.5 (weight), or none (default: the system's)."),
]
StopWords = Annotated[
    str | None, Option(help="Leave out common words: 'english', 'english-long', or a file with one word per line.")
]
Stem = Annotated[str | None, Option(help="Reduce words to stems: 'english', 'porter', 'german', …")]
MinDf = Annotated[int, Option(min=1, help="Leave out words that occur in fewer documents.")]
MaxFeatures = Annotated[int | None, Option(min=1, help="Keep only this many words, the most frequent.")]
Hashing = Annotated[int | None, Option(min=1, help="Hash words into this many columns.")]
Select = Annotated[int | None, Option(min=1, help="Select this many words, the most informative about the labels.")]
SelectBy = Annotated[str, Option(help="Measure of --select: information-gain, chi2 or mutual-information.")]
SelectJoin = Annotated[str, Option(help="How --select combines classes: max, weighted-average, sum or round-robin.")]
SelectScope = Annotated[str, Option(help="Where --select applies: flat, hierarchical or glocal.")]

# decisions and guarantees
RuleName = Annotated[
    str | None, Option("--rule", help="Decision rule instead of the model's: best, top-down, isotonic, minimize-h-loss, …")
]
RuleParams = Annotated[
    list[str] | None,
    Option("--rule-param", help="A parameter of the rule, e.g. penalty=5; by node: costs=FILE, of nodes and their numbers."),
]
Costs = Annotated[
    str | None,
    Option(help="Report the H-loss with these costs, too: a JSON object or a file, of nodes and their numbers (others: 1)."),
]
Risk = Annotated[
    float | None,
    Option(help="Back off to the deepest node that is correct except for this fraction of documents, such as 0.05."),
]
Nodes = Annotated[int, Option(help="With --risk: predict up to 2, 3, 5 or 10 nodes, one of which is correct.")]
ByBranch = Annotated[bool, Option("--by-branch", help="With --risk: guarantee it for every top-level branch, too.")]
ReassignmentsFile = Annotated[
    Path | None,
    Option("--reassignments", help="Where documents of old nodes go: a table of old and new nodes; '-' drops documents."),
]

# running
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
EscapeFormulas = Annotated[
    bool,
    Option("--escape-formulas", help="CSV for a spreadsheet: put ' before texts that begin with =, +, -, @, a tab or a CR."),
]
TaskFormat = Annotated[
    str | None,
    Option("--format", help="Write annotation tasks instead of a table: label-studio, argilla or doccano."),
]
ReportPage = Annotated[Path | None, Option(help="Write the report as an HTML page.")]
Trust = Annotated[
    list[Path] | None,
    Option(
        "--trust",
        callback=lambda keys: trust(keys or None),
        help="Read only models that were signed with this key, in a file that 'ramify sign --new-key' made; may be repeated "
        "(default: the keys that the variable RAMIFY_TRUST names, if any).",
    ),
]
Threads = Annotated[int, Option("--threads", help="Threads to use; -1 for all cores.")]
Cluster = Annotated[
    str | None,
    Option("--cluster", help="Run on a Ray cluster: its address, 'auto', or 'local' to start one; needs ramify[ray]."),
]
CheckpointDirectory = Annotated[
    Path | None, Option("--checkpoints", help="Keep checkpoints in this directory, which all machines must see.")
]
Resume = Annotated[bool, Option("--resume", help="Continue an interrupted run from its checkpoints.")]


def parse_rule(given: str | None, pairs: Sequence[str] | None) -> ramify.decisions.DecisionRule | None:
    """The rule of --rule, such as isotonic or isotonic:penalty=5, and --rule-param, if given."""
    if given is None:
        if pairs:
            raise InputError("--rule-param is a parameter of a rule; name the rule with --rule.")
        return None
    from ramify.classifier import make_rule
    from ramify.workflows.option_values import parse_params, split_params

    name, more = split_params(given)
    params = parse_params([*more, *(pairs or [])], "--rule-param")
    return make_rule(name, {name: _read_if_file(value) for name, value in params.items()})


def parse_costs(given: str | None) -> Any:
    """The costs of --costs: a word, or numbers by node name from a file or a JSON object."""
    from ramify.taxonomy.node_values import parse_node_values

    if given is not None and given.lstrip().startswith("{"):
        try:
            return parse_node_values(given)
        except RamifyError as error:
            raise InputError(f"--costs: {error}") from None
    return _read_if_file(given)


def _read_if_file(value: Any) -> Any:
    """Numbers by node name, where a value is the path of a file; else the value itself."""
    from ramify.taxonomy import read_node_values

    is_file = isinstance(value, str) and Path(value).suffix.lower() in NODE_VALUES
    return read_node_values(value) if is_file else value


def say_notes(rule: ramify.decisions.DecisionRule | None, taxonomy: ramify.Taxonomy) -> None:
    """Say what the nodes have that a setting of a rule does not name."""
    for note in [] if rule is None else rule.notes(taxonomy):
        say(f"{note}.")


def load_model(
    model: Path, rule: ramify.decisions.DecisionRule | None = None, threads: int | None = None
) -> ramify.TextClassifier:
    """Load a model, with another decision rule if given."""
    from ramify.parallel import count_workers

    if threads is not None:
        count_workers(threads)
    classifier = ramify.load(model) if rule is None else ramify.load(model).redecided(rule)
    say_notes(rule, classifier.taxonomy_)
    if threads is not None:
        classifier.use_threads(threads)
    return classifier


def refuse_outputs(
    *outputs: Path | None, models: Iterable[Path | None] = (), read: Iterable[Path | str | None] = (), force: bool
) -> None:
    """Refuse outputs that cannot be written, are read by the command or written twice, or lie in a model directory.

    models: model directories that the command reads or writes. read: files that it reads, and values that may be files.
    force: outputs that exist are replaced without a question.
    """
    from ramify.persistence import refuse_unwritable
    from ramify.persistence.paths import is_special, lead_to_same

    given, inputs = [output for output in outputs if output is not None], [each for each in read if each]
    for number, output in enumerate(given):
        refuse_unwritable(output)
        _refuse_model_directories(output, [model for model in models if model is not None])
        if is_special(output):  # nothing in it would be overwritten
            continue
        if any(lead_to_same(output, other) for other in given[:number]):
            raise InputError(f"{output} would be written twice; choose another file for one of the outputs.")
        if output.exists() and any(lead_to_same(output, file) for each in inputs for file in _files_of(each)):
            raise InputError(f"{output} is read by this command and would be overwritten; choose another output file.")
    ask_to_replace(*given, force=force)


def _refuse_model_directories(output: Path, models: Sequence[Path]) -> None:
    """Refuse an output that lies in a model directory, or would be a file where one has to be."""
    from ramify.persistence import is_model, model_metadata
    from ramify.persistence.paths import is_at_or_below, resolved

    place = resolved(output)
    is_inside = any(is_model(above) and model_metadata(above) for above in place.parents)
    if is_inside or any(is_at_or_below(output, model) for model in models):
        raise InputError(f"{output} lies in the model directory; choose another place for it.")
    if below := next((model for model in models if is_at_or_below(model, output)), None):
        raise InputError(f"{output} would be a file, but the model {below} lies in it; choose another place for it.")


def _files_of(given: Path | str) -> Sequence[Path | str]:
    """The files of a directory or pattern; another path as it is."""
    from ramify.data.file_sets import find_files

    if isinstance(given, Path) and ramify.data.is_file_set(given):
        with suppress(RamifyError, OSError):  # reading it will say what is wrong
            return find_files(given)
    return [given]


def files_among(*given: str | None) -> list[str]:
    """What may be a file in values of options, such as costs.csv, costs=costs.csv or minimize-h-loss:costs=costs.csv."""
    from ramify.workflows.option_values import split_params

    pairs = [pair for text in given if text for pair in (text, *split_params(text)[1])]
    return [file for pair in pairs for file in (pair, pair.partition("=")[2]) if file]


def table_format(out: Path | None, as_json: bool = False, escape_formulas: bool = False) -> str:
    """The format of an output file, by --json or its suffix: ".csv", ".tsv" or ".jsonl"."""
    suffix = ".jsonl" if as_json else ("" if out is None else out.suffix.lower()) or ".csv"
    if suffix not in TABLES:
        raise InputError(f"cannot write a file that ends in {suffix!r}; give one that ends in .csv, .tsv or .jsonl.")
    if escape_formulas and TABLES[suffix] == ".jsonl":
        raise InputError("--escape-formulas is for CSV and TSV, but JSON Lines would be written; leave it out.")
    return TABLES[suffix]


def check_tasks_file(name: str, out: Path | None) -> None:
    """Refuse an unknown format of annotation tasks, and a file whose suffix says otherwise."""
    from ramify.data.annotations import find_task_format

    suffix = find_task_format(name).suffix
    if out is not None and out.suffix.lower() != suffix:
        found = f"tasks for {name} are {'JSON Lines' if suffix == '.jsonl' else 'JSON'}, but --out is {out.name!r}"
        raise InputError(f"{found}; give a name that ends in {suffix}.")


@contextmanager
def opened(out: Path | None) -> Iterator[IO[str]]:
    """A file that appears when it is complete, or standard output."""
    if out is None:
        yield cast(IO[str], Terminal(sys.stdout))
        sys.stdout.flush()
    else:
        from ramify.persistence import atomic_writer

        with atomic_writer(out) as file:
            yield file


def write_predictions(
    rows: Iterator[Any],
    columns: list[str],
    data: Path,
    out: Path | None,
    kind: str,
    top: int = 1,
    strict: bool = False,
    escape_formulas: bool = False,
) -> None:
    """Write a prediction for every row, and report rows that could not be classified; refuse if none could."""
    from ramify.parallel import stage
    from ramify.workflows.predict_stream import WRITERS, write_all

    with opened(out) as file, stage(f"classifying {data.name}") as step:
        tally = write_all(rows, WRITERS[kind](file, columns, top, escape_formulas), str(data), strict, step)
        if tally.problems and tally.problems == tally.documents:
            raise DataError(f"none of {counted(tally.documents, 'row')} could be classified; the first: {tally.first}.")
    report_problems(tally)
    if out is not None:
        say(f"Written to {out}")


def report_problems(tally: Any) -> None:
    """Say how many rows could not be classified, if any."""
    if tally.problems:
        what = f"{counted(tally.problems, 'row')} could not be classified; the column 'problem' has the reason"
        say(f"{what}. The first: {tally.first}.")
