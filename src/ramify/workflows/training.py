"""From a corpus to a classifier and an honest report on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sklearn.base import clone

from ramify.classifier.guarantees import guarantee_note, guarantees_kept
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus, comparable_keys, hold_out
from ramify.errors import DataError, InputError, LabelError, suggest
from ramify.features import Vectors
from ramify.metrics import Report, make_report
from ramify.metrics.evaluation import check_hierarchy, fits_dense
from ramify.parallel import stage
from ramify.taxonomy import Taxonomy, as_taxonomy, taxonomy_of_labels
from ramify.workflows.wrong_answers import PredictionError, worst_errors


@dataclass(frozen=True, slots=True)
class TrainResult:
    """A classifier, and how well it did on documents that it had not seen.

    report: of a classifier trained on `learnt_from` documents and tested on `tested_on` others; None when nothing was tested.
    refitted: whether the classifier was trained once more, on all documents, after that.
    seen_before: how many test documents have the same text as one that was learnt from.
    """

    classifier: TextClassifier
    report: Report | None
    learnt_from: int
    tested_on: int = 0
    refitted: bool = False
    seen_before: int = 0


def train(
    classifier: TextClassifier,
    corpus: Corpus,
    test: Corpus | None = None,
    *,
    share: float = 0.2,
    seed: int = 0,
    refit: bool = True,
    more: Corpus | None = None,
) -> TrainResult:
    """Train a classifier, test it on a test corpus or on a hold-out, and write the figures into it.

    share: of the documents to hold out when there is no test corpus; 0 for no test.
    refit: after testing on a hold-out, train once more on everything.
    more: documents that are learnt from and never tested on, such as reviewed ones; one with the text of a document of the
    corpus takes its place.
    """
    parts = divide(classifier, corpus, test, share=share, seed=seed, more=more)
    trained = train_on_part(parts)
    return train_on_all(parts, trained) if parts.is_held_out and refit and trained.report is not None else trained


@dataclass(frozen=True, slots=True)
class Parts:
    """What is learnt from and tested on.

    classifier: not fitted; its taxonomy is that of all labels. from_labels: whether these spelled it out.
    learn, tested: what a report is on; None and everything to learn from where there is none. is_held_out: whether what is
    tested on was taken from the same documents.
    """

    classifier: TextClassifier
    taxonomy: Taxonomy
    from_labels: bool
    everything: Corpus
    learn: Corpus
    tested: Corpus | None
    is_held_out: bool


def divide(
    classifier: TextClassifier, corpus: Corpus, test: Corpus | None, *, share: float, seed: int, more: Corpus | None
) -> Parts:
    """The documents to learn from and to test on, as :func:`train` takes them; refuses labels that are unknown."""
    from_labels = classifier.taxonomy is None
    corpus = corpus if more is None else _corrected(corpus, more)
    everything = corpus if more is None else corpus.joined(more)
    classifier, taxonomy = prepared(classifier, everything)
    for part in (corpus, more):
        if part is not None:
            check_labels(part, taxonomy)
    held_out = test is None and share != 0
    learn, tested = _split(corpus, share, seed) if held_out else (corpus, test)
    learn = learn if more is None else learn.joined(more)
    if tested is None or len(tested) == 0:
        return Parts(classifier, taxonomy, from_labels, everything, everything, None, False)
    check_labels(tested, taxonomy)
    return Parts(classifier, taxonomy, from_labels, everything, learn, tested, held_out)


def train_on_part(parts: Parts) -> TrainResult:
    """A classifier that learnt from what is not tested on, and how well it did there."""
    fitted = _fit(clone(parts.classifier), parts.learn, parts.from_labels)
    learnt_from = int(fitted.figures_["documents"])
    if parts.tested is None:
        return TrainResult(fitted, None, learnt_from)
    report = evaluate(fitted, parts.tested)
    _note_report(fitted, report, parts)
    return TrainResult(fitted, report, learnt_from, len(parts.tested), False, _count_seen(parts.learn, parts.tested))


def train_on_all(parts: Parts, trained: TrainResult) -> TrainResult:
    """The same classifier, which learnt once more, from everything; the figures stay those of the one that was tested."""
    fitted = _refit(trained.classifier, clone(parts.classifier), parts.everything, parts.from_labels)
    assert trained.report is not None
    _note_report(fitted, trained.report, parts)
    return replace(trained, classifier=fitted, refitted=True)


def _note_report(fitted: TextClassifier, report: Report, parts: Parts) -> None:
    tested_on = 0 if parts.tested is None else len(parts.tested)
    fitted.figures_ |= {"tested_on": tested_on, "held_out": parts.is_held_out, "evaluation": report.figures}
    fitted.report_ = report.as_dict()


def evaluate(classifier: TextClassifier, corpus: Corpus, hierarchy: str = "original") -> Report:
    """Compare a classifier's answers with the labels of a corpus.

    hierarchy: "modified" adds F1 on the modified hierarchy, in which inner nodes have leaves for their own documents.
    """
    return evaluate_with_errors(classifier, corpus, hierarchy, most_errors=0)[0]


def evaluate_with_errors(
    classifier: TextClassifier, corpus: Corpus, hierarchy: str = "original", most_errors: int = 20
) -> tuple[Report, list[PredictionError]]:
    """The same as :func:`evaluate`, and some documents with wrong answers."""
    check_hierarchy(hierarchy)
    taxonomy = classifier.taxonomy_
    if len(corpus) == 0:
        raise DataError(f"{corpus.source} has no labelled documents to evaluate on.")
    corpus = fitting(classifier, corpus)
    check_labels(corpus, taxonomy)
    Y_true = taxonomy.encode(corpus.labels)
    with stage("evaluating"):
        if fits_dense(len(corpus), taxonomy):
            Y_pred, probabilities = classifier.decide_with_probabilities(corpus.documents)
            before = None if classifier.calibration_ is None else classifier.uncalibrated().predict_proba(corpus.documents)
            report = make_report(Y_true, Y_pred, taxonomy, probabilities, hierarchy, before)
            if classifier.guarantee_ is not None:
                kept = guarantees_kept(classifier, probabilities, Y_true, Y_pred)
                report = replace(report, guarantees=kept, notes=[*report.notes, guarantee_note(classifier.guarantee_)])
            return report, worst_errors(corpus, taxonomy, Y_true, Y_pred, probabilities, most_errors)
        Y_pred = classifier.predict_matrix(corpus.documents)
        report = make_report(Y_true, Y_pred, taxonomy, hierarchy=hierarchy)
        why = "documents × nodes is too large for ranking and calibration; evaluate on fewer documents to see them"
        return replace(report, notes=[why]), worst_errors(corpus, taxonomy, Y_true, Y_pred, None, most_errors)


def check_labels(corpus: Corpus, taxonomy: Taxonomy) -> None:
    """Refuse labels that the taxonomy does not have, with their number and the place of the first."""
    known: dict[str, bool] = {}
    for labels in corpus.labels:
        for label in labels:
            if label not in known:
                known[label] = label in taxonomy
    unknown = [label for label, is_known in known.items() if not is_known]
    if not unknown:
        return
    where = [i for i, labels in enumerate(corpus.labels) if any(not known[label] for label in labels)]
    many = f", and {len(unknown) - 1:,} more labels are unknown" if len(unknown) > 1 else ""
    raise LabelError(
        f"{corpus.location_of(where[0])}: label {unknown[0]!r} is not in the taxonomy of {len(taxonomy):,} nodes{many} "
        f"({len(where):,} of {len(corpus):,} documents); add the nodes, or put the labels right."
        f"{suggest(unknown[0], taxonomy.names[:20_000])}"
    )


def fitting(classifier: TextClassifier, corpus: Corpus) -> Corpus:
    """A corpus as the classifier can read it; refuses vectors for a model of texts, and texts for one of vectors."""
    if not corpus.has_vectors:
        refuse_texts(classifier, corpus.source)
        return corpus
    if not isinstance(classifier.vectorizer_, Vectors):
        raise InputError(f"the model learnt from texts, but {corpus.source} holds vectors; give texts.")
    return corpus.with_width(classifier.vectorizer_.n_features_in_)


def refuse_texts(classifier: TextClassifier, source: str) -> None:
    """Refuse texts for a model of vectors."""
    if isinstance(classifier.vectorizer_, Vectors):
        raise InputError(f"the model learnt from vectors, but {source} holds texts; give vectors, as svmlight.")


def _corrected(corpus: Corpus, more: Corpus) -> Corpus:
    """A corpus without the documents that others take the place of."""
    if corpus.has_vectors or more.has_vectors:
        raise InputError("documents can be added to texts only, and one of the files holds vectors; put them into one file.")
    return corpus.without_texts_of(more)


def prepared(classifier: TextClassifier, corpus: Corpus) -> tuple[TextClassifier, Taxonomy]:
    """A copy whose taxonomy is that of all labels, and which takes vectors where documents are vectors."""
    made: TextClassifier = clone(classifier)
    given = made.taxonomy
    taxonomy = taxonomy_of_labels(corpus.labels, made.separator) if given is None else as_taxonomy(given)
    made.taxonomy = taxonomy
    if corpus.has_vectors:
        made.vectorizer = Vectors()
    return made, taxonomy


def _split(corpus: Corpus, share: float, seed: int) -> tuple[Corpus, Corpus]:
    keys = None if corpus.has_vectors else corpus.keys
    learnt, kept = hold_out(corpus.labels, share, seed, keys)
    return corpus.take(learnt), corpus.take(kept)


def _fit(classifier: TextClassifier, corpus: Corpus, from_labels: bool) -> TextClassifier:
    several = any(len(labels) != 1 for labels in corpus.labels)
    fitted = classifier.fit(corpus.documents, corpus.labels)
    fitted.form_ = replace(fitted.form_, multi_label=several)
    fitted.figures_["columns"] = corpus.found
    fitted.figures_["taxonomy_from_labels"] = from_labels
    return fitted


def _refit(tested: TextClassifier, classifier: TextClassifier, corpus: Corpus, from_labels: bool) -> TextClassifier:
    """Learn from all documents; what scores mean is known from the one that was tested, unless documents are kept back."""
    if tested.calibration_ is None or classifier.keep_back > 0:
        return _fit(classifier, corpus, from_labels)
    fitted = _fit(classifier.set_params(calibrate=False), corpus, from_labels)
    fitted.calibrate, fitted.calibration_, fitted.guarantee_ = True, tested.calibration_, tested.guarantee_
    return fitted


def _count_seen(learn: Corpus, tested: Corpus) -> int:
    if learn.has_vectors or tested.has_vectors:
        return 0
    learnt, asked = comparable_keys(learn, tested)
    seen = set(learnt)
    return sum(key in seen for key in asked)
