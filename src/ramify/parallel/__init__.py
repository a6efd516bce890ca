"""Where blocks of work run, how they are kept, and how long work tells how far it is."""

from ramify.parallel.base import Arrays, Crew, Executor, Keeper, Member, Needs, row_blocks
from ramify.parallel.checkpoints import Checkpoints
from ramify.parallel.cluster import open_cluster
from ramify.parallel.deadlines import Clock, OutOfTime, ending_by, heed_deadline
from ramify.parallel.executor import (
    SerialExecutor,
    ThreadExecutor,
    choose_executor,
    count_workers,
    current_executor,
    current_shards,
    is_elsewhere,
    kept_in,
    running_on,
    sharded_in,
)
from ramify.parallel.progress import Progress, Stage, as_one_stage, note, reporting_to, stage, tell

__all__ = [
    "Arrays",
    "Checkpoints",
    "Clock",
    "Crew",
    "Executor",
    "Keeper",
    "Member",
    "Needs",
    "OutOfTime",
    "Progress",
    "SerialExecutor",
    "Stage",
    "ThreadExecutor",
    "as_one_stage",
    "choose_executor",
    "count_workers",
    "current_executor",
    "current_shards",
    "ending_by",
    "heed_deadline",
    "is_elsewhere",
    "kept_in",
    "note",
    "open_cluster",
    "reporting_to",
    "row_blocks",
    "running_on",
    "sharded_in",
    "stage",
    "tell",
]
