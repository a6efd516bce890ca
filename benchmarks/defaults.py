"""The default beside other systems and peers, from texts to answers: ``python benchmarks/defaults.py --data DIR``.

DIR holds corpora in folders of their own: train.jsonl.gz, test.jsonl.gz and taxonomy.tsv; the bundled corpus needs none. Every
row gets the same texts in a process of its own, one at a time. Figures: exact (all labels and no other), micro and macro F1
over most specific labels, F1 over labels with all ancestors, in percent; CPU seconds, user and system, children included,
from texts to a model and from texts to answers; most memory held. The default is compared with the best of the other rows by
the paired bootstrap: it is first, within noise (the 95 % interval of the difference contains 0) or behind.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from environments import HERE, InstallError, Row, known_peers, python_for
from measuring import PeerError, host_facts, start
from peers.texts import Answers, TextProblem
from rich.console import Console
from rich.table import Table
from run import is_reusable, read_results, write_results
from scipy.sparse import csr_array
from timing import head, show

from ramify.classifier.fitting import MULTI_LABEL_FRACTION
from ramify.data import Corpus, hold_out, load_electronics, read_corpus
from ramify.features.union import choose_blocks
from ramify.metrics.resampling import MEASURES, draw_measures, from_sums, judge_differences, measure_rows, modified_classes
from ramify.taxonomy import Taxonomy, most_specific, read_taxonomy

NAMES = ("bundled", "clinc150", "reuters21578_90", "20news_bydate", "esco_titles", "arxiv_small")
DEFAULT, ENSEMBLE, AUTO = "default", "ensemble", "--auto --minutes 5"
WORDS, BLOCKS = "LinearSVC, words", "LinearSVC, words and characters"
ROWS = {
    DEFAULT: Row("ramify", "text_ramify"),
    ENSEMBLE: Row("ramify", "text_ramify", options=("system=ensemble",)),
    "svm": Row("ramify", "text_ramify", options=("system=svm",)),
    "hr-svm": Row("ramify", "text_ramify", options=("system=hr-svm",)),
    WORDS: Row("sklearn", "text_sklearn", options=("features=words",)),
    BLOCKS: Row("sklearn", "text_sklearn", options=("features=blocks",)),
    "PECOS XR-Linear, words": Row("pecos", "text_pecos"),
    "HiClass, words": Row("hiclass", "text_hiclass"),
    "fastText": Row("fasttext", "text_fasttext"),
    AUTO: Row("ramify", "text_ramify", options=("minutes=5",)),
}
FIGURES = ("accuracy", "micro_f1", "macro_f1", "hierarchical_f1")
COLUMNS = ("row", "exact", "micro F1", "macro F1", "hier. F1", "model CPU s", "answers CPU s", "peak MB")
VERDICTS = ("corpus", "measure", "default", "best other row", "its figure", "difference", "95 % interval", "the default is")
COSTS = ("corpus", "CPU s", f"× {WORDS}", f"× {BLOCKS}", "peak MB to model", f"× {BLOCKS}")

Figures = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """A corpus with the true labels of its test documents (documents × nodes), and the rows measured on it so far."""

    problem: TextProblem
    truth: csr_array
    taxonomy: Taxonomy
    rows: dict[str, Figures]


def main() -> None:
    """Measure what is not measured yet, keep it, show all of it."""
    given = parse()
    results = read_results(given.out)
    found = {}
    for name in given.corpus or NAMES:
        key = f"{name}, training documents dealt with seed {given.seed}" if given.selection else name
        problem, truth, taxonomy = read_problem(name, given)
        kept = results.setdefault(key, {"facts": describe(problem), "rows": {}})
        found[key] = Measured(problem, truth, taxonomy, kept["rows"])
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "problem.json").write_text(json.dumps(asdict(problem)))
            for row in given.row or ROWS:
                if given.again or not is_reusable(kept["rows"].get(row), given.threads):
                    kept["rows"][row] = measure(ROWS[row], Path(folder), found[key], given)
                    write_results(given.out, results)
                    print(f"{key}: {row}: {told(kept['rows'][row])}", flush=True)
    tell(found, given)


def measure(row: Row, problem: Path, corpus: Measured, given: argparse.Namespace) -> Figures:
    """Figures of a row, or the reason why there are none."""
    about = {"threads": given.threads, "machine": host_facts(), "date": datetime.now(UTC).isoformat(timespec="seconds")}
    with tempfile.TemporaryDirectory() as out:
        try:
            python = python_for(known_peers().get(row.name, row), given.envs)
            start(row, problem, Path(out), python, given.threads, given.timeout)
        except (InstallError, PeerError) as error:
            return {**about, "failed": str(error)}
        result = json.loads((Path(out) / "result.json").read_text())
        answers: Answers = json.loads((Path(out) / "answers.json").read_text())
    return {**about, **result, **quality(corpus, answers), "answers": ";".join(",".join(map(str, each)) for each in answers)}


# ---- documents ------------------------------------------------------------------------------------------------------


def read_problem(name: str, given: argparse.Namespace) -> tuple[TextProblem, csr_array, Taxonomy]:
    """The texts of a corpus for all rows, the labels of its test documents, and its taxonomy."""
    taxonomy, train, test = read(name, given.data)
    if given.selection:
        train, test = (train.take(rows) for rows in hold_out(train.labels, 0.25, given.seed, train.documents))
    labels = nodes_of(train, taxonomy)
    several = float(np.mean([len(nodes) > 1 for nodes in labels])) >= MULTI_LABEL_FRACTION
    parents = [taxonomy.parents_of(node).tolist() for node in range(len(taxonomy))]
    blocks = chosen_blocks(train.documents)
    problem = TextProblem(list(train.documents), labels, list(test.documents), parents, several, blocks)
    return problem, taxonomy.encode(test.labels), taxonomy


def read(name: str, data: Path | None) -> tuple[Taxonomy, Corpus, Corpus]:
    """A taxonomy, the training documents and the test documents."""
    if name == "bundled":
        shop = load_electronics()
        return shop.taxonomy, shop.train.labelled(), shop.test.labelled()
    if data is None or not (data / name).is_dir():
        raise SystemExit(f"no corpus {name!r}; give --data DIR with a folder of that name, or --corpus bundled.")
    taxonomy = read_taxonomy(data / name / "taxonomy.tsv")
    train, test = (
        read_corpus(data / name / f"{part}.jsonl.gz", text="text", label="labels", is_label=taxonomy.__contains__).labelled()
        for part in ("train", "test")
    )
    return taxonomy, replace(train, lines=(), locations=None), test


def nodes_of(corpus: Corpus, taxonomy: Taxonomy) -> Answers:
    """The most specific nodes of each document, in the order in which its labels were given."""
    own = most_specific(taxonomy.encode(corpus.labels), taxonomy)
    sets = [set(own.indices[a:b].tolist()) for a, b in zip(own.indptr[:-1], own.indptr[1:], strict=True)]
    return [
        list(dict.fromkeys(node for name in names if (node := taxonomy.index(name)) in mine))
        for names, mine in zip(corpus.labels, sets, strict=True)
    ]


def chosen_blocks(texts: Sequence[str]) -> list[dict[str, Any]]:
    """The settings of the blocks that Ramify uses for these texts, in scikit-learn's words."""
    same = ("analyzer", "ngram_range", "min_df", "max_df")
    return [
        {**{name: getattr(block, name) for name in same}, "weight": weight}
        for block, weight in zip(*choose_blocks(texts), strict=True)
    ]


def describe(problem: TextProblem) -> Figures:
    """The size of a problem."""
    return {
        "train": len(problem.train),
        "test": len(problem.test),
        "nodes": len(problem.parents),
        "classes": len(problem.classes),
        "labels a document": round(float(np.mean([len(nodes) for nodes in problem.labels])), 2),
        "words a text": round(float(np.mean([len(text.split()) for text in problem.train]))),
    }


# ---- figures --------------------------------------------------------------------------------------------------------


def quality(corpus: Measured, answers: Answers) -> Figures:
    """All measures of some answers."""
    return dict(zip(MEASURES, from_sums(np.asarray(rows_of(corpus, answers).sum(axis=0)).ravel()).tolist(), strict=True))


def rows_of(corpus: Measured, answers: Answers) -> csr_array:
    """The counts of each test document from which all measures follow."""
    taxonomy = corpus.taxonomy
    predicted = taxonomy.encode([[taxonomy.names[node] for node in nodes] for nodes in answers])
    return measure_rows(corpus.truth, predicted, taxonomy, modified_classes(corpus.truth, taxonomy))


def draw(corpus: Measured, row: str) -> Any:
    """Every measure of a row on all test documents, then on each resample of them."""
    answers = [[int(node) for node in each.split(",") if node] for each in corpus.rows[row]["answers"].split(";")]
    return draw_measures(rows_of(corpus, answers), 1000, 0)


def verdicts(name: str, corpus: Measured) -> Iterable[list[str]]:
    """The default against the best of the others in micro and in macro F1; ensemble and --auto are built on it."""
    others = [row for row, found in corpus.rows.items() if "failed" not in found and row not in (DEFAULT, ENSEMBLE, AUTO)]
    if DEFAULT not in corpus.rows or not others:
        return
    ours = draw(corpus, DEFAULT)
    for measure in ("micro_f1", "macro_f1"):
        best, column = max(others, key=lambda row: corpus.rows[row][measure]), MEASURES.index(measure)
        apart = (ours - draw(corpus, best))[:, column]
        found = judge_differences(float(apart[0]), apart[1:], corpus.truth.shape[0], "two-sided")
        verdict = "first" if found.difference >= 0 else "within noise" if found.high >= 0 else "behind"
        figures = [percent(corpus.rows[DEFAULT][measure]), best, percent(corpus.rows[best][measure])]
        between = f"{100 * found.low:+.2f} to {100 * found.high:+.2f}"
        yield [name, measure.replace("_f1", " F1"), *figures, f"{100 * found.difference:+.2f}", between, verdict]


def costs(name: str, corpus: Measured) -> Iterable[list[str]]:
    """What the default takes from texts to a calibrated model, and its ratios to scikit-learn's."""
    rows = corpus.rows
    if DEFAULT not in rows:
        return
    ours = rows[DEFAULT]

    def ratio(figure: str, row: str) -> str:
        return f"{ours[figure] / rows[row][figure]:.2f}" if figure in rows.get(row, {}) else "–"

    times = [f"{ours['train_cpu']:.1f}", ratio("train_cpu", WORDS), ratio("train_cpu", BLOCKS)]
    yield [name, *times, f"{ours['train_bytes'] / 1e6:,.0f}", ratio("train_bytes", BLOCKS)]


# ---- reporting ------------------------------------------------------------------------------------------------------


def tell(found: dict[str, Measured], given: argparse.Namespace) -> None:
    """All rows of each corpus, then the verdicts, then the costs."""
    for name, corpus in found.items():
        size = ", ".join(f"{name} {value:,}" for name, value in describe(corpus.problem).items())
        rows = [[row, *cells(corpus.rows[row])] for row in ROWS if row in corpus.rows]
        print_table(f"{name}: {size}", COLUMNS, rows, given.markdown)
    title = "The default against the best other row; 1,000 paired resamples of the test documents"
    print_table(title, VERDICTS, [row for each in found.items() for row in verdicts(*each)], given.markdown)
    title = "The default from texts to a calibrated model"
    print_table(title, COSTS, [row for each in found.items() for row in costs(*each)], given.markdown)


def cells(row: Figures) -> list[str]:
    """A row as it is shown."""
    if "failed" in row:
        return [row["failed"], *[""] * (len(COLUMNS) - 2)]
    times = [f"{row['train_cpu']:.1f}", f"{row['answer_cpu']:.1f}", f"{row['peak_bytes'] / 1e6:,.0f}"]
    return [*(percent(row[figure]) for figure in FIGURES), *times]


def told(row: Figures) -> str:
    """A row as it comes in."""
    return ", ".join(f"{name} {cell}" for name, cell in zip(COLUMNS[1:], cells(row), strict=True))


def percent(value: float) -> str:
    """With two decimals."""
    return f"{100 * value:.2f}"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], is_markdown: bool) -> None:
    """A table for a file or for a terminal."""
    if is_markdown:
        head(title, *columns)
        for row in rows:
            show(row)
        return
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*row)
    Console(width=max(140, Console().width)).print(table)


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the corpora")
    parser.add_argument("--corpus", action="append", choices=NAMES, help="only this one; may be given again")
    parser.add_argument("--row", action="append", choices=list(ROWS), help="only this one; may be given again")
    parser.add_argument("--selection", action="store_true", help="test on a quarter of the training documents instead")
    parser.add_argument("--seed", type=int, default=0, help="with --selection")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one row")
    parser.add_argument("--envs", type=Path, default=HERE / ".envs", help="where the peers' environments are kept")
    parser.add_argument("--out", type=Path, default=HERE / "results-defaults.json")
    parser.add_argument("--again", action="store_true", help="measure again what is in the results already")
    parser.add_argument("--markdown", action="store_true", help="show tables as Markdown")
    return parser.parse_args()


if __name__ == "__main__":
    main()
