"""A process of a cluster that has a member of a crew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ramify.execution.pages import use_large_pages
from ramify.execution.states import KeptState, keep_state, restore_kept


class Worker:
    """Has a member, and does what it is asked."""

    def __init__(self) -> None:
        self.member: Any = None

    def take_on(
        self, make: Any, common: Any, share: Any, frugality: int, state: KeptState | None, calls: list[str], *arguments: Any
    ) -> Any:
        """Make the member, as it was; gives what the last of the calls gives."""
        use_large_pages(common)
        self.member = make(common, share, frugality)
        if state is not None:
            restore_kept(state, self.member.restore)
        answer = None
        for what, given in zip(calls, arguments, strict=True):
            answer = self.work(what, given)
        return answer

    def work(self, what: str, arguments: tuple[Any, ...]) -> Any:
        """Do what the member is asked; without a name, write its state."""
        if what:
            return getattr(self.member, what)(*arguments)
        return keep_state(Path(arguments[0]), self.member.state())

    def let_go(self) -> None:
        """Give up the member."""
        self.member = None

    def process(self) -> int:
        """The number of the process."""
        return os.getpid()

    def height(self) -> int:
        """The most bytes that the process has held so far; what machines share is not counted twice by the system."""
        import resource  # not everywhere

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
