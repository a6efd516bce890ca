"""Label issues with all that a person needs to decide: the place, the given and the suggested label, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ramify.classifier.explanation import names_of_features
from ramify.data import Corpus
from ramify.data.corpus import text_of
from ramify.formatting import csv_line
from ramify.learners.base import Contributions
from ramify.taxonomy import LabelFormat
from ramify.workflows.auditing.label_issues import KINDS, NO_NODE, RankedIssues
from ramify.workflows.auditing.noise_model import above_classes
from ramify.workflows.auditing.out_of_fold import ClassProbabilities, Floats, Ints, OutOfFold

N_WORDS = 6  # of each issue
DIGITS = 6

Words = list[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class LabelInfo:
    """A label, the titles of its path, and the out-of-fold probability of each node of the path.

    probability: that the label is right; for an inner node, that it is a most specific label.
    """

    label: str
    path: tuple[str, ...]
    probabilities: tuple[float, ...]
    probability: float


@dataclass(frozen=True, slots=True)
class LabelIssue:
    """A document with a label that is probably wrong.

    document: its position. place: where it is, in words. text: None for vectors. labels: all that it has.
    kind: "wrong": `given` should be `suggested`; "extra": `given` should go; "missing": `suggested` should be added.
    proposed: all labels that it should have. distance: steps in the tree between given and suggested; where a label is missing,
    from the closest given one; 0 where there is none.
    score: what issues are ranked by. words: those that speak for the suggested and against the given label, with weights.
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
    score: float
    words: Words

    @property
    def unchanged(self) -> tuple[LabelInfo, ...]:
        """The labels that it has and should keep."""
        return tuple(info for info in self.proposed if info != self.suggested)


class IssueDescriber:
    """Describes ranked issues, with the learners that were not trained on their documents."""

    def __init__(self, out_of_fold: OutOfFold, corpus: Corpus, form: LabelFormat, probabilities: ClassProbabilities) -> None:
        self.out_of_fold, self.corpus, self.form, self.probabilities = out_of_fold, corpus, form, probabilities
        self.above = above_classes(probabilities.classes, out_of_fold.taxonomy).astype(np.float64)

    def describe(self, issues: RankedIssues, most: int) -> list[LabelIssue]:
        """The first issues."""
        n = min(most, len(issues))
        wanted: dict[int, list[int]] = {}
        for place, document in enumerate(issues.documents[:n].tolist()):
            wanted.setdefault(document, []).append(place)
        found: dict[int, LabelIssue] = {}
        documents = np.asarray(sorted(wanted), dtype=np.int64)
        for rows, (P, scores) in self.out_of_fold.blocks(documents, lambda learner, S: (self.probabilities(learner, S), S)):
            nodes = np.minimum(np.asarray(P @ self.above), 1.0)
            for row, document in enumerate(rows.tolist()):
                found |= {place: self._issue(issues, place, nodes[row], scores[row]) for place in wanted[document]}
        return [found[place] for place in range(n)]

    def _issue(self, issues: RankedIssues, place: int, nodes: Floats, scores: Any) -> LabelIssue:
        document, given, suggested = (int(each[place]) for each in (issues.documents, issues.given, issues.suggested))
        labels = self.out_of_fold.own[[document]].indices.astype(np.int64)
        unchanged = [self._info(node, nodes, float(nodes[node])) for node in labels[labels != given].tolist()]
        better = self._info(suggested, nodes, float(issues.p_suggested[place]))
        ancestors_of, distance = self.out_of_fold.taxonomy.ancestors_of, 0
        if suggested != NO_NODE:  # from the given label, or from the closest of all where one is missing
            path, others = {suggested, *ancestors_of(suggested).tolist()}, labels.tolist() if given == NO_NODE else [given]
            distance = min((len(path ^ {other, *ancestors_of(other).tolist()}) for other in others), default=0)
        text = None if self.corpus.has_vectors else text_of(self.corpus.documents[document])
        names = tuple(self.form.write(self.out_of_fold.taxonomy, labels.tolist()))
        place_of, line = self.corpus.location_of(document), line_of(self.corpus, document)
        both = self._info(given, nodes, float(issues.p_given[place])), better
        proposed = tuple(info for info in (*unchanged, better) if info is not None)
        score, words = round(float(issues.scores[place]), DIGITS), self._words(document, given, suggested, labels, scores)
        kind = KINDS[issues.kinds[place]]
        return LabelIssue(document, place_of, line, text, names, kind, *both, proposed, distance, score, words)

    def _info(self, node: int, nodes: Floats, probability: float) -> LabelInfo | None:
        if node == NO_NODE:
            return None
        taxonomy = self.out_of_fold.taxonomy
        path = tuple(round(float(nodes[each]), DIGITS) for each in taxonomy.nodes_to(node))
        return LabelInfo(self.form.write(taxonomy, [node])[0], taxonomy.path_of(node), path, round(probability, DIGITS))

    def _words(self, document: int, given: int, suggested: int, labels: Ints, scores: Any) -> Words:
        """The words that speak most for the suggested label, or one that stays, and against the given one."""
        learner, x = self.out_of_fold.learners[self.out_of_fold.fold[document]], self.out_of_fold.X[[document]]
        others = labels[labels != given]
        better = suggested if suggested != NO_NODE else int(others[0]) if len(others) else NO_NODE
        if not learner.is_additive:
            return []
        x.sort_indices()
        both: list[Contributions | None] = []
        for node in (better, given):
            speaker = None if node == NO_NODE else learner.explaining_node(scores, node)
            both.append(None if speaker is None else learner.contributions(x, speaker))
        added = np.subtract(*(np.zeros(x.nnz) if each is None else each[1] for each in both))
        features = next((each[0] for each in both if each is not None), np.zeros(0, dtype=np.int64))
        names = names_of_features(self.out_of_fold.vectorizer, x, self.corpus.documents[document])
        order = np.argsort(-added[: len(features)], kind="stable")[:N_WORDS]
        return [(names[int(features[k])], round(float(added[k]), DIGITS)) for k in order if added[k] > 0]


def line_of(corpus: Corpus, document: int) -> int | None:
    """The line of a document, where the corpus comes from one file."""
    return int(corpus.lines[document]) if corpus.lines else None


# ---- files --------------------------------------------------------------------------------------------------------------

COLUMNS = (
    "rank", "place", "kind", "labels", "given", "suggested", "p_given", "p_suggested", "distance", "score", "words", "text",
)  # fmt: skip
SEPARATOR = " | "  # between labels


def issue_lines(issues: Iterable[LabelIssue], kind: str, escape_formulas: bool = False) -> Iterator[str]:
    """Lines of a file. kind: "csv" or "tsv" to read, "jsonl" with all that the review queue needs."""
    delimiter = "\t" if kind == "tsv" else ","
    if kind != "jsonl":
        yield csv_line(COLUMNS, delimiter)
    for rank, issue in enumerate(issues, start=1):
        if kind == "jsonl":
            yield json.dumps({"rank": rank, **asdict(issue)}, ensure_ascii=False) + "\n"
            continue
        both = issue.given, issue.suggested
        cells = [rank, issue.place, issue.kind, SEPARATOR.join(issue.labels)]
        cells += ["" if info is None else info.label for info in both]
        cells += ["" if info is None else info.probability for info in both]
        cells += [issue.distance, issue.score, words_of(issue), issue.text or ""]
        yield csv_line(cells, delimiter, escape_formulas)


def words_of(issue: LabelIssue) -> str:
    """The words of an issue on one line."""
    return ", ".join(word for word, _ in issue.words)
