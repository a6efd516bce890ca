"""Does recursion help? svm, hr-svm, lr, hr-lr and td-svm on real corpora, C by cross-validation on the training documents.

    python experiments/gopal2013/table.py --data DIR [--corpora imclef07a …] [--out results.json]

Each folder of DIR holds a corpus: ``train`` and ``test`` files (texts as JSON lines, or vectors as svmlight), and
``taxonomy.tsv``, which gets one root above its own, as the paper's trees have. Texts become tf-idf words that at least two
documents have; vectors are standardized by the training documents, and ``imclef07a+length`` is ``imclef07a`` with every
vector then scaled to length 1, as the vectors of texts are. A document with several labels is right where the best class is
one of them; F1 is that of the best class against the first label.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import StandardScaler, normalize

from ramify import Taxonomy, read_taxonomy
from ramify.datasets import read_corpus
from ramify.features import Vectorizer
from ramify.learners import OneVsRestLogistic, OneVsRestSVM, RecursiveLogistic, RecursiveSVM, TopDownSVM
from ramify.metrics import macro_f1, micro_f1
from ramify.taxonomy import expand_to_ancestors

CORPORA = ("20news_bydate", "reuters21578_90", "esco_titles", "arxiv_small", "imclef07a", "imclef07a+length")
SYSTEMS = {
    "svm": OneVsRestSVM,
    "hr-svm": RecursiveSVM,
    "lr": OneVsRestLogistic,
    "hr-lr": RecursiveLogistic,
    "td-svm": TopDownSVM,
}
ROOT = "(root)"
PAPER = {
    "svm": (48.59, 77.53),
    "hr-svm": (53.92, 80.02),
    "lr": (53.26, 79.92),
    "hr-lr": (55.83, 80.12),
    "td-svm": (32.32, 70.11),
}  # CLEF, Table 3


def main() -> None:
    """Run every system on every corpus, tell of each, and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--corpora", nargs="+", default=list(CORPORA))
    options.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    options.add_argument("--threads", type=int, default=-1)
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    results = json.loads(given.out.read_text()) if given.out and given.out.exists() else {}
    for corpus in given.corpora:
        problem = read_problem(given.data / corpus)
        for system in given.systems:
            row = results.setdefault(corpus, {}).get(system) or run(system, problem, given.threads)
            results[corpus][system] = row
            print(line(corpus, system, row), flush=True)
            if given.out:
                given.out.write_text(json.dumps(results, indent=1))
    print(table_of({corpus: results[corpus] for corpus in given.corpora}, given.systems))


def read_problem(folder: Path) -> dict[str, Any]:
    """Documents × features and labels of both parts of a corpus."""
    folder, has_length_one = folder.with_name(folder.name.removesuffix("+length")), folder.name.endswith("+length")
    taxonomy = under_one_root(read_taxonomy(folder / "taxonomy.tsv"))
    parts = [read_corpus(next(folder.glob(f"{name}.*"))) for name in ("train", "test")]
    train, test = vectors(*parts) if parts[0].has_vectors else texts(*parts)
    if has_length_one:
        train, test = normalize(train), normalize(test)
    Y_train, Y_test = (taxonomy.encode(part.labels) for part in parts)
    first = taxonomy.encode([labels[:1] for labels in parts[1].labels])
    return {"taxonomy": taxonomy, "train": (train, Y_train), "test": (test, Y_test, first)}


def under_one_root(taxonomy: Taxonomy) -> Taxonomy:
    """The same tree with one more node, above all its roots."""
    above = [ROOT if parent < 0 else taxonomy.names[parent] for parent in taxonomy.parent.tolist()]
    return Taxonomy.from_edges([(ROOT, None), *zip(taxonomy.names, above, strict=True)])


def texts(train: Any, test: Any) -> tuple[csr_array, csr_array]:
    """tf-idf words."""
    vectorizer = Vectorizer(min_df=2, sublinear_tf=True).fit(train.documents)
    return vectorizer.transform(train.documents), vectorizer.transform(test.documents)


def vectors(train: Any, test: Any) -> tuple[csr_array, csr_array]:
    """Each feature with mean 0 and variance 1 over the training documents."""
    width = max(train.documents.shape[1], test.documents.shape[1])
    dense = [part.with_width(width).documents.toarray() for part in (train, test)]
    scaler = StandardScaler().fit(dense[0])
    X_train, X_test = (csr_array(scaler.transform(part).astype(np.float32)) for part in dense)
    return X_train, X_test


def run(system: str, problem: dict[str, Any], threads: int) -> dict[str, Any]:
    """Train one system with C by cross-validation; quality in percent, time in seconds."""
    (X, Y), (X_test, Y_test, first), taxonomy = problem["train"], problem["test"], problem["taxonomy"]
    start = time.perf_counter()
    fitted = SYSTEMS[system](taxonomy, C="auto", n_jobs=threads).fit(X, Y)
    seconds = time.perf_counter() - start
    predicted = fitted.predict(X_test)
    own = expand_to_ancestors(predicted, taxonomy)
    right = np.asarray(own.multiply(Y_test).sum(axis=1)).ravel() == np.asarray(own.sum(axis=1)).ravel()
    return {
        "macro_f1": 100 * macro_f1(first, own, taxonomy, over="own"),
        "micro_f1": 100 * micro_f1(first, own, taxonomy, over="own"),
        "right": 100 * float(right.mean()),
        "C": fitted.C_,
        "gap": fitted.gap_,
        "seconds": seconds,
    }


def line(corpus: str, system: str, row: dict[str, Any]) -> str:
    """One row, beside the paper's where it has one."""
    paper = "  paper {:.2f} / {:.2f}".format(*PAPER[system]) if corpus.startswith("imclef07a") else ""
    quality = f"macro {row['macro_f1']:6.2f}  micro {row['micro_f1']:6.2f}  right {row['right']:6.2f}"
    return f"{corpus:16} {system:7} {quality}  C={row['C']:<6g} gap {row['gap']:.1e}  {row['seconds']:7.1f} s{paper}"


def table_of(results: dict[str, Any], systems: list[str]) -> str:
    """Macro and micro F1 with the cost chosen, a row for each corpus, as Markdown."""
    lines = [f"| | {' | '.join(systems)} |", "|---" * (len(systems) + 1) + "|"]
    for corpus, rows in results.items():
        cells = [f"{row['macro_f1']:.2f} / {row['micro_f1']:.2f} ({row['C']:.3g})" for row in map(rows.__getitem__, systems)]
        lines.append(f"| {corpus} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
