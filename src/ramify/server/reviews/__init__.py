"""Documents that people look at: a queue, what was decided by whom, and what training can take from it."""

from ramify.server.reviews.agreement import Summary, summarize
from ramify.server.reviews.exchange import export_rows, read_findings, training_rows
from ramify.server.reviews.store import Decision, Review, ReviewStore

__all__ = ["Decision", "Review", "ReviewStore", "Summary", "export_rows", "read_findings", "summarize", "training_rows"]
