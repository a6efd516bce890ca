"""Features, costs and ties of the default system, measured on training documents that are dealt anew.

$ python benchmarks/variants.py --data DIR

No test document of a corpus is read: of its training documents, at most 12,000, a quarter is held out. In corpora with multiple
labels, every class above 0 is predicted, and at least one. Prints tables in Markdown: micro F1 / macro F1 over the labels.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ramify import read_taxonomy
from ramify.data import load_electronics, read_corpus
from ramify.features import Characters, FeatureUnion, Words
from ramify.learners import OneVsRestSVM, PathSVM, RecursiveSVM
from ramify.metrics import macro_f1, micro_f1
from ramify.taxonomy import Taxonomy, expand_to_ancestors

CORPORA = ("electronics", "clinc150", "esco_titles", "arxiv_small", "20news_bydate", "reuters21578_90")
MOST = 12_000
COMMON = {"min_df": 2, "max_df": 0.1}
FEATURES: dict[str, Any] = {
    "words": Words(),
    "words 1–2": Words(ngram_range=(1, 2)),
    "words 1–2, characters 2–5": FeatureUnion([Words(ngram_range=(1, 2)), Characters(2, 5, min_df=2)]),
    "words 1–2, characters 3–4": FeatureUnion([Words(ngram_range=(1, 2)), Characters(min_df=2)]),
    "words, characters 4 in at most 10 %": FeatureUnion([Words(), Characters(4, 4, **COMMON)]),
    "words, ½ pairs, characters 4 in at most 10 %": FeatureUnion(
        [Words(), Words(ngram_range=(2, 2), min_df=2), Characters(4, 4, **COMMON)], [1.0, 0.5, 1.0]
    ),
    "the same, pairs in 5 and n-grams in 3 documents": FeatureUnion(
        [Words(), Words(ngram_range=(2, 2), min_df=5), Characters(4, 4, min_df=3, max_df=0.1)], [1.0, 0.5, 1.0]
    ),
    "chosen by length": FeatureUnion(),
}
SQUARED = {"loss": "squared_hinge", "n_jobs": -1}
LEARNERS: dict[str, Any] = {
    "flat, hinge, C=1": lambda tree: OneVsRestSVM(tree, C=1.0, n_jobs=-1),
    "flat, C=1": lambda tree: OneVsRestSVM(tree, C=1.0, **SQUARED),
    "flat, C=3": lambda tree: OneVsRestSVM(tree, C=3.0, **SQUARED),
    "recursive, C=1": lambda tree: RecursiveSVM(tree, C=1.0, **SQUARED),
    "path, C=3, λ=¼": lambda tree: PathSVM(tree, C=3.0, ancestors=0.25, n_jobs=-1),
    "path, C and λ selected": lambda tree: PathSVM(tree, n_jobs=-1),
}
CHOSEN = "chosen by length", "path, C=3, λ=¼"


def read(name: str, data: Path | None) -> tuple[Taxonomy, list[str], list[Any]] | None:
    """The taxonomy and the training documents of a corpus; None where it is absent."""
    if name == "electronics":
        shop = load_electronics()
        return shop.taxonomy, list(shop.train.documents), shop.train.labels
    if data is None or not (data / name).is_dir():
        return None
    corpus = read_corpus(data / name / "train.jsonl.gz")
    return read_taxonomy(data / name / "taxonomy.tsv"), list(corpus.documents), corpus.labels


def measure(learner: Any, X: csr_array, Y: csr_array, new: csr_array, true: csr_array, taxonomy: Taxonomy) -> str:
    """Micro and macro F1 in percent, and the CPU seconds of training."""
    start = time.process_time()
    S = np.nan_to_num(learner.fit(X, Y).scores(new), nan=-1e9, neginf=-1e9)
    seconds = time.process_time() - start
    predicted = S > 0 if is_multi_label(taxonomy, Y) else np.zeros(S.shape, dtype=bool)
    predicted[np.arange(len(S)), S.argmax(axis=1)] = True
    P = expand_to_ancestors(csr_array(predicted), taxonomy)
    both = micro_f1(true, P, taxonomy), macro_f1(true, P, taxonomy, over="own")
    return f"{100 * both[0]:.1f} / {100 * both[1]:.1f} ({seconds:.1f} s)"


def is_multi_label(taxonomy: Taxonomy, Y: csr_array) -> bool:
    """Whether at least a twentieth of the documents have more than one label."""
    return float(np.mean([len(row) > 1 for row in taxonomy.decode(Y)])) >= 0.05


def main() -> None:
    """Print two tables: learners on the chosen features, and features with the chosen learner."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the corpora; without it, only the bundled one is measured")
    parser.add_argument("--corpus", action="append", help="measure only this corpus; may be repeated")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: dict[tuple[str, str], list[str]] = {(CHOSEN[0], name): [] for name in LEARNERS}
    rows |= {(name, CHOSEN[1]): [] for name in FEATURES}
    names = []
    for name in given.corpus or CORPORA:
        found = read(name, given.data)
        if found is None:
            continue
        names.append(name)
        taxonomy, texts, labels = found
        order = np.random.default_rng(given.seed).permutation(len(texts))[:MOST]
        held_out, train = order[: len(order) // 4], order[len(order) // 4 :]
        Y, true = (taxonomy.encode([labels[i] for i in part]) for part in (train, held_out))
        matrices: dict[str, Any] = {}
        for features, learner in rows:
            if features not in matrices:
                vectorizer = FEATURES[features].set_params(n_jobs=-1)
                matrices = {features: (vectorizer.fit_transform([texts[i] for i in train]), vectorizer)}
            X, vectorizer = matrices[features]
            new = vectorizer.transform([texts[i] for i in held_out])
            rows[features, learner].append(measure(LEARNERS[learner](taxonomy), X, Y, new, true, taxonomy))
            print(f"{name}: {learner} on {features}: {rows[features, learner][-1]}", flush=True)
    print(f"\n| learner on features chosen by length | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
    for name in LEARNERS:
        print(f"| {name} | {' | '.join(rows[CHOSEN[0], name])} |")
    print(f"\n| features with {CHOSEN[1]} | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
    for name in FEATURES:
        print(f"| {name} | {' | '.join(rows[name, CHOSEN[1]])} |")


if __name__ == "__main__":
    main()
