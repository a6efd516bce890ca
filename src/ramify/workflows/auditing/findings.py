"""A doubtful label with all that a person needs to decide about it: where it stands, what it should be, and why."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify.classifier.explanation import names_of_features
from ramify.data import Corpus
from ramify.learners.base import Contributions
from ramify.taxonomy import LabelFormat
from ramify.workflows.auditing.label_issues import KINDS, NOBODY, Doubts
from ramify.workflows.auditing.noise_model import above_classes
from ramify.workflows.auditing.out_of_fold import Floats, Ints, Unseen

WORDS = 6  # that are told for each finding
DIGITS = 6

Words = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class LabelInfo:
    """A label, the titles from the top down to it, and how likely each of these nodes is, by a learner without the document.

    probability: that the label is right, which for an inner node is that the document ends there.
    """

    label: str
    path: tuple[str, ...]
    probabilities: tuple[float, ...]
    probability: float


@dataclass(frozen=True, slots=True)
class LabelIssue:
    """A document whose labels seem wrong.

    document: its position. place: where it stands, in words. text: None for vectors. labels: all that it has.
    kind: "wrong": `given` should be `suggested`; "too many": it should not have `given`; "missing": it lacks `suggested`.
    proposed: all labels that it should have. distance: steps in the tree between given and suggested; where a label is missing,
    from the nearest that it has; 0 where there is none.
    doubt: what findings are ranked by. words: those that speak for the suggestion, and against what is given.
    """

    document: int
    place: str
    line: int | None
    text: str | None
    labels: tuple[str, ...]
    kind: str
    given: LabelInfo | None
    suggested: LabelInfo | None
    proposed: tuple[LabelInfo, ...]
    distance: int
    doubt: float
    words: Words

    @property
    def kept(self) -> tuple[LabelInfo, ...]:
        """The labels that it has and should keep."""
        return tuple(view for view in self.proposed if view != self.suggested)


class Describer:
    """Makes findings of doubts, with the learners that have not seen the documents."""

    def __init__(self, unseen: Unseen, corpus: Corpus, form: LabelFormat, chances: Any) -> None:
        self.unseen, self.corpus, self.form, self.chances = unseen, corpus, form, chances
        self.above = above_classes(chances.classes, unseen.taxonomy).astype(np.float64)

    def findings(self, doubts: Doubts, most: int) -> list[LabelIssue]:
        """The first of them."""
        n = min(most, len(doubts))
        wanted: dict[int, list[int]] = {}
        for place, document in enumerate(doubts.documents[:n].tolist()):
            wanted.setdefault(document, []).append(place)
        found: dict[int, LabelIssue] = {}
        for rows, (P, scores) in self.unseen.judged(np.asarray(sorted(wanted), dtype=np.int64), self._judge):
            nodes = np.minimum(np.asarray(P @ self.above), 1.0)
            for row, document in enumerate(rows.tolist()):
                found |= {place: self._finding(doubts, place, nodes[row], scores[row]) for place in wanted[document]}
        return [found[place] for place in range(n)]

    def _judge(self, learner: Any, scores: Any) -> tuple[Floats, Any]:
        return self.chances(learner, scores), scores

    def _finding(self, doubts: Doubts, place: int, nodes: Floats, scores: Any) -> LabelIssue:
        document, given, suggested = (int(each[place]) for each in (doubts.documents, doubts.given, doubts.suggested))
        own = self.unseen.own
        labels = own.indices[own.indptr[document] : own.indptr[document + 1]].astype(np.int64)
        kept = [self._view(node, nodes, float(nodes[node])) for node in labels[labels != given].tolist()]
        better = self._view(suggested, nodes, float(doubts.p_suggested[place]))
        return LabelIssue(
            document=document,
            place=self.corpus.location_of(document),
            line=line_of(self.corpus, document),
            text=None if self.corpus.has_vectors else self.corpus.documents[document],
            labels=tuple(self.form.write(self.unseen.taxonomy, labels.tolist())),
            kind=KINDS[doubts.kinds[place]],
            given=self._view(given, nodes, float(doubts.p_given[place])),
            suggested=better,
            proposed=tuple(view for view in (*kept, better) if view is not None),
            distance=self._distance(given, suggested, labels),
            doubt=round(float(doubts.doubt[place]), DIGITS),
            words=self._words(document, given, suggested, labels, scores),
        )

    def _view(self, node: int, nodes: Floats, probability: float) -> LabelInfo | None:
        if node == NOBODY:
            return None
        taxonomy = self.unseen.taxonomy
        chances = tuple(round(float(nodes[here]), DIGITS) for here in taxonomy.nodes_to(node))
        return LabelInfo(self.form.write(taxonomy, [node])[0], taxonomy.path_of(node), chances, round(probability, DIGITS))

    def _distance(self, given: int, suggested: int, labels: Ints) -> int:
        others = labels.tolist() if given == NOBODY else [given]
        return 0 if suggested == NOBODY else min((self._steps(suggested, other) for other in others), default=0)

    def _steps(self, one: int, other: int) -> int:
        first, second = ({node, *self.unseen.taxonomy.ancestors_of(node).tolist()} for node in (one, other))
        return len(first ^ second)

    def _words(self, document: int, given: int, suggested: int, labels: Ints, scores: Any) -> Words:
        """The words that speak most for what is suggested, or kept, and against what is given."""
        learner, x = self.unseen.learners[self.unseen.fold[document]], self.unseen.X[[document]]
        kept = labels[labels != given]
        better = suggested if suggested != NOBODY else int(kept[0]) if len(kept) else NOBODY
        if not learner.is_additive:
            return []
        x.sort_indices()
        spoken = [_contributions(learner, x, scores, node) for node in (better, given)]
        added = np.subtract(*(np.zeros(x.nnz) if each is None else each[1] for each in spoken))
        features = next((each[0] for each in spoken if each is not None), np.zeros(0, dtype=np.int64))
        return self._named(document, x, features, added)

    def _named(self, document: int, x: Any, features: NDArray[np.int64], added: Floats) -> Words:
        names = names_of_features(self.unseen.vectorizer, x, self.corpus.documents[document])
        order = np.argsort(-added[: len(features)], kind="stable")[:WORDS]
        return [(names[int(features[k])], round(float(added[k]), DIGITS)) for k in order if added[k] > 0]


def line_of(corpus: Corpus, document: int) -> int | None:
    """The line at which a document stands, where it comes from one file."""
    return int(corpus.lines[document]) if corpus.lines else None


def _contributions(learner: Any, x: Any, scores: Any, node: int) -> Contributions | None:
    speaker = None if node == NOBODY else learner.explaining_node(scores, node)
    return None if speaker is None else learner.contributions(x, speaker)


# --------------------------------------------------------------------------------------------------------------
# Findings as rows of a file: CSV and TSV to read, JSON Lines with all that the review queue takes.


COLUMNS = (
    "rank", "place", "kind", "labels", "given", "suggested", "p_given", "p_suggested", "distance", "doubt", "words", "text",
)  # fmt: skip
SEPARATOR = " | "  # between several labels


def finding_rows(findings: Iterable[LabelIssue], kind: str) -> Iterator[str]:
    """Lines of a file. kind: "csv", "tsv" or "jsonl"."""
    if kind == "jsonl":
        for rank, finding in enumerate(findings, start=1):
            yield json.dumps({"rank": rank, **asdict(finding)}, ensure_ascii=False) + "\n"
        return
    yield _line(COLUMNS, kind)
    for rank, finding in enumerate(findings, start=1):
        yield _line(_cells(rank, finding), kind)


def told_words(finding: LabelIssue) -> str:
    """The words of a finding in one line."""
    return ", ".join(word for word, _ in finding.words)


def _cells(rank: int, finding: LabelIssue) -> Iterator[Any]:
    given, suggested = finding.given, finding.suggested
    yield from (rank, finding.place, finding.kind, SEPARATOR.join(finding.labels), _label(given), _label(suggested))
    yield from (_chance(given), _chance(suggested), finding.distance, finding.doubt, told_words(finding), finding.text or "")


def _label(view: LabelInfo | None) -> str:
    return "" if view is None else view.label


def _chance(view: LabelInfo | None) -> Any:
    return "" if view is None else view.probability


def _line(cells: Iterable[Any], kind: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n", delimiter="\t" if kind == "tsv" else ",").writerow(cells)
    return line.getvalue()
