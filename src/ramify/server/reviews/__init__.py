"""The review queue: storage, agreement between reviewers, import and export."""

from ramify.server.reviews.agreement import Summary, Tally, summarize
from ramify.server.reviews.import_export import export_rows, read_label_issues, training_rows, waiting_tasks
from ramify.server.reviews.store import Decision, Review, ReviewStore

__all__ = ["Decision", "Review", "ReviewStore", "Summary", "Tally", "export_rows", "read_label_issues", "summarize"]
__all__ += ["training_rows", "waiting_tasks"]
