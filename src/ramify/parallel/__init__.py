"""Where parallel work runs (threads or a cluster), checkpoints, progress and deadlines."""

# isort: off
from ramify.parallel.checkpoints import Checkpoints, Codec
from ramify.parallel.cluster import open_cluster
from ramify.parallel.executor import Executor, Needs, SerialExecutor, ThreadExecutor, Worker, WorkerGroup, WorkerLostError
from ramify.parallel.executor import checkpointing, choose_executor, count_workers, current_executor, is_distributed, row_blocks
from ramify.parallel.executor import running_on, shard_directory, writing_shards_to
from ramify.parallel.progress import Clock, OutOfTime, Progress, Stage, check_deadline, deadline_at, describe, note
from ramify.parallel.progress import reporting_to, single_stage, stage
from ramify.persistence.arrays import Arrays
# isort: on

__all__ = [
    "Arrays", "Checkpoints", "Clock", "Codec", "Executor", "Needs", "OutOfTime", "Progress", "SerialExecutor", "Stage",
    "ThreadExecutor", "Worker", "WorkerGroup", "WorkerLostError", "check_deadline", "checkpointing", "choose_executor",
    "count_workers", "current_executor", "deadline_at", "describe", "is_distributed", "note", "open_cluster",
    "reporting_to", "row_blocks", "running_on", "shard_directory", "single_stage", "stage", "writing_shards_to",
]  # fmt: skip
