"""What goes over the wire, as FastAPI checks and documents it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ramify.data.tables import LONE_SURROGATE


def _refuse_halves(text: str) -> str:
    """Refuse half of a two-part character, which is no text and cannot be sent back."""
    if not text.isascii() and LONE_SURROGATE.search(text):
        raise ValueError("half of a two-part character (a lone surrogate) is no text")
    return text


def _as_whole(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


MOST_TEXTS = 100_000  # of a list that is looked at; how many are allowed is the server's setting

Text = Annotated[str, AfterValidator(_refuse_halves)]
Words = Annotated[Text, Field(min_length=1, pattern=r"\S", description="A text with a word in it.")]
Whole = Annotated[int, BeforeValidator(_as_whole)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Risk = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Name = Annotated[Text, Field(min_length=1, max_length=64)]
LabelName = Annotated[Text, Field(min_length=1, max_length=2_000)]


class In(BaseModel):
    """What comes: nothing but what is named, and of just that kind."""

    model_config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())


class Out(BaseModel):
    """What goes."""

    model_config = ConfigDict(protected_namespaces=())


class ErrorBody(Out):
    """A word for programs, and a sentence for people."""

    code: str
    message: str


class ErrorAnswer(Out):
    """Every refusal looks like this."""

    error: ErrorBody


# ---- the server and its models ----------------------------------------------------------------------------------------


class LimitsOut(Out):
    """What one request may ask for."""

    texts: int
    characters: int
    body_bytes: int
    upload_bytes: int
    seconds: float


class Session(Out):
    """Who asks, and what the server has."""

    name: str
    role: Literal["read", "review", "admin"]
    needs_key: bool
    version: str
    reviews: bool
    review_below: float | None
    models: list[str]
    limits: LimitsOut


class PromiseOut(Out):
    """What a model can promise: from how many held-out documents, whether it learnt nothing from them, and the least risk."""

    kind: Literal["path", "share"]
    documents: int
    is_proven: bool
    least_risk: float


class Model(Out):
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
    promise: PromiseOut | None


class Models(Out):
    """All models; the default comes first."""

    models: list[Model]


class StoredReport(Out):
    """How a model did when it was trained."""

    model: str
    report: dict[str, Any]


# ---- answers ----------------------------------------------------------------------------------------------------------


class ClassifyIn(In):
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
    top: Whole = Field(1, ge=1, le=100, description="How many labels in all: behind those of the rule, the next likely leaves.")
    threshold: Probability | None = Field(
        None, description="Go up the path to the deepest node that is at least so likely; with none there is no label."
    )
    within: list[LabelName] = Field([], max_length=100, description="Only labels at or below these nodes.")
    without: list[LabelName] = Field([], max_length=100, description="No label at or below these nodes.")
    risk: Risk | None = Field(
        None,
        description="Go up to the deepest node that holds the truth but for this share of texts; see the model's promise.",
    )
    nodes: Whole = Field(1, ge=1, le=10, description="With a risk: up to 2, 3, 5 or 10 nodes, one of which holds the truth.")
    by_branch: bool = Field(False, description="With a risk: promise it for every top-level branch, too.")
    queue: bool = Field(True, description="Whether an unsure answer may be queued for review, where the server does that.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.text is None) == (self.texts is None):
            raise ValueError("give `text` or `texts`, and not both")
        return self


class Label(Out):
    """A label, the titles from the top down to it, and how likely each of these nodes is."""

    label: str
    path: list[str]
    probabilities: list[float]
    probability: float


class Result(Out):
    """The answer for one text; `problem` says why there is none."""

    labels: list[Label]
    others: list[Label]
    problem: str | None = None


class ClassifyOut(Out):
    """One result a text, in order."""

    model: str
    results: list[Result]


class ExplainIn(In):
    """A text whose answer is to be explained."""

    text: Words
    model: Name | None = None
    label: LabelName | None = Field(None, description="Explain this label instead of the one that was given.")
    true: list[LabelName] | None = Field(
        None, max_length=100, description="Labels that are true; shows where answers go wrong."
    )


class Word(Out):
    """A term of the text, by its place in `terms`, and what it adds."""

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


class NodeOut(Out):
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


class Span(Out):
    """Where a term stands in the text, in characters (Unicode code points); `word` is its place in `terms`."""

    start: int
    end: int
    word: int


class ExplainOut(Out):
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


class BatchLabel(Out):
    """A label and its probability."""

    label: str
    probability: float


# ---- the taxonomy -----------------------------------------------------------------------------------------------------


class Quality(Out):
    """How well a node did in the report of the training."""

    support: int
    predicted: int
    precision: float
    recall: float
    f1: float


class TaxonomyNode(Out):
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


class TaxonomyPart(Out):
    """A node, those above it, and some of its children."""

    model: str
    node: TaxonomyNode | None
    above: list[TaxonomyNode]
    children: list[TaxonomyNode]
    total: int


class Matches(Out):
    """Nodes that a search found."""

    model: str
    matches: list[TaxonomyNode]
    total: int


# ---- evaluation -------------------------------------------------------------------------------------------------------


class WrongAnswerOut(Out):
    """A document with a wrong answer; `distance` counts steps in the tree."""

    line: int
    text: str
    true: list[str]
    predicted: list[BatchLabel]
    distance: float


class EvaluateOut(Out):
    """How a model did on a table; `left_out` rows could not be used."""

    model: str
    documents: int
    left_out: int
    report: dict[str, Any]
    errors: list[WrongAnswerOut]


class Health(Out):
    """The server is there."""

    status: Literal["ok"]
    models: int
