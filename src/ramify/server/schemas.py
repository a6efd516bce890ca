"""What goes over the wire, as FastAPI checks and documents it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ramify.datasets.tables import LONE_SURROGATE


def _refuse_halves(text: str) -> str:
    """Refuse half of a two-part character, which is no text and cannot be sent back."""
    if not text.isascii() and LONE_SURROGATE.search(text):
        raise ValueError("half of a two-part character (a lone surrogate) is no text")
    return text


MOST_TEXTS = 100_000  # of a list that is looked at; how many are allowed is the server's setting

Text = Annotated[str, AfterValidator(_refuse_halves)]
Words = Annotated[Text, Field(min_length=1, pattern=r"\S", description="A text with a word in it.")]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Name = Annotated[Text, Field(min_length=1, max_length=64)]
LabelName = Annotated[Text, Field(min_length=1, max_length=2_000)]
Person = Annotated[Text, Field(min_length=1, max_length=80)]
Remark = Annotated[Text, Field(max_length=2_000)]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())


class _Out(BaseModel):
    model_config = ConfigDict(protected_namespaces=())


class ErrorBody(_Out):
    """A word for programs, and a sentence for people."""

    code: str
    message: str


class ErrorAnswer(_Out):
    """Every refusal looks like this."""

    error: ErrorBody


# ---- the server and its models ----------------------------------------------------------------------------------------


class LimitsOut(_Out):
    """What one request may ask for."""

    texts: int
    characters: int
    body_bytes: int
    upload_bytes: int
    seconds: float


class Session(_Out):
    """Who asks, and what the server has."""

    name: str
    role: Literal["read", "review", "admin"]
    needs_key: bool
    version: str
    reviews: bool
    review_below: float | None
    models: list[str]
    limits: LimitsOut


class Model(_Out):
    """What there is to say about a model."""

    name: str
    system: str
    rule: str
    nodes: int
    leaves: int
    levels: int
    documents: int
    features: int
    several: bool
    is_tree: bool
    is_default: bool
    loaded_at: str
    has_report: bool
    evaluation: dict[str, float] | None
    tested_on: int | None


class Models(_Out):
    """All models; the default comes first."""

    models: list[Model]


class StoredReport(_Out):
    """How a model did when it was trained."""

    model: str
    report: dict[str, Any]


# ---- answers ----------------------------------------------------------------------------------------------------------


class ClassifyIn(_In):
    """One text, or several."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["text"], "properties": {"text": {"type": "string"}}},
                {"required": ["texts"], "properties": {"texts": {"type": "array"}}},
            ]
        }
    )

    text: Text | None = Field(None, description="One text to classify.")
    texts: Annotated[list[Text], Field(fail_fast=True)] | None = Field(
        None, min_length=1, max_length=MOST_TEXTS, description="Several texts to classify; not together with `text`."
    )
    model: Name | None = Field(None, description="The model's name; the default model when left out.")
    top: int = Field(1, ge=1, le=100, description="How many labels in all: behind those of the rule, the next likely leaves.")
    threshold: Probability | None = Field(
        None, description="Go up the path to the deepest node that is at least so likely; with none there is no label."
    )
    within: list[LabelName] = Field([], max_length=100, description="Only labels at or below these nodes.")
    without: list[LabelName] = Field([], max_length=100, description="No label at or below these nodes.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.texts is None):
            raise ValueError("give `text` or `texts`, and not both")
        return self


class Label(_Out):
    """A label, the titles from the top down to it, and how likely each of these nodes is."""

    label: str
    path: list[str]
    probabilities: list[float]
    probability: float


class Result(_Out):
    """The answer for one text; `problem` says why there is none."""

    labels: list[Label]
    others: list[Label]
    problem: str | None = None


class ClassifyOut(_Out):
    """One result a text, in order."""

    model: str
    results: list[Result]


class ExplainIn(_In):
    """A text whose answer is to be explained."""

    text: Words
    model: Name | None = None
    label: LabelName | None = Field(None, description="Explain this label instead of the one that was given.")
    true: list[LabelName] | None = Field(
        None, max_length=100, description="Labels that are true; shows where answers go wrong."
    )


class Word(_Out):
    """A term of the text, by its place in `terms`, and what it adds."""

    word: int
    text: str
    weight: float


class Explained(_Out):
    """The label that is explained, against the best other one; `words`, `rest` and `prior` add up to `margin`."""

    label: str
    path: list[str]
    rival: list[str]
    margin: float
    prior: float
    words: list[Word]
    rest: float


class StepOut(_Out):
    """One step on the path: `words`, `rest` and `prior` add up to `score`; `reason` is the decision rule's own.

    rest: what words add that are not listed, in texts with very many.
    """

    node: int
    name: str
    title: str
    probability: float
    is_taken: bool
    rival: list[str] | None
    score: float
    prior: float
    words: list[Word]
    rest: float
    reason: str


class NodeOut(_Out):
    """What happened at one node that matters."""

    node: int
    parent: int | None
    name: str
    title: str
    depth: int
    probability: float
    score: float | None
    value: float | None
    refined: float | None
    is_taken: bool
    contradicts: bool
    is_true: bool | None
    is_first_mistake: bool
    reason: str


class Span(_Out):
    """Where a term stands in the text, in characters (Unicode code points); `word` is its place in `terms`."""

    start: int
    end: int
    word: int


class ExplainOut(_Out):
    """Why a text got its labels."""

    model: str
    system: str
    rule: str
    additive: bool
    labels: list[Label]
    explained: Explained
    steps: list[StepOut]
    nodes: list[NodeOut]
    spans: list[Span]
    terms: list[str]


class BatchLabel(_Out):
    """A label and its probability."""

    label: str
    probability: float


# ---- the taxonomy -----------------------------------------------------------------------------------------------------


class Quality(_Out):
    """How well a node did in the report of the training."""

    support: int
    predicted: int
    precision: float
    recall: float
    f1: float


class TaxonomyNode(_Out):
    """A node, how much lies below it, and how well it did."""

    name: str
    title: str
    label: str
    path: list[str]
    depth: int
    children: int
    leaves: int
    documents: int | None
    quality: Quality | None


class TaxonomyPart(_Out):
    """A node, those above it, and some of its children."""

    model: str
    node: TaxonomyNode | None
    above: list[TaxonomyNode]
    children: list[TaxonomyNode]
    total: int


class Matches(_Out):
    """Nodes that a search found."""

    model: str
    matches: list[TaxonomyNode]
    total: int


# ---- evaluation -------------------------------------------------------------------------------------------------------


class WrongAnswerOut(_Out):
    """A document with a wrong answer; `distance` counts steps in the tree."""

    line: int
    text: str
    true: list[str]
    predicted: list[BatchLabel]
    distance: float


class EvaluateOut(_Out):
    """How a model did on a table; `left_out` rows could not be used."""

    model: str
    documents: int
    left_out: int
    report: dict[str, Any]
    errors: list[WrongAnswerOut]


# ---- reviews ----------------------------------------------------------------------------------------------------------


class DocumentIn(_In):
    """A document for the queue; `source` says where it comes from."""

    text: Words
    source: Remark | None = None


class QueueIn(_In):
    """Documents for the queue."""

    documents: list[DocumentIn] = Field(min_length=1, fail_fast=True, max_length=MOST_TEXTS)
    model: Name | None = None


class QueueOut(_Out):
    """The numbers of the documents, and how many were in the queue already."""

    queued: list[int]
    known: int


class DecisionIn(_In):
    """What a person says of a document."""

    action: Literal["accept", "correct", "reject"]
    labels: list[LabelName] | None = Field(None, max_length=100, description="The right labels; needed for `correct`.")
    comment: Remark | None = None
    reviewer: Person | None = Field(None, description="Who decides; only where the server has no keys.")


class DecisionOut(_Out):
    """What a person said of a document, and when."""

    reviewer: str
    action: Literal["accept", "correct", "reject"]
    labels: list[str]
    comment: str | None
    at: str


class ReviewOut(_Out):
    """A document, what the model said of it, and what people said since."""

    id: int
    text: str
    model: str
    labels: list[Label]
    others: list[Label]
    confidence: float
    queued_at: str
    queued_by: str
    source: str | None
    decisions: list[DecisionOut]


class ReviewPage(_Out):
    """Some documents of the queue."""

    documents: list[ReviewOut]
    total: int
    open: int


class Agreement(_Out):
    """At one depth: how many labels go so deep, and the share that the model's went along with."""

    depth: int
    documents: int
    agreement: float


class ReviewerOut(_Out):
    """How one person decided."""

    reviewer: str
    decisions: int
    accepted: int
    corrected: int
    rejected: int


class Between(_Out):
    """Pairs of people on the same document, and how many gave the same labels."""

    pairs: int
    same: int


class ReviewSummary(_Out):
    """How often people agree with the model, and with each other."""

    open: int
    reviewed: int
    accepted: int
    corrected: int
    rejected: int
    agreement: float | None
    by_level: list[Agreement]
    by_reviewer: list[ReviewerOut]
    between_reviewers: Between


class Health(_Out):
    """The server is there."""

    status: Literal["ok"]
    models: int
