"""What tests of executors share: a listener for lines that should stay."""

from contextlib import nullcontext

import pytest

from ramify.parallel import reporting_to
from ramify.parallel.progress import _Silent


class Notes:
    """Takes lines, and no bars."""

    def __init__(self):
        self.lines = []

    def stage(self, title, total):
        return nullcontext(_Silent())

    def note(self, line):
        self.lines.append(line)


@pytest.fixture
def notes():
    """The lines that were told."""
    listener = Notes()
    with reporting_to(listener):
        yield listener.lines
