"""Requests and responses of the API, as FastAPI validates and documents them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ramify.data.encodings import LONE_SURROGATE
from ramify.server.json_bounds import DEEPEST, is_deeper
from ramify.server.reviews.store import Action, Decision


def _refuse_halves(text: str) -> str:
    if not text.isascii() and LONE_SURROGATE.search(text):
        raise ValueError("a lone surrogate is not valid text")
    return text


def _refuse_depth(params: dict[str, Any]) -> dict[str, Any]:
    if is_deeper(params):
        raise ValueError(f"nested in more than {DEEPEST} levels")
    return params


MOST_TEXTS = 100_000  # in a list before validation stops; the server's own limit is lower

Text = Annotated[str, AfterValidator(_refuse_halves)]
Words = Annotated[Text, Field(min_length=1, pattern=r"\S", description="A text with a word in it.")]
# JSON has one number type: 5.0 is 5
Whole = Annotated[int, BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Risk = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Name = Annotated[Text, Field(min_length=1, max_length=64)]
LabelName = Annotated[Text, Field(min_length=1, max_length=2_000)]
NO_CONTROLS = r"^[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+$"
Person = Annotated[Text, Field(min_length=1, max_length=80, pattern=NO_CONTROLS)]
Remark = Annotated[Text, Field(max_length=2_000)]


class In(BaseModel):
    """A request: unknown fields and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())


class Out(BaseModel):
    """A response."""

    model_config = ConfigDict(protected_namespaces=(), from_attributes=True)


class ErrorBody(Out):
    """A code for programs, and a sentence for people."""

    code: str
    message: str


class ErrorResponse(Out):
    """The form of every error."""

    error: ErrorBody


class LimitsOut(Out):
    """Limits of one request."""

    texts: int
    characters: int
    explain_characters: int
    body_bytes: int
    upload_bytes: int
    seconds: float


class Session(Out):
    """The caller, and what the server offers."""

    name: str
    role: Literal["read", "review", "admin"]
    needs_key: bool
    version: str
    reviews: bool
    review_below: float | None
    models: list[str]
    limits: LimitsOut


class GuaranteeOut(Out):
    """The guarantee of a model: held-out documents, whether they were kept out of training, and the lowest possible risk."""

    kind: Literal["coverage", "risk-control"]
    documents: int
    is_proven: bool
    least_risk: float


class Model(Out):
    """Facts about a model."""

    name: str
    system: str
    rule: str
    nodes: int
    leaves: int
    levels: int
    documents: int
    features: int
    is_multi_label: bool
    is_tree: bool
    is_default: bool
    loaded_at: str
    has_changed: bool
    has_report: bool
    evaluation: dict[str, float] | None
    tested_on: int | None
    guarantee: GuaranteeOut | None


class Models(Out):
    """All models; the default comes first."""

    models: list[Model]


class StoredReport(Out):
    """The evaluation report of a model's training."""

    model: str
    report: dict[str, Any]


ONE_TEXT: dict[str, Any] = {"required": ["text"], "properties": {"text": {"type": "string"}}}
TEXTS: dict[str, Any] = {"required": ["texts"], "properties": {"texts": {"type": "array"}}}


class ClassifyIn(In):
    """One text, or a list of texts."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [ONE_TEXT, TEXTS]})

    text: Text | None = Field(None, description="One text to classify.")
    texts: Annotated[list[Text], Field(fail_fast=True)] | None = Field(
        None, min_length=1, max_length=MOST_TEXTS, description="Texts to classify; not together with `text`."
    )
    model: Name | None = Field(None, description="The model's name; the default model when left out.")
    top: Whole = Field(
        1, ge=1, le=100, description="How many labels in all: those of the decision rule, then the next likely leaves."
    )
    threshold: Probability | None = Field(
        None,
        description="Back off to the deepest node of the path with at least this probability; without one there is no label.",
    )
    within: list[LabelName] = Field([], max_length=100, description="Only labels at or below these nodes.")
    without: list[LabelName] = Field([], max_length=100, description="No label at or below these nodes.")
    risk: Risk | None = Field(
        None, description="Back off to a parent until the label is right except for this fraction of texts; see the guarantee."
    )
    nodes: Whole = Field(1, ge=1, le=10, description="With a risk: up to 2, 3, 5 or 10 nodes, one of which is right.")
    by_branch: bool = Field(False, description="With a risk: guarantee it within every top-level branch.")
    rule: Name | None = Field(None, description="A decision rule that needs no fitting, instead of the model's.")
    rule_params: Annotated[dict[str, Any], AfterValidator(_refuse_depth)] = Field(
        {},
        description="Parameters of the rule; `costs`, `penalty` and `weights` also by node name, where other nodes have 1, 0 "
        "and 1.",
    )
    queue: bool = Field(True, description="Whether the server may queue the text for review if its confidence is low.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.texts is None):
            raise ValueError("give `text` or `texts`, and not both")
        if self.rule_params and self.rule is None:
            raise ValueError("`rule_params` are those of a rule; name it in `rule`")
        return self


class BatchLabel(Out):
    """A label and its probability."""

    label: str
    probability: float


class Label(BatchLabel):
    """A label, the titles on its path from the root, and the probability of each node on it."""

    path: list[str]
    probabilities: list[float]


class Result(Out):
    """The prediction for one text; `problem` says why there is none."""

    labels: list[Label]
    others: list[Label]
    problem: str | None = None


class ClassifyOut(Out):
    """One result per text, in order."""

    model: str
    results: list[Result]


class ExplainIn(In):
    """A text whose prediction is to be explained."""

    text: Words
    model: Name | None = None
    label: LabelName | None = Field(None, description="Explain this label instead of the predicted one.")
    true: list[LabelName] | None = Field(
        None, max_length=100, description="The true labels; shows where the prediction goes wrong."
    )


class Word(Out):
    """A term of the text, by its index in `terms`, and its weight."""

    word: int
    text: str
    weight: float


class Explained(Out):
    """The label that is explained, against the best other one; `words`, `rest` and `prior` add up to `margin`."""

    label: str
    path: list[str]
    rival: list[str]
    margin: float
    prior: float
    words: list[Word]
    rest: float


class StepOut(Out):
    """One step on the path; `words`, `rest` (words of very long texts that are not listed) and `prior` add up to `score`."""

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


class NodeOut(Out):
    """The scores and the decision at one node."""

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
    is_first_error: bool
    reason: str


class Span(Out):
    """The position of a term in the text, in Unicode code points; `word` is its index in `terms`."""

    start: int
    end: int
    word: int


class ExplainOut(Out):
    """The explanation of the labels of a text."""

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


class Quality(Out):
    """The figures of a node in the training report."""

    support: int
    predicted: int
    precision: float
    recall: float
    f1: float


class TaxonomyNode(Out):
    """A node, the size of its subtree, and its figures."""

    name: str
    title: str
    label: str
    path: list[str]
    depth: int
    children: int
    leaves: int
    documents: int | None
    quality: Quality | None


class TaxonomyPart(Out):
    """A node, its ancestors, and some of its children."""

    model: str
    node: TaxonomyNode | None
    above: list[TaxonomyNode]
    children: list[TaxonomyNode]
    total: int


class Matches(Out):
    """Nodes that a search found; did_you_mean: a query that finds something, if this one does not."""

    model: str
    matches: list[TaxonomyNode]
    total: int
    did_you_mean: str | None = None


class PredictionErrorOut(Out):
    """A document with a wrong prediction; `distance` counts edges of the tree."""

    line: int
    text: str
    true: list[str]
    predicted: list[BatchLabel]
    distance: float


class TablePreview(Out):
    """A table as it would be read. text, label: the columns that the model would take. problem: why it would take none."""

    encoding: str
    columns: list[str]
    rows: list[list[str]]
    text: list[str]
    label: list[str]
    problem: str | None


class EvaluateOut(Out):
    """The evaluation of a model on a table; `left_out` rows could not be used. text, label: the columns that were read."""

    model: str
    text: list[str]
    label: list[str]
    encoding: str
    documents: int
    left_out: int
    report: dict[str, Any]
    errors: list[PredictionErrorOut]


class Health(Out):
    """The server is running."""

    status: Literal["ok"]
    models: int


class DocumentIn(In):
    """A document for the queue; `source` says where it comes from."""

    text: Words
    source: Remark | None = None


class QueueIn(In):
    """Documents for the queue."""

    documents: list[DocumentIn] = Field(min_length=1, fail_fast=True, max_length=MOST_TEXTS)
    model: Name | None = None


class QueueOut(Out):
    """The numbers of the documents, and how many were queued before."""

    queued: list[int]
    known: int


class DecisionIn(In):
    """The decision of a reviewer."""

    action: Action
    labels: list[LabelName] | None = Field(None, max_length=100, description="The right labels; needed for `correct`.")
    comment: Remark | None = None
    reviewer: Person | None = Field(None, description="The name of the reviewer; only if the server has no keys.")


class ReviewOut(Out):
    """A document, the prediction of the model, and the decisions of reviewers."""

    id: int
    text: str
    model: str
    labels: list[Label]
    others: list[Label]
    confidence: float
    queued_at: str
    queued_by: str
    source: str | None
    decisions: list[Decision]


class ReviewPage(Out):
    """Some documents of the queue."""

    documents: list[ReviewOut]
    total: int
    open: int
