"""Where blocks of work run, how they are kept, and how long work tells how far it is."""

from ramify.execution.checkpoints import Checkpoints
from ramify.execution.choosing import choose_executor, count_workers
from ramify.execution.contract import Arrays, Crew, Executor, Keeper, Member, Needs, row_blocks
from ramify.execution.progress import Progress, Stage, as_one_stage, reporting_to, stage
from ramify.execution.serial import SerialExecutor
from ramify.execution.surroundings import is_elsewhere, kept_in, running_on
from ramify.execution.threads import ThreadExecutor

__all__ = [
    "Arrays",
    "Checkpoints",
    "Crew",
    "Executor",
    "Keeper",
    "Member",
    "Needs",
    "Progress",
    "SerialExecutor",
    "Stage",
    "ThreadExecutor",
    "as_one_stage",
    "choose_executor",
    "count_workers",
    "is_elsewhere",
    "kept_in",
    "reporting_to",
    "row_blocks",
    "running_on",
    "stage",
]
