"""Annotation tools: read what people answered, and write documents for them to annotate. One file per tool."""

from ramify.data.annotations.annotated import Task
from ramify.data.annotations.tasks import TASK_FORMATS, find_task_format, task_writer

__all__ = ["TASK_FORMATS", "Task", "find_task_format", "task_writer"]
