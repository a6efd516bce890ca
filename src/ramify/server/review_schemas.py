"""What goes over the wire about reviews."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ramify.server.schemas import MOST_TEXTS, In, Label, LabelName, Name, Out, Text, Words

Person = Annotated[Text, Field(min_length=1, max_length=80)]
Remark = Annotated[Text, Field(max_length=2_000)]


class DocumentIn(In):
    """A document for the queue; `source` says where it comes from."""

    text: Words
    source: Remark | None = None


class QueueIn(In):
    """Documents for the queue."""

    documents: list[DocumentIn] = Field(min_length=1, fail_fast=True, max_length=MOST_TEXTS)
    model: Name | None = None


class QueueOut(Out):
    """The numbers of the documents, and how many were in the queue already."""

    queued: list[int]
    known: int


class DecisionIn(In):
    """What a person says of a document."""

    action: Literal["accept", "correct", "reject"]
    labels: list[LabelName] | None = Field(None, max_length=100, description="The right labels; needed for `correct`.")
    comment: Remark | None = None
    reviewer: Person | None = Field(None, description="Who decides; only where the server has no keys.")


class DecisionOut(Out):
    """What a person said of a document, and when."""

    reviewer: str
    action: Literal["accept", "correct", "reject"]
    labels: list[str]
    comment: str | None
    at: str


class ReviewOut(Out):
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


class ReviewPage(Out):
    """Some documents of the queue."""

    documents: list[ReviewOut]
    total: int
    open: int


class Agreement(Out):
    """At one depth: how many labels go so deep, and the share that the model's went along with."""

    depth: int
    documents: int
    agreement: float


class ReviewerOut(Out):
    """How one person decided."""

    reviewer: str
    decisions: int
    accepted: int
    corrected: int
    rejected: int


class Between(Out):
    """Pairs of people on the same document, and how many gave the same labels."""

    pairs: int
    same: int


class ReviewSummary(Out):
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
