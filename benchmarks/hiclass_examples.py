"""HiClass's README examples beside the same in Ramify: ``python benchmarks/hiclass_examples.py``.

Both get the same data, and both answers are printed. The first two examples are those of HiClass's README (its toy data, in our
words); the third trains every estimator of HiClass and the learner nearest to it on the vectors of the bundled corpus, and
measures all predictions with the metrics of both packages, which have to agree. Needs ``pip install hiclass``.
"""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import ramify
from ramify.features import Vectorizer
from ramify.learners import NodeClassifiers, OneVsRestSVM, PathSVM, TopDownSVM
from ramify.learners.base import Learner
from ramify.metrics import hierarchical_f1, hierarchical_precision, hierarchical_recall

Paths = list[list[str]]
ANIMALS = [
    ["Animal", "Mammal", "Sheep"], ["Animal", "Mammal", "Cow"], ["Animal", "Reptile", "Snake"], ["Animal", "Reptile", "Lizard"],
]  # fmt: skip
LOANS = {
    "Struggling to repay loan": ["Loan", "Student loan"],
    "Unable to get annual report": ["Credit reporting", "Reports"],
}
AGREE = 1e-9


def main() -> int:
    """Run all examples, if HiClass is installed."""
    if find_spec("hiclass") is None:
        print("HiClass is not installed, so there is nothing to compare with; install it with: pip install hiclass.")
        return 0
    warnings.simplefilter("ignore")
    numbers()
    texts()
    return corpus()


def numbers() -> None:
    """Documents that are numbers: a classifier per node."""
    from hiclass import LocalClassifierPerNode

    X, new = [[1], [2], [3], [4]], [[4], [3], [2], [1]]
    theirs = LocalClassifierPerNode(local_classifier=DecisionTreeClassifier(random_state=0)).fit(X, ANIMALS)

    taxonomy = ramify.Taxonomy.from_paths(map("/".join, ANIMALS))
    ours = TopDownSVM(taxonomy, C=100).fit(X, list(map("/".join, ANIMALS)))

    print("\nNumbers: LocalClassifierPerNode (decision trees) | TopDownSVM")
    for given, one, other in zip(new, theirs.predict(new), ours.predict(new), strict=True):
        print(f"  {given[0]}: {'/'.join(one):24} | {other}")


def texts() -> None:
    """Texts: a pipeline with a classifier per parent node."""
    from hiclass import LocalClassifierPerParentNode

    given, new = list(LOANS), list(reversed(LOANS))
    theirs = make_pipeline(TfidfVectorizer(), LocalClassifierPerParentNode(local_classifier=LogisticRegression()))
    theirs.fit(given, list(LOANS.values()))

    ours = ramify.TextClassifier("td-svm").fit(given, [" > ".join(path) for path in LOANS.values()])

    print("\nTexts: TfidfVectorizer + LocalClassifierPerParentNode | TextClassifier('td-svm')")
    for text, one, other in zip(new, theirs.predict(new), ours.predict(new), strict=True):
        print(f"  {text:28}: {' > '.join(one):26} | {other}")


def corpus() -> int:
    """Every estimator on the bundled corpus; documents at leaves with one label, as HiClass wants them."""
    import hiclass

    shop = ramify.data.load_electronics()
    taxonomy = shop.taxonomy
    vectorizer = Vectorizer()
    (train, y_train), (test, y_test) = (_single(part, taxonomy) for part in (shop.train, shop.test))
    X, X_new = vectorizer.fit_transform(train), vectorizer.transform(test)
    svm, logistic = LinearSVC(random_state=0), LogisticRegression()  # the latter where HiClass needs probabilities
    rows: list[tuple[str, Any, Learner]] = [
        ("LocalClassifierPerParentNode | TopDownSVM", hiclass.LocalClassifierPerParentNode(svm), TopDownSVM(taxonomy)),
        ("LocalClassifierPerNode | NodeClassifiers", hiclass.LocalClassifierPerNode(logistic), NodeClassifiers(taxonomy)),
        ("LocalClassifierPerLevel | PathSVM", hiclass.LocalClassifierPerLevel(logistic), PathSVM(taxonomy)),
        ("FlatClassifier | OneVsRestSVM", hiclass.FlatClassifier(svm), OneVsRestSVM(taxonomy)),
    ]
    print(f"\nBundled corpus: {len(train):,} documents to train on, {len(test):,} to test; hierarchical F1")
    problems = 0
    for name, estimator, learner in rows:
        theirs = _named(estimator.fit(X, _levels(y_train)).predict(X_new))
        ours = taxonomy.decode(_decided(learner.fit(X, _joined(y_train)), X_new))
        found = [_measured(y_test, given, taxonomy) for given in (theirs, ours)]
        problems += sum(differs for _, differs in found)
        print(f"  {name:45} {' | '.join(f'{score:.4f}' for score, _ in found)}")
    print("the metrics of both packages agree" if not problems else f"the metrics differ {problems} times")
    return int(problems > 0)


def _decided(learner: Learner, X: Any) -> Any:
    """The labels of some vectors, one each: classifiers of nodes decide from the top down, and the first label counts."""
    if not isinstance(learner, NodeClassifiers):
        return learner.taxonomy_.encode(learner.predict(X).tolist())
    found = learner.taxonomy_.decode(ramify.decisions.top_down(learner.decision_function(X), learner.taxonomy_))
    return learner.taxonomy_.encode([labels[:1] for labels in found])


def _single(part: Any, taxonomy: ramify.Taxonomy) -> tuple[list[str], Paths]:
    """The documents that have one label, with its path."""
    nodes = [[taxonomy.index(label) for label in labels] for labels in part.labels]
    chosen = [i for i, given in enumerate(nodes) if len(given) == 1]
    return [part.documents[i] for i in chosen], [list(taxonomy.path_of(nodes[i][0])) for i in chosen]


def _levels(paths: Paths, depth: int | None = None) -> Any:
    """Paths as HiClass wants them: an array with a column per level, filled up with empty texts."""
    depth = depth or max(map(len, paths))
    return np.array([path + [""] * (depth - len(path)) for path in paths])


def _named(levels: Any) -> list[list[str]]:
    """An array of levels as labels."""
    paths = ([part for part in path if part] for path in levels.tolist())
    return [[" > ".join(path)] if path else [] for path in paths]


def _path(labels: list[str], taxonomy: ramify.Taxonomy) -> list[str]:
    return list(taxonomy.path_of(taxonomy.index(labels[0]))) if labels else []


def _joined(paths: Paths) -> list[str]:
    return [" > ".join(path) for path in paths]


def _measured(truth: Paths, found: list[list[str]], taxonomy: ramify.Taxonomy) -> tuple[float, bool]:
    """Hierarchical F1, and whether precision, recall or F1 differ between the packages."""
    from hiclass.metrics import f1, precision, recall

    Y, P = taxonomy.encode(_joined(truth)), taxonomy.encode([label or None for label in found])
    depth = taxonomy.n_levels
    theirs = _levels(truth, depth), _levels([_path(labels, taxonomy) for labels in found], depth)
    pairs = ((hierarchical_precision, precision), (hierarchical_recall, recall), (hierarchical_f1, f1))
    differs = any(abs(ours(Y, P, taxonomy) - other(*theirs)) > AGREE for ours, other in pairs)
    return hierarchical_f1(Y, P, taxonomy), differs


if __name__ == "__main__":
    sys.exit(main())
