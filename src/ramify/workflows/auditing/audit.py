"""Classes that nothing can be learnt for: without documents, with hardly any, or taken for others throughout."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.classifier.fitting import MULTI_LABEL_SHARE
from ramify.classifier.text_classifier import TextClassifier
from ramify.data import Corpus
from ramify.data.corpus import StoredTexts
from ramify.errors import InputError
from ramify.parallel import stage
from ramify.taxonomy import LabelFormat, Taxonomy, expand_to_ancestors, find_label_format
from ramify.workflows.auditing.class_probabilities import Competition, Memberships, Sample
from ramify.workflows.auditing.duplicates import DuplicateGroup, find_groups
from ramify.workflows.auditing.findings import Describer, LabelIssue, line_of
from ramify.workflows.auditing.label_issues import Doubts, Given, Missing
from ramify.workflows.auditing.noise_model import Slips
from ramify.workflows.auditing.out_of_fold import Ints, Unseen, learn_in_folds
from ramify.workflows.auditing.siblings import Inseparable, Rivals
from ramify.workflows.evaluation import check_labels
from ramify.workflows.folds import split_into_folds
from ramify.workflows.training import prepared

KINDS = ("empty", "tiny", "never recognized")


@dataclass(frozen=True, slots=True)
class ClassTrouble:
    """A class that nothing can be learnt for.

    kind: one of KINDS. documents: at the node or below it; of the class itself where it is never recognized.
    taken_for: the node that most of them are taken for, and how many of them.
    """

    node: int
    kind: str
    documents: int
    taken_for: int | None = None
    taken: int = 0


def find_troubled(unseen: Unseen, taken: Ints, fewest: int) -> list[ClassTrouble]:
    """Classes with trouble, in the order of kinds, then of nodes. taken: the node that each document is taken for."""
    taxonomy = unseen.taxonomy
    below = np.bincount(expand_to_ancestors(unseen.own, taxonomy).indices, minlength=len(taxonomy))
    own = np.bincount(unseen.own.indices, minlength=len(taxonomy))
    is_tiny = (below < fewest) & (below > 0) & (taxonomy.is_leaf | (own > 0))
    empty = [ClassTrouble(node, "empty", 0) for node in _highest(below == 0, taxonomy)]
    tiny = [ClassTrouble(node, "tiny", int(below[node])) for node in np.flatnonzero(is_tiny).tolist()]
    return [*empty, *tiny, *_never_recognized(unseen, taken, own, fewest)]


def _highest(is_empty: NDArray[np.bool_], taxonomy: Taxonomy) -> list[int]:
    """Nodes that are empty below parents that are not; what lies below an empty node is empty, too."""
    return [node for node in np.flatnonzero(is_empty).tolist() if not is_empty[taxonomy.parents_of(node)].any()]


def _never_recognized(unseen: Unseen, taken: Ints, own: Ints, fewest: int) -> list[ClassTrouble]:
    documents, nodes = unseen.pairs
    right = np.bincount(nodes[taken[documents] == nodes], minlength=len(own))
    found = []
    for node in np.flatnonzero((own >= fewest) & (right == 0)).tolist():
        others, counts = np.unique(taken[documents[nodes == node]], return_counts=True)
        found.append(ClassTrouble(node, "never recognized", int(own[node]), int(others[counts.argmax()]), int(counts.max())))
    return found


# --------------------------------------------------------------------------------------------------------------
# Labels that are wrong, documents that contradict each other, and classes that cannot be learnt: an audit of a corpus.


MOST, FOLDS, FEWEST, SIMILARITY = 200, 5, 5, 0.9


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Documents with the same words, or nearly, and different labels.

    places, lines, texts, labels: one entry a document. is_equal: whether all have the same words.
    """

    places: tuple[str, ...]
    lines: tuple[int | None, ...]
    texts: tuple[str | None, ...]
    labels: tuple[tuple[str, ...], ...]
    is_equal: bool


@dataclass(frozen=True, slots=True)
class TroubledClass:
    """A class that nothing can be learnt for. kind: "empty", "tiny" or "never recognized", then mostly `taken_for` another."""

    label: str
    kind: str
    documents: int
    taken_for: str | None
    taken: int


@dataclass(frozen=True, slots=True)
class Twins:
    """Two siblings that cannot be told apart.

    documents: of each. right: how many of these were given to the right one of the two. share: of right answers, both counting
    alike. p_value: corrected; that so few are right where two of three should be.
    """

    first: str
    second: str
    documents: tuple[int, int]
    right: tuple[int, int]
    share: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Audit:
    """What is doubtful about a corpus.

    doubtful: how many labels have a better one, of which `findings` are the first. unjudged: documents of classes that no other
    document has. estimated_wrong: about how many labels are wrong, by those that are far off.
    duplicates, classes, twins: what else was found.
    """

    source: str
    system: str
    documents: int
    nodes: int
    folds: int
    seed: int
    similarity: float
    fewest: int
    doubtful: int
    unjudged: int
    estimated_wrong: float
    findings: list[LabelIssue]
    duplicates: list[Duplicates]
    classes: list[TroubledClass]
    twins: list[Twins]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def audit(
    classifier: TextClassifier,
    corpus: Corpus,
    *,
    most: int = MOST,
    folds: int = FOLDS,
    seed: int = 0,
    similarity: float = SIMILARITY,
    fewest: int = FEWEST,
) -> Audit:
    """Look for labels that are wrong; every document is judged by a learner that has not seen it.

    most: how many findings are told, the most doubtful ones. folds: as many parts as documents are dealt into.
    similarity: the share of common terms from which on two texts are nearly the same.
    fewest: a class with fewer documents is tiny.
    """
    _check_settings(most, similarity, fewest)
    _check_corpus(corpus)
    classifier, taxonomy = prepared(classifier, corpus)
    check_labels(corpus, taxonomy)
    unseen = learn_in_folds(classifier, corpus, split_into_folds(corpus, taxonomy, folds, seed))
    judged = _judge(unseen)
    form = find_label_format(corpus.labels, True, False, taxonomy)
    groups = find_groups(unseen.X, unseen.own, similarity, are_texts=not corpus.has_vectors)
    return Audit(
        source=corpus.source,
        system=classifier.system,
        documents=len(corpus),
        nodes=len(taxonomy),
        folds=folds,
        seed=seed,
        similarity=similarity,
        fewest=fewest,
        doubtful=len(judged.doubts),
        unjudged=len(np.unique(unseen.pairs[0][~unseen.was_learnt()])),
        estimated_wrong=judged.estimated,
        findings=Describer(unseen, corpus, form, judged.chances).findings(judged.doubts, most),
        duplicates=[_told_group(group, corpus) for group in groups],
        classes=[_told_class(each, form, taxonomy) for each in find_troubled(unseen, judged.taken, fewest)],
        twins=[_told_twins(pair, form, taxonomy) for pair in judged.rivals.find()],
    )


def _check_settings(most: int, similarity: float, fewest: int) -> None:
    if most < 0 or fewest < 0:
        raise InputError(f"most is {most} and fewest {fewest}; give whole numbers of 0 or more.")
    if not 0.5 <= similarity <= 1:
        raise InputError(f"similarity is {similarity}; give a share of common words from 0.5 to 1.")


def _check_corpus(corpus: Corpus) -> None:
    if not any(corpus.labels):
        raise InputError(f"no document of {corpus.source} has a label, so there is none to audit; name the column of labels.")
    if isinstance(corpus.documents, StoredTexts):
        raise InputError(f"the texts of {corpus.source} are not held in memory, and an audit needs them; use read_corpus.")


# ---- judging ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """What learners that have not seen documents say of them. taken: the node that each is taken for."""

    chances: Competition
    doubts: Doubts
    taken: Ints
    rivals: Rivals
    estimated: float


def _judge(unseen: Unseen) -> Judged:
    sample = Sample.of(unseen)
    chances = Competition.learn(sample, unseen.classes)
    slips = Slips.learn(sample, chances, unseen.taxonomy)
    given, rivals = Given(unseen, chances, slips), Rivals(unseen, chances.classes)
    with stage("judging labels", unseen.own.shape[0]) as step:
        for rows, P in unseen.judged(np.arange(unseen.own.shape[0]), chances):
            given.look(rows, P)
            rivals.look(rows, P)
            step.advance(len(rows))
    several = np.mean(np.diff(unseen.own.indptr) > 1) >= MULTI_LABEL_SHARE
    doubts = _look_for_missing(unseen).find(given.find()) if several else given.find()
    return Judged(chances, doubts, chances.classes[given.taken], rivals, float(slips.shares.sum() * unseen.own.nnz))


def _look_for_missing(unseen: Unseen) -> Missing:
    memberships, found = Memberships.learn(unseen), Missing(unseen, unseen.classes)
    for rows, M in unseen.judged(np.arange(unseen.own.shape[0]), memberships):
        found.look(rows, M)
    return found


# ---- nodes and positions in words ---------------------------------------------------------------------------------------


def _told_group(group: DuplicateGroup, corpus: Corpus) -> Duplicates:
    return Duplicates(
        places=tuple(corpus.location_of(i) for i in group.documents),
        lines=tuple(line_of(corpus, i) for i in group.documents),
        texts=tuple(None if corpus.has_vectors else corpus.documents[i] for i in group.documents),
        labels=tuple(tuple(corpus.labels[i]) for i in group.documents),
        is_equal=group.is_equal,
    )


def _told_class(found: ClassTrouble, form: LabelFormat, taxonomy: Taxonomy) -> TroubledClass:
    label = form.write(taxonomy, [found.node])[0]
    taken_for = None if found.taken_for is None else form.write(taxonomy, [found.taken_for])[0]
    return TroubledClass(label, found.kind, found.documents, taken_for, found.taken)


def _told_twins(pair: Inseparable, form: LabelFormat, taxonomy: Taxonomy) -> Twins:
    first, second = form.write(taxonomy, [pair.first, pair.second])
    return Twins(first, second, pair.documents, pair.right, pair.share, pair.p_value)
