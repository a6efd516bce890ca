"""From a corpus to a classifier and an honest report on it."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.base import clone

from ramify.datasets import Corpus, hold_out
from ramify.errors import DataError
from ramify.execution import stage
from ramify.features import Vectors
from ramify.metrics import Report, make_report
from ramify.metrics.report import fits_dense
from ramify.pipeline.classifier import TextClassifier
from ramify.taxonomy import LabelForm, find_form, taxonomy_of_labels


@dataclass(frozen=True, slots=True)
class Trained:
    """A classifier, and how well it did on documents that it had not seen.

    report: of a classifier trained on `learnt_from` documents and tested on `tested_on` others; None when nothing was
    tested.
    refitted: whether the classifier was trained once more, on all documents, after that.
    """

    classifier: TextClassifier
    report: Report | None
    learnt_from: int
    tested_on: int
    refitted: bool


def train(
    classifier: TextClassifier,
    corpus: Corpus,
    test: Corpus | None = None,
    *,
    share: float = 0.2,
    seed: int = 0,
    refit: bool = True,
) -> Trained:
    """Train a classifier, test it on a test corpus or on a hold-out, and write the figures into it.

    share: of the documents to hold out when there is no test corpus; 0 for no test.
    refit: after testing on a hold-out, train once more on everything.
    """
    classifier = _prepared(classifier, corpus)
    held_out = test is None and share > 0
    learn, tested = corpus, test
    if held_out:
        learnt, kept = hold_out(corpus.labels, share, seed)
        learn, tested = corpus.take(learnt), corpus.take(kept)
    fitted = _fit(classifier, learn)
    if tested is None or len(tested) == 0:
        return Trained(fitted, None, len(learn), 0, False)
    report = evaluate(fitted, tested)
    if held_out and refit:
        fitted = _fit(clone(classifier), corpus)
    fitted.figures_ |= {"tested_on": len(tested), "held_out": held_out, "evaluation": report.figures}
    return Trained(fitted, report, len(learn), len(tested), held_out and refit)


def evaluate(classifier: TextClassifier, corpus: Corpus) -> Report:
    """Compare a classifier's answers with the labels of a corpus."""
    taxonomy = classifier.taxonomy_
    if len(corpus) == 0:
        raise DataError(f"{corpus.source} has no documents to evaluate on.")
    Y_true = taxonomy.encode(corpus.labels)
    with stage("evaluating"):
        if fits_dense(len(corpus), taxonomy):
            Y_pred, probabilities = classifier.decide_with_probabilities(corpus.documents)
            return make_report(Y_true, Y_pred, taxonomy, probabilities)
        return make_report(Y_true, classifier.predict_matrix(corpus.documents), taxonomy)


def _prepared(classifier: TextClassifier, corpus: Corpus) -> TextClassifier:
    """A copy with the taxonomy of all labels, so that a hold-out changes nothing about it.

    Where documents are vectors, it has vectors in place of a vectorizer.
    """
    made: TextClassifier = clone(classifier)
    if made.taxonomy is None:
        made.taxonomy = taxonomy_of_labels(corpus.labels, made.separator)
    if corpus.has_vectors:
        made.vectorizer = Vectors()
    return made


def _fit(classifier: TextClassifier, corpus: Corpus) -> TextClassifier:
    fitted = classifier.fit(corpus.documents, corpus.labels)
    several = any(len(labels) != 1 for labels in corpus.labels)
    form = find_form(corpus.labels, several, fitted.taxonomy_)
    fitted.form_ = LabelForm(several, form.style, form.separator)
    return fitted
