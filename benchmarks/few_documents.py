"""Few documents a class: ``python benchmarks/few_documents.py --data DIR``.

DIR holds corpora in folders of their own: train.*, test.* and taxonomy.tsv; the bundled corpus needs none. Of the training
documents of each class (of several labels the first counts here) so many are drawn at random, all where there are fewer, with
other documents for each seed; all systems of a seed train on the same. They are tested on all test documents, or on a fixed
sample of 5,000 where there are more. Figures are accuracy (all labels of a document and no other were predicted) and macro F1
over classes that occur in test documents or predictions, in percent: mean ± standard error over seeds. The table is Markdown.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measuring import host_facts
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from timing import show

import ramify
from ramify.classifier import TextClassifier
from ramify.data import Corpus, load_electronics, read_corpus
from ramify.learners import ShrinkageNaiveBayes
from ramify.metrics import macro_f1
from ramify.taxonomy import Taxonomy, read_taxonomy

NAMES = ("esco_titles", "arxiv_small", "20news_bydate", "bundled")
SIZES = (1, 2, 5, 10)
MOST_TESTED = 5000

Labels = Sequence[Sequence[str]]
Figures = dict[str, Any]
Predict = Callable[[Corpus, Corpus], Labels]  # trains on the first, gives the labels of the second


def main() -> None:
    """Measure every corpus, system and number of documents, and keep what was measured."""
    given = parse()
    rows: list[Figures] = []
    sizes = given.size or SIZES
    show(["corpus", "system", *map(str, sizes)])
    show(["---"] * (2 + len(sizes)))
    for name in given.corpus or NAMES:
        taxonomy, train, test = read(name, given.data)
        parts = {size: [draw(train, size, seed) for seed in range(given.seeds)] for size in sizes}
        for system in given.system or SYSTEMS:
            found = [measure(SYSTEMS[system](taxonomy), taxonomy, parts[size], test) for size in sizes]
            rows += [
                {"corpus": name, "documents": size, "system": system, **row} for size, row in zip(sizes, found, strict=True)
            ]
            show([name, system, *(f"{told(row['accuracy'])} / {told(row['macro_f1'])}" for row in found)])
    if given.out:
        given.out.write_text(json.dumps({"machine": host_facts(), "seeds": given.seeds, "rows": rows}, indent=1))


def measure(predict_after: Predict, taxonomy: Taxonomy, parts: list[Corpus], test: Corpus) -> Figures:
    """The figures of a system on some documents a class, one for each seed."""
    accuracy, macro_f1 = zip(*(evaluate(predict_after, taxonomy, part, test) for part in parts), strict=True)
    return {"accuracy": accuracy, "macro_f1": macro_f1}


def evaluate(predict_after: Predict, taxonomy: Taxonomy, train: Corpus, test: Corpus) -> tuple[float, float]:
    """Accuracy and macro F1 of a system that was trained on some documents, in percent."""
    predicted = predict_after(train, test)
    Y, found = taxonomy.encode(test.labels), taxonomy.encode(predicted)
    is_right = np.asarray((found != Y).sum(axis=1)).ravel() == 0
    return 100 * float(is_right.mean()), 100 * float(macro_f1(Y, found, taxonomy, over="own", empty="skip"))


# ---- documents ------------------------------------------------------------------------------------------------------


def read(name: str, data: Path | None) -> tuple[Taxonomy, Corpus, Corpus]:
    """A taxonomy (of the newsgroups that of six topics), the training documents, and at most MOST_TESTED test documents."""
    if name == "bundled":
        shop = load_electronics()
        return shop.taxonomy, shop.train.labelled(), shop.test.labelled()
    if data is None or not (data / name).is_dir():
        raise SystemExit(f"no corpus {name!r}; give --data DIR with a folder of that name, or --corpus bundled.")
    topical = data / name / "taxonomy_topical6.tsv"
    taxonomy = read_taxonomy(topical if topical.exists() else data / name / "taxonomy.tsv")
    train, test = (
        read_corpus(data / name / f"{part}.jsonl.gz", text="text", label="labels", is_label=taxonomy.__contains__).labelled()
        for part in ("train", "test")
    )
    chosen = np.random.default_rng(0).permutation(len(test))[:MOST_TESTED]
    return taxonomy, train, test.take(np.sort(chosen))


def draw(train: Corpus, size: int, seed: int) -> Corpus:
    """So many documents of each class, those of all classes mixed."""
    seen: Counter[str] = Counter()
    chosen = []
    for document in np.random.default_rng(seed).permutation(len(train)).tolist():
        first = train.labels[document][0]
        seen[first] += 1
        if seen[first] <= size:
            chosen.append(document)
    return replace(train.take(np.asarray(chosen)), lines=(), locations=None)


# ---- systems --------------------------------------------------------------------------------------------------------


def ours(make: Callable[[Taxonomy], TextClassifier]) -> Callable[[Taxonomy], Predict]:
    """A classifier of Ramify."""

    def prepare(taxonomy: Taxonomy) -> Predict:
        def predict(train: Corpus, test: Corpus) -> Labels:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few documents are what is measured
                fitted = make(taxonomy).fit(train.documents, train.labels)
            return [[labels] if isinstance(labels, str) else labels for labels in fitted.predict(test.documents)]

        return predict

    return prepare


def linear_svc(taxonomy: Taxonomy) -> Predict:
    """scikit-learn on words, with its defaults; a document counts for the first of its labels."""

    def predict(train: Corpus, test: Corpus) -> Labels:
        fitted = make_pipeline(TfidfVectorizer(), LinearSVC())
        fitted.fit(train.documents, [labels[0] for labels in train.labels])
        return [[label] for label in fitted.predict(test.documents)]

    return predict


SYSTEMS = {
    "default": ours(lambda taxonomy: ramify.TextClassifier(taxonomy=taxonomy)),
    "shrinkage-nb": ours(lambda taxonomy: TextClassifier("shrinkage-nb", taxonomy)),
    "shrinkage-nb, tied weights": ours(
        lambda taxonomy: TextClassifier("shrinkage-nb", taxonomy, learner=ShrinkageNaiveBayes(tie_weights="always"))
    ),
    "shrinkage-nb, the paper's weights": ours(
        lambda taxonomy: TextClassifier("shrinkage-nb", taxonomy, learner=ShrinkageNaiveBayes(tie_weights="never"))
    ),
    "nb": ours(lambda taxonomy: TextClassifier("nb", taxonomy)),
    "scikit-learn LinearSVC": linear_svc,
}


# ---- reporting ------------------------------------------------------------------------------------------------------


def told(values: Sequence[float]) -> str:
    """The mean and its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.1f} ± {error:.1f}"


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the corpora")
    parser.add_argument("--corpus", action="append", choices=NAMES, help="only this one; may be given again")
    parser.add_argument("--size", action="append", type=int, help="documents a class (default: 1, 2, 5 and 10)")
    parser.add_argument("--system", action="append", choices=list(SYSTEMS), help="only this one; may be given again")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
