"""Train a classifier on a corpus, and evaluate it on documents that were not used in training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sklearn.base import clone

from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus, comparable_keys, hold_out
from ramify.errors import InputError
from ramify.features import Vectors
from ramify.metrics import Report
from ramify.taxonomy import Taxonomy, as_taxonomy, taxonomy_of_labels
from ramify.workflows.evaluation import check_labels, evaluate_with_errors

if TYPE_CHECKING:
    from ramify.workflows.tuning import TuningResult


@dataclass(frozen=True, slots=True)
class TrainResult:
    """A classifier, and its evaluation on documents that were not used in training.

    report: of a classifier trained on `trained_on` documents and tested on `tested_on` others; None without a test.
    refitted: whether the classifier was trained again, on all documents, after that.
    test_duplicates: test documents with the same text as a training document. tuning: how `--auto` chose the classifier.
    """

    classifier: TextClassifier
    report: Report | None
    trained_on: int
    tested_on: int = 0
    refitted: bool = False
    test_duplicates: int = 0
    tuning: TuningResult | None = None


@dataclass(frozen=True, slots=True)
class TrainTestSplit:
    """Training and test documents.

    classifier: not fitted; its taxonomy covers all labels. from_labels: whether the taxonomy was read from the labels.
    full: all documents. train, test: the documents of the evaluation; without a test, `train` is `full` and `test` None.
    is_held_out: whether the test documents were taken from the same corpus.
    """

    classifier: TextClassifier
    taxonomy: Taxonomy
    from_labels: bool
    full: Corpus
    train: Corpus
    test: Corpus | None
    is_held_out: bool


def train_classifier(
    classifier: TextClassifier,
    corpus: Corpus,
    test: Corpus | None = None,
    *,
    holdout: float = 0.2,
    seed: int = 0,
    refit: bool = True,
    more: Corpus | None = None,
) -> TrainResult:
    """Train a classifier, evaluate it on a test corpus or a hold-out, and store the figures in it.

    holdout: fraction of the documents to hold out when there is no test corpus; 0 for no test.
    refit: after the test on a hold-out, train again on everything.
    more: documents for training only, such as reviewed ones; each replaces a document of the corpus with the same text.
    """
    parts = split_train_test(classifier, corpus, test, holdout=holdout, seed=seed, more=more)
    trained = train_on_part(parts)
    return train_on_all(parts, trained) if parts.is_held_out and refit and trained.report is not None else trained


def split_train_test(
    classifier: TextClassifier, corpus: Corpus, test: Corpus | None, *, holdout: float, seed: int, more: Corpus | None
) -> TrainTestSplit:
    """The training and test documents of :func:`train_classifier`; refuses unknown labels."""
    from_labels = classifier.taxonomy is None
    if more is not None:
        if corpus.has_vectors or more.has_vectors:
            raise InputError(
                "documents can only be added to texts, and one of the files holds vectors; put them into one file."
            )
        corpus = corpus.without_texts_of(more)
    full = corpus if more is None else corpus.joined(more)
    classifier, taxonomy = prepared(classifier, full)
    for part in (corpus, more):
        if part is not None:
            check_labels(part, taxonomy)
    is_held_out, train = test is None and holdout != 0, corpus
    if is_held_out:
        keys = None if corpus.has_vectors else corpus.keys
        train, test = (corpus.take(rows) for rows in hold_out(corpus.labels, holdout, seed, keys))
    if test is None or len(test) == 0:
        return TrainTestSplit(classifier, taxonomy, from_labels, full, full, None, False)
    check_labels(test, taxonomy)
    train = train if more is None else train.joined(more)
    return TrainTestSplit(classifier, taxonomy, from_labels, full, train, test, is_held_out)


def prepared(classifier: TextClassifier, corpus: Corpus) -> tuple[TextClassifier, Taxonomy]:
    """A copy whose taxonomy covers all labels, and which reads vectors where documents are vectors."""
    made: TextClassifier = clone(classifier)
    given = made.taxonomy
    taxonomy = taxonomy_of_labels(corpus.labels, made.separator) if given is None else as_taxonomy(given)
    made.taxonomy = taxonomy
    if corpus.has_vectors:
        made.vectorizer = Vectors()
    return made, taxonomy


def train_on_part(parts: TrainTestSplit) -> TrainResult:
    """Train on the training documents, and evaluate on the test documents."""
    train, test = parts.train, parts.test
    fitted = clone(parts.classifier).fit(train.documents, train.labels)
    _note_corpus(fitted, train, parts.from_labels)
    trained_on = int(fitted.figures_["documents"])
    if test is None:
        return TrainResult(fitted, None, trained_on)
    report, _ = evaluate_with_errors(fitted, test, most_errors=0)
    _note_report(fitted, report, parts)
    n_duplicates = 0
    if not (train.has_vectors or test.has_vectors):
        train_keys, test_keys = comparable_keys(train, test)
        known = set(train_keys)
        n_duplicates = sum(key in known for key in test_keys)
    return TrainResult(fitted, report, trained_on, len(test), False, n_duplicates)


def train_on_all(parts: TrainTestSplit, trained: TrainResult) -> TrainResult:
    """Train the same classifier again on all documents; the report stays that of the one that was tested.

    Its calibration and guarantee are reused, unless documents are kept back.
    """
    tested, classifier = trained.classifier, clone(parts.classifier)
    is_reused = tested.calibration_ is not None and not classifier.keep_back > 0
    fitted = classifier.set_params(calibrate=classifier.calibrate and not is_reused).fit(
        parts.full.documents, parts.full.labels
    )
    _note_corpus(fitted, parts.full, parts.from_labels)
    if is_reused:
        fitted.calibrate, fitted.calibration_, fitted.guarantee_ = True, tested.calibration_, tested.guarantee_
    assert trained.report is not None
    _note_report(fitted, trained.report, parts)
    return replace(trained, classifier=fitted, refitted=True)


def _note_corpus(fitted: TextClassifier, corpus: Corpus, from_labels: bool) -> None:
    fitted.form_ = replace(fitted.form_, multi_label=any(len(labels) != 1 for labels in corpus.labels))
    fitted.figures_ |= {"columns": corpus.found, "taxonomy_from_labels": from_labels}


def _note_report(fitted: TextClassifier, report: Report, parts: TrainTestSplit) -> None:
    tested_on = 0 if parts.test is None else len(parts.test)
    fitted.figures_ |= {"tested_on": tested_on, "held_out": parts.is_held_out, "evaluation": report.figures}
    fitted.report_ = report.as_dict()
