"""Audit of a corpus: label issues, duplicates with different labels, siblings and classes that cannot be learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ramify.classifier.fitting import MULTI_LABEL_FRACTION
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.data.corpus import StoredTexts, text_of
from ramify.errors import InputError
from ramify.parallel import stage
from ramify.results import Result
from ramify.taxonomy import expand_to_ancestors, find_label_format
from ramify.type_hints import checks_types
from ramify.workflows.auditing import label_issues
from ramify.workflows.auditing.duplicates import find_groups
from ramify.workflows.auditing.issue_details import IssueDescriber, LabelIssue, line_of
from ramify.workflows.auditing.label_issues import InseparableSiblings, RankedIssues, SiblingConfusions
from ramify.workflows.auditing.noise_model import NoiseModel
from ramify.workflows.auditing.out_of_fold import ClassProbabilities, Ints, Memberships, OutOfFold, Sample, fit_folds
from ramify.workflows.evaluation import check_labels
from ramify.workflows.folds import split_into_folds
from ramify.workflows.training import prepared

MAX_ISSUES, FOLDS, MIN_DOCUMENTS, SIMILARITY = 200, 5, 5, 0.9


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Documents with the same words (is_equal), or almost the same, and different labels; one entry per document."""

    places: tuple[str, ...]
    lines: tuple[int | None, ...]
    texts: tuple[str | None, ...]
    labels: tuple[tuple[str, ...], ...]
    is_equal: bool


@dataclass(frozen=True, slots=True)
class ProblemClass:
    """A class that cannot be learnt.

    kind: "empty", "tiny" or "never recognized". documents: at the node or below it; of the class itself where it is never
    recognized. confused_with: the class that is predicted most often for them, and how many times.
    """

    label: str
    kind: str
    documents: int
    confused_with: str | None = None
    times: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class Audit(Result):
    """What an audit found.

    n_issues: how many labels have a more likely one; `issues` has the first of them. skipped: documents of classes that no
    other document has. estimated_wrong: estimated number of wrong labels, by the noise model.
    """

    source: str
    system: str
    documents: int
    nodes: int
    folds: int
    seed: int
    similarity: float
    min_documents: int
    n_issues: int
    skipped: int
    estimated_wrong: float
    issues: list[LabelIssue]
    duplicates: list[Duplicates]
    classes: list[ProblemClass]
    inseparable_siblings: list[InseparableSiblings]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@checks_types
def audit(
    classifier: TextClassifier,
    corpus: Corpus,
    *,
    max_issues: int = MAX_ISSUES,
    folds: int = FOLDS,
    seed: int = 0,
    similarity: float = SIMILARITY,
    min_documents: int = MIN_DOCUMENTS,
) -> Audit:
    """Find labels that are probably wrong by cross-validation: no document is scored by a model that was trained on it.

    max_issues: how many label issues are described, the most likely ones. similarity: fraction of common terms from which
    on two texts are near-duplicates. min_documents: a class with fewer documents is reported as tiny.
    """
    if max_issues < 0 or min_documents < 0:
        raise InputError(f"max_issues is {max_issues} and min_documents {min_documents}; give whole numbers of 0 or more.")
    if not 0.5 <= similarity <= 1:
        raise InputError(f"similarity is {similarity}; give a fraction of common words from 0.5 to 1.")
    if not any(corpus.labels):
        raise InputError(f"no document of {corpus.source} has a label, so there is none to audit; name the column of labels.")
    if isinstance(corpus.documents, StoredTexts):
        raise InputError(f"the texts of {corpus.source} are not held in memory, and an audit needs them; use read_corpus.")
    classifier, taxonomy = prepared(classifier, corpus)
    check_labels(corpus, taxonomy)
    out_of_fold = fit_folds(classifier, corpus, split_into_folds(corpus, taxonomy, folds, seed))
    probabilities, issues, predicted, siblings, estimated_wrong = _detect(out_of_fold)
    form = find_label_format(corpus.labels, True, False, taxonomy)
    groups = find_groups(out_of_fold.X, out_of_fold.own, similarity, are_texts=not corpus.has_vectors)

    def name(node: int) -> str:
        return form.write(taxonomy, [node])[0]

    about = corpus.source, classifier.system, len(corpus), len(taxonomy), folds, seed, similarity, min_documents
    skipped = len(np.unique(out_of_fold.pairs[0][~out_of_fold.has_training_documents()]))
    described = IssueDescriber(out_of_fold, corpus, form, probabilities).describe(issues, max_issues)
    duplicates = [_describe_group(documents, is_equal, corpus) for documents, is_equal in groups]
    classes = find_problem_classes(out_of_fold, predicted, min_documents, name)
    inseparable = [replace(p, first=name(p.first), second=name(p.second)) for p in siblings.inseparable()]
    return Audit(*about, len(issues), skipped, estimated_wrong, described, duplicates, classes, inseparable)


def _detect(out_of_fold: OutOfFold) -> tuple[ClassProbabilities, RankedIssues, Ints, SiblingConfusions, float]:
    """Class probabilities, label issues, the most likely node of each document, siblings, estimated number of wrong labels."""
    sample, documents = Sample.of(out_of_fold), np.arange(out_of_fold.own.shape[0])
    probabilities = ClassProbabilities.fit(sample, out_of_fold.classes)
    noise = NoiseModel.fit(sample, probabilities, out_of_fold.taxonomy)
    given = label_issues.GivenLabels(out_of_fold, probabilities.classes, noise)
    siblings = SiblingConfusions(out_of_fold, probabilities.classes)
    with stage("auditing labels", len(documents)) as step:
        for rows, P in out_of_fold.blocks(documents, probabilities):
            given.add(rows, P)
            siblings.add(rows, P)
            step.advance(len(rows))
    issues = given.issues()
    if np.mean(np.diff(out_of_fold.own.indptr) > 1) >= MULTI_LABEL_FRACTION:
        missing = label_issues.MissingLabels(out_of_fold, out_of_fold.classes)
        for rows, M in out_of_fold.blocks(documents, Memberships.fit(out_of_fold)):
            missing.add(rows, M)
        issues = missing.issues(issues)
    estimated_wrong = float(noise.fractions.sum() * out_of_fold.own.nnz)
    return probabilities, issues, probabilities.classes[given.predicted], siblings, estimated_wrong


def find_problem_classes(
    out_of_fold: OutOfFold, predicted: Ints, min_documents: int, name: Callable[[int], str]
) -> list[ProblemClass]:
    """Classes that cannot be learnt: empty, tiny, then never recognized. predicted: the node predicted for each document."""
    taxonomy = out_of_fold.taxonomy
    below = np.bincount(expand_to_ancestors(out_of_fold.own, taxonomy).indices, minlength=len(taxonomy))
    own = np.bincount(out_of_fold.own.indices, minlength=len(taxonomy))
    is_tiny = (below < min_documents) & (below > 0) & (taxonomy.is_leaf | (own > 0))
    is_empty = below == 0  # all nodes below an empty one are empty, too, so only the highest are reported
    highest = [node for node in np.flatnonzero(is_empty).tolist() if not is_empty[taxonomy.parents_of(node)].any()]
    found = [ProblemClass(name(node), "empty", 0) for node in highest]
    found += [ProblemClass(name(node), "tiny", int(below[node])) for node in np.flatnonzero(is_tiny).tolist()]
    documents, nodes = out_of_fold.pairs
    correct = np.bincount(nodes[predicted[documents] == nodes], minlength=len(own))
    for node in np.flatnonzero((own >= max(min_documents, 1)) & (correct == 0)).tolist():
        others, counts = np.unique(predicted[documents[nodes == node]], return_counts=True)
        most = name(int(others[counts.argmax()]))
        found.append(ProblemClass(name(node), "never recognized", int(own[node]), most, int(counts.max())))
    return found


def _describe_group(documents: list[int], is_equal: bool, corpus: Corpus) -> Duplicates:
    texts = {i: None if corpus.has_vectors else text_of(corpus.documents[i]) for i in documents}
    rows = [(corpus.location_of(i), line_of(corpus, i), texts[i], tuple(corpus.labels[i])) for i in documents]
    places, lines, shown, labels = zip(*rows, strict=True)
    return Duplicates(places, lines, shown, labels, is_equal)
