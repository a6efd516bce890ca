"""Where blocks of work run, and how long work tells how far it is."""

from ramify.execution.choosing import choose_executor, count_workers
from ramify.execution.contract import Executor, row_blocks
from ramify.execution.progress import Progress, Stage, as_one_stage, reporting_to, stage
from ramify.execution.serial import SerialExecutor
from ramify.execution.threads import ThreadExecutor

__all__ = [
    "Executor",
    "Progress",
    "SerialExecutor",
    "Stage",
    "ThreadExecutor",
    "as_one_stage",
    "choose_executor",
    "count_workers",
    "reporting_to",
    "row_blocks",
    "stage",
]
