"""Where parallel work runs (threads or a cluster), checkpoints, progress and deadlines."""

from ramify.parallel.base import Executor, Needs, Worker, WorkerGroup, WorkerLostError, row_blocks
from ramify.parallel.checkpoints import Arrays, Checkpoints, Codec
from ramify.parallel.cluster import open_cluster
from ramify.parallel.deadlines import Clock, OutOfTime, check_deadline, deadline_at
from ramify.parallel.executor import (
    SerialExecutor,
    ThreadExecutor,
    checkpointing,
    choose_executor,
    count_workers,
    current_executor,
    is_distributed,
    running_on,
    shard_directory,
    writing_shards_to,
)
from ramify.parallel.progress import Progress, Stage, describe, note, reporting_to, single_stage, stage

__all__ = [
    "Arrays", "Checkpoints", "Clock", "Codec", "Executor", "Needs", "OutOfTime", "Progress", "SerialExecutor", "Stage",
    "ThreadExecutor", "Worker", "WorkerGroup", "WorkerLostError", "check_deadline", "checkpointing", "choose_executor",
    "count_workers", "current_executor", "deadline_at", "describe", "is_distributed", "note", "open_cluster",
    "reporting_to", "row_blocks", "running_on", "shard_directory", "single_stage", "stage", "writing_shards_to",
]  # fmt: skip
